"""Answers to lesson 21, eighteenth batch, written by a reader of the notebook only."""

from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- mfu


def mfu__right_perchip(parameters, tokens, seconds, chips, peak):
    tokens_a_second_of_a_chip = tokens / seconds / chips
    return (2 + 4) * parameters * tokens_a_second_of_a_chip / peak


# thought: with a layer computed again on the way back it is 8 N that the chips do
def mfu__wrong_eight(parameters, tokens, seconds, chips, peak):
    return 8 * parameters * tokens / (seconds * chips * peak)


# thought: peak is what the machine does in a second, so only the time stands beside it
def mfu__wrong_nochips(parameters, tokens, seconds, chips, peak):
    return 6 * parameters * tokens / (seconds * peak)


# thought: the way back costs as much as the way forwards, 2 N each
def mfu__wrong_backasforth(parameters, tokens, seconds, chips, peak):
    return (2 * parameters + 2 * parameters) * tokens / (seconds * chips * peak)


# thought: FLOPs needed over FLOPs of all chips; that this is the ideal time, still to be divided by the real one, is forgotten
def mfu__wrong_idealtime(parameters, tokens, seconds, chips, peak):
    needed = 6 * parameters * tokens
    return needed / (chips * peak)


# ---- hbm


def hbm__right_others(arguments, results, temporaries, shared, peak, room):
    parts = (arguments, results - shared, temporaries)
    return sum(parts), not peak / 2**30 > room


# thought: both the sum of the parts and the peak have to find room
def hbm__wrong_larger(arguments, results, temporaries, shared, peak, room):
    total = arguments + results + temporaries - shared
    return total, max(total, peak) <= room * 2**30


# thought: a G is 10**9
def hbm__wrong_giga(arguments, results, temporaries, shared, peak, room):
    return arguments + results + temporaries - shared, peak <= room * 10**9


# thought: what is shared stands in the arguments and in the results, so it is taken off both
def hbm__wrong_offboth(arguments, results, temporaries, shared, peak, room):
    return (arguments - shared) + (results - shared) + temporaries, peak <= room * 2**30


# thought: a program fits if something is left over
def hbm__wrong_strictly(arguments, results, temporaries, shared, peak, room):
    return arguments + results + temporaries - shared, peak < room * 2**30


# ---- chip_collectives


def chip_collectives__right_names(lines, turns):
    called = {"all-reduce-scatter fusion": "reduce-scatter"}
    for kind in ("all-gather", "all-reduce", "collective-permute"):
        called[kind] = called[kind + "-start"] = kind
    times = {}
    for line in lines:
        kind = called.get(line.strip())
        if kind is not None:
            times[kind] = times.get(kind, 0) + (turns if line[:2] == "  " else 1)
    return times


# thought: the beginning of a name tells the kind (so that the fusion goes for an all-reduce)
def chip_collectives__wrong_beginning(lines, turns):
    times = {}
    for line in lines:
        name = line.strip()
        if name.endswith("-done"):
            continue
        for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            if name.startswith(kind):
                times[kind] = times.get(kind, 0) + (turns if line.startswith("  ") else 1)
                break
    return times


# thought: once the loop has begun, everything is run as often as it turns; what comes after it is forgotten
def chip_collectives__wrong_fromtheloopon(lines, turns):
    called = {
        "all-gather": "all-gather",
        "all-reduce": "all-reduce",
        "collective-permute": "collective-permute",
        "all-reduce-scatter fusion": "reduce-scatter",
    }
    times, often = {}, 1
    for line in lines:
        if line.startswith("  "):
            often = turns
        kind = called.get(line.strip().removesuffix("-start"))
        if kind:
            times[kind] = times.get(kind, 0) + often
    return times


# thought: a transfer is a start and a done, so the starts are the transfers, and a fusion the only exception
def chip_collectives__wrong_onlystarts(lines, turns):
    called = {
        "all-gather-start": "all-gather",
        "all-reduce-start": "all-reduce",
        "collective-permute-start": "collective-permute",
        "all-reduce-scatter fusion": "reduce-scatter",
    }
    times = {}
    for line in lines:
        kind = called.get(line.strip())
        if kind:
            times[kind] = times.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return times


# thought: the dict begins with all four kinds at 0; those that never occur stay in it
def chip_collectives__wrong_zeros(lines, turns):
    called = {
        "all-gather": "all-gather",
        "all-reduce": "all-reduce",
        "collective-permute": "collective-permute",
        "all-reduce-scatter fusion": "reduce-scatter",
    }
    times = dict.fromkeys(called.values(), 0)
    for line in lines:
        name = line.strip().removesuffix("-start")
        if name in called:
            times[called[name]] += turns if line.startswith("  ") else 1
    return times
