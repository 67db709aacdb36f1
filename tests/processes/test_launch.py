"""Real processes: joined, ended, killed, brought to the front; two launches at once; nothing left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.processes.jobs import Child, _failed_at
from grader.processes.launch import Launch, Process, launch

JOIN = """
import sys, jax
process_id, num_processes = map(int, sys.argv[1:])
jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
"""


def script(tmp_path, text):
    file = tmp_path / "script.py"
    file.write_text(JOIN + textwrap.dedent(text))
    return file


def total(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    mine = np.arange(rows, dtype=np.float32) + 100 * process_id
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), mine)
    print("process", process_id, "of", jax.process_count(), "has", len(jax.local_devices()), "devices")
    return float(jax.jit(lambda a: a.sum())(whole)), whole


def test_a_function_runs_in_every_process_and_each_says_what_it_holds():
    found = launch(total, processes=4, devices=2, arguments={"rows": 4})
    assert found.went_well, found
    sums = {p.returned[0] for p in found.processes}
    assert sums == {float(sum(np.arange(4).sum() + 400 * k for k in range(4)))}
    held = found.processes[2].returned[1]["held by device"]
    assert {device: list(block.ravel()) for device, parts in held.items() for block in parts.values()} == {
        "device 4": [200, 201],
        "device 5": [202, 203],
    }
    assert "process 3 of 4 has 2 devices" in found.processes[3].said
    assert "4 processes ended well." in repr(found) and "│" in repr(found)


def test_a_process_is_killed_at_the_line_of_one_step(tmp_path):
    """The line is heard, and nothing after it: not of a step whose number only begins so, and no clean-up."""
    program = """
        import atexit
        atexit.register(print, "cleaned up")
        for step in (70, 6, 7, 8):
            print(f"step {step} loss", 0.5)
    """
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(program))
    (process,) = launch(file, processes=1, killed_at=7).processes
    assert process.status == -signal.SIGKILL
    assert process.said.splitlines() == ["step 70 loss 0.5", "step 6 loss 0.5", "step 7 loss 0.5"]
    (process,) = launch(file, processes=1, killed_at=9).processes
    assert process.status == 0 and process.said.endswith("step 8 loss 0.5\ncleaned up\n")


def test_a_script_finds_its_number_in_argv(tmp_path):
    found = launch(
        script(tmp_path, "print(process_id, jax.device_count(), jax.local_device_count())"), processes=2, devices=3
    )
    assert found.went_well, found
    assert [p.said.split() for p in found.processes] == [["0", "6", "3"], ["1", "6", "3"]]


def test_the_first_failure_is_brought_to_the_front_and_ends_all(tmp_path):
    program = """
        import time
        if process_id == 2:
            raise KeyError("no such layer")
        print("waiting", flush=True)
        time.sleep(300)
    """
    began = time.monotonic()
    found = launch(script(tmp_path, program), seconds=120)
    assert time.monotonic() - began < 60
    assert found.first == 2 and not found.late
    assert found.headline.startswith("Process 2 failed first: it raised KeyError: 'no such layer' (in `raise KeyError")
    assert "Processes 0, 1, 3 had not ended and were ended with it." in found.headline


def test_others_may_go_on_for_a_while_when_one_fails(tmp_path):
    program = """
        import time, os
        if process_id == 1:
            os._exit(3)
        time.sleep(1)
        print("still here", flush=True)
        os._exit(0)
    """
    found = launch(script(tmp_path, program), processes=2, grace=20)
    assert found.first == 1 and found.processes[1].status == 3
    assert "still here" in found.processes[0].said


def waits(process_id, num_processes):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    if process_id == 0:
        whole = jax.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))
        return float(whole.sum())
    return 0.0


def test_time_over_says_who_stood_where():
    found = launch(waits, seconds=8)
    assert found.late and found.first is None and not found.went_well
    assert found.processes[0].status is None
    assert "They did not come to an end: process 0 was ended while it stood in" in found.headline


@pytest.mark.parametrize(
    "swallow", ["signal.signal(signal.SIGTERM, signal.SIG_IGN)", "subprocess.Popen(['sleep', '987654'])"]
)
def test_nothing_is_left_behind(tmp_path, swallow):
    pytest.importorskip("psutil")
    from leftovers import still_running, with_word  # it needs psutil

    found = launch(
        script(tmp_path, f"import signal, subprocess, time\n{swallow}\ntime.sleep(300)"), processes=2, seconds=6
    )
    assert found.late
    assert still_running(with_word("987654")) == []


def test_two_launches_at_once_do_not_disturb_each_other(tmp_path):
    file = script(tmp_path, "print(jax.device_count())")
    command = [
        sys.executable,
        "-c",
        "import sys; from grader import launch; sys.exit(not launch(sys.argv[1], processes=2).went_well)",
        str(file),
    ]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]


def test_when_the_asker_is_killed_its_processes_end(tmp_path):
    psutil = pytest.importorskip("psutil")
    from leftovers import still_running  # it needs psutil

    file = script(tmp_path, "import time; time.sleep(300)  # 7654321")
    command = [sys.executable, "-c", "import sys; from grader import launch; launch(sys.argv[1], processes=2)"]
    asker = subprocess.Popen([*command, str(file)])
    below = []
    for _ in range(600):
        below = psutil.Process(asker.pid).children(recursive=True)
        if len(below) >= 3:
            break
        time.sleep(0.1)
    assert len(below) >= 3, "the server and two processes"
    os.kill(asker.pid, signal.SIGKILL)
    asker.wait()
    assert still_running(below, 20) == []


def test_an_interrupt_ends_a_launch_and_the_next_one_works(tmp_path):
    file = script(tmp_path, "import time; time.sleep(300)")
    over = threading.Event()

    def interrupt():
        """To this very thread: on a busy machine the kernel may hand a process's signal to one that is not waiting. And
        again: one that comes while Python calls back, collecting garbage say, is lost."""
        while not over.wait(5):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where a shell runs this behind itself
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        try:
            launch(file, processes=2)
        finally:
            over.set()
            signal.signal(signal.SIGINT, before)
    assert launch(script(tmp_path, "print('well')"), processes=2).went_well


@pytest.mark.parametrize("options, words", [({"processes": 0}, "from 1 to 64"), ({"seconds": -1}, "positive")])
def test_a_launch_that_makes_no_sense_is_refused(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        launch(script(tmp_path, ""), **options)


def test_a_script_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ValueError, match="There is no script"):
        launch(tmp_path / "nowhere.py")


def test_logs_of_many_processes_stand_one_after_the_other():
    found = Launch(tuple(Process(k, 0, 1.0, f"said {k}\n") for k in range(8)), 1.0)
    assert "[7] said 7" in repr(found)
    assert "<script>" not in Launch((Process(0, 0, 1.0, "<script>x</script>"),), 1.0)._repr_html_()


def test_the_command_fails_with_the_first_error(tmp_path):
    file = script(tmp_path, "assert process_id != 1, 'not I'")
    done = subprocess.run(
        [sys.executable, "-m", "grader.cli", "launch", "--processes", "2", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "Process 1 failed first: it raised AssertionError: not I" in done.stderr


def test_of_those_that_failed_within_one_tick_the_cause_comes_first():
    """JAX aborts a process that misses another: that is no cause. One that was killed is no consequence."""
    fates = [
        {"status": -signal.SIGKILL},
        {"status": 1, "report": b'{"raised": ["ValueError", "", ""], "at": 5.0}'},
        {"status": 3, "report": b'{"at": 7.0}'},
        {"status": -signal.SIGABRT},
    ]
    times = [_failed_at(Child(0, 0, 0, 0, None, **fate)) for fate in fates]
    assert times == sorted(set(times)) and len(times) == 4
