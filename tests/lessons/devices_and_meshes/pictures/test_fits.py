"""The models of the devices: one curve if all are the same, and one for each if they differ."""

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader import draw

MESH = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
POSITIONS, INPUTS, TARGETS = np.arange(8), np.ones((8, 1)), np.arange(8) / 7


def weights(*values):
    """One weight, of which each device holds its own value."""
    own = [jax.device_put(np.full(1, value, np.float32), d) for value, d in zip(values, MESH.devices, strict=True)]
    return jax.make_array_from_single_device_arrays((1,), NamedSharding(MESH, P()), own)


def drawn(picture):
    return [line.get_gid() for line in picture.figure.axes[0].lines if line.get_gid()]


def test_replicas_that_agree_are_one_model():
    picture = draw.fits(POSITIONS, INPUTS, TARGETS, weights(0.5, 0.5, 0.5, 0.5))
    assert "all devices have the same model" in repr(picture) and "loss on all examples 0.11" in repr(picture)
    assert [gid for gid in drawn(picture) if gid.startswith("model")] == ["model of devices 0, 1, 2, 3"]


def test_replicas_that_differ_are_models_of_their_own():
    picture = draw.fits(POSITIONS, INPUTS, TARGETS, weights(0.2, 0.4, 0.2, 0.8))
    assert repr(picture).splitlines()[0] == "the devices have 3 different models"
    assert [gid for gid in drawn(picture) if gid.startswith("model")] == [
        "model of devices 0, 2",
        "model of device 1",
        "model of device 3",
    ]


def test_an_example_has_the_color_of_its_device():
    lines = draw.fits(POSITIONS, INPUTS, TARGETS, weights(1, 1, 1, 1)).figure.axes[0].lines
    dots = [line for line in lines if str(line.get_gid()).startswith("examples")]
    assert [len(line.get_xdata()) for line in dots] == [2, 2, 2, 2]
    assert len({line.get_markerfacecolor() for line in dots}) == 4
