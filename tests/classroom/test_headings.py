"""The heading of an exercise says all that is declared there, or the build stops and says what is missing."""

import pytest

from grader.classroom.course.headings import ExerciseHeading, exercise_heading


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("### Exercise `a` · core · 4 points · 8 minutes · ●●○", ExerciseHeading(("a",), True, 8)),
        (
            "### Exercise `a` · stretch · 1 point · 12 minutes · ●○○ · roughly 1 line",
            ExerciseHeading(("a",), False, 12),
        ),
        ("### Exercises `a`, `b_2` · core · 3 + 4 points · 6 minutes · ●●●", ExerciseHeading(("a", "b_2"), True, 6)),
        (
            "### Exercises `a`, `b` · core · 2 points and 1 point · 6 minutes · ●●●",
            ExerciseHeading(("a", "b"), True, 6),
        ),
        ("## 3 · Exercise", None),
        ("", None),
    ],
)
def test_a_heading_says_names_kind_and_minutes(line, says):
    assert exercise_heading(line) == says


@pytest.mark.parametrize(
    "line",
    [
        "### Exercise `a` · 4 points · 8 minutes · ●●○",
        "### Exercise `a` · optional · 4 points · 8 minutes · ●●○",
        "### Exercise `a` · core · 4 points · ●●○",
        "### Exercise `a` · core · 8 minutes · ●●○",
        "### Exercise `a` · core · 4 points · 8 minutes",
        "### Exercise a · core · 4 points · 8 minutes · ●●○",
    ],
)
def test_a_heading_that_says_less_is_refused(line):
    with pytest.raises(ValueError, match="core or stretch") as error:
        exercise_heading(line)
    assert str(error.value).endswith(line)
