"""Answers to lesson 21, second batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def compile_for__right_loop(shapes, dtype, specs, sizes):
    """A loop, with names and lengths apart."""
    names, lengths = zip(*sizes.items())
    pod = AbstractMesh(lengths, names, axis_types=(AxisType.Auto,) * len(names))
    asked = []
    for lengths_of_one, spec in zip(shapes, specs):
        asked.append(jax.ShapeDtypeStruct(tuple(lengths_of_one), dtype, sharding=NamedSharding(pod, spec)))
    return asked


def compile_for__wrong_no_layouts(shapes, dtype, specs, sizes):
    """Shapes and dtypes alone, without a sharding."""
    return [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]


def compile_for__wrong_real_mesh(shapes, dtype, specs, sizes):
    """A mesh of devices: there are not as many here."""
    pod = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return [jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(pod, spec)) for shape, spec in zip(shapes, specs)]


def compile_for__wrong_lessons_mesh(shapes, dtype, specs, sizes):
    """The lesson's own mesh in place of the one given."""
    return [
        jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec)) for shape, spec in zip(shapes, specs)
    ]


def compile_for__wrong_blocks(shapes, dtype, specs, sizes):
    """The shape of a device's block in place of the whole."""
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    lies = [NamedSharding(pod, spec) for spec in specs]
    return [
        jax.ShapeDtypeStruct(one.shard_shape(tuple(shape)), dtype, sharding=one) for shape, one in zip(shapes, lies)
    ]


def chip_collectives__right_get(lines, turns):
    """A dict of what is written; two names for the two ways to write each."""
    kinds = {"all-reduce-scatter fusion": "reduce-scatter"}
    for kind in ("all-gather", "all-reduce", "collective-permute"):
        kinds[kind] = kinds[kind + "-start"] = kind
    found = {}
    for line in lines:
        kind = kinds.get(line.strip())
        if kind is not None:
            found[kind] = found.get(kind, 0) + (turns if line[:2] == "  " else 1)
    return found


def chip_collectives__wrong_start_and_done(lines, turns):
    """Counts a start and its done as two."""
    found = {}
    for line in lines:
        name = line.strip().removesuffix("-start").removesuffix("-done")
        name = "reduce-scatter" if name == "all-reduce-scatter fusion" else name
        if name in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            found[name] = found.get(name, 0) + (turns if line.startswith("  ") else 1)
    return found


def chip_collectives__wrong_once_each(lines, turns):
    """A loop's body counts once, however many turns it takes."""
    found = {}
    for line in lines:
        name = line.strip().removesuffix("-start")
        name = "reduce-scatter" if name == "all-reduce-scatter fusion" else name
        if name in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            found[name] = found.get(name, 0) + 1
    return found


def chip_collectives__wrong_fusion_is_all_reduce(lines, turns):
    """Asks how a name begins: the fusion is counted as an all-reduce."""
    found = {}
    for line in lines:
        name = line.strip()
        for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            if name.startswith(kind) and not name.endswith("-done"):
                found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found


def chip_collectives__wrong_zeros(lines, turns):
    """All four kinds are in the dict, also those that never occur."""
    found = dict.fromkeys(("all-gather", "all-reduce", "collective-permute", "reduce-scatter"), 0)
    for line in lines:
        name = line.strip().removesuffix("-start")
        name = "reduce-scatter" if name == "all-reduce-scatter fusion" else name
        if name in found:
            found[name] += turns if line.startswith("  ") else 1
    return found


def bet__right_two_terms(way, data, model, weights, activations):
    """One term for each axis; passes of (n - 1) / n each."""
    along_data = 2 * weights if way == "dp" else 3 * weights / model
    along_model = 2 * 2 * activations / data
    return along_data * (data - 1) / data + along_model * (model - 1) / model


def bet__wrong_gathered_once(way, data, model, weights, activations):
    """The weights are gathered on the way forwards only."""
    part = weights / model
    along_data = (2 * weights if way == "dp" else 2 * part) * (data - 1) / data
    return along_data + 4 * (model - 1) / model * activations / data


def bet__wrong_one_sum(way, data, model, weights, activations):
    """Along model only the sum of the forward pass."""
    part = weights / model
    along_data = (2 * weights if way == "dp" else 3 * part) * (data - 1) / data
    return along_data + 2 * (model - 1) / model * activations / data


def bet__wrong_whole_batch(way, data, model, weights, activations):
    """The activations of the whole batch, not of a row of devices."""
    part = weights / model
    along_data = (2 * weights if way == "dp" else 3 * part) * (data - 1) / data
    return along_data + 4 * (model - 1) / model * activations


def bet__wrong_like_dp(way, data, model, weights, activations):
    """An all_reduce of the gradients in all ways, and no gathers."""
    return 2 * (data - 1) / data * weights / model + 4 * (model - 1) / model * activations / data


def hidden__right_open_set(schedule):
    """Each product is added to all that are under way."""
    beside, under_way = {}, set()
    for what, value in schedule:
        if what == "start":
            beside[value] = 0
            under_way.add(value)
        elif what == "done":
            under_way.remove(value)
        else:
            for name in under_way:
                beside[name] += value
    return beside


def hidden__wrong_only_the_latest(schedule):
    """A product counts for the transfer that was started last only."""
    beside, under_way = {}, []
    for what, value in schedule:
        if what == "start":
            beside[value] = 0
            under_way.append(value)
        elif what == "done":
            under_way.remove(value)
        elif under_way:
            beside[under_way[-1]] += value
    return beside


def hidden__wrong_since_the_beginning(schedule):
    """All FLOPs before a transfer's done, also those before its start."""
    total, beside = 0, {}
    for what, value in schedule:
        if what == "product":
            total += value
        elif what == "done":
            beside[value] = total
    return beside


def hidden__wrong_nothing_left_out(schedule):
    """Transfers that have nothing beside them are not in the dict."""
    beside, under_way = {}, set()
    for what, value in schedule:
        if what == "start":
            under_way.add(value)
        elif what == "done":
            under_way.remove(value)
        else:
            for name in under_way:
                beside[name] = beside.get(name, 0) + value
    return beside


def hidden__wrong_how_many(schedule):
    """Counts products, not their FLOPs."""
    beside, under_way = {}, set()
    for what, value in schedule:
        if what == "start":
            beside[value] = 0
            under_way.add(value)
        elif what == "done":
            under_way.remove(value)
        else:
            for name in under_way:
                beside[name] += 1
    return beside
