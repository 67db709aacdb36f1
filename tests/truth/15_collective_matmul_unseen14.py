"""Answers to lesson 15, fourteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def send(block, by=1):
    """Send the block `by` places up the ring over x; returns the one that came instead."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(d, (d + by) % n) for d in range(n)])


def varying(value):
    """The same value, marked as one that may differ along x (`lax.pvary` until JAX 0.8.1, `lax.pcast` since)."""
    return jax.lax.pcast(value, "x", to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, "x")


# ---------------------------------------------------------------- schedule_table

schedule_table__right_rolled = {
    f"shift {by:+d}, step {step}": [(device - by * step) % 4 for device in range(4)]
    for by in (1, -1)
    for step in (1, 2, 3)
}

# This student thought that a ring is a ring, and that the direction makes no difference to who holds what.
schedule_table__wrong_same_both_ways = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [3, 0, 1, 2],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [1, 2, 3, 0],
}

# This student lost count in the second half of the table, and took step 1 for the state before the first transfer.
schedule_table__wrong_one_late = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [0, 1, 2, 3],
    "shift -1, step 2": [1, 2, 3, 0],
    "shift -1, step 3": [2, 3, 0, 1],
}

# This student thought that after three transfers, the last of a ring of four, every block is at home again.
schedule_table__wrong_home_again = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [0, 1, 2, 3],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [0, 1, 2, 3],
}

# This student thought that the other direction is the mirror image, and read the rows of the first half backwards.
schedule_table__wrong_mirrored = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [2, 1, 0, 3],
    "shift -1, step 2": [1, 0, 3, 2],
    "shift -1, step 3": [0, 3, 2, 1],
}


# ---------------------------------------------------------------- sum_schedule

sum_schedule__right_backwards = {f"step {step}": [(device + step - 3) % 4 for device in range(4)] for step in range(4)}

# This student took over the formula of the worked example, where sums move up.
sum_schedule__wrong_moves_up = {
    "step 0": [3, 0, 1, 2],
    "step 1": [2, 3, 0, 1],
    "step 2": [1, 2, 3, 0],
    "step 3": [0, 1, 2, 3],
}

# This student went back from the end, but thought that before anything is sent everybody works on the own block.
sum_schedule__wrong_own_first = {
    "step 0": [0, 1, 2, 3],
    "step 1": [2, 3, 0, 1],
    "step 2": [3, 0, 1, 2],
    "step 3": [0, 1, 2, 3],
}

# This student began right, with the block of the device above, and then let the sums move up.
sum_schedule__wrong_turned_round = {
    "step 0": [1, 2, 3, 0],
    "step 1": [0, 1, 2, 3],
    "step 2": [3, 0, 1, 2],
    "step 3": [2, 3, 0, 1],
}

# This student thought that a sum begins on the device it belongs to, as blocks do in a gather, and comes home with one more transfer.
sum_schedule__wrong_begins_at_home = {
    "step 0": [0, 1, 2, 3],
    "step 1": [1, 2, 3, 0],
    "step 2": [2, 3, 0, 1],
    "step 3": [3, 0, 1, 2],
}


# ---------------------------------------------------------------- mlp_block


def mlp_block__right_other_way_round(x, w1, w2, *, mesh):
    """gelu(X[I_X, D] · W1[D, F_X]) · W2[F_X, D] → Y[I_X, D]; one ring brings X, one takes the sums."""
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        blocks = [x]  # of X, moving down: me, me + 1, ..., me - 1
        for _ in range(n - 1):
            blocks.append(send(blocks[-1], by=-1))
        hidden = [jax.nn.gelu(block @ w1) for block in blocks]
        y = hidden.pop() @ w2  # for block me - 1, which moves up
        while hidden:
            y = send(y) + hidden.pop() @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student let both rings move up, and still went through the list backwards (which is right on two devices only).
def mlp_block__wrong_both_up(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[-1] @ w2
        for block in hidden[-2::-1]:
            y = send(y) + block @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student thought that a gather, two products and a psum_scatter do the same, which they do, without a ring.
def mlp_block__wrong_no_ring(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        hidden = jax.nn.gelu(jax.lax.all_gather(x, "x", axis=0, tiled=True) @ w1)
        return jax.lax.psum_scatter(hidden @ w2, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student thought that one large product is better than n small ones, and cut the parts of Y from it: every sum waits for it.
def mlp_block__wrong_one_product(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        rows = x.shape[0]
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        parts = (jnp.concatenate(hidden[::-1]) @ w2).reshape(n, rows, -1)
        y = parts[0]
        for step in range(1, n):
            y = send(y, by=-1) + parts[step]
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student thought that gelu may only be applied to what is summed over all devices, and applied it to Y.
def mlp_block__wrong_gelu_last(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        hidden = [x @ w1]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(x @ w1)
        y = hidden[-1] @ w2
        for block in hidden[-2::-1]:
            y = send(y, by=-1) + block @ w2
        return jax.nn.gelu(y)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)
