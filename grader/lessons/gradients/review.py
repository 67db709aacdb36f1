"""What later lessons ask about 11_gradients."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core

LESSON = "11_gradients"


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


# What a recipe inside shard_map makes of the right gradient, as a power of the number of devices; by the check.
RECIPES = {
    "the local mean loss, and nothing more": (1, None),
    "the local mean loss, then pmean of the gradient": (1, 0),
    "the local mean loss, then psum of the gradient": (2, 1),
    "the pmean of the local mean losses, and nothing more": (0, None),
    "the pmean of the local mean losses, then pmean of the gradient": (0, 0),
    "the pmean of the local mean losses, then psum of the gradient": (1, 1),
}


@core("same_with_vma_off")
def ratio_of_a_recipe(rng: np.random.Generator) -> Question:
    n, check = int(rng.choice([2, 4, 8])), bool(rng.integers(2))
    recipe = list(RECIPES)[rng.integers(len(RECIPES))]
    power = RECIPES[recipe][0 if check else 1]
    answer = "copies differ" if power is None else n**power
    why = (
        "With the check on, the gradient with respect to a replicated parameter is summed over the devices by itself."
        if check
        else "Unchecked, nothing is added by itself, and a psum is transposed to a psum."
    )
    return Question(
        f"{n} devices, replicated parameters, the batch cut. Inside shard_map with check_vma={check}: "
        f"jax.grad of {recipe}. How many times the right gradient is that? (a number, or 'copies differ')",
        answer,
        why,
    )


@core(2)
def backwards(rng: np.random.Generator) -> Question:
    forward, answer, why = [
        ("an all_gather of sharded weights", "reduce_scatter", "What was copied to all is added, and dealt out again."),
        ("a reduce_scatter of partial sums", "all_gather", "Each sum's cotangent goes back to all who had a part."),
        ("a psum whose result goes out by P()", "none", "One value, one cotangent: each device takes its copy."),
        (
            "the use of replicated weights by devices with different rows",
            "all_reduce",
            "A copy for everyone forwards is a sum over everyone backwards.",
        ),
        ("an all_to_all", "all_to_all", "Every block goes back to where it came from."),
    ][rng.integers(5)]
    return Question(
        f"shard_map's check is on, and the forward pass has {forward}. What does the backward pass send "
        "for it: 'all_gather', 'reduce_scatter', 'all_reduce', 'all_to_all' or 'none'?",
        answer,
        why,
    )


@core("transposes")
def cotangent_of_a_sum(rng: np.random.Generator) -> Question:
    n, each = int(rng.choice([2, 4, 8])), int(rng.integers(2, 6))
    collective, out, factor, why = [
        ("psum", "P()", 1.0, "One result, one cotangent, and each term has derivative 1."),
        ("psum", "P('x')", float(n), "The same sum n times, and the cotangents of all n results are added."),
        ("pmean", "P()", 1 / n, "Each term has derivative 1/n in a mean."),
        ("pmean", "P('x')", 1.0, "n results, each with a derivative of 1/n."),
    ][rng.integers(4)]
    return Question(
        f"{n} devices along x, a number on each. They take the {collective} of it and return it with "
        f"out_specs={out}, every entry of the result has the cotangent {each}. What is the gradient with respect to "
        "one device's number?",
        _number(each * factor),
        why,
    )
