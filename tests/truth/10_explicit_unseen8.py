"""Answers to lesson 10, eighth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---- unreduced

unreduced__right_linear = {
    step: "yes" if goes_through_a_sum else "no"
    for step, goes_through_a_sum in [
        ("p + p", True),
        ("jnp.cos(p)", False),
        ("p * p", False),
        ("p + N", False),
        ("reshard(p, whole)", True),
    ]
}

# This student read "JAX 0.10 does not double it", and thought that p + p is nothing but 2 * p.
unreduced__wrong_no_doubling = {
    "p + p": "no",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# This student thought that p * p is as good as p + p: both operands have the same type, device by device, so the types agree.
unreduced__wrong_same_type_times = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "yes",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# This student thought that N, whole on every device, agrees with anything (rule 2).
unreduced__wrong_whole_agrees = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "yes",
    "reshard(p, whole)": "yes",
}

# This student thought that reshard only moves blocks, that a sum needs psum, and that therefore nothing but adding parts is allowed.
unreduced__wrong_reshard_moves = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "no",
}


# ---- will_it_type

will_it_type__right_by_rule = {
    "R + N": "ok",  # [x, -] with [-, -] -> [x, -]
    "R + C": "rule 3",  # [x, -] with [-, x] -> [x, x]
    "C @ R": "rule 2",  # contracted x with x: open
    "R @ C": "rule 3",  # -> [x, x]
    "C @ N": "ok",  # contracted x with -: a type, though it sends
    "R[0]": "own rule",
}

# This student thought that rows-cut and columns-cut are two different layouts, and "two different do not agree".
will_it_type__wrong_rows_and_columns = {
    "R + N": "ok",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student mixed up which dimensions of a product are contracted (rows of the left with columns of the right).
will_it_type__wrong_contracted = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 3",
    "R @ C": "rule 2",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that a contracted dimension must be cut alike on both sides, as blocks of 4 do not fit to rows of 16.
will_it_type__wrong_contracted_one_side = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "rule 2",
    "R[0]": "own rule",
}

# This student thought that row 0 lies on device 0, a number known while tracing, so that R[0] has a type: the cut dimension goes away as in b.sum(0).
will_it_type__wrong_static_index = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "ok",
}


# ---- fix_types


def fix_types__right_einsum(x, W1, b1, W2, b2, W3, b3, *, mesh):
    rows = NamedSharding(mesh, P("batch", None))
    for W, b in [(W1, b1), (W2, b2)]:
        x = jax.nn.relu(jnp.einsum("ni,io->no", x, W) + b)
    return jnp.einsum("ni,io->no", x, W3, out_sharding=rows) + b3


# This student thought that the two sides of the contraction have to be whole before one may multiply, and so gathers the hidden layer.
def fix_types__wrong_hidden_gathered(x, W1, b1, W2, b2, W3, b3, *, mesh):
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    hidden = reshard(hidden, NamedSharding(mesh, P("batch", None)))
    W3 = reshard(W3, NamedSharding(mesh, P(None, None)))
    return jnp.dot(hidden, W3) + b3


# This student thought of nn.Linear: each device applies its part of the layer, bias included, and then the outputs are all_reduced.
def fix_types__wrong_bias_on_each(x, W1, b1, W2, b2, W3, b3, *, mesh):
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)

    def last(h, w, b):
        return jax.lax.psum(h @ w + b, "model")

    return jax.shard_map(
        last, mesh=mesh, in_specs=(P("batch", "model"), P("model", None), P()), out_specs=P("batch", None)
    )(hidden, W3, b3)


# This student thought that leaving the sum open as long as possible sends least, and adds the bias before the one reshard.
def fix_types__wrong_bias_before_sum(x, W1, b1, W2, b2, W3, b3, *, mesh):
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    out = jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None, unreduced={"model"})))
    out = out + b3
    return reshard(out, NamedSharding(mesh, P("batch", None)))


# This student thought that three layers are one loop, and did not notice that the last one has no relu.
def fix_types__wrong_relu_everywhere(x, W1, b1, W2, b2, W3, b3, *, mesh):
    layouts = [P("batch", None), P("batch", "model"), P("batch", None)]
    for W, b, spec in zip((W1, W2, W3), (b1, b2, b3), layouts):
        x = jax.nn.relu(jnp.dot(x, W, out_sharding=NamedSharding(mesh, spec)) + b)
    return x
