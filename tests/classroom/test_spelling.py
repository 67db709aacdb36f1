"""What students call things inside their functions makes no two programs of one."""

import pytest

from grader.classroom.course.cells import Cell, parse_cells
from grader.classroom.course.spelling import as_spelled, spelling_of
from grader.classroom.grading.execute import lesson_of
from grader.classroom.inside.limits import Limits
from grader.classroom.runs.run import Setup, run_hand_in
from grader.classroom.store import Store


def spelled(source, example=False):
    (text,) = parse_cells([source])
    return spelling_of(Cell(source, example=example), text)


ALIKE = {
    "a variable": ("def f(x):\n    y = x\n    return y", "def f(x):\n    z = x\n    return z"),
    "a function inside": (
        "def f(x):\n    def g(a):\n        b = a\n        return b\n    return g(x)",
        "def f(x):\n    def body(a):\n        it = a\n        return it\n    return body(x)",
    ),
    "one that an inner function uses": (
        "def f(x):\n    n = 3\n    return jax.jit(lambda a: a * n)(x)",
        "def f(x):\n    count = 3\n    return jax.jit(lambda a: a * count)(x)",
    ),
    "one of a comprehension": ("def f(x):\n    return [i for i in x]", "def f(x):\n    return [k for k in x]"),
    "one that is read before another is made": (
        "def f(x):\n    for a in x:\n        b = a\n    return b",
        "def f(x):\n    for b in x:\n        a = b\n    return a",
    ),
}


LOOKED_AT = [
    "def f(x):\n    y = x\n    return dir()",
    "def f(x):\n    y = x\n    return inspect.currentframe()",
    "def f(x):\n    y = (a for a in x)\n    return y.gi_frame",
    "def f(x):\n    def body(a):\n        return a\n    return repr(body)",
    "def f(x):\n    def body(a):\n        return a\n    return f'{body}'",
    "def f(x):\n    def body(a):\n        return a\n    return body",
    "def f(x):\n    def body(a):\n        return a\n    other = body\n    return str(other)",
]


@pytest.mark.parametrize("source", LOOKED_AT)
def test_a_name_that_is_looked_at_stays(source):
    """Or the function would do in grading what it does not do in the notebook."""
    name = "body" if "body" in source else "y"
    assert name not in spelled(source).names.values()


def test_a_function_that_jax_calls_may_be_called_otherwise():
    mapped = "def f(x):\n    def {0}(a):\n        return a\n    return jax.jit({0})(x)"
    assert spelled(mapped.format("body")).plain == spelled(mapped.format("local")).plain


@pytest.mark.parametrize("one, other", ALIKE.values(), ids=ALIKE.keys())
def test_functions_that_call_things_otherwise_are_the_same(one, other):
    assert spelled(one).plain == spelled(other).plain
    assert spelled(one).names.keys() == spelled(other).names.keys() and spelled(one).names != spelled(other).names


UNLIKE = {
    "a parameter, which a caller may name": "def f({}):\n    return {}",
    "one from outside": "def f(x):\n    return x + {}",
    "one from outside in a default": "def f(x, n={}):\n    y = n\n    return y",
    "one that a function inside has from outside": "def f(x):\n    a = [{0} for {0} in x]\n    return {0}",
    "an attribute": "def f(x):\n    y = x\n    return y.{}",
    "one that a text shows": "def f(x):\n    {0} = x\n    return f'{{{0}=}}'",
    "an import": "def f(x):\n    import math as {0}\n    return {0}.pi",
    "an error": "def f(x):\n    try:\n        return x\n    except ValueError as {0}:\n        return {0}",
    "one that Python is asked for": "def f(x):\n    {0} = 3\n    return f.__code__.co_varnames",
    "a variable of the notebook": "{} = 3",
    "what a worked example calls things": None,
}


@pytest.mark.parametrize("source", UNLIKE.values(), ids=UNLIKE.keys())
def test_what_may_be_seen_from_outside_keeps_its_name(source):
    if example := source is None:
        source = "def f(x):\n    {0} = x\n    return {0}"
    assert spelled(source.format("one", "one"), example).plain != spelled(source.format("two", "two"), example).plain


def test_a_number_that_somebody_uses_is_none():
    source = "def f(x):\n    y = x + f_0\n    return y"
    assert spelled(source).plain == source and not spelled(source).names


def test_a_message_has_the_names_that_were_written():
    names = spelled("def f(x):\n    def body(a):\n        größe = a\n    return body(x)").names
    message = {"error": ["f.<locals>.f_0() takes 1", "f_1 and f_10\nf_1 \\f_1", "\x1b[30;43mf_0\x1b[39m", 3]}
    assert as_spelled(message, names) == {
        "error": ["f.<locals>.body() takes 1", "größe and f_10\ngröße \\größe", "\x1b[30;43mbody\x1b[39m", 3]
    }


WRONG = "def case3(a, b, *, mesh):\n    def {0}(x):\n        {1} = x\n        return {1}\n    return {0}(a, b)"


def test_a_hand_in_of_other_names_is_not_run_again_and_its_author_reads_her_own(root, tmp_path):
    lesson = lesson_of(root, "07_matmul")
    setup = Setup(5, Limits(), Store(tmp_path), lesson)
    place = next(k for k, cell in enumerate(lesson.solved) if "def case3(" in cell.source)

    def run(*names):
        cells = list(lesson.solved)
        cells[place] = Cell(WRONG.format(*names))
        return run_hand_in(tuple(cells), setup), len(list(tmp_path.glob("runs/*/*")))

    (first, _), (second, count) = run("body", "mine"), run("inner", "yours")
    third, same = run("of_a_block", "part")
    assert same == count  # the second one's slices were run each by itself, and kept
    for one, name in ((first, "body"), (second, "inner"), (third, "of_a_block")):
        assert f"{name}() takes 1 positional argument" in str(one.answers["case3"])
        assert "case3_0" not in str(one.outputs)
