"""Right answers to 05_shard_map, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def partial_sums__reshaped(a, *, mesh):
    """A scalar, made into a block of one by hand."""
    return jax.shard_map(lambda block: block.sum().reshape(1), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


def partial_sums__as_a_product(a, *, mesh):
    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def sums(block):
        return block[None] @ jnp.ones(block.shape)

    return sums(a)


def global_mean__divided_outside(a, *, mesh):
    """One sum over all; the division where the length of the whole is known."""
    total = jax.shard_map(lambda block: lax.psum(block.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)
    return total / a.size


def global_mean__divided_first(a, *, mesh):
    def body(block):
        return lax.psum(jnp.sum(block / a.shape[0]), ("x",))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


def transpose_without_sending__einsum(a, *, mesh):
    turned = jax.shard_map(
        lambda block: jnp.einsum("ij->ji", block),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P("y", "x"),
        check_vma=False,
    )
    return jax.jit(turned)(a)


def column_sums__as_a_product(a, *, mesh):
    def body(block):
        return lax.psum(jnp.ones(block.shape[0]) @ block, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(a)


def column_sums__scattered_and_gathered(a, *, mesh):
    """An all-reduce is a reduce-scatter and an all-gather."""

    def body(block):
        sums = block.sum(0)
        if sums.shape[0] % mesh.shape["x"]:
            return lax.psum(sums, "x")
        return lax.all_gather(lax.psum_scatter(sums, "x", tiled=True), "x", tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"), check_vma=False)(a)


def block_sums__new_dimension(a, *, mesh):
    return jax.shard_map(lambda block: block.sum(0)[None, :], mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


def axis_index_coords__from_one_number(mesh):
    def body():
        k = lax.axis_index(("x", "y"))
        return jnp.stack(jnp.divmod(k, mesh.shape["y"])).reshape(1, 2).astype(jnp.int32)

    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P(("x", "y"))))()


def axis_index_coords__from_a_table(mesh):
    """The table is whole on every device; each picks its row."""
    table = np.array(list(np.ndindex(*mesh.devices.shape)), np.int32)

    def body(table):
        return lax.dynamic_slice_in_dim(table, lax.axis_index(("x", "y")), 1)

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(("x", "y")))(table)


def axis_index_coords__cut_by_in_specs(mesh):
    """No axis_index at all: in_specs deal out the rows."""
    table = np.array(list(np.ndindex(*mesh.devices.shape)), np.int32)
    return jax.shard_map(lambda row: row, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")))(table)


def polynomial__no_loop_carry(c, a, *, mesh):
    def body(c, block):
        return sum(c[k] * block ** (c.shape[0] - 1 - k) for k in range(c.shape[0]))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, a)


def polynomial__scanned_from_a_product(c, a, *, mesh):
    """A start that varies because it is made of the block."""

    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))
    def body(c, block):
        return lax.scan(lambda y, coefficient: (y * block + coefficient, None), 0 * block, c)[0]

    return body(c, a)


def polynomial__unchecked(c, a, *, mesh):
    """Right too, without the check: nothing here depends on the types."""

    def body(c, block):
        return lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], jnp.zeros_like(block))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"), check_vma=False)(c, a)


def many_layers__reduced(params, a, mesh):
    """Params closed over: what a function only reads is the same on every device."""

    def body(block):
        for layer in params:
            block = jnp.maximum(block @ layer["w"] + layer["b"], 0)
        return block

    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(a)


def many_layers__every_leaf(params, a, mesh):
    def body(params, block):
        for layer in params:
            block = jax.nn.relu(jnp.dot(block, layer["w"]) + layer["b"])
        return block

    specs = jax.tree.map(lambda _: P(), params), P("x", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x"))(params, a)


def centred_columns__summed(a, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), axis_names={"x"})
    def body(rows):
        return rows - lax.psum(rows.sum(axis=0, keepdims=True), "x") / a.shape[0]

    return body(a)


def layer_by_hand__outside(a, w, b, *, mesh):
    """Bias and sigmoid where the product is an ordinary array again."""
    product = jax.shard_map(
        lambda p, q: lax.psum(p @ q, "x"), mesh=mesh, in_specs=(P("y", "x"), P("x")), out_specs=P("y")
    )(a, w)
    return jax.nn.sigmoid(product + b)


def layer_by_hand__jit_outside(a, w, b, *, mesh):
    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("y", "x"), P("x", None), P(None)), out_specs=P("y", None))
    def layer(a, w, b):
        logits = lax.psum(jnp.einsum("ij,jk->ik", a, w), ("x",)) + b
        return 1 / (1 + jnp.exp(-logits))

    return layer(a, w, b)


def layer_constrained__before_the_bias(a, w, b, *, mesh):
    cut = NamedSharding(mesh, P("y", "x"))
    product = lax.with_sharding_constraint(a @ w, cut)
    return lax.with_sharding_constraint(jax.nn.sigmoid(product + b), cut)


def layer_constrained__out_shardings(a, w, b, *, mesh):
    return jax.jit(lambda a, w, b: jax.nn.sigmoid(a @ w + b), out_shardings=NamedSharding(mesh, P("y", "x")))(a, w, b)


def beat_the_compiler__sorted_first(v, *, mesh):
    """The halves are put in the order of their turns before they travel, and in the order of rows behind."""

    def send(half, turn):
        receivers = [2 * (2 * y + (x + turn) % 2) + x // 2 for x in range(4) for y in range(2)]
        return lax.ppermute(half, ("x", "y"), list(enumerate(receivers)))

    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))
    def body(block):
        odd = lax.axis_index("x") % 2 == 1
        left, right = jnp.split(block, 2, axis=1)
        first, second = send(jnp.where(odd, right, left), 0), send(jnp.where(odd, left, right), 1)
        return jnp.concatenate([jnp.where(odd, second, first), jnp.where(odd, first, second)])

    return body(v)


def beat_the_compiler__rolled(v, *, mesh):
    """A permutation is written from the receivers' side, and the halves are rolled into their places."""
    sides = [(x, y) for x in range(4) for y in range(2)]

    def body(block):
        place, (rows, columns) = lax.axis_index("x"), block.shape
        halves = jnp.roll(block.reshape(rows, 2, columns // 2).swapaxes(0, 1), -(place % 2), axis=0)
        came = [
            lax.ppermute(halves[j], ("x", "y"), [(2 * (2 * y + (x + j) % 2) + x // 2, 2 * x + y) for x, y in sides])
            for j in range(2)
        ]
        return jnp.roll(jnp.stack(came), place % 2, axis=0).reshape(2 * rows, -1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"), check_vma=False)(v)
