"""A function is taken out of a notebook with all that it needs, and runs on its own."""

import pytest

from grader.guide.carving import carved

CELLS = [
    "import math\nimport numpy as np\nfrom functools import partial as part",
    "x = [1, 2, 3]\nunused = 1 / 3",
    "FACTOR = 2\n\ndef helper(v):\n    return FACTOR * v",
    "%matplotlib inline",
    "@part(lambda f: f)\ndef answer(x):\n    def own(y):\n        return helper(y) + math.pi\n"
    "    return list(map(own, x))",
    "FACTOR = 3",
    "print(answer(x))",
]


def test_the_source_runs_alone_and_does_what_it_did():
    space: dict = {}
    exec(carved("answer", CELLS), space)
    assert space["answer"]([1.0]) == [3 + space["math"].pi]


def test_what_is_not_needed_is_not_there():
    source = carved("answer", CELLS)
    assert "numpy" not in source, "a module that the function never reads"
    assert "unused" not in source and "x = " not in source, "its x is its own"


def test_order_is_the_notebooks_and_the_last_binding_counts():
    source = carved("answer", CELLS)
    assert source.count("FACTOR =") == 1
    order = [source.index(part) for part in ("import math", "as part", "def helper", "@part", "FACTOR = 3")]
    assert order == sorted(order)


@pytest.mark.parametrize("cells", [[], ["other = 1"], ["def (:"], ["answer\0 = 1"]])
def test_a_name_that_no_cell_defines_has_no_source(cells):
    assert carved("answer", cells) == ""


def test_functions_that_call_each_other_and_themselves_come_once():
    cells = ["def even(n):\n    return n == 0 or odd(n - 1)", "def odd(n):\n    return n != 0 and even(n - 1)"]
    assert carved("even", cells).count("def ") == 2


def test_a_class_an_unpacking_and_a_loop_bind_names():
    cells = ["class Kept:\n    value = 7", "one, (two, *rest) = 1, (2, 3)", "for step in range(3):\n    total = step"]
    space: dict = {}
    exec(carved("f", [*cells, "def f():\n    return Kept.value, two, rest, total"]), space)
    assert space["f"]() == (7, 2, [3], 2)


def test_it_reads_as_a_file_does():
    cells = ["import math\nimport random", "def one():\n    return math.pi", "def two():\n    return one(), random"]
    assert carved("two", cells) == f"import math\nimport random\n\n\n{cells[1]}\n\n\n{cells[2]}"
