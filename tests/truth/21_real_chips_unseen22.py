"""Answers to lesson 21, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shape(*lengths, spec, dtype=jnp.bfloat16):
    """An array that nobody has to make: its shape, dtype and layout."""
    return jax.ShapeDtypeStruct(lengths, dtype, sharding=NamedSharding(mesh, spec))


# ---------------------------------------------------------------- order_of_devices


def order_of_devices__right_backwards(ring, lengths, wraps):
    """The most wires between a chip and the next."""

    def wires(here, there):
        total = 0
        for a, b, length, closed in zip(here, there, lengths, wraps):
            straight = max(a, b) - min(a, b)
            total += min(straight, length - straight) if closed else straight
        return total

    return max(wires(ring[k - 1], ring[k]) for k in range(len(ring)))


# This student forgot that the last chip sends to the first.
def order_of_devices__wrong_open_ended(ring, lengths, wraps):
    """The most wires between a chip and the next."""

    def along(a, b, length, closed):
        n = abs(a - b)
        return min(n, length - n) if closed else n

    longest = 0
    for here, there in zip(ring, ring[1:]):
        longest = max(longest, sum(along(*one) for one in zip(here, there, lengths, wraps)))
    return longest


# This student thought that a step goes along both dimensions at once, so that only the longer of the two counts.
def order_of_devices__wrong_diagonal(ring, lengths, wraps):
    """The most wires between a chip and the next."""
    steps = []
    for here, there in zip(ring, [*ring[1:], ring[0]]):
        parts = [abs(a - b) for a, b in zip(here, there)]
        parts = [min(n, length - n) if closed else n for n, length, closed in zip(parts, lengths, wraps)]
        steps.append(max(parts))
    return max(steps)


# This student thought that a closed dimension is sent round in one direction only: always upwards.
def order_of_devices__wrong_one_way(ring, lengths, wraps):
    """The most wires between a chip and the next."""

    def along(a, b, length, closed):
        return (b - a) % length if closed else abs(b - a)

    following = [*ring[1:], ring[0]]
    return max(sum(along(*one) for one in zip(here, there, lengths, wraps)) for here, there in zip(ring, following))


# This student counted fence posts: the way round a closed dimension is a wire too short (chips 0 and 15 of 16: 0 wires).
def order_of_devices__wrong_fence(ring, lengths, wraps):
    """The most wires between a chip and the next."""
    most = 0
    for here, there in zip(ring, [*ring[1:], ring[0]]):
        wires = 0
        for d in range(2):
            n = abs(here[d] - there[d])
            wires += min(n, lengths[d] - 1 - n) if wraps[d] else n
        most = max(most, wires)
    return most


# ---------------------------------------------------------------- hidden


def hidden__right_open(schedule):
    """Transfer → FLOPs beside it."""
    beside, under_way = {}, set()
    for kind, what in schedule:
        if kind == "start":
            under_way.add(what)
            beside[what] = 0
        elif kind == "done":
            under_way.discard(what)
        else:
            for name in under_way:
                beside[name] += what
    return beside


# This student thought that a product can hide one transfer only: the one that was started last.
def hidden__wrong_newest(schedule):
    """Transfer → FLOPs beside it."""
    beside, under_way = {}, []
    for kind, what in schedule:
        if kind == "start":
            under_way.append(what)
            beside[what] = 0
        elif kind == "done":
            under_way.remove(what)
        elif under_way:
            beside[under_way[-1]] += what
    return beside


# This student thought that transfers which are under way at the same time divide a product's FLOPs among themselves.
def hidden__wrong_divided(schedule):
    """Transfer → FLOPs beside it."""
    beside, under_way = {}, set()
    for kind, what in schedule:
        if kind == "start":
            beside[what] = 0
            under_way.add(what)
        elif kind == "done":
            under_way.remove(what)
        else:
            for name in under_way:
                beside[name] += what / len(under_way)
    return beside


# This student keeps the sum of all FLOPs so far, and forgets to take off what it was at the start.
def hidden__wrong_no_difference(schedule):
    """Transfer → FLOPs beside it."""
    so_far, beside, under_way = 0, {}, set()
    for kind, what in schedule:
        if kind == "product":
            so_far += what
        elif kind == "start":
            under_way.add(what)
        elif what in under_way:
            under_way.remove(what)
            beside[what] = so_far
    return beside


# This student makes an entry when a product runs beside a transfer; those that have nothing beside them are missing.
def hidden__wrong_nothing_missing(schedule):
    """Transfer → FLOPs beside it."""
    beside, under_way = {}, []
    for kind, what in schedule:
        if kind == "start":
            under_way.append(what)
        elif kind == "done":
            under_way.remove(what)
        else:
            for name in under_way:
                beside[name] = beside.get(name, 0) + what
    return beside


# ---------------------------------------------------------------- compile_for


def compile_for__right_loop(shapes, dtype, specs, sizes):
    """Arrays that nobody has made, on chips that nobody has."""
    names, lengths = zip(*sizes.items())
    pod = AbstractMesh(tuple(lengths), tuple(names), axis_types=tuple(AxisType.Auto for _ in names))
    arrays = []
    for whole, spec in zip(shapes, specs):
        arrays.append(jax.ShapeDtypeStruct(tuple(whole), dtype, sharding=NamedSharding(pod, spec)))
    return arrays


# This student used the notebook's helper, which has the mesh x=4, y=2 of the notebook in it, whatever `sizes` says.
def compile_for__wrong_helper(shapes, dtype, specs, sizes):
    """Arrays that nobody has made, on chips that nobody has."""
    return [shape(*lengths, spec=spec, dtype=dtype) for lengths, spec in zip(shapes, specs)]


# This student thought that the compiler is given what one chip holds: the shape of a block.
def compile_for__wrong_blocks(shapes, dtype, specs, sizes):
    """Arrays that nobody has made, on chips that nobody has."""
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))

    def block(whole, spec):
        cut = list(whole)
        for k, names in enumerate(tuple(spec)):
            for name in (names,) if isinstance(names, str) else (names or ()):
                cut[k] //= sizes[name]
        return tuple(cut)

    return [
        jax.ShapeDtypeStruct(block(whole, spec), dtype, sharding=NamedSharding(pod, spec))
        for whole, spec in zip(shapes, specs)
    ]


# This student thought that an array needs a mesh of the axes that cut it, and of no others.
def compile_for__wrong_only_its_axes(shapes, dtype, specs, sizes):
    """Arrays that nobody has made, on chips that nobody has."""

    def mesh_of(spec):
        named = set()
        for part in tuple(spec):
            named |= {part} if isinstance(part, str) else set(part or ())
        axes = [name for name in sizes if name in named]
        return AbstractMesh(tuple(sizes[name] for name in axes), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))

    return [
        jax.ShapeDtypeStruct(whole, dtype, sharding=NamedSharding(mesh_of(spec), spec))
        for whole, spec in zip(shapes, specs)
    ]


# This student thought that where layouts are written down for the compiler, the axes have to be Explicit.
def compile_for__wrong_explicit(shapes, dtype, specs, sizes):
    """Arrays that nobody has made, on chips that nobody has."""
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))
    layouts = [NamedSharding(pod, spec) for spec in specs]
    return [jax.ShapeDtypeStruct(whole, dtype, sharding=layout) for whole, layout in zip(shapes, layouts)]
