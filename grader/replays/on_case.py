"""An answer to an exercise, watched on one of its cases."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable
from typing import Any

import jax

from grader.arrays.laid import holds_arrays
from grader.arrays.meshes import make_mesh, put
from grader.exercises.case import Case
from grader.programs.program import with_gradient
from grader.replays.frames import Playback
from grader.replays.lockstep import Reach
from grader.replays.watch import playback_within

FOR_A_CARD = Reach(frames=200, seconds=2.0)  # somebody waits for the card


def on_case(work: Callable[..., Any], case: Case, reach: Reach = FOR_A_CARD) -> Playback:
    """The facts of `work` on a case; of its gradient, too, where that is asked for. Raises whatever `work` raises.

    What `work` prints is dropped: it has been traced for its verdict before.
    """
    mesh = make_mesh(case.mesh, explicit=case.explicit)
    laid = lambda a: jax.tree.map(lambda leaf: put(leaf.value, leaf.spec, mesh), a)  # noqa: E731
    arrays = [laid(a) for a in case.arguments.values() if holds_arrays(a)]
    fixed = {name: a for name, a in case.arguments.items() if not holds_arrays(a)}
    finished: Callable[..., Any] = functools.partial(work, **fixed, mesh=mesh)
    if case.cotangents is not None:
        finished = with_gradient(finished, len(arrays))
        arrays.append(laid(case.cotangents))
    with contextlib.redirect_stdout(io.StringIO()):
        return playback_within(reach, finished, *arrays)


def opening(found: Playback, check: str) -> int:
    """The frame to begin with, for an answer that misses this check ("": none): the first in which a device waits; if
    too much is sent, the collective that sends most; if the result is wrong, the end, which shows it."""
    waits = [k for k, frame in enumerate(found.frames) if frame.waits]
    sends = [(frame.transfer.bytes_sent, -k) for k, frame in enumerate(found.frames) if frame.transfer]
    if waits:
        return waits[0]
    if check == "communication" and sends:
        return -max(sends)[1]
    return len(found.frames) - 1 if check else 0
