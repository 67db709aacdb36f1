"""An instructor's way through Formgrader, click by click: autograde, a score and a comment by hand, feedback, again."""

import re

import classes
import labs
import mini
import pytest

from grader.classroom.course.build import gradebook
from grader.classroom.grading.record import HandIn, record
from grader.classroom.handins.roster import Identity, Roster, enter_people

pytestmark = [pytest.mark.needs("browser"), pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """An instructor's lab on the small course, with one hand-in that nobody has graded, and its folder."""
    root = mini.built_course(tmp_path_factory.mktemp("formgrader"))
    file = classes.submit(root, "ada", classes.answered(root, classes.FORGOT))
    (file.parent / "timestamp.txt").write_text("2027-03-01 11:00:00 UTC")
    with gradebook(root) as book:
        enter_people(book, Roster((Identity("ada", "moodle", "", "Ada Lovelace"),)))
    with labs.running_lab(root, "--instructor") as address:
        yield root, address


def pressed(page, kind, said):
    """Press the button of this kind in the hand-in's row, and wait for what it says."""
    page.locator(f"#main-table td.{kind} a").click()
    page.get_by_text(said).wait_for(timeout=120_000)
    page.locator(".modal.in .modal-footer button").click()
    page.locator(".modal.in").wait_for(state="detached")


def typed_in(page, place, words):
    """Type into a field, leave it, and wait until Formgrader has saved it."""
    with page.expect_response(lambda answer: answer.request.method == "PUT") as answer:
        page.locator(place).fill(words)
        page.locator(place).dispatch_event("change")
    assert answer.value.ok


def test_autograde_a_score_a_comment_and_feedback_again(lab):
    root, address = lab
    hand_in = HandIn(root, "ada", mini.LESSON)
    with labs.chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(f"{address}/login", timeout=60_000)
        page.locator("#password_input").fill("open")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/(lab|tree)"), timeout=60_000)
        hand_ins = f"{address}/formgrader/manage_submissions/{mini.LESSON}"
        page.goto(hand_ins, timeout=60_000)
        page.get_by_text("needs autograding").wait_for(timeout=60_000)
        pressed(page, "autograde", f"Successfully autograded '{mini.LESSON}' for student 'ada'.")
        page.locator("#main-table td.score", has_text="2 / 6").wait_for()
        assert "2027-03-01 11:00:00" in page.locator("#main-table td.timestamp").inner_text()
        pressed(page, "generate-feedback", f"Successfully generated feedback for '{mini.LESSON}'")
        before = hand_in.at("feedback", ".html").read_text()

        page.goto(f"{address}/formgrader/gradebook/{mini.LESSON}/{mini.LESSON}", timeout=60_000)
        page.locator("a", has_text="Submission #1").click()
        page.locator("input#check_case3").wait_for(timeout=60_000)
        assert page.locator("input#check_case3").get_attribute("placeholder") == "0"
        assert "Lovelace, Ada" in re.sub(r"\s+", " ", page.locator("nav").first.text_content())
        typed_in(page, "input#check_case3", "3.5")
        typed_in(page, "textarea#answer_case3-comment", "Nearly: which *collective* adds? <b onclick=hit(1)>")

        page.goto(hand_ins, timeout=60_000)
        page.locator("#main-table td.score", has_text="5.5 / 6").wait_for(timeout=60_000)
        pressed(page, "generate-feedback", f"Successfully generated feedback for '{mini.LESSON}'")
        pressed(page, "autograde", f"Successfully autograded '{mini.LESSON}' for student 'ada'.")
        page.locator("#main-table td.score", has_text="5.5 / 6").wait_for()
    after = hand_in.at("feedback", ".html").read_text()
    assert "Nearly: which" in after and "Nearly: which" not in before and "hit(1)" not in after
    row = record(hand_in)
    assert row.points == {"block_matmul": 2, "case3": 3.5} and not row.problem
    assert "Nearly: which" in hand_in.at("feedback", ".html").read_text(), "a grading after it keeps what was said"
