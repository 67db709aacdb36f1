"""Answers to lesson 13, eleventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- init_scale
init_scale__right_VARIANCES = {
    "spread of W2, drawn whole": 1024**-0.5,
    "spread of device 1's rows of it": 1024**-0.5,
    "spread of rows drawn by local fan-in": (1024 / 4) ** -0.5,
    "variance of the outputs, drawn whole": 1024 * (1 / 1024),
    "variance of the outputs, by local fan-in": 1024 * (1 / 256),
    "spread of W1's columns, by local fan-in": 512**-0.5,
}

# The spread is twice as large, so the variance is twice as large: he forgets the square.
init_scale__wrong_NO_SQUARE = {
    "spread of W2, drawn whole": 1 / 32,
    "spread of device 1's rows of it": 1 / 32,
    "spread of rows drawn by local fan-in": 1 / 16,
    "variance of the outputs, drawn whole": 1.0,
    "variance of the outputs, by local fan-in": 2.0,
    "spread of W1's columns, by local fan-in": 1 / 512**0.5,
}

# Each device's part of an output has variance 256 / 256 = 1, and so has the output: she forgets that four parts are added.
init_scale__wrong_ONE_PART = {
    "spread of W2, drawn whole": 1 / 1024**0.5,
    "spread of device 1's rows of it": 1 / 1024**0.5,
    "spread of rows drawn by local fan-in": 1 / 256**0.5,
    "variance of the outputs, drawn whole": 1.0,
    "variance of the outputs, by local fan-in": 256 / 256,
    "spread of W1's columns, by local fan-in": 1 / 512**0.5,
}

# Local means "a quarter" for both matrices: W1, too, is divided by the root of a quarter of its rows.
init_scale__wrong_W1_A_QUARTER = {
    "spread of W2, drawn whole": 1 / 32,
    "spread of device 1's rows of it": 1 / 32,
    "spread of rows drawn by local fan-in": 1 / 16,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 4,
    "spread of W1's columns, by local fan-in": (512 / 4) ** -0.5,
}

# The spread of a part: a quarter of the numbers has half of the spread (as a sum of a quarter of them would), whoever draws
# it; and a part of W1 has 256 columns, of which he takes the root.
init_scale__wrong_SPREAD_OF_A_PART = {
    "spread of W2, drawn whole": 1 / 32,
    "spread of device 1's rows of it": 1 / 32 / 2,
    "spread of rows drawn by local fan-in": 1 / 16,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 4,
    "spread of W1's columns, by local fan-in": (1024 / 4) ** -0.5,
}

# ---------------------------------------------------------------- where_it_goes
PARTS, AFTER, EITHER, OWN = "on the parts", "after the sum", "either way", "needs a collective of its own"

where_it_goes__right_BY_PLACE = dict(
    zip(
        (
            "adding b1 to the hidden layer",
            "relu of the hidden layer",
            "softmax over the hidden units",
            "adding b2 to the result",
            "relu of the result",
            "halving the result",
        ),
        (PARTS, PARTS, OWN, AFTER, AFTER, EITHER),
    )
)

# Addition is linear, he thinks, so b2 may stand on either side of the sum, as the halving may.
where_it_goes__wrong_BIAS_IS_LINEAR = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "either way",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Thinks that what comes out of the first product is a part of a sum as well, so relu has to wait; the bias before it, too.
where_it_goes__wrong_HIDDEN_UNFINISHED = {
    "adding b1 to the hidden layer": "after the sum",
    "relu of the hidden layer": "after the sum",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Hidden units are finished numbers, so anything may be done to them: also softmax, which is "just another activation".
where_it_goes__wrong_ANY_ACTIVATION = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "on the parts",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Two devices, each gives half: halving belongs onto the parts, since after the sum it would halve twice over; and relu goes
# through a factor and a sum alike ("relu keeps the positive part of each").
where_it_goes__wrong_RESULT_BY_PARTS = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "either way",
    "halving the result": "on the parts",
}

# ---------------------------------------------------------------- region_costs
B, T, D, batch, model = 8, 64, 32, 2, 4
entries = B // batch * T * D
V = 4 * entries

region_costs__right_FORMULA = {
    "bytes sent with an all_reduce": 2 * (model - 1) * V // model,
    "bytes sent with all_gather and reduce_scatter": sum((model - 1) * V // model for _ in ("gather", "scatter")),
    "entries of x on a device, whole sequences": entries,
    "entries of x on a device, sequences cut": entries // model,
}

# Stays with the 4 x 2 mesh of the notebook's first cell: two sequences on a device, and n is 2.
region_costs__wrong_THE_OTHER_MESH = {
    "bytes sent with an all_reduce": 2 * 1 / 2 * (8 // 4 * 64 * 32 * 4),
    "bytes sent with all_gather and reduce_scatter": 2 * 1 / 2 * (8 // 4 * 64 * 32 * 4),
    "entries of x on a device, whole sequences": 8 // 4 * 64 * 32,
    "entries of x on a device, sequences cut": 8 // 4 * 64 // 2 * 32,
}

# With the tokens cut, thinks she, V is the cut block that a device holds: so the two send a quarter of what the all_reduce does.
region_costs__wrong_V_IS_THE_SHARE = {
    "bytes sent with an all_reduce": 2 * 3 / 4 * V,
    "bytes sent with all_gather and reduce_scatter": 2 * 3 / 4 * (V / 4),
    "entries of x on a device, whole sequences": entries,
    "entries of x on a device, sequences cut": entries // 4,
}

# n is the number of devices, 2 * 4 = 8: he takes the whole mesh for the group that adds up.
region_costs__wrong_EIGHT_IN_THE_GROUP = {
    "bytes sent with an all_reduce": 2 * 7 / 8 * V,
    "bytes sent with all_gather and reduce_scatter": 2 * 7 / 8 * V,
    "entries of x on a device, whole sequences": entries,
    "entries of x on a device, sequences cut": entries // 4,
}

# "An all_reduce gives everybody a copy, so each device has all eight sequences": forgets in the entries that batch cuts them.
region_costs__wrong_BATCH_FORGOTTEN = {
    "bytes sent with an all_reduce": 2 * 3 / 4 * V,
    "bytes sent with all_gather and reduce_scatter": 2 * 3 / 4 * V,
    "entries of x on a device, whole sequences": 8 * 64 * 32,
    "entries of x on a device, sequences cut": 8 * 64 // 4 * 32,
}
