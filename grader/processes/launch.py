"""Many processes on one machine, as on many hosts: `launch` runs a script, or a function, in all of them at once.

`python script.py` in four terminals would do the same; here they share one time limit, are ended together, and
their logs stand side by side. A server forks them (see `grader.processes`): it is started once and imports JAX.
"""

from __future__ import annotations

import contextlib
import html
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.exercises.as_json import LEGIBLE, question_from_json, to_json, value_from_json
from grader.exercises.codecs import FLAG, NUMBER, optional, plain_type, refusing
from grader.exercises.script import script_of
from grader.processes.servers import Server, Tell, serve
from grader.programs.program import Refused

TERMINAL_WIDTH = 118  # of a terminal's logs, side by side
NARROW = 24  # a column of less is not worth it
GLOO = "[Gloo] Rank "
# (Its threads write piece by piece, so that messages on two connections are mixed with each other, and with lines.)
GLOO_PIECES = re.compile(
    re.escape(GLOO) + r"\d*|\d* is connected to \d*| peer ranks\. |Expected number of connected peer ranks is : \d*"
)
STACK = re.compile(r"\*\*\* Check failure|\s+@ +0x")  # of an abort


@dataclass(frozen=True)
class Process:
    """What became of one process.

    `status` is its exit status (negative: the signal that ended it), None when it was ended by us; `where` then is
    the line of the script in which it stood. `returned` is what its function returned, if it was `finished`; `raised`
    the error's type and message, and the line.
    """

    number: int
    status: int | None
    seconds: float
    said: str = ""
    where: str = ""
    finished: bool = False
    returned: Any = None
    raised: tuple[str, str, str] | None = None

    @property
    def words(self) -> str:
        """How it ended, in a few words."""
        if self.status is None and self.finished:
            return "had returned, and waited for the others to leave"
        if self.status is None:
            return f"was ended while it stood in `{self.where}`" if self.where else "was ended"
        if self.raised:
            kind, message, line = self.raised
            first = message.strip().splitlines()[0][:300] if message.strip() else ""
            return f"raised {kind}{f': {first}' if first else ''}{f' (in `{line}`)' if line else ''}"
        if self.status < 0:
            return f"was ended by signal {-self.status}"
        return "ended well" if self.status == 0 else f"ended with status {self.status}"

    def __repr__(self) -> str:
        return "\n".join([f"Process {self.number} {self.words}.", *_lines(self)])


@dataclass(frozen=True)
class Launch:
    """What became of a launch: its processes in order, who failed first, and whether time was over before the end.

    `survived`: it was to be killed on its way, and came to its end without.
    """

    processes: tuple[Process, ...]
    seconds: float
    first: int | None = None
    late: bool = False
    survived: bool = False

    @property
    def went_well(self) -> bool:
        return all(p.status == 0 for p in self.processes)

    @property
    def headline(self) -> str:
        """What happened; the first failure comes first."""
        count = f"{len(self.processes)} process{'es' * (len(self.processes) > 1)}"
        if self.went_well:
            return f"{count} ended well."
        if self.first is not None:
            others = [p.number for p in self.processes if p.status is None]
            were = "was" if len(others) == 1 else "were"
            rest = f" {_numbers(others)} had not ended and {were} ended with it." if others else ""
            return f"Process {self.first} failed first: it {self.processes[self.first].words}.{rest}"
        lines = "; ".join(f"process {p.number} {p.words}" for p in sorted(self.processes, key=lambda p: p.finished))
        return f"They did not come to an end: {lines}."

    def __repr__(self) -> str:
        return f"{self.headline}\n{_side_by_side(self.processes)}".rstrip()

    def _repr_html_(self) -> str:
        cell = '<td style="vertical-align:top;text-align:left;border-left:1px solid #8888;padding:.2em .7em">'
        logs = "".join(
            f'{cell}<b>process {p.number}</b><pre style="white-space:pre-wrap;margin:.2em 0">'
            f"{html.escape(chr(10).join(_lines(p)))}</pre></td>"
            for p in self.processes
        )
        return f"<p>{html.escape(self.headline)}</p><table><tr>{logs}</tr></table>"


def _numbers(numbers: list[int]) -> str:
    return f"Process{'es' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _lines(process: Process) -> list[str]:
    """What a process printed, without Gloo's messages on every connection and without the stacks of aborts."""
    if GLOO in process.said:
        lines = list(filter(None, GLOO_PIECES.sub("", process.said).splitlines()))
    else:
        lines = process.said.rstrip().splitlines()
    return [line for line in lines if not STACK.match(line)]


def _side_by_side(processes: tuple[Process, ...]) -> str:
    """The logs in columns, where they are wide enough to be read; else one after the other."""
    wide = (TERMINAL_WIDTH - 3 * (len(processes) - 1)) // max(1, len(processes))
    if wide < NARROW:
        return "\n".join(f"[{p.number}] {line}" for p in processes for line in _lines(p))
    columns = [
        [f"process {p.number}", *(piece for line in _lines(p) for piece in textwrap.wrap(line, wide) or [""])]
        for p in processes
    ]
    rows = max(map(len, columns), default=0)
    filled = [[*column, *[""] * (rows - len(column))] for column in columns]
    return "\n".join(" │ ".join(f"{piece:<{wide}}" for piece in row).rstrip() for row in zip(*filled, strict=True))


def launch(
    program: Callable[..., Any] | str | Path,
    *,
    processes: int = 4,
    devices: int = 2,
    seconds: float = 60.0,
    grace: float = 0.0,
    arguments: Mapping[str, Any] | None = None,
    killed_at: int = 0,
    say: Callable[[int, str], None] | None = None,
) -> Launch:
    """Run a program in several processes at once, each with CPU devices of its own, and wait for all of them.

    Args:
      program: a function `main(process_id, num_processes)`, which goes to the processes as text; or the path of a
        script, which finds the two numbers in `sys.argv`. Either has to call `jax.distributed.initialize` itself; the
        coordinator's address is in the environment, where JAX looks for it.
      processes: how many; devices: how many each of them has.
      seconds: for all together, after which they are killed. grace: how many seconds the others may go on when one
        of them has failed.
      arguments: more keyword arguments for a function.
      killed_at: a process that prints the line of this step, such as `step 7 …`, is killed there and then (SIGKILL);
        0 for none.
      say: is called with a process's number and what it has printed, as it comes.

    Raises:
      ValueError: there is no such script, the function uses something that cannot go to another process, or a number
        makes no sense.
      NoProcesses: none can be started here.

    Example:
      >>> def main(process_id, num_processes):
      ...     return 10 * process_id
      >>> grader.launch(main, processes=2).processes[1].returned
      10
    """
    if not (1 <= processes <= 64 and 1 <= devices <= 64 and seconds > 0 and grace >= 0):
        raise ValueError(
            f"{processes} processes of {devices} devices for {seconds:g} seconds: from 1 to 64 of either, "
            "and a time that is positive"
        )
    job = {
        "arguments": dict(arguments or {}),
        "processes": processes,
        "devices": devices,
        "seconds": seconds,
        "grace": grace,
        "killed_at": killed_at,
    }
    if callable(program):
        try:
            source = script_of(program)
        except Refused as refusal:
            from grader.wording import said  # it is withheld where hand-ins run, which launch nothing

            why = said(refusal.finding)
            raise ValueError(" ".join(filter(None, (why.headline, why.cause, why.question)))) from None
        return launched({**job, "source": source, "main": program.__name__}, say)
    path = Path(program)
    if not path.is_file():
        raise ValueError(f"There is no script {path}.")
    return launched({**job, "source": path.read_text(), "name": str(path)}, say)


_SERVER = Server("grader.processes.launch")


def launched(job: Mapping[str, Any], say: Callable[[int, str], None] | None = None) -> Launch:
    """Have the server do a job (`jobs.Job`, as a dict)."""
    question = {**job, "arguments": to_json(dict(job.get("arguments", {})))}
    with contextlib.closing(_SERVER.ask(question)) as messages:
        for message in messages:
            if "done" in message:
                launch = launch_of(message["done"])
            elif say:
                say(*message["said"])
    return launch


@refusing
def launch_of(done: Mapping[str, Any]) -> Launch:
    """What became of a launch, from its JSON form. Raises ValueError for anything else."""
    processes = tuple(_process(k, facts) for k, facts in enumerate(done["processes"]))
    first = optional(NUMBER).read(done["first"])
    if first is not None and not 0 <= first < len(processes):
        raise ValueError("none of the processes can have failed first")
    return Launch(processes, _SECONDS.read(done["seconds"]), first, FLAG.read(done["late"]))


def _process(number: int, facts: Mapping[str, Any]) -> Process:
    raised = facts.get("raised")
    process = Process(
        number,
        optional(NUMBER).read(facts["status"]),
        _SECONDS.read(facts["seconds"]),
        LEGIBLE.read(facts["said"]),
        LEGIBLE.read(facts["where"]),
        "returned" in facts,
        value_from_json(facts.get("returned")),
    )
    if raised is None:
        return process
    kind, message, line = map(LEGIBLE.read, raised)
    return replace(process, raised=(kind, message, line))


_SECONDS = plain_type(float, lambda seconds: 0 <= seconds < math.inf)


# From here on in the server.


def _do(question: Mapping[str, Any], tell: Tell) -> None:
    from grader.processes.jobs import Job, run_job

    arguments = question_from_json(question["arguments"])
    job = Job(**{name: value for name, value in question.items() if name != "arguments"})
    tell({"done": run_job(job, lambda: arguments, lambda number, text: tell({"said": [number, text]}))})


if __name__ == "__main__":
    import jax.experimental.multihost_utils  # so that the forks have it
    import jax.numpy  # noqa: F401

    serve(_do)
