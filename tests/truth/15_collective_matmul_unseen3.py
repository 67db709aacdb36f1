"""Answers to lesson 15, third batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

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
    f"shift {by:+d}, step {t}": np.roll(np.arange(4), by * t).tolist() for by in (1, -1) for t in (1, 2, 3)
}

# Blocks that move up: device d now has block d + t.
schedule_table__wrong_direction = {
    f"shift {by:+d}, step {t}": [(d + by * t) % 4 for d in range(4)] for by in (1, -1) for t in (1, 2, 3)
}

# Step 1 is the first line of the film, before anything has moved.
schedule_table__wrong_step_0 = {
    f"shift {by:+d}, step {t}": [(d - by * (t - 1)) % 4 for d in range(4)] for by in (1, -1) for t in (1, 2, 3)
}

# Down is up read backwards: the rows of shift +1, turned round.
schedule_table__wrong_mirrored = {
    **schedule_table__right_rolled,
    "shift -1, step 1": [2, 1, 0, 3],
    "shift -1, step 2": [1, 0, 3, 2],
    "shift -1, step 3": [0, 3, 2, 1],
}

# At step t the block jumps t places further from where it is, so step 3 is one place and two and three from home.
schedule_table__wrong_jumps = {
    f"shift {by:+d}, step {t}": [(d - by * t * (t + 1) // 2) % 4 for d in range(4)] for by in (1, -1) for t in (1, 2, 3)
}

# ---------------------------------------------------------------- ring_time


def ring_time__right_steps(n, product, transfer):
    apart = overlapped = product
    for _ in range(n - 1):
        apart += product + transfer
        overlapped += product if product > transfer else transfer
    return {"apart": apart, "overlapped": overlapped}


# n blocks, so n steps in which both happen.
def ring_time__wrong_n_steps(n, product, transfer):
    return {"apart": n * (product + transfer), "overlapped": n * max(product, transfer)}


# Side by side all products and all transfers run at the same time; the longer of the two sums counts.
def ring_time__wrong_longer_sum(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": max(n * product, (n - 1) * transfer)}


# The first product needs a block that has come, so a transfer stands in front, not a product behind.
def ring_time__wrong_transfer_first(n, product, transfer):
    return {
        "apart": n * product + (n - 1) * transfer,
        "overlapped": transfer + (n - 1) * max(product, transfer),
    }


# The product is the larger one on any good machine, so the transfers vanish.
def ring_time__wrong_hidden(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * product}


# ---------------------------------------------------------------- sum_schedule

sum_schedule__right_backwards = {f"step {t}": [(d - (3 - t)) % 4 for d in range(4)] for t in range(4)}

# Sums that move up: the same table as in the text above.
sum_schedule__wrong_up = {f"step {t}": [(d - 1 - t) % 4 for d in range(4)] for t in range(4)}

# Every device begins with its own block, and as sums move down it then has that of the next one.
sum_schedule__wrong_starts_home = {f"step {t}": [(d + t) % 4 for d in range(4)] for t in range(4)}

# At the end every sum is sent home, so at step 3 a device works on the block of the next one, and sends it down then.
sum_schedule__wrong_sent_home = {f"step {t}": [(d + t + 2) % 4 for d in range(4)] for t in range(4)}

# From step 3 back to step 2 I went one place up; from there back I turned round and went down.
sum_schedule__wrong_middle = {
    "step 0": [1, 2, 3, 0],
    "step 1": [3, 0, 1, 2],
    "step 2": [2, 3, 0, 1],
    "step 3": [0, 1, 2, 3],
}
