"""Programs for a pod: their values are held against one device's in small cases; on the pod they have to fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import jax

from grader.arrays.meshes import spelled
from grader.chips.compiling import NoCompiler
from grader.chips.topologies import topology
from grader.exercises.case import Case
from grader.exercises.exercise import Mistake
from grader.exercises.verdict import Outcome
from grader.judging.compilations import Compilation, same_fit
from grader.judging.ladder import Alike, Done, Hint, Rung
from grader.judging.miss import Miss
from grader.judging.programs import ProgramLadder

POD = "pod"  # the rung on which a compiler decides


class PodLadder(ProgramLadder):
    """Half of the points are for the values, half for what the pod's compiler says. How the results are laid out is its
    own affair."""

    @property
    def rungs(self) -> Sequence[Rung]:
        small = [
            replace(rung, miss=self._where_it_is_run(rung.miss))
            for rung in super().rungs
            if rung.check in ("runs", "shape", "values")
        ]
        return [*small, Rung(POD, self.exercise.points * 0.5, self._on_pod)]

    def _where_it_is_run(self, miss: Callable[[int], Miss | None]) -> Callable[[int], Miss | None]:
        return lambda k: None if isinstance(self.done[k], Compilation) else miss(k)

    def _on_pod(self, k: int) -> Miss | None:
        done = self.done[k]
        if not isinstance(done, Compilation):
            return None
        if isinstance(done.said, NoCompiler):
            return Miss(f"Whether it fits is open: {done.said}")
        if done.said.refusal:
            return Miss(f"The compiler of {done.case.pod} refuses it: {done.said.refusal}")
        return Miss(words) if (words := _exceeded(done.case, done.said.flops)) else None

    def hint(self, check: str, k: int) -> Hint:
        return Hint() if _is_unknown(self.done[k]) else super().hint(check, k)

    def missed(self, rung: Rung, k: int, miss: Miss, hint: Hint) -> Outcome:
        """Where nobody could compile it, the rung is left open."""
        if _is_unknown(self.done[k]):
            return Outcome.left_open(self.exercise.name, POD, rung.worth, miss.words)
        return super().missed(rung, k, miss, hint)

    def likenesses(self, check: str) -> Sequence[Alike]:
        return [_compiled_alike] if check == POD else super().likenesses(check)

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether a pod's compiler needs as much memory for it, to the byte."""
        found = self.done[k]
        if not isinstance(found, Compilation):
            return super().is_exact(mistake, k)
        made = (wrong for wrong in self.mistaken(mistake, k) if isinstance(wrong, Compilation))
        return any(wrong.said == found.said for wrong in made)

    def witnesses(self, failing: int) -> Sequence[int]:
        """Cases that are run; a refusal needs none, for the values have been right."""
        if self.cases[failing].pod:
            return []
        return [k for k in super().witnesses(failing) if not self.cases[k].pod]

    def where(self, k: int) -> str:
        case = self.cases[k]
        return described(case) if case.pod else super().where(k)


def _is_unknown(done: Done) -> bool:
    return isinstance(done, Compilation) and isinstance(done.said, NoCompiler)


def _compiled_alike(case: Case, one: Done, other: Done) -> bool:
    return isinstance(one, Compilation) and isinstance(other, Compilation) and same_fit(one, other)


def _exceeded(case: Case, flops: int) -> str:
    return next((words for limit in case.limits if (words := limit.of_chip(flops))), "")


def described(case: Case) -> str:
    """A case that is compiled, in one line: the pod, its mesh, and every argument's shape and layout."""
    mesh = " × ".join(f"{name}={size}" for name, size in case.mesh.items())
    arrays = [
        f"{name}{jax.tree_util.keystr(path)}: {leaf.dtype}[{','.join(map(str, leaf.shape))}] {spelled(leaf.spec)}"
        for name, argument in case.arguments.items()
        for path, leaf in jax.tree.leaves_with_path(argument)
    ]
    return "; ".join([str(topology(case.pod)), f"mesh {mesh}", *arrays])
