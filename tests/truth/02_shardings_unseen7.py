"""Answers to lesson 02, seventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- tutorial_faults ---------------------------------------------------------

tutorial_faults__right_tried = {
    "figure": P("y", "x"),
    "type": type(mesh).__name__,
    "replicate": "the same block",
    "equal": P("x", None) == P("x"),
    "nbytes": mesh.devices.size,
    "in_order": int(mesh.devices[1, 0].id),  # y = 0 is the slow digit, x = 1
}

# "The code above the figure said P("x", "y"), and four places across are the 4 of the mesh's first axis."
tutorial_faults__wrong_believed_the_caption = {
    "figure": P("x", "y"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 2,
}

# "Left out at the end or written, it is the same layout, so the two specs are equal."
tutorial_faults__wrong_equal_layouts = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": True,
    "nbytes": 8,
    "in_order": 2,
}

# "Device 1 is at (0, 1), and with y slow that is 4 * 1 + 0 = 4." (which block device 1 has, not who has block 1)
tutorial_faults__wrong_asked_the_other_way = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 4,
}

# "All devices share the work, so what x does not cut y does: half a block each; and the whole array is still nbytes in all."
tutorial_faults__wrong_everything_is_shared_out = dict(
    figure=P("y", "x"),
    type="Mesh",
    replicate="half of a block each",
    equal=False,
    nbytes=1,
    in_order=2,
)


# --- memory ------------------------------------------------------------------

_w = 8192 * 8192 * 4 // 2**20  # MiB, the whole
_q = 128 * 2048  # bytes, the whole

memory__right_reckoned = {
    "w as P('x', 'y'): MiB on one device": _w // (4 * 2),
    "w as P('x'): MiB on one device": _w // 4,
    "w as P('x'): MiB on all devices": _w * 2,
    "w as P(): MiB on all devices": _w * 8,
    "q as P(('x', 'y')): bytes on one device": _q // (2 * 8),
    "q as P(('x', 'y')): KiB on all devices": _q * 2 // 1024,
}

# "On all devices together there is the array, once, however it is cut."
memory__wrong_once_in_all = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# "q is dealt out over a mesh of 32 devices, so each has a 32nd part."
memory__wrong_all_32_cut = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 262144 // 32,
    "q as P(('x', 'y')): KiB on all devices": 262144 // 1024,
}

# "P('x'): the two devices in each row along x share the array, so each has a half." (took the length of the other axis)
memory__wrong_length_of_the_other_axis = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 128,
    "w as P('x'): MiB on all devices": 1024,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16_384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# "16,384 on one, times 32 devices." (did not see that the last row is asked in KiB)
memory__wrong_unit = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 16384 * 32,
}


# --- count_layouts -----------------------------------------------------------


def count_layouts__right_one_axis_after_the_other(rank, axes):
    """The number of different layouts of an array of this rank, on a mesh with so many axes."""

    def ways(left, placed):
        if left == 0:
            return 1
        # the next axis cuts nothing, or is put into one of the dimensions' lists, at any place there
        return ways(left - 1, placed) + (rank + placed) * ways(left - 1, placed + 1)

    return ways(axes, 0)


# "Each axis cuts one of the dimensions or nothing, and that is all there is to choose."
def count_layouts__wrong_no_orders(rank, axes):
    return (rank + 1) ** axes


# "Wherever several axes made the same choice they can stand in m! orders; nothing is a choice like the others."
def count_layouts__wrong_orders_of_nothing(rank, axes):
    import itertools
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        orders = 1
        for option in range(rank + 1):
            orders *= math.factorial(choice.count(option))
        total += orders
    return total


# "The extra ones are those where all the axes stand in one tuple: for each dimension all orders but the one already counted."
def count_layouts__wrong_only_full_tuples(rank, axes):
    from math import factorial

    return (rank + 1) ** axes + rank * (factorial(axes) - 1)


# "Every axis of the mesh has to cut something, otherwise it would not be in the mesh."
def count_layouts__wrong_every_axis_cuts(rank, axes):
    from itertools import product
    from math import factorial, prod

    return sum(prod(factorial(c.count(d)) for d in range(rank)) for c in product(range(rank), repeat=axes))
