"""Answers to lesson 10, as students give them: written from the student's notebook alone."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def differences(series):
    """Each row minus the one before it, the first minus the last. Part 7 borrows this."""
    return series - jnp.roll(series, 1, axis=0)


modes__right_plain = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}
"""As it is."""

modes__wrong_explicit_has_blocks = modes__right_plain | {"a.shape is that of one device's block": "Explicit"}
"""Thinks that an Explicit array has the shape of a block, since its type shows the cut."""

modes__wrong_constraints_everywhere = modes__right_plain | {
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Explicit",
}
"""Takes Explicit for the mode in which one says constraints, and the compiler does the rest."""

modes__wrong_psum_in_explicit = modes__right_plain | {
    "you call jax.lax.psum": "Explicit",
}
"""Swaps Explicit and Manual: explicit collectives."""


def half_mesh__right_plain(second, sizes):
    """As in the hints."""
    devices = jax.devices()[4:] if second else jax.devices()[:4]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )


def half_mesh__right_mesh_class(second, sizes):
    """Builds the Mesh itself, of an array of devices."""
    devices = np.array(jax.devices()).reshape(2, -1)[int(second)]
    return Mesh(devices.reshape(*sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))


def half_mesh__wrong_mesh_auto(second, sizes):
    """Builds Mesh without axis_types: Auto."""
    devices = jax.devices()[4:] if second else jax.devices()[:4]
    return Mesh(np.array(devices).reshape(tuple(sizes.values())), tuple(sizes))


def half_mesh__wrong_first_half_always(second, sizes):
    """Forgets `second`."""
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=jax.devices()[:4]
    )


def half_mesh__wrong_every_second(second, sizes):
    """Takes every second device for a half."""
    devices = jax.devices()[1::2] if second else jax.devices()[::2]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )


def half_mesh__wrong_two_axes(second, sizes):
    """Always gives two types, as in the example of the text."""
    devices = jax.devices()[4 * second : 4 * second + 4]
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * 2, devices=devices)


def half_mesh__wrong_halves_swapped(second, sizes):
    """The condition the wrong way round."""
    devices = jax.devices()[:4] if second else jax.devices()[4:]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )


def half_mesh__wrong_no_return(second, sizes):
    """Forgets the return."""
    devices = jax.devices()[4:] if second else jax.devices()[:4]
    half = jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )
    print(half)


typeof__right_plain = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}
"""As it is."""

typeof__wrong_transpose_keeps_the_spec = typeof__right_plain | {"jnp.sin(a).T": "float32[8@x,16@y]"}
"""Transposes the shape, and leaves the axes where they were."""

typeof__wrong_sums = typeof__right_plain | {"a.sum(0)": "float32[16@x]"}
"""Sums along the other dimension, and takes a scalar for one entry."""

typeof__wrong_blocks = typeof__right_plain | {"r @ s": "float32[32@x,24]"}
"""Believes that zeros take the layout of the mesh, and that a product follows its left side alone."""

"""Believes that joining along a cut makes whole, and that vmap sums the rows away."""

will_it_type__right_plain = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}
"""As it is."""

will_it_type__wrong_strict = will_it_type__right_plain | {"R + N": "rule 2", "C @ N": "rule 2"}
"""Believes that whole and cut do not agree."""

will_it_type__wrong_column_index = will_it_type__right_plain | {"R[0]": "ok"}
"""Confuses the dimension that an index takes with the one that is left."""

will_it_type__wrong_rule_3_for_all = will_it_type__right_plain | {
    "C @ R": "rule 3",
    "R + C": "rule 2",
}
"""Mixes up rules 2 and 3."""

four_answers__right_plain = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}
"""As it is."""

four_answers__wrong_gathers = four_answers__right_plain | {"P()": "all_gather"}
"""A whole result must be gathered, this student believes."""

four_answers__wrong_columns_only_gather = four_answers__right_plain | {
    'P("x", None)': "none",
    'P(None, "x")': "all_gather",
}
"""Believes that rows over x are there already, as in case 2."""

four_answers__wrong_unreduced_reduces = four_answers__right_plain | {'P(unreduced={"x"})': "all_reduce"}
"""Thinks that unreduced names the axis to reduce over."""


def relaid__right_plain(a, *, mesh):
    """As in the cell above."""
    return reshard(a + 1, NamedSharding(mesh, P("y", "x")))


def relaid__right_set_mesh(a, *, mesh):
    """Sets the mesh for one line, and writes a bare P."""
    with jax.set_mesh(mesh):
        return reshard(a + 1, P("y", "x"))


def relaid__right_moved_first(a, *, mesh):
    """Moves first, and adds then."""
    moved = (
        jax.reshard(a, NamedSharding(mesh, P("y", "x")))
        if hasattr(jax, "reshard")
        else reshard(a, NamedSharding(mesh, P("y", "x")))
    )
    return moved + 1


def relaid__wrong_constraint(a, *, mesh):
    """The old word, with a sharding of the mesh."""
    return jax.lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P("y", "x")))


def relaid__wrong_bare(a, *, mesh):
    """A bare P, without a mesh in force."""
    return reshard(a + 1, P("y", "x"))


def relaid__wrong_transposed(a, *, mesh):
    """Takes a transposed array for a transposed layout."""
    return (a + 1).T


def relaid__wrong_no_add(a, *, mesh):
    """Forgets the + 1."""
    return reshard(a, NamedSharding(mesh, P("y", "x")))


def relaid__wrong_one_axis(a, *, mesh):
    """Cuts the rows only."""
    return reshard(a + 1, NamedSharding(mesh, P("y")))


def relaid__wrong_as_before(a, *, mesh):
    """Writes the spec that the array has."""
    return reshard(a + 1, NamedSharding(mesh, P("x", "y")))


def explicit_layer__right_plain(a, b, *, mesh):
    """As in the hints."""
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None))))


def explicit_layer__right_einsum(a, b, *, mesh):
    """By einsum."""
    return jax.nn.relu(jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P("x"))))


def explicit_layer__right_unreduced(a, b, *, mesh):
    """Leaves the sum open, and makes it with reshard."""
    parts = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None, unreduced={"y"})))
    return jax.nn.relu(reshard(parts, NamedSharding(mesh, P("x", None))))


def explicit_layer__wrong_unchanged(a, b, *, mesh):
    """The tutorial's line as it stands."""
    return jax.nn.relu(a @ b)


def explicit_layer__wrong_no_relu(a, b, *, mesh):
    """Forgets the relu."""
    return jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None)))


def explicit_layer__wrong_whole(a, b, *, mesh):
    """Asks for a result that is whole everywhere."""
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P())))


def explicit_layer__wrong_gathered(a, b, *, mesh):
    """Makes both operands whole along y first."""
    a, b = reshard(a, NamedSharding(mesh, P("x", None))), reshard(b, NamedSharding(mesh, P()))
    return jax.nn.relu(a @ b)


def explicit_layer__wrong_relu_of_parts(a, b, *, mesh):
    """By hand, relu in front of the sum."""

    def body(a, b):
        return jax.lax.psum(jax.nn.relu(a @ b), "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


def explicit_layer__wrong_scattered(a, b, *, mesh):
    """Leaves the columns cut over y."""
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", "y"))))


def fix_types__right_plain(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """One keyword more."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None))) + b3


def fix_types__right_short_spec(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Another style, and a spec of one entry."""
    for W, b in ((W1, b1), (W2, b2)):
        x = jnp.maximum(x @ W + b, 0)
    return b3 + jnp.einsum("bh,ho->bo", x, W3, out_sharding=NamedSharding(mesh, P("batch")))


def fix_types__wrong_whole(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Asks for a whole result."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P())) + b3


def fix_types__wrong_gathers_hidden(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Gathers hidden layer and weights in front of the third product."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    hidden = reshard(hidden, NamedSharding(mesh, P("batch", None)))
    return jnp.dot(hidden, reshard(W3, NamedSharding(mesh, P()))) + b3


def fix_types__wrong_bias_forgotten(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Loses the last bias while repairing."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None)))


def fix_types__wrong_relu_at_the_end(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Puts a relu behind the last layer too."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jax.nn.relu(jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None))) + b3)


def fix_types__wrong_rows_only_by_model(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Names the wrong axis."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P(None, "model"))) + b3


def fix_types__wrong_every_product(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Gives the keyword to every product, so that the hidden layer is whole along model."""
    rows = NamedSharding(mesh, P("batch", None))
    hidden = jax.nn.relu(jnp.dot(x, W1, out_sharding=rows) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2, out_sharding=rows) + b2)
    return jnp.dot(hidden, W3, out_sharding=rows) + b3


def embed__right_plain(table, ids, *, mesh):
    """As in the hints."""
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, "y")))


def embed__right_auto_axes(table, ids, *, mesh):
    """Lets the compiler look up."""
    return auto_axes(lambda t, i: t[i])(table, ids, out_sharding=NamedSharding(mesh, P("x", None, "y")))


def embed__wrong_plain(table, ids, *, mesh):
    """Indexes as ever."""
    return table[ids]


def embed__wrong_two_entries(table, ids, *, mesh):
    """Forgets that the result has three dimensions."""
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", "y")))


def embed__wrong_columns_gathered(table, ids, *, mesh):
    """Cuts the result by ids only."""
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


def embed__wrong_words_from_one(table, ids, *, mesh):
    """Counts words from one."""
    return table.at[ids - 1].get(out_sharding=NamedSharding(mesh, P("x", None, "y")))


def embed__wrong_columns_of_the_table(table, ids, *, mesh):
    """Looks up along the other dimension."""
    return table.at[:, ids].get(out_sharding=NamedSharding(mesh, P("y", "x", None)))


def borrowed__right_plain(series, *, mesh):
    """As in the hints."""
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P("x", None)))


def borrowed__right_decorated(series, *, mesh):
    """Wraps once, under a name, with the array's own sharding."""
    free = auto_axes(differences)
    return free(series, out_sharding=jax.typeof(series).sharding)


def borrowed__wrong_plain(series, *, mesh):
    """Calls it as it is."""
    return differences(series)


def borrowed__wrong_no_out(series, *, mesh):
    """Forgets the keyword."""
    return auto_axes(differences)(series)


def borrowed__wrong_not_called(series, *, mesh):
    """Returns the function."""
    return auto_axes(differences)


def borrowed__wrong_by_blocks(series, *, mesh):
    """Runs it on each device's block."""
    return jax.shard_map(differences, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


def borrowed__wrong_gathered(series, *, mesh):
    """Gathers everything, and cuts it again."""
    whole = differences(reshard(series, NamedSharding(mesh, P())))
    return reshard(whole, NamedSharding(mesh, P("x", None)))


def borrowed__wrong_whole_result(series, *, mesh):
    """Does not cut the result."""
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P()))


unreduced__right_plain = {"p + p": "yes", "jnp.cos(p)": "no", "p * p": "no", "p + N": "no", "reshard(p, whole)": "yes"}
"""As it is."""

unreduced__wrong_products_too = unreduced__right_plain | {"p * p": "yes"}
"""Believes that what adds also multiplies."""

unreduced__wrong_adding_whole = unreduced__right_plain | {"p + N": "yes"}
"""Believes that whatever is added commutes with adding."""

unreduced__wrong_nothing_allowed = unreduced__right_plain | {"p + p": "no"}
"""Thinks that an open sum may not be touched."""


def lora__right_plain(x, W, A, B, *, mesh):
    """As in the hints."""
    later = NamedSharding(mesh, P(unreduced={"x"}))
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    total = jnp.dot(cut, W, out_sharding=later) + jnp.dot(jnp.dot(x, A), B, out_sharding=later)
    return reshard(total, NamedSharding(mesh, P()))


def lora__right_by_hand(x, W, A, B, *, mesh):
    """With shard_map and one psum."""

    def body(x, own, W, A, B):
        return jax.lax.psum(own @ W + (x @ A) @ B, "x")

    specs = P(), P(None, "x"), P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P())(
        x, reshard(x, NamedSharding(mesh, P(None, "x"))), W, A, B
    )


def lora__wrong_two_sums(x, W, A, B, *, mesh):
    """Finishes each product by itself."""
    whole = NamedSharding(mesh, P())
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=whole) + jnp.dot(x @ A, B, out_sharding=whole)


def lora__wrong_left_open(x, W, A, B, *, mesh):
    """Forgets to finish the sum."""
    later = NamedSharding(mesh, P(unreduced={"x"}))
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=later) + jnp.dot(x @ A, B, out_sharding=later)


def lora__wrong_gathered_weight(x, W, A, B, *, mesh):
    """Gathers W, and sums the adapter."""
    whole = NamedSharding(mesh, P())
    return x @ reshard(W, whole) + jnp.dot(x @ A, B, out_sharding=whole)


def lora__wrong_adapter_first(x, W, A, B, *, mesh):
    """Multiplies A and B first."""
    later = NamedSharding(mesh, P(unreduced={"x"}))
    adapted = jnp.dot(A, B, out_sharding=NamedSharding(mesh, P("x", None)))
    return reshard(
        jnp.dot(reshard(x, NamedSharding(mesh, P(None, "x"))), W + adapted, out_sharding=later),
        NamedSharding(mesh, P()),
    )


def lora__wrong_base_alone(x, W, A, B, *, mesh):
    """Loses the adapter."""
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=NamedSharding(mesh, P()))


def lora__wrong_x_not_cut(x, W, A, B, *, mesh):
    """Leaves x whole, and asks for an open sum all the same."""
    later = NamedSharding(mesh, P(unreduced={"x"}))
    return reshard(jnp.dot(x, W, out_sharding=later) + jnp.dot(x @ A, B, out_sharding=later), NamedSharding(mesh, P()))


def embed__wrong_never_row_zero(table, ids, *, mesh):
    """Row 0 is never looked up."""
    return table.at[jnp.maximum(ids, 1)].get(out_sharding=NamedSharding(mesh, P("x", None, "y")))


def embed__wrong_never_the_last_row(table, ids, *, mesh):
    """One too few rows."""
    return table.at[jnp.minimum(ids, len(table) - 2)].get(out_sharding=NamedSharding(mesh, P("x", None, "y")))


def relaid__wrong_left_to_an_inner_jit(a, *, mesh):
    """Right where it is called by itself: within a larger program the type of the result is that of the operand."""
    return jax.jit(lambda a: a + 1, out_shardings=NamedSharding(mesh, P("y", "x")))(a)


def relaid__right_put(a, *, mesh):
    """As an array is laid out anywhere."""
    return jax.device_put(a + 1, NamedSharding(mesh, P("y", "x")))
