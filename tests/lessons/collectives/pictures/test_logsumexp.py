"""log Σ exp of a row that no device has, drawn."""

import jax
import numpy as np
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_hex

from grader import draw
from grader.arrays.meshes import make_mesh, put
from grader.draw.collectives import STRIP
from grader.draw.picture import COLOURS
from grader.lessons.collectives.pictures.logsumexp import Boiled

ROW = np.float32([12, 150, 149, 3, 148, 20, 151, 7])
LINE = make_mesh({"x": 4})


def test_what_is_boiled_down_comes_to_the_same():
    facts = Boiled(tuple(np.split(ROW, 4)), 4)
    assert facts.most == [150, 149, 148, 151]
    assert np.isclose(facts.result, jax.nn.logsumexp(ROW))


def test_the_words_have_what_is_sent_and_what_comes_of_it():
    told = repr(draw.logsumexp(put(ROW, P("x"), LINE), "a title")).splitlines()
    assert told[0] == "a title" and told[-1] == "  largest + log Σ = 151.44"
    assert "  pmax, 4 B from each device: 151" in told


def test_what_both_collectives_give_is_made_of_one_number_from_each_device():
    (ax,) = draw.logsumexp(put(ROW, P("x"), LINE)).figure.axes
    bands = [to_hex(patch.get_facecolor()) for patch in ax.patches if patch.get_height() == STRIP]
    assert bands == 2 * list(COLOURS[:4])
