"""Eight devices anywhere: a real slice where there is one, simulated CPU devices otherwise.

Simulated devices share one thread pool, sized by the machine's cores, and a collective blocks a thread
per device: on two cores an ordinary loop with an all-reduce hangs or aborts now and then. `NPROC`, read
when the backend starts, sizes the pool. (jax.config's `jax_cpu_enable_async_dispatch` makes it worse.)
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence

import jax
from jax.extend import backend

from grader.jax_versions import has_backend, timeouts

POOL = 32  # threads; 16 were enough in every trial


def as_flags(values: Mapping[str, int]) -> str:
    """Flags as XLA_FLAGS holds them."""
    return " ".join(f"{flag}={value}" for flag, value in values.items())


TIMEOUTS = timeouts(20, 60)


class TooFewDevices(RuntimeError):
    """JAX already runs with too few devices; the text says what to do, and is all that a notebook shows."""

    def _render_traceback_(self) -> list[str]:  # by this name IPython asks for it
        return [f"TooFewDevices: {self}"]


def eight_devices(count: int = 8) -> list[jax.Device]:
    """`count` devices: real ones if the platform has that many, else simulated CPU devices.

    Call it first in a notebook, before anything touches an array: JAX settles its devices once, when it
    is first used. Calling it again is harmless. Flags that are already in `XLA_FLAGS` are kept, shorter
    collective time-outs among them.

    Args:
      count: how many are needed.

    Raises:
      TooFewDevices: JAX was used before this was called, and has fewer devices.

    Example:
      >>> len(grader.eight_devices())
      8
    """
    platform(count)
    devices = jax.devices()
    if len(devices) < count:
        raise TooFewDevices(
            f"JAX is already running with {len(devices)} device{'s' * (len(devices) > 1)}, and this course needs "
            f"{count}. JAX settles its devices when it is first used, so restart the kernel (Kernel → Restart; in "
            "Colab: Runtime → Restart session) and run the first cell, or `eight_devices()`, before any other."
        )
    return devices[:count]


@functools.cache  # JAX settles its devices once
def platform(count: int) -> tuple[str, int]:
    """Start JAX with `count` devices at least, unless it runs already; returns the platform it found, and how many."""
    if has_backend():
        return _described(jax.devices())
    prepare(count)
    found = _described(jax.devices())
    if found[1] < count:  # one TPU chip, or a GPU: too few of them to share anything
        backend.clear_backends()
        jax.config.update("jax_platforms", "cpu")
    return found


def _described(devices: Sequence[jax.Device]) -> tuple[str, int]:
    return devices[0].platform, len(devices)


def prepare(count: int = 8) -> None:
    """Set what a backend reads when it starts. Does nothing useful once one has started."""
    os.environ["NPROC"] = str(max(POOL, int(os.environ.get("NPROC", 0) or 0)))
    flags = os.environ.get("XLA_FLAGS", "")
    added = as_flags({flag: seconds for flag, seconds in TIMEOUTS.items() if flag not in flags})
    os.environ["XLA_FLAGS"] = f"{flags} {added}".strip()
    if "xla_force_host_platform_device_count" not in flags:
        jax.config.update("jax_num_cpu_devices", count)
