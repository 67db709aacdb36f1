"""Every attack of tests/whole/attacks, against us: none wins, none does harm, and what follows is graded as ever."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from textwrap import dedent

import mini
import needs
import pytest
from rota import in_turn
from whole.attacks import ATTACKS, BY_NAME, attack, crash, fake, files, fill, poison, result, steal
from whole.attacks.around import AROUND
from whole.attacks.attack import Attack
from whole.attacks.grading import directly
from whole.attacks.lab import Lab
from whole.attacks.result import FULL, Result
from whole.attacks.toolkit import TOOLKIT, places

EVERY = 16  # of the attacks with one aim so many days pass until one is tried again; `make slow` tries all


def _marks(hostile: Attack) -> list[pytest.MarkDecorator]:
    turn = [pytest.mark.slow] if hostile.slow else in_turn(_rank(hostile), EVERY)
    return turn + [pytest.mark.needs("walls", "laboratory")] * hostile.walls


def _rank(hostile: Attack) -> int:
    """Where an attack stands among those with its aim."""
    return [a.name for a in ATTACKS if a.aim == hostile.aim and not a.slow].index(hostile.name)


every = pytest.mark.parametrize(
    "hostile",
    [pytest.param(a, id=a.name.replace(" ", "_"), marks=_marks(a)) for a in ATTACKS],
)


@pytest.fixture(scope="module")
def lab(course):
    lab = Lab("ours", course)
    yield lab
    lab.close()


@every
def test_it_gets_nothing_and_does_no_harm(lab, hostile):
    seen = directly(hostile, lab.course) if needs.lacking("laboratory") else lab.run(hostile.name)
    assert "is not defined" not in seen.words, "the attack itself failed"
    assert hostile.executed(seen), "it left no trace"
    assert not hostile.won(seen)
    assert not result.harm(seen)


@pytest.mark.needs("laboratory")
def test_then_an_honest_hand_in_gets_everything_and_nothing_is_left(lab):
    seen = lab.run("")
    assert seen.points == FULL
    assert not result.harm(seen)
    assert lab.close() == []


@pytest.mark.parametrize("one", [pytest.param(a, id=a.name, marks=in_turn(k, 2 * EVERY)) for k, a in enumerate(AROUND)])
def test_around_the_walls_it_gets_nothing(one, tmp_path):
    trace, won = one.act(mini.built_course(tmp_path))
    assert trace and not won


# The table itself, and what looks at the results.


def test_the_table_is_whole():
    assert len(ATTACKS) + len(AROUND) >= 200
    assert max(Counter(a.name for a in ATTACKS).values()) == 1
    assert {module: {a.aim for a in module.ATTACKS} for module in AIMS} == AIMS
    for a in ATTACKS:
        assert len(a.code.splitlines()) <= 12, a.name


AIMS = {
    fake: {attack.FAKE, attack.FORGE},
    steal: {attack.STEAL, attack.TRESPASS},
    poison: {attack.LEAVE, attack.POISON},
    fill: {attack.EXHAUST, attack.HANG},
    files: {attack.PAGE, attack.FOLDER, attack.EXHAUST, attack.HANG},
    crash: {attack.CRASH},
}


def test_what_an_attack_names_of_the_grader_is_there():
    """An attack on something that has moved away would get nothing, whatever stands in its way."""
    for source in (TOOLKIT, *(cell for a in ATTACKS for cell in (a.code, dedent(a.after)))):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), source
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importlib.import_module(alias.name)
            elif isinstance(node, ast.Constant) and re.fullmatch(r"grader(\.\w+)+", str(node.value)):
                importlib.import_module(node.value)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("borrow the reference", ["<function"]),
        ("read the lessons' sources", ["def forgot_psum"]),
        ("run the solutions", ["<function"]),
        (
            "import the judge, and the lessons' modules",
            ["imported: grader.judging.judge", "imported: grader.lessons.matmul.cases"],
        ),
        (
            "look for the judge and the lessons in every folder",
            ["grader/judging/judge.py", "grader/lessons/matmul/cases.py"],
        ),
    ],
)
def test_what_an_attack_looks_for_is_found_outside_the_walls(name, found, course, tmp_path):
    """Or behind them it would get nothing because it looks in the wrong place."""
    cell = f"{BY_NAME[name].code}\nprint({BY_NAME[name].into})"
    shutil.copytree(course, tmp_path / "course")
    (tmp_path / "cell.py").write_text(places(tmp_path, 1, "none") + TOOLKIT + cell)
    outside = subprocess.run([sys.executable, tmp_path / "cell.py"], capture_output=True, text=True, check=True)
    assert [one for one in found if one not in outside.stdout] == []


def test_what_an_attack_delivers_arrives(tmp_path):
    """Or an attack on the evaluator would get nothing because nothing is sent there."""
    (tmp_path / "cell.py").write_text(TOOLKIT + DELIVERED)
    subprocess.run([sys.executable, tmp_path / "cell.py"], check=True)


DELIVERED = """
from grader.exercises import collecting
from grader.exercises.collecting import asks, collect
from grader.lessons import find
asked = asks(find("case3"), find("case3").draw_cases()[:1])
wrong = find("case3").mistakes[0].wrong
(honest,) = collect("program", asked, wrong)
deliver(lambda artefact: rewritten(artefact, ending("stablehlo.add INPUT, INPUT : TYPE")))
(delivered,) = collecting.collect("program", asked, wrong)
assert delivered != honest and delivered.results == honest.results
"""
CLEAN = Result(points=dict(FULL), later=dict(FULL), text="made 3, wrote 7 MB")


@pytest.mark.parametrize(
    ("judgement", "bad"),
    [
        (result.undeserved, replace(CLEAN, points={"case3": 0.5})),
        (result.points_over(9), replace(CLEAN, points={"case3": float("nan")})),
        (result.points_over(9), replace(CLEAN, points={"case3": -1.0})),
        (result.points_over(9), replace(CLEAN, points={"block_matmul": 3.0})),
        (result.leaked, replace(CLEAN, canaries=("key",))),
        (result.reached, replace(CLEAN, reached=("a port",))),
        (result.left, replace(CLEAN, left=("process 7",))),
        (result.broke, replace(CLEAN, points={}, raised="KeyError")),
        (result.lost, replace(CLEAN, points={})),
        (result.spoiled, replace(CLEAN, later={"case3": 4.0})),
        (result.said("forked"), replace(CLEAN, text="forked")),
        (result.wrote(10), replace(CLEAN, text="wrote 5 MB wrote 11 MB")),
        (result.made(10), replace(CLEAN, text="made 11")),
        (result.swelled, replace(CLEAN, size=9 << 20)),
        (result.grew, replace(CLEAN, memory=2 << 30)),
        (result.multiplied, replace(CLEAN, processes=300)),
        (result.multiplied, replace(CLEAN, threads=4000)),
        (result.unescaped, replace(CLEAN, cards="<div><SCRIPT>")),
        (result.controlling, replace(CLEAN, words="\x1b[2J")),
        (result.blamed, replace(CLEAN, words="The grader itself failed on this answer")),
        (result.harm, replace(CLEAN, left=("process 7",))),
        (result.scripted, replace(CLEAN, page="<a href='java&#115;cript:x'>")),
        (result.scripted, replace(CLEAN, page="<a href=' Java\tscript&colon;x'>")),
        (result.scripted, replace(CLEAN, page="<img src='data:image/svg+xml,x'>")),
        (result.calling, replace(CLEAN, page="<img src='//mallory.example/x'>")),
        (result.marked_up, replace(CLEAN, page='<svg id="mallory">')),
        (result.calculating, replace(CLEAN, table="student,problem\nmallory,=1+1")),
        (result.controlling, replace(CLEAN, table="\x1b[2J")),
        (result.copied, replace(CLEAN, copied=("evil.html",))),
        (result.crashed, replace(CLEAN, raised="it ended")),
    ],
)
def test_what_looks_at_a_result_sees_when_it_is_bad(judgement, bad):
    assert judgement(bad)
    if judgement is not result.undeserved:
        assert not judgement(CLEAN)


# nbgrader's own Execute. `pytest -m slow tests/whole/test_attacks.py`, or bench/attacks.py for a table of both.


@pytest.fixture(scope="module")
def stock(course):
    lab = Lab("stock", course)
    yield lab
    lab.close()


@pytest.mark.slow
@pytest.mark.needs("laboratory")
@every
def test_stock_nbgrader_falls_where_the_table_says_so(stock, hostile):
    assert bool(hostile.won(stock.run(hostile.name))) == hostile.stock.falls, hostile.stock.why
