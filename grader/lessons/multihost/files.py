"""§ 1, 10: what starts the processes. Lines and manifests are read by what they say, not compared as text."""

from __future__ import annotations

import copy
import itertools
import shlex
from typing import Any

from grader.exercises import Case, FunctionExercise, TableExercise

# By hand: a shell script that starts them all.


def _commands(script: str, processes: int, devices: int) -> list[str]:
    each = [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} > log.{k} 2>&1 &" for k in range(processes)]
    return [*each, "wait"]


def _says(lines: list[str]) -> list[tuple[Any, ...]]:
    """Of each line: what it runs, with which devices, and whether the shell goes on at once."""
    said, everywhere = [], []  # what is exported holds for all commands that follow, and is said of these
    for line in lines:
        words = list(shlex.shlex(line, posix=True, punctuation_chars=True)) if isinstance(line, str) else []
        start = next((k for k, word in enumerate(words) if word.split("/")[-1] in ("python", "python3")), None)
        if words[:1] == ["export"]:
            everywhere = words[:2]
        if start is not None:
            rest = words[start + 1 :]
            stop = next((k for k, word in enumerate(rest) if set(word) & set("<>&|;()")), len(rest))
            said.append(("python", _set_before(words[:start]) or everywhere, rest[:stop], words[-1] in ("&", ")&")))
        elif words:
            said.append(tuple(word for word in words if word != ";"))
    return [line for line in said if line[0] in ("python", "wait")]


def _set_before(words: list[str]) -> list[str]:
    """The devices that are set for a command, by the words before it: in the command itself, for what is set in one
    that has ended is not handed on, or exported in a shell of its own."""
    ends = [k + 1 for k, word in enumerate(words) if set(word) & set(";&|({")]
    own_shell = words[:1] in (["("], ["{"]) and "export" in words
    words = words if own_shell else words[max(ends, default=0) :]
    pairs = zip(["", *words], words, strict=False)
    return [word for last, word in pairs if word.startswith("JAX_NUM_CPU_DEVICES") and last != "$"]


launch_lines = FunctionExercise(
    "launch_lines",
    points=3,
    reference=_commands,
    same=lambda one, other, **_: bool(_says(one)) and _says(one) == _says(other),
)


@launch_lines.cases
def _(draw):
    for processes, devices in ((4, 2), (3, 4)):
        yield Case({"script": f"toy_{draw.rng.integers(10, 99)}.py", "processes": processes, "devices": devices})


@launch_lines.mistake
def one_after_the_other(script, processes, devices):
    """The shell waits for each line to end before it reads the next, and process 0 waits in initialize for process
    1. What at the end of a line makes the shell go on?"""
    return [line.removesuffix(" &") for line in _commands(script, processes, devices)]


@launch_lines.mistake
def counted_from_one(script, processes, devices):
    """The first process is number 0. Without it there is no coordinator, which lives in process 0, and the last
    number is one too many."""
    each = [
        f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} > log.{k} 2>&1 &"
        for k in range(1, processes + 1)
    ]
    return [*each, "wait"]


@launch_lines.mistake
def devices_left_out(script, processes, devices):
    """JAX_NUM_CPU_DEVICES does not reach the processes: each has one simulated device, and all have fewer than you
    wanted. Written before `python`, as a part of the same command, it holds for that one command."""
    return [*(f"python {script} {k} {processes} > log.{k} 2>&1 &" for k in range(processes)), "wait"]


@launch_lines.mistake
def exported_for_all(script, processes, devices):
    """The processes get their devices, and so does every command that comes after them in this shell: `export` holds
    until the shell ends. Where does a setting stand that holds for one command only?"""
    return [f"export JAX_NUM_CPU_DEVICES={devices}", *devices_left_out(script, processes, devices)]


@launch_lines.mistake
def does_not_wait(script, processes, devices):
    """The script ends while its processes still run: whoever reads the logs then, or is charged for the job, takes
    it to be over. Which word makes the shell stay until all are done?"""
    return _commands(script, processes, devices)[:-1]


@launch_lines.mistake
def waits_after_each(script, processes, devices):
    """The shell waits behind every line, and so starts a process only when the one before has ended; and process 0
    waits in initialize for process 1. When is it time to wait?"""
    return [line for command in _commands(script, processes, devices)[:-1] for line in (command, "wait")]


# Slurm.


def broken_slurm(hosts: int, gpus: int) -> list[str]:
    return [
        "#!/bin/bash",
        "#SBATCH --job-name=train",
        f"#SBATCH --nodes={hosts}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={gpus}",
        "#SBATCH --time=00:30:00",
        "",
        "export JAX_COORDINATOR_ADDRESS=localhost:12345",
        "python train.py",
    ]


def _slurm(
    lines: list[str], hosts: int, gpus: int, *, tasks: int | None = None, srun: bool = True, coordinator: bool = False
) -> list[str]:
    """The script repaired, but for what the options leave as it is."""
    repaired = [line.replace("--ntasks-per-node=1", f"--ntasks-per-node={tasks or gpus}") for line in lines]
    if not coordinator:
        repaired = [line for line in repaired if "JAX_COORDINATOR_ADDRESS" not in line]
    return [line.replace("python train.py", "srun python train.py") if srun else line for line in repaired]


def _options(words: list[str]) -> dict[str, str]:
    """Options as Slurm reads them: `--ntasks=8`, `--ntasks 8`, `-n 8` or `-n8`."""
    options = {}
    for word, after in itertools.pairwise([*words, ""]):
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            options[name] = value or after
        elif word.startswith("-"):
            options[{"n": "ntasks", "N": "nodes"}.get(word[1:2], word[1:2])] = word[2:] or after
    # One of Slurm's own variables says what Slurm knows.
    return {name: value for name, value in options.items() if not value.startswith("$")}


def _tasks(options: dict[str, str], nodes: str) -> str:
    """How many tasks there are on so many nodes, in words where they are no numbers."""
    each = options.get("ntasks-per-node", "1")
    many = str(int(each) * int(nodes)) if each.isdigit() and nodes.isdigit() else f"{each} on {nodes}"
    return options.get("ntasks", many)


def _names_a_coordinator(word: str, command: list[str]) -> bool:
    """Whether a word of a command does, and may name another than the first node: a variable or a command of the shell
    may well say that one's name, but for the host's own where each task asks for it."""
    if "COORDINATOR" not in word or command[:1] == ["unset"]:
        return False
    return "=$" not in word or (command[:1] == ["srun"] and "hostname" in word)


def _slurm_facts(lines: list[str]) -> dict[str, Any]:
    """What a batch script asks for, and how it starts the program. Slurm reads no options behind the first command."""
    head = itertools.takewhile(lambda line: not line.strip() or line.startswith("#"), lines)
    asked = [shlex.split(line.removeprefix("#SBATCH"), comments=True) for line in head if line.startswith("#SBATCH")]
    options = _options([word for words in asked for word in words])
    commands = [shlex.split(line, comments=True) for line in lines if not line.startswith("#")]
    run = next((words for words in commands if any("train.py" in word for word in words)), [])
    before = itertools.takewhile(lambda word: "train.py" not in word, run)
    own = _options([*before] if run[:1] == ["srun"] else [])  # these stand above those of the script
    nodes = options.get("nodes", "1")
    return {
        "the number of nodes": nodes,
        "the number of tasks": _tasks(options, nodes),
        "the number of tasks that run `train.py`": _tasks(options | own, own.get("nodes", nodes)),
        "the number of nodes that run `train.py`": own.get("nodes", nodes),
        "the number of GPUs on a node": options.get("gpus-per-node"),
        "that `train.py` is run": bool(run),
        "what starts `train.py`": run[:1] == ["srun"],
        "the first line, for the shell": "".join(lines[:1]).startswith("#!"),
        "who is named coordinator": [word for words in commands for word in words if _names_a_coordinator(word, words)],
    }


slurm_script = FunctionExercise(
    "slurm_script",
    points=4,
    reference=_slurm,
    same=lambda one, other, **_: _slurm_facts(one) == _slurm_facts(other),
    facts=_slurm_facts,
)


@slurm_script.cases
def _(draw):
    for hosts, gpus in ((2, 4), (3, 8)):
        yield Case({"lines": broken_slurm(hosts, gpus), "hosts": hosts, "gpus": gpus})


@slurm_script.mistake
def one_task_a_node(lines, hosts, gpus):
    """One task on each node. On Slurm a JAX process takes one device, the one with its number on the node
    (SLURM_LOCALID), so that all GPUs but the first stay idle, and nobody complains. How many tasks does a node need?
    (An `#SBATCH` line behind the first command is not read.)"""
    return _slurm(lines, hosts, gpus, tasks=1)


@slurm_script.mistake
def without_srun(lines, hosts, gpus):
    """A batch script runs once, on the first node. Slurm has room for all the tasks then, and nobody starts them.
    Which command runs a program in every task?"""
    return _slurm(lines, hosts, gpus, srun=False)


@slurm_script.mistake
def everyone_is_localhost(lines, hosts, gpus):
    """localhost is another machine on every node: those on the second look for a coordinator on the second. JAX
    finds the first node by itself, in Slurm's variables, when nobody tells it otherwise."""
    return _slurm(lines, hosts, gpus, coordinator=True)


@slurm_script.mistake
def tasks_of_the_whole_job(lines, hosts, gpus):
    """That many tasks *on each node*: as many times too many as there are nodes, and more than a node has GPUs. Either
    count them for one node, or give `--ntasks` for the job."""
    return _slurm(lines, hosts, gpus, tasks=hosts * gpus)


# Kubernetes: the part of a JobSet that says how many pods there are, who they are, and what becomes of them.


def broken_jobset(gpus: int) -> dict[str, Any]:
    container = {
        "name": "train",
        "image": "registry.example.com/train:1",
        "command": ["python", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    pod = {"restartPolicy": "OnFailure", "containers": [container]}
    job = {
        "parallelism": 1,
        "completions": 4,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"spec": pod},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}]},
    }


def _jobset(
    manifest: dict[str, Any],
    hosts: int,
    *,
    completions: int | None = None,
    parallelism: int | None = None,
    account: str = "pod-reader",
    restart: str = "Never",
) -> dict[str, Any]:
    """The manifest repaired, but for what the options leave as it is."""
    manifest = copy.deepcopy(manifest)
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job |= {"completions": completions or hosts, "parallelism": parallelism or hosts}
    job["template"]["spec"] |= {"restartPolicy": restart} | ({"serviceAccountName": account} if account else {})
    return manifest


jobset_manifest = FunctionExercise("jobset_manifest", points=4, reference=_jobset)


@jobset_manifest.cases
def _(draw):
    for hosts, gpus in ((6, 8), (8, 4)):
        yield Case({"manifest": broken_jobset(gpus), "hosts": hosts})


@jobset_manifest.mistake
def fewer_at_once(manifest, hosts):
    """`parallelism` is how many pods run at once, and `completions` how many there are in all. JAX takes the first
    for num_processes: each pod would train alone, one after the other. All have to run at the same time."""
    return _jobset(manifest, hosts, parallelism=1)


@jobset_manifest.mistake
def completions_left(manifest, hosts):
    """The number of pods still stands for another cluster: `completions` gives out the indices from 0, which are the
    processes' numbers. There should be one for each host, and none besides."""
    return _jobset(manifest, hosts, completions=4)


@jobset_manifest.mistake
def no_account(manifest, hosts):
    """initialize() asks Kubernetes who the other pods are, and the default account may not ask: 403 Forbidden.
    rbac.yaml makes one that may. Where does a pod say as whom it runs?"""
    return _jobset(manifest, hosts, account="")


@jobset_manifest.mistake
def restarts_alone(manifest, hosts):
    """With OnFailure a container that died is started again by itself, while the other pods stand in a
    collective that it was to take part in. Either all start again, or none: what must the *pod* do?"""
    return _jobset(manifest, hosts, restart="OnFailure")


# What went wrong?

FAULTS = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

CLUSTER_FAULTS_ASKS = {
    "devices that JAX uses": "How many tasks are there, and on Slurm, how many devices does JAX take for a task?",
    "Slurm: the variable": "It has to be another one in every task of the whole job, and to begin with 0.",
    "Kubernetes: the variable": "Which one numbers the pods of an indexed job?",
    "Kubernetes: the field": "How many pods run at one time, or how many have to come to an end: which of them meet?",
    "ssh": "Who would have told JAX where process 0 is, and how many there are?",
    "TPU slice": "Whom does the one process know of, and do they ever come?",
}
VARIABLES = {
    "SLURM_NODEID": "That numbers the nodes. Two tasks of one node would have the same.",
    "SLURM_LOCALID": "That numbers the tasks of one node, and begins with 0 on every node.",
    "SLURM_NTASKS": "That is how many tasks there are, the same in all of them.",
    "SLURM_NPROCS": "That is how many tasks there are, the same in all of them.",
    "SLURM_NNODES": "That is how many nodes there are, the same in all tasks.",
    "SLURM_JOB_ID": "That is the number of the job, the same in all its tasks.",
    "SLURM_JOBID": "That is the number of the job, the same in all its tasks.",
    "HOSTNAME": "That is a name, and a process id is a number.",
    "POD_NAME": "That is a name, and a process id is a number.",
}
cluster_faults = TableExercise(
    "cluster_faults", points=4, reference=lambda row: FAULTS[row], options=VARIABLES, questions=CLUSTER_FAULTS_ASKS
)
cluster_faults.rows(FAULTS)


@cluster_faults.mistake
def all_of_a_node(row):
    """On Slurm JAX takes one device for each task, that with the task's number on its node. Two tasks, two devices."""
    return {list(FAULTS)[0]: 16}.get(row)


@cluster_faults.mistake
def number_on_the_node(row):
    """SLURM_LOCALID counts the tasks of one node, from 0 on each: it chooses the GPU. Process ids are counted
    through the whole job."""
    return {list(FAULTS)[1]: "SLURM_LOCALID"}.get(row)


@cluster_faults.mistake
def a_name_is_no_number(row):
    """A pod's host name ends in its index, but JAX reads the index from a variable of its own, which an Indexed Job
    sets."""
    return {list(FAULTS)[2]: "HOSTNAME"}.get(row)


@cluster_faults.mistake
def as_many_as_in_all(row):
    """`completions` says how many pods have to come to their end in all, if need be one after the other. Processes that
    are to talk to each other have to be there at the same time: which field says how many those are?"""
    return {list(FAULTS)[3]: "completions"}.get(row)


@cluster_faults.mistake
def finds_them_by_itself(row):
    """It finds the others on Slurm, Kubernetes and Cloud TPU, where the system says who they are. Hosts that you
    reach by ssh say nothing: there JAX needs the address, the count and the number."""
    return {list(FAULTS)[4]: "finds the others"}.get(row)


@cluster_faults.mistake
def runs_alone(row):
    """A process that knows of others waits for them: on a slice, the metadata speak of 4 hosts. It does not begin with
    fewer."""
    return {list(FAULTS)[5]: "trains alone"}.get(row)
