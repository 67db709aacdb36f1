"""nbgrader's configuration: the same for its command line, Formgrader's buttons, and ours."""

from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, IgnorePattern, LimitOutput, SaveAutoGrades
from nbconvert.preprocessors import ClearMetadataPreprocessor

c = get_config()  # noqa: F821 - traitlets gives it to this file

c.CourseDirectory.course_id = "many_devices"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "course"
# nbgrader copies whatever lies beside the notebook: the source with its solutions must not be among it.
c.CourseDirectory.ignore = ["*.md", "*.pyc", "__pycache__", ".ipynb_checkpoints"]

# The stub is all that stands for a solution, and says by itself that there is something to do.
c.ClearSolutions.code_stub = {"python": "..."}

# Students' code runs in a worker of ours, and the judge decides outside it.
c.Autograde.autograde_preprocessors = [
    "grader.classroom.execute.JudgedExecute",
    IgnorePattern,
    ClearMetadataPreprocessor,
    LimitOutput,
    SaveAutoGrades,
    AssignLatePenalties,
    CheckCellMetadata,
]
