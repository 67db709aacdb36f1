"""Answers to lesson 12, third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def momentum_step(state, batch):
    """One step with momentum. The state is a dict of "params" and "velocity"."""
    gradients = jax.grad(loss)(state["params"], batch["x"], batch["y"])
    velocity = jax.tree.map(lambda v, g: 0.5 * v + g, state["velocity"], gradients)
    return {"params": descend(state["params"], velocity, 1 / 64), "velocity": velocity}


def compiled(function, **options):
    """`jax.jit(function, **options)`; it asks first whether its arguments still exist."""
    jitted = jax.jit(function, **options)

    def call(*arguments):
        for leaf in jax.tree.leaves(arguments):
            if leaf.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")
        return jitted(*arguments)

    return call


# ---------------------------------------------------------------- which_run


def _exchanged(answer, *faults):
    """The answer, the runs that have these faults going round among themselves."""
    run = {fault: name for name, fault in answer.items()}
    return {**answer, **{run[fault]: faults[(k + 1) % len(faults)] for k, fault in enumerate(faults)}}


which_run__right_experiments = {
    "A": "same dropout masks",
    "B": "never synchronised",
    "C": "sum of means",
    "D": "padding counted",
    "E": "sum taken for the mean",
    "F": "last microbatch only",
    "G": "averaged over one axis",
}

# Both have gradients eight times too large, and I did not look at the loss of the first step.
which_run__wrong_eight_times = _exchanged(which_run__right_experiments, "sum taken for the mean", "sum of means")

# Both leave differing copies; I thought that two versions mean that nobody reduced, and eight that one axis was left out.
which_run__wrong_copies = _exchanged(which_run__right_experiments, "never synchronised", "averaged over one axis")

# Without a constant ratio I took the one that differs least for the padding (only 8 of 48 rows), without experiments.
which_run__wrong_padding = _exchanged(which_run__right_experiments, "padding counted", "last microbatch only")

# With dropout=False it still was not right, so I concluded it must be the dropout; and the two others moved on.
which_run__wrong_no_constant = _exchanged(
    which_run__right_experiments, "same dropout masks", "padding counted", "last microbatch only"
)

# ---------------------------------------------------------------- dp_numbers

_widths = [784, 8192, 8192, 8192, 10]
_parameters = sum((inputs + 1) * outputs for inputs, outputs in zip(_widths, _widths[1:]))

dp_numbers__right_formula = {
    "parameters": _parameters,
    "bytes of parameters on each device": 4 * _parameters,
    "bytes of x on each device": 4 * 784 * 8192 // 8,
    "bytes each device sends in a step": 2 * 7 * 4 * (_parameters + 1) // 8,
    "bytes each device sends in a step, with 64 rows instead of 8192": 2 * 7 * 4 * (_parameters + 1) // 8,
}

_weights_only = sum(inputs * outputs for inputs, outputs in zip(_widths, _widths[1:]))

# The parameters are what the matrices have.
dp_numbers__wrong_no_biases = {
    "parameters": _weights_only,
    "bytes of parameters on each device": 4 * _weights_only,
    "bytes of x on each device": 4 * 784 * 8192 // 8,
    "bytes each device sends in a step": 2 * 7 * 4 * (_weights_only + 1) // 8,
    "bytes each device sends in a step, with 64 rows instead of 8192": 2 * 7 * 4 * (_weights_only + 1) // 8,
}

# With fewer rows each device has less to send, in proportion: 64 instead of 8192.
dp_numbers__wrong_rows = {
    **dp_numbers__right_formula,
    "bytes each device sends in a step, with 64 rows instead of 8192": 2 * 7 * 4 * (_parameters + 1) // 8 * 64 // 8192,
}

# On eight devices everything is divided by eight, the parameters as well.
dp_numbers__wrong_all_divided = {
    **dp_numbers__right_formula,
    "bytes of parameters on each device": 4 * _parameters // 8,
}

# An all_reduce sends (n-1)/n of V; I had the gather's price in mind.
dp_numbers__wrong_half_price = {
    **dp_numbers__right_formula,
    "bytes each device sends in a step": 7 * 4 * (_parameters + 1) // 8,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * 4 * (_parameters + 1) // 8,
}

# ---------------------------------------------------------------- donate


def donate__right_folded(state, batches):
    import functools

    layouts = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = compiled(momentum_step, donate_argnums=(0,), out_shardings=layouts)
    last = functools.reduce(step, batches, state)
    return last, sum(1 for leaf in jax.tree.leaves(state) if not leaf.is_deleted())


# The memory should be used again by the batches too: both arguments are donated.
def donate__wrong_both(state, batches):
    step = compiled(momentum_step, donate_argnums=(0, 1))
    given = state
    for batch in batches:
        state = step(state, batch)
    return state, sum(leaf.is_deleted() for leaf in jax.tree.leaves(given))


# donate_argnums counts from 1, so the state, the first argument, is number 1.
def donate__wrong_number(state, batches):
    step = compiled(momentum_step, donate_argnums=1)
    given = state
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(given))


# To be able to ask the given state at the end, I keep a copy of it.
def donate__wrong_copy(state, batches):
    given = jax.tree.map(jnp.copy, state)
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(given))


# The number asked for is that of the arrays in the last state that still exist.
def donate__wrong_last(state, batches):
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))
