"""The heading of an exercise says all that is declared there, or the build stops and says what is missing."""

import pytest

from grader.classroom.course.headings import ExerciseHeading, exercise_heading, with_points


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


POINTS = [
    ("`case3` · core · 8 minutes · ●●○", "`case3` · core · 4 points · 8 minutes · ●●○"),
    ("`case3` · core · 1 point · 8 minutes · ●●○", "`case3` · core · 4 points · 8 minutes · ●●○"),
    ("`case3`, `bubble` · core · 1 + 2 points · 8 minutes", "`case3`, `bubble` · core · 4 + 2 points · 8 minutes"),
    (
        "`psum_ref`, `all_gather_ref` · stretch · 8 minutes",
        "`psum_ref`, `all_gather_ref` · stretch · 1 point each · 8 minutes",
    ),
]


@pytest.mark.parametrize(("line", "filled"), POINTS)
def test_the_points_in_a_heading_are_the_declared_ones(line, filled):
    kind = "### Exercises" if "," in line else "### Exercise"
    text = "Before.\n\n{0} {1}\n\nAfter: 2 points · 3 minutes.\n"
    assert with_points(text.format(kind, line)) == text.format(kind, filled)


def test_a_heading_of_what_is_not_declared_names_it():
    with pytest.raises(LookupError, match="nothing_of_that_name"):
        with_points("### Exercise `nothing_of_that_name` · core · 8 minutes · ●●○")
