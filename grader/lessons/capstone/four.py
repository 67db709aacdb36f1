"""§ 8: the same training as four processes with two devices each."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import PerProcess
from grader.exercises import Case, ProcessExercise
from grader.lessons.capstone.lives import TINY, compiled_step, lines_of, same_losses
from grader.transformer.model import init_params
from grader.transformer.text import batch_at
from grader.transformer.training import init_state

PROCESSES, DEVICES, ROWS, STEPS = 4, 2, 8, 4


def _alone(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The same on one device, with the rows of all processes."""
    state, losses, step = init_state(init_params(jax.random.key(seed), sizes)), [], compiled_step()
    for position in range(steps):
        parts = (_own(batch_at(position, seed, rows, 1, own), k, num_processes) for k, own in enumerate(lines))
        state, loss = step(state, *(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))
        losses.append(float(loss))
    return losses


four_processes = ProcessExercise(
    "four_processes", points=6, reference=_alone, same=same_losses, taught_in=("19_multihost",)
)


def _known_to(process_id: int, seed: int, lines, others):
    """The lines that a process's rows are made of, and in the place of the rest some that nobody trains on: who feeds
    more than its own rows gets another curve."""
    numbers = (np.arange(len(lines[0]))[:, None],)
    batches = (batch_at(k, seed, ROWS, 1, numbers) for k in range(STEPS))
    own = np.unique([_own(batch, process_id, PROCESSES) for batch in batches])
    return tuple(np.where(np.isin(numbers[0], own), line, other) for line, other in zip(lines, others, strict=True))


@four_processes.cases
def _(draw):
    seed, (lines, others) = int(draw.rng.integers(1000)), (lines_of(draw.rng, 21, 8) for _ in range(2))
    yield Case(
        {
            "seed": seed,
            "sizes": TINY,
            "lines": PerProcess(tuple(_known_to(k, seed, lines, others) for k in range(PROCESSES))),
            "rows": ROWS,
            "steps": STEPS,
        },
        {"processes": PROCESSES, "devices": DEVICES, "seconds": 120},
    )


def _joined(process_id, num_processes):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    shape = (num_processes, jax.local_device_count())
    return jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def _losses(mesh, params, seed, batches):
    """One curve, of parameters and batches as this process has them. The mistakes replicate what the course cuts: the
    curve is the same, and fewer bytes are sent."""
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))
    state = jax.tree.map(lambda a: jax.make_array_from_process_local_data(whole, np.asarray(a)), init_state(params))
    step, losses = compiled_step(out_shardings=whole), []
    for batch in batches:
        state, loss = step(state, *(jax.make_array_from_process_local_data(rows, part) for part in batch))
        losses.append(float(loss))
    return losses


def _own(batch, process_id, num_processes):
    """The rows of one process."""
    return [np.split(part, num_processes, axis=1)[process_id] for part in batch]


@four_processes.mistake
def each_alone(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Each process trains on its own quarter of the rows, and never hears of the others: four models, four curves.
    Either no process joined, or the arrays do not span the devices of all."""
    state, losses, step = init_state(init_params(jax.random.key(seed), sizes)), [], compiled_step()
    for position in range(steps):
        batch = _own(batch_at(position, seed, rows, 1, lines), process_id, num_processes)
        state, loss = step(state, *batch)
        losses.append(float(loss))
    return losses


@four_processes.mistake
def a_model_for_each(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The first loss is wrong already: every process began with parameters of its own. They are pieces of *one* array
    each, and nobody compares copies. Which key do all processes have to draw from?"""
    mesh = _joined(process_id, num_processes)
    batches = (_own(batch_at(k, seed, rows, 1, lines), process_id, num_processes) for k in range(steps))
    return _losses(mesh, init_params(jax.random.fold_in(jax.random.key(seed), process_id), sizes), seed, batches)


@four_processes.mistake
def the_same_rows_everywhere(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """All processes feed the same rows: the batch is a quarter of what it should be, four times over. The seed of the
    *parameters* is the same everywhere; of the batch that the seed of the data gives, which rows are this process's?"""
    mesh = _joined(process_id, num_processes)
    batches = (_own(batch_at(k, seed, rows, 1, lines), 0, num_processes) for k in range(steps))
    return _losses(mesh, init_params(jax.random.key(seed), sizes), seed, batches)


@four_processes.mistake
def the_whole_batch_each(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Each process feeds a whole batch: the global one has four times the rows, and three of four come from a process
    that does not have their lines. Of the batch that seed and position give, which rows are this process's?"""
    mesh = _joined(process_id, num_processes)
    batches = (batch_at(k, seed, rows, 1, lines) for k in range(steps))
    return _losses(mesh, init_params(jax.random.key(seed), sizes), seed, batches)


@four_processes.mistake
def a_small_batch_each(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Each process asked for a batch of a quarter of the rows, and with the same seed and position they all got the
    same one. A batch is drawn whole, and then dealt out: it is the same batch on any number of processes."""
    mesh = _joined(process_id, num_processes)
    batches = (batch_at(k, seed, rows // num_processes, 1, lines) for k in range(steps))
    return _losses(mesh, init_params(jax.random.key(seed), sizes), seed, batches)


@four_processes.mistake
def only_the_first_joins(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Process 0 waits for the others in a call that they never make: to join, or a step. Whatever the processes do
    together, each of them has to call, in the same order; who prints the loss is another matter."""
    if process_id == 0:
        jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return each_alone(process_id, num_processes, seed=seed, sizes=sizes, lines=lines, rows=rows, steps=steps)
