"""Every program in JAX's own tests and documentation, through both tools: `python bench/jax_programs.py SOURCE`.

SOURCE is a source tree of the JAX that is installed, which whoever runs this fetches; nothing of it is kept. Its
`tests/shard_map_test.py` and `tests/pjit_test.py` are run, and the code cells of its documentation, with `jax.jit` and
`jax.shard_map` recorded: each call that is made outside of any trace is a program. Its report is compared with the
independent count of `tests/strangers/independent.py`, its replay with what JAX returns.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax._src import core  # noqa: E402  # whether something is being traced has no public name
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import grader  # noqa: E402
from grader.hlo.lowering import NoReport  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from strangers.independent import count  # noqa: E402

SECONDS = 60  # for one program
MOST_OF_A_TEST = 4  # programs: a test that tries a hundred shapes is one test
OUTCOMES = ("same", "different", "refused", "crashed")
SHARDED = re.compile(r"shard_map|NamedSharding")
CELL = re.compile(r"^```(?:\{code-cell\}[^\n]*|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Late(BaseException):
    """A program took too long."""


@dataclass
class Tally:
    """What came of each program, by source and tool, and a line on each that is not the same."""

    source: str = ""
    test: str = ""
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    of_test: Counter[str] = field(default_factory=Counter)
    busy: bool = False

    def add(self, tool: str, outcome: str, note: str = "") -> None:
        self.outcomes[self.source, tool, outcome] += 1
        if outcome != "same":
            self.notes.append(f"{outcome:9} {tool:13} {self.test}: {note.splitlines()[0][:200] if note else ''}")


TALLY = Tally()


def tried(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function as it is, and try both tools on it before."""
    leaves = jax.tree.leaves((args, kwargs))
    if TALLY.busy or not core.trace_state_clean() or any(isinstance(leaf, core.Tracer) for leaf in leaves):
        return fn(*args, **kwargs)
    TALLY.of_test[TALLY.test] += 1
    if TALLY.of_test[TALLY.test] > MOST_OF_A_TEST:
        return fn(*args, **kwargs)
    TALLY.busy = True
    try:
        text = compiled_text(fn, args, kwargs)
        if text:
            TALLY.add("communication", *reported(fn, args, kwargs, text))
        played = replayed(fn, args, kwargs) if text and "shard_map" in text else None
        result = fn(*args, **kwargs)
        if played is not None:
            TALLY.add("replay", *compared(played, result))
        return result
    finally:
        TALLY.busy = False


def compiled_text(fn: Any, args: Any, kwargs: Any) -> str:
    """The compiled text; "" where JAX itself does not compile the program."""
    try:
        return (fn if hasattr(fn, "lower") else jax.jit(fn)).lower(*args, **kwargs).compile().as_text()
    except Exception:  # whatever it is, it is JAX's
        return ""


def reported(fn: Any, args: Any, kwargs: Any, text: str) -> tuple[str, str]:
    try:
        with limited():
            report = grader.communication(fn, *args, **kwargs)
    except NoReport as refusal:
        return "refused", str(refusal)
    except (Exception, Late) as error:  # whatever a tool raises is what is counted
        return "crashed", f"{type(error).__name__}: {error}"
    expected = count(text)
    ours = sorted((c.kind, float(c.bytes), c.times or 0) for c in report.collectives)
    theirs = sorted((c.kind, float(c.operand), c.times or 0) for c in expected.collectives)
    if ours != theirs:
        return "different", f"reported {ours}, counted {theirs}"
    numbers = (report.bytes_sent, report.flops), (round(float(max(expected.sent, default=0))), expected.flops)
    return ("same", "") if numbers[0] == numbers[1] else ("different", f"reported {numbers[0]}, counted {numbers[1]}")


def replayed(fn: Any, args: Any, kwargs: Any) -> Any:
    try:
        with limited():
            return grader.replay(fn, *args, **kwargs).facts
    except (Exception, Late) as error:  # whatever a tool raises is what is counted
        return error


def compared(played: Any, result: Any) -> tuple[str, str]:
    if isinstance(played, BaseException):
        return "crashed", f"{type(played).__name__}: {played}"
    if played.ended:
        return "refused", played.ended
    for ours, theirs in zip(jax.tree.leaves(played.result), jax.tree.leaves(result), strict=True):
        if jax.dtypes.issubdtype(theirs.dtype, jax.dtypes.prng_key):
            ours, theirs = jax.random.key_data(ours), jax.random.key_data(theirs)
        numbers = [np.asarray(array).astype(complex) for array in (ours, theirs)]
        if not np.allclose(*numbers, rtol=2e-2, atol=1e-3, equal_nan=True):
            return "different", "another value"
    return "same", ""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise Late(f"not done after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Recorded:
    """A function whose calls are tried; all else of it is as it was."""

    def __init__(self, fn: Callable[..., Any]):
        functools.update_wrapper(self, fn)
        self._fn = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return tried(self._fn, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_fn"], name)

    def __get__(self, owner: Any, _: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)


def recording(make: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit` or `jax.shard_map`, also as a decorator with options."""

    @functools.wraps(make)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        return Recorded(made) if args else lambda fn: Recorded(made(fn))

    return recorded


class Watch:
    """What pytest tells of the test that runs."""

    def pytest_runtest_setup(self, item: Any) -> None:
        TALLY.test = item.name


def run_tests(file: Path) -> None:
    TALLY.source = file.name
    pytest.main(["-q", "-c", os.devnull, "--rootdir", str(file.parent), "-p", "no:cacheprovider", str(file)], [Watch()])


def run_documents(folder: Path) -> None:
    TALLY.source = "documentation"
    for file in sorted(folder.rglob("*.md")):
        if not SHARDED.search(text := file.read_text()):
            continue
        space: dict[str, Any] = {"__name__": "__main__"}
        TALLY.test = file.stem
        for cell in CELL.findall(text):
            if "jax.distributed" not in cell:
                with contextlib.suppress(Exception, Late), contextlib.redirect_stdout(io.StringIO()), limited():
                    exec(compile(cell, file.name, "exec"), space)


def main(source: Path) -> None:
    from jax._src import shard_map as module

    jax.jit, jax.shard_map = recording(jax.jit), recording(jax.shard_map)
    module.shard_map = recording(module.shard_map)
    for name in ("shard_map_test.py", "pjit_test.py"):
        run_tests(source / "tests" / name)
    run_documents(source / "docs")
    table = Table("source", "tool", *OUTCOMES, title=f"JAX {jax.__version__}'s own programs")
    for source_name, tool in sorted({key[:2] for key in TALLY.outcomes}):
        table.add_row(source_name, tool, *(str(TALLY.outcomes[source_name, tool, outcome]) for outcome in OUTCOMES))
    console = Console(width=140)
    for note in TALLY.notes:
        console.print(note, highlight=False, markup=False)
    console.print(table)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "tests" / "shard_map_test.py").is_file():
        sys.exit("usage: python bench/jax_programs.py SOURCE, a source tree of the JAX that is installed")
    main(Path(sys.argv[1]))
