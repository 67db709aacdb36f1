"""What the compiler of a pod says to an answer, and whether it says the same to two."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import jax

from grader.chips.compiling import NoCompiler, Request, answer, spec_as_json
from grader.chips.report import Fit, fit_of
from grader.chips.topologies import topology
from grader.exercises.answers import Layout
from grader.exercises.case import Case
from grader.judging.behaviour import Execution
from grader.programs.program import Program

ALIKE = 0.02  # by so much of their memory two programs may differ that are written alike


def compile_here(asked: Request) -> Fit:
    """What the compiler of this machine says, or has said before. Raises NoCompiler where there is none."""
    return fit_of(asked, answer(asked))


class Compilation:
    """A program for the pod of its case, compiled when somebody first asks what the compiler `said`."""

    def __init__(self, program: Program, case: Case, compiled: Callable[[Request], Fit] = compile_here):
        self.case, self.compiled, self.request = case, compiled, request_of(program, case)

    @cached_property
    def said(self) -> Fit | NoCompiler:
        """What it says, or why nobody knows that."""
        try:
            return self.compiled(self.request)
        except NoCompiler as error:
            return error


def request_of(program: Program, case: Case) -> Request:
    """What the compiler is asked: a program for the layouts of its case."""
    layouts = [leaf for leaf in jax.tree.leaves(dict(case.arguments)) if isinstance(leaf, Layout)]
    arguments = tuple((list(a.shape), a.dtype, spec_as_json(a.spec)) for a in layouts)
    return Request(program.artefact, case.pod, case.mesh, topology(case.pod).order(case.mesh), arguments, ())


def run_or_compile(program: Program, case: Case) -> Execution | Compilation:
    """What a program comes to on this machine."""
    return Compilation(program, case) if case.pod else Execution(program, case)


def same_fit(one: Compilation, other: Compilation) -> bool:
    """Whether a compiler says the same to two programs: both fit or neither, and they need and compute as much."""
    a, b = one.said, other.said
    if isinstance(a, NoCompiler) or isinstance(b, NoCompiler):
        return False
    return bool(a.refusal) == bool(b.refusal) and a.flops == b.flops and math.isclose(a.held, b.held, rel_tol=ALIKE)
