"""Answers to lesson 12, eleventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


# ---------------------------------------------------------------- same_lr_question
rows, devices, turns, rate = 6, 8, 4, 0.48
too_large = {
    "local mean, pmean": 1,
    "local mean, psum": devices,
    "local sum, pmean": rows,
    "local sum, psum": rows * devices,
    "local mean, nothing, check_vma on": devices,
    "local sum / 48, psum": rows * devices / 48,
    "local mean, summed over 4 microbatches, pmean": turns,
}
same_lr_question__right_FACTORS = {way: rate / factor for way, factor in too_large.items()}

# Nothing is written to combine the devices, so he thinks the gradient is the mean over six rows and has the right size.
same_lr_question__wrong_NOTHING_IS_LOCAL = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.48,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# He takes a "local sum" for a sum over the 48 rows of the batch, 48 times the mean, on which the psum then puts another 8.
same_lr_question__wrong_SUM_IS_48 = {
    way: rate / factor for way, factor in (too_large | {"local sum, pmean": 48, "local sum, psum": 48 * 8}).items()
}

# "With N devices multiply the learning rate by N": wherever the devices are summed, the rate is multiplied by eight.
same_lr_question__wrong_TIMES_N = {
    way: rate * 8 if way in ("local mean, psum", "local mean, nothing, check_vma on") else rate / factor
    for way, factor in too_large.items()
}

# He thinks that four microbatches add up to the device's whole mean (the parts of a mean add up to it), and that a psum is
# always eight times too large, also of sums that were divided by all rows.
same_lr_question__wrong_PARTS_OF_A_MEAN = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.48 / 8,
    "local sum, pmean": 0.48 / 6,
    "local sum, psum": 0.48 / 48,
    "local mean, nothing, check_vma on": 0.48 / 8,
    "local sum / 48, psum": 0.48 / 8,
    "local mean, summed over 4 microbatches, pmean": 0.48,
}

# ---------------------------------------------------------------- dp_numbers
widths = [784, 8192, 8192, 8192, 10]
N = sum((n + 1) * m for n, m in zip(widths, widths[1:]))  # a bias is one more row of W


dp_numbers__right_ONE_MORE_ROW = {
    "parameters": N,
    "bytes of parameters on each device": 4 * N,
    "bytes of x on each device": 4 * 8192 * 784 // 8,
    "bytes each device sends in a step": 7 * (N + 1),  # 2 * 7/8 * 4
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (N + 1),
}

# What travels is a sum over rows, she thinks, so with 128 times fewer rows there are 128 times fewer bytes.
dp_numbers__wrong_FEWER_ROWS = {
    "parameters": N,
    "bytes of parameters on each device": 4 * N,
    "bytes of x on each device": 4 * 8192 * 784 // 8,
    "bytes each device sends in a step": 7 * (N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (N + 1) * 64 / 8192,
}

# Takes (n-1)/n * V for an all_reduce: that is the price of one half of it, a reduce_scatter.
dp_numbers__wrong_HALF_AN_ALL_REDUCE = {
    "parameters": N,
    "bytes of parameters on each device": 4 * N,
    "bytes of x on each device": 4 * 8192 * 784 // 8,
    "bytes each device sends in a step": 7 * 4 * (N + 1) / 8,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * 4 * (N + 1) / 8,
}

# Eight devices share the network, he thinks: each holds an eighth of the parameters, and sends the gradients of this eighth.
dp_numbers__wrong_AN_EIGHTH = {
    "parameters": N,
    "bytes of parameters on each device": 4 * N / 8,
    "bytes of x on each device": 4 * 8192 * 784 // 8,
    "bytes each device sends in a step": 2 * 7 / 8 * 4 * (N / 8 + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 2 * 7 / 8 * 4 * (N / 8 + 1),
}

# "x arrives cut, but the matmul with a whole W needs all of its rows": x is counted whole on every device.
dp_numbers__wrong_X_WHOLE = {
    "parameters": N,
    "bytes of parameters on each device": 4 * N,
    "bytes of x on each device": 4 * 8192 * 784,
    "bytes each device sends in a step": 7 * (N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (N + 1),
}


# ---------------------------------------------------------------- which_run
# NOT RUN BY ITS AUTHOR (nothing but syntax was checked). The letters are not in the notebook's text, but for B; this finds
# them by the notebook's own experiments, when this file is imported. If that fails, the names below are missing.
def off(found, right):
    """How far a gradient is from another, in parts of the largest entry."""
    pairs = list(zip(jax.tree.leaves(found), jax.tree.leaves(right)))
    scale = max(float(np.abs(np.asarray(r)).max()) for _, r in pairs)
    return max(float(np.abs(np.asarray(f) - np.asarray(r)).max()) for f, r in pairs) / scale


def times(tree, factor):
    return jax.tree.map(lambda g: factor * np.asarray(g), tree)


def identify():
    from grader.lessons.data_parallel.seven_runs import copies, runs

    lab = runs()
    value, right = lab.gradients("one device")
    first = {run: lab.gradients(run) for run in lab.names}
    answer, left = {}, set(lab.names)

    # three groups: several versions, one constant, no constant
    apart = sorted(left, key=lambda run: copies(first[run][1]))[-2:]
    answer |= dict(zip(apart, ("averaged over one axis", "never synchronised")))
    left -= set(apart)
    constant = sorted(left, key=lambda run: off(first[run][1], times(right, 8)))[:2]
    by_loss = sorted(constant, key=lambda run: abs(float(first[run][0]) - float(value)))
    answer |= dict(zip(by_loss, ("sum taken for the mean", "sum of means")))
    left -= set(constant)
    for name, experiment in {
        "same dropout masks": dict(dropout=False),
        "padding counted": dict(padding=False),
        "last microbatch only": dict(dropout=False, padding=False, alike=True),
    }.items():
        alone = lab.gradients("one device", **experiment)[1]
        found = min(left, key=lambda run: off(lab.gradients(run, **experiment)[1], alone))
        answer[found] = name
        left.remove(found)
    return {run: answer[run] for run in sorted(answer)}


def renamed(answer, *cycle):
    """The same answer, with each of these names where the one before it was."""
    then = dict(zip(cycle, cycle[1:] + cycle[:1]))
    return {run: then.get(name, name) for run, name in answer.items()}


try:
    which_run__right_BY_EXPERIMENT = identify()
except Exception as error:
    print("which_run was not identified:", type(error).__name__, error)
else:
    # Both have the ratio 8 everywhere; she takes the loss that is eight times too large for the "sum taken for the mean".
    which_run__wrong_TWO_EIGHTS = renamed(which_run__right_BY_EXPERIMENT, "sum taken for the mean", "sum of means")

    # Two versions are left, so "two devices never talked"; and eight versions, he thinks, are what an average over one of two
    # axes leaves on eight devices.
    which_run__wrong_COPIES = renamed(which_run__right_BY_EXPERIMENT, "never synchronised", "averaged over one axis")

    # Switches dropout off AND makes the rows real in one experiment; it repairs both runs, so he guesses which is which.
    which_run__wrong_BOTH_AT_ONCE = renamed(which_run__right_BY_EXPERIMENT, "same dropout masks", "padding counted")

    # Looks at the first loss only: a microbatch has few rows and a wrong loss, thinks she, and turns all three in a circle.
    which_run__wrong_BY_LOSS_ALONE = renamed(
        which_run__right_BY_EXPERIMENT, "last microbatch only", "padding counted", "same dropout masks"
    )
