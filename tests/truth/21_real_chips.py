"""Answers to lesson 21, as students give them: written from the student's notebook alone."""

import math

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def _described(shapes, dtype, specs, pod):
    return [
        jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(pod, spec))
        for shape, spec in zip(shapes, specs, strict=True)
    ]


def compile_for__right_plain(shapes, dtype, specs, sizes):
    """As it is."""
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return _described(shapes, dtype, specs, pod)


def compile_for__wrong_notebook_mesh(shapes, dtype, specs, sizes):
    """The notebook's mesh."""
    return _described(shapes, dtype, specs, mesh)


def compile_for__wrong_block(shapes, dtype, specs, sizes):
    """A device's block in place of the whole shape."""
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    blocks = [NamedSharding(pod, spec).shard_shape(tuple(shape)) for shape, spec in zip(shapes, specs, strict=True)]
    return _described(blocks, dtype, specs, pod)


def compile_for__wrong_real_mesh(shapes, dtype, specs, sizes):
    """A mesh of devices that are here."""
    return _described(shapes, dtype, specs, jax.make_mesh(tuple(sizes.values()), tuple(sizes)))


def compile_for__wrong_no_layout(shapes, dtype, specs, sizes):
    """Arrays without a layout."""
    return [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]


def compile_for__wrong_dtype(shapes, dtype, specs, sizes):
    """bfloat16, as everywhere in the lesson."""
    return compile_for__right_plain(shapes, "bfloat16", specs, sizes)


def hbm__right_plain(arguments, results, temporaries, shared, peak, room):
    """As it is."""
    return arguments + results + temporaries - shared, peak <= room * 2**30


def hbm__wrong_added(arguments, results, temporaries, shared, peak, room):
    """Counts what is shared once more."""
    return arguments + results + temporaries + shared, peak <= room * 2**30


def hbm__wrong_twice(arguments, results, temporaries, shared, peak, room):
    """Forgets what is shared."""
    return arguments + results + temporaries, peak <= room * 2**30


def hbm__wrong_by_the_sum(arguments, results, temporaries, shared, peak, room):
    """Holds the sum against the room."""
    total = arguments + results + temporaries - shared
    return total, total <= room * 2**30


def hbm__wrong_by_the_larger(arguments, results, temporaries, shared, peak, room):
    """Wants both the sum and the peak to fit."""
    total = arguments + results + temporaries - shared
    return total, max(total, peak) <= room * 2**30


def hbm__wrong_gb(arguments, results, temporaries, shared, peak, room):
    """GB for GiB."""
    return arguments + results + temporaries - shared, peak <= room * 10**9


def hbm__wrong_less(arguments, results, temporaries, shared, peak, room):
    """Less than, where no more than is meant."""
    return arguments + results + temporaries - shared, peak < room * 2**30


def bet__right_plain(way, data, model, weights, activations):
    """As it is."""
    along_data = (2 if way == "dp" else 3) * (data - 1) / data * weights / model
    along_model = 2 * 2 * (model - 1) / model * activations / data
    return along_data + along_model


def bet__wrong_gathered_once(way, data, model, weights, activations):
    """Gathers the weights once."""
    return 2 * (data - 1) / data * weights / model + 4 * (model - 1) / model * activations / data


def bet__wrong_one_sum(way, data, model, weights, activations):
    """One all_reduce along model."""
    along_data = (2 if way == "dp" else 3) * (data - 1) / data * weights / model
    return along_data + 2 * (model - 1) / model * activations / data


def bet__wrong_whole_batch(way, data, model, weights, activations):
    """The activations of the whole batch."""
    along_data = (2 if way == "dp" else 3) * (data - 1) / data * weights / model
    return along_data + 4 * (model - 1) / model * activations


def bet__wrong_whole_weights(way, data, model, weights, activations):
    """All weights along data, also where model has a part of them."""
    along_data = (2 if way == "dp" else 3) * (data - 1) / data * weights
    return along_data + 4 * (model - 1) / model * activations / data


def hidden__right_plain(schedule):
    """As it is."""
    so_far, under_way, found = 0, {}, {}
    for kind, what in schedule:
        if kind == "start":
            under_way[what] = so_far
        elif kind == "done":
            found[what] = so_far - under_way.pop(what)
        else:
            so_far += what
    return found


def hidden__wrong_once(schedule):
    """A product counts for the transfer that was begun last."""
    under_way, found = [], {}
    for kind, what in schedule:
        if kind == "start":
            under_way.append(what)
            found[what] = 0
        elif kind == "done":
            under_way.remove(what)
        elif under_way:
            found[under_way[-1]] += what
    return found


def hidden__wrong_number(schedule):
    """Counts products, and not their FLOPs."""
    return hidden__right_plain([(kind, 1 if kind == "product" else what) for kind, what in schedule])


def hidden__wrong_first_only(schedule):
    """Only the first product behind the start."""
    found = {}
    for k, (kind, what) in enumerate(schedule):
        if kind == "start":
            following = schedule[k + 1]
            found[what] = following[1] if following[0] == "product" else 0
    return found


def who_talks__right_plain(groups, counted, turned):
    """As it is."""
    return np.arange(math.prod(counted)).reshape(counted).transpose(turned).reshape(groups).tolist()


def who_talks__wrong_not_turned(groups, counted, turned):
    """Does not turn the grid."""
    return np.arange(math.prod(counted)).reshape(groups).tolist()


def who_talks__wrong_reversed(groups, counted, turned):
    """Turns all dimensions round, whatever is asked."""
    return np.arange(math.prod(counted)).reshape(counted).T.reshape(groups).tolist()


def who_talks__wrong_inverse(groups, counted, turned):
    """The inverse of the turn."""
    return np.arange(math.prod(counted)).reshape(counted).transpose(np.argsort(turned)).reshape(groups).tolist()


def _steps(ring, ends):
    return zip(ring, [*ring[1:], ring[0]] if ends else ring[1:], strict=False)


def _wires(one, other, lengths, wraps):
    ways = [(abs(a - b), n, closed) for a, b, n, closed in zip(one, other, lengths, wraps, strict=True)]
    return [min(way, n - way) if closed else way for way, n, closed in ways]


def order_of_devices__right_plain(ring, lengths, wraps):
    """As it is."""
    return max(sum(_wires(one, other, lengths, wraps)) for one, other in _steps(ring, True))


def order_of_devices__wrong_open(ring, lengths, wraps):
    """Forgets the step from the last to the first."""
    return max(sum(_wires(one, other, lengths, wraps)) for one, other in _steps(ring, False))


def order_of_devices__wrong_no_wrap(ring, lengths, wraps):
    """No dimension is closed."""
    return max(sum(_wires(one, other, lengths, [False, False])) for one, other in _steps(ring, True))


def order_of_devices__wrong_longer_leg(ring, lengths, wraps):
    """The longer of the two legs, and not their sum."""
    return max(max(_wires(one, other, lengths, wraps)) for one, other in _steps(ring, True))


def order_of_devices__wrong_sum(ring, lengths, wraps):
    """All wires together."""
    return sum(sum(_wires(one, other, lengths, wraps)) for one, other in _steps(ring, True))


def mfu__right_plain(parameters, tokens, seconds, chips, peak):
    """As it is."""
    return 6 * parameters * tokens / (seconds * chips * peak)


def mfu__wrong_two(parameters, tokens, seconds, chips, peak):
    """Forwards only."""
    return 2 * parameters * tokens / (seconds * chips * peak)


def mfu__wrong_percent(parameters, tokens, seconds, chips, peak):
    """In per cent."""
    return 600 * parameters * tokens / (seconds * chips * peak)


def mfu__wrong_eight(parameters, tokens, seconds, chips, peak):
    """Counts what is computed again."""
    return 8 * parameters * tokens / (seconds * chips * peak)


def mfu__wrong_one_chip(parameters, tokens, seconds, chips, peak):
    """Forgets the number of chips."""
    return 6 * parameters * tokens / (seconds * peak)


def two_slices__right_plain(way, weights, chips, slices):
    """As it is."""
    return (2 if way == "data" else 3) * (slices - 1) / slices * weights / chips


def two_slices__wrong_whole(way, weights, chips, slices):
    """All weights, and not a chip's part of them."""
    return (2 if way == "data" else 3) * (slices - 1) / slices * weights


def two_slices__wrong_devices(way, weights, chips, slices):
    """Rings over all chips."""
    n = chips * slices
    return (2 if way == "data" else 3) * (n - 1) / n * weights / chips


def two_slices__wrong_gathered_once(way, weights, chips, slices):
    """Under fsdp the weights are gathered once."""
    return 2 * (slices - 1) / slices * weights / chips


# Wrong at an edge, or right in an unusual way


def chip_collectives__wrong_all_but_fusions(lines, turns):
    """Counts whatever is no fusion and no end."""
    found = {}
    for line in lines:
        name = line.strip()
        if name == "fusion" or name.endswith("-done"):
            continue
        name = {"all-reduce-scatter fusion": "reduce-scatter"}.get(name, name.removesuffix("-start"))
        found[name] = found.get(name, 0) + (turns if line[:2] == "  " else 1)
    return found


def hbm__wrong_rounded(arguments, results, temporaries, shared, peak, room):
    return arguments + results + temporaries - shared, round(peak / 2**30, 2) <= room


def compile_for__wrong_explicit(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))
    return [jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(pod, p)) for s, p in zip(shapes, specs)]


def who_talks__wrong_along_one_dimension(groups, counted, turned):
    """A group runs along the last dimension, however long it is said to be."""
    numbers = np.arange(np.prod(counted)).reshape(counted)
    return numbers.transpose(turned).reshape(-1, counted[turned[-1]]).tolist()


def order_of_devices__wrong_second_only_with_first(ring, lengths, wraps):
    """The second dimension is closed where both are."""

    def wires(one, other):
        steps = [abs(a - b) for a, b in zip(one, other)]
        closed = wraps[0], all(wraps)
        return sum(min(n, length - n) if ring else n for n, length, ring in zip(steps, lengths, closed))

    return max(wires(one, other) for one, other in zip(ring, [*ring[1:], ring[0]]))


def chip_collectives__wrong_all_that_starts(lines, turns):
    """Whatever has a dash in its name and is no end of something."""
    found = {}
    for line in lines:
        name = line.strip()
        if "-" in name and not name.endswith("-done"):
            kind = "reduce-scatter" if "scatter" in name else name.removesuffix("-start")
            found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found


def compile_for__wrong_two_auto(shapes, dtype, specs, sizes):
    """Two axes, as every mesh of the lesson has."""
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto, AxisType.Auto))
    return _described(shapes, dtype, specs, pod)


# Whoever adds up sends everything.
def bet__wrong_all_of_the_activations(way, data, model, weights, activations):
    passes = 2 if way == "dp" else 3
    return passes * (data - 1) / data * weights / model + 4 * activations / data


# Every device of a ring sends everything.
def bet__wrong_long_rings(way, data, model, weights, activations):
    along_model = 4 * activations / data if model > 1 else 0
    return (2 if way == "dp" else 3) * (data - 1) / data * weights / model + along_model
