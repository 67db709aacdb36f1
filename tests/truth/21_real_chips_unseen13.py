"""Answers to lesson 21, thirteenth batch, written by a reader of the notebook only."""

import numpy as np
from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- who_talks


def who_talks__right_strides(groups, counted, turned):
    """The devices of each group."""
    import itertools
    import math

    stride = [math.prod(counted[k + 1 :]) for k in range(len(counted))]
    places = itertools.product(*(range(counted[k]) for k in turned))
    order = [sum(i * stride[k] for i, k in zip(place, turned)) for place in places]
    return [order[g * groups[1] : (g + 1) * groups[1]] for g in range(groups[0])]


# This student thought that `turned` says to which place each dimension goes, and not which one comes there (the same for two dimensions).
def who_talks__wrong_goes_to(groups, counted, turned):
    """The devices of each group."""
    grid = np.arange(np.prod(counted)).reshape(counted)
    return np.moveaxis(grid, range(len(counted)), turned).reshape(groups).tolist()


# This student thought that to turn the grid is to count through one whose lengths are swapped.
def who_talks__wrong_lengths_turned(groups, counted, turned):
    """The devices of each group."""
    return np.arange(np.prod(counted)).reshape([counted[k] for k in turned]).reshape(groups).tolist()


# This student read [2,4] as groups of 2, of which there are 4.
def who_talks__wrong_size_first(groups, counted, turned):
    """The devices of each group."""
    size, number = groups
    return np.arange(np.prod(counted)).reshape(counted).transpose(turned).reshape(number, size).tolist()


# This student thought that T always is the transpose, and that the numbers behind it only say so once more.
def who_talks__wrong_always_transposed(groups, counted, turned):
    """The devices of each group."""
    return np.arange(np.prod(counted)).reshape(counted).T.reshape(groups).tolist()


# ---------------------------------------------------------------- chip_collectives


def chip_collectives__right_sums(lines, turns):
    """Kind → how often it is run."""
    kinds = {
        kind: (kind, f"{kind}-start") for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter")
    }
    kinds["reduce-scatter"] = ("all-reduce-scatter fusion", "all-reduce-scatter fusion-start")
    times = {
        kind: sum((turns if line[:2] == "  " else 1) for line in lines if line.strip() in names)
        for kind, names in kinds.items()
    }
    return {kind: n for kind, n in times.items() if n}


# This student wrote a dict comprehension over the lines, and thought that a kind that comes again is added to what it had.
def chip_collectives__wrong_last_line_wins(lines, turns):
    """Kind → how often it is run."""
    called = {
        "all-gather": "all-gather",
        "all-reduce": "all-reduce",
        "collective-permute": "collective-permute",
        "all-reduce-scatter fusion": "reduce-scatter",
    }
    written = [(line.strip().removesuffix("-start"), turns if line.startswith("  ") else 1) for line in lines]
    return {called[name]: times for name, times in written if name in called}


# This student began with a zero for each of the four kinds, and thought that 0 times says as well that it never occurs.
def chip_collectives__wrong_zeros_kept(lines, turns):
    """Kind → how often it is run."""
    times = dict.fromkeys(("all-gather", "all-reduce", "collective-permute", "reduce-scatter"), 0)
    for line in lines:
        name = line.strip().removesuffix("-start").replace("all-reduce-scatter fusion", "reduce-scatter")
        if name in times:
            times[name] += turns if line.startswith("  ") else 1
    return times


# This student thought that every transfer but the fusion is a start and a done, so that a line with neither is none.
def chip_collectives__wrong_starts_only(lines, turns):
    """Kind → how often it is run."""
    times = {}
    for line in lines:
        name = line.strip()
        if name == "all-reduce-scatter fusion":
            kind = "reduce-scatter"
        elif name in ("all-gather-start", "all-reduce-start", "collective-permute-start"):
            kind = name[: -len("-start")]
        else:
            continue
        times[kind] = times.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return times


# This student looked at how a name begins, so that the fusion, which begins with all-reduce, was counted as one.
def chip_collectives__wrong_by_beginning(lines, turns):
    """Kind → how often it is run."""
    times = {}
    for line in lines:
        name = line.strip()
        for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            if name.startswith(kind) and not name.endswith("-done"):
                times[kind] = times.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return times


# ---------------------------------------------------------------- bet


def bet__right_passes(way, data, model, weights, activations):
    """Bytes that one chip sends in a step."""
    one_pass = lambda n, size: size - size / n
    passes = {"dp": 2}.get(way, 3)  # an all_reduce; or two all_gathers and a reduce_scatter
    return passes * one_pass(data, weights / model) + 2 * 2 * one_pass(model, activations / data)


# This student thought that FSDP sends what data parallelism sends: an all_reduce, of which the all_gather is moved to the front.
def bet__wrong_gathered_once(way, data, model, weights, activations):
    """Bytes that one chip sends in a step."""
    along_data = 2 * (data - 1) / data * weights / model
    along_model = 4 * (model - 1) / model * activations / data
    return along_data + along_model


# This student forgot that each row of the mesh has its own part of the batch, and adds up the activations of all of it.
def bet__wrong_whole_batch(way, data, model, weights, activations):
    """Bytes that one chip sends in a step."""
    turns = 2 if way == "dp" else 3
    return turns * (data - 1) / data * weights / model + 4 * (model - 1) / model * activations


# This student counted one pass for each of the two sums along model, as if they were scattered and stayed so.
def bet__wrong_sums_scattered(way, data, model, weights, activations):
    """Bytes that one chip sends in a step."""
    ring = lambda n: (n - 1) / n
    if way == "dp":
        return 2 * ring(data) * weights
    return 3 * ring(data) * weights / model + 2 * ring(model) * activations / data


# This student took `weights` for the bytes of a chip's own block, which it passes on n − 1 times.
def bet__wrong_own_block(way, data, model, weights, activations):
    """Bytes that one chip sends in a step."""
    if way == "dp":
        return 2 * (data - 1) / data * weights
    return 3 * (data - 1) * weights / model + 4 * (model - 1) / model * activations / data
