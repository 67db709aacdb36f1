"""Answers to lesson 11, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss(params, x, y):
    """A small network's mean squared error, over the rows and over what comes out."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def squares(w, x, y):
    """The squared errors of a linear model, added up."""
    return jnp.sum((x @ w - y) ** 2)


def varying(value, axis):
    """The same value, typed as one that may differ along `axis`."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axis, to="varying")
    return jax.lax.pvary(value, axis)  # the same, on JAX before 0.8.2


# ---------------------------------------------------------------- transposes

transposes__right_counted = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student has read that the transpose of psum is psum, and adds the one cotangent up eight times.
transposes__wrong_psum_of_psum = {
    "psum to P(), ct 1": 8,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student asks which number device 3 *receives* in the permute, and gives psum_scatter's cotangent of device 3 to all of its numbers.
transposes__wrong_who_gets = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 0.125,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 2,
    "psum_scatter, ct 0 … 7": [3] * 8,
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thinks that copies do not count: equal values on all devices are one value, whatever out_specs says.
transposes__wrong_copies_are_one = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 0.125,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student takes "the transpose of an all_gather adds" literally and adds all cotangents, of every entry, also in the row to P().
transposes__wrong_adds_all_entries = {
    "psum to P(), ct 1": 1.0,
    "psum to P('data'), ct 1 each": 8.0,
    "pmean to P(), ct 1": 0.125,
    "all_gather to P('data'), ct 1 each": 8.0,
    "all_gather to P(), ct 0 … 7": 28.0,
    "ppermute +1, ct 0 … 7": 4.0,
    "psum_scatter, ct 0 … 7": [float(k) for k in range(8)],
    "w from P() to P('data'), ct 0 … 7": 28.0,
}

# ------------------------------------------------------------ one_all_reduce


# Right: shard_map, cast, a scan that adds the devices' own gradients, one psum behind it.
def one_all_reduce__right_scan(w, xs, ys, *, mesh):
    def on_device(w, xs, ys):
        own = varying(w, "data")

        def turn(total, rows):
            return total + jax.grad(squares)(own, *rows), None

        start = varying(jnp.zeros(w.shape, w.dtype), "data")
        return jax.lax.psum(jax.lax.scan(turn, start, (xs, ys))[0], "data")

    cut = P(None, "data", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), cut, cut), out_specs=P())(w, xs, ys)


# This student adds gradients up in one place, and thinks that the one `psum` the compiler needs comes there: it comes in each turn.
def one_all_reduce__wrong_each_turn(w, xs, ys, *, mesh):
    total = jnp.zeros_like(w)
    for x, y in zip(xs, ys):
        total = total + jax.grad(squares)(w, x, y)
    return reshard(total, NamedSharding(mesh, P()))


# This student averages over the devices out of habit, though `squares` is a sum.
def one_all_reduce__wrong_mean(w, xs, ys, *, mesh):
    def body(w, xs, ys):
        w = varying(w, "data")
        parts = [jax.grad(squares)(w, xs[k], ys[k]) for k in range(len(xs))]
        return jax.lax.pmean(sum(parts), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P(None, "data", None), P(None, "data", None)), out_specs=P())(
        w, xs, ys
    )


# This student gets unreduced parts and adds them, and thinks that the sum of all parts is the finished sum.
def one_all_reduce__wrong_left_open(w, xs, ys, *, mesh):
    copy = reshard(w, NamedSharding(mesh, P(reduced={"data"})))
    pairs = list(zip(xs, ys))
    total = jax.grad(squares)(copy, *pairs[0])
    for x, y in pairs[1:]:
        total = total + jax.grad(squares)(copy, x, y)
    return total


# This student takes one gradient of the sum of all losses (which arrives summed, w not being cast) and adds over the devices once more.
def one_all_reduce__wrong_added_twice(w, xs, ys, *, mesh):
    def of_all(w, xs, ys):
        return sum(squares(w, x, y) for x, y in zip(xs, ys))

    def body(w, xs, ys):
        return jax.lax.psum(jax.grad(of_all)(w, xs, ys), "data")

    specs = (P(), P(None, "data"), P(None, "data"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P())(w, xs, ys)


# ------------------------------------------------------------ fsdp_transpose

fsdp_transpose__right_counted = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 3 + 3,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 3 + 2,
}

# This student gathers every layer again on the way back under the policy, the first one too, though nothing goes to x.
fsdp_transpose__wrong_first_again = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 6,
}

# This student thinks that the pmean of the loss has a transpose that sends too.
fsdp_transpose__wrong_loss_back = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thinks: each gather has a transpose, so with twice the gathers there are twice the reduce_scatters.
fsdp_transpose__wrong_every_gather = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thinks that the last layer is still whole when the way back begins, in both of the last cases.
fsdp_transpose__wrong_last_at_hand = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 5,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 4,
}
