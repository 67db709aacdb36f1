"""Answers to lesson 21, fourteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shape(*lengths, spec, dtype=jnp.bfloat16):
    """An array that nobody has to make: its shape, dtype and layout."""
    return jax.ShapeDtypeStruct(lengths, dtype, sharding=NamedSharding(mesh, spec))


def compile_for__right_unzipped(shapes, dtype, specs, sizes):
    """Arrays that nobody has made, on chips that nobody has."""
    names, lengths = zip(*sizes.items())
    pod = AbstractMesh(lengths, names, axis_types=tuple(AxisType.Auto for _ in names))
    described = []
    for whole, spec in zip(shapes, specs):
        described.append(jax.ShapeDtypeStruct(tuple(whole), dtype, sharding=NamedSharding(pod, spec)))
    return described


# The compiler makes the program of one chip, so it has to be given the shapes of one chip's blocks.
def compile_for__wrong_blocks(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    out = []
    for whole, spec in zip(shapes, specs):
        block = list(whole)
        for k, part in enumerate(spec):
            for name in part if isinstance(part, tuple) else (part,):
                if name is not None:
                    block[k] //= sizes[name]
        out.append(jax.ShapeDtypeStruct(tuple(block), dtype, sharding=NamedSharding(pod, spec)))
    return out


# Layouts are written down explicitly here, so the axes are Explicit.
def compile_for__wrong_explicit(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))
    return [jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(pod, spec)) for s, spec in zip(shapes, specs)]


# `shape` above does just that; the mesh is the notebook's.
def compile_for__wrong_notebook_mesh(shapes, dtype, specs, sizes):
    return [shape(*lengths, spec=spec, dtype=dtype) for lengths, spec in zip(shapes, specs)]


# A mesh is made by jax.make_mesh; only the arrays need not exist.
def compile_for__wrong_devices(shapes, dtype, specs, sizes):
    pod = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    result = []
    for i in range(len(shapes)):
        result.append(jax.ShapeDtypeStruct(shapes[i], dtype, sharding=NamedSharding(pod, specs[i])))
    return result


def hbm__right_new_results(arguments, results, temporaries, shared, peak, room):
    """(bytes of the parts, whether the program fits into so many GiB)."""
    other_results = results - shared  # the rest lies where donated arguments lay
    total = sum((arguments, other_results, temporaries))
    return total, not peak / 2**30 > room


# Whether it fits is whether all its parts together find room.
def hbm__wrong_sum_decides(arguments, results, temporaries, shared, peak, room):
    total = arguments + results + temporaries - shared
    return total, total <= room * 2**30


# Shared is a part as the others are, and all parts are added up.
def hbm__wrong_shared_added(arguments, results, temporaries, shared, peak, room):
    total = arguments + results + temporaries + shared
    fits = peak <= room * 2**30
    return total, fits


# A chip keeps a quarter of a GiB for itself, so that has to be taken off the room.
def hbm__wrong_quarter_again(arguments, results, temporaries, shared, peak, room):
    total = arguments + (results - shared) + temporaries
    return total, peak <= (room - 0.25) * 2**30


# A GiB is a thousand million bytes.
def hbm__wrong_gigabytes(arguments, results, temporaries, shared, peak, room):
    total = arguments + results + temporaries - shared
    return total, peak / 10**9 <= room


def mfu__right_ideal_time(parameters, tokens, seconds, chips, peak):
    """Model FLOPs utilisation, 0 to 1."""
    at_the_peak = (2 + 4) * parameters * tokens / (chips * peak)  # seconds, if nobody ever waited
    return at_the_peak / seconds


# The forward pass is computed once more on the way back, which makes eight FLOPs for each parameter and token.
def mfu__wrong_recomputed(parameters, tokens, seconds, chips, peak):
    return 8 * parameters * tokens / (seconds * chips * peak)


# Utilisation is FLOPs a second over the peak; the chips all run the same program, so their number does not matter.
def mfu__wrong_no_chips(parameters, tokens, seconds, chips, peak):
    achieved = 6 * parameters * tokens / seconds
    return achieved / peak


# A utilisation is given in per cent.
def mfu__wrong_percent(parameters, tokens, seconds, chips, peak):
    needed = 6 * parameters * tokens
    possible = seconds * chips * peak
    return 100 * needed / possible


# A parameter is multiplied and added once for every token: two FLOPs; the backward pass is the optimizer's affair.
def mfu__wrong_forward_only(parameters, tokens, seconds, chips, peak):
    return 2 * parameters * tokens / (seconds * chips * peak)
