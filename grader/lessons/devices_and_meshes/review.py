"""What later lessons ask about 01_devices_and_meshes."""

from __future__ import annotations

import numpy as np

from grader.draw.grids import grid
from grader.questions import Question, core, stretch

LESSON = "01_devices_and_meshes"

SHAPES = [{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"data": 2, "model": 4}, {"a": 2, "b": 2, "c": 2}, {"i": 2, "j": 3}]


def _some_mesh(rng: np.random.Generator) -> tuple[dict[str, int], str]:
    sizes = SHAPES[rng.integers(len(SHAPES))]
    return sizes, f"jax.make_mesh({tuple(sizes.values())}, {tuple(sizes)}) on simulated devices"


@core("axis_groups")
def group_of_a_device(rng: np.random.Generator) -> Question:
    sizes, call = _some_mesh(rng)
    devices, axis = grid(sizes), str(rng.choice(list(sizes)))
    groups = devices.groups((axis,))
    group = groups[rng.integers(len(groups))]
    device = int(rng.choice(group))
    return Question(
        f"{call}: which devices are in the same group as device {device} in a collective over {axis!r}? "
        "Give a list of IDs in increasing order, including this one.",
        sorted(group),
        f"They differ in their index along {axis} and in nothing else. All the groups: {groups}.",
        given={"mesh": sizes, "axis": axis, "device": device},
    )


@core(3)
def device_in_a_place(rng: np.random.Generator) -> Question:
    sizes, call = _some_mesh(rng)
    place = tuple(int(rng.integers(n)) for n in sizes.values())
    where = ", ".join(f"{name}={k}" for name, k in zip(sizes, place, strict=True))
    return Question(
        f"{call}: which device is at {where}?",
        int(grid(sizes).ids[place]),
        "The grid is filled row by row, so the last axis changes fastest.",
    )


@core(3)
def devices_of_a_mesh(rng: np.random.Generator) -> Question:
    sizes = [int(n) for n in rng.choice([1, 2, 3, 4], size=2)]
    count = sizes[0] * sizes[1]
    answer = count if count <= 8 else "error"
    why = (
        f"It needs {count} devices, and takes the first {count}. The others stay idle."
        if count <= 8
        else f"It would need {count} devices, and a mesh doesn't create any."
    )
    return Question(
        f"There are 8 devices. How many does jax.make_mesh({tuple(sizes)}, ('x', 'y')) use? A number, or 'error'.",
        answer,
        why,
    )


@stretch("topology_order")
def block_on_another_order(rng: np.random.Generator) -> Question:
    order = [[0, 1, 3, 2], [3, 2, 1, 0], [1, 0, 2, 3], [2, 3, 0, 1]][rng.integers(4)]
    block = int(rng.integers(4))
    return Question(
        f"A 1-D mesh with the axis x has its devices in the order {order}. An array is sharded over x "
        f"into blocks 0 to 3. Which device holds block {block}?",
        order[block],
        f"Block {block} belongs to position {block} of the mesh, and `mesh.devices` says which device is there. An ID "
        "is a name, not a position.",
    )
