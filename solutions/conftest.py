"""Notebooks are compared with outputs that were stored under this seed.

All of them would take `make test` minutes, so there it is each day another one; `make notebooks` names them all.
"""

import os
from pathlib import Path

import pytest
from rota import DAY, parts

from grader.arrays.fresh import SEED

os.environ[SEED] = "0"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # each runs once

LESSONS = sorted(path.name for path in Path(__file__).parent.iterdir() if path.is_dir() and path.name[:2].isdigit())
EVERY = parts(len(LESSONS), a_day=1)


def pytest_ignore_collect(collection_path):
    """Pytest does not ask about a notebook that was named on the command line."""
    if collection_path.name in LESSONS and LESSONS.index(collection_path.name) % EVERY != DAY % EVERY:
        return True
    return None


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """One process runs all cells of a notebook."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
