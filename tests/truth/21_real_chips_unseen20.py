"""Answers to lesson 21, twentieth batch, written by a reader of the notebook only."""

import collections

from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- hidden


def hidden__right_set(schedule):
    beside, under_way = {}, set()
    for what, value in schedule:
        if what == "start":
            beside[value] = 0
            under_way.add(value)
        elif what == "done":
            under_way.discard(value)
        else:
            for name in under_way:
                beside[name] += value
    return beside


# This student thought that two transfers under way share the product between them, each a part of its FLOPs.
def hidden__wrong_shared(schedule):
    beside, under_way = {}, []
    for what, value in schedule:
        if what == "start":
            under_way.append(value)
            beside[value] = 0
        elif what == "done":
            under_way.remove(value)
        elif under_way:
            for name in under_way:
                beside[name] += value / len(under_way)
    return beside


# This student kept one sum for all, and set it back to 0 at every start.
def hidden__wrong_one_sum(schedule):
    found, flops = {}, 0
    for what, value in schedule:
        if what == "start":
            flops = 0
        elif what == "product":
            flops += value
        else:
            found[value] = flops
    return found


# This student counted how many products run beside a transfer, and not what they compute.
def hidden__wrong_how_many(schedule):
    begun, found, products = {}, {}, 0
    for what, value in schedule:
        if what == "product":
            products += 1
        elif what == "start":
            begun[value] = products
        else:
            found[value] = products - begun.pop(value)
    return found


# This student made the entry of a transfer at its first product, so that those with nothing beside them are left out.
def hidden__wrong_left_out(schedule):
    beside, under_way = collections.defaultdict(int), set()
    for what, value in schedule:
        if what == "product":
            for name in under_way:
                beside[name] += value
        elif what == "start":
            under_way.add(value)
        else:
            under_way.remove(value)
    return dict(beside)


# ---------------------------------------------------------------- two_slices


def two_slices__right_steps(way, weights, chips, slices):
    # A pass over a ring of n sends n - 1 pieces of b / n.
    piece = weights / chips / slices
    passes = {"data": 2, "fsdp": 3}[way]
    return passes * (slices - 1) * piece


# This student let the whole of the weights cross for every chip, though the chips of a slice divide that among them.
def two_slices__wrong_undivided(way, weights, chips, slices):
    once = (slices - 1) / slices * weights
    return 2 * once if way == "data" else 3 * once


# This student thought that with the weights over all chips, the ring of the formula has all chips in it.
def two_slices__wrong_long_ring(way, weights, chips, slices):
    b = weights / chips
    if way == "data":
        return 2 * (slices - 1) / slices * b
    n = chips * slices
    return 3 * (n - 1) / n * b


# This student had the gradients all_reduced in both ways, and counted four passes for fsdp.
def two_slices__wrong_four_passes(way, weights, chips, slices):
    b = weights / chips
    gathered = (slices - 1) / slices * b
    all_reduced = 2 * (slices - 1) / slices * b
    return all_reduced if way == "data" else gathered + gathered + all_reduced


# This student took for b, under fsdp, what one chip holds: its share of all chips of all slices.
def two_slices__wrong_own_share(way, weights, chips, slices):
    b = weights / chips if way == "data" else weights / (chips * slices)
    passes = 2 if way == "data" else 3
    return passes * (slices - 1) / slices * b


# ---------------------------------------------------------------- chip_collectives


def chip_collectives__right_written(lines, turns):
    written = {"all-reduce-scatter fusion": "reduce-scatter"}
    for kind in ("all-gather", "all-reduce", "collective-permute"):
        written[kind] = written[kind + "-start"] = kind
    found = collections.Counter()
    for line in lines:
        kind = written.get(line.strip())
        if kind is not None:
            found[kind] += turns if line.startswith("  ") else 1
    return dict(found)


# This student thought that every transfer is two lines, and counted those that end in -start (and the fusion).
def chip_collectives__wrong_only_starts(lines, turns):
    found = {}
    for line in lines:
        name, times = line.strip(), turns if line.startswith("  ") else 1
        if name == "all-reduce-scatter fusion":
            kind = "reduce-scatter"
        elif name in ("all-gather-start", "all-reduce-start", "collective-permute-start"):
            kind = name[: -len("-start")]
        else:
            continue
        found[kind] = found.get(kind, 0) + times
    return found


# This student looked how a name begins, so that the fusion is an all-reduce as well as a reduce-scatter.
def chip_collectives__wrong_begins_with(lines, turns):
    found = {}
    for line in lines:
        name = line.strip()
        if name.endswith("-done"):
            continue
        times = turns if line.startswith("  ") else 1
        for kind in ("all-gather", "all-reduce", "collective-permute"):
            if name.startswith(kind):
                found[kind] = found.get(kind, 0) + times
        if "reduce-scatter" in name:
            found["reduce-scatter"] = found.get("reduce-scatter", 0) + times
    return found


# This student multiplied the whole count of a kind by the turns as soon as one of its lines is in the loop.
def chip_collectives__wrong_kind_in_loop(lines, turns):
    called = {"all-reduce-scatter fusion": "reduce-scatter"}
    kinds = ("all-gather", "all-reduce", "collective-permute", "reduce-scatter")
    count, inside = {}, set()
    for line in lines:
        name = line.strip().removesuffix("-start")
        kind = called.get(name, name)
        if kind in kinds:
            count[kind] = count.get(kind, 0) + 1
            if line.startswith("  "):
                inside.add(kind)
    return {kind: n * turns if kind in inside else n for kind, n in count.items()}


# This student stripped the lines first, and looked for the two blanks afterwards, when they are gone.
def chip_collectives__wrong_stripped_first(lines, turns):
    called = {
        "all-reduce-scatter fusion": "reduce-scatter",
        "all-gather": "all-gather",
        "all-reduce": "all-reduce",
        "collective-permute": "collective-permute",
    }
    found = {}
    for line in map(str.strip, lines):
        name = line.removesuffix("-start")
        if name in called:
            times = turns if line.startswith("  ") else 1
            found[called[name]] = found.get(called[name], 0) + times
    return found
