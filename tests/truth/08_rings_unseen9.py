"""Answers to lesson 08, ninth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]

# ---------------------------------------------------------------- ring_reduce_scatter


def ring_reduce_scatter__right_downwards(x, *, mesh):
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me + 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", to_previous) + parts[(me + k) % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Every sum has n terms, so it needs n turns.
def ring_reduce_scatter__wrong_n_turns(x, *, mesh):
    n = mesh.shape["x"]
    ring = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        parts = row.reshape(n, -1)
        number = jax.lax.axis_index("x") - 1
        total = parts[number % n]
        for _ in range(n):
            total = jax.lax.ppermute(total, "x", ring)
            number = number - 1
            total = total + parts[number % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Pass the vectors round and add up all that comes by; at the end each device keeps its part. n - 1 sends, as asked.
def ring_reduce_scatter__wrong_whole_rows(x, *, mesh):
    n = mesh.shape["x"]
    ring = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        total = row
        for _ in range(n - 1):
            row = jax.lax.ppermute(row, "x", ring)
            total += row
        return total.reshape(n, -1)[jax.lax.axis_index("x")]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# TO_NEXT is the ring of this lesson, and it worked in every cell above.
def ring_reduce_scatter__wrong_lessons_ring(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", TO_NEXT)
            total = total + parts[(me - 1 - k) % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# n parts: reshape so that the last dimension is n, and column d is part d.
def ring_reduce_scatter__wrong_every_nth(x, *, mesh):
    n = mesh.shape["x"]
    ring = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(-1, n)
        total = parts[:, (me - 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", ring) + parts[:, (me - k) % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# ---------------------------------------------------------------- deadlock_or_not

_all_meet = {"sum_then_branch", "open_ring", "as_many_turns_for_all"}

deadlock_or_not__right_who_meets = {
    body: "finishes" if body in _all_meet else "hangs"
    for body in (
        "one_branch",
        "sum_then_branch",
        "open_ring",
        "each_its_own_turns",
        "as_many_turns_for_all",
        "only_process_0_sums",
    )
}

# dist.recv blocks until something comes; nobody sends to device 0, so it waits for ever.
deadlock_or_not__wrong_recv_blocks = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "hangs",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# A Python `if` is decided while tracing, so no device decides anything and there is nothing that could hang.
deadlock_or_not__wrong_decided_in_python = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "finishes",
}

# A ppermute is sends and receives, who sends may go on, and who is sent nothing gets zeros at once: uneven turns do no harm.
deadlock_or_not__wrong_zeros_at_once = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "finishes",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# Wherever a cond or a while depends on the device's own number the devices go different ways, and miss each other.
deadlock_or_not__wrong_any_branch = {
    "one_branch": "hangs",
    "sum_then_branch": "hangs",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "hangs",
    "only_process_0_sums": "hangs",
}

# ---------------------------------------------------------------- ring_after


def _rolled(n, shift, steps, device):
    held = list(range(n))
    for _ in range(steps):
        held = [held[(d - shift) % n] for d in range(n)]
    return held[device]


ring_after__right_simulated = {
    "4 devices, +1, 1 step: device 2": _rolled(4, 1, 1, 2),
    "4 devices, +1, 3 steps: device 1": _rolled(4, 1, 3, 1),
    "4 devices, -1, 1 step: device 3": _rolled(4, -1, 1, 3),
    "8 devices, +1, 5 steps: device 2": _rolled(8, 1, 5, 2),
    "8 devices, -1, 4 steps: device 6": _rolled(8, -1, 4, 6),
    "8 devices, +3, 2 steps: device 1": _rolled(8, 3, 2, 1),
}

# -1 brings the previous device's block, as list[-1] is the one before.
ring_after__wrong_minus_is_previous = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 2,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 3,
}

# A negative number of a device makes no sense, so I take the distance: |device - shift * steps| % devices.
ring_after__wrong_absolute = {
    "4 devices, +1, 1 step: device 2": abs(2 - 1) % 4,
    "4 devices, +1, 3 steps: device 1": abs(1 - 3) % 4,
    "4 devices, -1, 1 step: device 3": abs(3 + 1) % 4,
    "8 devices, +1, 5 steps: device 2": abs(2 - 5) % 8,
    "8 devices, -1, 4 steps: device 6": abs(6 + 4) % 8,
    "8 devices, +3, 2 steps: device 1": abs(1 - 6) % 8,
}

# The ring is closed by % 4, as in TO_NEXT.
ring_after__wrong_always_four = {
    "4 devices, +1, 1 step: device 2": (2 - 1) % 4,
    "4 devices, +1, 3 steps: device 1": (1 - 3) % 4,
    "4 devices, -1, 1 step: device 3": (3 + 1) % 4,
    "8 devices, +1, 5 steps: device 2": (2 - 5) % 4,
    "8 devices, -1, 4 steps: device 6": (6 + 4) % 4,
    "8 devices, +3, 2 steps: device 1": (1 - 3 * 2) % 4,
}

# +3 means that the ring leaves out two devices each time, and each step still brings one block further: two steps, two back.
ring_after__wrong_steps_only = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 7,
}
