"""Answers to lesson 10, fourteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---------------------------------------------------------------- typeof
typeof__right_types = {
    "jnp.sin(a).T": "float32[8@y, 16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x, 8@y]",
    "v[:, None] * w": "float32[16@x, 8@y]",
    "r @ s": "float32[32@x, 24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x, 8@y]",
}

# This student thought that a transpose swaps the lengths, while the first dimension stays cut over x and the second over y.
typeof__wrong_places = {
    "jnp.sin(a).T": "float32[8@x,16@y]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# This student thought that a sum is all-reduced, so that it and what comes back from it are whole on every device.
typeof__wrong_whole = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16,8]",
}

# This student thought that a dimension of length 1 is whole, and that whole wins when it is stretched.
typeof__wrong_stretched = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8]",
    "v[:, None] * w": "float32[16@x,8]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# This student thought that sum(0) sums inside of each row, and keeps dimension 0.
typeof__wrong_sum = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[16@x]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}


# ---------------------------------------------------------------- will_it_type
will_it_type__right_rules = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that rows against columns is two layouts that do not agree.
will_it_type__wrong_layouts = {
    "R + N": "ok",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that what has to be sent is sent, as in b.sum(0): the sum of C @ R is made, and row 0 is fetched.
will_it_type__wrong_fetched = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "ok",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "ok",
}

# This student thought that in a product the two sides of the contracted dimension have to be cut alike.
will_it_type__wrong_one_side = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "rule 2",
    "R[0]": "own rule",
}

# This student thought of x standing on both sides of the contraction as "an axis twice", and of rows with columns as a disagreement.
will_it_type__wrong_swapped = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 3",
    "R @ C": "rule 2",
    "C @ N": "ok",
    "R[0]": "own rule",
}


# ---------------------------------------------------------------- unreduced
unreduced__right_parts = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# This student thought that adding commutes with adding, whatever is added.
unreduced__wrong_adding = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "yes",
    "reshard(p, whole)": "yes",
}

# This student thought that two arrays with the same layout may always be combined entry by entry, on each device.
unreduced__wrong_entrywise = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "yes",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# This student thought that reshard only moves values, and that an unreduced array has none that could be moved.
unreduced__wrong_no_values = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "no",
}

# This student thought that an unfinished sum has to be finished before one may compute with it at all.
unreduced__wrong_finish_first = {
    "p + p": "no",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}
