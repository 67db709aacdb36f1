"""log Σ exp of a row that no device has, drawn."""

import jax
import numpy as np
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_hex

from grader import draw
from grader.arrays.meshes import make_mesh, put
from grader.draw.logsumexp import Boiled
from grader.draw.picture import OF_KIND

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


def test_both_collectives_have_the_colour_of_an_all_reduce_across_all_devices():
    (ax,) = draw.logsumexp(put(ROW, P("x"), LINE)).figure.axes
    wide = max(patch.get_width() for patch in ax.patches)
    across = [to_hex(patch.get_facecolor()) for patch in ax.patches if patch.get_width() == wide]
    assert across == [OF_KIND["all_reduce"]] * 2
