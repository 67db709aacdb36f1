"""§ 7–9: what every device must agree on, and what it must not: random numbers, norms, memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import NOT_IN_PLACE, OnDevices, OnMesh
from grader.exercises import Array, BytesSent, Case, EitherWay, FunctionExercise, ProgramExercise
from grader.lessons.data_parallel.steps import AXES, descend
from grader.lessons.shared import bytes_sent, loss
from grader.transformer.runs import compiled

KEEP = 0.75

# Random numbers: the same parameters everywhere, and a mask for each example that is nobody else's.


def _masks(key, rows, hidden):
    """For each row, named by its number, a mask of its own."""
    return jax.vmap(lambda row: jax.random.bernoulli(jax.random.fold_in(key, row), KEEP, (hidden,)))(rows)


def _dropped(h, keep):
    return jnp.where(keep, h / KEEP, 0)


def _keys(key_data):
    return jax.random.split(jax.random.wrap_key_data(key_data))


def _initialised(key, x, hidden):
    return jax.random.normal(key, (x.shape[1], hidden)) / 8


def _with_dropout(key_data, x, hidden):
    init_key, mask_key = _keys(key_data)
    w = _initialised(init_key, x, hidden)
    return {"w": w, "h": _dropped(x @ w, _masks(mask_key, jnp.arange(x.shape[0]), hidden))}


dropout_rng = ProgramExercise("dropout_rng", points=5, reference=jax.jit(_with_dropout, static_argnums=2))


@dropout_rng.cases
def _(draw):
    mesh, (rows, features, hidden) = draw.mesh(*AXES), draw.lengths(3, divisible_by=8)
    key = draw.rng.integers(2**32, size=2, dtype=np.uint32)
    return Case(
        {"key_data": Array(key, P()), "x": Array(draw.values(rows, features) / 8, P("data")), "hidden": hidden},
        mesh,
        {"w": P(), "h": P("data")},
        limits=[EitherWay(), BytesSent(0)],
    )


def _drawn(masks, key_data, x, *, hidden, mesh, init=lambda key: key, scale=KEEP, keys=_keys, check_vma=False):
    """`masks(key, x, hidden)` makes a device's masks; `init` what becomes of the key of the parameters."""

    def on_device(key_data, x):
        init_key, mask_key = keys(key_data)
        w = _initialised(init(init_key), x, hidden)
        return {"w": w, "h": jnp.where(masks(mask_key, x, hidden), x @ w / scale, 0)}

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")}, check_vma=check_vma
    )(key_data, x)


def _rows(x):
    """The numbers, in the whole batch, of the rows that a device holds."""
    return lax.axis_index("data") * x.shape[0] + jnp.arange(x.shape[0])


def _by_row(key, x, hidden):
    return _masks(key, _rows(x), hidden)


@dropout_rng.mistake
def same_rows_on_every_shard(*arrays, hidden, mesh, check_vma=False):
    """All shards got the same masks: example 0 of one and example 0 of the next lose the same units. From which number
    does each device count its rows? What is the number of its first row in the whole batch?"""
    return _drawn(
        lambda key, x, hidden: _masks(key, jnp.arange(x.shape[0]), hidden),
        *arrays,
        hidden=hidden,
        mesh=mesh,
        check_vma=check_vma,
    )


@dropout_rng.mistake
def one_key_for_all(*arrays, hidden, mesh, check_vma=False):
    """The shards' masks are copies of each other. With the same key every device draws the same numbers for its block:
    what could go into the key that differs from example to example?"""

    def masks(key, x, hidden):
        return jax.random.bernoulli(key, KEEP, (x.shape[0], hidden))

    return _drawn(masks, *arrays, hidden=hidden, mesh=mesh, check_vma=check_vma)


@dropout_rng.mistake
def a_key_for_each_shard(*arrays, hidden, mesh, check_vma=False):
    """A key for each shard: the masks differ, as they should, and much code does this. But on another number of devices
    the same example gets another mask, so no run can be held against a single device's. Fold in what belongs to the
    *example*."""

    def masks(key, x, hidden):
        return jax.random.bernoulli(jax.random.fold_in(key, lax.axis_index("data")), KEEP, (x.shape[0], hidden))

    return _drawn(masks, *arrays, hidden=hidden, mesh=mesh, check_vma=check_vma)


@dropout_rng.mistake
def rows_from_the_devices_number(*arrays, hidden, mesh, check_vma=False):
    """Rows are counted from the device's number on: device 1 begins at row 1, which device 0 has as well. Device 1
    holds *block* 1: how many rows stand before it?"""

    def masks(key, x, hidden):
        return _masks(key, lax.axis_index("data") + jnp.arange(x.shape[0]), hidden)

    return _drawn(masks, *arrays, hidden=hidden, mesh=mesh, check_vma=check_vma)


@dropout_rng.mistake
def keys_exchanged(*arrays, hidden, mesh, check_vma=False):
    """The two keys are in each other's place: the second made the parameters, and the first the masks. In which order
    does the exercise take them from `split`?"""

    def keys(key_data):
        return _keys(key_data)[::-1]

    return _drawn(_by_row, *arrays, hidden=hidden, mesh=mesh, keys=keys, check_vma=check_vma)


@dropout_rng.mistake
def never_split(*arrays, hidden, mesh, check_vma=False):
    """The key that came was used as it is, for the parameters and for the masks. A key is used once: `split` makes two
    new ones of it. Which is for what?"""

    def keys(key_data):
        return (jax.random.wrap_key_data(key_data),) * 2

    return _drawn(_by_row, *arrays, hidden=hidden, mesh=mesh, keys=keys, check_vma=check_vma)


@dropout_rng.mistake
def folded_into_the_parameters(*arrays, hidden, mesh, check_vma=False):
    """The device's number went into the key of the *parameters* too: along `data` every device starts with another
    network. The check, if it is on, says so: out_specs promise copies. Which of the two draws must not know who is
    drawing?"""
    return _drawn(
        _by_row,
        *arrays,
        hidden=hidden,
        mesh=mesh,
        check_vma=check_vma,
        init=lambda key: jax.random.fold_in(key, lax.axis_index("data")),
    )


@dropout_rng.mistake
def not_scaled_up(*arrays, hidden, mesh, check_vma=False):
    """The right units are dropped, but those that stay are not divided by the probability to stay: on average, less is
    left of an entry with dropout than without."""
    return _drawn(_by_row, *arrays, hidden=hidden, mesh=mesh, scale=1, check_vma=check_vma)


# The norm of all gradients together, some leaves whole on every device, some cut over the model axis.

LEAVES = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
WHOLE = [name for name, spec in LEAVES.items() if "model" not in tuple(spec)]


def _clipped(gradients, limit):
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), gradients), norm


clip_by_global_norm = ProgramExercise("clip_by_global_norm", points=5, reference=jax.jit(_clipped))


@clip_by_global_norm.cases
def _(draw):
    mesh, (features, hidden, out) = draw.mesh(*AXES), draw.lengths(3, divisible_by=8)
    shapes = {"W1": (features, hidden), "b1": (hidden,), "W2": (hidden, out), "b2": (out,)}
    # The last bias has a good part of the norm, so that counting its copies tells.
    values = {name: draw.values(*shape) * (4 if name == "b2" else 1) / 32 for name, shape in shapes.items()}
    norm = float(np.sqrt(sum((v**2).sum() for v in values.values())))
    few = bytes_sent("all_gather", len(LEAVES), mesh["data"] * mesh["model"])  # a number of each leaf, to everybody
    # Shorter than 1 and above the limit, longer than 1 and below it; the last has no length to divide by.
    for scale, limit in ((1 / 32, norm / 80), (1, norm * 2), (0, 1.0)):
        yield Case(
            {"gradients": {name: Array(v * scale, LEAVES[name]) for name, v in values.items()}, "limit": limit},
            mesh,
            (LEAVES, P()),
            limits=[EitherWay(), BytesSent(few)],
            roundings=features * hidden + hidden * out,
        )  # a sum of squares of so many


def _squares(gradients, names):
    return sum(jnp.sum(gradients[name] ** 2) for name in names)


def _clip(norm_of, gradients, *, limit, mesh, factor=None, check_vma=False):
    def on_device(gradients):
        norm = norm_of(gradients)
        scale = factor(norm, limit) if factor else jnp.minimum(1, limit / norm)
        return {name: g * scale for name, g in gradients.items()}, norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LEAVES,), out_specs=(LEAVES, P()), check_vma=check_vma)(
        gradients
    )


CUT_LEAVES = [name for name in LEAVES if name not in WHOLE]


def _norm(gradients):
    return jnp.sqrt(_squares(gradients, WHOLE) + lax.psum(_squares(gradients, CUT_LEAVES), "model"))


@clip_by_global_norm.mistake
def local_norms(gradients, *, limit, mesh, check_vma=False):
    """The parts of one matrix are scaled by different numbers: each device's norm lacks the squares of the others'
    parts. With the check on, JAX refuses. Over which axis is a matrix cut, and what has to be summed over that one?"""
    return _clip(lambda g: jnp.sqrt(_squares(g, LEAVES)), gradients, limit=limit, mesh=mesh, check_vma=check_vma)


@clip_by_global_norm.mistake
def made_one_row_of_a_matrix(gradients, *, limit, mesh):
    """The values are right, but a whole matrix is gathered. Does something make one long row of it (`vdot`, `ravel` or
    `reshape` do)? A matrix that is cut by columns has no row that is on one device. Which sum of squares does not care
    where an entry stands?"""
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradients)))
    shorter = jnp.minimum(1, limit / norm)
    return {
        name: lax.with_sharding_constraint(shorter * g, NamedSharding(mesh, LEAVES[name]))
        for name, g in gradients.items()
    }, norm


@clip_by_global_norm.mistake
def sum_of_norms(gradients, *, limit, mesh, check_vma=False):
    """Each device took a norm, and these were added up. Norms do not add: two perpendicular steps of 3 and 4 lead 5
    away. Their squares do. Where does the square root belong?"""
    return _clip(
        lambda g: lax.psum(jnp.sqrt(_squares(g, LEAVES)), "model"),
        gradients,
        limit=limit,
        mesh=mesh,
        check_vma=check_vma,
    )


@clip_by_global_norm.mistake
def counted_every_copy(gradients, *, limit, mesh, check_vma=False):
    """The squares of `b2` are in the norm once for each device along `model`, for it is whole on every one of them.
    (The check of shard_map does not mind.) What goes through the psum? Which leaves are parts, and which are copies?"""
    return _clip(
        lambda g: jnp.sqrt(lax.psum(_squares(g, LEAVES), "model")),
        gradients,
        limit=limit,
        mesh=mesh,
        check_vma=check_vma,
    )


@clip_by_global_norm.mistake
def summed_over_the_data_axis_too(gradients, *, limit, mesh, check_vma=False):
    """Each square of the matrices counts once for every device along `data`. Gradients are averaged before they are
    clipped, and along `data` all devices hold the same. Over which axes is the sum?"""

    def norm(g):
        return jnp.sqrt(_squares(g, WHOLE) + lax.psum(_squares(g, CUT_LEAVES), ("data", "model")))

    return _clip(norm, gradients, limit=limit, mesh=mesh, check_vma=check_vma)


@clip_by_global_norm.mistake
def summed_over_the_data_axis_only(gradients, *, limit, mesh, check_vma=False):
    """A device's own squares count once for every device along `data`, where all hold the same parts. Over which axis
    are these matrices cut? There are the squares that are missing."""

    def norm(g):
        return jnp.sqrt(_squares(g, WHOLE) + lax.psum(_squares(g, CUT_LEAVES), "data"))

    return _clip(norm, gradients, limit=limit, mesh=mesh, check_vma=check_vma)


@clip_by_global_norm.mistake
def leaf_by_leaf(gradients, *, limit, mesh, check_vma=False):
    """Every leaf was clipped by a norm of its own, so the direction of the step changed. One norm of all of them
    together, and one factor for all."""

    def on_device(gradients):
        norms = {
            name: jnp.sqrt(lax.psum(jnp.sum(g**2), "model") if name in CUT_LEAVES else jnp.sum(g**2))
            for name, g in gradients.items()
        }
        clipped = {name: g * jnp.minimum(1, limit / norms[name]) for name, g in gradients.items()}
        return clipped, jnp.sqrt(sum(n**2 for n in norms.values()))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LEAVES,), out_specs=(LEAVES, P()), check_vma=check_vma)(
        gradients
    )


def _quotient(norm, limit):
    """The limit over the norm; a very large number where the norm is 0, since 0 / 0 is another mistake."""
    return limit / jnp.maximum(norm, 1e-30)


@clip_by_global_norm.mistake
def scaled_up_as_well(gradients, *, limit, mesh, check_vma=False):
    """Short gradients were stretched to the limit, too. To clip is to shorten what is too long, and to leave the rest
    as it is: the factor is never more than 1."""
    return _clip(_norm, gradients, limit=limit, mesh=mesh, factor=_quotient, check_vma=check_vma)


@clip_by_global_norm.mistake
def forgot_the_root(gradients, *, limit, mesh, check_vma=False):
    """This is the sum of the squares, and the gradients were scaled by it. A norm has the unit of what it measures:
    twice the gradients, twice the norm. What is missing?"""
    return _clip(lambda g: _norm(g) ** 2, gradients, limit=limit, mesh=mesh, check_vma=check_vma)


@clip_by_global_norm.mistake
def norm_of_the_clipped(gradients, *, limit, mesh, check_vma=False):
    """The gradients are right. The norm returned is the one that they have *after* they were clipped, which is never
    more than the limit and so tells nothing. Whose norm would you want to see in a log?"""
    clipped, norm = _clip(_norm, gradients, limit=limit, mesh=mesh, check_vma=check_vma)
    return clipped, jnp.minimum(norm, limit)


# A state that exists once: each step writes over the one before.

MESH = OnMesh({"data": 8})
BETA, STATE_RATE = 0.5, 1 / 64


def _momentum_step(state, batch):
    gradients = jax.grad(loss)(state["params"], batch["x"], batch["y"])
    velocity = jax.tree.map(lambda v, g: BETA * v + g, state["velocity"], gradients)
    return {"params": descend(state["params"], velocity, STATE_RATE), "velocity": velocity}


def _kept(state) -> int:
    """How many arrays of a state still exist."""
    return sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


def _in_place(state, batches, step=None, **how):
    step, given = step or compiled(_momentum_step, donate_argnums=0, **how), state
    for batch in batches:
        state = step(state, batch)
    return state, _kept(given)


donate = FunctionExercise("donate", points=4, reference=_in_place, barred=NOT_IN_PLACE)


@donate.cases
def _(draw):
    for count in (2, 3):
        features, out, rows = (int(8 * k) for k in draw.rng.choice([1, 2, 3, 4], size=3, replace=False))
        shapes = {"W": (features, out), "b": (out,)}
        layer = {name: OnDevices(draw.values(*shape) / 32, MESH) for name, shape in shapes.items()}
        still = {name: OnDevices(np.zeros(shape, np.float32), MESH) for name, shape in shapes.items()}
        batches = [
            {
                "x": OnDevices(draw.values(rows, features) / 8, MESH, P("data")),
                "y": OnDevices(draw.values(rows, out) / 8, MESH, P("data")),
            }
            for _ in range(count)
        ]
        yield Case({"state": {"params": [layer], "velocity": [still]}, "batches": batches})


@donate.mistake
def second_copy_kept(state, batches):
    """The result is right, but the state that you were given still exists beside it: twice the memory, for a state that
    nobody needs any more. Which argument of `jax.jit` says that an input may be written over? Which of the two inputs
    should be, and is it the given state itself that goes in?"""
    return _in_place(state, batches, compiled(_momentum_step))


@donate.mistake
def counted_what_is_gone(state, batches):
    """The state was given away, as it should be, and none of its arrays is left: the number is another. Did you ask
    those of the *given* state, and did you count the ones that *still exist*?"""
    last, kept = _in_place(state, batches)
    return last, len(jax.tree.leaves(state)) - kept


@donate.mistake
def used_the_old_state(state, batches):
    """The state was given away in the first step and then used again: its arrays are deleted, and only their Python
    objects are left. Under which name does the *new* state enter the next step?"""
    step = compiled(_momentum_step, donate_argnums=0)
    for batch in batches:
        new = step(state, batch)
    return new, _kept(state)


@donate.mistake
def came_out_cut(state, batches):
    """The state goes in whole and comes out cut: its old memory cannot hold the new arrays, so JAX warns ("Some donated
    buffers were not usable") and keeps both. For memory to be used again, a state must come out as it went in."""
    cut = NamedSharding(MESH.built(), P("data"))
    return _in_place(state, batches, out_shardings=cut)


@donate.mistake
def one_batch_only(state, batches):
    """One step was made, with the first batch. The state goes through all of them, one after the other."""
    return _in_place(state, batches[:1])
