"""§ 6–7: nobody is dropped: choices sorted by expert on one device, and experts that look at all tokens on many."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, FunctionExercise, ProgramExercise, Turns
from grader.lessons.experts.tokens import LAYER, added_up, drawn_choices, drawn_layer, expert
from grader.lessons.shared import bytes_sent, device_map


def _all(x, weights, experts, w_in, w_out):
    return added_up(x, weights, experts, w_in, w_out, np.ones(np.shape(experts), bool))


# Sorted: one device, products of ragged groups.

dropless = FunctionExercise("dropless", points=5, reference=_all)


@dropless.cases
def _(draw):
    for tokens, d, f, count, k in ((9, 12, 8, 6, 2), (6, 6, 6, 6, 3)):
        weights, experts = drawn_choices(draw, tokens, count - 2, k)
        experts = experts + (experts > 1)  # nobody wants number 2, nor the last
        yield Case(
            {
                "x": draw.values(tokens, d) + np.float32(1 / 64),  # more digits than bfloat16 has
                "weights": 3 / 4 * weights,  # they need not add up to 1
                "experts": experts,
                "w_in": draw.values(count, d, f),
                "w_out": draw.values(count, f, d),
            }
        )


def _by_order(choice):
    return jnp.argsort(choice)


def _sizes(choice, count):
    return jnp.bincount(choice, length=count)


def _home(sorted_results, order):
    return jnp.zeros_like(sorted_results).at[order].set(sorted_results)


def _rows(x, order):
    """The token of each choice, in this order."""
    return jnp.repeat(x, len(order) // len(x), axis=0)[order]


def _ragged(
    x,
    weights,
    experts,
    w_in,
    w_out,
    *,
    order=_by_order,
    rows=_rows,
    sizes=_sizes,
    home=_home,
    activation=jax.nn.relu,
    weigh_sorted=False,
    added=True,
):
    """Sort the choices, multiply by groups, and bring them home."""
    choice, weight = jnp.asarray(experts).reshape(-1), jnp.asarray(weights).reshape(-1, 1)
    by = order(choice)
    groups = sizes(choice, len(w_in))
    taken = rows(jnp.asarray(x), by)
    results = lax.ragged_dot(activation(lax.ragged_dot(taken, jnp.asarray(w_in), groups)), jnp.asarray(w_out), groups)
    results = home(weight * results, by) if weigh_sorted else weight * home(results, by)
    y = results.reshape(*jnp.shape(experts), -1).sum(axis=1)
    return x + y if added else y


@dropless.mistake
def not_sorted(x, weights, experts, w_in, w_out):
    """`ragged_dot` takes the first rows for expert 0, the next for expert 1, and so on, whoever stands there. In which
    order do the rows come, and in which must they stand?"""
    return _ragged(x, weights, experts, w_in, w_out, order=lambda choice: jnp.arange(len(choice)))


@dropless.mistake
def stayed_sorted(x, weights, experts, w_in, w_out):
    """The results stand in the order of the experts, and were taken for those of the tokens in theirs. Every row has to
    go back to where it came from."""
    return _ragged(x, weights, experts, w_in, w_out, home=lambda results, order: results)


@dropless.mistake
def sorted_a_second_time(x, weights, experts, w_in, w_out):
    """`results[order]` puts the rows in order once more; it does not undo the first time. Row i of the results belongs
    to place `order[i]`. How do you *write* it there?"""
    return _ragged(x, weights, experts, w_in, w_out, home=lambda results, order: results[order])


@dropless.mistake
def unwanted_experts_left_out(x, weights, experts, w_in, w_out):
    """The sizes are those of the experts that somebody chose, one after the other; an expert whom nobody wants has no
    size among them, and all behind it got its neighbour's rows. What is the size of such a group?"""

    def sizes(choice, count):
        return jnp.unique(choice, return_counts=True, size=count, fill_value=count)[1]

    return _ragged(x, weights, experts, w_in, w_out, sizes=sizes)


@dropless.mistake
def groups_of_equal_size(x, weights, experts, w_in, w_out):
    """Every expert works on equally many rows, as if as many choices were made of each. Choices are not shared out
    evenly: how many rows of the sorted ones are expert e's?"""
    sizes = lambda choice, count: jnp.full(count, len(choice) // count)  # noqa: E731
    return _ragged(x, weights, experts, w_in, w_out, sizes=sizes)


@dropless.mistake
def last_experts_left_out(x, weights, experts, w_in, w_out):
    """There are fewer sizes than experts: a count without a length ends at the largest number that it finds, and nobody
    has chosen the last expert. `ragged_dot` wants one size for each expert, 0 among them. How do you tell
    `jnp.bincount` how many there are?"""
    return _ragged(x, weights, experts, w_in, w_out, sizes=lambda choice, count: jnp.bincount(choice))


@dropless.mistake
def choice_taken_for_a_token(x, weights, experts, w_in, w_out):
    """`order` counts choices, and x has a row for each *token*: an index beyond the last row is pushed back to it when
    JAX reads. Which token has made choice number i, where each makes k?"""
    return _ragged(x, weights, experts, w_in, w_out, rows=lambda x, order: x[order])


def _tiled(x, order):
    return jnp.tile(x, (len(order) // len(x), 1))[order]


@dropless.mistake
def tokens_in_turns(x, weights, experts, w_in, w_out):
    """x was put k times one behind the other, so that token 0 comes again after the last. The choices come in another
    order: all k of token 0, then all k of token 1. Which token has made choice number i?"""
    return _ragged(
        x, weights, experts, w_in, w_out, rows=lambda x, order: jnp.tile(x, (len(order) // len(x), 1))[order]
    )


@dropless.mistake
def no_relu(x, weights, experts, w_in, w_out):
    """There is no relu between the two products. What does an expert do between w_in and w_out?"""
    return _ragged(x, weights, experts, w_in, w_out, activation=lambda hidden: hidden)


@dropless.mistake
def last_choice_stays(x, weights, experts, w_in, w_out):
    """Each token has the result of one of its choices, and not their sum: `.at[token].set` writes k results to one and
    the same row, and the last one stays. What adds them up there?"""
    order = jnp.argsort(jnp.asarray(experts).reshape(-1))
    last = np.zeros(np.shape(weights), np.float32)
    for place in np.asarray(order):
        last[place // last.shape[1]] = 0
        last.reshape(-1)[place] = np.asarray(weights).reshape(-1)[place]
    return _ragged(x, last, experts, w_in, w_out)


@dropless.mistake
def weights_of_others(x, weights, experts, w_in, w_out):
    """The results were weighed while they stood in the order of the experts; the weights stand in the order of the
    tokens. Bring both into the same order first."""
    return _ragged(x, weights, experts, w_in, w_out, weigh_sorted=True)


@dropless.mistake
def first_choices_only(x, weights, experts, w_in, w_out):
    """Only the first choice of each token was followed. A token has k of them: as many rows are to be sorted as there
    are *choices*."""
    first = np.zeros(np.shape(weights), np.float32)
    first[:, 0] = np.asarray(weights)[:, 0]
    return _ragged(x, first, experts, w_in, w_out)


@dropless.mistake
def tokens_left_out(x, weights, experts, w_in, w_out):
    """The experts' results are right, and the token itself is missing: the layer returns x *plus* what they make of
    it."""
    return _ragged(x, weights, experts, w_in, w_out, added=False)


@dropless.mistake
def each_weighs_one(x, weights, experts, w_in, w_out):
    """The results of a token's experts were added up as they are. The router gave each a weight."""
    return _ragged(x, np.ones(np.shape(weights), np.float32), experts, w_in, w_out)


# On many devices: all tokens come to every expert, and each takes its own.

ring_of_experts = ProgramExercise("ring_of_experts", points=5, reference=_all, mesh_shapes=((4,), (2,), (8,), (6,)))


@ring_of_experts.cases
def _(draw):
    mesh = draw.mesh("expert")
    n = mesh["expert"]
    arrays = drawn_layer(draw, n)
    tokens, d = arrays["x"].value.shape
    k = arrays["experts"].value.shape[1]
    sent = bytes_sent("all_gather", tokens // n * (d + 2 * k), n) + bytes_sent("reduce_scatter", tokens * d, n)
    return Case(
        arrays,
        mesh,
        P("expert"),
        limits=[Turns({"all_gather": 3, "all_to_all": 1, "reduce_scatter": 1}), BytesSent(sent)],
    )


def _gathered(value):
    return lax.all_gather(value, "expert", tiled=True)


def _scattered(part):
    return lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)


def _weight_here(weights, experts):
    """The weight with which each of all tokens has chosen this device's expert; 0 where it has not."""
    return jnp.where(_gathered(experts) == lax.axis_index("expert"), _gathered(weights), 0).sum(axis=1, keepdims=True)


def _own_only(
    x, weights, experts, w_in, w_out, mesh, *, weight=_weight_here, total=lambda x, part: x + _scattered(part)
):
    def body(x, weights, experts, w_in, w_out):
        part = weight(weights, experts) * expert(_gathered(x), w_in[0], w_out[0])
        return total(x, part)

    return device_map(body, mesh, LAYER, P("expert"))(x, weights, experts, w_in, w_out)


@ring_of_experts.mistake
def experts_worked_on_all(x, weights, experts, w_in, w_out, *, mesh):
    """Every expert's work on every token went into the sum. A token has chosen k of them: with which weight do the
    others enter?"""
    weight = lambda weights, experts: _gathered(weights).sum(axis=1, keepdims=True)  # noqa: E731
    return _own_only(x, weights, experts, w_in, w_out, mesh, weight=weight)


@ring_of_experts.mistake
def weights_stayed_home(x, weights, experts, w_in, w_out, *, mesh):
    """The tokens were gathered, their choices were not: the device's own choices were repeated for all. What else has
    an expert to know of a token that comes from elsewhere?"""

    def weight(weights, experts):
        own = jnp.where(experts == lax.axis_index("expert"), weights, 0).sum(axis=1, keepdims=True)
        return jnp.tile(own, (lax.axis_size("expert"), 1))

    return _own_only(x, weights, experts, w_in, w_out, mesh, weight=weight)


@ring_of_experts.mistake
def first_choice_of_each(x, weights, experts, w_in, w_out, *, mesh):
    """Only the first choice of each token counts. A token has made k choices, and any of them may be this device's
    expert: over which dimension are they to be added up?"""

    def weight(weights, experts):
        first = _gathered(experts)[:, :1] == lax.axis_index("expert")
        return jnp.where(first, _gathered(weights)[:, :1], 0)

    return _own_only(x, weights, experts, w_in, w_out, mesh, weight=weight)


@ring_of_experts.mistake
def chosen_or_not(x, weights, experts, w_in, w_out, *, mesh):
    """An expert's result counts once for every token that chose it, whatever the weight. The mask says *who* chose it;
    with which weight?"""

    def weight(weights, experts):
        return (_gathered(experts) == lax.axis_index("expert")).any(axis=1, keepdims=True)

    return _own_only(x, weights, experts, w_in, w_out, mesh, weight=weight)


@ring_of_experts.mistake
def token_added_by_everyone(x, weights, experts, w_in, w_out, *, mesh):
    """A token is in the sum once for every device: is x added to each part, and then the parts to one another? When
    should x be added?"""
    return _own_only(x, weights, experts, w_in, w_out, mesh, total=lambda x, part: _scattered(_gathered(x) + part))


@ring_of_experts.mistake
def mean_of_the_experts(x, weights, experts, w_in, w_out, *, mesh):
    """The experts' parts were averaged over the devices. Each part has its weight in it already: they are to be
    added."""
    return _own_only(
        x, weights, experts, w_in, w_out, mesh, total=lambda x, part: x + _scattered(part) / lax.axis_size("expert")
    )


@ring_of_experts.mistake
def whole_sum_everywhere(x, weights, experts, w_in, w_out, *, mesh):
    """The values are right, but every device got the sums for *all* tokens and kept its own. Which collective adds up
    and hands each device only its share, for half of the bytes?"""

    def total(x, part):
        start = lax.axis_index("expert") * len(x)
        return x + lax.dynamic_slice_in_dim(lax.psum(part, "expert"), start, len(x))

    return _own_only(x, weights, experts, w_in, w_out, mesh, total=total)


@ring_of_experts.mistake
def experts_gathered(x, weights, experts, w_in, w_out, *, mesh):
    """The values are right, but the experts came to the tokens: every device gathered the weights of all. Gather the
    tokens, and let each expert stay where it is."""

    def body(x, weights, experts, w_in, w_out):
        n = lax.axis_size("expert")
        results = expert(x, _gathered(w_in), _gathered(w_out))  # [n, T, D]
        share = (jax.nn.one_hot(experts, n) * weights[:, :, None]).sum(axis=1)
        return x + jnp.einsum("tn,ntd->td", share, results)

    return device_map(body, mesh, LAYER, P("expert"))(x, weights, experts, w_in, w_out)
