"""What later lessons ask about 11_gradients."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core

LESSON = "11_gradients"


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


# The ratio of a recipe's gradient inside shard_map, as a power of the number of devices: with check_vma, and without.
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
    answer = "replicas disagree" if power is None else n**power
    why = (
        "With check_vma, JAX sums the gradient with respect to a replicated parameter over the devices."
        if check
        else "Without check_vma, JAX sums nothing, and the transpose of a psum is a psum."
    )
    return Question(
        f"{n} devices have replicated parameters and a sharded batch. Inside shard_map with check_vma={check}, they "
        f"take jax.grad of {recipe}. What is the ratio to the correct gradient? (a number, or 'replicas disagree')",
        answer,
        why,
    )


@core(2)
def backward(rng: np.random.Generator) -> Question:
    forward, answer, why = [
        (
            "an all_gather of sharded weights",
            "reduce_scatter",
            "The forward pass copies every block, so the backward pass sums, and each device keeps its block.",
        ),
        (
            "a reduce_scatter of partial sums",
            "all_gather",
            "The cotangent of each sum goes to all devices that contributed to it.",
        ),
        (
            "a psum that is returned with out_specs=P()",
            "none",
            "The sum is one value with one cotangent, which every device already has.",
        ),
        (
            "the use of replicated weights by devices with different rows",
            "all_reduce",
            "The forward pass copies the weights, so the backward pass sums their gradients.",
        ),
        ("an all_to_all", "all_to_all", "Every block's cotangent goes back to where the block came from."),
    ][rng.integers(5)]
    return Question(
        f"In shard_map with check_vma=True, the forward pass contains {forward}. What does the backward pass send "
        "for it: 'all_gather', 'reduce_scatter', 'all_reduce', 'all_to_all', or 'none'?",
        answer,
        why,
    )


@core("transposes")
def cotangent_of_a_sum(rng: np.random.Generator) -> Question:
    n, each = int(rng.choice([2, 4, 8])), int(rng.integers(2, 6))
    collective, out, factor, why = [
        ("psum", "P()", 1.0, "There is one result with one cotangent, and its derivative by each term is 1."),
        (
            "psum",
            "P('x')",
            float(n),
            "The same sum is returned n times, and the cotangents of all n results are summed.",
        ),
        ("pmean", "P()", 1 / n, "The derivative of a mean by each term is 1/n."),
        ("pmean", "P('x')", 1.0, "There are n results, each with a derivative of 1/n."),
    ][rng.integers(4)]
    return Question(
        f"{n} devices along x hold a number each. They return its {collective} with out_specs={out}, and every element "
        f"of the result has the cotangent {each}. What is the gradient with respect to one device's number?",
        _number(each * factor),
        why,
    )
