"""What nbgrader is given of ours: the names that nbgrader_config.py spells."""

from grader.classroom.course.stubs import Starters
from grader.classroom.grading.execute import JudgedExecute
from grader.classroom.grading.page import Page
from grader.classroom.handins.handin import Alone, Reader, Restore, adopt

__all__ = ["FeedbackPage", "JudgedExecute", "Reader", "Restore", "Starters", "adopt"]


class FeedbackPage(Alone, Page):
    """A page with nothing beside it."""
