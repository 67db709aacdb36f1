"""Readers of foreign bytes, tried on many inputs for a while, within limits; an input that failed once is kept.

`fuzz` is half a minute's work every day, all its properties together, and an hour's in `make slow` (FUZZ_TIMES=120).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hypothesis import HealthCheck, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

CORPUS = Path(__file__).parent / "corpus"  # FOLDER/ANY: inputs that failed once, or are worth trying every day
SECONDS = 2.0  # for one property, every day
TIMES = int(os.environ.get("FUZZ_TIMES", "1"))
DATA = "VmData:"  # of /proc/self/status: what RLIMIT_DATA limits, in kB


def fuzz(folder: str, inputs: SearchStrategy[bytes], holds: Callable[[bytes], None], seconds: float = SECONDS) -> None:
    """Try a property on the corpus, then on fresh inputs until the time is over. A failing input joins the corpus.

    `holds` raises what it likes where the property does not hold. One input has 2 s of processor and 400 MB.
    """
    for file in sorted((CORPUS / folder).glob("*")):
        with within():
            holds(file.read_bytes())
    failed: list[bytes] = []

    @settings(database=None, deadline=None, verbosity=Verbosity.quiet, suppress_health_check=list(HealthCheck))
    @given(inputs)
    def attempt(data: bytes) -> None:
        try:
            with within():
                holds(data)
        except BaseException:
            failed[:] = [data]  # the last is the shortest
            raise

    end = time.monotonic() + seconds * TIMES
    try:
        while time.monotonic() < end:
            attempt()
    except BaseException as error:
        if failed:
            kept = CORPUS / folder / hashlib.sha256(failed[0]).hexdigest()[:12]
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(failed[0])
            error.add_note(f"The input is kept as {kept.relative_to(CORPUS.parents[1])}.")
        raise


class TooLong(Exception):
    """More processor time than there is for it."""


@contextlib.contextmanager
def within(seconds: float = 2.0, megabytes: int = 400) -> Iterator[None]:
    """Raise TooLong, or MemoryError, where the block takes more of the processor or of memory than this."""

    def over(*_: object) -> None:
        raise TooLong(f"more than {seconds:g} s")

    before, limits = signal.signal(signal.SIGPROF, over), resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data() + (megabytes << 20), limits[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, limits)
        signal.signal(signal.SIGPROF, before)


def _data() -> int:
    """Bytes of this process that RLIMIT_DATA counts."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(DATA))
    return int(line.split()[1]) << 10
