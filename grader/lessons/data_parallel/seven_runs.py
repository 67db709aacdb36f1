"""§ 10: seven wrong runs whose loss falls, and the single-device run they are held against.

A batch of 48 rows, the last 8 of them padding, is cut over both axes of a 4 × 2 mesh; each device has two microbatches;
one layer has dropout. Every run trains the same network for 30 steps. They differ in one thing each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh, put
from grader.arrays.ratios import ratios
from grader.exercises import Case, TableExercise
from grader.renamed import renamed

MESH = {"data": 4, "model": 2}
BOTH = tuple(MESH)
WIDTHS, ROWS, REAL = (28, 32, 32, 24, 10), 48, 40
STEPS, RATE, DROPPED = 30, 1 / 256, 0.25
TRUTH = "one device"


@functools.lru_cache
def _start() -> tuple[list[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """The parameters that all runs begin with, and the batch."""
    rng = np.random.default_rng(12)

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    params = [
        {"W": normal(n, m) / np.float32(n**0.5), "b": normal(m) / 8} for n, m in zip(WIDTHS, WIDTHS[1:], strict=False)
    ]
    x = normal(ROWS, WIDTHS[0])
    y = np.tanh(x @ normal(WIDTHS[0], WIDTHS[-1]) / 4)
    real = np.arange(ROWS) < REAL
    batch = {"x": x * real[:, None], "y": y * real[:, None], "real": real.astype(np.float32)}
    return params, batch


def _row_losses(params, batch, numbers, dropped, step):
    """The loss of every row. Each row drops units of the second layer by a mask that its number decides."""
    key = jax.random.fold_in(jax.random.key(5), step)
    masks = jax.vmap(lambda n: jax.random.bernoulli(jax.random.fold_in(key, n), 1 - dropped, WIDTHS[2:3]))(numbers)
    h = batch["x"]
    for k, layer in enumerate(params):
        h = h @ layer["W"] + layer["b"]
        h = jax.nn.relu(h) if k < len(params) - 1 else h
        h = jnp.where(masks, h / (1 - dropped), 0) if k == 1 else h
    return jnp.sum((h - batch["y"]) ** 2, axis=-1)


def _alone(params, batch, dropped, step):
    """Loss and gradients as a single device computes them."""

    def loss(params):
        each = _row_losses(params, batch, jnp.arange(ROWS), dropped, step)
        return jnp.sum(each * batch["real"]) / jnp.sum(batch["real"])

    return jax.value_and_grad(loss)(params)


def _over(reduce, axes):
    return lambda tree: jax.tree.map(lambda leaf: reduce(leaf, axes), tree)


_mean, _sum = _over(lax.pmean, BOTH), _over(lax.psum, BOTH)


@dataclass(frozen=True)
class Way:
    """A way to train on many devices: what is done about loss and gradients, and what is taken for the batch.

    `skipped` rows are left out by each device; `masked`: padding does not count; `numbered`: a row's number is that in
    the whole batch.
    """

    loss: Callable[[Any], Any] = _mean
    gradients: Callable[[Any], Any] = _mean
    check_vma: bool = False
    skipped: int = 0
    masked: bool = True
    numbered: bool = True

    def __call__(self, params, batch, dropped, step):
        """Loss and gradients on one device, given its rows."""
        rows, first = batch["real"].shape[0], lax.axis_index(BOTH) * self.numbered
        numbers = (first * rows + jnp.arange(rows))[self.skipped :]
        batch = jax.tree.map(lambda v: v[self.skipped :], batch)
        counted = batch["real"] if self.masked else jnp.ones_like(batch["real"])
        count = lax.pmean(jnp.sum(counted), BOTH)

        def share(params):  # the mean of all devices' shares is the loss
            return jnp.sum(_row_losses(params, batch, numbers, dropped, step) * counted) / count

        loss, gradients = jax.value_and_grad(share)(params)
        return self.loss(loss), self.gradients(gradients)


def _nothing(tree):
    return tree


# Each of these trains, and each is a program that somebody has written.
WAYS = {
    "sum taken for the mean": Way(gradients=_nothing, check_vma=True),
    "sum of means": Way(loss=_sum, gradients=_sum),
    "never synchronised": Way(gradients=_nothing),
    "last microbatch only": Way(skipped=ROWS // 16),
    "same dropout masks": Way(numbered=False),
    "averaged over one axis": Way(gradients=_over(lax.pmean, "data")),
    "padding counted": Way(masked=False),
}
LETTERS = dict(zip("ABCDEFG", (list(WAYS)[k] for k in (4, 2, 1, 6, 0, 3, 5)), strict=True))


@jax.jit
def _descended(params, gradients):
    """A step of gradient descent; where copies differ, each device goes on with its own."""
    return jax.tree.map(lambda p, g: p - RATE * g, params, gradients)


class Runs:
    """The runs of the lesson by letter, and "one device": their losses, their parameters, and experiments on them."""

    def __init__(self) -> None:
        self.names = [*LETTERS]
        self.mesh = make_mesh(MESH)
        self._trained = {name: self._train(name) for name in (TRUTH, *self.names)}

    def losses(self, run: str) -> np.ndarray:
        """The loss before each of the 30 steps."""
        return self._trained[run][0]

    def params(self, run: str) -> Any:
        """The parameters after the last step, as they are laid out on the devices."""
        return self._trained[run][1]

    def gradients(self, run: str, *, dropout: bool = True, padding: bool = True, alike: bool = False) -> Any:
        """(loss, gradients) of the run's first step, at the parameters that all of them begin with.

        Without `dropout`, nothing is dropped; without `padding`, all rows are real ones; with `alike`, both
        microbatches of every device hold the same rows.
        """
        params, batch = _start()
        if not padding:
            repeated = np.arange(ROWS) % REAL
            batch = {"x": batch["x"][repeated], "y": batch["y"][repeated], "real": np.ones(ROWS, np.float32)}
        if alike:
            twice = np.arange(ROWS).reshape(8, 2, -1)[:, [0, 0]].reshape(-1)
            batch = {name: v[twice] for name, v in batch.items()}
        return jax.block_until_ready(self._step(run)(*self._laid(run, params, batch), DROPPED * dropout, 0))

    @functools.cache  # noqa: B019 - there is one of these
    def _step(self, run: str) -> Callable[..., Any]:
        return jax.jit(_alone if run == TRUTH else self.on_devices(WAYS[LETTERS[run]]))

    def on_devices(self, way: Way) -> Callable[..., Any]:
        return jax.shard_map(
            way, mesh=self.mesh, in_specs=(P(), P(BOTH), P(), P()), out_specs=(P(), P()), check_vma=way.check_vma
        )

    def _laid(self, run: str, params: Any, batch: Mapping[str, np.ndarray]) -> tuple[Any, Any]:
        if run == TRUTH:
            return params, batch
        return (
            jax.tree.map(lambda leaf: put(leaf, P(), self.mesh), params),
            {name: put(v, P(BOTH), self.mesh) for name, v in batch.items()},
        )

    def _train(self, run: str) -> tuple[np.ndarray, Any]:
        params, batch = self._laid(run, *_start())
        losses = []
        for number in range(STEPS):
            value, gradients = self._step(run)(params, batch, DROPPED, number)
            params = jax.block_until_ready(_descended(params, gradients))
            losses.append(float(value))
        return np.array(losses), params


@functools.lru_cache
def runs() -> Runs:
    """The seven wrong runs and the right one, trained once."""
    return Runs()


# Which is which, found as a student would: by experiments.


def distinct_replicas(tree: Any) -> int:
    """How many different versions of these arrays, which should be the same on all devices, there are."""
    first = jax.tree.leaves(tree)[0]
    return len({np.asarray(shard.data).tobytes() for shard in first.addressable_shards})


def _right(run: str, **experiment: bool) -> bool:
    found, due = (runs().gradients(name, **experiment)[1] for name in (run, TRUTH))
    return all(row.words == "1" for row in ratios(found, due).rows)


@functools.lru_cache
def identified(run: str) -> str:
    """Which wrong program a run is, from what it does."""
    (loss, gradients), (due, _) = runs().gradients(run), runs().gradients(TRUTH)
    if (versions := distinct_replicas(gradients)) > 1:
        return "never synchronised" if versions == 8 else "averaged over one axis"
    for name, experiment in (
        ("same dropout masks", {"dropout": False}),
        ("padding counted", {"padding": False}),
        ("last microbatch only", {"dropout": False, "padding": False, "alike": True}),
    ):
        if _right(run, **experiment):
            return name
    return "sum of means" if loss > 2 * due else "sum taken for the mean"


SIGNS = {  # of each wrong program
    "never synchronised": "Devices that never synchronise have a gradient each. How many versions of a gradient "
    "does this run have?",
    "averaged over one axis": "Averaged over one axis alone, the devices along the other one still differ. How many "
    "versions of a gradient does this run have?",
    "sum of means": "In a sum of means the loss is several times too large, like the gradients. What is this run's "
    "loss?",
    "sum taken for the mean": "Where gradients are added up that should be averaged, they are several times too "
    "large, all of them. By how much are they off in this run?",
    "same dropout masks": "If the masks are the fault, the run is right as soon as nothing is dropped. Is this one?",
    "padding counted": "If padding is the fault, the run is right as soon as no row is padded. Is this one?",
    "last microbatch only": "If only the last microbatch counts, the run is right as soon as all microbatches are "
    "alike, and nothing is dropped or padded. Is this one?",
}
which_run = TableExercise("which_run", points=7, reference=identified, options=SIGNS)


@which_run.cases
def _(draw):
    return [Case({"run": letter}, key=letter) for letter in LETTERS]


def _swapped(run: str, one: str, other: str) -> str | None:
    """The answer of somebody who takes two of the programs for one another."""
    return {one: other, other: one}.get(identified(run))


@which_run.mistake
def gradient_without_its_loss(run):
    """In two runs all gradients are eight times too large. In one of them only the gradients are: the loss that it
    reports at the first step is right. Compare the first points of the two curves."""
    return _swapped(run, "sum taken for the mean", "sum of means")


@which_run.mistake
def copies_without_their_number(run):
    """In two runs the copies of a gradient differ between devices. How many different ones are there among the eight?
    Averaging over one axis of the mesh makes the devices along it agree."""
    return _swapped(run, "never synchronised", "averaged over one axis")


@which_run.mistake
def padding_for_dropout(run):
    """Dropout and padding both bend the gradients a little, alike on all devices. Switch them off one at a time: in
    which experiment does every ratio become 1?"""
    return _swapped(run, "same dropout masks", "padding counted")


@which_run.mistake
def padding_for_a_microbatch(run):
    """Switch padding off and look again. A run that forgets the mask is right then; a run that sees only half of its
    rows is not, until both halves are alike and nothing is dropped."""
    return _swapped(run, "padding counted", "last microbatch only")


@which_run.mistake
def dropout_for_a_microbatch(run):
    """Switch dropout off and look again. With nothing to drop, the masks cannot matter; a forgotten microbatch still
    does, until both halves of every share are alike."""
    return _swapped(run, "same dropout masks", "last microbatch only")


@which_run.mistake
def a_constant_for_copies(run):
    """Look at the copies first. Where the devices hold different gradients, the first one's are shown, and they are no
    fixed multiple of the right ones; a sum taken once too often is the same multiple everywhere."""
    return _swapped(run, "never synchronised", "sum taken for the mean")


# Until the next version.
_OLD_NAMES = {"copies": "distinct_replicas"}


def __getattr__(name: str) -> Any:
    return renamed(__name__, _OLD_NAMES, name)
