"""Answers to lesson 11, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

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


# ---------------------------------------------------------------- fsdp_transpose

layers = 3
fsdp_transpose__right_counted = {
    "all_gather, keeps all": layers,
    "reduce_scatter, keeps all": layers,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 2 * layers,
    "reduce_scatter, keeps nothing": layers,
    "all_gather, keeps all but gathered weights": layers + (layers - 1),
}

# This student took over "one gather still, though the weights are not kept" from the single layer of the text.
fsdp_transpose__wrong_single = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 3,
}

# This student thought that the pmean of the loss is an all_reduce again on the way back.
fsdp_transpose__wrong_loss_twice = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thought that every gather has its transpose, also the one that is only done once more.
fsdp_transpose__wrong_each_has_one = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# This student remembered FSDP's table of lesson 09, in which each weight is gathered forward and again backward, always.
fsdp_transpose__wrong_lesson_nine = {
    "all_gather, keeps all": 6,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 6,
}


# ---------------------------------------------------------------- transposes

transposes__right_numbers = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": sum(range(8)),
}

# This student had read elsewhere that the transpose of psum is psum, and so took everything that is added times eight.
transposes__wrong_old_sentence = {
    "psum to P(), ct 1": 8,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student asked where the number that device 3 gets came from, and not where device 3's number went.
transposes__wrong_from_the_left = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 0.125,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 2,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thought that device 3 has only the cotangent of its own result, and hands it to all of its eight numbers.
transposes__wrong_own_share = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [3] * 8,
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thought that eight equal results are one result, whatever out_specs says, so that the cotangent counts once.
transposes__wrong_equal_is_one = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": 28,
}


# ---------------------------------------------------------------- same_with_vma_off

differ = "copies differ"
same_with_vma_off__right_worked = {
    "own loss": differ,
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": differ,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 8 * 8,
}

# This student thought that a loss that is one number for all devices has one gradient on all of them, unchecked as well.
same_with_vma_off__wrong_one_loss = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# This student applied "psum backwards is psum" to psum alone, and thought that a pmean leaves its 1/8 in each gradient.
same_with_vma_off__wrong_eighth = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# This student counted a psum of the loss twice, an eight on the way forwards and another on the way back.
same_with_vma_off__wrong_both_ways = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 64,
    "psum of the loss, then psum": 512,
}

# This student took the devices' own gradients for parts that add up to the right one (forgetting that each is of a mean),
# and took the row "pmean of the loss" over from the table with the check on.
same_with_vma_off__wrong_parts = {
    "own loss": "copies differ",
    "own loss, then pmean": 1 / 8,
    "own loss, then psum": 1,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}
