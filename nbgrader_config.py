"""nbgrader's configuration: the same for its command line, Formgrader's buttons, and ours."""

from nbconvert.preprocessors import ClearMetadataPreprocessor, CSSHTMLHeaderPreprocessor
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    ComputeChecksums,
    DeduplicateIds,
    IgnorePattern,
    LimitOutput,
    LockCells,
    OverwriteKernelspec,
)

c = get_config()  # noqa: F821 - traitlets gives it to this file

c.CourseDirectory.course_id = "many_devices"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "course"
# nbgrader copies what lies beside the notebook into the release: the source with its solutions must not be among it.
# (Of what lies beside a hand-in nothing is copied: see grader/classroom/handins/handin.py.)
c.CourseDirectory.ignore = ["*.md", "alternatives.py", "*.pyc", "*.zip", "__pycache__", ".ipynb_checkpoints"]

# The stub is all that stands for a solution, and says by itself that there is something to do.
c.ClearSolutions.code_stub = {"python": "..."}
c.GenerateAssignment.preprocessors = [
    LockCells,
    "grader.classroom.nbgrader_plugins.Starters",
    "grader.classroom.nbgrader_plugins.Taken",
    ClearOutput,
    CheckCellMetadata,
    ComputeChecksums,
    "grader.classroom.nbgrader_plugins.EnterCells",  # nbgrader's SaveCells, but all of a lesson at once
]

# A hand-in under another name is found, and gets the release's marks whatever happened to its own.
c.Autograde.pre_convert_hook = "grader.classroom.nbgrader_plugins.adopt"
c.Autograde.exporter_class = "grader.classroom.nbgrader_plugins.Reader"
# (CheckCellMetadata is left out: the marks are ours.)
c.Autograde.sanitize_preprocessors = [
    "grader.classroom.nbgrader_plugins.Restore",
    ClearOutput,
    DeduplicateIds,
    OverwriteKernelspec,
    "grader.classroom.nbgrader_plugins.RestoreCells",
]

# A notebook's form is looked at when all steps are done, not after each of them.
c.Exporter.optimistic_validation = True

# Students' code runs in a worker of ours, and the judge decides outside it.
c.Autograde.autograde_preprocessors = [
    "grader.classroom.nbgrader_plugins.JudgedExecute",
    IgnorePattern,
    ClearMetadataPreprocessor,
    LimitOutput,
    "grader.classroom.nbgrader_plugins.SaveMarks",
    AssignLatePenalties,
]

# What is late loses what course.toml says; without it, what c.LateSubmissionPlugin.penalty_method says.
c.AssignLatePenalties.plugin_class = "grader.classroom.nbgrader_plugins.LatePenalty"

# (RestoreCells, SaveMarks and GetMarks are nbgrader's own steps, which ask its gradebook once for a notebook, and not
# for each of its cells.)
c.GenerateFeedback.preprocessors = ["grader.classroom.nbgrader_plugins.GetMarks", CSSHTMLHeaderPreprocessor]

# What all pages share is rendered once; and nothing lies beside them.
c.GenerateFeedback.exporter_class = "grader.classroom.nbgrader_plugins.FeedbackPage"

# `nbgrader export` has a table of its own; grades.csv is what `grader grade` writes.
c.CsvExportPlugin.to = "gradebook.csv"

# What a student wrote goes through filters of ours, on feedback pages and in Formgrader.
c.HTMLExporter.filters = {
    "ansi2html": "grader.classroom.nbgrader_plugins.ansi2html",
    "clean_html": "grader.classroom.nbgrader_plugins.clean_html",
    "highlight_code": "grader.classroom.nbgrader_plugins.highlight_code",
    "markdown2html": "grader.classroom.nbgrader_plugins.markdown2html",
    "strip_files_prefix": "grader.classroom.nbgrader_plugins.strip_files_prefix",
}
