"""`watch("name", answer)`: an answer to an exercise, line by line, on the smallest case that shows what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from grader.arrays.devices import eight_devices
from grader.arrays.meshes import no_mesh
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.exercises.forms import ProgramExercise
from grader.findings.finding import Finding
from grader.replays.lockstep import Reach
from grader.replays.on_case import FOR_A_CARD, on_case, opening
from grader.replays.page import Replay
from grader.replays.tracing import AuthorsLines


def watch(name: str, answer: Any) -> Replay:
    """Step through an answer to an exercise, on the smallest case that it gets wrong; a right one, on a small case.

    Raises ValueError where the exercise asks for no program with shard_map, or the answer is none; and whatever the
    answer raises, with what it means where the grader knows.

    Args:
      name: the exercise's name, as `grader.check` takes it.
      answer: the function.

    Example:
      >>> of_all = lambda x, mesh: jax.shard_map(jnp.add, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x, x)
      >>> dict(grader.watch("partial_sums", of_all).facts.frames[0].mesh)
      {'x': 2}
    """
    from grader.explaining.shrinking import tried
    from grader.lessons import find  # here, so that `import grader` stays quick

    eight_devices()
    exercise = find(name)
    if not watchable(exercise):
        raise ValueError(f"{name} asks for no program with shard_map: there are no lines of a device's own to watch.")
    if not callable(answer):
        raise ValueError(f"The answer to {name} should be a function; it is a {type(answer).__name__}.")
    with AuthorsLines(), no_mesh():
        missed = next((one.check for one in tried(exercise, exercise.draw_cases(), answer) if one.check), "")
        return watched(exercise, answer, missed, Reach())


def watchable(exercise: Exercise) -> TypeGuard[ProgramExercise]:
    """Whether the answers to an exercise have lines of a device's own."""
    return isinstance(exercise, ProgramExercise) and not exercise.by_compiler


def watched(exercise: ProgramExercise, answer: Any, check: str, reach: Reach = FOR_A_CARD) -> Replay:
    """An answer on the smallest case on which it misses this check; on a small one if it misses none ("").

    Raises whatever the answer raises.
    """
    from grader.explaining.shrinking import smallest

    found = smallest(exercise, answer, check)
    facts = on_case(answer, found.case, reach)
    return Replay(exercise.name, facts, opening(facts, check), _about(found.case, found.findings))


def _about(case: Case, findings: Sequence[Finding]) -> str:
    """What is shown: the case, and what is wrong in it."""
    from grader.judging.describing import describe
    from grader.wording import in_short

    missed = [in_short(finding) for finding in findings[:1]]
    return "\n".join([f"Test case: {in_short(describe(case))}", *missed])
