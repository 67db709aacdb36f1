"""Every attack of tests/attacks.py, against us: none wins, none does harm, and what follows is graded as ever."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import attacks
import pytest
from attacks import ATTACKS, FULL, Attack, Lab, Result

from grader.classroom.walls import bubblewrap as walls

BARE = Lab.missing()
OPEN = "; ".join(walls.missing())
DAILY = 4  # of the attacks with one aim so many are tried every day; the others by `make slow`


def _rank(attack: Attack) -> int:
    """Where an attack stands among the quick ones with its aim."""
    return [a.name for a in ATTACKS if a.aim == attack.aim and not a.slow].index(attack.name)


every = pytest.mark.parametrize(
    "attack",
    [
        pytest.param(
            attack, id=attack.name.replace(" ", "_"), marks=[pytest.mark.slow] * (attack.slow or _rank(attack) >= DAILY)
        )
        for attack in ATTACKS
    ],
)


def test_what_attacks_import_of_the_grader_is_there():
    """An attack that only fails to import something attacks nothing."""
    named = re.findall(r"from (grader[.\w]*) import (\w+)", Path(attacks.__file__).read_text())
    assert ("grader.exercises.collecting", "collect") in named
    assert [pair for pair in named if not hasattr(importlib.import_module(pair[0]), pair[1])] == []


@pytest.fixture(scope="module")
def lab(course):
    lab = Lab("ours", course)
    yield lab
    lab.close()


@every
def test_it_gets_nothing_and_does_no_harm(lab, attack):
    if attack.walls and OPEN:
        pytest.skip(OPEN)
    if attack.walls and BARE:
        pytest.skip(BARE)
    result = attacks.directly(attack, lab.course) if BARE else lab.run(attack.name)
    assert not attack.won(result)
    assert not attacks.harm(result)


@pytest.mark.skipif(bool(BARE), reason=BARE)
def test_then_an_honest_hand_in_gets_everything_and_nothing_is_left(lab):
    result = lab.run("")
    assert result.points == FULL
    assert not attacks.harm(result)
    assert lab.close() == []


# The table itself, and what looks at the results.


def test_the_table_is_whole():
    assert len(ATTACKS) >= 45
    assert max(Counter(attack.name for attack in ATTACKS).values()) == 1
    assert {attack.aim for attack in ATTACKS} == {
        attacks.FAKE,
        attacks.STEAL,
        attacks.TRESPASS,
        attacks.LEAVE,
        attacks.EXHAUST,
        attacks.HANG,
        attacks.FORGE,
        attacks.POISON,
        attacks.CRASH,
    }
    for attack in ATTACKS:
        ast.parse(attack.code)
        ast.parse(attack.after and Attack("", "", attack.after, attack.won, attack.stock).code)
        assert len(attack.code.splitlines()) <= 12, attack.name


CLEAN = Result(points=dict(FULL), later=dict(FULL), text="made 3, wrote 7 MB")


@pytest.mark.parametrize(
    ("judgement", "bad"),
    [
        (attacks.undeserved, replace(CLEAN, points={"case3": 0.5})),
        (attacks.points_over(9), replace(CLEAN, points={"case3": float("nan")})),
        (attacks.points_over(9), replace(CLEAN, points={"case3": -1.0})),
        (attacks.points_over(9), replace(CLEAN, points={"block_matmul": 3.0})),
        (attacks.leaked, replace(CLEAN, canaries=("key",))),
        (attacks.reached, replace(CLEAN, reached=("a port",))),
        (attacks.left, replace(CLEAN, left=("process 7",))),
        (attacks.broke, replace(CLEAN, points={}, raised="KeyError")),
        (attacks.lost, replace(CLEAN, points={})),
        (attacks.spoiled, replace(CLEAN, later={"case3": 4.0})),
        (attacks.said("forked"), replace(CLEAN, text="forked")),
        (attacks.wrote(10), replace(CLEAN, text="wrote 5 MB wrote 11 MB")),
        (attacks.made(10), replace(CLEAN, text="made 11")),
        (attacks.swelled, replace(CLEAN, size=9 << 20)),
        (attacks.grew, replace(CLEAN, memory=2 << 30)),
        (attacks.multiplied, replace(CLEAN, processes=300)),
        (attacks.multiplied, replace(CLEAN, threads=4000)),
        (attacks.unescaped, replace(CLEAN, cards="<div><SCRIPT>")),
        (attacks.controlling, replace(CLEAN, words="\x1b[2J")),
        (attacks.blamed, replace(CLEAN, words="The grader itself failed on this answer")),
        (attacks.harm, replace(CLEAN, left=("process 7",))),
        (attacks.crashed, replace(CLEAN, raised="it ended")),
    ],
)
def test_what_looks_at_a_result_sees_when_it_is_bad(judgement, bad):
    assert judgement(bad)
    if judgement is not attacks.undeserved:
        assert not judgement(CLEAN)


# nbgrader's own Execute. `pytest -m slow tests/test_attacks.py`, or bench/attacks.py for a table of both.


@pytest.fixture(scope="module")
def stock(course):
    if BARE:
        pytest.skip(BARE)
    lab = Lab("stock", course)
    yield lab
    lab.close()


@pytest.mark.slow
@every
def test_stock_nbgrader_falls_where_the_table_says_so(stock, attack):
    assert bool(attack.won(stock.run(attack.name))) == attack.stock.falls, attack.stock.why
