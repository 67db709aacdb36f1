"""Every test in this process sees eight devices."""

from pathlib import Path

import pytest

from grader.devices import eight_devices

eight_devices()
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


def pytest_addoption(parser):
    parser.addoption("--rewrite-goldens", action="store_true", help="write the reviewed sentences anew")
