"""Whatever a worker of a cluster returns: only what was asked for is kept, and grading ends with the right marks.

A lie that is whole and fits (other answers with the verdicts that they would have) is believed: whoever runs a worker
is trusted with the marks. Everything else is refused, all of it, and done here.
"""

from __future__ import annotations

import copy
import json
import pickle
import shutil

import classes
import mini
import pytest
from fuzzing import fuzz
from hypothesis import strategies as st

from grader import feedback
from grader.classroom.grading import cluster, tasks
from grader.classroom.grading.cards import card_of
from grader.classroom.grading.execute import grade_notebook
from grader.classroom.grading.record import HandIn, material
from grader.classroom.store import FOLDER, Store
from grader.classroom.verdicts.records import VERDICT, Judged
from grader.feedback import has_picture
from grader.findings.finding import finding_to_json
from grader.findings.verdicts import CannotCheck

MARKS = {"block_matmul": 2.0, "case3": 0.0}
NAMES = st.sampled_from(("", "../evil", "/tmp/evil", "runs", "verdicts", "a" * 64, "<script>", "\x1b[2J", "__class__"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9) | NAMES, inner, max_size=3),
    max_leaves=5,
)


class Course:
    """A small course with one hand-in, and what an honest worker sends of it."""

    def __init__(self, root):
        self.root = mini.built_course(root)
        classes.submit(self.root, "gina", classes.answered(self.root, classes.FORGOT))
        self.hand_in = HandIn(self.root, "gina", mini.LESSON)
        self.honest = tasks.graded(json.loads(tasks.pack(*material(self.hand_in))), self.root.parent / "worker")
        self.asked = {("runs", name) for name in self.honest.runs} | {
            ("verdicts", name) for name in self.honest.verdicts
        }

    def receive(self, text: str) -> str:
        """What is said of a worker's reply, in a course where nothing is graded."""
        for kind in ("runs", "verdicts"):
            shutil.rmtree(self.root / FOLDER / kind, ignore_errors=True)
        cluster._completed.cache_clear()
        return cluster._receive(Future(text), self.hand_in)

    def kept(self) -> set[tuple[str, str]]:
        files = [f for kind in ("runs", "verdicts") for f in (self.root / FOLDER / kind).glob("*/*")]
        return {(f.parts[-3], f.name.removesuffix(".json.gz")) for f in files}

    def files(self) -> set[str]:
        return {str(f) for f in self.root.parent.rglob("*") if not f.is_relative_to(self.root / FOLDER)}

    def marks(self) -> dict[str, float]:
        """The marks, when what is lacking has been done here."""
        cluster.complete(self.hand_in, self.honest)
        graded = grade_notebook(*material(self.hand_in), never, Store(self.root / FOLDER))
        return {verdict.exercise: verdict.points for verdict in graded.verdicts}


class Future:
    """A task that has come back."""

    status = "finished"

    def __init__(self, result):
        self.result = lambda timeout: result


def never(*_):
    raise AssertionError("it was judged again")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return Course(tmp_path_factory.mktemp("cluster") / "course")


def test_what_an_honest_worker_sends_is_all_that_is_needed(course):
    assert course.receive(tasks.sent(course.honest)) == ""
    assert course.kept() == course.asked
    assert course.marks() == MARKS


def test_a_card_is_drawn_here_as_it_would_be_there(course):
    """With its picture; nothing of the card has travelled."""
    assert not {"html", "text"} & {name for facts in course.honest.verdicts.values() for name in facts}
    course.receive(tasks.sent(course.honest))
    here, there = (
        {name: Store(folder).get("verdicts", name) for name in course.honest.verdicts}
        for folder in (course.root / FOLDER, course.root.parent / "worker")
    )
    assert here == there
    assert any(has_picture(VERDICT.read(record)) for record in here.values())


def test_an_answer_under_another_name_is_refused(course):
    reply = json.loads(tasks.sent(course.honest))
    run = next(run for run in reply["runs"].values() if "case3" in run["answers"])
    run["answers"][""] = run["answers"].pop("case3")
    assert "what was not asked" in course.receive(json.dumps(reply))
    assert course.kept() == set()


def test_whatever_a_worker_returns(course, monkeypatch):
    monkeypatch.setattr(feedback, "pictures_of", lambda verdict: "")  # it takes half a second
    before = course.files()

    def holds(data: bytes) -> None:
        reason = course.receive(data.decode(errors="replace"))
        assert course.kept() == (set() if reason else course.asked)
        assert course.files() == before
        assert reason or course.marks() == MARKS

    honest = json.loads(tasks.sent(course.honest))
    fuzz("cluster", st.binary(max_size=200) | replies(honest), holds)


@st.composite
def replies(draw, honest) -> bytes:
    """An honest reply with one place changed: another value, another name, or one thing more."""
    reply = copy.deepcopy(honest)
    place, key = draw(st.sampled_from(list(places(reply))))
    if isinstance(place, dict) and draw(st.booleans()):
        place[draw(NAMES)] = place.pop(key) if draw(st.booleans()) else draw(JSON)
    else:
        place[key] = draw(JSON)
    return json.dumps(reply).encode()


def places(value):
    """Each place in a JSON value that can be changed: what holds it, and its key or number."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def edited(course, change) -> str:
    """An honest reply but for its verdict on case3."""
    reply = json.loads(tasks.sent(course.honest))
    change(next(f for f in reply["verdicts"].values() if f["exercise"] == "case3" and f["found"]))
    return json.dumps(reply)


def test_results_of_another_hand_in_are_left_aside(course):
    """A worker that adds what belongs to others, under their keys, plants nothing."""
    reply = json.loads(tasks.sent(course.honest))
    for kind in ("runs", "verdicts"):
        reply[kind]["e" * 64] = next(iter(reply[kind].values()))
    assert not course.receive(json.dumps(reply))
    assert course.kept() == course.asked


def test_an_answer_that_comes_twice_changes_nothing(course):
    assert not course.receive(tasks.sent(course.honest))
    late = cluster._receive(Future(edited(course, LIES["less than nothing"])), course.hand_in)
    assert late == "" and course.marks() == MARKS, "what is there is not asked of a worker again"


LIES = {
    "more points than it is worth": lambda facts: facts["outcomes"][-1].update(points=40.0, worth=40.0, passed=True),
    "no number of points": lambda facts: facts["outcomes"][-1].update(points=float("nan")),
    "points for a check that was missed": lambda facts: facts["outcomes"][-1].update(points=1.0),
    "less than nothing": lambda facts: facts["outcomes"][-1].update(points=-1.0, worth=-1.0, passed=True),
    "on another exercise": lambda facts: facts.update(exercise="block_matmul"),
    "no outcome": lambda facts: facts.update(outcomes=[]),
    "a card of its own": lambda facts: facts.update(html="<script>alert(1)</script>"),
    "a picture of a billion devices": lambda facts: facts["found"].update(mesh=[["x", 1 << 30]]),
    "words without end": lambda facts: facts["outcomes"][-1].update(words="x" * 1_000_000),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=list(LIES))
def test_a_verdict_that_cannot_be_is_refused(course, lie):
    assert course.receive(edited(course, lie))
    assert course.kept() == set()
    assert course.marks() == MARKS


def test_a_text_in_a_verdict_is_shown_as_text(course):
    said = "</p><script>alert(1)</script>\x1b[2J"
    missed = lambda facts: next(o for o in facts["outcomes"] if not o["passed"])  # noqa: E731
    why = [finding_to_json(CannotCheck(said))]
    assert not course.receive(edited(course, lambda facts: missed(facts).update(findings=why)))
    drawn = [card_of(Judged(VERDICT.read(record)), Store(None)) for record in records(course)]
    (card,) = (card for card in drawn if "alert" in card.html)
    assert "<script" not in card.html and "\x1b" not in card.html + card.text


def records(course):
    return [Store(course.root / FOLDER).get(kind, name) for kind, name in course.kept() if kind == "verdicts"]


LOADS = {
    "deep": "[" * 100_000,
    "many": "[" + "{}," * 3_000_000 + "{}]",
    "long": "x" * (33 << 20),
    "bytes": b"{}",
    "no text": 7,
}


@pytest.mark.parametrize("text", LOADS.values(), ids=list(LOADS))
def test_a_reply_without_measure_is_not_read(course, text):
    assert course.receive(text)
    assert course.kept() == set()


class Payload:
    """Whoever unpickles it has lost."""

    def __reduce__(self):
        return pytest.fail, ("a pickle of a worker's was run",)


def test_no_pickle_from_the_wire_names_anything():
    protocol = pytest.importorskip("distributed.protocol", reason="Dask is not installed (the extra `cluster`)")
    from distributed.core import clean_exception
    from distributed.protocol.serialize import ToPickle, to_serialize

    pickled = pickle.dumps(Payload())
    with cluster._without_pickles():
        for wrapped in (ToPickle, to_serialize):
            frames = protocol.dumps({"result": wrapped(Payload())})
            with pytest.raises(TypeError, match="and is not read"):
                protocol.loads(list(map(bytes, frames)))
        assert "_Fail" in str(clean_exception(pickled, pickled)[1])  # its bytes, as text
        with pytest.raises(TypeError, match="and is not read"):
            pickle.loads(pickled)
        assert pickle.loads(pickle.dumps({"a": [1, "b", b"c", None, 2.5]})) == {"a": [1, "b", b"c", None, 2.5]}
    assert pickle.loads(pickle.dumps(HandIn)) is HandIn
