"""What went wrong in a program for a pod."""

from __future__ import annotations

from collections.abc import Sequence

from grader.exercises.case import Case
from grader.exercises.exercise import Mistake
from grader.explaining.explainer import Alike
from grader.explaining.programs import ProgramExplainer
from grader.judging.compilations import Compilation, same_fit
from grader.judging.judgment import Behavior, Explained
from grader.judging.miss import Miss
from grader.judging.pods import POD, is_unknown


class PodExplainer(ProgramExplainer):
    """As for any program; of what the compiler refuses, the mistake that it refuses in the same way."""

    def explained(self, check: str, case: int, miss: Miss) -> Explained:
        return Explained() if is_unknown(self.behaviors[case]) else super().explained(check, case, miss)

    def likenesses(self, check: str) -> Sequence[Alike]:
        return [_compiled_alike] if check == POD else super().likenesses(check)

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether a pod's compiler needs as much memory for it, to the byte."""
        found = self.behaviors[k]
        if not isinstance(found, Compilation):
            return super().is_exact(mistake, k)
        made = (wrong for wrong in self.mistaken(mistake, k) if isinstance(wrong, Compilation))
        return any(wrong.said == found.said for wrong in made)


def _compiled_alike(case: Case, one: Behavior, other: Behavior) -> bool:
    return isinstance(one, Compilation) and isinstance(other, Compilation) and same_fit(one, other)
