"""§ 8: what each of the three ways sends."""

from __future__ import annotations

from grader.exercises import Case, FunctionExercise
from grader.lessons.shared import within


def _sent(tokens, heads, kv_heads, width, n, *, passed=None, traded=None, divisible=True):
    """Bytes in bfloat16 that a device sends in one layer, forwards; None where heads cannot be dealt out.

    `passed` is how many blocks pass by, `traded` how many heads of its own tokens a device puts into exchanges.
    """
    a_head = tokens // n * width * 2  # one head of a device's tokens
    by_blocks = (n - 1 if passed is None else passed) * 2 * kv_heads * a_head
    exchanged = (2 * heads + 2 * max(kv_heads, n) if traded is None else traded) * a_head * (n - 1) / n
    return {"gather": by_blocks, "ring": by_blocks, "ulysses": None if divisible and heads % n else exchanged}


def _alike(one, other, **_):
    same = within(1e-6)
    return set(one) == set(other) and all(
        one[way] is None if other[way] is None else same(one[way], other[way]) for way in other
    )


cp_bytes = FunctionExercise("cp_bytes", points=3, reference=_sent, same=_alike)


@cp_bytes.cases
def _(draw):
    for tokens, heads, kv_heads, width, n in (
        (131_072, 32, 8, 128, 8),
        (1_048_576, 128, 8, 128, 16),
        (8_192, 32, 32, 128, 4),
        (65_536, 40, 8, 128, 16),
        (4_096, 64, 1, 64, 32),
    ):
        yield Case({"tokens": tokens, "heads": heads, "kv_heads": kv_heads, "width": width, "n": n})


@cp_bytes.mistake
def sent_to_itself(tokens, heads, kv_heads, width, n):
    """For gather and ring this is right of n blocks that pass; but one of the n a device has already."""
    return _sent(tokens, heads, kv_heads, width, n, passed=n)


@cp_bytes.mistake
def forgot_the_values(tokens, heads, kv_heads, width, n):
    """For gather and ring this is half: the bytes of the keys alone. The values travel with them."""
    right = _sent(tokens, heads, kv_heads, width, n)
    return right | {"gather": right["gather"] / 2, "ring": right["ring"] / 2}


@cp_bytes.mistake
def keys_alone(tokens, heads, kv_heads, width, n):
    """In all three ways these are the bytes without the values. They travel with the keys."""
    right = _sent(tokens, heads, kv_heads, width, n, traded=2 * heads + max(kv_heads, n))
    return right | {"gather": right["gather"] / 2, "ring": right["ring"] / 2}


@cp_bytes.mistake
def queries_sent(tokens, heads, kv_heads, width, n):
    """So it is with as many key heads as there are query heads. With grouped queries several share one key-value head,
    and only those travel: that is why a gather is cheap in newer models."""
    return _sent(tokens, heads, heads, width, n) | {"ulysses": _sent(tokens, heads, kv_heads, width, n)["ulysses"]}


@cp_bytes.mistake
def a_ring_sends_less(tokens, heads, kv_heads, width, n):
    """In a ring a device sends one block in *each* of its n − 1 turns. It saves memory and time, but not a byte: how
    many bytes did a ring and a gather send in the lesson on collective matmuls?"""
    right = _sent(tokens, heads, kv_heads, width, n)
    return right | {"ring": right["ring"] / (n - 1)}


@cp_bytes.mistake
def forgot_the_way_back(tokens, heads, kv_heads, width, n):
    """Ulysses sends the queries out and the result back: as many heads twice."""
    return _sent(tokens, heads, kv_heads, width, n, traded=heads + 2 * max(kv_heads, n))


@cp_bytes.mistake
def too_few_copies(tokens, heads, kv_heads, width, n):
    """With fewer key-value heads than devices, Ulysses sends copies: each device needs one."""
    return _sent(tokens, heads, kv_heads, width, n, traded=2 * heads + 2 * kv_heads)


@cp_bytes.mistake
def kept_nothing(tokens, heads, kv_heads, width, n):
    """An all_to_all cuts what a device has into n pieces, and one of them stays at home: (n − 1)/n of it is sent."""
    right = _sent(tokens, heads, kv_heads, width, n)
    return right | {"ulysses": right["ulysses"] and right["ulysses"] * n / (n - 1)}


@cp_bytes.mistake
def whole_text_exchanged(tokens, heads, kv_heads, width, n):
    """An all_to_all sends pieces of what *one* device has, T/n tokens. For Ulysses this is n times that, as for the
    whole text."""
    right = _sent(tokens, heads, kv_heads, width, n)
    return right | {"ulysses": right["ulysses"] and right["ulysses"] * n}


@cp_bytes.mistake
def divided_heads(tokens, heads, kv_heads, width, n):
    """Heads cannot be cut: where n does not divide the query heads, Ulysses is not possible, and the answer is None."""
    return _sent(tokens, heads, kv_heads, width, n, divisible=False)


@cp_bytes.mistake
def four_bytes_a_number(tokens, heads, kv_heads, width, n):
    """Everything is twice what it should be: a number in bfloat16 has two bytes."""
    return {way: sent and 2 * sent for way, sent in _sent(tokens, heads, kv_heads, width, n).items()}
