"""Findings in English: the only place with sentences about answers."""

from grader.wording import (  # each module registers its templates
    arrays,
    cases,
    costs,
    errors,
    mistakes,
    problems,
    processes,
    programs,
    quantities,
    relations,
    schedules,
    tables,
    values,
    verdicts,
)
from grader.wording.said import Said, in_short, said, together

__all__ = ["Said", "in_short", "said", "together"]
__all__ += ["arrays", "cases", "costs", "errors", "mistakes", "problems", "processes", "programs", "quantities"]
__all__ += ["relations", "schedules", "tables", "values", "verdicts"]
