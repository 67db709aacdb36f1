"""Deviations from a reference: what comes out where one thing in it is other than it should be.

An edit of a wrong program (`grader.programs.repairs`) finds what there is too much in it, or otherwise. What is missing
from it, nobody can edit; but the same may be missing from the reference. Each deviation is a right program but for one
argument, one step, one loop, or the place at which a sum is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.programs.deviation import Deviation, Model
from grader.programs.deviations_of_activations import of_activations
from grader.programs.deviations_of_arguments import (
    exchanged_arguments,
    exchanged_entries,
    mirrored,
    of_all_parts,
    of_arguments,
    of_cut_arguments,
    of_fewer_rows,
    of_numbers,
)
from grader.programs.deviations_of_steps import in_other_order, of_a_step, of_loops, of_softmaxes
from grader.programs.deviations_of_sums import behind_the_sum, of_other_shares, of_own_parts
from grader.programs.variants import MOST_STEPS


def deviations(model: Model) -> Iterator[Deviation]:
    """All that are tried, the likeliest first."""
    few = model.steps if len(model.steps) <= MOST_STEPS else []
    yield from of_arguments(model, "biu")
    yield from of_numbers(model)
    yield from of_activations(model)
    yield from exchanged_arguments(model)
    yield from exchanged_entries(model)
    early = bool(model.counts) or not any(result.ndim for result in model.right.results)  # rows are added up, in turns
    if early:
        yield from of_fewer_rows(model)
    yield from of_softmaxes(model, few)
    for step in few:
        yield from of_a_step(model, step)
    yield from in_other_order(model, few)
    yield from of_own_parts(model, few)
    yield from of_other_shares(model, few)
    yield from behind_the_sum(model, few)  # the dearest: each term of a sum is worked out for itself
    yield from of_loops(model)
    if not early:
        yield from of_fewer_rows(model)
    yield from of_all_parts(model)
    yield from mirrored(model)
    yield from of_arguments(model, "f")
    yield from of_cut_arguments(model)
