"""Review questions of 03_placement, and that its questions are about the arrays of its notebook."""

from pathlib import Path

import nbformat
import numpy as np

from grader.guide.reviews import makers
from grader.lessons.placement import whereabouts as placement
from grader.lessons.placement.whereabouts import HOLDERS, INSIDE, MEETINGS, STATUS, TRAVELS

NOTEBOOK = Path(__file__).parents[3] / "solutions" / "03_placement" / "03_placement.ipynb"


def test_the_answer_is_the_one_that_why_explains():
    for maker in makers()["03_placement"]:
        for seed in range(20):
            q = maker(np.random.default_rng(seed))
            if maker.name == "may_they_meet":
                assert (q.answer == "runs") is q.why.startswith("One list")
            if maker.name == "is_it_committed":
                assert q.answer is (q.why.startswith("One committed") or q.why.startswith("Today"))


def test_the_notebooks_arrays_are_those_that_the_questions_are_about():
    space = {}
    for cell in nbformat.read(NOTEBOOK, 4).cells:
        if cell.cell_type == "code" and not cell.metadata.get("check"):
            exec(cell.source, space)
    lab = placement.lab()
    for name, array in lab.items():
        if hasattr(array, "addressable_shards") and name in space:
            theirs = space[name]
            assert theirs.sharding == array.sharding and theirs.committed == array.committed, name
            assert np.array_equal(theirs, array), name
    for row in (*HOLDERS, *STATUS, *MEETINGS, *INSIDE, *TRAVELS):
        names = set(compile(row.rpartition(": ")[2] if row.startswith("with") else row, row, "eval").co_names)
        assert names & set(lab) - {"jax", "jnp", "np", "NamedSharding", "P"} <= set(space), row
