"""What a run may use, and how a process binds itself to it."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

OUTPUT = 1 << 20  # characters of output that a notebook may show
REPORTED = 2 * OUTPUT  # the same in JSON, as a worker reports it
INTERRUPT_SECONDS = 1.0  # after which code that swallowed its TimeoutError is interrupted again


@dataclass(frozen=True)
class Limits:
    """Times in seconds, sizes in bytes."""

    cell_seconds: float = 60
    seconds: float = 300
    memory: int = 3 << 30  # resident, as seen from outside
    addresses: int = 12 << 30  # JAX with eight devices takes 2 GiB of them before it holds an array
    home: int = 256 << 20
    file: int = 64 << 20
    files: int = 512  # open at once
    made: int = 20_000  # files and folders in its home
    threads: int = 192 + 16 * (os.cpu_count() or 1)  # JAX with eight devices has about 120, and two for each core
    line: int = 4 << 20
    lines: int = 32 << 20  # of all lines that a run writes


def confine(limits: Limits) -> None:
    """Bind this process, before it runs code that is not ours: it can lower these limits, and not raise them."""
    processor = int(limits.seconds * (os.cpu_count() or 1)) + 10
    for kind, limit in (
        (resource.RLIMIT_AS, limits.addresses),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_NOFILE, limits.files),
        (resource.RLIMIT_CPU, processor),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(kind)
        value = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (value, value))
