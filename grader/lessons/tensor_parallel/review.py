"""What later lessons ask about 13_tensor_parallel."""

from __future__ import annotations

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "13_tensor_parallel"


@stretch("tp_grads")
def gradient_ratio(rng: np.random.Generator) -> Question:
    data, model = [(4, 2), (2, 4), (8, 1), (1, 8)][rng.integers(4)]
    name, before = [("W1", True), ("b1", True), ("W2", True), ("b2", False)][rng.integers(4)]
    return Question(
        f"Mesh {data}×{model}, ('batch', 'model'). psum(tanh(x·W1 + b1)·W2, 'model') + b2, a mean as loss. "
        "Inside shard_map with check_vma=False somebody takes the gradients and their pmean over 'batch'. "
        f"By which factor is that of {name} too large (1: it is right)?",
        model if before else 1,
        f"The psum was transposed into a psum: what stands before it counts {model} times, and b2 stands behind it.",
    )


@stretch("vocab_embedding")
def local_row(rng: np.random.Generator) -> Question:
    n, share = int(rng.choice([2, 4, 8])), int(rng.integers(5, 13))
    device, word = int(rng.integers(1, n)), int(rng.integers(n * share))
    local = word - device * share
    answer = local if 0 <= local < share else "none"
    return Question(
        f"A table of {n * share} words is cut by rows over {n} devices. In which of its own rows does "
        f"device {device} find word {word}: a number, or 'none'?",
        answer,
        f"Its rows begin at word {device * share} and end before {(device + 1) * share}: "
        f"{word} − {device * share} = {local}.",
    )


@core(1)
def bytes_of_the_pair(rng: np.random.Generator) -> Question:
    n, rows = int(rng.choice([2, 4, 8])), int(rng.choice([8, 16, 24]))
    inputs, hidden, outputs = (int(rng.choice(few)) for few in ([32, 48], [128, 256], [40, 80]))
    answer = round(ring_bytes("all_reduce", 4 * rows * outputs, n))
    return Question(
        f"A device has {rows} examples; W1 is {inputs}×{hidden} and cut by columns over {n} devices, "
        f"W2 is {hidden}×{outputs} and cut by rows, all float32. How many bytes does it send in the "
        "forward pass?",
        answer,
        f"One all_reduce of {rows}×{outputs} entries: 2·({n}-1)/{n} of "
        f"{4 * rows * outputs:,} bytes. The hidden layer stays where it is.",
    )


@core("megatron_specs")
def pair_of_layouts(rng: np.random.Generator) -> Question:
    name, answer, why = [
        ("W1, columns or rows", "columns", "every device then has finished hidden units, ready for relu."),
        ("W2, columns or rows", "rows", "they meet the hidden units that the device has."),
        ("b1, cut or whole", "cut", "it is added to the hidden units, and they are cut."),
        ("b2, cut or whole", "whole", "it is added behind the sum, where every device has all outputs."),
    ][rng.integers(4)]
    width = int(rng.choice([512, 1024, 4096]))
    return Question(
        f"relu(x·W1 + b1)·W2 + b2 with {width} hidden units, tensor parallel with a single all_reduce. How "
        f"does one cut {name}?",
        answer,
        f"{answer.capitalize()}: {why}",
    )
