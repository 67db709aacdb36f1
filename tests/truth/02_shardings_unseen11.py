"""Answers to lesson 02, eleventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# --------------------------------------------------------------- legal_or_not

legal_or_not__right_reasoned = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine" if 10 % 2 == 0 and 8 % 4 == 0 else "does not divide",
    "(12, 2) as P(('x', 'y'))": "fine" if 12 % (4 * 2) == 0 else "does not divide",
    "a 4 × 4 mesh": "fine" if 4 * 4 <= 8 else "too few devices",
}

# thought that a None at the end never matters, since it may be left out
legal_or_not__wrong_none = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "fine",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# remembered that ten rows do not make four blocks, and took the rows for cut by x, whatever the spec says
legal_or_not__wrong_rows = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "does not divide",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# thought that with a tuple each axis has to divide the length, and not their product: 12 % 4 == 0 and 12 % 2 == 0
legal_or_not__wrong_tuple = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "fine",
    "a 4 × 4 mesh": "too few devices",
}

# thought that a name which the mesh does not have cuts nothing: names are free, and mean nothing to JAX
legal_or_not__wrong_names = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "fine",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# ----------------------------------------------------------------- attributes

_fresh = jnp.ones((16, 8))
_cut = jax.device_put(_fresh, NamedSharding(mesh, P("y")))

attributes__right_asked = {
    "len(cut.devices())": len(_cut.devices()),
    "cut.shape": _cut.shape,
    "len(cut.addressable_shards)": len(_cut.addressable_shards),
    "cut.addressable_shards[5].data.shape": _cut.addressable_shards[5].data.shape,
    "cut.is_fully_replicated": _cut.is_fully_replicated,
    "jnp.sin(cut).addressable_shards[5].data.shape": jnp.sin(_cut).addressable_shards[5].data.shape,
}

# thought that shards are the different blocks, of which P("y") makes two, and that copies are no shards
attributes__wrong_blocks = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 2,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# thought that y is the name for columns, so that P("y") cuts the second dimension
attributes__wrong_columns = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (16, 4),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 4),
}

# thought that fully replicated means: every block has copies on other devices
attributes__wrong_replicated = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": True,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# thought that the result of a jnp function is a new array, and whole on each device until one lays it out again
attributes__wrong_sin = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 8),
}

# ------------------------------------------------------------ tutorial_faults

# block 1 under P(("y", "x")): 4·y + x == 1, so that x = 1, y = 0, and the device is 2·x + y
tutorial_faults__right_worked = {
    "figure": P(("y",), "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 4 * 2,
    "in_order": next(2 * i + j for i in range(4) for j in range(2) if 4 * j + i == 1),
}

# saw that y comes before x in the figure, and wrote them in one tuple, as if that cut rows and columns
tutorial_faults__wrong_tuple = {
    "figure": P(("y", "x")),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 2,
}

# thought that == compares layouts, and these are one layout
tutorial_faults__wrong_equal = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": True,
    "nbytes": 8,
    "in_order": 2,
}

# numbered the devices as on the 2 × 4 mesh of part 3, by 4·x + y: place (1, 0) is device 4 there
tutorial_faults__wrong_mesh = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 4,
}

# thought that nbytes counts the copies already, so that the devices hold it once together
tutorial_faults__wrong_nbytes = dict(
    figure=P("y", "x"), type="Mesh", replicate="the same block", equal=False, nbytes=1, in_order=2
)
