"""Answers to lesson 06, written by a reader of the notebook only."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh
INVARYING = {"to": "invarying"} if "to" in inspect.signature(jax.lax.all_gather).parameters else {}
CHECK = bool(INVARYING)

after_collective__right_summed = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [14],
}
# counts from one
after_collective__wrong_from_one = after_collective__right_summed | {"psum_scatter": [20]}
# its own sum
after_collective__wrong_own = after_collective__right_summed | {"psum": [19]}
# a number, no list
after_collective__wrong_number = after_collective__right_summed | {"psum_scatter": 14}
# its own only
after_collective__wrong_gather = after_collective__right_summed | {"all_gather": [8, 1, 4, 6]}
# its own sum
after_collective__wrong_scatter_own = after_collective__right_summed | {"psum_scatter": [19]}
# nested
after_collective__wrong_nested = after_collective__right_summed | {
    "all_gather": [[3, 9, 5, 2], [6, 6, 3, 5], [8, 1, 4, 6], [5, 4, 2, 3]]
}
# begins with its own
after_collective__wrong_rotated = after_collective__right_summed | {
    "all_gather": [8, 1, 4, 6, 5, 4, 2, 3, 3, 9, 5, 2, 6, 6, 3, 5]
}

partners__right_counted = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}
# x and y swapped
partners__wrong_swapped = partners__right_counted | {"psum over x": [4, 5], "psum over y": [1, 3, 5, 7]}
# to whom it sends
partners__wrong_sends = partners__right_counted | {"ppermute +1 over x": [7]}
# the next number
partners__wrong_next = partners__right_counted | {"ppermute +1 over x": [4]}
# itself
partners__wrong_itself = partners__right_counted | {"axis_index over x": [5]}
# without itself
partners__wrong_others = partners__right_counted | {"psum over y": [4]}
# keeps its own as well
partners__wrong_keeps = partners__right_counted | {"ppermute +1 over y": [4, 5]}
# groups of neighbours
partners__wrong_consecutive = partners__right_counted | {"psum over x": [4, 5, 6, 7]}

result_shapes__right_counted = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}
# tiled is the default
result_shapes__wrong_tiled = result_shapes__right_counted | {"all_gather over y": (8, 6)}
# psum sums the block
result_shapes__wrong_psum = result_shapes__right_counted | {"psum over x": (6,)}
# split and concat swapped
result_shapes__wrong_exchange = result_shapes__right_counted | {
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (2, 12)
}
# x has eight
result_shapes__wrong_eight = result_shapes__right_counted | {"all_gather over x, axis=0, tiled": (32, 6)}
# x and y add
result_shapes__wrong_sum = result_shapes__right_counted | {"all_gather over (x, y), axis=0, tiled": (24, 6)}
# a list of one
result_shapes__wrong_scalar = result_shapes__right_counted | {"psum_scatter over x, tiled": (4,)}


def psum_ref__right_sum(blocks):
    """The plain way."""
    return [np.sum(blocks, axis=0)] * len(blocks)


def psum_ref__right_python(blocks):
    """Python's sum, a copy for each."""
    total = sum(blocks)
    return [total.copy() for _ in blocks]


def psum_ref__wrong_once(blocks):
    """One sum only."""
    return np.sum(blocks, axis=0)


def psum_ref__wrong_inside(blocks):
    """Each adds up its own block."""
    return [b.sum() for b in blocks]


def psum_ref__wrong_everything(blocks):
    """One number."""
    return [np.sum(blocks)] * len(blocks)


def psum_ref__wrong_max(blocks):
    """Left the max."""
    return [np.max(blocks, axis=0)] * len(blocks)


def psum_ref__wrong_mean(blocks):
    """The mean."""
    return [np.mean(blocks, axis=0)] * len(blocks)


def psum_ref__wrong_four(blocks):
    """Four devices."""
    return [np.sum(blocks, axis=0)] * 4


def psum_ref__wrong_no_return(blocks):
    """Forgot to return."""
    [np.sum(blocks, axis=0)] * len(blocks)


def psum_ref__wrong_running(blocks):
    """A running sum."""
    return list(np.cumsum(blocks, axis=0))


def all_gather_ref__right_if(blocks, axis, tiled):
    """The plain way."""
    whole = np.concatenate(blocks, axis=axis) if tiled else np.stack(blocks, axis=axis)
    return [whole] * len(blocks)


def all_gather_ref__right_join(blocks, axis, tiled):
    """Chooses the function."""
    join = {True: np.concatenate, False: np.stack}[tiled]
    return [join(blocks, axis) for _ in range(len(blocks))]


def all_gather_ref__wrong_swapped(blocks, axis, tiled):
    """tiled turned round."""
    return [np.stack(blocks, axis) if tiled else np.concatenate(blocks, axis)] * len(blocks)


def all_gather_ref__wrong_tiled(blocks, axis, tiled):
    """Always tiled."""
    return [np.concatenate(blocks, axis=axis)] * len(blocks)


def all_gather_ref__wrong_axis(blocks, axis, tiled):
    """Ignores the axis."""
    return [np.concatenate(blocks) if tiled else np.stack(blocks)] * len(blocks)


def all_gather_ref__wrong_once(blocks, axis, tiled):
    """One array, not one for each."""
    return np.concatenate(blocks, axis=axis) if tiled else np.stack(blocks, axis=axis)


def all_gather_ref__wrong_rotated(blocks, axis, tiled):
    """Each begins with its own."""
    join = np.concatenate if tiled else np.stack
    return [join(blocks[d:] + blocks[:d], axis) for d in range(len(blocks))]


def all_gather_ref__wrong_reshape(blocks, axis, tiled):
    """Stacks and reshapes."""
    whole = np.stack(blocks, axis=axis)
    if tiled:
        shape = list(blocks[0].shape)
        shape[axis] *= len(blocks)
        whole = np.stack(blocks).reshape(shape)
    return [whole] * len(blocks)


def psum_scatter_ref__right_split(blocks, scatter_dimension):
    """The plain way."""
    return np.split(sum(blocks), len(blocks), axis=scatter_dimension)


def psum_scatter_ref__right_take(blocks, scatter_dimension):
    """Takes slices by hand."""
    total = np.sum(blocks, axis=0)
    n = total.shape[scatter_dimension] // len(blocks)
    return [np.take(total, range(d * n, (d + 1) * n), axis=scatter_dimension) for d in range(len(blocks))]


def psum_scatter_ref__wrong_sum(blocks, scatter_dimension):
    """A psum."""
    return [sum(blocks)] * len(blocks)


def psum_scatter_ref__wrong_axis(blocks, scatter_dimension):
    """Ignores the dimension."""
    return np.split(sum(blocks), len(blocks))


def psum_scatter_ref__wrong_own(blocks, scatter_dimension):
    """Splits its own block, adds nothing."""
    n = len(blocks)
    return [np.split(b, n, axis=scatter_dimension)[d] for d, b in enumerate(blocks)]


def psum_scatter_ref__wrong_sum_axis(blocks, scatter_dimension):
    """Sums over the scattered dimension."""
    return [np.sum(b, axis=scatter_dimension) for b in blocks]


def psum_scatter_ref__wrong_reversed(blocks, scatter_dimension):
    """Deals out in reverse."""
    return np.split(sum(blocks), len(blocks), axis=scatter_dimension)[::-1]


def psum_scatter_ref__wrong_untiled(blocks, scatter_dimension):
    """Drops the dimension."""
    return [p.squeeze(scatter_dimension) for p in np.split(sum(blocks), len(blocks), axis=scatter_dimension)]


def psum_scatter_ref__wrong_first(blocks, scatter_dimension):
    """Everybody has part 0."""
    return [np.split(sum(blocks), len(blocks), axis=scatter_dimension)[0]] * len(blocks)


def all_to_all_ref__right_pieces(blocks, split_axis, concat_axis):
    """The hints' way."""
    pieces = [np.split(b, len(blocks), axis=split_axis) for b in blocks]
    return [np.concatenate(column, axis=concat_axis) for column in zip(*pieces)]


def all_to_all_ref__right_loops(blocks, split_axis, concat_axis):
    """Indices."""
    n = len(blocks)
    out = []
    for d in range(n):
        out.append(np.concatenate([np.split(blocks[s], n, split_axis)[d] for s in range(n)], concat_axis))
    return out


def all_to_all_ref__wrong_swapped(blocks, split_axis, concat_axis):
    """The two axes swapped."""
    pieces = [np.split(b, len(blocks), axis=concat_axis) for b in blocks]
    return [np.concatenate(column, axis=split_axis) for column in zip(*pieces)]


def all_to_all_ref__wrong_own(blocks, split_axis, concat_axis):
    """Forgot to turn the table: its own pieces."""
    pieces = [np.split(b, len(blocks), axis=split_axis) for b in blocks]
    return [np.concatenate(row, axis=concat_axis) for row in pieces]


def all_to_all_ref__wrong_stack(blocks, split_axis, concat_axis):
    """Stacks."""
    pieces = [np.split(b, len(blocks), axis=split_axis) for b in blocks]
    return [np.stack(column, axis=concat_axis) for column in zip(*pieces)]


def all_to_all_ref__wrong_transpose(blocks, split_axis, concat_axis):
    """Transposes the rows of blocks as numbers."""
    return list(np.array(blocks).T)


def all_to_all_ref__wrong_concat(blocks, split_axis, concat_axis):
    """Joins along the split axis."""
    pieces = [np.split(b, len(blocks), axis=split_axis) for b in blocks]
    return [np.concatenate(column, axis=split_axis) for column in zip(*pieces)]


def all_to_all_ref__wrong_sum(blocks, split_axis, concat_axis):
    """Adds the pieces."""
    pieces = [np.split(b, len(blocks), axis=split_axis) for b in blocks]
    return [sum(column) for column in zip(*pieces)]


def all_to_all_ref__wrong_reversed(blocks, split_axis, concat_axis):
    """The senders in reverse."""
    pieces = [np.split(b, len(blocks), axis=split_axis) for b in blocks[::-1]]
    return [np.concatenate(column, axis=concat_axis) for column in zip(*pieces)]


def ppermute_ref__right_zeros(blocks, perm):
    """The plain way."""
    out = [np.zeros_like(b) for b in blocks]
    for source, destination in perm:
        out[destination] = blocks[source]
    return out


def ppermute_ref__right_dict(blocks, perm):
    """A dict from destination to source."""
    come = {d: s for s, d in perm}
    return [blocks[come[d]] if d in come else blocks[d] * 0 for d in range(len(blocks))]


def ppermute_ref__wrong_kept(blocks, perm):
    """Who receives nothing keeps what it had."""
    out = list(blocks)
    for source, destination in perm:
        out[destination] = blocks[source]
    return out


def ppermute_ref__wrong_turned(blocks, perm):
    """Destination and source swapped."""
    out = [np.zeros_like(b) for b in blocks]
    for source, destination in perm:
        out[source] = blocks[destination]
    return out


def ppermute_ref__wrong_in_place(blocks, perm):
    """Overwrites what is still to be sent."""
    out = [b.copy() for b in blocks]
    for source, destination in perm:
        out[destination] = out[source]
    return out


def ppermute_ref__wrong_none(blocks, perm):
    """None where nobody sends."""
    out = [None] * len(blocks)
    for source, destination in perm:
        out[destination] = blocks[source]
    return out


def ppermute_ref__wrong_zero(blocks, perm):
    """A plain 0 where nobody sends."""
    out = [0] * len(blocks)
    for source, destination in perm:
        out[destination] = blocks[source]
    return out


def ppermute_ref__wrong_next(blocks, perm):
    """Always to the next."""
    return blocks[-1:] + blocks[:-1]


def ppermute_ref__wrong_adds(blocks, perm):
    """Adds what comes."""
    out = [b.copy() for b in blocks]
    for source, destination in perm:
        out[destination] = out[destination] + blocks[source]
    return out


def _candidates(before):
    n = len(before)
    up = [(k, (k + 1) % n) for k in range(n)]
    down = [(k, (k - 1) % n) for k in range(n)]
    return {
        "all_gather": all_gather_ref__right_if(before, 0, False),
        "all_gather tiled": all_gather_ref__right_if(before, 0, True),
        "psum": psum_ref__right_sum(before),
        "pmean": [np.mean(before, axis=0)] * n,
        "pmax": [np.max(before, axis=0)] * n,
        "psum_scatter": psum_scatter_ref__right_split(before, 0),
        "all_to_all": all_to_all_ref__right_pieces(before, 0, 0),
        "ppermute +1": ppermute_ref__right_zeros(before, up),
        "ppermute -1": ppermute_ref__right_zeros(before, down),
        "axis_index": [np.array(k) for k in range(n)],
    }


def identify_collective__right_dict(before, after):
    """The hints' way."""
    for name, blocks in _candidates(before).items():
        if all(np.array_equal(a, b) for a, b in zip(blocks, after)):
            return name


def identify_collective__right_close(before, after):
    """With shapes and allclose."""
    for name, blocks in _candidates(before).items():
        if all(np.shape(a) == np.shape(b) and np.allclose(a, b) for a, b in zip(blocks, after)):
            return name


def _close(a, b):
    return np.shape(a) == np.shape(b) and np.allclose(a, b)


def identify_collective__right_first_device(before, after):
    """Looks at device 0 only: of the ten names no two leave the same there."""
    for name, blocks in _candidates(before).items():
        if _close(blocks[0], after[0]):
            return name


def identify_collective__wrong_no_mean(before, after):
    """Forgot pmean and pmax."""
    found = _candidates(before)
    found.pop("pmean"), found.pop("pmax")
    for name, blocks in found.items():
        if all(_close(a, b) for a, b in zip(blocks, after)):
            return name


def identify_collective__wrong_tiled(before, after):
    """Makes no difference between the two gathers."""
    for name, blocks in _candidates(before).items():
        if all(_close(np.ravel(a), np.ravel(b)) for a, b in zip(blocks, after)):
            return name


def identify_collective__wrong_shifts(before, after):
    """+1 and -1 swapped."""
    name = identify_collective__right_close(before, after)
    return {"ppermute +1": "ppermute -1", "ppermute -1": "ppermute +1"}.get(name, name)


def identify_collective__wrong_names(before, after):
    """Names with an underscore."""
    name = identify_collective__right_close(before, after)
    return name.replace(" ", "_")


def identify_collective__wrong_index(before, after):
    """axis_index from one."""
    found = _candidates(before)
    found["axis_index"] = [np.array(k + 1) for k in range(len(before))]
    for name, blocks in found.items():
        if all(_close(a, b) for a, b in zip(blocks, after)):
            return name


def identify_collective__wrong_four(before, after):
    """Four devices in the permutations."""
    found = _candidates(before)
    if len(before) >= 4:
        found["ppermute +1"] = ppermute_ref__right_zeros(before, [(k, (k + 1) % 4) for k in range(4)])
    for name, blocks in found.items():
        if all(_close(a, b) for a, b in zip(blocks, after)):
            return name


def identify_collective__wrong_guess(before, after):
    """By shapes only."""
    if np.size(after[0]) > np.size(before[0]):
        return "all_gather tiled"
    return "psum" if np.size(after[0]) == np.size(before[0]) else "psum_scatter"


block_bytes_sent__right_table = {
    "all_gather": 96,
    "psum": 48,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}
# all four blocks
block_bytes_sent__wrong_all = block_bytes_sent__right_table | {"all_gather": 128}
# entries for bytes
block_bytes_sent__wrong_entries = block_bytes_sent__right_table | {"ppermute +1": 8}
# n-1 blocks for a psum
block_bytes_sent__wrong_psum = block_bytes_sent__right_table | {"psum": 96}
# half of a psum as one block
block_bytes_sent__wrong_scatter = block_bytes_sent__right_table | {"psum_scatter": 32}
# to three others, a block each
block_bytes_sent__wrong_exchange = block_bytes_sent__right_table | {"all_to_all": 96}
# the index is an int32
block_bytes_sent__wrong_index = block_bytes_sent__right_table | {"axis_index": 4}
# once round the ring
block_bytes_sent__wrong_once = block_bytes_sent__right_table | {"psum": 24}

transposed_pair__right_pairs = {
    "all_gather": "psum_scatter",
    "psum_scatter": "all_gather",
    "all_to_all": "all_to_all",
    "ppermute": "ppermute",
    "psum": "nothing",
}
# a psum backwards is a psum
transposed_pair__wrong_psum = transposed_pair__right_pairs | {"psum": "psum"}
# a gather backwards sends nothing
transposed_pair__wrong_gather = transposed_pair__right_pairs | {"all_gather": "nothing"}
# sums come back as a psum
transposed_pair__wrong_gather_psum = transposed_pair__right_pairs | {"all_gather": "psum"}
# a permute is its own, and sends nothing
transposed_pair__wrong_permute = transposed_pair__right_pairs | {"ppermute": "nothing"}
# an exchange becomes a gather
transposed_pair__wrong_exchange = transposed_pair__right_pairs | {"all_to_all": "all_gather"}
# itself
transposed_pair__wrong_scatter = transposed_pair__right_pairs | {"psum_scatter": "psum_scatter"}


def _map(body, mesh, ins, outs, *arrays, check=True):
    return jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=check)(*arrays)


def gather_columns__right_invarying(a, *, mesh):
    """As the example."""

    def body(block):
        return jax.lax.all_gather(block, "x", axis=1, tiled=True, **INVARYING)

    return _map(body, mesh, P(None, "x"), P(None, None), a, check=CHECK)


def gather_columns__right_unchecked(a, *, mesh):
    """With the check off."""
    gather = lambda block: jax.lax.all_gather(block, "x", axis=1, tiled=True)
    return jax.shard_map(gather, mesh=mesh, in_specs=P(None, "x"), out_specs=P(), check_vma=False)(a)


def gather_columns__right_stacked(a, *, mesh):
    """Untiled, then joined in the right order."""

    def body(block):
        return jnp.concatenate(list(jax.lax.all_gather(block, "x")), axis=1)

    return _map(body, mesh, P(None, "x"), P(), a, check=False)


def gather_columns__wrong_axis(a, *, mesh):
    """Joined by rows."""
    body = lambda block: jax.lax.all_gather(block, "x", axis=0, tiled=True)
    return _map(body, mesh, P(None, "x"), P(), a, check=False)


def gather_columns__wrong_untiled(a, *, mesh):
    """Forgot tiled."""
    body = lambda block: jax.lax.all_gather(block, "x", axis=1)
    return _map(body, mesh, P(None, "x"), P(), a, check=False)


def gather_columns__wrong_reshape(a, *, mesh):
    """Stacked, then reshaped."""

    def body(block):
        return jax.lax.all_gather(block, "x").reshape(block.shape[0], -1)

    return _map(body, mesh, P(None, "x"), P(), a, check=False)


def gather_columns__wrong_y(a, *, mesh):
    """The example's axis."""
    body = lambda block: jax.lax.all_gather(block, "y", axis=1, tiled=True)
    return _map(body, mesh, P(None, "y"), P(), a, check=False)


def gather_columns__wrong_refused(a, *, mesh):
    """Forgot to=, check on."""
    body = lambda block: jax.lax.all_gather(block, "x", axis=1, tiled=True)
    return _map(body, mesh, P(None, "x"), P(), a)


def gather_columns__wrong_stacked_out(a, *, mesh):
    """out_specs name x."""
    body = lambda block: jax.lax.all_gather(block, "x", axis=1, tiled=True)
    return _map(body, mesh, P(None, "x"), P(None, "x"), a)


def gather_columns__wrong_in_whole(a, *, mesh):
    """Lets in_specs gather: no collective of its own."""
    return _map(lambda block: block, mesh, P(), P(), a)


def gather_columns__wrong_no_gather(a, *, mesh):
    """Forgot the gather and took the check off."""
    return _map(lambda block: block, mesh, P(None, "x"), P(), a, check=False)


def gather_columns__wrong_notebook_mesh(a, *, mesh):
    """The notebook's mesh."""
    body = lambda block: jax.lax.all_gather(block, "x", axis=1, tiled=True)
    return _map(body, MESH, P(None, "x"), P(), a, check=False)


def gather_columns__wrong_psum(a, *, mesh):
    """Writes its block into zeros and adds: twice the bytes."""

    def body(block):
        n = mesh.shape["x"]
        whole = jnp.zeros((block.shape[0], n * block.shape[1]), block.dtype)
        start = jax.lax.axis_index("x") * block.shape[1]
        return jax.lax.psum(jax.lax.dynamic_update_slice(whole, block, (0, start)), "x")

    return _map(body, mesh, P(None, "x"), P(), a, check=False)


def sum_and_split__right_scatter(parts, *, mesh):
    """The plain way."""
    body = lambda p: jax.lax.psum_scatter(p[0], "x", scatter_dimension=0, tiled=True)
    return _map(body, mesh, P("x"), P("x"), parts)


def sum_and_split__right_dimension(parts, *, mesh):
    """Scatters dimension 1 of the three and drops the first afterwards."""
    body = lambda p: jax.lax.psum_scatter(p, "x", scatter_dimension=1, tiled=True)[0]
    return _map(body, mesh, P("x", None, None), P("x", None), parts)


def sum_and_split__right_squeeze(parts, *, mesh):
    """squeeze in place of [0]."""

    def deal(block):
        own = jnp.squeeze(block, axis=0)
        return jax.lax.psum_scatter(own, "x", tiled=True)

    return jax.jit(jax.shard_map(deal, mesh=mesh, in_specs=(P("x", None, None),), out_specs=P("x", None)))(parts)


def sum_and_split__wrong_psum(parts, *, mesh):
    """psum, then each takes its rows."""

    def body(p):
        total = jax.lax.psum(p[0], "x")
        rows = total.shape[0] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(total, jax.lax.axis_index("x") * rows, rows)

    return _map(body, mesh, P("x"), P("x"), parts)


def sum_and_split__wrong_columns(parts, *, mesh):
    """Scatters the columns."""
    body = lambda p: jax.lax.psum_scatter(p[0], "x", scatter_dimension=1, tiled=True)
    return _map(body, mesh, P("x"), P("x"), parts)


def sum_and_split__wrong_whole(parts, *, mesh):
    """Everybody keeps everything."""
    return _map(lambda p: jax.lax.psum(p[0], "x"), mesh, P("x"), P(), parts)


def sum_and_split__wrong_untiled(parts, *, mesh):
    """Forgot tiled."""
    return _map(lambda p: jax.lax.psum_scatter(p[0], "x"), mesh, P("x"), P("x"), parts)


def sum_and_split__wrong_exchange(parts, *, mesh):
    """An exchange without a sum."""
    body = lambda p: jax.lax.all_to_all(p[0], "x", 0, 0, tiled=True)
    return _map(body, mesh, P("x"), P("x"), parts)


def sum_and_split__wrong_exchange_sum(parts, *, mesh):
    """An exchange, and a mean in place of the sum."""

    def body(p):
        n = mesh.shape["x"]
        pieces = jax.lax.all_to_all(p[0].reshape(n, -1, p.shape[2]), "x", 0, 0)
        return pieces.mean(axis=0)

    return _map(body, mesh, P("x"), P("x"), parts)


def sum_and_split__wrong_kept(parts, *, mesh):
    """Keeps the dimension N: scatters a dimension of length one."""
    body = lambda p: jax.lax.psum_scatter(p, "x", scatter_dimension=0, tiled=True)
    return _map(body, mesh, P("x"), P("x"), parts)


def sum_and_split__wrong_local(parts, *, mesh):
    """Adds up its own block only."""
    return _map(lambda p: p.sum(axis=0), mesh, P("x"), P("x"), parts)


def sum_and_split__wrong_gathered(parts, *, mesh):
    """Gathers, then adds and cuts."""

    def body(p):
        total = jax.lax.all_gather(p[0], "x").sum(axis=0)
        rows = total.shape[0] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(total, jax.lax.axis_index("x") * rows, rows)

    return _map(body, mesh, P("x"), P("x"), parts)


def reshard_rows_to_cols__right_exchange(x, *, mesh):
    """The plain way."""
    body = lambda b: jax.lax.all_to_all(b, "x", split_axis=1, concat_axis=0, tiled=True)
    return _map(body, mesh, P("x", None), P(None, "x"), x)


def reshard_rows_to_cols__right_untiled(x, *, mesh):
    """Untiled, by reshape."""

    def body(b):
        n = mesh.shape["x"]
        pieces = b.reshape(b.shape[0], n, -1)
        return jax.lax.all_to_all(pieces, "x", split_axis=1, concat_axis=0).reshape(n * b.shape[0], -1)

    return _map(body, mesh, P("x"), P(None, "x"), x)


def reshard_rows_to_cols__wrong_example(x, *, mesh):
    """The axes as in the example."""
    body = lambda b: jax.lax.all_to_all(b, "x", split_axis=0, concat_axis=1, tiled=True)
    return _map(body, mesh, P("x", None), P(None, "x"), x)


def reshard_rows_to_cols__wrong_gather(x, *, mesh):
    """Gathers and cuts."""

    def body(b):
        whole = jax.lax.all_gather(b, "x", axis=0, tiled=True)
        n = whole.shape[1] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * n, n, axis=1)

    return _map(body, mesh, P("x", None), P(None, "x"), x)


def reshard_rows_to_cols__wrong_specs(x, *, mesh):
    """Only the out_specs: blocks stand side by side."""
    return _map(lambda b: b, mesh, P("x", None), P(None, "x"), x)


def reshard_rows_to_cols__wrong_in_specs(x, *, mesh):
    """Lets in_specs do it."""
    return _map(lambda b: b, mesh, P(None, "x"), P(None, "x"), x)


def reshard_rows_to_cols__wrong_y(x, *, mesh):
    """Over y, as in the example."""
    body = lambda b: jax.lax.all_to_all(b, "y", split_axis=1, concat_axis=0, tiled=True)
    return _map(body, mesh, P("y", None), P(None, "y"), x)


def reshard_rows_to_cols__wrong_transposed(x, *, mesh):
    """Transposes as well."""
    body = lambda b: jax.lax.all_to_all(b, "x", split_axis=1, concat_axis=0, tiled=True).T
    return _map(body, mesh, P("x", None), P(None, "x"), x)


def reshard_rows_to_cols__wrong_out(x, *, mesh):
    """out_specs by rows still."""
    body = lambda b: jax.lax.all_to_all(b, "x", split_axis=1, concat_axis=0, tiled=True)
    return _map(body, mesh, P("x", None), P("x", None), x)


def reshard_rows_to_cols__wrong_same_axis(x, *, mesh):
    """Splits and joins along the columns."""
    body = lambda b: jax.lax.all_to_all(b, "x", split_axis=1, concat_axis=1, tiled=True)
    return _map(body, mesh, P("x", None), P("x", None), x)


def distributed_transpose__right_after(x, *, mesh):
    """Exchange, then .T."""
    body = lambda b: jax.lax.all_to_all(b, "x", split_axis=1, concat_axis=0, tiled=True).T
    return _map(body, mesh, P("x", None), P("x", None), x)


def distributed_transpose__right_before(x, *, mesh):
    """.T, then exchange."""
    body = lambda b: jax.lax.all_to_all(b.T, "x", split_axis=0, concat_axis=1, tiled=True)
    return _map(body, mesh, P("x"), P("x"), x)


def distributed_transpose__wrong_no_t(x, *, mesh):
    """Forgot .T."""
    body = lambda b: jax.lax.all_to_all(b, "x", split_axis=1, concat_axis=0, tiled=True)
    return _map(body, mesh, P("x", None), P("x", None), x)


def distributed_transpose__wrong_local(x, *, mesh):
    """Without sending: the layout of the transpose is by columns."""
    return _map(lambda b: b.T, mesh, P("x", None), P(None, "x"), x)


def distributed_transpose__wrong_blocks(x, *, mesh):
    """Turns its block only."""
    return _map(lambda b: b.T, mesh, P("x", None), P("x", None), x)


def distributed_transpose__wrong_gather(x, *, mesh):
    """Gathers everything."""

    def body(b):
        whole = jax.lax.all_gather(b, "x", axis=0, tiled=True).T
        n = whole.shape[0] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * n, n)

    return _map(body, mesh, P("x", None), P("x", None), x)


def distributed_transpose__wrong_twice(x, *, mesh):
    """Turns twice."""
    body = lambda b: jax.lax.all_to_all(b.T, "x", split_axis=0, concat_axis=1, tiled=True).T
    return _map(body, mesh, P("x", None), P(None, "x"), x)


def distributed_transpose__wrong_outside(x, *, mesh):
    """Transposes outside, without a shard_map."""
    return x.T


def distributed_transpose__wrong_axes(x, *, mesh):
    """The two axes of the exchange swapped, then .T."""
    body = lambda b: jax.lax.all_to_all(b.T, "x", split_axis=1, concat_axis=0, tiled=True)
    return _map(body, mesh, P("x", None), P("x", None), x)


def psum_by_two__right_two(parts, w, *, mesh):
    """The plain way."""

    def body(p, w):
        share = jax.lax.psum_scatter(p[0], "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(share @ w, "x", axis=0, tiled=True, **INVARYING)

    return _map(body, mesh, (P("x"), P()), P(), parts, w, check=CHECK)


def psum_by_two__right_unchecked(parts, w, *, mesh):
    """With the check off, names spelled out."""

    def on_device(own, w):
        rows = jax.lax.psum_scatter(own.squeeze(0), "x", tiled=True)
        product = jnp.matmul(rows, w)
        return jax.lax.all_gather(product, "x", tiled=True)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None, None), P(None, None)), out_specs=P(None, None), check_vma=False
    )(parts, w)


def psum_by_two__wrong_psum(parts, w, *, mesh):
    """One psum: everybody multiplies everything."""
    return _map(lambda p, w: jax.lax.psum(p[0], "x") @ w, mesh, (P("x"), P()), P(), parts, w)


def psum_by_two__wrong_product_first(parts, w, *, mesh):
    """Multiplies the parts, then adds."""
    return _map(lambda p, w: jax.lax.psum(p[0] @ w, "x"), mesh, (P("x"), P()), P(), parts, w)


def psum_by_two__wrong_late(parts, w, *, mesh):
    """Gathers before the product."""

    def body(p, w):
        share = jax.lax.psum_scatter(p[0], "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(share, "x", axis=0, tiled=True) @ w

    return _map(body, mesh, (P("x"), P()), P(), parts, w, check=False)


def psum_by_two__wrong_not_gathered(parts, w, *, mesh):
    """Leaves the rows where they are."""

    def body(p, w):
        return jax.lax.psum_scatter(p[0], "x", scatter_dimension=0, tiled=True) @ w

    return _map(body, mesh, (P("x"), P()), P("x"), parts, w)


def psum_by_two__wrong_columns(parts, w, *, mesh):
    """Scatters columns."""

    def body(p, w):
        share = jax.lax.psum_scatter(p[0], "x", scatter_dimension=1, tiled=True)
        return jax.lax.all_gather(share @ w, "x", axis=0, tiled=True)

    return _map(body, mesh, (P("x"), P()), P(), parts, w, check=False)


def psum_by_two__wrong_gather_axis(parts, w, *, mesh):
    """Gathers along the columns."""

    def body(p, w):
        share = jax.lax.psum_scatter(p[0], "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(share @ w, "x", axis=1, tiled=True)

    return _map(body, mesh, (P("x"), P()), P(), parts, w, check=False)


def psum_by_two__wrong_no_w(parts, w, *, mesh):
    """Forgot the product."""

    def body(p, w):
        share = jax.lax.psum_scatter(p[0], "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(share, "x", axis=0, tiled=True)

    return _map(body, mesh, (P("x"), P()), P(), parts, w, check=False)


def psum_by_two__wrong_psum_too(parts, w, *, mesh):
    """A psum before the scatter: n times too much."""

    def body(p, w):
        total = jax.lax.psum(p[0], "x")
        share = jax.lax.psum_scatter(total, "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(share @ w, "x", axis=0, tiled=True)

    return _map(body, mesh, (P("x"), P()), P(), parts, w, check=False)


def psum_by_two__wrong_check(parts, w, *, mesh):
    """Forgot to=, check on."""

    def body(p, w):
        share = jax.lax.psum_scatter(p[0], "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(share @ w, "x", axis=0, tiled=True)

    return _map(body, mesh, (P("x"), P()), P(), parts, w)


def global_argmax__right_place(v, *, mesh):
    """The hints' way."""

    def body(block):
        n = block.shape[0]
        places = jax.lax.axis_index("x") * n + jnp.arange(n)
        largest = jax.lax.pmax(block.max(), "x")
        mine = jnp.where(block == largest, places, jnp.iinfo(jnp.int32).max).min()
        return jax.lax.pmin(mine, "x")

    return _map(body, mesh, P("x"), P(), v)


def global_argmax__right_argmax(v, *, mesh):
    """argmax of the block, then compare."""

    def body(block):
        k = jnp.argmax(block)
        place = k + jax.lax.axis_index("x") * len(block)
        best = jax.lax.pmax(block[k], "x")
        return jax.lax.pmin(jnp.where(block[k] == best, place, v.shape[0]), "x")

    return _map(body, mesh, P("x"), P(), v)


def global_argmax__right_candidates(v, *, mesh):
    """Gathers one candidate of each device."""

    def body(block):
        k = jnp.argmax(block)
        values = jax.lax.all_gather(block[k], "x")
        places = jax.lax.all_gather(k + jax.lax.axis_index("x") * block.shape[0], "x")
        return places[jnp.argmax(values)]

    return _map(body, mesh, P("x"), P(), v, check=False)


def global_argmax__wrong_local(v, *, mesh):
    """The place in the block."""

    def body(block):
        largest = jax.lax.pmax(block.max(), "x")
        mine = jnp.where(block == largest, jnp.arange(block.shape[0]), 10**6).min()
        return jax.lax.pmin(mine, "x")

    return _map(body, mesh, P("x"), P(), v)


def global_argmax__wrong_last(v, *, mesh):
    """The last of several."""

    def body(block):
        n = block.shape[0]
        places = jax.lax.axis_index("x") * n + jnp.arange(n)
        largest = jax.lax.pmax(block.max(), "x")
        return jax.lax.pmax(jnp.where(block == largest, places, -1).max(), "x")

    return _map(body, mesh, P("x"), P(), v)


def global_argmax__wrong_pmax(v, *, mesh):
    """The largest of the local places."""

    def body(block):
        return jax.lax.pmax(jnp.argmax(block) + jax.lax.axis_index("x") * block.shape[0], "x")

    return _map(body, mesh, P("x"), P(), v)


def global_argmax__wrong_gather(v, *, mesh):
    """Sends the vector."""
    body = lambda block: jnp.argmax(jax.lax.all_gather(block, "x", tiled=True))
    return _map(body, mesh, P("x"), P(), v, check=False)


def global_argmax__wrong_value(v, *, mesh):
    """The value, not its place."""
    return _map(lambda block: jax.lax.pmax(block.max(), "x"), mesh, P("x"), P(), v)


def global_argmax__wrong_zero(v, *, mesh):
    """Zero in place of a large number."""

    def body(block):
        n = block.shape[0]
        places = jax.lax.axis_index("x") * n + jnp.arange(n)
        largest = jax.lax.pmax(block.max(), "x")
        return jax.lax.pmin(jnp.where(block == largest, places, 0).min(), "x")

    return _map(body, mesh, P("x"), P(), v)


def global_argmax__wrong_unchecked(v, *, mesh):
    """Each its own, check off."""

    def body(block):
        return jnp.argmax(block) + jax.lax.axis_index("x") * block.shape[0]

    return _map(body, mesh, P("x"), P(), v, check=False)


def global_argmax__wrong_absolute(v, *, mesh):
    """The largest in absolute value."""

    def body(block):
        block = jnp.abs(block)
        n = block.shape[0]
        places = jax.lax.axis_index("x") * n + jnp.arange(n)
        largest = jax.lax.pmax(block.max(), "x")
        return jax.lax.pmin(jnp.where(block == largest, places, 10**6).min(), "x")

    return _map(body, mesh, P("x"), P(), v)


def global_argmax__wrong_psum(v, *, mesh):
    """A psum of masked places: adds ties up."""

    def body(block):
        k = jnp.argmax(block)
        place = k + jax.lax.axis_index("x") * len(block)
        best = jax.lax.pmax(block[k], "x")
        return jax.lax.psum(jnp.where(block[k] == best, place, 0), "x")

    return _map(body, mesh, P("x"), P(), v)


def global_logsumexp__right_pmax(x, *, mesh):
    """The plain way."""

    def body(b):
        m = jax.lax.pmax(b.max(axis=1), "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))

    return _map(body, mesh, P(None, "x"), P(), x)


def global_logsumexp__right_keepdims(x, *, mesh):
    """keepdims and squeeze."""

    def body(b):
        top = jax.lax.pmax(jnp.max(b, 1, keepdims=True), "x")
        total = jax.lax.psum(jnp.sum(jnp.exp(b - top), 1, keepdims=True), "x")
        return (top + jnp.log(total))[:, 0]

    return _map(body, mesh, P(None, "x"), P(None), x)


def global_logsumexp__right_of_parts(x, *, mesh):
    """logsumexp of each block, then of the n results."""

    def body(b):
        part = jax.nn.logsumexp(b, axis=1)
        return jax.nn.logsumexp(jax.lax.all_gather(part, "x"), axis=0)

    return _map(body, mesh, P(None, "x"), P(), x, check=False)


def global_logsumexp__wrong_plain(x, *, mesh):
    """As on paper."""
    return _map(lambda b: jnp.log(jax.lax.psum(jnp.exp(b).sum(1), "x")), mesh, P(None, "x"), P(), x)


def global_logsumexp__wrong_local_max(x, *, mesh):
    """Each its own maximum, check off."""

    def body(b):
        m = b.max(axis=1)
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))

    return _map(body, mesh, P(None, "x"), P(), x, check=False)


def global_logsumexp__wrong_not_back(x, *, mesh):
    """Forgot to put the maximum back."""

    def body(b):
        m = jax.lax.pmax(b.max(axis=1), "x")
        return jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))

    return _map(body, mesh, P(None, "x"), P(), x)


def global_logsumexp__wrong_inside_psum(x, *, mesh):
    """The logarithm inside the psum."""

    def body(b):
        m = jax.lax.pmax(b.max(axis=1), "x")
        return m + jax.lax.psum(jnp.log(jnp.exp(b - m[:, None]).sum(axis=1)), "x")

    return _map(body, mesh, P(None, "x"), P(), x)


def global_logsumexp__wrong_psum_local(x, *, mesh):
    """A psum of the blocks' results."""
    return _map(lambda b: jax.lax.psum(jax.nn.logsumexp(b, axis=1), "x"), mesh, P(None, "x"), P(), x)


def global_logsumexp__wrong_overall(x, *, mesh):
    """One number for all rows."""

    def body(b):
        m = jax.lax.pmax(b.max(), "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m).sum(), "x"))

    return _map(body, mesh, P(None, "x"), P(), x)


def global_logsumexp__wrong_one_max(x, *, mesh):
    """One maximum for all rows."""

    def body(b):
        m = jax.lax.pmax(b.max(), "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m).sum(axis=1), "x"))

    return _map(body, mesh, P(None, "x"), P(), x)


def global_logsumexp__wrong_columns(x, *, mesh):
    """Columns in place of rows."""

    def body(b):
        m = b.max(axis=0)
        return m + jnp.log(jnp.exp(b - m).sum(axis=0))

    return _map(body, mesh, P(None, "x"), P("x"), x)


def global_logsumexp__wrong_gather(x, *, mesh):
    """Gathers the logits."""
    body = lambda b: jax.nn.logsumexp(jax.lax.all_gather(b, "x", axis=1, tiled=True), axis=1)
    return _map(body, mesh, P(None, "x"), P(), x, check=False)


def global_logsumexp__wrong_min(x, *, mesh):
    """pmin for pmax."""

    def body(b):
        m = jax.lax.pmin(b.min(axis=1), "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))

    return _map(body, mesh, P(None, "x"), P(), x)


def safe_softmax__right_keepdims(x, *, mesh):
    """The plain way."""

    def body(b):
        e = jnp.exp(b - jax.lax.pmax(b.max(axis=1, keepdims=True), "x"))
        return e / jax.lax.psum(e.sum(axis=1, keepdims=True), "x")

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__right_logsumexp(x, *, mesh):
    """exp(x − logsumexp)."""

    def body(b):
        m = jax.lax.pmax(b.max(axis=1), "x")
        lse = m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))
        return jnp.exp(b - lse[:, None])

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_local(x, *, mesh):
    """Each block by itself."""
    return _map(lambda b: jax.nn.softmax(b, axis=1), mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_local_max(x, *, mesh):
    """The block's maximum."""

    def body(b):
        e = jnp.exp(b - b.max(axis=1, keepdims=True))
        return e / jax.lax.psum(e.sum(axis=1, keepdims=True), "x")

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_local_sum(x, *, mesh):
    """The block's sum."""

    def body(b):
        e = jnp.exp(b - jax.lax.pmax(b.max(axis=1, keepdims=True), "x"))
        return e / e.sum(axis=1, keepdims=True)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_no_max(x, *, mesh):
    """No maximum."""

    def body(b):
        e = jnp.exp(b)
        return e / jax.lax.psum(e.sum(axis=1, keepdims=True), "x")

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_all(x, *, mesh):
    """Adds up over rows too."""

    def body(b):
        e = jnp.exp(b - jax.lax.pmax(b.max(axis=1, keepdims=True), "x"))
        return e / jax.lax.psum(e.sum(), "x")

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_both(x, *, mesh):
    """The sum over both axes: y counts twice."""

    def body(b):
        e = jnp.exp(b - jax.lax.pmax(b.max(axis=1, keepdims=True), "x"))
        return e / jax.lax.psum(e.sum(axis=1, keepdims=True), ("x", "y"))

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_pmean(x, *, mesh):
    """pmean for psum."""

    def body(b):
        e = jnp.exp(b - jax.lax.pmax(b.max(axis=1, keepdims=True), "x"))
        return e / jax.lax.pmean(e.sum(axis=1, keepdims=True), "x")

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_columns(x, *, mesh):
    """Columns."""
    return _map(lambda b: jax.nn.softmax(b, axis=0), mesh, P(None, "x"), P(None, "x"), x)


def safe_softmax__wrong_gathered(x, *, mesh):
    """Gathers and keeps everything."""
    body = lambda b: jax.nn.softmax(jax.lax.all_gather(b, "x", axis=1, tiled=True), axis=1)
    return _map(body, mesh, P(None, "x"), P(), x, check=False)


def _lse(x, mesh, check=True, stop=True):
    def body(b):
        m = b.max(axis=1)
        m = jax.lax.pmax(jax.lax.stop_gradient(m) if stop else m, "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))

    return _map(body, mesh, P(None, "x"), P(), x, check=check)


def logsumexp_gradient__right_grad(x, *, mesh):
    """The plain way."""
    return jax.grad(lambda x: _lse(x, mesh).sum())(x)


def logsumexp_gradient__right_block(x, *, mesh):
    """stop_gradient round the block."""

    def body(b):
        m = jax.lax.pmax(jax.lax.stop_gradient(b).max(axis=1, keepdims=True), "x")
        return (m[:, 0]) + jnp.log(jax.lax.psum(jnp.exp(b - m).sum(axis=1), "x"))

    program = jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.jit(jax.grad(lambda x: jnp.sum(program(x))))(x)


def logsumexp_gradient__wrong_no_stop(x, *, mesh):
    """No stop_gradient."""
    return jax.grad(lambda x: _lse(x, mesh, stop=False).sum())(x)


def logsumexp_gradient__wrong_outside_stop(x, *, mesh):
    """stop_gradient round the pmax."""

    def body(b):
        m = jax.lax.stop_gradient(jax.lax.pmax(b.max(axis=1), "x"))
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))

    return jax.grad(lambda x: _map(body, mesh, P(None, "x"), P(), x).sum())(x)


def logsumexp_gradient__wrong_value(x, *, mesh):
    """The sum, no gradient."""
    return _lse(x, mesh).sum()


def logsumexp_gradient__wrong_unchecked(x, *, mesh):
    """With the check off."""
    return jax.grad(lambda x: _lse(x, mesh, check=False).sum())(x)


def logsumexp_gradient__wrong_inside(x, *, mesh):
    """Differentiates inside with the check off."""

    def body(b):
        def f(b):
            m = jax.lax.pmax(jax.lax.stop_gradient(b.max(axis=1)), "x")
            return (m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))).sum()

        return jax.grad(f)(b)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x, check=False)


def logsumexp_gradient__wrong_stops_all(x, *, mesh):
    """Stops all of it."""

    def body(b):
        b = jax.lax.stop_gradient(b)
        m = jax.lax.pmax(b.max(axis=1), "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(b - m[:, None]).sum(axis=1), "x"))

    return jax.grad(lambda x: _map(body, mesh, P(None, "x"), P(), x).sum())(x)


def logsumexp_gradient__wrong_mean(x, *, mesh):
    """The mean of the rows."""
    return jax.grad(lambda x: _lse(x, mesh).mean())(x)


def logsumexp_gradient__wrong_softmax(x, *, mesh):
    """Writes the softmax of each block."""
    return _map(lambda b: jax.nn.softmax(b, axis=1), mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__right_pmean(x, *, mesh):
    """The plain way."""

    def body(b):
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        variance = jax.lax.pmean(((b - mean) ** 2).mean(axis=1, keepdims=True), "x")
        return (b - mean) / jnp.sqrt(variance + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__right_rsqrt(x, *, mesh):
    """psum over the number of features, rsqrt."""
    features = x.shape[1]

    def body(b):
        mean = jax.lax.psum(b.sum(1, keepdims=True), "x") / features
        centred = b - mean
        variance = jax.lax.psum((centred * centred).sum(1, keepdims=True), "x") / features
        return centred * jax.lax.rsqrt(variance + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_local(x, *, mesh):
    """Never communicates."""

    def body(b):
        mean = b.mean(axis=1, keepdims=True)
        return (b - mean) / jnp.sqrt(b.var(axis=1, keepdims=True) + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_local_variance(x, *, mesh):
    """The mean of all, the block's own variance."""

    def body(b):
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        return (b - mean) / jnp.sqrt(b.var(axis=1, keepdims=True) + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_mean_variance(x, *, mesh):
    """The mean of the blocks' variances."""

    def body(b):
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        variance = jax.lax.pmean(b.var(axis=1, keepdims=True), "x")
        return (b - mean) / jnp.sqrt(variance + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_eps_outside(x, *, mesh):
    """Epsilon outside of the root."""

    def body(b):
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        variance = jax.lax.pmean(((b - mean) ** 2).mean(axis=1, keepdims=True), "x")
        return (b - mean) / (jnp.sqrt(variance) + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_no_eps(x, *, mesh):
    """No epsilon."""

    def body(b):
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        variance = jax.lax.pmean(((b - mean) ** 2).mean(axis=1, keepdims=True), "x")
        return (b - mean) / jnp.sqrt(variance)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_no_root(x, *, mesh):
    """Divides by the variance."""

    def body(b):
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        variance = jax.lax.pmean(((b - mean) ** 2).mean(axis=1, keepdims=True), "x")
        return (b - mean) / (variance + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_psum(x, *, mesh):
    """psum for pmean, in the variance."""

    def body(b):
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        variance = jax.lax.psum(((b - mean) ** 2).mean(axis=1, keepdims=True), "x")
        return (b - mean) / jnp.sqrt(variance + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_columns(x, *, mesh):
    """Columns."""

    def body(b):
        mean = b.mean(axis=0)
        return (b - mean) / jnp.sqrt(b.var(axis=0) + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_all(x, *, mesh):
    """Mean and variance of everything."""

    def body(b):
        mean = jax.lax.pmean(b.mean(), "x")
        variance = jax.lax.pmean(((b - mean) ** 2).mean(), "x")
        return (b - mean) / jnp.sqrt(variance + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def sharded_layernorm__wrong_ddof(x, *, mesh):
    """Divides by n − 1."""

    def body(b):
        n = x.shape[1]
        mean = jax.lax.pmean(b.mean(axis=1, keepdims=True), "x")
        variance = jax.lax.psum(((b - mean) ** 2).sum(axis=1, keepdims=True), "x") / (n - 1)
        return (b - mean) / jnp.sqrt(variance + 1e-5)

    return _map(body, mesh, P(None, "x"), P(None, "x"), x)


def masked_mean__right_two(x, mask, *, mesh):
    """The plain way."""

    def body(x, mask):
        return jax.lax.psum(jnp.where(mask, x, 0).sum(), "x") / jax.lax.psum(mask.sum(), "x")

    return _map(body, mesh, (P("x"), P("x")), P(), x, mask)


def masked_mean__right_pair(x, mask, *, mesh):
    """Both in one psum."""

    def body(x, mask):
        total, count = jax.lax.psum(((x * mask).sum(), mask.sum()), "x")
        return total / count

    return _map(body, mesh, P("x"), P(), x, mask)


def masked_mean__wrong_local(x, mask, *, mesh):
    """The mean of the devices' means."""

    def body(x, mask):
        return jax.lax.pmean(jnp.where(mask, x, 0).sum() / mask.sum(), "x")

    return _map(body, mesh, P("x"), P(), x, mask)


def masked_mean__wrong_guarded(x, mask, *, mesh):
    """The mean of the devices' means, empty ones as zero."""

    def body(x, mask):
        return jax.lax.pmean(jnp.where(mask, x, 0).sum() / jnp.maximum(mask.sum(), 1), "x")

    return _map(body, mesh, P("x"), P(), x, mask)


def masked_mean__wrong_all(x, mask, *, mesh):
    """Divides by all entries."""
    return _map(lambda x, m: jax.lax.pmean((x * m).mean(), "x"), mesh, P("x"), P(), x, mask)


def masked_mean__wrong_no_count(x, mask, *, mesh):
    """The count of its own entries."""

    def body(x, mask):
        return jax.lax.psum((x * mask).sum(), "x") / mask.sum()

    return _map(body, mesh, P("x"), P(), x, mask, check=False)


def masked_mean__wrong_unmasked(x, mask, *, mesh):
    """Forgot the mask above."""

    def body(x, mask):
        return jax.lax.psum(x.sum(), "x") / jax.lax.psum(mask.sum(), "x")

    return _map(body, mesh, P("x"), P(), x, mask)


def masked_mean__wrong_inverted(x, mask, *, mesh):
    """The mask turned round."""

    def body(x, mask):
        return jax.lax.psum(jnp.where(mask, 0, x).sum(), "x") / jax.lax.psum((~mask).sum(), "x")

    return _map(body, mesh, P("x"), P(), x, mask)


def masked_mean__wrong_index(x, mask, *, mesh):
    """x[mask] inside: shapes are not known."""
    return _map(lambda x, m: jax.lax.pmean(x[m].mean(), "x"), mesh, P("x"), P(), x, mask)


def masked_mean__wrong_pmean_count(x, mask, *, mesh):
    """psum above, pmean below."""

    def body(x, mask):
        return jax.lax.psum((x * mask).sum(), "x") / jax.lax.pmean(mask.sum(), "x")

    return _map(body, mesh, P("x"), P(), x, mask)


choose_collective__right_chosen = {
    "weights": "all_gather",
    "gradient": "psum",
    "shares": "psum_scatter",
    "tokens": "all_to_all",
    "neighbour": "ppermute",
    "largest": "pmax",
}
# adds and throws away
choose_collective__wrong_shares = choose_collective__right_chosen | {"shares": "psum"}
# tokens to all
choose_collective__wrong_tokens = choose_collective__right_chosen | {"tokens": "all_gather"}
# gathers a row
choose_collective__wrong_neighbour = choose_collective__right_chosen | {"neighbour": "all_gather"}
# the mean gradient
choose_collective__wrong_gradient = choose_collective__right_chosen | {"gradient": "pmean"}
# weights are added
choose_collective__wrong_weights = choose_collective__right_chosen | {"weights": "psum"}
# gathers the maxima
choose_collective__wrong_largest = choose_collective__right_chosen | {"largest": "all_gather"}


# Near misses: wrong at an edge that the text covers.


def all_gather_ref__wrong_vstack(blocks, axis, tiled):
    if tiled:
        whole = np.vstack(blocks) if axis == 0 else np.hstack(blocks)
    else:
        whole = np.stack(blocks, axis)
    return [whole] * len(blocks)


def all_gather_ref__wrong_swapped_axes(blocks, axis, tiled):
    whole = np.concatenate(blocks, axis) if tiled else np.stack(blocks).swapaxes(0, axis)
    return [whole] * len(blocks)


def all_gather_ref__right_moved(blocks, axis, tiled):
    n = len(blocks)
    whole = np.moveaxis(np.array(blocks), 0, axis)
    if tiled:
        shape = list(np.shape(blocks[0]))
        shape[axis] *= n
        whole = whole.reshape(shape)
    return [whole for _ in range(n)]


def psum_scatter_ref__wrong_rows_or_last(blocks, scatter_dimension):
    total, n = np.sum(blocks, 0), len(blocks)
    return np.vsplit(total, n) if scatter_dimension == 0 and total.ndim > 1 else np.split(total, n, -1)


def all_to_all_ref__wrong_2d_default(blocks, split_axis, concat_axis):
    n = len(blocks)
    pieces = [np.split(b, n, split_axis) for b in blocks]
    return [np.concatenate([pieces[s][d] for s in range(n)], 0 if split_axis else blocks[0].ndim - 1) for d in range(n)]


def _mapped(f, mesh, i, o, **k):
    return jax.shard_map(f, mesh=mesh, in_specs=i, out_specs=o, **k)


V, R, C = P("x"), P("x", None), P(None, "x")


def global_logsumexp__wrong_mean_shift(x, *, mesh):
    def f(x):
        m = jax.lax.pmean(x.mean(1), "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(x - m[:, None]).sum(1), "x"))

    return _mapped(f, mesh, C, P(None))(x)


def global_logsumexp__right_local_logsumexp(x, *, mesh):
    def f(x):
        l = jax.nn.logsumexp(x, axis=1)
        m = jax.lax.pmax(l, "x")
        return m + jnp.log(jax.lax.psum(jnp.exp(l - m), "x"))

    return _mapped(f, mesh, C, P(None))(x)


def safe_softmax__wrong_mean_shift(x, *, mesh):
    def f(x):
        t = jnp.exp(x - jax.lax.pmean(x.mean(1, keepdims=True), "x"))
        return t / jax.lax.psum(t.sum(1, keepdims=True), "x")

    return _mapped(f, mesh, C, C)(x)


def global_argmax__wrong_local_winner(v, *, mesh):
    def f(b):
        m = jax.lax.pmax(b.max(), "x")
        return jax.lax.pmin(jnp.where(b.max() >= m, jax.lax.axis_index("x") * len(b) + b.argmax(), len(b) * 4), "x")

    return _mapped(f, mesh, V, P())(v)


def global_argmax__wrong_from_zero(v, *, mesh):
    def f(b):
        m = jnp.maximum(jax.lax.pmax(b.max(), "x"), 0)
        p = jax.lax.axis_index("x") * len(b) + jnp.arange(len(b))
        return jax.lax.pmin(jnp.where(b == m, p, len(v)).min(), "x")

    return _mapped(f, mesh, V, P())(v)


def ppermute_ref__wrong_vectors(blocks, perm):
    """Zeros for a block that is a vector."""
    source = {d: s for s, d in perm}
    return [blocks[source[d]] if d in source else np.zeros(len(blocks[d])) for d in range(len(blocks))]


def psum_scatter_ref__wrong_rows_or_columns(blocks, scatter_dimension):
    """There are rows and columns."""
    total, n = np.sum(blocks, axis=0), len(blocks)
    k = total.shape[scatter_dimension] // n
    return [total[i * k : (i + 1) * k] if scatter_dimension == 0 else total[:, i * k : (i + 1) * k] for i in range(n)]


def all_to_all_ref__wrong_rows_or_columns(blocks, split_axis, concat_axis):
    """Split by rows or by columns."""
    n = len(blocks)
    k = blocks[0].shape[split_axis] // n

    def piece(block, i):
        return block[i * k : (i + 1) * k] if split_axis == 0 else block[:, i * k : (i + 1) * k]

    return [np.concatenate([piece(block, i) for block in blocks], concat_axis) for i in range(n)]


def all_to_all_ref__wrong_two_stacks(blocks, split_axis, concat_axis):
    """vstack or hstack."""
    pieces = [np.split(block, len(blocks), split_axis) for block in blocks]
    join = np.hstack if concat_axis == 1 or blocks[0].ndim == 1 else np.vstack
    return [join(received) for received in zip(*pieces)]


def reshard_rows_to_cols__wrong_turns(x, *, mesh):
    """The same bytes by ppermutes; one all_to_all and nothing else is asked for."""
    n = mesh.shape["x"]

    def body(x):
        me, (rows, width) = jax.lax.axis_index("x"), (x.shape[0], x.shape[1] // n)
        out = jnp.zeros((rows * n, width), x.dtype)
        for turn in range(n):
            piece = jax.lax.dynamic_slice_in_dim(x, (me + turn) % n * width, width, axis=1)
            if turn:
                piece = jax.lax.ppermute(piece, "x", [(k, (k + turn) % n) for k in range(n)])
            out = jax.lax.dynamic_update_slice_in_dim(out, piece, (me - turn) % n * rows, axis=0)
        return out

    return _mapped(body, mesh, R, C, check_vma=False)(x)


def reshard_rows_to_cols__wrong_half(x, *, mesh):
    """Half the bytes: sent in float16."""

    def body(x):
        return jax.lax.all_to_all(x.astype(jnp.float16), "x", 1, 0, tiled=True).astype(x.dtype)

    return _mapped(body, mesh, R, C)(x)


def gather_columns__wrong_half(a, *, mesh):
    """Half the bytes: sent in bfloat16."""

    def body(a):
        return jax.lax.all_gather(a.astype(jnp.bfloat16), "x", axis=1, tiled=True).astype(a.dtype)

    return _mapped(body, mesh, C, P(), check_vma=False)(a)


def sum_and_split__wrong_half(parts, *, mesh):
    """Half the bytes: sent in bfloat16."""

    def body(parts):
        return jax.lax.psum_scatter(parts[0].astype(jnp.bfloat16), "x", tiled=True).astype(parts.dtype)

    return _mapped(body, mesh, V, R)(parts)


def distributed_transpose__wrong_half(x, *, mesh):
    """Half the bytes: sent in bfloat16."""

    def body(x):
        return jax.lax.all_to_all(x.astype(jnp.bfloat16), "x", 1, 0, tiled=True).astype(x.dtype).T

    return _mapped(body, mesh, R, R)(x)


def _named(before, after, start=-np.inf):
    """By the shape of a block, and then by its numbers."""
    held, (n, length), got = np.stack(before), np.shape(before), np.asarray(after[0])
    shapes = {(): "axis_index", (n, length): "all_gather", (n * length,): "all_gather tiled"}
    shapes[(length // n,)] = "psum_scatter"
    if got.shape in shapes:
        return shapes[got.shape]
    numbers = {
        "psum": held.sum(0),
        "pmean": held.mean(0),
        "pmax": np.maximum(start, held).max(0),
        "ppermute +1": held[-1],
        "ppermute -1": held[1],
    }
    return next((name for name, due in numbers.items() if np.allclose(got, due)), "all_to_all")


identify_collective__right_shapes = _named


def identify_collective__wrong_from_zero(before, after):
    """The largest so far begins with 0."""
    return _named(before, after, 0)


def identify_collective__wrong_short(before, after):
    """A share is shorter than there are devices."""
    got = np.asarray(after[0])
    if got.ndim == 1 and len(got) == len(before[0]) // len(before):
        return "psum_scatter" if len(got) < len(before) else "all_to_all"
    return _named(before, after)


def identify_collective__wrong_sum_is_larger(before, after):
    """A sum is larger than the largest, and a mean is smaller."""
    name, largest, got = _named(before, after), np.max(before, axis=0), np.asarray(after[0])
    if name in ("psum", "pmean", "pmax"):
        return "pmax" if (got == largest).all() else "psum" if (got > largest).all() else "pmean"
    return name
