"""§ 11, a resharding that is cheaper with explicit sends than the compiler's."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, ProgramExercise
from grader.lessons.shared import bytes_sent, device_map, to_send

BEFORE, AFTER = P("x", "y"), P("y", "x")
PLACES = tuple(itertools.product(range(4), range(2)))  # (x, y) of every device

beat_the_compiler = ProgramExercise(
    "beat_the_compiler", points=5, mesh_shapes=((4, 2),), reference=lambda v: v, against_compiler=True
)


@beat_the_compiler.cases
def _(draw):
    i, j = draw.lengths(2, divisible_by=8)
    half = i * j // 8 // 2
    return Case(
        {"v": to_send(draw, i, j, spec=BEFORE)},
        draw.mesh("x", "y"),
        AFTER,
        limits=[BytesSent(2 * bytes_sent("collective_permute", half, 8))],
    )


def _number(x: int, y: int) -> int:
    return 2 * x + y


def _in_two_turns(block, row_half=lambda place, turn: (place + turn) % 2, number=_number):
    """Send each half block straight to where it belongs. A mistake writes it to another row half, or numbers the
    devices differently."""
    height, breadth = block.shape[0], block.shape[1] // 2
    place = lax.axis_index("x")
    result = jnp.zeros((2 * height, breadth), block.dtype)
    for turn in (0, 1):
        piece = lax.dynamic_slice_in_dim(block, breadth * ((place + turn) % 2), breadth, axis=1)
        pairs = [(number(x, y), number(2 * y + (x + turn) % 2, x // 2)) for x, y in PLACES]
        came = lax.ppermute(piece, ("x", "y"), pairs)
        result = lax.dynamic_update_slice_in_dim(result, came, height * row_half(place, turn), axis=0)
    return result


@beat_the_compiler.mistake
def in_pairs_then_whole_blocks(v, *, mesh):
    """The program does what the compiler does: halves are exchanged within pairs of devices, and then whole blocks are
    sent. Some halves are sent twice. Where does each half belong in the end, and which device can send it there
    directly?"""

    def body(block):
        paired = lax.all_to_all(block, "x", 1, 0, axis_index_groups=[[0, 1], [2, 3]], tiled=True)
        pairs = [(_number(x, y), _number(2 * y + x % 2, x // 2)) for x, y in PLACES]
        return lax.ppermute(paired, ("x", "y"), pairs)

    return device_map(body, mesh, BEFORE, AFTER)(v)


@beat_the_compiler.mistake
def whole_and_then_cut(v, *, mesh):
    """Each device gathered the full array and kept one block of it. But it needs only two halves, and each is on one
    device. Which two devices are they?"""

    def body(block):
        columns = lax.all_gather(block, "y", axis=1, tiled=True)
        whole = lax.all_gather(columns, "x", axis=0, tiled=True)
        rows, width = whole.shape[0] // 2, whole.shape[1] // 4
        return lax.dynamic_slice(whole, (rows * lax.axis_index("y"), width * lax.axis_index("x")), (rows, width))

    return device_map(body, mesh, BEFORE, AFTER)(v)


@beat_the_compiler.mistake
def put_in_the_order_of_turns(v, *, mesh):
    """Each half arrives on the right device, but on half of the devices the upper and the lower half are swapped: the
    half that arrived first is above the other. How does a device know, from its own x and the step, whose rows it has
    received?"""
    return device_map(lambda block: _in_two_turns(block, lambda place, turn: turn), mesh, BEFORE, AFTER)(v)


@beat_the_compiler.mistake
def numbered_down_the_columns(v, *, mesh):
    """The pairs number the devices as if x counted fastest. In a ppermute over ("x", "y"), the last axis counts
    fastest. Which number does device (x, y) have?"""
    return device_map(lambda block: _in_two_turns(block, number=lambda x, y: x + 4 * y), mesh, BEFORE, AFTER)(v)


@beat_the_compiler.mistake
def all_send_the_same_half(v, *, mesh):
    """In each step, two devices send to the same device while others receive nothing, but a ppermute delivers at most
    one block to each device. It looks as if all devices sent their left half in one step and their right half in the
    other. Which devices have to start with their other half?"""

    def body(block):
        width = block.shape[1] // 2
        came = [
            lax.ppermute(
                block[:, turn * width :][:, :width],
                ("x", "y"),
                [(_number(x, y), _number(2 * y + turn, x // 2)) for x, y in PLACES],
            )
            for turn in (0, 1)
        ]
        return jnp.concatenate(came)

    return device_map(body, mesh, BEFORE, AFTER)(v)


@beat_the_compiler.mistake
def asked_for_the_new_layout(v, *, mesh):
    """in_specs request the blocks with their final sharding, so the compiler moved them before your function started,
    in its own way. Which in_specs describe the blocks as they are?"""
    return device_map(lambda block: block, mesh, AFTER, AFTER)(v)


@beat_the_compiler.mistake
def left_the_move_to_the_compiler(v, *, mesh):
    """A constraint says how the result is sharded, and leaves it to the compiler how to get there. But that is the
    program to beat. Which device sends which half to which other device?"""
    return lax.with_sharding_constraint(v + 0, NamedSharding(mesh, AFTER))
