"""nbgrader_config.py names our parts of nbgrader as text: each is there, under that name."""

from traitlets.utils.importstring import import_item

from grader.classroom import nbgrader_plugins
from grader.classroom.course.build import configuration


def strings(value):
    """All texts in a configuration, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def test_the_configuration_names_each_of_our_plugins_and_nothing_else_of_ours(root):
    named = [text for text in strings(configuration(root)) if text.startswith("grader.")]
    assert sorted(named) == [f"{nbgrader_plugins.__name__}.{name}" for name in nbgrader_plugins.__all__]
    assert all(import_item(name).__name__ == name.rpartition(".")[2] for name in named)
