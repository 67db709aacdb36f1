"""What JupyterLab is started with: for a student `work/` and the contents pane, for an instructor everything."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from jupyterlab_server.workspaces_handler import WorkspacesManager

from grader.arrays.devices import POOL
from grader.classroom.course.index import START_PAGE
from grader.classroom.course.work import WORK

SETTINGS = Path(__file__).with_name("for_students")  # in the form in which Jupyter reads its own
WORKSPACES = ".lab"  # in work/: which tabs and panes are open
CONTENTS = "@jupyterlab/toc:plugin"
PANES = {  # the contents pane is open, a fifth of the window wide
    "left": {"collapsed": False, "visible": True, "current": CONTENTS, "widgets": ["filebrowser", CONTENTS]},
    "right": {"collapsed": True, "visible": True, "widgets": []},
    "relativeSizes": [0.2, 0.8, 0],
}


@dataclass(frozen=True)
class Session:
    """One start of JupyterLab: its folder, its options, and where it finds its configuration."""

    folder: Path
    options: tuple[str, ...]
    configuration: Path

    @property
    def command(self) -> list[str]:
        # (A container often has no other user than root, whom Jupyter refuses. It asks for its token all the same.)
        root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        return [sys.executable, "-m", "jupyterlab", *self.options, *root, *os.environ.get("LAB_ARGS", "").split()]

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "NPROC": str(POOL),
            "JUPYTER_CONFIG_PATH": str(self.configuration),
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
        }


def for_instructor(root: Path) -> Session:
    """On the whole checkout, with nbgrader's menus and Formgrader."""
    return Session(root, (f"--LabApp.default_url=/lab/tree/{WORK}/{START_PAGE}",), root)


def for_student(root: Path) -> Session:
    """On `work/`, with the start page and the contents pane open."""
    workspaces = root / WORK / WORKSPACES
    if not workspaces.exists():
        _open_contents_pane(workspaces)
    options = (f"--LabApp.default_url=/lab/tree/{START_PAGE}", f"--LabApp.workspaces_dir={workspaces}")
    return Session(root / WORK, options, SETTINGS)


def _open_contents_pane(workspaces: Path) -> None:
    workspaces.mkdir(parents=True)
    workspace = {"data": {"layout-restorer:data": PANES}, "metadata": {"id": "default"}}
    WorkspacesManager(str(workspaces)).save("default", json.dumps(workspace))
