"""Right answers to 06_collectives, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P


def manual(mesh, ins, out, check_vma=True):
    return partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=out, check_vma=check_vma)


def psum_ref__in_a_loop(blocks):
    total = np.zeros_like(blocks[0])
    for block in blocks:
        total = total + block
    return [total.copy() for _ in blocks]


def all_gather_ref__by_reshaping(blocks, axis, tiled):
    stacked = np.moveaxis(np.array(blocks), 0, axis)
    if tiled:
        shape = list(blocks[0].shape)
        shape[axis] *= len(blocks)
        stacked = stacked.reshape(shape)
    return np.array([stacked] * len(blocks))


def psum_scatter_ref__by_slices(blocks, scatter_dimension):
    total = np.moveaxis(np.sum(blocks, axis=0), scatter_dimension, 0)
    step = len(total) // len(blocks)
    return [np.moveaxis(total[i * step : (i + 1) * step], 0, scatter_dimension) for i in range(len(blocks))]


def all_to_all_ref__device_by_device(blocks, split_axis, concat_axis):
    n = len(blocks)
    step = blocks[0].shape[split_axis] // n
    return [
        np.concatenate([np.take(blocks[s], range(d * step, (d + 1) * step), split_axis) for s in range(n)], concat_axis)
        for d in range(n)
    ]


def ppermute_ref__by_asking_who_sends(blocks, perm):
    sender = {destination: source for source, destination in perm}
    return [blocks[sender[d]] if d in sender else 0 * blocks[d] for d in range(len(blocks))]


def identify_collective__by_properties(before, after):
    """No table of all results: rule out step by step."""
    before, first = np.array(before), np.array(after[0])
    n = len(before)
    if first.ndim == 0:
        return "axis_index"
    if first.ndim == 2:
        return "all_gather"
    if len(first) > before.shape[1]:
        return "all_gather tiled"
    if len(first) < before.shape[1]:
        return "psum_scatter"
    for name, rows in {"psum": before.sum(0), "pmean": before.mean(0), "pmax": before.max(0)}.items():
        if np.allclose(after, np.array([rows] * n)):
            return name
    if (first == before[n - 1]).all():
        return "ppermute +1"
    return "ppermute -1" if (first == before[1]).all() else "all_to_all"


def gather_columns__check_off(a, *, mesh):
    @manual(mesh, P(None, "x"), P(), check_vma=False)
    def go(block):
        return lax.all_gather(block, ("x",), axis=1, tiled=True)

    return go(a)


def gather_columns__untiled_and_moved(a, *, mesh):
    """Stacked in front, moved behind the rows, then reshaped: now the order is right."""

    @manual(mesh, P(None, "x"), P(None, None), check_vma=False)
    def go(block):
        return jnp.moveaxis(lax.all_gather(block, "x"), 0, 1).reshape(block.shape[0], -1)

    return jax.jit(go)(a)


def sum_and_split__all_to_all(parts, *, mesh):
    """Send each device its rows of every part, and add up there."""

    @manual(mesh, P("x"), P("x"))
    def go(part):
        n = mesh.shape["x"]
        pieces = part.reshape(n, part.shape[1] // n, -1)
        return lax.all_to_all(pieces, "x", split_axis=0, concat_axis=0, tiled=True).sum(0)

    return go(parts)


def sum_and_split__untiled(parts, *, mesh):
    """A dimension of the right length, made for psum_scatter to drop."""

    @manual(mesh, P("x"), P("x"))
    def go(part):
        return lax.psum_scatter(part.reshape(mesh.shape["x"], -1, part.shape[2]), "x")

    return go(parts)


def reshard_rows_to_cols__untiled(a, *, mesh):
    @manual(mesh, P("x"), P(None, "x"))
    def go(rows):
        n = mesh.shape["x"]
        pieces = rows.reshape(rows.shape[0], n, -1)
        return lax.all_to_all(pieces, "x", split_axis=1, concat_axis=0).reshape(rows.shape[0] * n, -1)

    return go(a)


def distributed_transpose__turned_first(a, *, mesh):
    @manual(mesh, P("x", None), P("x", None))
    def go(rows):
        return lax.all_to_all(rows.T, "x", split_axis=0, concat_axis=1, tiled=True)

    return go(a)


def psum_by_two__columns(parts, w, *, mesh):
    """The rows are dealt out as the second dimension of a transposed sum."""

    @manual(mesh, (P("x"), P()), P(), check_vma=False)
    def go(part, w):
        share = lax.psum_scatter(part[0].T, "x", scatter_dimension=1, tiled=True)
        return lax.all_gather(w.T @ share, "x", axis=1, tiled=True).T

    return go(parts, w)


def global_argmax__gathered_pairs(v, *, mesh):
    """Every device names its candidate; all compare."""

    @manual(mesh, P("x"), P(), check_vma=False)
    def go(block):
        mine = jnp.argmax(block)
        values = lax.all_gather(block[mine], "x")
        places = lax.all_gather(mine + lax.axis_index("x") * block.shape[0], "x")
        return places[jnp.argmax(values)]

    return go(v)


def global_argmax__only_candidates(v, *, mesh):
    @manual(mesh, P("x"), P())
    def go(block):
        mine = jnp.argmax(block)
        place = mine + lax.axis_index("x") * block.shape[0]
        return lax.pmin(jnp.where(block[mine] == lax.pmax(block[mine], "x"), place, 10**9), "x")

    return go(v)


def global_logsumexp__of_logsumexps(a, *, mesh):
    """Each device's own logsumexp first: the same formula once more, on one number a row."""

    @manual(mesh, P(None, "x"), P())
    def go(a):
        mine = jax.nn.logsumexp(a, axis=1)
        largest = lax.pmax(mine, "x")
        return jnp.log(lax.psum(jnp.exp(mine - largest), "x")) + largest

    return go(a)


def safe_softmax__by_logsumexp(a, *, mesh):
    @manual(mesh, P(None, "x"), P(None, "x"))
    def go(a):
        largest = lax.pmax(jnp.max(a, axis=1), "x")[:, None]
        total = lax.psum(jnp.exp(a - largest).sum(1), "x")[:, None]
        return jnp.exp((a - largest) - jnp.log(total))

    return go(a)


def safe_softmax__shared_share(a, *, mesh):
    """Each device's softmax, scaled by its share of the whole."""

    @manual(mesh, P(None, "x"), P(None, "x"), check_vma=False)
    def go(a):
        mine = jax.nn.logsumexp(a, axis=1, keepdims=True)
        weight = jnp.exp(mine - lax.pmax(mine, "x"))
        return jax.nn.softmax(a, axis=1) * weight / lax.psum(weight, "x")

    return go(a)


def logsumexp_gradient__inside(a, *, mesh):
    """Inside shard_map, with the check on."""

    def total(a):
        largest = lax.stop_gradient(a.max(1))
        largest = lax.pmax(largest, "x")
        return jnp.sum(largest + jnp.log(lax.psum(jnp.exp(a - largest[:, None]).sum(1), "x")))

    return jax.shard_map(jax.grad(total), mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(a)


def logsumexp_gradient__by_vjp(a, *, mesh):
    @manual(mesh, P(None, "x"), P())
    def total(a):
        largest = lax.pmax(lax.stop_gradient(a).max(1), "x")
        return jnp.sum(largest + jnp.log(lax.psum(jnp.exp(a - largest[:, None]).sum(1), "x")))

    _, back = jax.vjp(total, a)
    return back(jnp.float32(1))[0]


def sharded_layernorm__mean_of_squares(a, *, mesh):
    """Both moments at once, in one collective."""

    @manual(mesh, P(None, "x"), P(None, "x"))
    def go(a):
        mean, square = lax.pmean(jnp.stack([a.mean(1), (a**2).mean(1)]), "x")[:, :, None]
        return (a - mean) * lax.rsqrt(square - mean**2 + 1e-5)

    return go(a)


def sharded_layernorm__sums(a, *, mesh):
    @manual(mesh, P(None, "x"), P(None, "x"))
    def go(a):
        features = a.shape[1] * mesh.shape["x"]
        centred = a - lax.psum(a.sum(1, keepdims=True), "x") / features
        return centred / jnp.sqrt(lax.psum((centred**2).sum(1, keepdims=True), "x") / features + 1e-5)

    return go(a)


def masked_mean__one_collective(a, mask, *, mesh):
    @manual(mesh, (P("x"), P("x")), P())
    def go(a, mask):
        total, kept = lax.psum(jnp.stack([(a * mask).sum(), mask.sum().astype(a.dtype)]), "x")
        return total / kept

    return go(a, mask)


def masked_mean__means_of_both(a, mask, *, mesh):
    """The devices' number cancels."""

    @manual(mesh, (P("x"), P("x")), P())
    def go(a, mask):
        return lax.pmean(jnp.sum(a, where=mask), "x") / lax.pmean(mask.mean(), "x") / a.shape[0]

    return go(a, mask)
