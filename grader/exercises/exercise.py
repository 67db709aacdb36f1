"""The vocabulary of an exercise: *case*, *check*, *mistake*.

An author describes an exercise once, in `grader/lessons/`:

* a **reference**: what a single device would compute, on plain NumPy values;
* **cases**: what the answer is tried on, drawn afresh from a random generator;
* **mistakes**: wrong answers as a student would write them, whose docstrings are what we say.

Everything expected is computed from these; nothing is stored. The *checks* are the rungs of
`grader.judging`, the same for every exercise of a form.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.devices import eight_devices
from grader.arrays.laid import Array
from grader.arrays.numbers import ROUNDINGS

Form = Literal["program", "function", "table", "processes"]


@dataclass(frozen=True)
class Move:
    """A collective that the compiler may put into a program: its kind, its mesh axes, each device's operand."""

    kind: str
    axes: tuple[str, ...]
    operand: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """One thing an answer is tried on.

    An argument is an `Array`, or a pytree of them (a network's parameters); one without any is passed to a program by
    keyword.
    `mesh` maps axis names to sizes, in order. `out` is the layout that the result must have: a spec, or a pytree of
    specs as the result is one. `cotangents` are arrays as the result is: where they are given, the program's gradient
    is judged too, which it gives by `jax.vjp` for them. `roundings` is through how many roundings, one after the
    other, an entry of the result may have gone: the lengths of the sums on its way, added up (`behaviour.close`).
    `bytes_sent` is what the best program sends
    per device, by the ring algorithm; `flops` what one device computes when the work is divided.
    `key` names the entry of a table that this case asks about. `explicit` gives the mesh Explicit axes.
    `moves` is for a program that is left to the compiler: what it may send, and nothing else.
    `turns` bounds how often each kind of collective may run in a program with shard_map, kinds not named not at
    all, and `written` how often it may stand in the text; `steps` bounds how many of them may wait for one another,
    one after the other; `meanwhile` is how many FLOPs of matmuls must be free to run beside every turn of every one
    of them; `one_way` is how many bytes permutes may send to one neighbour.
    """

    arguments: Mapping[str, Any]
    mesh: Mapping[str, int] = field(default_factory=dict)
    out: Any = None
    bytes_sent: int | None = None
    flops: int | None = None
    key: str = ""
    explicit: bool = False
    moves: tuple[Move, ...] | None = None
    turns: Mapping[str, int] | None = None
    written: Mapping[str, int] | None = None
    steps: int | None = None
    meanwhile: int = 0
    one_way: int | None = None
    cotangents: Any = None
    roundings: int = ROUNDINGS


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that students give. `words` is what we say to the student who gave it."""

    name: str
    words: str
    wrong: Callable[..., Any]

    def spellings(self) -> list[Callable[..., Any]]:
        """The wrong answer with shard_map's check off and, where it takes `check_vma`, also on."""
        if "check_vma" not in inspect.signature(self.wrong).parameters:
            return [self.wrong]
        return [functools.partial(self.wrong, check_vma=check) for check in (False, True)]


class Draw:
    """Fresh data for a case: no zeros, no equal shards, a different length on every axis.

    `shape` is the shape of the mesh this round is about, and `square` asks for equal lengths: wrong
    axes then pass every shape and only values tell.
    """

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...] = (), square: bool = False):
        self.rng, self.shape, self.square = rng, shape, square

    def mesh(self, *names: str) -> dict[str, int]:
        """A mesh with these axes: the round's own shape, or its product for a single axis."""
        if len(names) == len(self.shape):
            return dict(zip(names, self.shape, strict=True))
        if len(names) == 1:
            return {names[0]: int(np.prod(self.shape))}
        raise ValueError(f"a round on a mesh of shape {self.shape} has no mesh with axes {names}")

    def lengths(self, count: int, divisible_by: int) -> tuple[int, ...]:
        """`count` lengths, each a multiple of `divisible_by` and at least twice it."""
        if self.square:
            return (int(divisible_by * self.rng.integers(2, 4)),) * count
        multiples = self.rng.choice(np.arange(2, 3 + count), size=count, replace=False)
        return tuple(int(divisible_by * m) for m in multiples)

    def values(self, *shape: int) -> np.ndarray:
        """Whole numbers as float32: sums come out exact, and no entry is zero."""
        magnitude = self.rng.integers(1, 10, size=shape)
        return (magnitude * self.rng.choice([-1, 1], size=shape)).astype(np.float32)

    def array(self, *shape: int, spec: P) -> Array:
        return Array(self.values(*shape), spec)


@dataclass(eq=False)
class Exercise:
    """One exercise: its worth, its reference, how its cases are drawn, and its mistakes.

    Forms of the answer:

    * `"program"`: a function of the case's arrays (or pytrees of them) and a keyword `mesh`; it is traced, never run;
    * `"function"`: a function of plain Python and NumPy values, and of meshes and arrays that lie on devices
      (`grader.arrays.described`); it is called once per case. Where the reference raises ValueError, so must it;
    * `"processes"`: a function `main(process_id, num_processes, ...)` that is run in several processes at once, the
      case's `mesh` being `{"processes": 4, "devices": 2}`; `reference` says, on one device, what each is to return;
    * `"table"`: a dict from each case's `key` to the option chosen; `reference` does the experiment.

    A program is written with shard_map, unless it is left to the compiler (`by_compiler`). A function that is
    `on_devices` may bring no array up from the host: what it is given lies on devices, and stays there.
    `same`, where equal is too much to ask, says whether two values are the same answer:
    `same(one, other, **arguments)`.
    """

    name: str
    points: float
    reference: Callable[..., Any]
    form: Form = "program"
    mistakes: list[Mistake] = field(default_factory=list)
    mesh_shapes: tuple[tuple[int, ...], ...] = ((4, 2), (2, 4), (8, 1), (1, 8))
    drawn: Callable[[Draw], Iterator[Case] | Case] | None = None
    by_compiler: bool = False
    on_devices: bool = False
    same: Callable[..., bool] | None = None

    def cases(self, draw: Callable[[Draw], Any]) -> Callable[[Draw], Any]:
        """Decorator: the function that yields (or returns) cases for one `Draw`."""
        self.drawn = draw
        return draw

    def rows(
        self,
        keys: Iterable[str] | Callable[[], Iterable[str]],
        mesh: Mapping[str, int] | None = None,
        argument: str = "row",
    ) -> None:
        """The cases of a table that needs no data: one for each key, which is also its only argument."""
        self.drawn = lambda draw: [
            Case({argument: key}, mesh or {}, key=key) for key in (keys() if callable(keys) else keys)
        ]

    def mistake(self, wrong: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: a wrong answer; its docstring is what the student hears."""
        words = inspect.cleandoc(wrong.__doc__ or "")
        if not words:
            raise ValueError(f"the mistake {wrong.__name__} of {self.name} has nothing to say")
        self.mistakes.append(Mistake(wrong.__name__, words, wrong))
        return wrong

    @functools.lru_cache  # noqa: B019 - exercises live as long as the process
    def draw_cases(self, seed: int = 0, *, thorough: bool = False) -> tuple[Case, ...]:
        """The cases of one run: a few for the notebook, every mesh and more sizes for grading."""
        if self.drawn is None:
            raise ValueError(f"{self.name} has no cases: decorate a function with @{self.name}.cases")
        eight_devices()  # some cases are made by experiments
        rng = np.random.default_rng([seed, *self.name.encode()])
        return tuple(case for draw in self._rounds(rng, thorough) for case in _listed(self.drawn(draw)))

    def _rounds(self, rng: np.random.Generator, thorough: bool) -> list[Draw]:
        if self.form != "program":
            return [Draw(rng)]
        shapes = self.mesh_shapes if thorough else self.mesh_shapes[:2]
        return [Draw(rng, shape) for shape in shapes] + [Draw(rng, shapes[0], square=True)]


def _listed(drawn: Any) -> list[Case]:
    return [drawn] if isinstance(drawn, Case) else list(drawn)
