"""§ 12–13: numbers about the whole, made from parts of it: where the largest is, softmax, means."""

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
    """Each device has the place of the largest entry of its own block. Which collective tells all of them the largest
    *value* of all?"""
    return device_map(jnp.argmax, mesh, VECTOR, P(), check_vma)(v)


@global_argmax.mistake
def largest_local_argmax(v, *, mesh):
    """That is the largest of the local *places*. A place says nothing about how large the entry there is: first compare
    values, then ask where the winner is."""
    return device_map(lambda v: lax.pmax(jnp.argmax(v), "x"), mesh, VECTOR, P())(v)


@global_argmax.mistake
def forgot_where_its_block_begins(v, *, mesh):
    """That is the winner's place within its own block. Where in the whole vector does that block begin? A device
    knows its number and the length of its block."""

    def body(v):
        return lax.pmin(_candidates(v, jnp.arange(len(v))).min(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def added_only_its_number(v, *, mesh):
    """That is the place within a device's block, plus the device's number. But device 1's block begins at place `block
    length`, not at place 1: by what must a device's number be multiplied?"""

    def body(v):
        return lax.pmin(_candidates(v, lax.axis_index("x") + jnp.arange(len(v))).min(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def number_of_the_device(v, *, mesh):
    """That is the number of the device on which the largest entry is. Where in the whole vector does that device's
    block begin, and where in the block is the entry?"""

    def body(v):
        return lax.pmin(_candidates(v, lax.axis_index("x")).min(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def smallest_place_of_all(v, *, mesh):
    """That is the smallest of the places at which the devices have their own largest entries. Only who holds the
    largest *value* of all may offer a place: what should the others offer instead?"""
    return device_map(lambda v: lax.pmin(_places(v)[jnp.argmax(v)], "x"), mesh, VECTOR, P())(v)


@global_argmax.mistake
def offered_zero(v, *, mesh):
    """That is place 0. If who does not hold the largest entry offers 0, then 0 wins in a pmin. Which number never
    does?"""
    return device_map(
        lambda v: lax.pmin(jnp.where(v == lax.pmax(v.max(), "x"), _places(v), 0).min(), "x"), mesh, VECTOR, P()
    )(v)


@global_argmax.mistake
def last_of_several(v, *, mesh):
    """Where several entries are equally large, this is the place of the last of them. `argmax` names the first:
    which of the places that qualify should win?"""

    def body(v):
        largest = lax.pmax(v.max(), "x")
        return lax.pmax(jnp.where(v == largest, _places(v), -1).max(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def added_the_places(v, *, mesh):
    """That is the sum of the winners' places. It is right only while there is one winner: with two equal maxima the sum
    is the place of neither. Which collective picks one?"""

    def body(v):
        largest = lax.pmax(v.max(), "x")
        return lax.psum(jnp.where(v == largest, _places(v), 0).sum(), "x")

    return device_map(body, mesh, VECTOR, P())(v)


@global_argmax.mistake
def gathered_the_vector(v, *, mesh):
    """The place is right. But the whole vector went to every device, for one number. What is the least that a
    device must tell the others about its block?"""
    return device_map(lambda v: jnp.argmax(lax.all_gather(v, "x", tiled=True)), mesh, VECTOR, P())(v)


# log Σ exp and softmax of rows that are cut: the largest entry of all comes off first, or exp overflows.


def _logits(draw, rows, columns):
    """Rows around 150, -150 and 90: exp of the first two leaves float32, up and down."""
    height = np.resize([150.0, -150.0, 90.0], rows)[:, None]
    value = height + np.round(3 * draw.rng.normal(size=(rows, columns)), 2)
    value[0, 0] -= 200  # what is taken off should be the largest entry, not the smallest
    value[1, 1] += 200  # nor the mean
    return Array(value.astype(np.float32), COLUMNS)


def _shifted_exp(x):
    wide = x.astype(float)  # (in NumPy 64 bits)
    largest = wide.max(axis=1, keepdims=True)
    return largest[:, 0], np.exp(wide - largest)


def _logsumexp_reference(x):
    largest, terms = _shifted_exp(x)
    return (largest + np.log(terms.sum(axis=1))).astype(np.float32)


def _softmax_reference(x):
    _, terms = _shifted_exp(x)
    return (terms / terms.sum(axis=1, keepdims=True)).astype(np.float32)


global_logsumexp = ProgramExercise("global_logsumexp", points=4, reference=_logsumexp_reference)


@global_logsumexp.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    rows, columns = draw.lengths(2, divisible_by=8)
    return Case(
        {"x": _logits(draw, rows, columns)},
        mesh,
        P(),
        # Two sums of a number from each row; or the devices' own numbers, gathered once.
        limits=[BytesSent(max(2 * bytes_sent("all_reduce", rows, n), bytes_sent("all_gather", rows, n)))],
    )


@global_logsumexp.mistake
def added_the_logarithms(x, *, mesh):
    """The devices' logsumexps were added up. They are logarithms of sums, and a sum of logarithms is the logarithm
    of a *product*. What must be added before the logarithm is taken?"""

    def body(x):
        return lax.psum(jax.nn.logsumexp(x, axis=1), "x")

    return device_map(body, mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def averaged_the_logarithms(x, *, mesh):
    """The devices' logsumexps were averaged. Logarithms of sums do not combine that way: what must be added before
    the logarithm is taken?"""

    def body(x):
        return lax.pmean(jax.nn.logsumexp(x, axis=1), "x")

    return device_map(body, mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def overflowed(x, *, mesh):
    """exp(150) is more than a float32 can hold, and exp(-150) is less: infinity, and zero. What is usually taken off
    first, and which value must it be here?"""

    def body(x):
        return jnp.log(lax.psum(jnp.exp(x).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def each_took_its_own_maximum(x, *, mesh, check_vma=False):
    """What a device ends with still depends on a number of its *own* block alone: its largest entry, or its sum. All
    must take off the same number before they add up: which collective finds the largest of all?"""

    def body(x):
        largest = x.max(axis=1)
        return largest + jnp.log(lax.psum(jnp.exp(x - largest[:, None]).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P(), check_vma)(x)


@global_logsumexp.mistake
def put_back_another_maximum(x, *, mesh):
    """What was taken off inside exp is not what was put back: each device took off its own largest entry, and the
    largest of all came back. Which number has to be the same on all devices *before* anything is added up?"""

    def body(x):
        own = x.max(axis=1)
        return lax.pmax(own, "x") + jnp.log(lax.psum(jnp.exp(x - own[:, None]).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def forgot_to_add_the_maximum(x, *, mesh):
    """The largest entry is missing here, as where it is taken off inside exp and never put back. exp(x - m) is exp(x)
    divided by exp(m): what does that do to the logarithm?"""

    def body(x):
        largest = lax.pmax(x.max(axis=1), "x")
        return jnp.log(lax.psum(jnp.exp(x - largest[:, None]).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def took_off_one_maximum_for_all_rows(x, *, mesh):
    """One number came off *all* rows, such as the largest entry of the whole array. In a row whose entries are much
    smaller every exp becomes zero, and log(0) is -inf. Each row has a largest entry of its own: what does `axis=1`
    do?"""

    def body(x):
        largest = lax.pmax(x.max(), "x")
        return largest + jnp.log(lax.psum(jnp.exp(x - largest).sum(axis=1), "x"))

    return device_map(body, mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def added_the_rows_up_too(x, *, mesh):
    """The sum runs over all rows together, so every row got the logarithm of the same sum. Each row has a sum of its
    own: along which dimension does it run?"""

    def body(x):
        largest = lax.pmax(x.max(axis=1), "x")
        return largest + jnp.log(lax.psum(jnp.exp(x - largest[:, None]).sum(), "x"))

    return device_map(body, mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def only_its_own_columns(x, *, mesh, check_vma=False):
    """That is the logsumexp of each device's own columns. Which two numbers must the devices share for each row?"""
    return device_map(lambda x: jax.nn.logsumexp(x, axis=1), mesh, COLUMNS, P(), check_vma)(x)


@global_logsumexp.mistake
def largest_of_the_parts(x, *, mesh):
    """That is the largest of the devices' own logsumexps. It comes near where one block has nearly all of a row's sum;
    but what the other blocks add to that sum is missing. How are sums of exponentials put together?"""
    return device_map(lambda x: lax.pmax(jax.nn.logsumexp(x, axis=1), "x"), mesh, COLUMNS, P())(x)


@global_logsumexp.mistake
def gathered_all_logits(x, *, mesh):
    """The values are right. But all logits went to every device. For each row a device need tell the others two
    numbers only: which?"""

    def body(x):
        return jax.nn.logsumexp(lax.all_gather(x, "x", axis=1, tiled=True), axis=1)

    return device_map(body, mesh, COLUMNS, P())(x)


safe_softmax = ProgramExercise("safe_softmax", points=4, reference=_softmax_reference)


@safe_softmax.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    rows, columns = draw.lengths(2, divisible_by=8)
    return Case(
        {"x": _logits(draw, rows, columns)},
        mesh,
        COLUMNS,
        limits=[BytesSent(2 * bytes_sent("all_reduce", rows, mesh["x"]))],
    )


@safe_softmax.mistake
def softmax_of_its_own_columns(x, *, mesh):
    """Each device made a softmax of its own columns: every row sums to the number of devices along x, not to 1. Over
    which columns do the largest entry and the sum run?"""
    return device_map(lambda x: jax.nn.softmax(x, axis=1), mesh, COLUMNS, COLUMNS)(x)


@safe_softmax.mistake
def divided_by_its_own_sum(x, *, mesh):
    """The largest entry is that of all devices, but the sum is each device's own, so a device's share of a row adds up
    to 1, or is 0/0. What must happen to the sum before you divide?"""

    def body(x):
        terms = jnp.exp(x - lax.pmax(x.max(axis=1, keepdims=True), "x"))
        return terms / terms.sum(axis=1, keepdims=True)

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@safe_softmax.mistake
def took_off_its_own_maximum(x, *, mesh):
    """Each device took the largest entry of its *own* block off, so the terms are scaled differently on each, and
    the sum mixes them. All must take off the same number: which collective finds it?"""

    def body(x):
        terms = jnp.exp(x - x.max(axis=1, keepdims=True))
        return terms / lax.psum(terms.sum(axis=1, keepdims=True), "x")

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@safe_softmax.mistake
def softmax_overflowed(x, *, mesh):
    """exp(150) is more than a float32 can hold: infinity divided by infinity is no number, and 0 by 0 neither.
    What may be taken off every entry of a row without changing its softmax?"""

    def body(x):
        terms = jnp.exp(x)
        return terms / lax.psum(terms.sum(axis=1, keepdims=True), "x")

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@safe_softmax.mistake
def divided_by_the_mean(x, *, mesh):
    """Every row sums to the number of devices along x. Were the devices' sums averaged? They are parts of one sum:
    which collective adds without dividing?"""

    def body(x):
        terms = jnp.exp(x - lax.pmax(x.max(axis=1, keepdims=True), "x"))
        return terms / lax.pmean(terms.sum(axis=1, keepdims=True), "x")

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@safe_softmax.mistake
def gathered_for_softmax(x, *, mesh):
    """The values are right. But all logits went to every device, and each kept a few columns of the softmax. For
    each row a device need tell the others two numbers only: which?"""

    def body(x):
        whole = jax.nn.softmax(lax.all_gather(x, "x", axis=1, tiled=True), axis=1)
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * x.shape[1], x.shape[1], 1)

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


# The gradient of Σ logsumexp, by jax.grad: a maximum that is only taken off again needs no derivative.

logsumexp_gradient = ProgramExercise("logsumexp_gradient", points=3, reference=_softmax_reference)


@logsumexp_gradient.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    rows, columns = draw.lengths(2, divisible_by=8)
    return Case(
        {"x": _logits(draw, rows, columns)},
        mesh,
        COLUMNS,
        limits=[BytesSent(2 * bytes_sent("all_reduce", rows, mesh["x"]))],
    )


def _total(x, largest):
    terms = jnp.exp(x - largest[:, None])
    return (largest + jnp.log(lax.psum(terms.sum(axis=1), "x"))).sum()


@logsumexp_gradient.mistake
def differentiated_the_maximum(x, *, mesh):
    """JAX has no rule to differentiate a pmax, and you need none: the maximum comes off and is added again.
    `jax.lax.stop_gradient` says so. Around what goes *into* pmax: around its result would be too late, since JAX
    has met the pmax by then."""
    total = device_map(lambda x: _total(x, lax.pmax(x.max(axis=1), "x")), mesh, COLUMNS, P())
    return jax.grad(total)(x)


@logsumexp_gradient.mistake
def gradient_of_each_part(x, *, mesh):
    """That is the gradient of each device's own logsumexp: its rows sum to 1 on every device. The gradient wanted
    is that of the logsumexp of all columns: where does the sum over devices come in?"""

    def body(x):
        return jax.grad(lambda x: jax.nn.logsumexp(x, axis=1).sum())(x)

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@logsumexp_gradient.mistake
def gathered_for_the_gradient(x, *, mesh):
    """The values are right. But all logits went to every device on the way forward. For each row a device need tell the
    others two numbers only: which?"""

    def body(x):
        return jax.nn.logsumexp(all_gather(x, "x", axis=1, tiled=True, to="invarying"), axis=1)

    return jax.grad(lambda x: device_map(body, mesh, COLUMNS, P())(x).sum())(x)


@logsumexp_gradient.mistake
def gradient_without_the_check(x, *, mesh):
    """Too large by the number of devices along x. Was jax.grad called *inside* shard_map with `check_vma=False`? JAX
    then does not know that all devices hold the same sum, and adds their gradients up once more. Leave the check on, or
    differentiate from outside."""

    def body(x):
        largest = lax.pmax(lax.stop_gradient(x.max(axis=1)), "x")
        return jax.grad(_total)(x, largest)

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@logsumexp_gradient.mistake
def gradient_of_an_unchecked_map(x, *, mesh):
    """The values are right, but on the way back more is added up than has to be: along x, and even along y. With
    `check_vma=False` JAX does not know which values are the same on several devices, and to be safe adds up over all of
    them again. Leave the check on."""
    total = device_map(lambda x: _total(x, lax.pmax(lax.stop_gradient(x.max(axis=1)), "x")), mesh, COLUMNS, P())
    return jax.grad(total)(x)


# Layer normalisation, the features cut: two means over all of them, and the second needs the first.

EPSILON = 1e-5


def _layernorm_reference(x):
    wide = x.astype(float)  # (in NumPy 64 bits)
    mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
    return ((wide - mean) / np.sqrt(variance + EPSILON)).astype(np.float32)


sharded_layernorm = ProgramExercise("sharded_layernorm", points=4, reference=_layernorm_reference)


@sharded_layernorm.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    rows, features = draw.lengths(2, divisible_by=8)
    x = draw.values(rows, features) + np.repeat(np.arange(8), features // 8)  # the devices' means differ
    x[1] *= 0.002  # so small that epsilon shows
    return Case(
        {"x": Array(x.astype(np.float32), COLUMNS)},
        mesh,
        COLUMNS,
        limits=[BytesSent(2 * bytes_sent("all_reduce", rows, mesh["x"]))],
    )


def _normalised(x, mean, variance):
    return (x - mean) / jnp.sqrt(variance + EPSILON)


def _average(x):
    return x.mean(axis=1, keepdims=True)


@sharded_layernorm.mistake
def own_statistics(x, *, mesh):
    """Each device normalised with the mean and variance of its own features. A mean of 0 looks right on every device,
    and the values are wrong: over which features do both statistics run?"""

    def body(x):
        return _normalised(x, _average(x), _average((x - _average(x)) ** 2))

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@sharded_layernorm.mistake
def averaged_the_variances(x, *, mesh):
    """The mean is that of all features, but the variance is the average of the devices' own variances, each around
    its *own* mean. How far apart the means of the devices are, is lost. Around which mean must every device measure?"""

    def body(x):
        mean = lax.pmean(_average(x), "x")
        return _normalised(x, mean, lax.pmean(_average((x - _average(x)) ** 2), "x"))

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@sharded_layernorm.mistake
def averaged_only_across(x, *, mesh):
    """pmean averages *across* devices, place by place; it does not average the features that one device holds. So each
    feature was compared with the same place on other devices: on two devices nearly all are ±1. Which mean is
    missing?"""

    def body(x):
        mean = lax.pmean(x, "x")
        return _normalised(x, mean, lax.pmean((x - mean) ** 2, "x"))

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@sharded_layernorm.mistake
def added_the_means(x, *, mesh):
    """The devices' means were added up, for both statistics. They are means of equally many features: which collective
    averages them?"""

    def body(x):
        mean = lax.psum(_average(x), "x")
        return _normalised(x, mean, lax.psum(_average((x - mean) ** 2), "x"))

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@sharded_layernorm.mistake
def own_variance(x, *, mesh):
    """The mean is that of all features. The squares were averaged over each device's own features only: which step
    did the mean get that the variance lacks?"""

    def body(x):
        mean = lax.pmean(_average(x), "x")
        return _normalised(x, mean, _average((x - mean) ** 2))

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


@sharded_layernorm.mistake
def gathered_the_features(x, *, mesh):
    """The values are right. But all features went to every device. For each row a device need tell the others two
    numbers only: which?"""

    def body(x):
        whole = lax.all_gather(x, "x", axis=1, tiled=True)
        return _normalised(x, _average(whole), whole.var(axis=1, keepdims=True))

    return device_map(body, mesh, COLUMNS, COLUMNS)(x)


# The mean of the entries that a mask keeps; a device may keep none.

MASKED = VECTOR, VECTOR

masked_mean = ProgramExercise(
    "masked_mean", points=4, reference=lambda x, mask: np.where(mask, x, 0).sum() / mask.sum(dtype=np.float32)
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
    x = Array(values, VECTOR)
    return Case(
        {"x": x, "mask": Array(mask, VECTOR)}, mesh, P(), limits=[BytesSent(2 * bytes_sent("all_reduce", 1, n))]
    )


def _kept(x, mask):
    return jnp.where(mask, x, 0).sum()


@masked_mean.mistake
def mean_of_means(x, mask, *, mesh):
    """No number comes out: somewhere 0 was divided by 0, as on a device that keeps no entry and divides by how many it
    keeps. Which two sums, over all devices, make the mean of all?"""

    def body(x, mask):
        return lax.pmean(_kept(x, mask) / mask.sum(), "x")

    return device_map(body, mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def mean_of_guarded_means(x, mask, *, mesh):
    """This is the average of the devices' own means, an empty one's taken for zero: a device that keeps one entry
    counts as much as one that keeps ten. Which two sums make the mean of all?"""

    def body(x, mask):
        return lax.pmean(_kept(x, mask) / jnp.maximum(mask.sum(), 1), "x")

    return device_map(body, mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def took_the_mean_of_everything(x, mask, *, mesh):
    """That is the mean of all of x: the mask does not come in. Which entries should count, above and below?"""
    return device_map(lambda x, mask: lax.pmean(x.mean(), "x"), mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def mean_of_the_means_there_are(x, mask, *, mesh):
    """The devices that keep nothing were left out, and the means of the others were averaged: one that keeps one entry
    still counts as much as one that keeps ten. Which two sums make the mean of all?"""

    def body(x, mask):
        kept = mask.sum()
        return lax.psum(_kept(x, mask) / jnp.maximum(kept, 1), "x") / lax.psum(jnp.minimum(kept, 1), "x")

    return device_map(body, mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def counted_what_is_not_zero(x, mask, *, mesh):
    """The entries that are not 0 were counted, and an entry may be kept and be 0. What says which are kept?"""

    def body(x, mask):
        kept = jnp.where(mask, x, 0)
        return lax.psum(kept.sum(), "x") / lax.psum((kept != 0).sum(), "x")

    return device_map(body, mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def weighted_a_mean_of_nothing(x, mask, *, mesh):
    """No number comes out. To weight each device's mean by how many entries it keeps would be right, until a device
    keeps none: its mean is 0/0, which is no number, and no number times 0 is still none. What could be added up before
    anything is divided?"""

    def body(x, mask):
        kept = mask.sum()
        return lax.psum(_kept(x, mask) / kept * kept, "x") / lax.psum(kept, "x")

    return device_map(body, mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def divided_by_its_own_count(x, mask, *, mesh, check_vma=False):
    """The sum is that of all devices, but each divides by how many entries it keeps *itself*. Results differ from
    device to device, and `P()` claims that they do not. What must happen to the count?"""

    def body(x, mask):
        return lax.psum(_kept(x, mask), "x") / mask.sum()

    return device_map(body, mesh, MASKED, P(), check_vma)(x, mask)


@masked_mean.mistake
def divided_by_all_entries(x, mask, *, mesh):
    """Masked entries add nothing to the sum, but they were counted: the divisor is the length of the whole vector.
    How many entries does the mask keep, over all devices?"""

    def body(x, mask):
        return lax.psum(_kept(x, mask), "x") / (len(x) * mesh.shape["x"])

    return device_map(body, mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def averaged_sum_over_total_count(x, mask, *, mesh):
    """The result is an n-th of what it should be, with n devices along x. Were the sums averaged, and the counts added
    up? Both belong to the same fraction: treat them alike."""

    def body(x, mask):
        return lax.pmean(_kept(x, mask), "x") / lax.psum(mask.sum(), "x")

    return device_map(body, mesh, MASKED, P())(x, mask)


@masked_mean.mistake
def ignored_the_mask(x, mask, *, mesh):
    """That is the sum of *all* entries over the number of those that are kept. What should a masked entry add to
    the sum?"""

    def body(x, mask):
        return lax.psum(x.sum(), "x") / lax.psum(mask.sum(), "x")

    return device_map(body, mesh, MASKED, P())(x, mask)
