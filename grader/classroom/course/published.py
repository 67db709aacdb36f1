"""Where the course is published: one setting in pyproject.toml, from which every link to it is made."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

GITHUB = "https://github.com"


@dataclass(frozen=True)
class Published:
    """The course's repository on GitHub, `OWNER/NAME`, and the tag of this version; "" where it is not published."""

    repository: str
    tag: str

    def __bool__(self) -> bool:
        return bool(self.repository)

    @property
    def page(self) -> str:
        """The repository, to read and to clone."""
        return f"{GITHUB}/{self.repository}"

    @property
    def install(self) -> str:
        """What pip installs: the student's side at this version."""
        return f"git+{self.page}@{self.tag}"

    @property
    def codespaces(self) -> str:
        """A Codespace of the course."""
        return f"https://codespaces.new/{self.repository}?quickstart=1"

    def notebook(self, name: str) -> str:
        """The released notebook of a lesson, or `index`, as GitHub shows it."""
        return f"{self.page}/blob/{self.tag}/{_path(name)}"

    def colab(self, name: str) -> str:
        """The same, opened in Colab."""
        return f"https://colab.research.google.com/github/{self.repository}/blob/{self.tag}/{_path(name)}"

    def kaggle(self, name: str) -> str:
        """The same, opened in Kaggle."""
        return f"https://kaggle.com/kernels/welcome?src={self.notebook(name)}"

    def download(self, name: str) -> str:
        """The same, as a file."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.tag}/{_path(name)}"


def published(root: Path) -> Published:
    """Where the course in this folder is published, by its pyproject.toml; ValueError for what is no OWNER/NAME."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    repository = settings["tool"]["many-devices"]["repository"]
    if not re.fullmatch(r"([\w-]+/[\w.-]+)?", repository):
        raise ValueError(
            f'pyproject.toml, [tool.many-devices]: repository should be "OWNER/NAME" as on GitHub, or "" while the course '
            f"is not published; it is {repository!r}."
        )
    return Published(repository, f"v{settings['project']['version']}")


def _path(name: str) -> str:
    return "course/index.ipynb" if name == "index" else f"course/{name}/{name}.ipynb"
