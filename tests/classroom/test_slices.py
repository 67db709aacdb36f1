"""Which hand-ins may be run slice by slice: only those where it cannot make a difference."""

from __future__ import annotations

import ast
import copy
from pathlib import Path

import nbformat
import pytest
from rota import in_turn

from grader.classroom.course.cells import Cell
from grader.classroom.grading.display import harmless_outputs
from grader.classroom.grading.execute import Grading, grade_notebook
from grader.classroom.inside.limits import Limits
from grader.classroom.runs import run as running
from grader.classroom.runs.run import Lesson, Setup, Watched, lesson_of, perform, run_hand_in, steps, watch_answers
from grader.classroom.runs.slices import CellNumbers, parts_of, plain_texts, spare_examples, that_define, typed_texts
from grader.classroom.store import Store
from grader.classroom.verdicts.judge import shared_judge
from grader.exercises.small import small_like
from grader.lessons import find

IMPORTS = "import jax\nimport jax.numpy as jnp\nimport math\nfrom jax.sharding import PartitionSpec as P"
EXAMPLE = "mesh = make(jax.devices())\nshow(mesh)"


def slices(cells):
    """For every check the cells that its answer needs, in order, without comments and spacing; None as `parts_of`."""
    found = parts_of(cells)
    return found and {cells[k].check: plain_texts(cells, part) for k, part in found.answers.items()}


def parts(*own: str, expression: str = "answer"):
    return slices(
        [
            Cell(IMPORTS, example=True),
            Cell("from grader import make, show", example=True),
            Cell(EXAMPLE, example=True),
            *map(Cell, own),
            Cell(expression, check="answer"),
        ]
    )


def test_no_answer_needs_the_first_cell(root):
    lesson = lesson_of(root, "11_gradients")
    parts = slices(lesson.solved)
    assert parts and not [name for name, sources in parts.items() if "welcome" in "".join(sources)]


PLAIN = [
    "def answer(a, b, *, mesh):\n    return jax.jit(lambda a: a @ b)(a)",
    "@jax.jit\ndef answer(a, n=3, *, spec: P = P('x')) -> jax.Array:\n    return a",
    "import functools\n@functools.partial(jax.jit, static_argnames='n')\ndef answer(a): return a",
    "answer = {'a': (4, 32)}\nanswer['b'], answer['c'] = 2 * 3, [1] + [2]",
    "share = 3 / 4\nanswer = {}\nfor k in ('a', 'b'):\n    answer[k] = share * len(k) * math.prod((2, 3))",
    "answer = {k: f'C[{k[1:].split()[0]}]' for k in ('I x', 'J y')}",
    "answer = lambda a: print(a)",
    "print('so far', [n * n for n in range(4)], math.prod((2, 3)))\nanswer = 1",
    "answer = 1\nanswer",
    "answer = 1\nfor n in range(3):\n    print(n * answer)",
    "import jax\nimport jax.numpy as jnp\ndef answer(a): return jnp.sin(a)",
    "from __future__ import annotations\ndef answer(a: jax.Array) -> jax.Array: return a",
]


@pytest.mark.parametrize("own", PLAIN)
def test_cells_that_only_define_are_run_by_themselves(own):
    assert parts(own) is not None


WHOLE = {
    "a call": "show(1)\nanswer = 1",
    "what is printed comes of a call": "print(show(1))\nanswer = 1",
    "print into something": "print(1, file=mesh)\nanswer = 1",
    "print with another meaning": "def print(x): show(x)\nprint(1)\nanswer = 1",
    "a call in a value": "answer = print(1)",
    "a call of their own function": "def f(): return 1\nanswer = {'a': f()}",
    "a call while sorting": "answer = sorted([1], key=print)",
    "a maker with another meaning": "def P(x): print(x)\nanswer = P(1)",
    "another meaning of len": "len = print\nanswer = len(1)",
    "a changed attribute": "jax.lax.psum = None\nanswer = 1",
    "a changed library": "import jax\njax.config.update('jax_enable_x64', True)\nanswer = 1",
    "another library": "import os\nanswer = 1",
    "another library, inside": "def answer():\n    import sys\n    return sys.argv",
    "another grammar": "from __future__ import barry_as_FLUFL\nanswer = 1",
    "everything of a library": "from math import *\nanswer = 1",
    "a class": "class answer:\n    pass",
    "a decorator of their own": "def d(f): return f\n@d\ndef answer(): pass",
    "a call in a default": "def answer(a=print(1)): pass",
    "a call in an annotation": "def answer(a: print(1)): pass",
    "globals": "def answer(): return globals()",
    "a name that is not there": "answer = {'a': nowhere}",
    "an error of syntax": "def answer(:",
    "a magic": "%timeit 1\nanswer = 1",
    "a shell": "!ls\nanswer = 1",
    "a changed object of an example's": "mesh['x'] = 5\nanswer = 1",
    "a while": "while True: pass\nanswer = 1",
    "a with": "with jax.set_mesh(3): pass\nanswer = 1",
    "a method that changes": "answer = []\nanswer.append(2)",
    "an assert": "assert print(1)\nanswer = 1",
    "a deletion": "answer = {}\ndel answer['a']",
    "a walrus": "answer = (mesh := 3)",
}


@pytest.mark.parametrize("own", WHOLE.values(), ids=WHOLE.keys())
def test_whatever_may_do_more_is_run_whole(own):
    # The example comes after, so that it can be touched by what the cell does.
    assert (
        slices(
            [
                Cell(IMPORTS, example=True),
                Cell("from grader import make, show", example=True),
                Cell(own),
                Cell(EXAMPLE, example=True),
                Cell("show(mesh)", example=True),
                Cell("answer", check="answer"),
            ]
        )
        is None
    )


def lesson_with(own: str, *later: str) -> list[Cell]:
    """A worked example, a cell of the student's own, worked examples behind it, and a check."""
    before = [Cell(source, example=True) for source in (IMPORTS, "from grader import make, show", EXAMPLE)]
    return [*before, Cell(own), *(Cell(source, example=True) for source in later), Cell("answer", check="answer")]


@pytest.mark.parametrize(
    "own, later, shown",
    [
        ("def answer(a): return a", ["show(mesh)"], []),
        ("def answer(a): return a", ["show(answer(1))"], [4]),
        ("def answer(a): return a", ["one = answer(1)", "show(mesh)", "show(one)"], [4, 6]),
        ("def answer(a): return a", ["def use(): return answer(1)", "show(use())"], [4, 5]),
        ("answer = mesh = 4", ["show(mesh)"], [4]),
        ("answer = mesh = 4", ["mesh = make(1)\nshow(mesh)"], []),
        ("import numpy as jax\nanswer = 1", ["show(jax)"], [4]),
        ("import jax\nanswer = 1", ["show(jax)"], []),
        ("def answer(a): return a", ["seen = make()", "seen.append(answer(1))", "show(seen)"], [5, 6]),
    ],
)
def test_worked_examples_are_run_that_use_what_a_student_wrote(own, later, shown):
    found = parts_of(lesson_with(own, *later))
    assert found is not None and found.shown == shown
    assert {3, *shown} <= {*found.for_shown} if shown else not found.for_shown


BEGINNING = "from grader import gather\n\ndef twice(a):\n    return 2 * gather(a)"


@pytest.mark.parametrize(
    "example, begun",
    [
        (f"{BEGINNING}\nshow(twice(mesh))", True),
        (f"{BEGINNING}\nseen = twice(mesh)\nshow(seen)", True),
        (f"{BEGINNING}\ngrader.show(twice)", True),
        (f"{BEGINNING}\ntwice = jax.jit(twice)", False),
        (f"{BEGINNING}\ntwice.known = 4", False),
        (f"{BEGINNING}\ntwice.defvjp(show, show)", False),
        (f"{BEGINNING}; show(mesh)", False),
        (f"{BEGINNING.replace('2 *', 'factor *')}\nfactor = 2", False),
    ],
)
def test_of_a_worked_example_only_the_imports_and_functions_run_that_an_answer_needs(example, begun):
    """But where its rest may change what they do."""
    cells = lesson_with("import grader\ndef answer(a): return twice(gather(a))")
    cells.insert(3, Cell(example, example=True))
    (part,) = parts_of(cells).answers.values()
    assert part.begun == ({3} if begun else set())
    assert plain_texts(cells, part)[part.cells.index(3)] == (BEGINNING if begun else ast.unparse(ast.parse(example)))


def test_the_beginning_of_an_example_stays_where_it_was_typed():
    """A replay shows its lines."""
    typed = "import jax  # all of it\n\n\ndef one(a):\n    return a  # as it is\n\n\n@one\nclass Two: ..."
    (text,) = typed_texts([Cell(typed, example=True)], CellNumbers((0,), frozenset({0})))
    assert typed.startswith(text) and text.rstrip().endswith("as it is")


def test_a_slice_holds_all_that_binds_what_it_needs_and_no_more():
    own = (
        "size = 4",
        "other = 5  # nobody needs it",
        "def helper(a): return a * size",
        "size = size + 1",
        "def answer(a): return jnp.sin(helper(a))",
    )
    assert parts(*own)["answer"] == (
        IMPORTS,
        own[0],
        "def helper(a):\n    return a * size",
        own[3],
        "def answer(a):\n    return jnp.sin(helper(a))",
    )


def test_a_check_sees_what_stands_before_it():
    found = slices([Cell("answer = 1"), Cell("answer", check="one"), Cell("answer = 2"), Cell("answer", check="two")])
    assert found == {"one": ("answer = 1",), "two": ("answer = 2",)}


AGAIN = {
    "a helper of the same name": (
        ["def go(a): return a", "def answer(a): return go(a)"],
        ["def go(a): return -a", "def other(a): return go(a)"],
        "other",
        [2, 3],
    ),
    "what a function calls is what there is at the check, and what there was": (
        ["def go(a): return a", "def answer(a): return go(a)"],
        ["def go(a): return -a"],
        "answer",
        [0, 1, 2],
    ),
    "what a cell reads is what there was": (["size = 2", "answer = {'a': size}"], ["size = 3"], "answer", [0, 1, 2]),
    "what is only added to": (["answer = {}", "answer['a'] = 1"], ["answer['b'] = 2"], "answer", [0, 1, 2]),
    "what is counted up": (["answer = 1", "answer += 1"], ["answer = answer + 1"], "answer", [0, 1, 2]),
    "imports that bind the same": (
        ["import jax\ndef first(a): return jax.jit(a)"],
        ["import jax\ndef answer(a): return jax.jit(a)"],
        "answer",
        [1],
    ),
    "an import of another thing": (
        ["import numpy as np\ndef first(a): return np.sin(a)"],
        ["import jax.numpy as np\ndef answer(a): return np.sin(a)"],
        "answer",
        [1],
    ),
    "what only a loop binds": (["answer = 1"], ["for answer in (): pass"], "answer", [0, 1]),
}


@pytest.mark.parametrize("first, second, expression, needed", AGAIN.values(), ids=AGAIN.keys())
def test_a_name_owes_its_meaning_to_the_last_cell_that_binds_it_afresh(first, second, expression, needed):
    sources = [*first, *second]
    parts = slices([Cell("import jax", example=True), *map(Cell, sources), Cell(expression, check="answer")])["answer"]
    own = [part for part in parts if part != "import jax"]
    assert own == [ast.unparse(ast.parse(sources[k])) for k in needed]


def test_where_a_solution_does_more_than_define_its_starter_stands_in():
    solved = [Cell("print(1)", example=True), Cell("one = 1"), Cell("two = print(2)"), Cell("two", check="two")]
    release = [solved[0], Cell("one = ..."), Cell("two = ..."), solved[3]]
    assert that_define(solved, release) == (solved[0], solved[1], release[2], solved[3])


def told_of(*own):
    """The numbers of the student's own cells that show something, and of the cells that these need."""
    found = parts_of([Cell(IMPORTS, example=True), *map(Cell, own), Cell("answer", check="answer")])
    return found and (found.told, found.for_told)


def test_what_a_student_prints_is_shown_with_what_it_needs_and_no_answer_needs_it():
    assert told_of("answer = 1", "rows = 3", "print(rows)") == ([3], [2, 3])
    assert told_of("answer = 1", "'a text'\n...") == ([], [])
    assert slices([Cell("answer = 1"), Cell("print(2)"), Cell("answer", check="answer")]) == {"answer": ("answer = 1",)}


def test_equal_slices_are_equal_whatever_their_comments():
    assert parts("answer = {'a':1} # mine") == parts("\n# hers\nanswer = {'a': 1}")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize(  # of whose worked examples some use an answer
    "name", [pytest.param(name, marks=in_turn(k, 2)) for k, name in enumerate(("10_explicit", "07_matmul"))]
)
def test_a_solved_lesson_answers_and_shows_the_same_whole_and_in_slices(root, store, name):
    lesson = lesson_of(root, name)
    setup = Setup(5, Limits(), store, lesson)
    sliced, whole = run_hand_in(lesson.solved, setup), perform(steps(lesson.solved, 5), Limits(), store)
    assert sliced.answers == whole.answers and len(whole.answers) > 9
    run = {k for k, cell in enumerate(lesson.solved) if cell.example} - set(sliced.spare_cells)
    assert sliced.outputs == {k: whole.outputs[k] for k in run} and run
    own = [k for k, cell in enumerate(lesson.solved) if not cell.example and not cell.check]
    assert all(whole.outputs[k] == [] for k in own)  # definitions show nothing


def test_a_slice_that_comes_again_is_run_by_itself_and_kept(root, tmp_path):
    lesson = lesson_of(root, "02_shardings")
    setup = Setup(5, Limits(), Store(tmp_path), lesson)
    runs = [running._in_slices(lesson.defined, setup, running.Clock(60)) for _ in range(3)]
    assert runs[0] == runs[1] == runs[2] and len(runs[0].answers) == 12
    assert len(list(tmp_path.glob("runs/*/*"))) == 1 + 12 + 1  # all at once, then each, and the worked examples


@pytest.mark.parametrize("tried, runs", [((), 1 + 2), (("(lambda: 1)()",), 1)], ids=["only defines", "does more"])
def test_an_answer_that_comes_again_is_watched_by_itself_and_kept(root, tmp_path, tried, runs):
    """Not where other cells than those that it needs may have a part in it: then all are watched in one run."""
    lesson = lesson_of(root, "07_matmul")
    cells, setup = (*map(Cell, tried), *lesson.defined), Setup(5, Limits(), Store(tmp_path), lesson)
    asked = {name: find(name) for name in ("case2_gather", "case3")}
    missed = {name: Watched(small_like(one, one.draw_cases(5)[0]), "values") for name, one in asked.items()}
    seen = [watch_answers(cells, missed, setup) for _ in range(3)]
    assert seen[0] == seen[1] == seen[2] and all(seen[0][name]["frames"] for name in missed)
    assert len(list(tmp_path.glob("runs/*/*"))) == runs


SHAPES = "shapes = []\nmesh = make(jax.devices())"
SPARED = {
    "what has nothing to do with it": (["print(1)"], "rows = 3\nshow(rows)", True),
    "what uses what it makes": (["rows = print(1)"], "show(rows)", False),
    "what uses what such an example makes": (["n = print(1)"], "show(shapes)", True),
    "what makes what it uses": (["print(rows)"], "rows = 3", False),
    "what makes what its function uses": (["def f(): return rows\nprint(f())"], "rows = 3", False),
    "what fills what it uses": (["print(mesh)"], "mesh['x'] = 3", False),
    "what has an object do something": (["print(shapes)"], "shapes.append(3)", False),
    "what makes what an answer uses": (["print(1)", "def answer(a): return a * rows"], "rows = 3", False),
    "what imports the same": (["import jax\nprint(jax)"], "import jax\nshow(jax)", True),
    "what imports another thing": (["import numpy as jnp\nprint(jnp)"], "show(jnp.ones(3))", False),
    "anything, if names are out of sight": (["print(globals())"], "rows = 3", False),
    "anything, if names are not told": (["from jax.numpy import *\nprint(1)"], "rows = 3", False),
    "anything, if it is no Python": (["%timeit 1"], "rows = 3", False),
}


@pytest.mark.parametrize("own, example, left_out", SPARED.values(), ids=SPARED.keys())
def test_an_example_is_spared_when_it_has_nothing_to_do_with_a_cell_that_runs(own, example, left_out):
    cells = [
        Cell(IMPORTS, example=True),
        Cell("from grader import make, show", example=True),
        Cell(SHAPES, example=True),
        *map(Cell, own),
        Cell(example, example=True),
        Cell("answer", check="answer"),
    ]
    assert (len(cells) - 2 in spare_examples(cells)) == left_out


def test_an_example_that_uses_what_a_deleted_one_made_is_run():
    examples = [Cell(source, example=True) for source in ("show(rows)", "columns = 3")]
    cells = [Cell("import jax", example=True), Cell("print(2)"), *examples]
    assert spare_examples(cells) == {0, 2, 3}
    assert spare_examples(cells, ["rows = 3"]) == {0, 3}


TRIED = [
    "mine = put(np.ones((8, 16), np.float32), P('x'), mesh)\nprint('all_gather' in bytes_sent)\nmine.sharding",
    *(
        pytest.param(tried, marks=pytest.mark.slow)
        for tried in ("print([n * n for n in range(4)])", "print(put)", "cut_a = None", "a_sharded + 1")
    ),
]


@pytest.mark.parametrize("tried", TRIED)
def test_a_hand_in_with_something_tried_out_comes_to_the_same_without_the_examples_spare_examples(root, store, tried):
    lesson = lesson_of(root, "07_matmul")
    cells = list(lesson.solved)
    cells.insert(len(cells) - 3, Cell(tried))
    run, whole = (
        run_hand_in(tuple(cells), Setup(5, Limits(), store, lesson)),
        perform(steps(cells, 5), Limits(), store),
    )
    assert run.spare_cells and run.answers == whole.answers
    # (Run slice by slice, a cell that shows nothing is not among the outputs.)
    own = {k: outputs for k, outputs in whole.outputs.items() if k not in run.spare_cells}
    assert {k: outputs for k, outputs in run.outputs.items() if outputs} == {k: o for k, o in own.items() if o}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(p.stem for p in (Path(__file__).parents[2] / "solutions").glob("*/*.ipynb")))
def test_in_every_lesson_something_may_be_tried_out(root, name):
    """Everything is graded as it is when the whole notebook runs."""
    solved, release = (nbformat.read(root / folder / name / f"{name}.ipynb", 4) for folder in ("solutions", "course"))
    solved.cells.insert(len(solved.cells) // 2, nbformat.v4.new_code_cell("tried = 1\nprint(tried)"))
    quick, whole = (
        grade_notebook(copy.deepcopy(solved), Grading(release, 5, lesson=lesson), shared_judge(), Store(None))
        for lesson in (lesson_of(root, name), Lesson())
    )
    assert all(verdict.passed for verdict in quick.verdicts)
    assert [verdict.outcomes for verdict in quick.verdicts] == [verdict.outcomes for verdict in whole.verdicts]
    stored = lesson_of(root, name).outputs
    for cell, as_whole in zip(quick.notebook.cells, whole.notebook.cells, strict=True):
        assert shown(cell) == shown(as_whole) or cell.outputs == harmless_outputs(stored[cell.source])


def shown(cell):
    """What a cell shows, without the lines of an error, which count the cells before it."""
    return [{**output, "traceback": []} for output in cell.get("outputs", [])]


def test_an_error_is_met_in_a_whole_run(root, store):
    lesson = lesson_of(root, "07_matmul")
    cells = (*lesson.solved, Cell("print(1)\nnowhere"))
    run = run_hand_in(cells, Setup(5, Limits(), store, lesson))
    assert run == perform(steps(cells, 5), Limits(), store)
    assert run.outputs[len(cells) - 1][-1]["ename"] == "NameError"


def test_with_one_switch_everything_is_run_whole(root, monkeypatch):
    lesson, store = lesson_of(root, "02_shardings"), Store(None)
    monkeypatch.setattr(running, "SHORTCUTS", ())
    run = run_hand_in(lesson.solved, Setup(5, Limits(), store, lesson))
    assert not run.spare_cells and run == perform(steps(lesson.solved, 5), Limits(), store)
