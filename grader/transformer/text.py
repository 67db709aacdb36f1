"""What is learned: a text that every Python has, its lines as examples of different lengths."""

from __future__ import annotations

import codecs
import contextlib
import io

import numpy as np

LINE_TOKENS = 72  # padding included


def zen() -> list[str]:
    """The lines of the Zen of Python, without the empty one. (To import it prints it, so that is caught.)"""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return [line for line in codecs.decode(this.s, "rot13").splitlines() if line]


def alphabet(lines: list[str]) -> str:
    """The characters that occur, in order; the first, token 0, is the end of a line."""
    return "\n" + "".join(sorted(set("".join(lines))))


def examples(lines: list[str], letters: str) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and targets int32 [lines, LINE_TOKENS]: each line behind the end of another, to its own end; then −1."""
    tokens = np.zeros((len(lines), LINE_TOKENS), np.int32)
    targets = np.full((len(lines), LINE_TOKENS), -1, np.int32)
    for row, line in enumerate(lines):
        numbers = [letters.index(letter) for letter in line]
        tokens[row, 1 : len(line) + 1] = numbers
        targets[row, : len(line) + 1] = [*numbers, 0]
    return tokens, targets


def batch_at(position: int, seed: int, rows: int, micro: int, pair: tuple[np.ndarray, np.ndarray]):
    """Batch number `position` of the run with this seed: tokens and targets [micro, rows, T].

    The lines come shuffled anew in every pass; the same seed and position give the same batch on any machine.
    """
    count = len(pair[0])
    begin = position * rows * micro
    passes = range(begin // count, (begin + rows * micro - 1) // count + 1)
    order = np.concatenate([np.random.default_rng([seed, number]).permutation(count) for number in passes])
    chosen = order[begin - passes[0] * count :][: rows * micro]
    return tuple(array[chosen].reshape(micro, rows, -1) for array in pair)
