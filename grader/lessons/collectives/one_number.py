"""§ 7, 9–10: numbers about the full array, from blocks of it: the index of the largest, softmax, means."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, ProgramExercise
from grader.jax_versions import all_gather
from grader.lessons.collectives.matrices import COLUMNS
from grader.lessons.shared import bytes_sent, device_map

# The place of the largest entry of v[I_X]: the first of them, if there are several.

VECTOR = P("x")

global_argmax = ProgramExercise("global_argmax", points=4, reference=np.argmax)


@global_argmax.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    length = 4 * draw.lengths(1, divisible_by=8)[0]
    least = bytes_sent("all_gather", 2, n)  # a value and a place from everybody; two all-reduces of one number are less
    value = draw.rng.permutation(length).astype(np.float32) - 2 * length  # all are less than 0
    first = length // n * (n // 2) + int(draw.rng.integers(2, length // n - 2))  # on a device in the middle
    value[[first, -1 - draw.rng.integers(2)]] = -1  # and once more, on the last device
    value[value.argmin()] *= 3  # the largest of all, were it not negative
    return Case({"v": Array(value, VECTOR)}, mesh, P(), limits=[BytesSent(least)])


def _candidates(v, place):
    """`place` where the largest entry of all is, and more than any place elsewhere."""
    largest = lax.pmax(v.max(), "x")
    return jnp.where(v == largest, place, np.iinfo(np.int32).max)


def _places(v):
    return lax.axis_index("x") * len(v) + jnp.arange(len(v))


@global_argmax.mistake
def only_its_own_argmax(v, *, mesh, check_vma=False):
    """Each device has the index of the largest element of its own block. Which collective gives all of them the
    largest *value* of all?"""
    return device_map(jnp.argmax, mesh, VECTOR, P(), check_vma)(v)


@global_argmax.mistake
def largest_local_argmax(v, *, mesh):
    """This is the largest of the local *indices*. An index says nothing about how large the element is. What do the
    devices have to compare first?"""
    return device_map(lambda v: lax.pmax(jnp.argmax(v), "x"), mesh, VECTOR, P())(v)


@global_argmax.mistake
def forgot_where_its_block_begins(v, *, mesh):
    """This is the index within the block of the device that holds the largest element. At which index of the full
    vector does that block start?"""

    def body(v):
        return lax.pmin(_candidates(v, jnp.arange(len(v))).min(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def added_only_its_number(v, *, mesh):
    """This is the index within the block plus the index of the device. But device 1's block starts at the length of a
    block, not at 1. What do you have to multiply the device's index by?"""

    def body(v):
        return lax.pmin(_candidates(v, lax.axis_index("x") + jnp.arange(len(v))).min(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def number_of_the_device(v, *, mesh):
    """This is the index of the device that holds the largest element. At which index of the full vector does that
    device's block start, and where in the block is the element?"""

    def body(v):
        return lax.pmin(_candidates(v, lax.axis_index("x")).min(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def smallest_place_of_all(v, *, mesh):
    """This is the smallest of the indices at which the devices have their own largest elements. Only the devices that
    hold the largest *value* of all should contribute an index. What should the others contribute?"""
    return device_map(lambda v: lax.pmin(_places(v)[jnp.argmax(v)], "x"), mesh, VECTOR, P())(v)


@global_argmax.mistake
def offered_zero(v, *, mesh):
    """This is index 0. If devices without the largest element contribute 0, then 0 wins in a pmin. Which number never
    wins?"""
    return device_map(
        lambda v: lax.pmin(jnp.where(v == lax.pmax(v.max(), "x"), _places(v), 0).min(), "x"), mesh, VECTOR, P()
    )(v)


@global_argmax.mistake
def last_of_several(v, *, mesh):
    """If several elements are equally large, this is the index of the last of them. `argmax` returns the first. Which
    collective selects it?"""

    def body(v):
        largest = lax.pmax(v.max(), "x")
        return lax.pmax(jnp.where(v == largest, _places(v), -1).max(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def added_the_places(v, *, mesh):
    """This is the sum of the indices of all largest elements. It is correct only if there is one. Which collective
    selects one of several?"""

    def body(v):
        largest = lax.pmax(v.max(), "x")
        return lax.psum(jnp.where(v == largest, _places(v), 0).sum(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def gathered_the_vector(v, *, mesh):
    """The index is correct, but the full vector went to every device, for one number. What is the least that a device
    has to tell the others about its block?"""
    return device_map(lambda v: jnp.argmax(lax.all_gather(v, "x", tiled=True)), mesh, VECTOR, P())(v)


# log Σ exp and softmax of rows that are cut: the largest entry of all comes off first, or exp overflows.


def _logits(draw, rows, columns):
    """Rows around 150, -150 and 90: exp of the first two leaves float32, up and down."""
    height = np.resize([150.0, -150.0, 90.0], rows)[:, None]
    value = height + np.round(3 * draw.rng.normal(size=(rows, columns)), 2)
    value[0, 0] -= 200  # what is taken off should be the largest entry, not the smallest
    value[1, 1] += 200  # nor the mean
    return Array(value.astype(np.float32), COLUMNS)


def _shifted_exp(a):
    wide = a.astype(float)  # (in NumPy 64 bits)
    largest = wide.max(axis=1, keepdims=True)
    return largest[:, 0], np.exp(wide - largest)


def _logsumexp_reference(a):
    largest, terms = _shifted_exp(a)
    return (largest + np.log(terms.sum(axis=1))).astype(np.float32)


def _softmax_reference(a):
    _, terms = _shifted_exp(a)
    return (terms / terms.sum(axis=1, keepdims=True)).astype(np.float32)


global_logsumexp = ProgramExercise("global_logsumexp", points=4, reference=_logsumexp_reference)


@global_logsumexp.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    rows, columns = draw.lengths(2, divisible_by=8)
    return Case(
        {"a": _logits(draw, rows, columns)},
        mesh,
        P(),
        # Two sums of a number from each row; or the devices' own numbers, gathered once.
        limits=[BytesSent(max(2 * bytes_sent("all_reduce", rows, n), bytes_sent("all_gather", rows, n)))],
    )


@global_logsumexp.mistake
def added_the_logarithms(a, *, mesh):
    """The devices' logsumexps were summed. They are logarithms of sums, and a sum of logarithms is the logarithm of a
    *product*. What has to be summed before you take the logarithm?"""

    def body(a):
        return lax.psum(jax.nn.logsumexp(a, axis=1), "x")

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def averaged_the_logarithms(a, *, mesh):
    """The devices' logsumexps were averaged. Logarithms of sums don't combine that way. What has to be summed before
    you take the logarithm?"""

    def body(a):
        return lax.pmean(jax.nn.logsumexp(a, axis=1), "x")

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def overflowed(a, *, mesh):
    """exp(150) is more than float32 can hold, and exp(-150) is less, which gives infinity and zero. What is subtracted
    first, and which value is it here?"""

    def body(a):
        return jnp.log(lax.psum(jnp.exp(a).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def each_took_its_own_maximum(a, *, mesh, check_vma=False):
    """The result still depends on a number of each device's *own* block: its largest element, or its sum. All devices
    have to subtract the same number before they sum. Which collective finds the largest of all?"""

    def body(a):
        largest = a.max(axis=1)
        return largest + jnp.log(lax.psum(jnp.exp(a - largest[:, None]).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P(), check_vma)(a)


@global_logsumexp.mistake
def put_back_another_maximum(a, *, mesh):
    """The number that was subtracted isn't the one that was added back: each device subtracted its own largest
    element, and the largest of all was added. Which number has to be the same on all devices *before* anything is
    summed?"""

    def body(a):
        own = a.max(axis=1)
        return lax.pmax(own, "x") + jnp.log(lax.psum(jnp.exp(a - own[:, None]).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def forgot_to_add_the_maximum(a, *, mesh):
    """The largest element of each row is missing from the result: it was subtracted inside exp and never added back.
    exp(a - m) is exp(a) divided by exp(m). What does that do to the logarithm?"""

    def body(a):
        largest = lax.pmax(a.max(axis=1), "x")
        return jnp.log(lax.psum(jnp.exp(a - largest[:, None]).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def took_off_one_maximum_for_all_rows(a, *, mesh):
    """The same number was subtracted from *all* rows, such as the largest element of the full array. In a row with
    much smaller elements, every exp becomes zero, and log(0) is -inf. Along which dimension does each row have its own
    maximum?"""

    def body(a):
        largest = lax.pmax(a.max(), "x")
        return largest + jnp.log(lax.psum(jnp.exp(a - largest).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def added_the_rows_up_too(a, *, mesh):
    """The sum runs over all rows together, so every row got the logarithm of the same sum. Along which dimension does
    each row have its own sum?"""

    def body(a):
        largest = lax.pmax(a.max(axis=1), "x")
        return largest + jnp.log(lax.psum(jnp.exp(a - largest[:, None]).sum(), "x"))

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def only_its_own_columns(a, *, mesh, check_vma=False):
    """This is the logsumexp of each device's own columns. Which two numbers do the devices have to combine for each
    row?"""
    return device_map(lambda a: jax.nn.logsumexp(a, axis=1), mesh, COLUMNS, P(), check_vma)(a)


@global_logsumexp.mistake
def kept_its_own_sum(a, *, mesh, check_vma=False):
    """All devices subtract the same number, but each takes the logarithm of the sum of its own columns. Which
    collective completes the sum before the logarithm?"""

    def body(a):
        largest = lax.pmax(a.max(axis=1), "x")
        return largest + jnp.log(jnp.exp(a - largest[:, None]).sum(axis=1))

    return device_map(body, mesh, COLUMNS, P(), check_vma)(a)


@global_logsumexp.mistake
def of_each_column(a, *, mesh):
    """The result has one element per column of a block, because maximum and sum run along dimension 0. The exercise
    asks for one element per row. Along which dimension do they run, then?"""

    def body(a):
        largest = lax.pmax(a.max(axis=0), "x")
        return largest + jnp.log(lax.psum(jnp.exp(a - largest).sum(axis=0), "x"))

    return device_map(body, mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def largest_of_the_parts(a, *, mesh):
    """This is the largest of the devices' own logsumexps. It comes close if one block has nearly all of a row's sum,
    but the other blocks' contribution is missing. How do you combine sums of exponentials?"""
    return device_map(lambda a: lax.pmax(jax.nn.logsumexp(a, axis=1), "x"), mesh, COLUMNS, P())(a)


@global_logsumexp.mistake
def gathered_all_logits(a, *, mesh):
    """The values are correct, but all elements went to every device. For each row, a device has to send only two
    numbers. Which two?"""

    def body(a):
        return jax.nn.logsumexp(lax.all_gather(a, "x", axis=1, tiled=True), axis=1)

    return device_map(body, mesh, COLUMNS, P())(a)


safe_softmax = ProgramExercise("safe_softmax", points=4, reference=_softmax_reference)


@safe_softmax.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    rows, columns = draw.lengths(2, divisible_by=8)
    return Case(
        {"a": _logits(draw, rows, columns)},
        mesh,
        COLUMNS,
        limits=[BytesSent(2 * bytes_sent("all_reduce", rows, mesh["x"]))],
    )


@safe_softmax.mistake
def softmax_of_its_own_columns(a, *, mesh):
    """Each device took the softmax of only its own columns, so every row sums to the number of devices along x instead
    of 1. Over which columns do the maximum and the sum run?"""
    return device_map(lambda a: jax.nn.softmax(a, axis=1), mesh, COLUMNS, COLUMNS)(a)


@safe_softmax.mistake
def divided_by_its_own_sum(a, *, mesh):
    """The maximum is that of all devices, but the sum is each device's own, so each device's part of a row sums to 1,
    or is 0/0. What has to happen to the sum before you divide?"""

    def body(a):
        terms = jnp.exp(a - lax.pmax(a.max(axis=1, keepdims=True), "x"))
        return terms / terms.sum(axis=1, keepdims=True)

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@safe_softmax.mistake
def took_off_its_own_maximum(a, *, mesh):
    """Each device subtracted the maximum of its *own* block, so the terms are scaled differently on each device, and
    the sum mixes them. Which collective finds the number that all devices have to subtract?"""

    def body(a):
        terms = jnp.exp(a - a.max(axis=1, keepdims=True))
        return terms / lax.psum(terms.sum(axis=1, keepdims=True), "x")

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@safe_softmax.mistake
def softmax_overflowed(a, *, mesh):
    """exp(150) is more than float32 can hold: infinity divided by infinity is not a number, and neither is 0/0. What
    can you subtract from all elements of a row without changing its softmax?"""

    def body(a):
        terms = jnp.exp(a)
        return terms / lax.psum(terms.sum(axis=1, keepdims=True), "x")

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@safe_softmax.mistake
def divided_by_the_mean(a, *, mesh):
    """Every row sums to the number of devices along x, as if the devices' sums were averaged. They are parts of one
    sum. Which collective adds without dividing?"""

    def body(a):
        terms = jnp.exp(a - lax.pmax(a.max(axis=1, keepdims=True), "x"))
        return terms / lax.pmean(terms.sum(axis=1, keepdims=True), "x")

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@safe_softmax.mistake
def gathered_for_softmax(a, *, mesh):
    """The values are correct, but all elements went to every device, which kept a few columns of the softmax. For each
    row, a device has to send only two numbers. Which two?"""

    def body(a):
        whole = jax.nn.softmax(lax.all_gather(a, "x", axis=1, tiled=True), axis=1)
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * a.shape[1], a.shape[1], 1)

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


# The gradient of Σ logsumexp, by jax.grad: a maximum that is only taken off again needs no derivative.

logsumexp_gradient = ProgramExercise("logsumexp_gradient", points=3, reference=_softmax_reference)


@logsumexp_gradient.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    rows, columns = draw.lengths(2, divisible_by=8)
    return Case(
        {"a": _logits(draw, rows, columns)},
        mesh,
        COLUMNS,
        limits=[BytesSent(2 * bytes_sent("all_reduce", rows, mesh["x"]))],
    )


def _total(a, largest):
    terms = jnp.exp(a - largest[:, None])
    return (largest + jnp.log(lax.psum(terms.sum(axis=1), "x"))).sum()


@logsumexp_gradient.mistake
def differentiated_the_maximum(a, *, mesh):
    """JAX has no rule to differentiate a pmax, and you don't need one: the maximum is subtracted and added again. A
    `jax.lax.stop_gradient` around the result of pmax is too late. Where does it have to be?"""
    total = device_map(lambda a: _total(a, lax.pmax(a.max(axis=1), "x")), mesh, COLUMNS, P())
    return jax.grad(total)(a)


@logsumexp_gradient.mistake
def gradient_of_each_part(a, *, mesh):
    """This is the gradient of each device's own logsumexp: its rows sum to 1 on every device. The exercise asks for
    the gradient of the logsumexp of all columns. Where does the sum over devices come in?"""

    def body(a):
        return jax.grad(lambda a: jax.nn.logsumexp(a, axis=1).sum())(a)

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@logsumexp_gradient.mistake
def gathered_for_the_gradient(a, *, mesh):
    """The values are correct, but all elements went to every device in the forward pass. For each row, a device has to
    send only two numbers. Which two?"""

    def body(a):
        return jax.nn.logsumexp(all_gather(a, "x", axis=1, tiled=True, to="invarying"), axis=1)

    return jax.grad(lambda a: device_map(body, mesh, COLUMNS, P())(a).sum())(a)


@logsumexp_gradient.mistake
def gradient_without_the_check(a, *, mesh):
    """The gradient is too large by the number of devices along x. It looks as if jax.grad was called *inside*
    shard_map with `check_vma=False`: then JAX doesn't know that all devices hold the same sum, and sums their
    gradients again. Can you leave the check on, or differentiate from outside?"""

    def body(a):
        largest = lax.pmax(lax.stop_gradient(a.max(axis=1)), "x")
        return jax.grad(_total)(a, largest)

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@logsumexp_gradient.mistake
def gradient_of_an_unchecked_map(a, *, mesh):
    """The values are correct, but the backward pass sums more than it has to: along x, and even along y. With
    `check_vma=False`, JAX doesn't know which values are the same on several devices. Does your program need the check
    off?"""
    total = device_map(lambda a: _total(a, lax.pmax(lax.stop_gradient(a.max(axis=1)), "x")), mesh, COLUMNS, P())
    return jax.grad(total)(a)


# Layer normalisation, the features cut: two means over all of them, and the second needs the first.

EPSILON = 1e-5


def _layernorm_reference(a):
    wide = a.astype(float)  # (in NumPy 64 bits)
    mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
    return ((wide - mean) / np.sqrt(variance + EPSILON)).astype(np.float32)


sharded_layernorm = ProgramExercise("sharded_layernorm", points=4, reference=_layernorm_reference)


@sharded_layernorm.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    rows, features = draw.lengths(2, divisible_by=8)
    a = draw.values(rows, features) + np.repeat(np.arange(8), features // 8)  # the devices' means differ
    a[1] *= 0.002  # so small that epsilon shows
    return Case(
        {"a": Array(a.astype(np.float32), COLUMNS)},
        mesh,
        COLUMNS,
        limits=[BytesSent(2 * bytes_sent("all_reduce", rows, mesh["x"]))],
    )


def _normalised(a, mean, variance):
    return (a - mean) / jnp.sqrt(variance + EPSILON)


def _average(a):
    return a.mean(axis=1, keepdims=True)


@sharded_layernorm.mistake
def own_statistics(a, *, mesh):
    """Each device normalized with the mean and variance of its own features. The mean is 0 on every device, but the
    values are wrong. Over which features do both statistics run?"""

    def body(a):
        return _normalised(a, _average(a), _average((a - _average(a)) ** 2))

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@sharded_layernorm.mistake
def averaged_the_variances(a, *, mesh):
    """The mean is that of all features, but the variance is the average of the devices' own variances, each around its
    *own* mean. That ignores how far apart these means are. Around which mean does every device have to measure?"""

    def body(a):
        mean = lax.pmean(_average(a), "x")
        return _normalised(a, mean, lax.pmean(_average((a - _average(a)) ** 2), "x"))

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@sharded_layernorm.mistake
def averaged_only_across(a, *, mesh):
    """pmean averages *across* devices, element by element, and not over the features of one device. So each feature
    was compared with those at the same index on other devices. Which mean is missing?"""

    def body(a):
        mean = lax.pmean(a, "x")
        return _normalised(a, mean, lax.pmean((a - mean) ** 2, "x"))

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@sharded_layernorm.mistake
def added_the_means(a, *, mesh):
    """The devices' means were summed, for both statistics. They are means of equally many features. Which collective
    averages them?"""

    def body(a):
        mean = lax.psum(_average(a), "x")
        return _normalised(a, mean, lax.psum(_average((a - mean) ** 2), "x"))

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@sharded_layernorm.mistake
def own_variance(a, *, mesh):
    """The mean is that of all features, but the squares were averaged over each device's own features. Which step did
    the mean get that the variance didn't?"""

    def body(a):
        mean = lax.pmean(_average(a), "x")
        return _normalised(a, mean, _average((a - mean) ** 2))

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


@sharded_layernorm.mistake
def gathered_the_features(a, *, mesh):
    """The values are correct, but all features went to every device. For each row, a device has to send only two
    numbers. Which two?"""

    def body(a):
        whole = lax.all_gather(a, "x", axis=1, tiled=True)
        return _normalised(a, _average(whole), whole.var(axis=1, keepdims=True))

    return device_map(body, mesh, COLUMNS, COLUMNS)(a)


# The mean of the entries that a mask keeps; a device may keep none.

MASKED = VECTOR, VECTOR

masked_mean = ProgramExercise(
    "masked_mean", points=4, reference=lambda a, mask: np.where(mask, a, 0).sum() / mask.sum(dtype=np.float32)
)


@masked_mean.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    (length,) = draw.lengths(1, divisible_by=16)
    block = length // n
    device, place = np.divmod(np.arange(length), block)
    mask = (place <= (device + 1) % (block - 1)) & (device != 1)  # another number on each device, none on device 1
    values = draw.values(length)
    values[1] = 0  # is kept: to be 0 is not to be masked
    a = Array(values, VECTOR)
    return Case(
        {"a": a, "mask": Array(mask, VECTOR)}, mesh, P(), limits=[BytesSent(2 * bytes_sent("all_reduce", 1, n))]
    )


def _kept(a, mask):
    return jnp.where(mask, a, 0).sum()


@masked_mean.mistake
def mean_of_means(a, mask, *, mesh):
    """The result isn't a number: 0 was divided by 0, as on a device that keeps no element and divides by how many it
    keeps. Which two sums over all devices make the mean?"""

    def body(a, mask):
        return lax.pmean(_kept(a, mask) / mask.sum(), "x")

    return device_map(body, mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def mean_of_guarded_means(a, mask, *, mesh):
    """This is the average of the devices' own means, with 0 for a device that keeps nothing. A device that keeps one
    element counts as much as one that keeps ten. Which two sums over all devices make the mean?"""

    def body(a, mask):
        return lax.pmean(_kept(a, mask) / jnp.maximum(mask.sum(), 1), "x")

    return device_map(body, mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def took_the_mean_of_everything(a, mask, *, mesh):
    """This is the mean of all of `a`, without the mask. Which elements should count, in the numerator and in the
    denominator?"""
    return device_map(lambda a, mask: lax.pmean(a.mean(), "x"), mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def mean_of_the_means_there_are(a, mask, *, mesh):
    """The devices that keep nothing were left out, and the means of the others were averaged. One that keeps one
    element still counts as much as one that keeps ten. Which two sums over all devices make the mean?"""

    def body(a, mask):
        kept = mask.sum()
        return lax.psum(_kept(a, mask) / jnp.maximum(kept, 1), "x") / lax.psum(jnp.minimum(kept, 1), "x")

    return device_map(body, mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def counted_what_is_not_zero(a, mask, *, mesh):
    """The denominator counts the elements that aren't 0, but an element that is kept may be 0. What says which
    elements are kept?"""

    def body(a, mask):
        kept = jnp.where(mask, a, 0)
        return lax.psum(kept.sum(), "x") / lax.psum((kept != 0).sum(), "x")

    return device_map(body, mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def weighted_a_mean_of_nothing(a, mask, *, mesh):
    """The result isn't a number. Weighting each device's mean by how many elements it keeps works until a device keeps
    none: its mean is 0/0, and 0 times that is still not a number. What can you sum before you divide?"""

    def body(a, mask):
        kept = mask.sum()
        return lax.psum(_kept(a, mask) / kept * kept, "x") / lax.psum(kept, "x")

    return device_map(body, mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def divided_by_its_own_count(a, mask, *, mesh, check_vma=False):
    """The sum is over all devices, but each device divides by how many elements it keeps *itself*. So the results
    differ, although `P()` claims that they don't. What has to happen to the count?"""

    def body(a, mask):
        return lax.psum(_kept(a, mask), "x") / mask.sum()

    return device_map(body, mesh, MASKED, P(), check_vma)(a, mask)


@masked_mean.mistake
def divided_by_all_entries(a, mask, *, mesh):
    """Masked elements add nothing to the sum, but they were counted: the denominator is the length of the full vector.
    How many elements does the mask keep, over all devices?"""

    def body(a, mask):
        return lax.psum(_kept(a, mask), "x") / (len(a) * mesh.shape["x"])

    return device_map(body, mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def averaged_sum_over_total_count(a, mask, *, mesh):
    """The result is the mean divided by n, with n devices along x, as if the sums were averaged and the counts were
    summed. Which collective do both parts of the fraction need?"""

    def body(a, mask):
        return lax.pmean(_kept(a, mask), "x") / lax.psum(mask.sum(), "x")

    return device_map(body, mesh, MASKED, P())(a, mask)


@masked_mean.mistake
def ignored_the_mask(a, mask, *, mesh):
    """This is the sum of *all* elements divided by the number of those that are kept. What should a masked element add
    to the sum?"""

    def body(a, mask):
        return lax.psum(a.sum(), "x") / lax.psum(mask.sum(), "x")

    return device_map(body, mesh, MASKED, P())(a, mask)
