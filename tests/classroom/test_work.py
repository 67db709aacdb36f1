"""What a student has written stays: whatever is pulled, built, graded and cleaned."""

import shutil
import subprocess

import mini
import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grader.classroom.course.build import build
from grader.classroom.course.notebook import grade_id
from grader.classroom.course.work import fill, merged
from grader.lessons import EXERCISES

MINE = "answer = 'my own work'  # of {}"


def sources(nb):
    return [cell.source for cell in nb.cells]


def answered(nb):
    """The notebook with an answer of the student's in every answer cell."""
    for cell in nb.cells:
        if grade_id(cell).startswith("answer_"):
            cell.source = MINE.format(grade_id(cell))
    return nb


def changed_lesson(nb):
    """The lesson as it may come with a pull: texts, starters and checks differ, cells have come and gone."""
    for k, cell in enumerate(nb.cells):
        if k % 3 == 0:
            cell.source += "\n# pulled" if cell.cell_type == "code" else "\n\nPulled."
    nb.cells.insert(1, new_markdown_cell("A new paragraph."))
    del nb.cells[next(k for k, c in enumerate(nb.cells) if k > 3 and not grade_id(c))]
    return nb


def test_answers_in_every_lesson_survive_a_pull(root, tmp_path):
    shutil.copytree(root / "course", tmp_path / "course")
    assert len(list(fill(tmp_path))) >= 16
    assert list(fill(tmp_path)) == []
    notebooks = sorted((tmp_path / "work").glob("[0-9]*/*.ipynb"))
    for file in notebooks:
        nbformat.write(answered(nbformat.read(file, 4)), file)
        release = tmp_path / "course" / file.relative_to(tmp_path / "work")
        nbformat.write(changed_lesson(nbformat.read(release, 4)), release)
    lines = list(fill(tmp_path))
    assert len(lines) == len(notebooks) and all("was merged" in line for line in lines)
    answers = 0
    for file in notebooks:
        nb, release = (
            nbformat.read(file, 4),
            nbformat.read(tmp_path / "course" / file.relative_to(tmp_path / "work"), 4),
        )
        marked = [cell for cell in nb.cells if grade_id(cell).startswith("answer_")]
        assert [cell.source for cell in marked] == [MINE.format(grade_id(cell)) for cell in marked]
        answers += len(marked)
        shown = [c.source for c in release.cells if not grade_id(c).startswith("answer_")]
        assert [source for source in shown if source not in sources(nb)] == []
        (before,) = (tmp_path / "work/.before").glob(f"*/{file.relative_to(tmp_path / 'work')}")
        assert MINE.format("")[:20] in before.read_text()
    assert answers == len(EXERCISES)


def test_a_lesson_in_which_nothing_is_written_is_updated_without_alarm(root, tmp_path):
    mini.built_course(tmp_path)
    list(fill(tmp_path))
    release = tmp_path / "course" / mini.LESSON / f"{mini.LESSON}.ipynb"
    nbformat.write(changed_lesson(nbformat.read(release, 4)), release)
    assert list(fill(tmp_path)) == [f"work/{mini.LESSON}/{mini.LESSON}.ipynb: updated"]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_notebook_that_jupyter_trusted_is_trusted_when_it_is_merged(trusted, tmp_path, monkeypatch):
    """Else its pictures, which are SVG, would be taken out of it."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    mini.built_course(tmp_path)
    list(fill(tmp_path))
    release, mine = (tmp_path / part / mini.LESSON / f"{mini.LESSON}.ipynb" for part in ("course", "work"))
    notary = NotebookNotary()
    if trusted:
        notary.sign(nbformat.read(mine, 4))
    nbformat.write(changed_lesson(nbformat.read(release, 4)), release)
    assert len(list(fill(tmp_path))) == 1
    assert notary.check_signature(nbformat.read(mine, 4)) == trusted


def test_pull_build_grade_and_clean_leave_the_work_alone(root, tmp_path):
    mini.built_course(tmp_path)
    list(fill(tmp_path))
    mine = tmp_path / "work" / mini.LESSON / f"{mini.LESSON}.ipynb"
    nbformat.write(answered(nbformat.read(mine, 4)), mine)
    before = mine.read_bytes()
    source = tmp_path / "solutions" / mini.LESSON / f"{mini.LESSON}.md"
    source.write_text(source.read_text() + "\nA new last paragraph.\n")
    build(tmp_path)
    assert mine.read_bytes() == before
    shutil.copy(root / "Makefile", tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert mine.read_bytes() == before
    list(fill(tmp_path))
    after = nbformat.read(mine, 4)
    assert sources(after)[-2] == "A new last paragraph."
    assert MINE.format("answer_case3") in sources(after)


def test_the_build_keeps_what_it_did_not_write(tmp_path, capsys):
    mini.built_course(tmp_path)
    lesson = tmp_path / "course" / mini.LESSON / f"{mini.LESSON}.ipynb"
    nbformat.write(answered(nbformat.read(lesson, 4)), lesson)
    (lesson.parent / "notes.txt").write_text("mine")
    build(tmp_path)
    (kept,) = tmp_path.glob(f".kept/*/course/{mini.LESSON}/{mini.LESSON}.ipynb")
    assert MINE.format("answer_case3") in sources(nbformat.read(kept, 4))
    assert kept.with_name("notes.txt").read_text() == "mine"
    assert str(kept.relative_to(tmp_path)) in capsys.readouterr().out
    build(tmp_path)
    assert len(list((tmp_path / ".kept").iterdir())) == 1


def test_saving_a_lesson_leaves_the_checkout_clean(root):
    ignored = ["work/07_matmul/07_matmul.ipynb", "work/.before/x", ".kept/x", "gradebook.db", "submitted/a/b"]
    found = subprocess.run(["git", "check-ignore", *ignored], cwd=root, capture_output=True, text=True).stdout
    assert found.splitlines() == ignored


@pytest.fixture
def lesson():
    def marked(kind, source):
        return new_code_cell(source, metadata={"nbgrader": {"grade_id": f"{kind}_one", "grade": kind == "check"}})

    cells = [
        new_markdown_cell("Text."),
        new_code_cell("example = 1"),
        marked("answer", "..."),
        marked("check", "check()"),
    ]
    return new_notebook(cells=cells)


def copy(nb):
    return nbformat.from_dict(nb)


def test_a_changed_starter_is_shown_beside_the_answer(lesson):
    mine, new = copy(lesson), copy(lesson)
    mine.cells[2].source, new.cells[2].source = "my answer", "def one(): ..."
    after = sources(merged(mine, lesson, new))
    assert (
        after[2] == "my answer"
        and "starter of this exercise has changed" in after[3]
        and new.cells[2].source in after[3]
    )
    assert sources(merged(lesson, lesson, new)) == sources(new)  # nothing written: nothing to keep


def test_a_changed_example_and_own_cells_stay_where_they_stood(lesson):
    mine, new = copy(lesson), copy(lesson)
    mine.cells[1].source = "example = 2"
    mine.cells.insert(3, new_code_cell("print(example)"))
    new.cells[0].source = "Another text."
    expected = ["Another text.", "example = 2", "...", "print(example)", "check()"]
    assert sources(merged(mine, lesson, new)) == expected
    new.cells[1].source = "example = 3"  # changed on both sides: both are there
    assert {"example = 2", "example = 3"} <= set(sources(merged(mine, lesson, new)))


def test_a_copy_of_an_answer_and_one_without_its_marks_stay(lesson):
    mine = copy(lesson)
    mine.cells.insert(3, copy(mine.cells[2]))
    mine.cells[2].source, mine.cells[3].source = "my first", "my second"
    assert {"my first", "my second"} <= set(sources(merged(mine, lesson, lesson)))
    stripped = copy(lesson)
    stripped.cells[2].source = "my answer"
    for cell in stripped.cells:
        cell.metadata.pop("nbgrader", None)
    after = sources(merged(stripped, lesson, lesson))
    assert after.index("my answer") < len(after) - 1 - after[::-1].index("check()")


def test_what_a_student_writes_among_the_links_stays():
    links = "[← one](../01/01.ipynb) · [all lessons](../index.ipynb)<br>\nCore 60 minutes"
    base = new_notebook(cells=[new_markdown_cell(f"# Title\n\n{links}")])
    new = new_notebook(cells=[new_markdown_cell(f"# Title\n\n{links.replace('60', '70')}")])
    mine = new_notebook(cells=[new_markdown_cell(f"# Title\n\n{links} My own note.")])
    assert any("My own note." in cell.source for cell in merged(mine, base, new).cells)
    assert sources(merged(copy(base), base, new)) == sources(new), "and without one the links are the new ones"


def test_a_file_beside_the_notebook_that_a_student_changed_stays(tmp_path):
    released = tmp_path / "course" / "19_hosts" / "train.py"
    released.parent.mkdir(parents=True)
    released.write_text("one")
    list(fill(tmp_path))
    mine = tmp_path / "work" / "19_hosts" / "train.py"
    released.write_text("two")
    list(fill(tmp_path))
    assert mine.read_text() == "two"
    mine.write_text("my own")
    released.write_text("three")
    (line,) = fill(tmp_path)
    assert mine.read_text() == "my own" and "train.released.py" in line
    assert mine.with_name("train.released.py").read_text() == "three"
    assert list(fill(tmp_path)) == []


def test_a_notebook_that_cannot_be_read_is_left_alone(tmp_path):
    mini.built_course(tmp_path)
    list(fill(tmp_path))
    mine = tmp_path / "work" / mini.LESSON / f"{mini.LESSON}.ipynb"
    mine.write_text("{ damaged")
    nb = mini.released(tmp_path)
    nb.cells[0].source += " More."
    nbformat.write(nb, tmp_path / "course" / mini.LESSON / f"{mini.LESSON}.ipynb")
    (line,) = fill(tmp_path)
    assert "left as it is" in line and mine.read_text() == "{ damaged"


edits = st.lists(
    st.tuples(st.sampled_from(["insert", "change", "delete", "move"]), st.integers(0, 20), st.text(max_size=5))
)


def edited(nb, steps, own):
    """The notebook after some edits, each text unlike any other."""
    nb, written = copy(nb), []
    for n, (kind, at, text) in enumerate(steps):
        at %= len(nb.cells)
        text = f"{own} {n} {text}"
        if kind == "insert":
            nb.cells.insert(at, new_code_cell(text))
            written.append(text)
        elif kind == "change":
            if nb.cells[at].source in written:
                written.remove(nb.cells[at].source)
            nb.cells[at].source = text
            written.append(text)
        elif kind == "move":
            nb.cells.append(nb.cells.pop(at))
        elif kind == "delete" and len(nb.cells) > 1 and nb.cells[at].source not in written:
            del nb.cells[at]
    return nb, written


@settings(database=None, deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(edits, edits)
def test_whatever_both_have_changed_no_word_of_the_student_is_lost(lesson, mine, pulled):
    (mine, written), (new, _) = edited(lesson, mine, "mine"), edited(lesson, pulled, "pulled")
    after = merged(mine, lesson, new)
    assert [text for text in written if text not in sources(after)] == []
    assert len({cell.id for cell in after.cells}) == len(after.cells)
    nbformat.validate(after)
    marks = [grade_id(cell) for cell in after.cells if grade_id(cell)]
    assert sorted(marks) == sorted(grade_id(cell) for cell in new.cells if grade_id(cell))
