"""§ 6: who has how much of a causal attention to do, and the order of tokens that makes it even."""

from __future__ import annotations

import numpy as np

from grader.exercises import Case, FunctionExercise

LAYOUTS = ("contiguous", "striped", "zig-zag")


def positions_of(tokens: int, n: int, layout: str) -> np.ndarray:
    """[n, tokens // n]: the positions of each device's tokens."""
    if layout == "striped":
        return np.arange(tokens).reshape(-1, n).T
    if layout == "contiguous":
        return np.arange(tokens).reshape(n, -1)
    chunks = np.arange(tokens).reshape(2 * n, -1)
    return np.stack([np.concatenate([chunks[d], chunks[-1 - d]]) for d in range(n)])


def _pairs(tokens, n, layout):
    """A query at position p looks at p + 1 keys."""
    return (positions_of(tokens, n, layout) + 1).sum(axis=1).tolist()


work = FunctionExercise("work", points=3, reference=_pairs)


@work.cases
def _(draw):
    for n, chunk in ((4, 2), (8, 3), (3, 5), (6, 1)):
        for layout in LAYOUTS:
            yield Case({"tokens": 2 * n * chunk, "n": n, "layout": layout})


@work.mistake
def counted_the_hidden_pairs(tokens, n, layout):
    """That is every query with every key, and it is the same on all devices. What the mask hides need not be computed:
    how many keys does the query at position 0 look at, and how many the last one?"""
    return [tokens // n * tokens] * n


@work.mistake
def left_out_itself(tokens, n, layout):
    """Each query looks at itself as well: the one at position p at p + 1 keys."""
    return positions_of(tokens, n, layout).sum(axis=1).tolist()


@work.mistake
def only_keys_at_home(tokens, n, layout):
    """These are the pairs of which both tokens are on the same device. A query looks at all keys before it, whichever
    device they came from."""
    return [int((p[:, None] >= p).sum()) for p in positions_of(tokens, n, layout)]


@work.mistake
def contiguous_always(tokens, n, layout):
    """That is right for blocks that follow one another. Where do the tokens of device 0 stand when they are dealt out
    in another way?"""
    return _pairs(tokens, n, "contiguous")


@work.mistake
def second_chunk_in_order(tokens, n, layout):
    """That is right if the second n chunks are dealt out in the same order as the first: device 0 gets chunks 0 and n,
    and has the least to do twice. Which chunk makes up for the shortest one?"""
    if layout != "zig-zag":
        return _pairs(tokens, n, layout)
    chunks = np.arange(tokens).reshape(2, n, -1)
    return [int((chunks[:, d] + 1).sum()) for d in range(n)]


@work.mistake
def shared_evenly(tokens, n, layout):
    """That is the mean of all devices. Only one of the three layouts gives each of them exactly that."""
    return [tokens * (tokens + 1) // 2 // n] * n


@work.mistake
def counted_keys_of_a_device(tokens, n, layout):
    """By so many queries are a device's *keys* looked at. The work is where the queries are: they stay, and the keys
    come by."""
    return (tokens - positions_of(tokens, n, layout)).sum(axis=1).tolist()


# Everything that belongs to a token goes where the token goes.


def _listed(ids, labels, positions):
    return {"ids": list(map(int, ids)), "labels": list(map(int, labels)), "positions": list(map(int, positions))}


def _ordered(tokens, order):
    tokens, order = np.asarray(tokens), np.asarray(order)
    return _listed(tokens[order], tokens[order + 1], order)


def _in_zigzag(tokens, n):
    return _ordered(tokens, positions_of(len(tokens) - 1, n, "zig-zag").ravel())


zigzag = FunctionExercise("zigzag", points=4, reference=_in_zigzag)


@zigzag.cases
def _(draw):
    """Every token once; then tokens that come again, with others behind them."""
    for n, chunk, alike in ((2, 2, 1), (4, 1, 1), (3, 2, 1), (4, 3, 3)):
        yield Case({"tokens": draw.rng.permutation(np.arange(10, 11 + 2 * n * chunk) // alike), "n": n})


@zigzag.mistake
def labels_from_the_new_order(tokens, n):
    """Each label is the token that comes next in the *new* order. Where two chunks meet there that do not in the text,
    a token is to predict one from somewhere else. The loss falls all the same. What is the next token of the *text*?"""
    found = _in_zigzag(tokens, n)
    return found | {"labels": [*found["ids"][1:], int(tokens[-1])]}


@zigzag.mistake
def labels_left_behind(tokens, n):
    """The tokens changed places and the labels did not: nearly every token is to predict one that follows another.
    What belongs to a token goes with it."""
    return _in_zigzag(tokens, n) | {"labels": [int(token) for token in tokens[1:]]}


@zigzag.mistake
def positions_left_behind(tokens, n):
    """The positions count from 0 in the new order. Then the mask hides what it should show, and a rotary embedding
    turns by wrong angles. A token keeps the position that it has in the text."""
    return _in_zigzag(tokens, n) | {"positions": list(range(len(tokens) - 1))}


@zigzag.mistake
def labels_are_the_tokens(tokens, n):
    """Each token's label is the token itself: that is easily learned, and nothing is. The label is the token after
    it."""
    found = _in_zigzag(tokens, n)
    return found | {"labels": found["ids"]}


@zigzag.mistake
def never_reordered(tokens, n):
    """The tokens stand as they stood: device 0 still has the first ones. Which two chunks of 2n does device d get?"""
    return _ordered(tokens, range(len(tokens) - 1))


@zigzag.mistake
def round_robin(tokens, n):
    """Device d got the chunks d and n + d. Then the last device has the last chunk of both halves. Its second chunk is
    to be counted from the other end."""
    chunks = np.arange(len(tokens) - 1).reshape(2, n, -1)
    return _ordered(tokens, chunks.transpose(1, 0, 2).ravel())


@zigzag.mistake
def one_chunk_off(tokens, n):
    """The second chunk is counted from the end, but from one too far: the last of 2n chunks has the number 2n − 1."""
    chunks = np.arange(len(tokens) - 1).reshape(2 * n, -1)
    return _ordered(tokens, np.concatenate([np.concatenate([chunks[d], chunks[-d]]) for d in range(n)]))


@zigzag.mistake
def places_on_the_device(tokens, n):
    """Ids and labels are right; the positions count within a device's own piece. A position is the token's place in
    the *text*, by which masks and rotations go: it travels with the token."""
    return _in_zigzag(tokens, n) | {"positions": list(range((len(tokens) - 1) // n)) * n}


@zigzag.mistake
def second_chunk_backwards(tokens, n):
    """The chunks are the right ones, but within the second of each device the tokens run backwards. The *chunks* go to
    and fro, the tokens in a chunk stay as they are."""
    chunks = np.arange(len(tokens) - 1).reshape(2 * n, -1)
    return _ordered(tokens, np.concatenate([np.concatenate([chunks[d], chunks[-1 - d][::-1]]) for d in range(n)]))
