"""§ 7: a run that is killed, and goes on from its checkpoint on another mesh.

A function is run twice in a process with eight devices. The first run is killed at its line `step 6 …`; the second is
given the folder that it left. What a fresh start would begin with (parameters, the seed of the data's order, the place
in it) is something else in the second run, so that only the checkpoint tells how the first began.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding

from grader.arrays.described import PerLife
from grader.exercises import Case, ProcessExercise
from grader.jax_versions import quick_options
from grader.lessons.capstone.model import one_step
from grader.lessons.capstone.sharded import STATE
from grader.transformer.model import init_params
from grader.transformer.text import batch_at
from grader.transformer.training import init_state

EVERY, STEPS, ROWS, MICRO = 3, 10, 4, 2
KILLED_AT = 2 * EVERY  # at the line of a step after which something is saved: who prints it first has not saved it
SHAPES = (4, 2), (2, 4)  # of the mesh in the first run, and in the second
TINY = {"layers": 1, "vocabulary": 16, "width": 24, "heads": 8, "kv_heads": 4, "head": 4, "hidden": 32}


def tiny_parameters(rng) -> dict:
    """Parameters of a model of one layer that every mesh of eight devices can cut, as NumPy's arrays."""
    key = jax.random.key(int(rng.integers(1 << 30)))
    return jax.tree.map(np.asarray, init_params(key, TINY))


def lines_of(rng, count: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and targets [count, length] of lines that can be learned, each of another length; then padding."""
    steps, starts = rng.integers(1, 4, (count, 1)), rng.integers(0, TINY["vocabulary"], (count, 1))
    numbers = ((starts + steps * np.arange(length + 1)) % TINY["vocabulary"]).astype(np.int32)
    ends = rng.integers(length // 2, length + 1, (count, 1))
    return numbers[:, :-1], np.where(np.arange(length) < ends, numbers[:, 1:], -1).astype(np.int32)


def _unbroken(process_id, num_processes, *, shape, params, seed, position, lines, every, steps):
    """The whole run on one device; what is due are the steps behind the last that was saved."""
    state, losses, step = init_state(params[0]), [], compiled_step()
    for number in range(steps):
        state, loss = step(state, *batch_at(position[0] + number, seed[0], ROWS, MICRO, lines))
        losses.append(float(loss))
    return {
        "first": KILLED_AT + 1,
        "losses": losses[KILLED_AT:],
        "mesh": dict(zip(("data", "model"), shape[1], strict=True)),
    }


def compiled_step(**options):
    """One device's step, compiled in an eighth of the time: a run has ten steps. Options are those of `jax.jit`."""
    return jax.jit(one_step, compiler_options=quick_options(), **options)


def same_run(one, other, **_):
    """Equal but for the losses, which another order of sums, carried through Adam, may move a little."""
    return (
        isinstance(one, dict)
        and one.keys() == other.keys()
        and all(one[name] == other[name] for name in ("first", "mesh"))
        and same_losses(one["losses"], other["losses"])
    )


def same_losses(one, other, **_):
    """Whether two curves are one, to the rounding that a few steps of Adam make of float32's."""
    return isinstance(one, list) and len(one) == len(other) and bool(np.allclose(one, other, rtol=2e-4, atol=0))


resume = ProcessExercise(
    "resume", points=8, reference=_unbroken, same=same_run, taught_in=("02_shardings", "12_data_parallel")
)


@resume.cases
def _(draw):
    seeds, begin = draw.rng.choice(1000, 2, replace=False), int(draw.rng.integers(20))
    begins = begin, begin + 2 * STEPS + int(draw.rng.integers(10))  # farther on than any place that a run comes to
    yield Case(
        {
            "shape": PerLife(SHAPES),
            "params": PerLife((tiny_parameters(draw.rng), tiny_parameters(draw.rng))),
            "seed": PerLife(tuple(map(int, seeds))),
            "position": PerLife(tuple(map(int, begins))),
            "lines": lines_of(draw.rng, 21, 8),
            "every": EVERY,
            "steps": STEPS,
        },
        {"processes": 1, "devices": 8, "killed_at": KILLED_AT, "seconds": 120},
    )


def _mesh(shape):
    return jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def _state(params, shape):
    mesh = _mesh(shape)
    return jax.device_put(init_state(params), jax.tree.map(lambda spec: NamedSharding(mesh, spec), STATE))


def _abstract(tree):
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), tree)


def _manager(folder):
    import orbax.checkpoint as ocp  # here, so that `import grader` stays quick, and possible without

    return ocp.CheckpointManager(folder)


def _save(manager, number, tree):
    import orbax.checkpoint as ocp

    manager.save(number, args=ocp.args.StandardSave(tree))
    manager.wait_until_finished()


def _load(manager, number, like):
    import orbax.checkpoint as ocp

    return manager.restore(number, args=ocp.args.StandardRestore(like))


def _run_on(manager, state, done, seed, position, lines, every, steps, kept):
    """Train from step `done` on, and save what `kept` makes of state, seed and place in the data."""
    shardings = jax.tree.map(lambda a: a.sharding, state)
    state, step, losses = jax.device_get(state), compiled_step(), []  # on one device: it compiles faster
    for number in range(done + 1, steps + 1):
        state, loss = step(state, *batch_at(position, seed, 4, 2, lines))
        position += 1
        losses.append(float(loss))
        if number % every == 0:
            _save(manager, number, kept(jax.device_put(state, shardings), seed, position))
        print(f"step {number} loss {losses[-1]:.4f}")
    return {"first": done + 1, "losses": losses, "mesh": dict(shardings["count"].mesh.shape)}


def _everything(state, seed, position):
    return {"state": state, "seed": seed, "position": position}


def _with_the_last_place(state, seed, position):
    return {"state": state, "seed": seed, "position": position - 1}


def _without_optimizer(state, seed, position):
    return {"params": state["params"], "seed": seed, "position": position}


def _restored(manager, done, state):
    like = {"state": _abstract(state), "seed": 0, "position": 0}
    saved = _load(manager, done, like)
    return saved["state"], saved["seed"], saved["position"]


@resume.mistake
def optimizer_left_out(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The run goes on from the right step, with the right batch, and its first loss is right; then it leaves the
    curve. Adam began anew: its moments at zero, its count at zero, the learning rate in its warm-up. What is the state
    of training, besides the parameters?"""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            like = {"params": _abstract(state["params"]), "seed": 0, "position": 0}
            saved = _load(manager, done, like)
            state, seed, position = state | {"params": saved["params"]}, saved["seed"], saved["position"]
        return _run_on(manager, state, done, seed, position, lines, every, steps, _without_optimizer)


@resume.mistake
def place_in_the_data_left_out(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    """The parameters are those that were saved, and the next batch is not the one that was due: it is the one with
    which a fresh start begins. Which number says how far in the data you are? Is it saved and restored, and does it
    count the batch that was just used?"""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            state, seed, _ = _restored(manager, done, state)
        return _run_on(manager, state, done, seed, position, lines, every, steps, _everything)


@resume.mistake
def seed_of_the_order_left_out(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    """You are as far in the data as you were, and in *other* data: the lines were shuffled with the seed that a fresh
    start is given. What the order is made from belongs in the checkpoint, as much as the place in it."""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            state, _, position = _restored(manager, done, state)
        return _run_on(manager, state, done, seed, position, lines, every, steps, _everything)


@resume.mistake
def neither_seed_nor_place(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """Parameters and moments are those that were saved, and the data are those of a fresh start: another order, and its
    beginning. A checkpoint of the state of *training* is not yet one of the state of the *data*. Which two numbers is a
    batch made from?"""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            state, *_ = _restored(manager, done, state)
        return _run_on(manager, state, done, seed, position, lines, every, steps, _everything)


@resume.mistake
def counted_anew(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The state is the saved one, and the loop began at step 1 again: it trained too long, and its checkpoints would
    overwrite those of the first run. How many steps had been done? The manager knows it by `latest_step()`."""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            state, seed, position = _restored(manager, done, state)
        return _run_on(manager, state, 0, seed, position, lines, steps + 1 if done else every, steps, _everything)


@resume.mistake
def last_step_again(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The run has a step too many: the one whose number stands on the checkpoint was done before it was saved. Which is
    the first that was not?"""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            state, seed, position = _restored(manager, done, state)
        every = steps + 1 if done else every
        return _run_on(manager, state, max(0, done - 1), seed, position, lines, every, steps, _everything)


@resume.mistake
def last_batch_once_more(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The state is that after the step which was saved, and the place in the data is that *before* it: the second run
    begins with a batch that this state has been trained on. Which batch comes next when you save?"""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            state, seed, position = _restored(manager, done, state)
        return _run_on(manager, state, done, seed, position, lines, every, steps, _with_the_last_place)


@resume.mistake
def the_save_before(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The run went on from the save before the last. Was the last one whole when the power went? `save` returns before
    the bytes are on the disk; Orbax writes on, and gives a checkpoint its name when it is whole. What has to be waited
    for before a step may call itself done?"""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            done -= every
            state, seed, position = _restored(manager, done, state)
        every = steps + 1 if done else every
        return _run_on(manager, state, done, seed, position, lines, every, steps, _everything)


@resume.mistake
def begun_anew(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The second run knows nothing of the first: it began at step 1, with new parameters. Either nothing whole was in
    the folder (was everything saved at the end, which never came?), or nobody looked there."""
    with _manager(folder) as manager:
        return _run_on(manager, _state(params, shape), 0, seed, position, lines, steps + 1, steps, _everything)


@resume.mistake
def layout_of_the_old_mesh(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The curve is right, and the state is on the mesh of the first run: without a layout to restore to, Orbax takes
    the one that it finds in the checkpoint. Here the same eight devices happen to be there; on another number of
    them there is no such mesh. What do `ShapeDtypeStruct`s say besides shape and dtype?"""
    state = _state(params, shape)
    with _manager(folder) as manager:
        if done := manager.latest_step() or 0:
            state = _state(params, (4, 2))
            state, seed, position = _restored(manager, done, state)
        return _run_on(manager, state, done, seed, position, lines, every, steps, _everything)


@resume.mistake
def saved_what_was_given_away(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """The state that you save has been donated: the step has written the new state over it. Which of the two is still
    yours when the step has returned?"""
    state, step = _state(params, shape), compiled_step(donate_argnums=0)
    with _manager(folder) as manager:
        for number in range(1, steps + 1):
            new, loss = step(state, *batch_at(position, seed, 4, 2, lines))
            if number % every == 0:
                _save(manager, number, _everything(state, seed, position))
            state, position = new, position + 1
            print(f"step {number} loss {loss:.4f}")
    return {}
