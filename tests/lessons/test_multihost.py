"""Lesson 19: what it says of real processes holds there; its cluster files are what their readers take."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from answering import verdict
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import PerProcess, built
from grader.arrays.files import OnFile
from grader.arrays.numbers import same_value
from grader.exercises.plain import plain
from grader.lessons import EXERCISES
from grader.lessons.multihost.files import FAULTS, _jobset, _slurm_facts, broken_jobset
from grader.lessons.multihost.processes import exchanged
from grader.processes.launch import Process, launch

FOLDER = Path(__file__).parents[2] / "solutions" / "19_multihost"
SCRIPTS = sorted(FOLDER.glob("*.sh"))


def mixed(process_id, num_processes, *, values, first):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(AxisType.Auto,))
    whole = jax.device_put(np.array(values, np.float32), NamedSharding(mesh, P("x")))
    order = [jax.jit(jnp.max), jax.jit(jnp.sum)] if first[process_id] == "max" else [jax.jit(jnp.sum), jax.jit(jnp.max)]
    return [float(ask(whole)) for ask in order]


@pytest.mark.parametrize("seed", range(3))
def test_collectives_in_another_order_come_to_what_the_lesson_says(seed):
    rng = np.random.default_rng(seed)
    values, first = rng.permutation(8).tolist(), rng.choice(["sum", "max"], 4).tolist()
    function, other = {"sum": sum, "max": max}, {"sum": max, "max": sum}
    found = launch(mixed, arguments={"values": values, "first": first})
    due = [exchanged([which[name] for name in first], values) for which in (function, other)]
    assert found.went_well and [p.returned for p in found.processes] == [due] * 4


def test_training_gives_the_same_curve_in_four_processes_as_in_one():
    def curve(**machine):
        said = launch(FOLDER / "train.py", **machine).processes[0].said
        return [float(line.split()[3]) for line in said.splitlines() if "loss" in line]

    found = curve(processes=4, devices=2)
    assert len(found) == 5 and found[-1] < found[0] / 10
    assert found == pytest.approx(curve(processes=1, devices=8), abs=2e-4)  # they print four digits


def test_logs_show_what_was_said_and_not_what_libraries_say():
    said = "[Gloo] Rank 0 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3\nhere\n"
    assert repr(Process(0, 0, 1.0, said)) == "Process 0 ended well.\nhere"


def test_messages_of_a_library_within_lines_leave_the_lines():
    message = "[Gloo] Rank 0 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3"
    assert repr(Process(0, 0, 1.0, f"one\n{message}two\n\nthree\n")) == "Process 0 ended well.\none\ntwo\nthree"
    mixed = f"one\n{message[:12]}\n{message[12:]}\n{message}two\n\nthree\n"
    assert repr(Process(0, 0, 1.0, mixed)) == "Process 0 ended well.\none\ntwo\nthree"
    assert repr(Process(0, 0, 1.0, "one\n\nthree\n")) == "Process 0 ended well.\none\n\nthree"


# What a process reports of itself it may have made up, unless it hangs on what only the others were given.

# (In the capstone every process is told the same, and has the sums of all steps from the others.)
ELSEWHERE = ("resume", "four_processes")
IN_PROCESSES = [e for e in EXERCISES.values() if e.form == "processes" and e.name not in ELSEWHERE]


def changed_elsewhere(case, number):
    """The arguments of a case where all processes but one were given something else."""
    return {
        name: PerProcess(tuple(v if k == number else jax.tree.map(_another, v) for k, v in enumerate(a.values)))
        if isinstance(a, PerProcess)
        else a
        for name, a in case.arguments.items()
    }


def _another(given):
    return replace(given, value=given.value + 1) if isinstance(given, OnFile) else given + 1


@pytest.mark.parametrize("exercise", IN_PROCESSES, ids=lambda exercise: exercise.name)
def test_alone_no_process_knows_what_all_have_to_return(exercise):
    def hangs_on_others(case, number):
        both = dict(case.arguments), changed_elsewhere(case, number)
        one, other = (plain(exercise.reference(number, count, **built(a))) for a in both)
        return not same_value(one, other)

    cases = exercise.draw_cases(1, thorough=True)
    assert any(case.mesh["processes"] > 2 for case in cases)
    for case in (case for case in cases if case.mesh["processes"] > 2):  # half of two is one, which needs nobody
        count = case.mesh["processes"]
        assert any(hangs_on_others(case, number) for number in range(count))


def test_who_has_not_joined_gets_nothing_for_saying_so():
    def claims(process_id, num_processes, *, ticket):
        return process_id, num_processes, 2, 2 * num_processes, num_processes * ticket

    found = verdict(EXERCISES["join"], claims)
    assert found.points == 0, found.outcomes


# The cluster files.


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_scripts_are_shell(script):
    assert len(SCRIPTS) == 3
    subprocess.run(["bash", "-n", str(script)], check=True)


@pytest.mark.needs("shellcheck")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_scripts_pass_shellcheck(script):
    done = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def stubbed(tmp_path, **commands):
    """A PATH on which these commands are scripts of ours."""
    for name, text in commands.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_gpu_hosts_are_told_one_address_one_count_and_a_number_each(tmp_path):
    env = stubbed(tmp_path, ssh='echo "$2 $3"', scp="true")
    done = subprocess.run(["bash", str(FOLDER / "gpu_hosts.sh"), "a", "b", "c"], env=env, cwd=tmp_path, timeout=60)
    assert done.returncode == 0
    told = [(tmp_path / f"log.{k}").read_text().split() for k in range(3)]
    assert told == [
        [host, "JAX_COORDINATOR_ADDRESS=a:12345", "python3", "train.py", str(k), "3"] for k, host in enumerate("abc")
    ]


def test_gpu_hosts_end_when_one_fails(tmp_path):
    env = stubbed(tmp_path, ssh='[ "$2" = b ] && exit 7; sleep 30', scp="true")
    done = subprocess.run(["bash", str(FOLDER / "gpu_hosts.sh"), "a", "b"], env=env, cwd=tmp_path, timeout=20)
    assert done.returncode == 7


def test_a_tpu_slice_is_reached_on_all_hosts(tmp_path):
    env = {**stubbed(tmp_path, gcloud='echo "$@"'), "PROJECT": "p", "ZONE": "z", "NAME": "n"}
    said = subprocess.run(["bash", str(FOLDER / "tpu_pod.sh")], env=env, capture_output=True, text=True, check=True)
    assert len(said.stdout.splitlines()) == 3 and said.stdout.count("--worker=all") == 3
    assert subprocess.run(["bash", str(FOLDER / "tpu_pod.sh")], env=stubbed(tmp_path), capture_output=True).returncode


def test_slurm_asks_for_a_task_for_each_gpu():
    facts = _slurm_facts((FOLDER / "slurm.sh").read_text().splitlines())
    tasks, nodes, gpus = (int(facts[f"the number of {what}"]) for what in ("tasks", "nodes", "GPUs on a node"))
    assert facts["what starts `train.py`"] and tasks == nodes * gpus and not facts["who is named coordinator"]
    assert facts["the number of tasks that run `train.py`"] == facts["the number of tasks"]


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def test_the_jobset_has_as_many_pods_at_once_as_in_all_and_an_account_that_may_ask():
    (jobset,), (account, role, binding) = documents("jobset.yaml"), documents("rbac.yaml")
    (workers,) = jobset["spec"]["replicatedJobs"]
    job = workers["template"]["spec"]
    pod = job["template"]["spec"]
    assert job["parallelism"] == job["completions"] and job["completionMode"] == "Indexed"
    assert pod["restartPolicy"] == "Never" and job["backoffLimit"] == 0
    assert pod["serviceAccountName"] == account["metadata"]["name"] == binding["subjects"][0]["name"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] and binding["roleRef"]["kind"] == role["kind"]
    assert any("pods" in rule["resources"] and "list" in rule["verbs"] for rule in role["rules"])


def test_kubernetes_knows_every_field():
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed").validate
    repaired = _jobset(broken_jobset(8), 4)
    for jobset in (documents("jobset.yaml")[0], repaired):  # JobSet is an extension: its job is Kubernetes' own
        (workers,) = jobset["spec"]["replicatedJobs"]
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "workers"}, **workers["template"]}
        validate(job, "1.31", strict=True)
    for document in documents("rbac.yaml"):
        validate(document, "1.31", strict=True)


def test_what_is_said_of_slurm_and_kubernetes_is_what_jax_does(monkeypatch):
    from jax._src.clusters import k8s_cluster, slurm_cluster

    for name, value in {
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_NODELIST": "n[3-4]",
        "SLURM_NTASKS": "16",
        "SLURM_PROCID": "9",
        "SLURM_LOCALID": "1",
        "JOB_COMPLETION_INDEX": "5",
    }.items():
        monkeypatch.setenv(name, value)
    slurm = slurm_cluster.SlurmCluster
    assert (slurm.get_process_id(), slurm.get_local_process_id(), slurm.get_process_count()) == (9, 1, 16)
    assert slurm.get_coordinator_address(None, "1234") == "n3:1234"
    assert k8s_cluster.K8sCluster.get_process_id() == 5
    assert {"SLURM_PROCID", "JOB_COMPLETION_INDEX"} <= set(map(str, FAULTS.values()))
