"""A notebook in this process, and a folder for what is kept of a student."""

import pytest

from grader.guide.attempts import CHOSEN


@pytest.fixture
def notebook():
    """IPython runs in this process, as it does in a kernel; what it would put into a new cell is in `new_cells`."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    made = shell.instance()
    made.new_cells = []
    made.set_next_input = made.new_cells.append
    yield made
    shell.clear_instance()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of a student, which is not there yet."""
    monkeypatch.setenv(CHOSEN, str(tmp_path / "home"))
    return tmp_path / "home"
