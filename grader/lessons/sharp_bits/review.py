"""What later lessons ask about 20_sharp_bits."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from grader.questions import Question, core, stretch

LESSON = "20_sharp_bits"


@core("own_numbers")
def fold_in_what(rng: np.random.Generator) -> Question:
    """Which places of the mesh have to draw different numbers."""
    cut, other = rng.permutation(["x", "y"]).tolist()
    sizes = {name: int(rng.choice([2, 4, 8])) for name in (cut, other)}
    rows = int(rng.choice([16, 24, 32]))
    return Question(
        f"On a mesh {cut}={sizes[cut]}, {other}={sizes[other]} an array of {rows} rows is cut over {cut} "
        "only. Inside shard_map each block gets noise, copies staying copies. Which axis' index is folded "
        "into the key?",
        cut,
        f"Along {cut} the blocks differ, so their noise should; along {other} are copies, which have to draw alike.",
    )


@core("recompiles")
def cache_entries(rng: np.random.Generator) -> Question:
    """How often a jitted function is traced anew."""
    specs = ['P("x")', 'P("y")', "P()", 'P("x", "y")']
    layouts, times = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    listed = ", ".join(specs[:layouts])
    return Question(
        f"f = jax.jit(...) is called {times} times with each of the layouts {listed} of a float32[8,8], "
        "always with other values. How many entries has its cache?",
        layouts,
        "Shape, dtype and layout make the program; values do not.",
    )


@stretch("int_pmean")
def narrow_sum(rng: np.random.Generator) -> Question:
    """What a psum of int8 gives."""
    devices, value = int(rng.choice([2, 4, 8])), int(rng.integers(40, 128))
    answer = int(jnp.full(devices, value, jnp.int8).sum(dtype=jnp.int8))
    return Question(
        f"{devices} devices hold {value} each, as int8. What does a psum give on every device?",
        answer,
        f"{devices} · {value} = {devices * value} is brought into -128 … 127 in steps of 256: psum adds in "
        "the dtype that came in.",
    )


@stretch("agree")
def allowed_difference(rng: np.random.Generator) -> Question:
    """How many units of 2⁻²⁴ two right sums may differ from the exact one."""
    devices, each, largest = int(rng.choice([4, 8])), int(rng.choice([100, 250, 500])), int(rng.choice([1, 2, 4]))
    return Question(
        f"{devices} devices add {each} float32 each, and then comes a psum; the largest entry expected is "
        f"{largest}. Counting a rounding for every number added: how far off may an entry be, in units of "
        "2⁻²⁴?",
        devices * each * largest,
        f"{devices} · {each} roundings of at most 2⁻²⁴ each, relative to the largest entry, {largest}.",
    )
