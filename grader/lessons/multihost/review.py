"""What later lessons ask about 19_multihost."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core, stretch

LESSON = "19_multihost"


@core("loader")
def rows_of_a_process(rng: np.random.Generator) -> Question:
    processes, devices, share = (int(rng.choice(sizes)) for sizes in ([4, 8, 16], [2, 4, 8], [2, 4, 6]))
    number, batch = int(rng.integers(1, processes)), processes * devices * share
    return Question(
        f"A batch of {batch} examples, {processes} processes of {devices} devices each, rows cut over all "
        f"devices. Which is the first row that process {number} loads?",
        number * batch // processes,
        f"A process loads {batch} / {processes} = {batch // processes} rows, and {number} processes come before it.",
    )


@core("loader")
def global_rows(rng: np.random.Generator) -> Question:
    processes, devices, rows = _sizes(rng)
    return Question(
        f"Each of {processes} processes of {devices} devices gives its own ({rows}, 3) part to "
        "make_array_from_process_local_data with P('data'), cut over all devices. How many rows has the global array?",
        processes * rows,
        "The parts of all processes, one below the other. Devices do not count: a process gives for all of its own.",
    )


@stretch("batch_arithmetic")
def global_rows_of_whole_batches(rng: np.random.Generator) -> Question:
    processes, devices, rows = _sizes(rng)
    return Question(
        f"By mistake each of {processes} processes of {devices} devices gives the same ({rows}, 3) array, the whole "
        "batch, to make_array_from_process_local_data with P('data'), cut over all devices. How many rows has the "
        "global array?",
        processes * rows,
        "It takes what comes for this process's part: every example is there once for each process.",
    )


def _sizes(rng: np.random.Generator) -> tuple[int, int, int]:
    """Processes, devices of each, and rows that each gives."""
    processes, devices, rows = (int(rng.choice(sizes)) for sizes in ([2, 4, 8], [2, 4], [16, 24, 40]))
    return processes, devices, rows


@core("same_order")
def who_must_call(rng: np.random.Generator) -> Question:
    line, answer, why = [
        ("print(jax.process_index())", "yes", "Nothing is computed together."),
        ("print(x.addressable_shards[0].data)", "yes", "A process looks at what it holds: nothing is sent."),
        ("print(jnp.sum(x))", "no", "The sum needs all devices: the others have to make the call, too."),
        ("np.asarray(jax.device_put(x, replicated))", "no", "To make copies everywhere is a collective."),
        ("save(np.asarray(total)), with total replicated", "yes", "A replicated array is whole in this process."),
    ][rng.integers(5)]
    return Question(
        f"x is cut over the devices of all processes. May `{line}` stand under `if jax.process_index() == "
        "0:`, 'yes' or 'no'?",
        answer,
        why,
    )


@stretch("slurm_script")
def slurm_devices(rng: np.random.Generator) -> Question:
    nodes, gpus = int(rng.choice([2, 3, 4])), int(rng.choice([4, 8]))
    tasks = int(rng.choice([1, 2, gpus]))
    return Question(
        f"Slurm: {nodes} nodes of {gpus} GPUs, srun with {tasks} task(s) per node, and initialize() "
        "without arguments. How many GPUs does JAX use in all?",
        nodes * tasks,
        "On Slurm each process takes one device, the one with its number on the node.",
    )
