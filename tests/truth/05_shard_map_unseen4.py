"""Answers to lesson 05, fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- partial_sums


def partial_sums__right_reshaped(x, *, mesh):
    def one_number(block):
        return block.reshape(1, -1).sum(axis=1)

    return jax.shard_map(one_number, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student thinks that one number per device needs a psum, and then lines up the totals.
def partial_sums__wrong_summed_over_x(x, *, mesh):
    def on_device(block):
        return jax.lax.psum(jnp.sum(block, keepdims=True), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student cuts into eight by hand, since there are eight devices, and does not use the mesh.
def partial_sums__wrong_eight_by_hand(x, *, mesh):
    return x.reshape(8, -1).sum(axis=1)


# This student thinks that out_specs=P() gathers what differs, and turns the check off because it complained.
def partial_sums__wrong_check_off(x, *, mesh):
    def on_device(block):
        return jnp.sum(block, keepdims=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# This student keeps the shape of the block instead of a dimension of length one: every entry becomes its block's sum.
def partial_sums__wrong_shape_kept(x, *, mesh):
    def on_device(block):
        return jnp.full(block.shape, 0, block.dtype) + jnp.sum(block)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# ---------------------------------------------------------------- layer_constrained


def layer_constrained__right_out_shardings(x, w, b, *, mesh):
    def layer(x, w, b):
        return jax.nn.sigmoid(jnp.einsum("bf,fo->bo", x, w) + b)

    return jax.jit(layer, out_shardings=NamedSharding(mesh, P("y", "x")))(x, w, b)


# This student lays out the columns that were added to the wish, and thinks that the rows keep y by themselves.
def layer_constrained__wrong_columns_only(x, w, b, *, mesh):
    result = jax.nn.sigmoid(x @ w + b)
    return jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P(None, "x")))


# This student thinks that a constraint changes the value in place, and returns the one from before it.
def layer_constrained__wrong_in_place(x, w, b, *, mesh):
    result = jax.nn.sigmoid(x @ w + b)
    jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P("y", "x")))
    return result


# This student does it by hand with a shard_map and a psum_scatter, which the exercise forbids.
def layer_constrained__wrong_by_hand(x, w, b, *, mesh):
    def on_device(x, w, b):
        share = jax.lax.psum_scatter(x @ w, "x", scatter_dimension=1, tiled=True)
        return jax.nn.sigmoid(share + b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("y", "x"), P("x", None), P("x")), out_specs=P("y", "x"))(
        x, w, b
    )


# This student takes the layout of a usual matrix on this mesh, first axis for the rows, second for the columns.
def layer_constrained__wrong_usual_order(x, w, b, *, mesh):
    result = jax.nn.sigmoid(x @ w + b)
    return jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P("x", "y")))


# ---------------------------------------------------------------- beat_the_compiler


def beat_the_compiler__right_joined(v, *, mesh):
    """The two pieces are joined in the order which the receiver's parity says."""

    def on_device(block):
        rows, columns = block.shape
        halves = jnp.stack([block[:, : columns // 2], block[:, columns // 2 :]])
        odd = jax.lax.axis_index("x") % 2
        came = []
        for turn in range(2):
            piece = jax.lax.dynamic_index_in_dim(halves, (odd + turn) % 2, keepdims=False)
            pairs = []
            for k in range(8):
                x, y = divmod(k, 2)
                half = (x + turn) % 2
                pairs.append((k, 2 * (2 * y + half) + x // 2))
            came.append(jax.lax.ppermute(piece, ("x", "y"), pairs))
        upper_first = jnp.concatenate(came)
        lower_first = jnp.concatenate(came[::-1])
        return jnp.where(odd == 0, upper_first, lower_first)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# This student asks the compiler for the layout: right, and as many bytes as the compiler sends.
def beat_the_compiler__wrong_asked_it(v, *, mesh):
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P("y", "x")))


# This student sends the whole block in both turns and lets the receiver cut: twice the bytes.
def beat_the_compiler__wrong_whole_blocks(v, *, mesh):
    def on_device(block):
        rows, columns = block.shape
        me = jax.lax.axis_index("x")
        new = jnp.concatenate([block[:, : columns // 2]] * 2)
        for turn in range(2):
            pairs = [(2 * x + y, 2 * (2 * y + (x + turn) % 2) + x // 2) for x in range(4) for y in range(2)]
            came = jax.lax.ppermute(block, ("x", "y"), pairs)
            half = jax.lax.dynamic_slice_in_dim(came, me % 2 * (columns // 2), columns // 2, axis=1)
            new = jax.lax.dynamic_update_slice_in_dim(new, half, (me + turn) % 2 * rows, axis=0)
        return new

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# This student puts what comes in turn j into row block j, for all receivers, and forgets that odd ones get the lower part first.
def beat_the_compiler__wrong_order_of_arrival(v, *, mesh):
    def on_device(block):
        columns = block.shape[1] // 2
        me = jax.lax.axis_index("x")
        came = []
        for turn in range(2):
            half = (me + turn) % 2
            piece = jax.lax.dynamic_slice_in_dim(block, half * columns, columns, axis=1)
            pairs = [(2 * x + y, 2 * (2 * y + (x + turn) % 2) + x // 2) for x in range(4) for y in range(2)]
            came.append(jax.lax.ppermute(piece, ("x", "y"), pairs))
        return jnp.concatenate(came, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# This student thinks that over ("x", "y") x is the fast axis, and numbers the devices x + 4y.
def beat_the_compiler__wrong_numbered_by_columns(v, *, mesh):
    def on_device(block):
        rows, columns = block.shape[0], block.shape[1] // 2
        me = jax.lax.axis_index("x")
        new = jnp.concatenate([block[:, :columns]] * 2)
        for turn in range(2):
            half = (me + turn) % 2
            piece = jax.lax.dynamic_slice_in_dim(block, half * columns, columns, axis=1)
            pairs = [(x + 4 * y, 2 * y + (x + turn) % 2 + 4 * (x // 2)) for x in range(4) for y in range(2)]
            came = jax.lax.ppermute(piece, ("x", "y"), pairs)
            new = jax.lax.dynamic_update_slice_in_dim(new, came, half * rows, axis=0)
        return new

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)
