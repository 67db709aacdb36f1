"""Answers to lesson 12, eighteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- place_dp
def place_dp__right_tree_of_shardings(params, batch, mesh):
    """(params, batch), laid out for data parallelism over "data"."""

    def layout_of(tree, spec):
        return jax.tree.map(lambda _: NamedSharding(mesh, spec), tree)

    both = {"params": params, "batch": batch}
    layouts = {"params": layout_of(params, P()), "batch": layout_of(batch, P("data"))}
    laid = jax.device_put(both, layouts)
    return laid["params"], laid["batch"]


# This student thought that a device's share is the batch divided by all devices, so the rows are cut over every axis there is.
def place_dp__wrong_every_axis(params, batch, mesh):
    whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P(mesh.axis_names))
    return jax.device_put(params, whole), jax.device_put(batch, cut)


# This student thought that the shape tells what has examples: any leaf with as many rows as the batch is cut, a square-ish W or a b too.
def place_dp__wrong_rows_by_shape(params, batch, mesh):
    rows = jax.tree.leaves(batch)[0].shape[0]

    def lay(leaf):
        spec = P("data") if leaf.shape[0] == rows else P()
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    return jax.tree.map(lay, params), jax.tree.map(lay, batch)


# This student came from pmap: the device dimension has to stand in front, so the batch is reshaped to [devices, rows, ...].
def place_dp__wrong_pmap_axis(params, batch, mesh):
    n = mesh.shape["data"]

    def per_device(array):
        return array.reshape(n, array.shape[0] // n, *array.shape[1:])

    stacked = jax.tree.map(per_device, batch)
    return (jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(stacked, NamedSharding(mesh, P("data"))))


# This student thought a matrix may as well be cut where it divides evenly, since the compiler makes the values right anyway.
def place_dp__wrong_weights_in_shares(params, batch, mesh):
    n = mesh.shape["data"]

    def weights(leaf):
        fits = leaf.ndim == 2 and leaf.shape[0] % n == 0
        return jax.device_put(leaf, NamedSharding(mesh, P("data") if fits else P()))

    return jax.tree.map(weights, params), jax.device_put(batch, NamedSharding(mesh, P("data")))


# ---------------------------------------------------------------- same_lr_question
def _rate(factor):
    return 0.48 / factor


same_lr_question__right_factors = {
    "local mean, pmean": _rate(1),
    "local mean, psum": _rate(8),
    "local sum, pmean": _rate(6),
    "local sum, psum": _rate(6 * 8),
    "local mean, nothing, check_vma on": _rate(8),
    "local sum / 48, psum": _rate(48 / 48),
    "local mean, summed over 4 microbatches, pmean": _rate(4),
}

# This student thought that without any collective the gradient is the device's own mean, which has the right size already.
same_lr_question__wrong_check_only_checks = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.48,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student thought a sum over rows is 48 times the mean, on each device already, and the psum comes on top of that.
same_lr_question__wrong_sum_of_all_rows = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.48 / 8,
    "local sum, pmean": 0.48 / 48,
    "local sum, psum": 0.48 / 48 / 8,
    "local mean, nothing, check_vma on": 0.48 / 8,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48 / 4,
}

# This student thought that whatever ends in a psum is eight times too large, whatever was divided before it.
same_lr_question__wrong_psum_is_eight = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.06,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student thought that a microbatch has a quarter of the rows, so each mean is of a quarter and four of them added make one whole.
same_lr_question__wrong_quarters_make_one = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48,
}

# ---------------------------------------------------------------- which_run
# No right one: the letters follow from experiments in the notebook (lab.gradients), which I was not to run.
# Known from the text: B was never synchronised; D's devices agree and its ratios are no constant, so D is one of
# "last microbatch only", "same dropout masks", "padding counted". Each wrong one below contradicts that for certain.
# (The other rows are placeholders: I cannot say that they are right.)

# This student saw several versions of B's gradient and thought: a reduction over one axis leaves copies that differ, so that is B.
which_run__wrong_b_one_axis = {
    "A": "sum of means",
    "B": "averaged over one axis",
    "C": "sum taken for the mean",
    "D": "padding counted",
    "E": "never synchronised",
    "F": "same dropout masks",
    "G": "last microbatch only",
}

# This student thought that devices which agree have summed where they should have averaged, and did not look whether D's ratios are constant.
which_run__wrong_d_agrees_so_sum = {
    "A": "padding counted",
    "B": "never synchronised",
    "C": "sum of means",
    "D": "sum taken for the mean",
    "E": "averaged over one axis",
    "F": "same dropout masks",
    "G": "last microbatch only",
}

# This student took the curve for evidence: B's low loss is that of a run that fits half of its rows only; the unsynchronised one must be bad.
which_run__wrong_b_by_its_curve = {
    "A": "sum taken for the mean",
    "B": "last microbatch only",
    "C": "averaged over one axis",
    "D": "same dropout masks",
    "E": "sum of means",
    "F": "never synchronised",
    "G": "padding counted",
}

# This student thought equal masks make devices equal, and "D agrees" a sign of one missing axis only: masks for B, one axis for D.
which_run__wrong_copies_mean_masks = {
    "A": "sum of means",
    "B": "same dropout masks",
    "C": "never synchronised",
    "D": "averaged over one axis",
    "E": "padding counted",
    "F": "last microbatch only",
    "G": "sum taken for the mean",
}
