"""§ 2–3: which experts a token chooses, and which place it gets in their buffers. Functions of one device's tokens."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from grader.exercises import Case, Draw, FunctionExercise
from grader.lessons.experts.tokens import drawn_choices

# The k experts that a token likes best, and with which weights.


def _scores(x, router):
    return jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)


def _route(x, router, k):
    top, experts = jax.lax.top_k(_scores(x, router), k)
    return jax.nn.softmax(top), experts


route = FunctionExercise("route", points=3, reference=_route)


def _fine(draw: Draw, *shape: int, bits: int):
    """Values of about one with so many bits more than a whole number has: float32 adds up their products without any
    rounding, so ties stay ties, and bfloat16 cannot hold them."""
    return (draw.values(*shape) + draw.values(*shape) / 2**bits) / 8


@route.cases
def _(draw):
    for tokens, width, experts, k in ((7, 12, 6, 2), (6, 6, 6, 2), (9, 20, 8, 3)):
        router = _fine(draw, width, experts, bits=6)
        router[:, experts - 2] = router[:, 1]  # two experts that always tie
        yield Case({"x": _fine(draw, tokens, width, bits=5), "router": router, "k": k})
    x, router = ((draw.values(*shape) / 11).astype(jnp.bfloat16) for shape in ((8, 12), (12, 7)))
    yield Case({"x": x, "router": router, "k": 3})


def _weighed(x, router, k, scores=None, choose=jax.lax.top_k, weigh=jax.nn.softmax):
    scores = _scores(x, router) if scores is None else scores
    top, experts = choose(scores, k)
    return weigh(top), experts


@route.mistake
def shares_of_all_experts(x, router, k):
    """The weights of a token do not add up to 1: they are its shares among *all* experts, of which only k are asked.
    Over which logits should the softmax go?"""
    top, experts = jax.lax.top_k(jax.nn.softmax(_scores(x, router)), k)
    return top, experts


@route.mistake
def all_weigh_the_same(x, router, k):
    """The experts are the right ones, and each has the weight 1/k. But the router said more than who is among the
    first k: how much more does it like the first than the second?"""
    return _weighed(x, router, k, weigh=lambda top: jnp.full(top.shape, 1 / k))


@route.mistake
def logits_for_weights(x, router, k):
    """The logits themselves were divided by their sum. They may be negative, and so may these weights be. What turns
    logits into positive shares?"""
    return _weighed(x, router, k, weigh=lambda top: top / top.sum(axis=1, keepdims=True))


@route.mistake
def router_in_bfloat16(x, router, k):
    """The product with the router was rounded to bfloat16, which keeps eight significant bits: logits of 20.08 and 20.1
    become equal, and a token goes to another expert. A router is small, and everything after it depends on it. In which
    type should it compute?"""
    scores = jnp.asarray(x, jnp.bfloat16) @ jnp.asarray(router, jnp.bfloat16)
    return _weighed(x, router, k, scores.astype(jnp.float32))


@route.mistake
def factors_in_bfloat16(x, router, k):
    """x and the router were rounded to bfloat16 before they were multiplied, which keeps eight significant bits of each
    number. That the sums were made in float32 does not bring the others back. In which type should both *enter* the
    product?"""
    rounded = (np.asarray(jnp.asarray(one, jnp.bfloat16), np.float32) for one in (x, router))
    return _weighed(x, router, k, _scores(*rounded))


@route.mistake
def logits_rounded(x, router, k):
    """The product was made in float32, and its result rounded to bfloat16, which keeps eight significant bits: logits
    of 20.08 and 20.1 become equal. Which type should the logits keep?"""
    return _weighed(x, router, k, _scores(x, router).astype(jnp.bfloat16).astype(jnp.float32))


@route.mistake
def product_in_the_type_of_x(x, router, k):
    """In float32 this is right; of x and a router in bfloat16 the product is rounded to it, and made float32 too late:
    logits of 20.08 and 20.1 are equal by then. In which type should both *enter* the product?"""
    return _weighed(x, router, k, (jnp.asarray(x) @ jnp.asarray(router)).astype(jnp.float32))


def _last_first(scores, k):
    experts = jnp.argsort(scores, axis=1)[:, ::-1][:, :k]
    return jnp.take_along_axis(scores, experts, axis=1), experts


@route.mistake
def the_later_of_two(x, router, k):
    """Where two experts tie, the one with the larger number came first, as in an ascending order that is turned round,
    ties and all. Which function gives the k largest, and of equal ones the first?"""
    return _weighed(x, router, k, choose=_last_first)


@route.mistake
def the_best_stands_last(x, router, k):
    """These are the k largest in ascending order: the best of each token stands last. Which function gives the largest
    first, and of equal ones the lower number?"""
    scores = _scores(x, router)
    experts = jnp.argsort(scores, axis=1)[:, -k:]
    return jax.nn.softmax(jnp.take_along_axis(scores, experts, axis=1)), experts


@route.mistake
def those_liked_least(x, router, k):
    """Those are the experts with the *smallest* logits. In which direction does `argsort` sort?"""
    top, experts = jax.lax.top_k(-_scores(x, router), k)
    return jax.nn.softmax(-top), experts


@route.mistake
def tokens_compared(x, router, k):
    """The softmax went over the tokens: each expert shared itself out among them. A token asks which *expert* it likes
    best. Along which axis do the experts stand?"""
    top, experts = jax.lax.top_k(jax.nn.softmax(_scores(x, router), axis=0), k)
    return top / top.sum(axis=1, keepdims=True), experts


# Places in the experts' buffers.


def _counted(experts, num_experts):
    """How many choices before this one want the same expert."""
    wants = np.asarray(experts)[:, None] == np.arange(num_experts)
    return (np.cumsum(wants, axis=0) - 1)[np.arange(len(wants)), np.asarray(experts)]


def _told(slot, kept):
    """Lists: an array with the same numbers is the same answer then, and so is a tuple."""
    return slot.tolist(), kept.tolist()


def _slots(experts, num_experts, capacity):
    slot = _counted(experts, num_experts)
    return _told(slot, slot < capacity)


slots = FunctionExercise("slots", points=4, reference=_slots)


@slots.cases
def _(draw):
    for tokens, experts, capacity in ((6, 4, 3), (8, 5, 2), (4, 4, 4), (10, 3, 5)):
        _, chosen = drawn_choices(draw, tokens, experts)
        yield Case({"experts": chosen.reshape(-1), "num_experts": experts, "capacity": capacity})


@slots.mistake
def number_for_slot(experts, num_experts, capacity):
    """The slot of a choice is its own number. Nobody is in anybody's way then, but the buffers are full of holes, and
    whoever stands at number `capacity` or later is dropped, though there is room. How many *before it* want the same
    expert?"""
    slot = np.arange(len(experts))
    return _told(slot, slot < capacity)


@slots.mistake
def counted_itself(experts, num_experts, capacity):
    """The first choice of every expert got slot 1. Slots begin at 0, and the last slot of a buffer is capacity − 1.
    Does a choice count itself? What must be taken off the running count?"""
    slot = _counted(experts, num_experts) + 1
    return _told(slot, slot < capacity)


@slots.mistake
def one_over_the_brim(experts, num_experts, capacity):
    """The slots are right, but one choice too many is kept for an expert that is full. The slots of a buffer are 0 to
    capacity − 1: is the slot number `capacity` among them?"""
    slot = _counted(experts, num_experts)
    return _told(slot, slot <= capacity)


@slots.mistake
def counted_across_the_experts(experts, num_experts, capacity):
    """Everybody got slot 0. A row of the one-hot array has only one 1: along which axis does the running count go, and
    along which do the choices stand?"""
    slot = np.zeros(len(experts), int)
    return _told(slot, slot < capacity)


@slots.mistake
def last_come_first_served(experts, num_experts, capacity):
    """The count begins at the end, so that the last choices get the first slots. Any order would do on one device; here
    it was to be the order in which they stand."""
    slot = _counted(np.asarray(experts)[::-1], num_experts)[::-1]
    return _told(slot, slot < capacity)


@slots.mistake
def nobody_dropped(experts, num_experts, capacity):
    """The slots are right, and every choice is said to be kept. An expert has `capacity` slots: what of the choices
    behind them?"""
    slot = _counted(experts, num_experts)
    return _told(slot, np.ones(len(slot), bool))


@slots.mistake
def squeezed_into_the_last_slot(experts, num_experts, capacity):
    """Those who are dropped were given the last slot, where somebody is already: written there, they overwrite a token
    that was in time. Let their slot be outside the buffer, where JAX's `.at[…].set` writes nothing."""
    slot = _counted(experts, num_experts)
    return _told(np.minimum(slot, capacity - 1), slot < capacity)


@slots.mistake
def who_is_dropped(experts, num_experts, capacity):
    """The slots are right, and the second result says who is *dropped*. It was to say who is kept."""
    slot = _counted(experts, num_experts)
    return _told(slot, slot >= capacity)
