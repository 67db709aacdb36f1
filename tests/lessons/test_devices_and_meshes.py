"""What lesson 01 does on its own: cells in an order, stand-ins for TPU cores, recorded listings, questions."""

import inspect
import itertools
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
from answering import verdict
from asking import asked
from rota import in_turn, parts

from grader import draw
from grader.guide.reviews import makers, review
from grader.lessons import EXERCISES
from grader.lessons.devices_and_meshes import devices as devices_and_meshes
from grader.lessons.devices_and_meshes import meshes
from grader.lessons.devices_and_meshes import review as asked_later

LESSON = "01_devices_and_meshes"


@pytest.fixture(scope="module")
def text(root):
    return (root / "solutions" / LESSON / f"{LESSON}.md").read_text()


RIGHT = {"config": list("ABCDE"), "flag": list("ABCDE")}


@pytest.mark.parametrize(
    "scheme, order",
    [
        ("config", ["B", "A", "C", "E", "D"]),
        ("config", "A, C, E, B, D"),
        ("flag", ["B", "A", "C", "D", "E"]),
        ("flag", "acbed"),
    ],
)
def test_any_order_that_ends_with_eight_devices_is_right(scheme, order):
    assert verdict(EXERCISES["setup_cells"], RIGHT | {scheme: order}).passed


A_DAY = 5  # of the wrong orders; each is run in processes of its own
WRONG_ORDERS = [
    ("config", "ABDCE", "configured_after_first_use"),
    ("config", "AECBD", "guard_came_first"),
    ("config", "CABDE", "used_before_import"),
    ("config", "ACBD", "left_a_cell_out"),
    ("config", "ABXDE", "wrote_no_order"),
    ("config", ["A", "A", "B", "C", "D", "E"], "wrote_no_order"),
    ("config", 3, "wrote_no_order"),
    ("config", {"A": 1}, "wrote_no_order"),
    ("flag", "BDACE", "flag_after_first_use"),
    ("flag", "AFBED", "set_another_variable"),
    ("flag", ("A", "F", "C", "B", "D", "E"), "kept_the_useless_cell"),
    ("config", "BADCE", "configured_after_first_use"),
    ("config", "ABDEC", "guard_came_first"),
    ("config", "ADBCE", "used_before_import"),
    ("config", "AB", "left_a_cell_out"),
    ("flag", "ABFDCE", "flag_after_first_use"),
    ("flag", "FABED", "used_before_import"),
    ("flag", "BEDAC", "guard_came_first"),
    ("flag", "ABDE", "left_a_cell_out"),
]


@pytest.mark.parametrize(
    "scheme, order, mistake",
    [pytest.param(*wrong, marks=in_turn(k, parts(len(WRONG_ORDERS), A_DAY))) for k, wrong in enumerate(WRONG_ORDERS)],
)
def test_a_wrong_order_is_told_what_became_of_it(scheme, order, mistake):
    found = verdict(EXERCISES["setup_cells"], RIGHT | {scheme: order})
    assert found.mistake == mistake and found.points == 1


def test_the_lesson_shows_the_cells_that_are_run(text):
    for cells in devices_and_meshes.CELLS.values():
        assert "\n".join(f"{key}   {source}" for key, source in cells.items()) in text


def test_the_lesson_shows_what_is_asked_about(text):
    assert devices_and_meshes.TPU_BOARD in text and meshes.PROCESS_0_OF_2 in text
    for name in ("read_devices", "mesh_or_error", "topology_order", "axis_type", "local_and_global"):
        assert all(
            f'"{case.key}": ...' in text or f"'{case.key}': ..." in text for case in EXERCISES[name].draw_cases()
        ), name


def test_the_calls_in_the_tables_are_those_that_are_tried():
    tried = inspect.getsource(devices_and_meshes)
    for call in devices_and_meshes.TRIALS:
        assert f"lambda: {call}," in tried


def test_jax_orders_eight_cores_of_a_tpu_v3_as_its_documentation_says():
    assert [core.id for core in meshes._tpu_v3((8,))] == [0, 1, 2, 3, 6, 7, 4, 5]


def test_a_ring_in_that_order_never_needs_two_wires():
    coords = {k: device["coords"][:2] for k, device in devices_and_meshes.TPU_DEVICES.items()}
    assert meshes._longest(coords, [core.id for core in meshes._tpu_v3((8,))]) == 1
    assert meshes._longest(coords, range(8)) == 2


@pytest.mark.slow
def test_two_processes_say_what_was_recorded(text, tmp_path):
    program = re.search(r"# two.py\n(.*?)\n```", text, re.DOTALL)[1]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        program = program.replace("29517", str(free.getsockname()[1]))
    (tmp_path / "two.py").write_text(program)
    running = [
        subprocess.Popen(
            [sys.executable, "two.py", str(k)],
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for k in (0, 1)
    ]
    try:
        said = [process.communicate(timeout=120)[0].strip() for process in running]
    finally:
        for process in running:
            process.kill()
    assert said == [meshes.PROCESS_0_OF_2, meshes.PROCESS_0_OF_2.replace("process 0 of", "process 1 of")]


def test_a_group_holds_its_device_and_is_as_long_as_the_axis():
    for question in asked(asked_later.group_of_a_device):
        given = question.given
        assert given["device"] in question.answer and len(question.answer) == given["mesh"][given["axis"]]


def test_the_first_lesson_begins_with_three_questions_of_numpy():
    made = {maker(np.random.default_rng(seed)).ask[:8] for maker in makers()["00_numpy_warm_up"] for seed in range(20)}
    for seed in range(10):
        questions = review(LESSON, seed=seed).questions
        assert len(questions) == 3 and all(q.ask[:8] in made for q in questions)
        assert all(a.ask != b.ask for a, b in itertools.combinations(questions, 2))


def trained(text, change=str):
    """What the cells of part 1 make, after a change to the one with the step."""
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", text, re.DOTALL)[:3]
    space = {}
    for cell in map(change, cells):
        exec(cell, space)
    return float(space["mean_loss"]), str(draw.fits(*(space[k] for k in ("positions", "inputs", "targets", "weights"))))


def test_without_the_mean_the_loss_is_lower_and_the_devices_have_eight_models(text):
    loss, models = trained(text)
    assert models.startswith("all devices have the same model")
    line = next(line for line in text.splitlines() if "gradient = jax.lax.pmean" in line)
    broken, apart = trained(text, lambda cell: cell.replace(line, f"    # {line.strip()}"))
    assert apart.startswith("the devices have 8 different models")
    assert f"falls to {broken:.4f}, a third of what it was" in " ".join(text.split()) and 2.5 < loss / broken < 3.5
