"""Answers to lesson 21, sixteenth batch, written by a reader of the notebook only."""

import re

from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---- cpu_and_tpu

cpu_and_tpu__right_table = {
    **dict.fromkeys(("written gather, bfloat16", "written gather, float32"), "dtype"),
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    **dict.fromkeys(("left sum, bfloat16", "left sum, bfloat16, 8192"), "both"),
}

# Thought that simulated devices make everything float32, also what is gathered as it is.
cpu_and_tpu__right_allfloat32 = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Thought that simulated devices have no reduce-scatter at all, not even one that is written.
cpu_and_tpu__wrong_noscatter = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "kind",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Thought that a chip, since it rounds float32 to bfloat16 to multiply, sends the products in bfloat16, too.
cpu_and_tpu__wrong_roundedsums = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "dtype",
    "left sum, float32": "both",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Thought that the wire carries the dtype of the arrays in the program, on both machines, and that only kinds can differ.
cpu_and_tpu__wrong_dtypeaswritten = {
    "written gather, bfloat16": "nothing",
    "written gather, float32": "nothing",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "kind",
    "left sum, bfloat16, 8192": "kind",
}


# ---- hidden


def hidden__right_tally(schedule):
    """Transfer → FLOPs beside it."""
    beside, on_the_way = {}, {}
    for what, which in schedule:
        if what == "product":
            for name in on_the_way:
                on_the_way[name] += which
        elif what == "start":
            on_the_way[which] = 0
        else:
            beside[which] = on_the_way.pop(which)
    return beside


# Thought that transfers which are under way together share a product's FLOPs out among themselves.
def hidden__wrong_sharedout(schedule):
    """Transfer → FLOPs beside it."""
    beside, on_the_way = {}, []
    for what, which in schedule:
        if what == "start":
            on_the_way.append(which)
            beside[which] = 0
        elif what == "done":
            on_the_way.remove(which)
        else:
            for name in on_the_way:
                beside[name] += which / len(on_the_way)
    return beside


# Began to count anew at each start, so that a transfer which is under way already loses what it had.
def hidden__wrong_anew(schedule):
    """Transfer → FLOPs beside it."""
    beside, flops = {}, 0
    for what, which in schedule:
        if what == "start":
            flops = 0
        elif what == "product":
            flops += which
        else:
            beside[which] = flops
    return beside


# Thought that transfers are done in the order in which they were started.
def hidden__wrong_queue(schedule):
    """Transfer → FLOPs beside it."""
    beside, sums, so_far = {}, [], 0
    for what, which in schedule:
        if what == "start":
            sums.append(so_far)
        elif what == "product":
            so_far += which
        else:
            beside[which] = so_far - sums.pop(0)
    return beside


# Thought that a transfer with no product beside it is hidden by nothing, and so does not belong into the answer.
def hidden__wrong_onlyhidden(schedule):
    """Transfer → FLOPs beside it."""

    def between(name):
        begin, end = (schedule.index([what, name]) for what in ("start", "done"))
        return [flops for what, flops in schedule[begin:end] if what == "product"]

    names = [which for what, which in schedule if what == "start"]
    return {name: sum(between(name)) for name in names if between(name)}


# ---- chip_collectives


def chip_collectives__right_pattern(lines, turns):
    """Kind → how often it is run."""
    found = {}
    for line in lines:
        name = line.strip()
        if name == "all-reduce-scatter fusion":
            kind = "reduce-scatter"
        elif told := re.fullmatch(r"(all-gather|all-reduce|collective-permute)(-start)?", name):
            kind = told[1]
        else:
            continue
        found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found


# Thought that the kind is whichever name a line begins with, so that the reduce-scatter is an all-reduce.
def chip_collectives__wrong_beginning(lines, turns):
    """Kind → how often it is run."""
    found = {}
    for line in lines:
        name = line.strip()
        if name.endswith("-done"):
            continue
        for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            if name.startswith(kind):
                found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
                break
    return found


# Thought that each transfer but the reduce-scatter is two lines, and halved all of them, those in one line, too.
def chip_collectives__wrong_halved(lines, turns):
    """Kind → how often it is run."""
    counts = {"all-gather": 0, "all-reduce": 0, "collective-permute": 0, "reduce-scatter": 0}
    for line in lines:
        name = line.strip()
        weight = turns if line.startswith("  ") else 1
        if name == "all-reduce-scatter fusion":
            counts["reduce-scatter"] += weight
            continue
        name = name.removesuffix("-start").removesuffix("-done")
        if name in counts:
            counts[name] += weight
    for kind in ("all-gather", "all-reduce", "collective-permute"):
        counts[kind] //= 2
    return {kind: count for kind, count in counts.items() if count}


# Thought that from the loop's first line on everything is repeated, and did not see where the loop ends.
def chip_collectives__wrong_looponwards(lines, turns):
    """Kind → how often it is run."""
    called = {kind: kind for kind in ("all-gather", "all-reduce", "collective-permute")}
    called["all-reduce-scatter fusion"] = "reduce-scatter"
    found, times = {}, 1
    for line in lines:
        if line.startswith("  "):
            times = turns
        kind = called.get(line.strip().removesuffix("-start"))
        if kind:
            found[kind] = found.get(kind, 0) + times
    return found


# Thought that a loop's body is run once as it stands there, and then as many times more as there are turns.
def chip_collectives__wrong_oncemore(lines, turns):
    """Kind → how often it is run."""
    called = {kind: kind for kind in ("all-gather", "all-reduce", "collective-permute")}
    called["all-reduce-scatter fusion"] = "reduce-scatter"
    found = {}
    for line in lines:
        kind = called.get(line.strip().removesuffix("-start"))
        if kind is None:
            continue
        found.setdefault(kind, 0)
        found[kind] += 1
        if line.startswith("  "):
            found[kind] += turns
    return found
