"""A hand-in's own code has the time of one notebook, however often and in however many parts it is run."""

from __future__ import annotations

import random
import time

import mini
import pytest
from fuzzing import fuzz, within
from hypothesis import strategies as st
from rota import LONG, taking_turns

from grader.classroom.course.cells import Cell
from grader.classroom.course.notebook import restore
from grader.classroom.runs import run as running
from grader.classroom.runs.run import Setup, code, lesson_of, run_hand_in
from grader.classroom.runs.slices import parts_of, plain_texts, spare_examples
from grader.classroom.store import Store
from grader.classroom.walls.templates import MOST_PLAIN, Ended, Limits, message_in, steadily

ENDLESS = "def {name}(*a, **k):\n    import time\n    while True: time.sleep(1)"  # and leaves the processor to others
SUICIDE = """import os, signal, threading, time
threading.Thread(target=lambda: (time.sleep(4), os.kill(os.getpid(), signal.SIGKILL))).start()
time.sleep(60)"""


def seconds(course, nb, limits) -> float:
    lesson = lesson_of(course, mini.LESSON)
    cells = code(restore(nb, mini.released(course)), lesson.examples)
    running.workers().kill()
    with running.workers().fork():  # it has started before the time counts
        pass
    started = time.monotonic()
    run_hand_in(cells, Setup(random.getrandbits(60), limits, Store(None), lesson))
    return time.monotonic() - started


@pytest.fixture
def faithful(monkeypatch):
    """Shortcuts are taken without trying them on the solved lesson, which takes its own time."""
    monkeypatch.setattr(running, "_is_faithful", lambda shortcut, setup: True)


RESTART = 15.0  # that a busy machine may take to start a template anew


@taking_turns(1, LONG)
def test_slices_share_the_time_of_a_notebook(course, faithful):
    nb = mini.solved(course)
    for name in ("case3", "block_matmul"):
        mini.edited(nb, f"answer_{name}", lambda cell, n=name: cell.update(source=ENDLESS.format(name=n)))
    assert seconds(course, nb, Limits(cell_seconds=30, seconds=12)) < 12 + 2 * RESTART


@taking_turns(3, LONG)
def test_tries_share_the_time_of_a_notebook(course, faithful):
    nb = mini.with_cell(mini.solved(course), SUICIDE)
    assert seconds(course, nb, Limits(cell_seconds=30, seconds=9)) < 9 + 3 * RESTART


def test_a_run_that_is_killed_late_is_tried_once_more(monkeypatch):
    now, tries = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def killed_after(seconds):
        def work():
            tries.append(seconds)
            now[0] += seconds
            raise Ended("Killed.", killed=True)

        return work

    for seconds, count in ((50.0, 2), (1.0, 5)):
        tries.clear()
        with pytest.raises(Ended):
            steadily(killed_after(seconds))
        assert len(tries) == count


# What is read outside the walls is bounded.


def names_by_cells(cells, names):
    """Small functions that name one another."""
    body = "\n".join(f"def f{{0}}_{k}(): return f{{1}}_{k}" for k in range(names))
    return [Cell(body.format(i, (i + 1) % cells)) for i in range(cells)] + [Cell("f0_0", check="answer")]


HARD = {
    "many names in many cells": names_by_cells(1500, 60),
    "some names in some cells": names_by_cells(299, 6),
    "the same names everywhere": [Cell("a = b = c = d = e = f = 1")]
    + [Cell("a += a; b += b; c += c; d += d; e += e; f += f")] * 280
    + [Cell("a", check=f"check{k}") for k in range(18)],
    "four megabytes": [Cell("a\n" * 2_000_000)],
    "a hundred kilobytes": [Cell("a\n" * 49_999)],
    "a long line": [Cell("a = " + "1," * 49_000)],
    "brackets that never close": [Cell("[" * 100 + "(\n" * 90)] * 100,
    "a deep sum": [Cell("a" + "+b" * 49_000)],
}


@pytest.mark.parametrize("cells", HARD.values(), ids=HARD)
def test_no_notebook_takes_long_to_cut(cells):
    with within(3.0, 300):
        if found := parts_of(cells):
            [plain_texts(cells, part) for part in found.answers.values()]
        spare_examples(cells)


LINES = {
    "lists": "[" + "[]," * 1_300_000 + "[]]",
    "objects": "[" + "{}," * 1_300_000 + "{}]",
    "pairs": "[" + '{"":0},' * 500_000 + "{}]",
    "quotes": '"' + '\\"' * 2_000_000,
    "backslashes": '"' + "\\" * 4_000_000,
    "empty texts": "[" + '"",' * 1_300_000 + '""]',
    "depth": "[" * 150_000,
    "a long number": "1" * 4_000_000,
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_no_line_takes_long_to_read(line):
    with within(1.0, 200), pytest.raises(ValueError):
        message_in(line)


def test_a_long_text_is_read_whatever_is_in_it():
    assert message_in('{"a": ["' + '[,\\"' * MOST_PLAIN + '"]}') == {"a": ['[,"' * MOST_PLAIN]}


def test_any_line_is_a_value_or_refused():
    def holds(data):
        try:
            message_in(data.decode(errors="replace"))
        except ValueError:
            pass

    pieces = st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b",", b":", b"1e9", b"\\u", b"null", b"\xff"])
    fuzz("lines", st.one_of(st.binary(), st.lists(pieces, max_size=300).map(b"".join)), holds)
