"""Answers to lesson 04, written by a reader of the notebook only."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh


# --- constrain
def constrain__right_end(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("y", "x")))


def constrain__right_out_shardings(v, *, mesh):
    return jax.jit(lambda v: v + 1, out_shardings=NamedSharding(mesh, P("y", "x")))(v)


def constrain__wrong_not_used(v, *, mesh):
    # the constrained value is thrown away
    w = v + 1
    jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("y", "x")))
    return w


def constrain__wrong_notebook_mesh(v, *, mesh):
    # the notebook's mesh, not the one given
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(MESH, P("y", "x")))


def constrain__wrong_no_plus(v, *, mesh):
    # + 1 forgotten
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P("y", "x")))


def constrain__wrong_transposed(v, *, mesh):
    # turns the array instead of its layout
    return jax.lax.with_sharding_constraint((v + 1).T, NamedSharding(mesh, P("y", "x")))


def constrain__wrong_one_axis(v, *, mesh):
    # only the rows are cut, the columns are whole
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("y", None)))


# --- divide_layer
def divide_layer__right_hint(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P("x"))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__right_shard_map(x, weights, bias, *, mesh):
    def body(x, weights, bias):
        return jax.nn.sigmoid(jax.lax.psum(x @ weights, "x") + bias)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x"), P()), out_specs=P())(x, weights, bias)


def divide_layer__wrong_both_axes(x, weights, bias, *, mesh):
    # over all devices, not over x alone
    cut = NamedSharding(mesh, P(("x", "y")))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_at_the_end(x, weights, bias, *, mesh):
    # constrains only the result: every device computes the whole sum
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ weights + bias), NamedSharding(mesh, P()))


def divide_layer__wrong_columns(x, weights, bias, *, mesh):
    # cuts the columns of the weights: the sum is not divided
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P(None, "x")))
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_dropped(x, weights, bias, *, mesh):
    # both constraints are made and not used
    jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x")))
    jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P("x")))
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_bias_inside(x, weights, bias, *, mesh):
    # the bias is added on every device, before the sum
    def body(x, weights, bias):
        return jax.nn.sigmoid(jax.lax.psum(x @ weights + bias, "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x"), P()), out_specs=P())(x, weights, bias)


# --- init_sharded
def init_sharded__right_compiled(rows, columns, axis, mesh):
    def make():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis))).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


def init_sharded__right_constraint(rows, columns, axis, mesh):
    where = NamedSharding(mesh, P(None, axis))

    @jax.jit
    def make():
        value = jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
        return jax.lax.with_sharding_constraint(value, where)

    return make(), make.lower().compile().memory_analysis().output_size_in_bytes


def init_sharded__wrong_moved(rows, columns, axis, mesh):
    # made whole on one device first, then moved
    make = jax.jit(lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns))
    whole = make()
    return jax.device_put(
        whole, NamedSharding(mesh, P(None, axis))
    ), make.lower().compile().memory_analysis().output_size_in_bytes


def init_sharded__wrong_rows(rows, columns, axis, mesh):
    # cuts the rows
    make = jax.jit(
        lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns), out_shardings=NamedSharding(mesh, P(axis))
    )
    return make(), make.lower().compile().memory_analysis().output_size_in_bytes


def init_sharded__wrong_nbytes(rows, columns, axis, mesh):
    # the bytes of the whole array
    make = jax.jit(
        lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns),
        out_shardings=NamedSharding(mesh, P(None, axis)),
    )
    made = make()
    return made, made.nbytes


def init_sharded__wrong_axis_x(rows, columns, axis, mesh):
    # always over x
    make = jax.jit(
        lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns),
        out_shardings=NamedSharding(mesh, P(None, "x")),
    )
    return make(), make.lower().compile().memory_analysis().output_size_in_bytes


def init_sharded__wrong_array_only(rows, columns, axis, mesh):
    # half an answer: the bytes are not returned
    return jax.jit(
        lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns),
        out_shardings=NamedSharding(mesh, P(None, axis)),
    )()


# --- same_everywhere
def same_everywhere__right_loops(a, b):
    if a.shape != b.shape or not np.array_equal(a, b):
        return False
    if not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    value = np.asarray(a)
    return all(np.array_equal(s.data, value[s.index]) for v in (a, b) for s in v.addressable_shards)


def same_everywhere__right_by_device(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    first = {}
    for shard in list(a.addressable_shards) + list(b.addressable_shards):
        if not np.array_equal(first.setdefault(str(shard.index), shard.data), shard.data):
            return False
    return True


def same_everywhere__wrong_values(a, b):
    # reads one copy of each block only
    return a.shape == b.shape and np.array_equal(a, b) and a.sharding.is_equivalent_to(b.sharding, a.ndim)


def same_everywhere__wrong_spelled(a, b):
    # == on shardings: P("x") and P("x", None) count as different
    if a.shape != b.shape or a.sharding != b.sharding or not np.array_equal(a, b):
        return False
    value = np.asarray(a)
    return all(np.array_equal(s.data, value[s.index]) for v in (a, b) for s in v.addressable_shards)


def same_everywhere__wrong_only_a(a, b):
    # the copies of b are not looked at
    if a.shape != b.shape or not np.array_equal(a, b) or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    value = np.asarray(a)
    return all(np.array_equal(s.data, value[s.index]) for s in a.addressable_shards)


def same_everywhere__wrong_no_layout(a, b):
    # values and copies, but the layout is not compared
    if a.shape != b.shape or not np.array_equal(a, b):
        return False
    value = np.asarray(a)
    return all(np.array_equal(s.data, value[s.index]) for v in (a, b) for s in v.addressable_shards)


def same_everywhere__wrong_pairwise(a, b):
    # device by device a and b agree, though copies of one block may differ in both in the same way
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    return all(np.array_equal(s.data, t.data) for s, t in zip(a.addressable_shards, b.addressable_shards))


# --- count_collectives
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def count_collectives__right_regex(text):
    text = re.sub(r'"[^"]*"', "", text)
    return dict(
        Counter(
            re.findall(r"\s(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(", text)
        )
    )


def count_collectives__right_two_counts(text):
    clean = "".join(text.split('"')[::2])
    return {kind: clean.count(f" {kind}(") + clean.count(f" {kind}-start(") for kind in KINDS}


def count_collectives__wrong_plain(text):
    # every mention counts: names, operands and quotes
    return {kind: text.count(kind) for kind in KINDS}


def count_collectives__wrong_start_and_done(text):
    # start and done are counted as two
    clean = re.sub(r'"[^"]*"', "", text)
    return {kind: len(re.findall(rf" {kind}(?:-start|-done)?\(", clean)) for kind in KINDS}


def count_collectives__wrong_no_start(text):
    # those that run in the background are missed
    clean = re.sub(r'"[^"]*"', "", text)
    return {kind: clean.count(f" {kind}(") for kind in KINDS}


def count_collectives__wrong_quotes(text):
    # what metadata quotes is counted too
    return {kind: len(re.findall(rf" {kind}(?:-start)?\(", text)) for kind in KINDS}


def count_collectives__wrong_present(text):
    # 1 if a kind occurs, not how often
    clean = re.sub(r'"[^"]*"', "", text)
    return {kind: int(bool(re.search(rf" {kind}(?:-start)?\(", clean))) for kind in KINDS}


# --- contract
_CONTRACT = {
    "layout": P("y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 8,
}
contract__right_by_hand = dict(_CONTRACT)
contract__wrong_y = {**_CONTRACT, "layout": P("x"), "over": "y"}  # sums over the axis of the columns
contract__wrong_own_part = {**_CONTRACT, "device 0": [24, 27], "device 4": [96, 99]}  # the parts before the all_reduce
contract__wrong_bytes = {**_CONTRACT, "bytes sent": 32}  # the bytes of the whole result, 8 numbers
contract__wrong_next = {**_CONTRACT, "device 4": [132, 138]}  # device 4 taken for a neighbour along y
contract__wrong_mesh = {
    **_CONTRACT,
    "device 0": [120, 126, 132, 138],
    "device 4": [120, 126, 132, 138],
    "bytes sent": 24,
}  # the notebook's 4 × 2 mesh
