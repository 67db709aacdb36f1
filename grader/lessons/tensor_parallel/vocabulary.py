"""§ 6: a vocabulary cut over `model`: looked up at the beginning, judged at the end."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, ProgramExercise
from grader.lessons.shared import bytes_sent


def _first(rows: int):
    """The number of the first row, or column, that this device owns."""
    return rows * lax.axis_index("model")


# Looking up: table[V_model, D] at ids[B_batch, T].

LOOKUP = P("model"), P("batch")
vocab_embedding = ProgramExercise("vocab_embedding", points=5, reference=lambda table, ids: table[ids])


@vocab_embedding.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    rows, words, d = draw.lengths(3, divisible_by=8)
    words, tokens = 16 * words, 3  # a table larger than all that is looked up in it
    ids = draw.rng.integers(words, size=(rows, tokens))
    # From every device's part its first word and its last, whatever the seed.
    ids[:, 0] = np.arange(rows) * words // rows
    ids[:, 1] = np.arange(1, rows + 1) * words // rows - 1
    arrays = {"table": draw.array(words, d, spec=LOOKUP[0]), "ids": Array(ids.astype(np.int32), LOOKUP[1])}
    return Case(
        arrays,
        mesh,
        P("batch"),
        limits=[BytesSent(bytes_sent("all_reduce", rows // mesh["batch"] * tokens * d, mesh["model"]))],
    )


def _looked_up(table, ids, mesh, body, check_vma=False):
    return jax.shard_map(body, mesh=mesh, in_specs=LOOKUP, out_specs=P("batch"), check_vma=check_vma)(table, ids)


def _own(table, local):
    """Rows for the ids that this device owns, zeros for the others."""
    mine = (local >= 0) & (local < len(table))
    return jnp.where(mine[..., None], table[jnp.where(mine, local, 0)], 0)


@vocab_embedding.mistake
def nothing_masked(table, ids, *, mesh, check_vma=False):
    """Every device answered for every word: where it does not own one, the index was pushed to the edge of its table,
    and that row went into the sum too. What should a device contribute for a word that is not its own?"""

    def body(table, ids):
        return lax.psum(table[jnp.clip(ids - _first(len(table)), 0, len(table) - 1)], "model")

    return _looked_up(table, ids, mesh, body, check_vma)


@vocab_embedding.mistake
def first_row_not_zeroed(table, ids, *, mesh, check_vma=False):
    """For a word that is not its own a device looked up the first row of its part, and that row went into the sum.
    To look up somewhere harmless is one half of it. What has to become of what is found there?"""

    def body(table, ids):
        local = ids - _first(len(table))
        return lax.psum(table[jnp.where((local >= 0) & (local < len(table)), local, 0)], "model")

    return _looked_up(table, ids, mesh, body, check_vma)


@vocab_embedding.mistake
def remainders_looked_up_by_all(table, ids, *, mesh, check_vma=False):
    """The remainder of an id is its place in the part of the device that owns the word. But every device looked that
    place up in its own part, and all these rows were added up. What should a device contribute for a word that is not
    its own?"""
    return _looked_up(table, ids, mesh, lambda table, ids: lax.psum(table[ids % len(table)], "model"), check_vma)


@vocab_embedding.mistake
def nothing_shifted(table, ids, *, mesh, check_vma=False):
    """The ids are numbers of the whole vocabulary, a device's rows begin at 0. Device 1's first row is another word
    than device 0's: by how much do the numbers differ?"""
    return _looked_up(table, ids, mesh, lambda table, ids: lax.psum(_own(table, ids), "model"), check_vma)


@vocab_embedding.mistake
def shifted_by_the_index(table, ids, *, mesh, check_vma=False):
    """The ids were shifted by the device's number. Device 1 owns the *block* number 1: at which word does that block
    begin?"""
    return _looked_up(
        table, ids, mesh, lambda table, ids: lax.psum(_own(table, ids - lax.axis_index("model")), "model"), check_vma
    )


@vocab_embedding.mistake
def taken_out_of_bounds(table, ids, *, mesh, check_vma=False):
    """There is NaN: `jnp.take` fills what is outside the table with it, and NaN plus anything is NaN. An id that is not
    the device's own must be looked up somewhere harmless, and its row put to zero."""

    def body(table, ids):
        return lax.psum(jnp.take(table, ids - _first(len(table)), axis=0), "model")

    return _looked_up(table, ids, mesh, body, check_vma)


@vocab_embedding.mistake
def filled_with_zeros(table, ids, *, mesh, check_vma=False):
    """To some words of other devices a device added a row of its own. Ids *behind* its part are outside (`mode="fill"`
    covers them), but those *before* it became negative, and −1 is the last row, as in Python. How many sides must the
    condition for "not mine" have?"""

    def body(table, ids):
        local = ids - _first(len(table))
        return lax.psum(jnp.take(table, local, axis=0, mode="fill", fill_value=0), "model")

    return _looked_up(table, ids, mesh, body, check_vma)


@vocab_embedding.mistake
def masked_on_one_side(table, ids, *, mesh, check_vma=False):
    """A device answered for all words from its first one on, those behind its last one among them: their index was
    pushed to its last row. Which words come before a device's own, and which come behind?"""

    def body(table, ids):
        local = ids - _first(len(table))
        mine = local >= 0
        return lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, local, 0)], 0), "model")

    return _looked_up(table, ids, mesh, body, check_vma)


@vocab_embedding.mistake
def mean_of_one_row(table, ids, *, mesh, check_vma=False):
    """One device has the row and the others have zeros. The mean divides that row by the number of devices. Which
    collective only adds?"""
    return _looked_up(
        table, ids, mesh, lambda table, ids: lax.pmean(_own(table, ids - _first(len(table))), "model"), check_vma
    )


@vocab_embedding.mistake
def rows_never_added(table, ids, *, mesh):
    """Each device has the rows of its own words and zeros for the rest, though out_specs promise copies. Somebody has
    every row: how does it get to all?"""
    return _looked_up(table, ids, mesh, lambda table, ids: _own(table, ids - _first(len(table))))


@vocab_embedding.mistake
def table_gathered(table, ids, *, mesh):
    """The values are right, but the whole table was brought to every device: the reason to cut it was that it is too
    large. Rows for a few words are less than the table."""
    return _looked_up(table, ids, mesh, lambda table, ids: lax.all_gather(table, "model", tiled=True)[ids])


# The loss: logits[B_batch, V_model], and for each row the number of the right word.

LOGITS = P("batch", "model"), P("batch")


def _cross_entropy(logits, targets):
    picked = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(logits, axis=1) - picked


vocab_cross_entropy = ProgramExercise("vocab_cross_entropy", points=7, reference=_cross_entropy)


@vocab_cross_entropy.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    rows, words = draw.lengths(2, divisible_by=8)
    words *= 2
    # Near ±1000 on most meshes; where a device has a quarter of the words, numbers that float32 can hold exactly.
    logits = draw.values(rows, words) / 4 if mesh["model"] == 4 else _large(draw, rows, words)
    # From every device's part its first word (in rows of even numbers) and its last.
    row = np.arange(rows)
    targets = np.where(row % 2, (row + 1) * words // rows - 1, row * words // rows)
    arrays = {
        "logits": Array(logits.astype(np.float32), LOGITS[0]),
        "targets": Array(targets.astype(np.int32), LOGITS[1]),
    }
    # Forward a maximum (or all of them gathered), a sum and the picked logit for each row; where the check is off JAX
    # adds up two of the cotangents as well. Or the devices' own logarithms gathered, and on the way back scattered.
    share, n = rows // mesh["batch"], mesh["model"]
    sent = 4 * bytes_sent("all_reduce", share, n) + 2 * bytes_sent("all_gather", share, n)
    # The sum over V, its exp and log; in the gradient the quotient and the product with a cotangent. A device's own
    # logarithm is as large as its logits: exp of its difference from another's has that many roundings more.
    roundings = words + 16 + 2 * int(np.abs(logits).max())
    return Case(
        arrays,
        mesh,
        P("batch"),
        limits=[BytesSent(sent)],
        cotangents=Array(draw.values(rows), P("batch")),
        roundings=roundings,
    )


def _large(draw, rows, words):
    """Logits near ±1000, where exp gives infinity or 0; every second row spread, the others close together."""
    spread, close = 111 * draw.values(rows, words), draw.values(rows, words) / 4
    around = 1000 * np.where(np.arange(rows) // 2 % 2, 1, -1)[:, None]
    return np.where(np.arange(rows)[:, None] % 2, spread, around + close)


def _judged(logits, targets, mesh, body, check_vma=False):
    return jax.shard_map(body, mesh=mesh, in_specs=LOGITS, out_specs=P("batch"), check_vma=check_vma)(logits, targets)


def _top(logits):
    return lax.pmax(lax.stop_gradient(jnp.max(logits, axis=1)), "model")


def _log_total(logits, top):
    return top + jnp.log(lax.psum(jnp.sum(jnp.exp(logits - top[:, None]), axis=1), "model"))


def _picked(logits, local):
    """The logit of the target where this device has it, else 0."""
    words = logits.shape[1]
    mine = (local >= 0) & (local < words)
    found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
    return jnp.where(mine, found, 0)


def _target(logits, targets):
    return lax.psum(_picked(logits, targets - _first(logits.shape[1])), "model")


@vocab_cross_entropy.mistake
def softmax_of_its_own(logits, targets, *, mesh):
    """Every device normalised over its own words only. Probabilities over a part of the vocabulary add up to 1 on every
    device, so to the number of devices together. Over what must the sum under the logarithm go?"""

    def body(logits, targets):
        return jax.nn.logsumexp(logits, axis=1) - _target(logits, targets)

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def logarithms_added(logits, targets, *, mesh):
    """The devices' logsumexps were added up. log a + log b is log(a·b), not log(a + b). Which quantity of each device
    may be added, before the logarithm is taken?"""

    def body(logits, targets):
        return lax.psum(jax.nn.logsumexp(logits, axis=1), "model") - _target(logits, targets)

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def maximum_of_its_own(logits, targets, *, mesh):
    """Every device subtracted its *own* largest logit before it took exp, and then sums with different scales were
    added. All devices must subtract the same number from a row. Which collective finds it?"""

    def body(logits, targets):
        return _log_total(logits, lax.stop_gradient(jnp.max(logits, axis=1))) - _target(logits, targets)

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def maximum_of_its_own_inside(logits, targets, *, mesh):
    """What was added outside of the logarithm is the largest logit of the row, but what was subtracted inside is each
    device's *own* largest: sums with different scales were added. Do the two cancel?"""

    def body(logits, targets):
        top = lax.stop_gradient(jnp.max(logits, axis=1))
        return _log_total(logits, top) - top + lax.pmax(top, "model") - _target(logits, targets)

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def maximum_not_added_again(logits, targets, *, mesh):
    """The largest logit was subtracted from the row, so that exp does not overflow, and never came back. What does
    log(sum(exp(v - m))) become when m is taken out of it?"""

    def body(logits, targets):
        top = _top(logits)
        return _log_total(logits, top) - top - _target(logits, targets)

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def target_not_differentiated(logits, targets, *, mesh):
    """The loss is right, and its gradient is that of the logarithm alone: through the target's logit none comes. Which
    of the terms depend on the logits, and which of them may be held still?"""

    def body(logits, targets):
        return _log_total(logits, _top(logits)) - lax.stop_gradient(_target(logits, targets))

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def no_maximum(logits, targets, *, mesh):
    """exp of a logit near 1000 is infinite in float32, and all exps of logits near −1000 are 0, whose logarithm is
    minus infinity. Formulas on paper have no range; numbers do. What may be subtracted from a whole row without
    changing the loss?"""

    def body(logits, targets):
        return jnp.log(lax.psum(jnp.sum(jnp.exp(logits), axis=1), "model")) - _target(logits, targets)

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def target_not_masked(logits, targets, *, mesh):
    """The shift of the targets is right, but every device picked a logit, at the edge of its part where the target is
    not its own. Only one device has the target's logit. What should the others add?"""

    def body(logits, targets):
        words = logits.shape[1]
        local = jnp.clip(targets - _first(words), 0, words - 1)
        picked = jnp.take_along_axis(logits, local[:, None], axis=1)[:, 0]
        return _log_total(logits, _top(logits)) - lax.psum(picked, "model")

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def target_counted_from_the_end(logits, targets, *, mesh):
    """The shift of the targets is right. But a word that comes before a device's own then has a negative number, which
    counts from the end, as in Python: every device picked some logit, and all of them were added. Only one has the
    target's. What should the others add?"""

    def body(logits, targets):
        local = (targets - _first(logits.shape[1]))[:, None]
        picked = jnp.take_along_axis(logits, local, axis=1, mode="clip")[:, 0]
        return _log_total(logits, _top(logits)) - lax.psum(picked, "model")

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def target_not_shifted(logits, targets, *, mesh):
    """Targets are numbers of the whole vocabulary; a device's columns begin at 0. Without the shift, every device finds
    the words of device 0 in its own part, and nobody finds the others."""

    def body(logits, targets):
        return _log_total(logits, _top(logits)) - lax.psum(_picked(logits, targets), "model")

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def maximum_differentiated(logits, targets, *, mesh):
    """JAX has no derivative of pmax. None is needed: the number that is subtracted comes back outside the logarithm, so
    the loss does not depend on it. Which function tells JAX not to differentiate, and must it stand inside or outside
    of the pmax?"""

    def body(logits, targets):
        top = lax.pmax(jnp.max(logits, axis=1), "model")
        return _log_total(logits, top) - _target(logits, targets)

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def loss_of_a_part(logits, targets, *, mesh):
    """The sum under the logarithm is whole, but the target's logit was never added over the devices: those that do not
    have it subtract 0, though out_specs promise copies."""

    def body(logits, targets):
        return _log_total(logits, _top(logits)) - _picked(logits, targets - _first(logits.shape[1]))

    return _judged(logits, targets, mesh, body)


@vocab_cross_entropy.mistake
def logits_gathered(logits, targets, *, mesh):
    """The values are right, but all logits went to every device: with 100,000 words that is the largest array of the
    whole network. Three numbers for each row are enough. Which three?"""

    def body(logits, targets):
        return _cross_entropy(lax.all_gather(logits, "model", axis=1, tiled=True), targets)

    return _judged(logits, targets, mesh, body)
