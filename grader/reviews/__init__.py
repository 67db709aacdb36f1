"""The questions of earlier lessons that later ones ask again, by lesson; one module a lesson.

A module has `LESSON`, the lesson its questions belong to, and public functions of a random generator `rng`
that each make one `Question`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import numpy as np

from grader.review import Question

Maker = Callable[[np.random.Generator], Question]


def _makers(module: object) -> list[Maker]:
    return [f for name, f in vars(module).items()
            if inspect.isfunction(f) and not name.startswith("_") and f.__module__ == module.__name__
            and list(inspect.signature(f).parameters) == ["rng"]]


_modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
MAKERS: dict[str, list[Maker]] = {module.LESSON: _makers(module) for module in _modules}
