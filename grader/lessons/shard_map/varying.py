"""§ 5, 7, 10, 12, the questions: types, in_specs, and who writes what, checked by running the experiment."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks, blocks_of
from grader.arrays.described import OnDevices, OnMesh
from grader.arrays.meshes import aval, make_mesh
from grader.arrays.numbers import close
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.jax_versions import axes_varied
from grader.lessons.shard_map.views import ERROR, MESH, device_map, eager_map, float32
from grader.programs.program import trace
from grader.programs.walk import compiled_structure, structure

# The types that check_vma tracks.

TYPED = {
    "w + b": lambda block, w, b: w + b,
    "psum(block, 'x')": lambda block, w, b: lax.psum(block, "x"),
    "all_gather(block, 'y')": lambda block, w, b: lax.all_gather(block, "y"),
    "axis_index('y')": lambda block, w, b: lax.axis_index("y"),
    "jnp.zeros(4)": lambda block, w, b: jnp.zeros(4),
}


def _traced(body, out):
    given = float32(8, 4), float32(16), float32(4)
    return jax.make_jaxpr(eager_map(body, (P("x", "y"), P("x"), P()), out, check_vma=True))(*given)


@functools.cache
def _varies_over(row):
    found = []

    def body(*given):
        found.extend(axes_varied(jax.typeof(TYPED[row](*given))))
        return given[0]

    _traced(body, P("x", "y"))
    return found


def _same_axes(one, other, **_):
    return set(one) == set(other)


VMA_TYPES_ASKS = {
    "": "Along which axes may two devices hold different values here? Go through the rules above: what shards the "
    "arguments of this line, and what does its operation remove or add?",
}
vma_types = TableExercise("vma_types", points=4, reference=_varies_over, same=_same_axes, questions=VMA_TYPES_ASKS)
vma_types.rows(TYPED, mesh=MESH)


@vma_types.mistake
def varies_over_the_whole_mesh(row):
    """This claims that it varies over both axes. A value varies over an axis only if the devices along it may hold
    different values. Which axes shard its inputs, and over which was it summed?"""
    return ["x", "y"]


@vma_types.mistake
def agrees_everywhere(row):
    """This claims that all eight devices hold the same value. Which axes shard the inputs, or does the value depend on
    the device's own index?"""
    return []


@vma_types.mistake
def varies_where_it_was_summed(row):
    """That is the axis of the psum. Along it, all devices hold the same sum afterward. Which axis is left?"""
    return ["x"] if row == "psum(block, 'x')" else None


@vma_types.mistake
def looked_at_the_values(row):
    """The values do agree along y. But the type is computed without looking at values. Which rule does all_gather
    have?"""
    return ["x"] if row.startswith("all_gather") else None


@vma_types.mistake
def varies_over_the_axis_of_the_other(row):
    """That is the other axis of the mesh. Which axis shards the inputs, or is named in the call?"""
    return {"w + b": ["y"], "axis_index('y')": ["x"]}.get(row)


# What the check is worth: three functions, with it and without.

PRICE_MESH = {"x": 4}
TERMS = np.arange(1, 9, dtype=np.float32)
PRICED = {  # body, its out_specs, and what should come out
    "A": (lambda block: lax.psum(block.sum(), "x"), P(), TERMS.sum()),
    "B": (lambda block: block.sum(), P(), TERMS.sum()),
    "C": (lambda block: lax.fori_loop(0, 3, lambda k, y: y + block, jnp.zeros(2)), P("x"), 3 * TERMS),
}
PRICES = [f"{body}, {check}" for body in PRICED for check in ("check on", "check off")]


@functools.cache
def _price(row):
    name, _, check = row.partition(", ")
    body, out, whole = PRICED[name]
    mapped = device_map(body, P("x"), out, PRICE_MESH, check_vma=check == "check on")
    try:
        held = blocks_of(mapped(jnp.asarray(TERMS)), PRICE_MESH)
    except (TypeError, ValueError):
        return "error"
    due = blocks(np.shape(whole), out, PRICE_MESH, whole).values
    return "right" if all(map(close, held.values, due)) else "wrong"


price_of_no_check = TableExercise("price_of_no_check", points=4, reference=_price)
price_of_no_check.rows(PRICES, mesh=PRICE_MESH)


@price_of_no_check.mistake
def took_it_for_a_remedy(row):
    """Without the check, JAX stops comparing, but nothing becomes correct by itself. What does each device hold at the
    end, and is it what is expected?"""
    return "right" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_off_means_wrong(row):
    """Without the check, JAX doesn't compare, but the devices compute what they always did. What does each device hold
    at the end, and is it what is expected?"""
    return "wrong" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_the_check_stays(row):
    """Without the check, nothing compares out_specs, or the carry of a loop, with what varies, so this runs. What does
    each device hold at the end?"""
    return "error" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_the_check_lets_all_through(row):
    """The check compares types, not values. Does the type of the result vary over x although out_specs leave it out,
    or does a carry change its type?"""
    return "right" if row.endswith("on") else None


@price_of_no_check.mistake
def thought_the_check_refuses_all(row):
    """The type of the result doesn't vary over x, as out_specs promise, so there is nothing to refuse. Which operation
    removed x from the type?"""
    return "error" if row.endswith("on") else None


@price_of_no_check.mistake
def thought_the_check_lets_wrong_ones_through(row):
    """With the check, a result that may vary over x can't be returned as P(), and a carry can't change its type. Both
    are errors, not wrong values. Does either of them happen here?"""
    return "wrong" if row.endswith("on") else None


# in_specs that differ from the array's sharding, on a mesh with Auto axes.

FITS = {
    "P('x', None) → P('x', None)": (P("x", None), P("x", None)),
    "P() → P('x', None)": (P(), P("x", None)),
    "P('x', None) → P('x', 'y')": (P("x", None), P("x", "y")),
    "P('x', None) → P()": (P("x", None), P()),
    "P('x', 'y') → P('x', None)": (P("x", "y"), P("x", None)),
    "P('x', None) → P(None, 'x')": (P("x", None), P(None, "x")),
}


@functools.cache
def _before(row):
    """What has to be sent for in_specs alone, before the body starts."""
    spec, wanted = FITS[row]
    mapped = eager_map(lambda block: 2 * block, wanted, wanted)
    written = structure(trace(mapped, aval((8, 8), jnp.float32, spec, make_mesh(MESH))))
    return "data is sent" if written.bytes_sent else "nothing is sent"


before_it_begins = TableExercise("before_it_begins", points=2, reference=_before)
before_it_begins.rows(FITS, mesh=MESH)


@before_it_begins.mistake
def thought_in_specs_only_describe(row):
    """A block has to be on its device before the function starts, and here a device lacks a part of its block. Which
    device does it get that part from?"""
    return "nothing is sent"


@before_it_begins.mistake
def thought_any_difference_moves(row):
    """Each device already holds the block that in_specs ask for, or more, and taking a part of it is free. Which rows
    and columns does device 5 hold, and which does it need?"""
    return "data is sent"


@before_it_begins.mistake
def thought_of_explicit_meshes(row):
    """An Explicit mesh refuses in_specs that differ from the sharding. With Auto axes, they are a request. What does
    JAX do if a device doesn't hold its block?"""
    return ERROR


# in_specs for an argument that is a tree.


def _layers(params, a):
    for layer in params:
        a = np.maximum(a @ layer["w"] + layer["b"], 0)
    return a


def _many_layers(params, a, mesh):
    return jax.device_put(_layers(params, np.asarray(a)), NamedSharding(mesh, P("x")))


many_layers = FunctionExercise("many_layers", points=3, reference=_many_layers)


@many_layers.cases
def _(draw):
    for depth, sizes in ((1, {"x": 8}), (3, {"x": 4})):
        mesh = OnMesh(sizes)
        widths = [int(n) for n in draw.rng.integers(2, 6, depth + 1)]
        params = [{"w": draw.values(m, n), "b": draw.values(n)} for m, n in itertools.pairwise(widths)]
        yield Case({"params": params, "a": OnDevices(draw.values(16, widths[0]), mesh, P("x")), "mesh": mesh})


def _apply(params, block):
    for layer in params:
        block = jax.nn.relu(block @ layer["w"] + layer["b"])
    return block


def _by_rows(params, a, mesh, ins, out=P("x")):
    return jax.jit(jax.shard_map(_apply, mesh=mesh, in_specs=ins, out_specs=out))(params, a)


@many_layers.mistake
def another_kind_of_tree(params, a, mesh):
    """This has a list instead of a tuple, or a dict instead of a list. To JAX these are different trees, even with the
    same contents. Which kind of tree do two arguments form, and which kind is `params`?"""
    return _by_rows(params, a, mesh, [P(), P("x")])


@many_layers.mistake
def specs_for_one_argument(params, a, mesh):
    """in_specs have one entry, and the function has two arguments. What is the spec of the other argument?"""
    return _by_rows(params, a, mesh, (P("x"),))


@many_layers.mistake
def specs_of_just_one_layer(params, a, mesh):
    """in_specs describe a list of one layer, but there may be three or thirty. Which spec applies to a list of any
    length?"""
    return _by_rows(params, a, mesh, ([{"w": P(), "b": P()}], P("x")))


@many_layers.mistake
def all_rows_stacked(params, a, mesh):
    """The result has the rows of the batch once for each device: each device got the full batch, and out_specs
    concatenated all results. Which of the two arguments is split by rows?"""
    return _by_rows(params, a, mesh, P())


@many_layers.mistake
def rows_on_everyone(params, a, mesh):
    """The result is replicated on every device, so every device computed all rows. Which in_specs and out_specs keep
    the rows split?"""
    return _by_rows(params, a, mesh, (P(), P()), P())


# One layer, and who can write its all-reduce: how many the compiled program has.

WAYS = {
    "Auto mesh: sigmoid(a @ w + b)": (False, "plain"),
    "Auto mesh: the same, constrained to P('y', None)": (False, "constraint"),
    "Auto mesh: shard_map, with one psum": (False, "manual"),
    "Explicit mesh: sigmoid(a @ w + b)": (True, "plain"),
    "Explicit mesh: jnp.dot(a, w, out_sharding=…)": (True, "out_sharding"),
    "Explicit mesh: constrained to P('y', None)": (True, "constraint"),
}


def _layer_in(way, mesh):
    where = NamedSharding(mesh, P("y", None))
    return {
        "plain": lambda x, w, b: jax.nn.sigmoid(x @ w + b),
        "constraint": lambda x, w, b: jax.nn.sigmoid(lax.with_sharding_constraint(x @ w, where) + b),
        "out_sharding": lambda x, w, b: jax.nn.sigmoid(jnp.dot(x, w, out_sharding=where) + b),
        "manual": jax.shard_map(
            lambda x, w, b: jax.nn.sigmoid(lax.psum(x @ w, "x") + b),
            mesh=mesh,
            in_specs=(P("y", "x"), P("x", None), P()),
            out_specs=P("y", None),
        ),
    }[way]


@functools.cache
def _all_reduces(row):
    explicit, way = WAYS[row]
    mesh = make_mesh(MESH, explicit=explicit)
    shapes = (((8, 16), P("y", "x")), ((16, 12), P("x", None)), ((12,), P()))
    given = [aval(shape, jnp.float32, spec, mesh) for shape, spec in shapes]
    try:
        compiled = jax.jit(_layer_in(way, mesh)).lower(*given).compile()
    except Exception:  # a ShardingTypeError or a ValueError, by version
        return ERROR
    return sum(c.kind == "all_reduce" for c in compiled_structure(compiled, MESH).collectives)


FOUR_WAYS_ASKS = {
    "Auto": "How many sums over devices does this layer need, no matter who writes them?",
    "out_sharding": "The program says how the result of the matmul is sharded. How many sums over devices does "
    "that take?",
    "Explicit": "On an Explicit mesh, JAX never guesses a sharding, and a constraint only asserts one. Does this "
    "program say how the result of the matmul is sharded?",
}
four_ways = TableExercise("four_ways", points=3, reference=_all_reduces, questions=FOUR_WAYS_ASKS)
four_ways.rows(WAYS, mesh=MESH)


@four_ways.mistake
def thought_the_product_needs_nothing(row):
    """The summed dimension is split along x, so each device has only a partial sum. How many sums over devices
    complete it, no matter who writes the program?"""
    return 0


@four_ways.mistake
def thought_explicit_decides_alone(row):
    """On an Explicit mesh, the sharding of a result is part of its type, and JAX doesn't guess it. Does this program
    say how the result of the matmul is sharded, in a way that an Explicit mesh accepts?"""
    return 1 if row.startswith("Explicit") else None


@four_ways.mistake
def thought_it_is_refused(row):
    """This program runs: it says as much about shardings as its mesh needs. How many sums over devices does it
    need?"""
    return ERROR


@four_ways.mistake
def counted_one_for_the_bias(row):
    """The bias and the sigmoid need nothing from other devices. Which operation does, and how often?"""
    return 2
