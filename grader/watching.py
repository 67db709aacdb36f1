"""`watch("name", answer)`: an answer to an exercise, line by line, on the smallest case that shows what it does."""

from __future__ import annotations

from typing import Any, TypeGuard

from grader.arrays.devices import eight_devices
from grader.arrays.meshes import no_mesh
from grader.exercises.collecting import asks, collect
from grader.exercises.exercise import Exercise
from grader.exercises.forms import ProgramExercise
from grader.programs.repairs import Repair
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
    from grader.judging.judge import first_repair
    from grader.judging.shrinking import tried
    from grader.lessons import find  # here, so that `import grader` stays quick

    eight_devices()
    exercise = find(name)
    if not watchable(exercise):
        raise ValueError(f"{name} asks for no program with shard_map: there are no lines of a device's own to watch.")
    if not callable(answer):
        raise ValueError(f"The answer to {name} should be a function; it is a {type(answer).__name__}.")
    with AuthorsLines(), no_mesh():
        cases = exercise.draw_cases()
        missed = next((one.check for one in tried(exercise, cases, answer) if one.check), "")
        repair = first_repair(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))
        return watched(exercise, answer, missed, repair, Reach())


def watchable(exercise: Exercise) -> TypeGuard[ProgramExercise]:
    """Whether the answers to an exercise have lines of a device's own."""
    return isinstance(exercise, ProgramExercise) and not exercise.by_compiler


def watched(
    exercise: ProgramExercise, answer: Any, check: str, repair: Repair | None = None, reach: Reach = FOR_A_CARD
) -> Replay:
    """An answer on the smallest case on which it misses this check; on a small one, where it misses none ("").

    It opens where this repair would make it right. Raises whatever the answer raises.
    """
    from grader.judging.shrinking import smallest

    found = smallest(exercise, answer, check)
    facts = on_case(answer, found.case, reach)
    return Replay(exercise.name, facts, opening(facts, check, repair), found.about)
