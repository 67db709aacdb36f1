"""Cards and texts of verdicts; and what `check` shows and returns."""

import html
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from contrast import contrast
from jax.sharding import PartitionSpec as P

import grader
from grader import feedback
from grader.arrays.blocks import blocks
from grader.arrays.ratios import Ratio
from grader.arrays.words import as_inline_html
from grader.checking import NBGRADER, Mark
from grader.classroom.verdicts.records import VERDICT
from grader.exercises.exercise import Mistake
from grader.exercises.verdict import Blamed, Outcome, Score, Verdict
from grader.findings.finding import Finding
from grader.findings.mistakes import KnownMistake
from grader.lessons import EXERCISES
from grader.programs.origins import LONGEST_LINE, Line
from grader.questions import Text
from grader.wording.said import TEMPLATES, Said, says, together

HOSTILE = "<script>alert(1)</script> `<b>x</b>`"


@dataclass(frozen=True)
class Words(Finding):
    """A kind of these tests."""

    words: str = ""


@says(Words)
def _(f: Words) -> Said:
    return Said(detail=f.words)


def missed(check, worth, words, exercise="case3"):
    return Outcome.missed(exercise, check, worth, (Words(words),))


def verdict(words="", where="", **more):
    runs = Outcome.earned("case3", "runs", 0)
    more["where"] = Words(where) if where else None
    if words:
        rest = missed("values", 2, words), Outcome.untried("case3", "work", 2, "values")
    else:
        rest = Outcome.earned("case3", "values", 2), Outcome.earned("case3", "work", 2)
    return Verdict("case3", (runs, *rest), **more)


def test_a_pass_is_short():
    assert feedback.plain_card(verdict()) == "Correct · case3 · 4 of 4 points\n✓ runs  ✓ values 2/2  ✓ work 2/2"


def test_a_miss_shows_the_checks_the_words_and_the_case():
    shown = feedback.plain_card(verdict("It is wrong.", where="mesh x=4"))
    checks = "✓ runs  ✗ values 0/2  · work 0/2"
    assert shown == f"Not yet · case3 · 0 of 4 points\n{checks}\n\nIt is wrong.\n\nTest case: mesh x=4"


@pytest.fixture
def said(monkeypatch):
    """How the finding of these tests is worded."""
    return lambda **parts: monkeypatch.setitem(TEMPLATES, Words, lambda finding, exercise: Said(**parts))


def test_a_card_has_its_parts_in_one_order(said):
    said(headline="The head.", expected="`1`", found="`2`", where="device 0", detail="- a\n- b", question="Not this?")
    known = KnownMistake("forgot_psum", exactly=True)
    shown = Verdict(
        "case3",
        (Outcome.missed("case3", "values", 4, (Words(), known)),),
        where=Words("mesh x=4"),
        lines=LINES,
    )
    parts = ["Not yet", "Watch it", "✗ values", "The head.", "Expected", "Found", "Where: device 0", "- a\n- b"]
    parts += [
        "A common mistake gives exactly this result: Every element",
        "Which collective",
        "In `total_of`",
        "Test case",
    ]
    offer = feedback.Offer("case3", "<p>the replay</p>")
    for told, places in (
        (feedback.plain_card(shown, EXERCISES["case3"]), [parts[0], *parts[2:]]),
        (re.sub(r"</?(?:code|strong)[^>]*>", "", feedback.card(shown, EXERCISES["case3"], offer)), parts),
    ):
        found = [told.replace("<br>– ", "\n- ").find(part.replace("`", "") if "<" in told else part) for part in places]
        assert -1 not in found and found == sorted(found), dict(zip(places, found, strict=True))
        assert "Not this?" not in told  # a card asks one question


@pytest.mark.parametrize(
    "words, cause, question",
    [
        ("It is so. Why?", "It is so.", "Why?"),
        ("It was cut: along which axis?", "It was cut.", "Along which axis?"),
        ("Use `jax.lax.psum`. Over `x.y`, or (2.5)?", "Use `jax.lax.psum`.", "Over `x.y`, or (2.5)?"),
        ("Is it? It is.", "Is it? It is.", ""),
    ],
)
def test_a_mistakes_last_question_is_the_cards(words, cause, question):
    mistake = Mistake("odd", words, None)
    exercise = replace(EXERCISES["case3"], mistakes=[mistake])
    told = together((KnownMistake("odd", exactly=False),), exercise)
    assert told == Said(cause=f"A common mistake gives almost this result: {cause}", question=question)


@pytest.mark.parametrize(
    "yours, words",
    [
        (1_536, "★ You beat the compiler."),
        (2_304, "You match the compiler."),
        (3_000, "The compiler sends less. What does it do that you don't?"),
    ],
)
def test_a_right_program_is_held_against_the_compilers(yours, words):
    told = f"Target 1,024 B · yours {yours:,} B · compiler 2,304 B · {words}"
    scored = verdict(score=Score(1_024, yours, 2_304))
    assert feedback.plain_card(scored).splitlines()[-1] == told
    assert f"<div>{html.escape(told)}</div>" in feedback.card(scored)


def test_a_paragraph_with_line_ends_of_its_own_is_wrapped_once():
    words = f"{'word ' * 20}end,\nand on.\n- {'item ' * 20}end\n- another"
    told = feedback.plain_card(verdict(words)).splitlines()[3:]
    assert told == [
        f"{'word ' * 17}word",
        "word word end, and on.",
        f"- {'item ' * 17}item",
        "  item item end",
        "- another",
    ]


def test_what_happened_is_told_by_fields_and_not_by_words():
    silent = Verdict("case3", (missed("values", 2, ""), Outcome.untried("case3", "work", 2, "values")))
    assert not silent.passed and silent.failure.check == "values"
    assert "✗ values 0/2  · work 0/2" in feedback.plain_card(silent) and "Not yet" in feedback.card(silent)
    assert "✗ values" in feedback.plain_card(Verdict("case3", (missed("values", 2, "Not tried on enough devices."),)))


def test_a_verdict_comes_back_from_its_record():
    for one in CARDS.values():
        record = json.loads(json.dumps(VERDICT.write(one)))
        assert VERDICT.write(VERDICT.read(record)) == record and VERDICT.read(record).outcomes == one.outcomes


def test_a_students_text_cannot_become_html():
    card = feedback.card(verdict(HOSTILE, where=HOSTILE))
    assert "<script" not in card and "<b>" not in card and "<code>&lt;b&gt;x&lt;/b&gt;</code>" in card


def test_a_picture_is_shown_where_there_is_one():
    one, other = (blocks((4, 2), P("x"), {"x": 4}, value=np.full((4, 2), k)) for k in (1, 2))
    shown = feedback.card(verdict("wrong", expected=one, found=other))
    assert "<svg" in shown and 'role="img"' in shown and 'aria-label="expected' in shown


def test_an_open_card_says_so_once():
    card = feedback.card(CARDS["open"])
    assert card.count("Not answered") == 1 and "○" not in card
    assert "○ chips" in feedback.card(CARDS["partly_open"])


def test_a_students_line_is_shown_as_letters_and_nothing_else():
    """Markup, characters that turn the writing round or steer a terminal, and columns that lie outside of the text."""
    text = 'f("</code><script>alert(1)</script>\u202e\x1b[2J\x00 <u>`*x*`", \u05d0)' + "z" * 10_000
    for start, end in ((0, 5), (0, LONGEST_LINE), (90, 3), (0, 10_000)):
        lined = verdict("Wrong.", lines=(Line(7, text, start, end),))
        card, plain = feedback.card(lined), feedback.plain_card(lined)
        assert "<script" not in card and card.count("<u") <= 1 and card.count("</code>") == 2
        assert not {"\u202e", "\x1b", "\x00"} & {*card, *plain}
        assert "z" * LONGEST_LINE not in card and len(plain) < 600


def test_a_paragraph_is_wrapped_once():
    """Its own line breaks, where a docstring has them, would leave lines of a word or two."""
    wordy = verdict("A word " * 11 + "that\nis as it is, and\nends.\n\n- one\n  two\n- three\n\nThe rest.")
    told = feedback.plain_card(wordy).splitlines()[3:]
    assert told == ["A word " * 11 + "that is as it", "is, and ends.", "", "- one two", "- three", "", "The rest."]


def test_a_line_that_is_in_no_named_function_is_one_of_the_cell():
    for function in ("", "<lambda>", "<b>x"):
        lined = verdict("Wrong.", lines=(Line(7, "f(a)", 0, 4, function=function),))
        assert "In your cell, line 7:" in feedback.plain_card(lined) and "<b>x" not in feedback.card(lined)


def test_the_line_that_sends_most_is_shown_as_that():
    blamed = Blamed(0, (0,), ("all_reduce",), why="most")
    told = feedback.plain_card(verdict("Wrong.", blamed=blamed, lines=LINES)).splitlines()
    assert told[5:8] == [
        "Most of the communication is in `total_of`, line 7 of your cell:",
        f"    {LINES[0].text}",
        " " * 12 + "^" * 23,
    ]


LINES = (Line(7, 'total = jax.lax.psum(part, "y")', 8, 31, function="total_of"),)
HALVES = [blocks((4, 2), P("x"), {"x": 4}, value=np.full((4, 2), value)) for value in (1, 2)]
WRONG = "The parts are not added up:\n- Which `psum` is missing?\n- Is it `x < y`?"
CARDS = {
    "correct": verdict(),
    "correct_with_a_star": verdict(score=Score(256, 256, 384)),
    "partly_correct_with_a_picture": Verdict(
        "case3",
        (Outcome.earned("case3", "values", 2), missed("communication", 2, WRONG)),
        where=Words("mesh x=4"),
        expected=HALVES[0],
        found=HALVES[1],
    ),
    "not_yet_with_a_line": verdict(WRONG, lines=LINES, blamed=Blamed(0, (0,), ("all_reduce",)), where="mesh x=4"),
    "open": Verdict("case3", (Outcome.left_open("case3", "open", 4, (Words("`case3` is still the starter."),)),)),
    "partly_open": Verdict(
        "read_devices",
        (
            Outcome.left_open("read_devices", "chips", 1, (Words("chips: no answer yet."),)),
            missed("processes", 1, "processes: 8 is incorrect.", "read_devices"),
            Outcome.earned("read_devices", "devices", 1),
        ),
    ),
    "correct_with_a_note": Verdict(
        "two_stage", (Outcome.earned("two_stage", "values", 5), missed("way", 0, "By the host.", "two_stage"))
    ),
    "not_yet_with_a_table": verdict(WRONG, ratios=(Ratio("w1", 1, 1), Ratio("w2", 4, 4), Ratio("b<1>", 0.5, 2, True))),
}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_as_reviewed(name, request):
    """The golden file is the reviewed card, tag by tag, without its picture; `pytest --rewrite-goldens` writes it."""
    golden = Path(__file__).parent / "cards" / f"{name}.html"
    card = (
        re.sub(r"(<svg[^>]*>).*?</svg>", r"\1</svg>", feedback.card(CARDS[name]), flags=re.DOTALL).replace("><", ">\n<")
        + "\n"
    )
    if request.config.getoption("--rewrite-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(card)
    assert golden.read_text() == card


def test_check_prints_in_a_terminal_and_returns_the_points(capfd):
    forgot = EXERCISES["case3"].mistakes[0].wrong
    mark = grader.check("case3", forgot)
    out, err = capfd.readouterr()
    assert mark == 0 and repr(mark) == "0.0" and err == ""
    assert out.startswith("Not yet · case3 · 0 of 4 points") and "Which collective does that" in " ".join(out.split())


def test_a_warning_in_the_students_code_costs_nothing(capfd):
    import os
    import sys
    import warnings

    def block_matmul(A, B):
        warnings.warn("hm", stacklevel=1)
        print("noise", file=sys.stderr)
        os.write(2, b"deeper noise")
        return EXERCISES["block_matmul"].reference(A, B)

    with pytest.warns(UserWarning, match="hm"):
        assert repr(grader.check("block_matmul", block_matmul)) == "2.0"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["case_3", "", "nothing like it"])
def test_an_unknown_name_is_said_and_not_raised(name, capsys):
    assert grader.check(name, ...) == 0
    assert "There is no exercise named" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("one *core* of it", "one <em>core</em> of it"),
        ("*All of it*.", "<em>All of it</em>."),
        ("2 * 3 * 4, and a*b*c", "2 * 3 * 4, and a*b*c"),
        ("f(*args, **kw), g(*args)", "f(*args, **kw), g(*args)"),
        ("`*x*` is *y < z*", "<code>*x*</code> is <em>y &lt; z</em>"),
        ("*a `b` c*", "*a <code>b</code> c*"),
    ],
)
def test_emphasis_and_code_are_shown_as_such(words, shown):
    assert as_inline_html(words) == shown
    assert shown in feedback.card(verdict(words))
    assert shown in Text((words,))._repr_html_()


@pytest.mark.parametrize("colour", [feedback.GOOD, feedback.PART, feedback.BAD, feedback.OPEN])
def test_a_headline_can_be_read_on_any_page(colour):
    """White on the colour: WCAG's contrast of 4.5, whatever the theme."""
    assert contrast(colour, "white") >= 4.5
    assert f"background:{colour};color:white" in "".join(map(feedback.card, CARDS.values()))


def test_nothing_is_shown_under_a_card_unless_nbgrader_asks(monkeypatch):
    from IPython.core.formatters import DisplayFormatter

    mark = Mark(2.5)
    assert DisplayFormatter().format(mark) == ({}, {})
    monkeypatch.setenv(NBGRADER, "autograde")
    assert DisplayFormatter().format(mark)[0] == {"text/plain": "2.5"}
