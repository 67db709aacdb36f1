"""An attack as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from nbformat import NotebookNode
from whole.attacks.result import Judgement, Result

FAKE, STEAL, TRESPASS, LEAVE = "fake a pass", "steal", "trespass", "leave behind"
EXHAUST, HANG, FORGE, POISON, CRASH = "exhaust", "hang", "forge", "poison", "crash the evaluator"
ENDED = "never reached this check"  # what is said of checks behind the cell in which a run ended
PAGE, FOLDER = "on the page", "in the folder"
IN_KERNEL = "check runs in the student's kernel, and every name in it can be changed"
SAME_USER = "the kernel is an ordinary process of who grades"
NEVER_TEXT = "what is judged there has never been text"
SOCKETS = "the kernel's own sockets are among the descriptors: written over, it hangs or dies"


@dataclass(frozen=True)
class Stock:
    """Whether stock nbgrader falls to an attack, and why."""

    falls: bool
    why: str


def falls(why: str) -> Stock:
    return Stock(True, why)


def stands(why: str) -> Stock:
    return Stock(False, why)


@dataclass(frozen=True)
class Attack:
    """One hand-in, unsolved or `solved` otherwise.

    `into` names the exercise whose answer cell it replaces; otherwise it is a cell of its own, at the start or in
    the `middle` (behind the first check). `handed_in` writes the hand-in's whole folder instead, given the notebook,
    and the command grades it. With `later` an honest hand-in is graded next, and `after` is a cell in that one. `walls`
    says whether only walls can stop it. It has `seconds`, and a third of them for a cell. What is `slow` takes long and
    is like another.
    """

    name: str
    aim: str
    source: str
    won: Judgement
    stock: Stock
    solved: bool = False
    into: str = ""
    middle: bool = False
    later: bool = False
    after: str = ""
    walls: bool = True
    seconds: float = 12.0
    slow: bool = False
    handed_in: Callable[[Path, NotebookNode], object] | None = None

    @property
    def code(self) -> str:
        return dedent(self.source).strip()

    @property
    def trace(self) -> str:
        """What its cell prints first: who finds it knows that the attack was executed."""
        return f"executed: {self.name}"

    def executed(self, result: Result) -> bool:
        """Whether it was tried at all: it left its trace, or its run ended there; a folder was read, or refused."""
        if self.handed_in:
            return bool(result.page or result.words)
        return self.trace in result.text or bool(result.raised) or ENDED in result.words
