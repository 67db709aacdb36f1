"""nbgrader as it comes, for what compares with it: the benchmark and the attacks."""

from __future__ import annotations

from nbconvert.preprocessors import ClearMetadataPreprocessor, CSSHTMLHeaderPreprocessor
from nbgrader import preprocessors as nb
from traitlets.config import Config


def configuration(seconds: int) -> Config:
    """What undoes ours, step by step; but a cell may take so many seconds."""
    config = Config()
    config.Autograde.pre_convert_hook = None
    config.Autograde.exporter_class = "nbconvert.exporters.NotebookExporter"
    config.Autograde.sanitize_preprocessors = [
        nb.ClearOutput,
        nb.DeduplicateIds,
        nb.OverwriteKernelspec,
        nb.OverwriteCells,
        nb.CheckCellMetadata,
    ]
    config.Autograde.autograde_preprocessors = [
        nb.Execute,
        nb.IgnorePattern,
        ClearMetadataPreprocessor,
        nb.LimitOutput,
        nb.SaveAutoGrades,
        nb.AssignLatePenalties,
        nb.CheckCellMetadata,
    ]
    config.GenerateFeedback.preprocessors = [nb.GetGrades, CSSHTMLHeaderPreprocessor]
    config.GenerateFeedback.exporter_class = "nbconvert.exporters.HTMLExporter"
    config.HTMLExporter.filters = {}
    config.Exporter.optimistic_validation = False
    config.Execute.timeout = seconds
    config.Execute.extra_arguments = ["--IPKernelApp.log_level=ERROR"]  # it warns that its connection is not encrypted
    return config
