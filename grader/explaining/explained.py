"""`explained(exercise, cases, answers) -> Verdict`: what the judge decides, and what explains a miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.exercises.answers import Answer
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Verdict
from grader.explaining.explainer import Explainer
from grader.explaining.functions import FunctionExplainer
from grader.explaining.pods import PodExplainer
from grader.explaining.processes import ProcessExplainer
from grader.explaining.programs import ProgramExplainer
from grader.explaining.tables import TableExplainer
from grader.explaining.timetables import TimetableExplainer
from grader.jax_versions import one_mlir_context
from grader.judging import together
from grader.judging.compilations import run_or_compile
from grader.judging.functions import FunctionJudgment
from grader.judging.judge import Executed, Started, judgment_of
from grader.judging.judgment import Judgment
from grader.judging.pods import PodJudgment
from grader.judging.processes import ProcessJudgment
from grader.judging.programs import ProgramJudgment
from grader.judging.tables import TableJudgment
from grader.judging.timetables import TimetableJudgment

EXPLAINERS: Mapping[type[Judgment], type[Explainer]] = {
    ProgramJudgment: ProgramExplainer,
    PodJudgment: PodExplainer,
    FunctionJudgment: FunctionExplainer,
    TimetableJudgment: TimetableExplainer,
    TableJudgment: TableExplainer,
    ProcessJudgment: ProcessExplainer,
}


def explained(
    exercise: Exercise,
    cases: Sequence[Case],
    answers: Sequence[Answer],
    executed: Executed = run_or_compile,
    started: Started = together.start,
) -> Verdict:
    """Judge the answers of one student to the cases of one exercise, in the same order, and explain what is wrong.

    `executed` and `started` are those of `grader.judging.judge.judgment_of`.
    """
    with one_mlir_context():
        judgment = judgment_of(exercise, cases, answers, executed, started)
        return judgment.verdict(EXPLAINERS[type(judgment)](judgment))
