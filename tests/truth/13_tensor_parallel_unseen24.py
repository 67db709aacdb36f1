"""Answers to lesson 13, twenty-fourth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ---- tp_costs

_MATRIX = 8192 * 8192 * 4 / 1e6
_REST = 4 * (784 * 8192 + 8192 * 10 + 3 * 8192 + 10) / 1e6
_DP = 2 * _MATRIX + _REST
_TP = _MATRIX + _REST - 4 * 8192 / 2 / 1e6
_SUM = 2048 * 8192 * 4 / 1e6

tp_costs__right_counted = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": 2 * 7 / 8 * _DP,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _TP,
    "MB sent over model, DP + TP": 2 * (2 * 1 / 2 * _SUM),
}

# This student counted the sum of the forward pass only, and forgot the one on the way back.
tp_costs__wrong_one_sum = tp_costs__right_counted | {
    "MB sent over model, DP + TP": 2 * 1 / 2 * _SUM,
}

# This student thought that gradients are added up by all eight devices, also where the batch axis has four.
tp_costs__wrong_eight_along_batch = tp_costs__right_counted | {
    "MB sent over batch, DP + TP": 2 * 7 / 8 * _TP,
}

# This student thought that the model axis halves all of the model, W1 and W4 as well.
tp_costs__wrong_everything_halved = tp_costs__right_counted | {
    "MB of parameters on a device, DP + TP": _DP / 2,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _DP / 2,
}

# This student thought that the activations that are summed have the rows of the whole batch.
tp_costs__wrong_whole_batch = tp_costs__right_counted | {
    "MB sent over model, DP + TP": 2 * (2 * 1 / 2 * 8192 * 8192 * 4 / 1e6),
}

# ---- init_scale

init_scale__right_variances = {
    "spread of W2, drawn whole": 1024**-0.5,
    "spread of device 1's rows of it": 1024**-0.5,
    "spread of rows drawn by local fan-in": 256**-0.5,
    "variance of the outputs, drawn whole": 1.0,
    "variance of the outputs, by local fan-in": 1024 / 256,
    "spread of W1's columns, by local fan-in": 512**-0.5,
}

# This student thought that weights of twice the spread give outputs of twice the variance.
init_scale__wrong_spread_for_variance = init_scale__right_variances | {
    "variance of the outputs, by local fan-in": 2.0,
}

# This student thought that each device's 256 products have variance 1 and that the sum over devices leaves that as it is.
init_scale__wrong_one_on_each = init_scale__right_variances | {
    "variance of the outputs, by local fan-in": 1.0,
}

# This student thought that a device with a quarter of the rows sees half of the spread of the whole.
init_scale__wrong_quarter_has_less = init_scale__right_variances | {
    "spread of device 1's rows of it": 1024**-0.5 / 2,
}

# This student thought that "local" divides the fan-in by four for any cut, columns as well.
init_scale__wrong_columns_divided = init_scale__right_variances | {
    "spread of W1's columns, by local fan-in": (512 / 4) ** -0.5,
}

# ---- where_it_goes

where_it_goes__right_finished = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# This student thought that adding is linear, so that b2 may be added before or after the sum.
where_it_goes__wrong_adding_is_linear = where_it_goes__right_finished | {
    "adding b2 to the result": "either way",
}

# This student thought that halving both parts halves twice, so that it has to wait for the sum.
where_it_goes__wrong_halved_twice = where_it_goes__right_finished | {
    "halving the result": "after the sum",
}

# This student thought that softmax is one more activation of finished hidden units, like relu.
where_it_goes__wrong_softmax_as_relu = where_it_goes__right_finished | {
    "softmax over the hidden units": "on the parts",
}

# This student thought that each hidden unit's sum is still open, so that b1 and relu wait, and softmax waits for the same sum.
where_it_goes__wrong_hidden_waits = where_it_goes__right_finished | {
    "adding b1 to the hidden layer": "after the sum",
    "relu of the hidden layer": "after the sum",
    "softmax over the hidden units": "after the sum",
}
