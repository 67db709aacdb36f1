"""Answers to lesson 10, twenty-third batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

# ---------------------------------------------------------------- typeof

typeof__right_spaces = {
    "jnp.sin(a).T": "float32[8@y, 16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x, 8@y]",
    "v[:, None] * w": "float32[16@x, 8@y]",
    "r @ s": "float32[32@x, 24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x, 8@y]",
}

# Thought that x cuts rows and y cuts columns for good: the transposition moves the lengths, and the axes stay.
typeof__wrong_transpose = {
    "jnp.sin(a).T": "float32[8@x,16@y]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# Thought that a sum over a cut dimension is left unreduced over its axis until somebody asks for it.
typeof__wrong_unreduced = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]{U:x}",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# Thought that a stretched dimension is whole, and that whole and cut together make whole.
typeof__wrong_stretched = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8]",
    "v[:, None] * w": "float32[16,8]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# Thought that the loss is one number on all devices, so that the gradient that comes back from it is whole, too.
typeof__wrong_gradient = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16,8]",
}

# ---------------------------------------------------------------- four_answers

four_answers__right_mixed = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_reduce",  # what a CPU does; accepted by the text
    'P(unreduced={"x"})': "none",
}

# Thought that "whole on every device" is always made by a gather.
four_answers__wrong_gather = {
    "P()": "all_gather",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# Thought that each device has computed a whole 16 x 24 array, and keeping a block of it costs nothing.
four_answers__wrong_keep = {
    "P()": "all_reduce",
    'P("x", None)': "none",
    'P(None, "x")': "none",
    'P(unreduced={"x"})': "none",
}

# Thought that an unreduced result is made by the first half of an all_reduce: summed, and not yet gathered.
four_answers__wrong_half = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "reduce_scatter",
}

# Thought that a scatter cuts by rows only, and that for columns the operands have to be gathered first.
four_answers__wrong_columns = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_gather",
    'P(unreduced={"x"})': "none",
}

# ---------------------------------------------------------------- modes

_claims = (
    "a.shape is that of one device's block",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut",
    "you call jax.lax.psum",
    "a is whole to you, and with_sharding_constraint moves it",
    "rows-cut + columns-cut runs, and the compiler picks the layout",
    "you overlap a ppermute with a product, step by step",
)

modes__right_zip = dict(zip(_claims, ("Manual", "Explicit", "Manual", "Auto", "Auto", "Manual")))

# Thought that on an Explicit mesh the cut belongs to the type, so the shape must be the block's.
modes__wrong_block = {
    "a.shape is that of one device's block": "Explicit",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Thought that naming a sharding in the program is what Explicit means, so a constraint belongs there.
modes__wrong_constraint = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Thought that Explicit means that one writes the collectives oneself, where shard_map (Manual) is about blocks.
modes__wrong_collectives = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Explicit",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Explicit",
}

# Thought that it is the compiler that overlaps messages with products, as it did on the v5e, and layouts are a matter of types.
modes__wrong_overlap = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Explicit",
    "you overlap a ppermute with a product, step by step": "Auto",
}
