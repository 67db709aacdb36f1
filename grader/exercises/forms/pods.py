"""Programs for a pod of chips that nobody here has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from grader.exercises.forms.programs import ProgramExercise


@dataclass(eq=False)
class PodExercise(ProgramExercise):
    """A program whose cases come in two kinds: small ones, which are run, and one compiled for a pod, which is not."""

    form: ClassVar[str] = "pod"

    against_compiler: bool = field(default=False, init=False)  # the pod's compiler only says whether it fits
