"""§ 7–10, the questions: types, in_specs, and who writes what, judged by doing the experiment."""

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
from grader.lessons.shard_map.views import ERROR, MESH, device_map, eager_map, float32, seen_shape
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
TAKEN = "b, as it is when w + b takes it"


def _traced(body, out):
    given = float32(8, 4), float32(16), float32(4)
    return jax.make_jaxpr(eager_map(body, (P("x", "y"), P("x"), P()), out, check_vma=True))(*given)


@functools.cache
def _varies_over(row):
    if row == TAKEN:  # the second operand of the one addition in the traced body
        inner = _traced(lambda block, w, b: w + b, P("x")).eqns[0].params["jaxpr"]
        (add,) = [e for e in getattr(inner, "jaxpr", inner).eqns if e.primitive.name == "add"]
        return axes_varied(add.invars[1].aval)
    found = []

    def body(*given):
        found.extend(axes_varied(jax.typeof(TYPED[row](*given))))
        return given[0]

    _traced(body, P("x", "y"))
    return found


def _same_axes(one, other, **_):
    return set(one) == set(other)


VMA_TYPES_ASKS = {
    "": "Along which axes may two devices hold different values here? What is cut along an axis differs "
    "along it; what was added up over it does not.",
}
vma_types = TableExercise("vma_types", points=4, reference=_varies_over, same=_same_axes, questions=VMA_TYPES_ASKS)
vma_types.rows((*TYPED, TAKEN), mesh=MESH)


@vma_types.mistake
def varies_over_the_whole_mesh(row):
    """Both axes? A value varies over an axis only when devices along it may hold different values. Which axes cut what
    it is made of, and which were summed over?"""
    return ["x", "y"]


@vma_types.mistake
def agrees_everywhere(row):
    """No axis at all would mean that all eight devices hold the same. What tells one device from another here: how was
    that cut, of which it is made, or its own place in the mesh?"""
    return None if row == TAKEN else []


@vma_types.mistake
def left_as_it_came_in(row):
    """b comes in whole, and every device holds the same. But an addition takes two operands of the same type. What does
    JAX do to b first, and what is the type of w?"""
    return [] if row == TAKEN else None


@vma_types.mistake
def varies_where_it_was_summed(row):
    """After a psum the devices along *its* axis agree: that axis leaves the type, the other stays."""
    return ["x"] if row == "psum(block, 'x')" else None


@vma_types.mistake
def looked_at_the_values(row):
    """So it is with the values: they agree along y. But the type is worked out without looking at values, and for
    all_gather the rule is that its result still counts as varying."""
    return ["x"] if row.startswith("all_gather") else None


@vma_types.mistake
def varies_over_the_axis_of_the_other(row):
    """That is the other axis. What was cut along which axis, and what does the call name?"""
    return {"w + b": ["y"], "axis_index('y')": ["x"], TAKEN: ["y"]}.get(row)


# What the check is worth: five bodies, with it and without.

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
    """Taking off the check does not make anything right: it stops JAX from looking, and from inserting what the types
    ask for. Work out what each device holds at the end. Is it the same on all of them?"""
    return "right" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_off_means_wrong(row):
    """Without the check JAX does not look, but what devices compute stays what it is. Work out what each of them holds
    at the end. Is it what out_specs say?"""
    return "wrong" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_the_check_stays(row):
    """Without the check nobody compares out_specs, or a loop's carry, with what varies. This runs. What comes out is
    another question."""
    return "error" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_the_check_lets_all_through(row):
    """The check works on types. Ask of each body: may what it returns vary over x, by its type, and do out_specs
    allow for that? Does a carry keep its type?"""
    return "right" if row.endswith("on") else None


@price_of_no_check.mistake
def thought_the_check_refuses_all(row):
    """The type that comes out does not vary over x, as out_specs promise. There is nothing to refuse."""
    return "error" if row.endswith("on") else None


@price_of_no_check.mistake
def thought_the_check_lets_wrong_ones_through(row):
    """With the check on, a result that may vary over x is not let out as P(), and a carry may not change its type:
    either is an error, and no wrong number comes out. Is there one of them here?"""
    return "wrong" if row.endswith("on") else None


# in_specs that differ from how the array is laid out, on a mesh of Auto axes.

FITS = {
    "laid out as P('x', None), in_specs P('x', None)": (P("x", None), P("x", None)),
    "laid out as P(), in_specs P('x', None)": (P(), P("x", None)),
    "laid out as P('x', None), in_specs P('x', 'y')": (P("x", None), P("x", "y")),
    "laid out as P('x', None), in_specs P()": (P("x", None), P()),
    "laid out as P('x', 'y'), in_specs P('x', None)": (P("x", "y"), P("x", None)),
    "laid out as P('x', None), in_specs P(None, 'x')": (P("x", None), P(None, "x")),
}


@functools.cache
def _before(row):
    """What has to be sent for in_specs alone, before the body begins."""
    spec, wanted = FITS[row]
    mapped = eager_map(lambda block: 2 * block, wanted, wanted)
    written = structure(trace(mapped, aval((8, 8), jnp.float32, spec, make_mesh(MESH))))
    return "data move" if written.bytes_sent else "nothing moves"


before_it_begins = TableExercise("before_it_begins", points=2, reference=_before)
before_it_begins.rows(FITS, mesh=MESH)


@before_it_begins.mistake
def thought_in_specs_only_describe(row):
    """A block has to be on its device before the function begins. Does the device hold all of the block that in_specs
    ask for? What it lacks must come from somewhere."""
    return "nothing moves"


@before_it_begins.mistake
def thought_any_difference_moves(row):
    """Each device already holds the block that in_specs ask for, or more than it. Cutting a piece off what one holds
    costs nothing on the wire."""
    return "data move"


@before_it_begins.mistake
def thought_of_explicit_meshes(row):
    """An Explicit mesh refuses in_specs that differ from the layout. With Auto axes JAX takes in_specs for a wish, and
    moves the data without a word where it must."""
    return ERROR


# in_specs for several arguments, and for arguments that are trees.

TREE = {"w": float32(8, 4), "b": float32(4)}
TREES = {
    "(P(), P('x'))": (P(), P("x")),
    "({'w': P('x'), 'b': P()}, P('x'))": ({"w": P("x"), "b": P()}, P("x")),
    "[P(), P('x')]": [P(), P("x")],
    "({'w': P('x')}, P('x'))": ({"w": P("x")}, P("x")),
    "(P('x', None), P('x'))": (P("x", None), P("x")),
    "(P(), P('z'))": (P(), P("z")),
}


@functools.cache
def _taken(row):
    mapped = device_map(lambda params, x: x, TREES[row], P("x"), {"x": 4})
    try:
        jax.eval_shape(mapped, TREE, float32(8, 8))
    except Exception as error:  # which class is raised differs between versions of JAX
        return _what_is_wrong(str(error))
    return "runs"


def _what_is_wrong(message):
    if "pytree" in message or "tuple" in message and "list" in message:
        return "wrong tree"
    return "too long" if "rank" in message or "too long" in message else "no such axis"


FAULTS_OF_SPECS = {
    "no such axis": "So it is where a spec names an axis that the mesh lacks. Which name is it here?",
    "too long": "So it is where a spec has more entries than an array that it is for has dimensions. Which spec, "
    "and which array?",
    "wrong tree": "So it is where the specs are not built as the arguments are, or as their beginning. Where do the "
    "two part?",
}
pytree_specs = TableExercise("pytree_specs", points=3, reference=_taken, options=FAULTS_OF_SPECS)
pytree_specs.rows(TREES, mesh={"x": 4})


@pytree_specs.mistake
def took_a_list_for_a_tuple(row):
    """The arguments of a call are a tuple, and to JAX a list is another tree than a tuple, even with the same
    things in it."""
    return "runs" if row.startswith("[") else None


@pytree_specs.mistake
def thought_the_rest_is_replicated(row):
    """What in_specs do not mention is not replicated by itself. A tuple needs an entry for each argument, a dict one
    for each key."""
    return "runs" if row in ("({'w': P('x')}, P('x'))") else None


@pytree_specs.mistake
def wanted_a_spec_for_every_leaf(row):
    """One spec may stand for a whole tree of arrays: in_specs need only be a *prefix* of the arguments' tree. P(…) for
    a dict goes for all that is in it."""
    return "wrong tree" if row in ("(P(), P('x'))") else None


@pytree_specs.mistake
def counted_only_the_first_array(row):
    """The spec goes for every array in the dict. Do all of them have two dimensions?"""
    return "runs" if row == "(P('x', None), P('x'))" else None


@pytree_specs.mistake
def overlooked_the_name(row):
    """A spec names axes of *this* mesh, which has a single one, x. Hold every name in the specs against
    `mesh.axis_names`."""
    return "runs" if row == "(P(), P('z'))" else None


@pytree_specs.mistake
def thought_the_tree_is_at_fault(row):
    """The tree fits: there is a spec for every argument. Hold each spec against its arrays and the mesh."""
    return "wrong tree" if row in ("(P('x', None), P('x'))", "(P(), P('z'))") else None


@pytree_specs.mistake
def thought_an_array_too_short(row):
    """A spec is too long when it has more entries than its array has dimensions. `b` has one dimension; how many
    entries does it get here?"""
    return "too long" if row in ("(P(), P('x'))", "({'w': P('x'), 'b': P()}, P('x'))") else None


def _layers(params, x):
    for layer in params:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x


def _many_layers(params, x, mesh):
    return jax.device_put(_layers(params, np.asarray(x)), NamedSharding(mesh, P("x")))


many_layers = FunctionExercise("many_layers", points=3, reference=_many_layers)


@many_layers.cases
def _(draw):
    for depth, sizes in ((1, {"x": 8}), (3, {"x": 4})):
        mesh = OnMesh(sizes)
        widths = [int(n) for n in draw.rng.integers(2, 6, depth + 1)]
        params = [{"w": draw.values(m, n), "b": draw.values(n)} for m, n in itertools.pairwise(widths)]
        yield Case({"params": params, "x": OnDevices(draw.values(16, widths[0]), mesh, P("x")), "mesh": mesh})


def _apply(params, block):
    for layer in params:
        block = jax.nn.relu(block @ layer["w"] + layer["b"])
    return block


def _by_rows(params, x, mesh, ins, out=P("x")):
    return jax.jit(jax.shard_map(_apply, mesh=mesh, in_specs=ins, out_specs=out))(params, x)


@many_layers.mistake
def another_kind_of_tree(params, x, mesh):
    """A list where a tuple should stand, or a dict where a list should: to JAX these are different trees, even with
    the same things in them. Two arguments come as a tuple, and params are a list."""
    return _by_rows(params, x, mesh, [P(), P("x")])


@many_layers.mistake
def specs_for_one_argument(params, x, mesh):
    """in_specs have one entry, and the function takes two arguments. Each needs a spec of its own."""
    return _by_rows(params, x, mesh, (P("x"),))


@many_layers.mistake
def specs_of_just_one_layer(params, x, mesh):
    """in_specs describe a list of one layer. There may be three, or thirty: which spec stands for a list of any
    length?"""
    return _by_rows(params, x, mesh, ([{"w": P(), "b": P()}], P("x")))


@many_layers.mistake
def all_rows_stacked(params, x, mesh):
    """The rows of the batch come out once for every device: each got the whole batch, and out_specs put what all of
    them return one behind the other. Which of the two arguments is cut by rows?"""
    return _by_rows(params, x, mesh, P())


@many_layers.mistake
def rows_on_everyone(params, x, mesh):
    """The result is whole on every device. Did each of them compute all rows? x is cut by rows; leave it so, and let
    every device do its own."""
    return _by_rows(params, x, mesh, (P(), P()), P())


# Manual along some axes only.

DATA_MODEL = {"data": 4, "model": 2}
PARTIAL = {
    "in_specs=P('data', 'model'), no axis_names": (P("data", "model"), {}),
    "in_specs=P('data'), axis_names={'data'}": (P("data"), {"axis_names": {"data"}}),
    "in_specs=P(None, 'model'), axis_names={'model'}": (P(None, "model"), {"axis_names": {"model"}}),
    "in_specs=P(), axis_names={'data'}": (P(), {"axis_names": {"data"}}),
    "in_specs=P('data', 'model'), axis_names={'data'}": (P("data", "model"), {"axis_names": {"data"}}),
}


@functools.cache
def _partial_shape(row):
    spec, options = PARTIAL[row]
    try:
        return seen_shape((16, 8), spec, sizes=DATA_MODEL, **options)
    except ValueError:
        return ERROR


PARTIAL_VIEW_ASKS = {
    "": "Only an axis that is manual *and* named in in_specs cuts what the function sees. Which axes are "
    "manual here? And in_specs may name no other.",
}
partial_view = TableExercise("partial_view", points=3, reference=_partial_shape, questions=PARTIAL_VIEW_ASKS)
partial_view.rows(PARTIAL, mesh=DATA_MODEL)


@partial_view.mistake
def cut_by_the_compilers_axis_too(row):
    """The axes that axis_names leave out are the compiler's. The array may well be cut along them, but your function
    does not see it: along these it has the global view."""
    return (4, 4)


@partial_view.mistake
def saw_everything(row):
    """Along a manual axis that in_specs name your function sees a block, as it does in any shard_map. Which axes are
    manual here, and which do in_specs name?"""
    return (16, 8) if row not in ("in_specs=P(), axis_names={'data'}",) else None


@partial_view.mistake
def saw_whole_columns(row):
    """in_specs name model, which is left to the compiler here. in_specs may speak of the manual axes only."""
    return (4, 8) if row.startswith("in_specs=P('data', 'model'), axis") else None


@partial_view.mistake
def expected_a_refusal(row):
    """Nothing here is refused: in_specs name only axes that are manual. Leaving one out means copies along it."""
    return ERROR


# One layer, and who may write its all-reduce: the number of them in the compiled program.

WAYS = {
    "Auto mesh: sigmoid(x @ w + b)": (False, "plain"),
    "Auto mesh: the same, constrained to P('y', None)": (False, "constraint"),
    "Auto mesh: shard_map, with one psum": (False, "manual"),
    "Explicit mesh: sigmoid(x @ w + b)": (True, "plain"),
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": (True, "out_sharding"),
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
    "Auto": "How many sums over devices does this layer need, whoever writes them?",
    "out_sharding": "The program says how the product is to be laid out. How many sums over devices does that take?",
    "Explicit": "On an Explicit mesh JAX lays nothing out by itself, and a constraint only says what is so "
    "already. Does this program say how the product is laid out?",
}
four_ways = TableExercise("four_ways", points=3, reference=_all_reduces, questions=FOUR_WAYS_ASKS)
four_ways.rows(WAYS, mesh=MESH)


@four_ways.mistake
def thought_the_product_needs_nothing(row):
    """The contracted dimension is cut along x, so every device has only one part of the sum. Whoever writes the
    program, the parts have to be added."""
    return 0


@four_ways.mistake
def thought_explicit_decides_alone(row):
    """With Explicit axes the layout of a result is part of its type, and JAX does not guess it where several would do.
    Has this program said how the product should be laid out, in a way that an Explicit mesh takes?"""
    return 1 if row.startswith("Explicit") else None


@four_ways.mistake
def thought_it_is_refused(row):
    """This one runs: it says as much about layouts as its mesh needs to know."""
    return ERROR


@four_ways.mistake
def counted_one_for_the_bias(row):
    """Adding the bias and the sigmoid need nothing of other devices: after the sum every device goes on by itself."""
    return 2
