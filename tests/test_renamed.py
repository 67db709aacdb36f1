"""What was called otherwise in the version before: an old name works, or says what it is called now."""

import importlib
import json

import pytest

import grader
from grader.guide.attempts import attempts
from grader.lessons import EXERCISES, OLD_NAMES, find
from grader.programs.structure import Collective

MODULES = (
    "grader.draw",
    "grader.lessons.data_parallel.seven_runs",
    "grader.transformer",
    "grader.transformer.model",
    "grader.transformer.training",
)
OLD = [(name, old) for name in MODULES for old in importlib.import_module(name)._OLD_NAMES]


@pytest.mark.parametrize("module, old", OLD)
def test_an_old_name_works_and_names_the_new_one(module, old):
    home = importlib.import_module(module)
    new = home._OLD_NAMES[old]
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{old} is now called {module}\.{new};") as warned:
        found = getattr(home, old)
    assert found is getattr(home, new)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("module", MODULES)
def test_an_old_name_is_shown_nowhere(module):
    home = importlib.import_module(module)
    assert not set(home._OLD_NAMES) & {*dir(home), *getattr(home, "__all__", ())}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        home.nothing  # noqa: B018


def test_a_collective_answers_to_the_old_name_of_what_can_overlap_it():
    collective = Collective("all_gather", ("x",), 4, (8,), "float32", 32, overlappable_flops=512)
    with pytest.warns(DeprecationWarning, match="Collective.overlappable_flops") as warned:
        assert collective.meanwhile == 512
    assert warned[0].filename == __file__


@pytest.mark.parametrize("old", OLD_NAMES)
def test_the_old_name_of_an_exercise_says_what_it_is_called_now(old):
    assert old not in EXERCISES
    new = OLD_NAMES[old]
    with pytest.raises(LookupError, match=f"^The exercise '{old}' is now called '{new}': name your answer {new}"):
        find(old)
    assert find(new).name == new


def test_a_check_under_an_old_name_says_so(capsys):
    assert grader.check("who_waits", len) == 0
    assert "'who_waits' is now called 'blocked_devices'" in capsys.readouterr().out


def test_attempts_under_an_old_name_count_for_the_new_one(monkeypatch, tmp_path):
    monkeypatch.setenv("MANY_DEVICES_HOME", str(tmp_path))
    line = {"exercise": "relaid", "points": 2, "worth": 2, "state": "right", "time": 1.0}
    (tmp_path / "checks.jsonl").write_text(json.dumps(line))
    assert [attempt.exercise for attempt in attempts()] == ["resharded"]
