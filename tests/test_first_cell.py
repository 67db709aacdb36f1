"""The first cell of a lesson says what it found."""

import pytest
from arrays.test_devices import run

import grader
from grader import first_cell


@pytest.mark.parametrize(
    "name, found, words",
    [
        ("tpu", 8, "8 TPU devices."),
        ("gpu", 16, "16 GPU devices."),
        ("tpu", 1, "1 TPU chip, so 8 CPU devices are simulated."),
        ("gpu", 2, "2 GPUs, so 8 CPU devices are simulated."),
        ("cpu", 8, "No accelerator: 8 simulated CPU devices."),
    ],
)
def test_what_there_is_in_words(name, found, words):
    assert first_cell.devices_in_words(name, found, 8) == words


def test_one_chip_is_told_of_again_when_the_cell_is_run_again():
    done = run("""
        import types, jax
        real, chips = jax.devices, [types.SimpleNamespace(platform="tpu")]
        jax.devices = lambda: [chips.pop()] if chips else real()
        import grader
        grader.welcome("0.1.0")
        grader.welcome("0.1.0")
    """)
    assert done.stdout.splitlines() == ["1 TPU chip, so 8 CPU devices are simulated."] * 2, done.stderr


def test_a_lesson_of_another_version_is_told_of_and_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(first_cell, "version", lambda name: "0.2.0")
    grader.welcome("0.2.0")
    assert len(capsys.readouterr().out.splitlines()) == 1
    grader.welcome("0.1.0")
    _, line = capsys.readouterr().out.splitlines()
    assert "lesson is of version 0.1.0" in line and "here of 0.2.0" in line


def test_a_notebook_shows_no_traceback_where_devices_are_too_few():
    done = run("""
        import jax.numpy as jnp
        jnp.ones(1)
        from IPython.core.interactiveshell import InteractiveShell
        InteractiveShell.instance().run_cell("import grader; grader.welcome('0.1.0')")
    """)
    shown = done.stdout + done.stderr
    assert "restart the kernel" in shown and "Traceback" not in shown and "devices.py" not in shown
