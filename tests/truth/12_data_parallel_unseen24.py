"""Answers to lesson 12, twenty-fourth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


# ---- place_dp


def place_dp__right_leafwise(params, batch, mesh):
    everywhere = NamedSharding(mesh, P())

    def by_examples(leaf):
        return jax.device_put(leaf, NamedSharding(mesh, P("data", *[None] * (leaf.ndim - 1))))

    return jax.tree.map(lambda leaf: jax.device_put(leaf, everywhere), params), {
        name: by_examples(leaf) for name, leaf in batch.items()
    }


# This student thought that "every device a share of the examples" means that all axes of the mesh cut the batch.
def place_dp__wrong_all_axes(params, batch, mesh):
    whole = NamedSharding(mesh, P())
    shares = NamedSharding(mesh, P(mesh.axis_names))
    return jax.device_put(params, whole), jax.device_put(batch, shares)


# This student thought that parameters which nobody cuts are whole already, so only the batch has to be laid out.
def place_dp__wrong_params_untouched(params, batch, mesh):
    rows = NamedSharding(mesh, P("data"))
    return params, {name: jax.device_put(leaf, rows) for name, leaf in batch.items()}


# This student was kind: what the axis does not divide is laid out whole instead of letting the error through.
def place_dp__wrong_falls_back(params, batch, mesh):
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

    def lay(leaf):
        fits = leaf.shape[0] % mesh.shape["data"] == 0
        return jax.device_put(leaf, rows if fits else whole)

    return jax.device_put(params, whole), jax.tree.map(lay, batch)


# This student thought that matrices are cut in the feature dimension, and only vectors in their single one.
def place_dp__wrong_features(params, batch, mesh):
    def spec(leaf):
        return P(*[None] * (leaf.ndim - 1), "data")

    laid = {name: jax.device_put(leaf, NamedSharding(mesh, spec(leaf))) for name, leaf in batch.items()}
    return jax.device_put(params, NamedSharding(mesh, P())), laid


# ---- same_lr_question

same_lr_question__right_factors = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.48 / 8,
    "local sum, pmean": 0.48 / 6,
    "local sum, psum": 0.48 / (6 * 8),
    "local mean, nothing, check_vma on": 0.48 / 8,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48 / 4,
}

# This student thought that where nothing is written nothing is combined, so the local mean has the size of a mean.
same_lr_question__wrong_nothing_combined = same_lr_question__right_factors | {
    "local mean, nothing, check_vma on": 0.48,
}

# This student took the 6 rows for the factor of psum and the 8 devices for the factor of a local sum.
same_lr_question__wrong_exchanged = same_lr_question__right_factors | {
    "local mean, psum": 0.48 / 6,
    "local sum, pmean": 0.48 / 8,
    "local mean, nothing, check_vma on": 0.48 / 6,
}

# This student thought that every psum makes a gradient eight times too large, also where the 48 is divided out already.
same_lr_question__wrong_psum_is_eight = same_lr_question__right_factors | {
    "local sum / 48, psum": 0.48 / 8,
}

# This student thought that the four microbatches, summed, make up the sum over the device's six rows.
same_lr_question__wrong_micro_is_sum = same_lr_question__right_factors | {
    "local mean, summed over 4 microbatches, pmean": 0.48 / 6,
}

# ---- average_what

average_what__right_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thought that momenta that stay local and are never averaged must drive the runs apart.
average_what__wrong_momentum_local = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "different",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thought that SGD is linear, so it does not matter how many steps one waits with averaging.
average_what__wrong_two_steps_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "same",
}

# This student thought that clipping only multiplies a gradient by a number, which is linear.
average_what__wrong_clip_is_factor = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "same",
    "SGD, averaged after every second step": "different",
}

# This student thought that weight decay and momentum depend on the parameters' own history on each device, so only bare SGD is the same.
average_what__wrong_only_bare_sgd = {
    "SGD": "same",
    "SGD with weight decay": "different",
    "SGD with momentum": "different",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}
