"""Answers to lesson 10, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


unreduced__right_linear = dict(
    zip(("p + p", "jnp.cos(p)", "p * p", "p + N", "reshard(p, whole)"), ("yes", "no", "no", "no", "yes"))
)

# N is whole and agrees with everything, and adding commutes with adding.
unreduced__wrong_add_whole = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "yes",
    "reshard(p, whole)": "yes",
}

# Two arrays of the same type, entry by entry: p * p is done part by part just as p + p is.
unreduced__wrong_same_type = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "yes",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# No device has the value yet, so nothing may be computed with it before the reshard.
unreduced__wrong_nothing_before_sum = {
    "p + p": "no",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# A reshard only moves blocks and adds nothing up, that takes a psum; additions run, also that of N (each device has all of it).
unreduced__wrong_reshard_only_moves = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "yes",
    "reshard(p, whole)": "no",
}


typeof__right_read_off = {
    "jnp.sin(a).T": "float32[8@y, 16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x, 8@y]",
    "v[:, None] * w": "float32[16@x, 8@y]",
    "r @ s": "float32[32@x, 24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x, 8@y]",
}

# A transpose turns the lengths round; the first dimension is still cut over x and the second over y.
typeof__wrong_axes_stay_in_place = {
    "jnp.sin(a).T": "float32[8@x,16@y]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# A sum over a cut dimension needs an all-reduce, and after an all-reduce everything is whole: also the gradient of a sum.
typeof__wrong_all_reduce_makes_whole = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16,8]",
}

# Where one operand's dimension is whole (or stretched from 1), the result's is whole, too.
typeof__wrong_whole_wins = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8]",
    "v[:, None] * w": "float32[16,8]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# sum(0) sums within rows, so that the rows stay, cut over x (the other axis).
typeof__wrong_sum_keeps_rows = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[16@x]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}


def explicit_layer__right_shard_map(a, b, *, mesh):
    def on_device(block, rows):
        return jax.nn.relu(jax.lax.psum(block @ rows, "y"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# relu is done entry by entry, so each device can do it with its own part before the parts are added.
def explicit_layer__wrong_relu_before_sum(a, b, *, mesh):
    def on_device(block, rows):
        return jax.lax.psum(jax.nn.relu(block @ rows), "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# A finished sum is the same everywhere, so its layout is P(), as in the example of this part.
def explicit_layer__wrong_whole_everywhere(a, b, *, mesh):
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P())))


# relu(a @ b) should be laid out as a is, rows over x and columns over y.
def explicit_layer__wrong_laid_out_as_a(a, b, *, mesh):
    product = jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P("x", "y")))
    return jax.nn.relu(product)


# Rule 2 complains of the contracted dimension, so that is made whole on both sides first.
def explicit_layer__wrong_gathered_first(a, b, *, mesh):
    a = reshard(a, NamedSharding(mesh, P("x", None)))
    b = reshard(b, NamedSharding(mesh, P(None, None)))
    return jax.nn.relu(a @ b)
