"""§ 4–5, the functions, and § 8–10: moving arrays, and two meshes that work at the same time."""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import FROM_HOST, OnDevices, OnMesh
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.placement.whereabouts import FRONT, REAR, RING, TURNED, lab, runs
from grader.lessons.shared import believed

HALVES, EVENS_AND_ODDS, BACK_TO_FRONT = (FRONT, REAR), (range(0, 8, 2), range(1, 8, 2)), (REAR, FRONT)


def _line(numbers, axis="x"):
    return OnMesh({axis: len(numbers)}, order=tuple(numbers))


# One transfer, so that two arrays may meet.


def _brought_to(y, z):
    return y + jax.device_put(z, y.sharding)


fix_the_placement = FunctionExercise("fix_the_placement", points=4, reference=_brought_to, barred=FROM_HOST)


@fix_the_placement.cases
def _(draw):
    for (one, other), spec in zip(
        (HALVES, (range(8), TURNED), (REAR, (3,)), (RING, range(8))),
        (P("x"), P("x"), P("x", None), P(None, "x")),
        strict=True,
    ):
        shape = (8,) * len(spec)
        axis = "x" if len(spec) == 1 else "w"  # of z's own mesh
        own = P(*(entry and axis for entry in spec))
        yield Case(
            {
                "y": OnDevices(draw.values(*shape), _line(one), spec),
                "z": OnDevices(draw.values(*shape), _line(other, axis), own),
            }
        )
    yield Case({"y": OnDevices(draw.values(8)), "z": OnDevices(draw.values(8), _line((3,)))})


@fix_the_placement.mistake
def moved_nothing(y, z):
    """Where both are committed, to different devices or to the same in another order, neither gives way. (A
    `device_put` without a second argument moves nothing.) Which one is to stay where it is?"""
    return y + z


@fix_the_placement.mistake
def moved_the_other_one(y, z):
    """Now they meet, but at z's place. The sum is to be where y is."""
    return jax.device_put(y, z.sharding) + z


@fix_the_placement.mistake
def moved_both_to_one_device(y, z):
    """The whole sum is on one device, and the others have nothing to do. Leave y where it is: `y.sharding` says where z
    is wanted."""
    first = jax.devices()[0]
    return jax.device_put(y, first) + jax.device_put(z, first)


@fix_the_placement.mistake
def moved_to_one_device_of_the_mesh(y, z):
    """That y has a part on a device is not enough: z has to come to *all* the devices of y, in y's order. Did z go to a
    single one?"""
    return y + jax.device_put(z, list(y.sharding.mesh.devices.flat)[0])


@fix_the_placement.mistake
def moved_with_its_own_spec(y, z):
    """A spec speaks of the axes of its own mesh, and y's mesh may have others. Which sharding says both, where y is and
    how it is laid out?"""
    return y + jax.device_put(z, NamedSharding(y.sharding.mesh, z.sharding.spec))


@fix_the_placement.mistake
def resharded(y, z):
    """`reshard` is for Explicit axes, and even there it changes a layout over the devices that an array is on. To
    other devices, or another order of them, only `device_put` leads."""
    return y + jax.sharding.reshard(z, y.sharding)


@fix_the_placement.mistake
def through_numpy(y, z):
    """Something came by way of the host. NumPy is the host; and what is brought together on one device, and cut into
    blocks for others, goes there, too. A single call moves z from its devices to those of y, laid out as y is."""
    return y + jax.device_put(np.asarray(z), y.sharding)


# Repair: the program that wanted to move.


def _moved_outside(x, target):
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P("x")))


no_move_in_jit = FunctionExercise("no_move_in_jit", points=3, reference=_moved_outside, barred=FROM_HOST)


@no_move_in_jit.cases
def _(draw):
    meshes = [(_line(one), _line(other)) for one, other in (HALVES, EVENS_AND_ODDS, BACK_TO_FRONT)]
    meshes.append((_line((0, 2, 4, 6)), _line((7, 1, 5, 3))))
    # A target whose axis x is not the first, the last or the only one.
    meshes.append((OnMesh({"x": 2, "w": 2}, order=(6, 1, 4, 2)), OnMesh({"w": 2, "x": 2, "v": 1}, order=(3, 0, 5, 7))))
    for mesh, target in meshes:
        yield Case({"x": OnDevices(draw.values(8), mesh, P("x")), "target": target})


@no_move_in_jit.mistake
def still_inside(x, target):
    """The transfer is still a part of the compiled program. Let the program end, and move its result."""
    return jax.jit(lambda a: jax.device_put(2 * a, NamedSharding(target, P("x"))))(x)


@no_move_in_jit.mistake
def asked_for_it_with_out_shardings(x, target):
    """`out_shardings` belong to the compiled program, too. What brings an array to other devices stands outside
    of it."""
    return jax.jit(lambda a: 2 * a, out_shardings=NamedSharding(target, P("x")))(x)


@no_move_in_jit.mistake
def never_moved(x, target):
    """The program runs, but its result is still where x is."""
    return jax.jit(lambda a: 2 * a)(x)


@no_move_in_jit.mistake
def everything_to_everyone(x, target):
    """Every device of the target got the whole. It was to be cut over x, as the operand was."""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P()))


@no_move_in_jit.mistake
def to_one_device(x, target):
    """The result is on a single device. The target is a *mesh*: which sharding says how to lay it out over all of
    it?"""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), target.devices.flat[0])


@no_move_in_jit.mistake
def in_the_order_of_numbers(x, target):
    """The result is on the right devices, in the order of their numbers, and not in that of `target`: blocks go to
    *places* of the mesh. Was a mesh made anew of its devices?"""
    ordered = sorted(target.devices.flat, key=lambda device: device.id)
    mesh = jax.sharding.Mesh(np.array(ordered).reshape(target.devices.shape), target.axis_names)
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(mesh, P("x")))


@no_move_in_jit.mistake
def doubled_twice(x, target):
    """Every number is four times that of x. Was it doubled before the move and after it? Once is enough."""
    double = jax.jit(lambda a: 2 * a)
    return double(jax.device_put(double(x), NamedSharding(target, P("x"))))


@no_move_in_jit.mistake
def forgot_to_double(x, target):
    """It has been moved, but not doubled."""
    return jax.device_put(x, NamedSharding(target, P("x")))


# Two stages on two meshes.


def stage(w, x):
    """One stage: the same function as beside the lesson's imports."""
    return jax.nn.relu(x @ w)


def _two_stage(x, w1, w2):
    h = stage(w1, x)
    return stage(w2, jax.device_put(h, NamedSharding(w2.sharding.mesh, P("x"))))


two_stage = FunctionExercise("two_stage", points=5, reference=_two_stage, barred=FROM_HOST)


@two_stage.cases
def _(draw):
    for one, other in (HALVES, BACK_TO_FRONT, EVENS_AND_ODDS, ((6, 1), (4, 3))):
        rows, inner = 2 * len(one), 6
        yield Case(
            {
                "x": OnDevices(draw.values(rows, inner), _line(one), P("x")),
                "w1": OnDevices(draw.values(inner, inner), _line(one)),
                "w2": OnDevices(draw.values(inner, inner), _line(other)),
            }
        )


@two_stage.mistake
def did_not_move(x, w1, w2):
    """In one stage two arrays met that are on different meshes. The first stage leaves its result on the first mesh,
    and the second stage's weights are on the other. Who brings the one to the other, and when?"""
    return stage(w2, stage(w1, x))


@two_stage.mistake
def resharded_across(x, w1, w2):
    """`reshard` is for Explicit axes, and even there it changes the layout *within* a mesh. What leads from one mesh
    to another?"""
    return stage(w2, jax.sharding.reshard(stage(w1, x), NamedSharding(w2.sharding.mesh, P("x"))))


@two_stage.mistake
def everything_on_all_devices(x, w1, w2):
    """The result is whole on all eight devices. Did you make one mesh of all of them? Then there are no two stages any
    more, and no half could work on the next batch already."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    x, w1, w2 = (jax.device_put(a, NamedSharding(mesh, P())) for a in (x, w1, w2))
    return stage(w2, stage(w1, x))


@two_stage.mistake
def moved_the_weights(x, w1, w2):
    """The result is on the first mesh. Either the second stage ran there, and its *weights* were moved; or the result
    was brought back. In a pipeline weights stay where they are, and activations travel: on, and not back."""
    return stage(jax.device_put(w2, w1.sharding), stage(w1, x))


@two_stage.mistake
def laid_out_like_the_weights(x, w1, w2):
    """The result is on the right mesh, and all of it on every device: a layout that cuts nothing, as that of `w2`. Did
    each device of the second mesh get the whole batch, and compute all of it?"""
    return stage(w2, jax.device_put(stage(w1, x), w2.sharding))


@two_stage.mistake
def moved_x_first(x, w1, w2):
    """w1 has met an array that is on the other mesh. Was x sent on before the first stage had seen it? Which devices
    hold w1?"""
    return stage(w2, stage(w1, jax.device_put(x, NamedSharding(w2.sharding.mesh, P("x")))))


@two_stage.mistake
def activations_through_numpy(x, w1, w2):
    """Something went down to the host and up again, or came from there. On real chips that is the slowest way there
    is."""
    return stage(w2, jax.device_put(np.asarray(stage(w1, x)), NamedSharding(w2.sharding.mesh, P("x"))))


@two_stage.mistake
def only_one_stage(x, w1, w2):
    """The second stage is missing: what came over was never multiplied by w2."""
    return jax.device_put(stage(w1, x), NamedSharding(w2.sharding.mesh, P("x")))


@two_stage.mistake
def one_relu_at_the_end(x, w1, w2):
    """What came over was multiplied by w2 with its negative numbers. The first stage ends with a relu, as the second
    does: was `stage` called for both?"""
    h = jax.device_put(x @ w1, NamedSharding(w2.sharding.mesh, P("x")))
    return stage(w2, h)


# A pipeline: many batches, a mesh for every stage.


def _pipeline(batches, weights):
    done = []
    for h in batches:
        for w in weights:
            h = stage(w, jax.device_put(h, NamedSharding(w.sharding.mesh, P("x"))))
        done.append(h)
    return done


halves_pipeline = FunctionExercise("halves_pipeline", points=6, reference=_pipeline, barred=FROM_HOST)
QUARTERS = ((0, 1), (2, 3), (4, 5), (6, 7))


@halves_pipeline.cases
def _(draw):
    for meshes, count in ((HALVES, 3), (QUARTERS, 5), ((REAR, (2, 0, 3, 1)), 1)):  # once fewer batches than stages
        yield Case(
            {
                "batches": [OnDevices(draw.values(4, 6)) for _ in range(count)],
                "weights": [OnDevices(draw.values(6, 6), _line(mesh)) for mesh in meshes],
            }
        )


@halves_pipeline.mistake
def never_sent_on(batches, weights):
    """In one stage two arrays met that are on different meshes. Every stage has a mesh of its own: what has to happen
    to a batch between two stages?"""
    done = []
    for h in batches:
        h = jax.device_put(h, NamedSharding(weights[0].sharding.mesh, P("x")))
        for w in weights:
            h = stage(w, h)
        done.append(h)
    return done


@halves_pipeline.mistake
def did_not_cut_the_batch(batches, weights):
    """Each result is *whole* on every device of its mesh. The layout of the weights cuts no batch, and neither does JAX
    by itself: was each batch put on the mesh cut over x?"""
    done = []
    for h in batches:
        for w in weights:
            h = stage(w, jax.device_put(h, w.sharding))
        done.append(h)
    return done


@halves_pipeline.mistake
def fed_every_stage_the_batch(batches, weights):
    """This is what the last stage makes of the *batch* itself. A stage works on what the stage before it made of it."""
    return [
        stage(weights[-1], jax.device_put(batch, NamedSharding(weights[-1].sharding.mesh, P("x")))) for batch in batches
    ]


@halves_pipeline.mistake
def one_stage_for_each_batch(batches, weights):
    """Here no batch met more than one stage: the first batch met the first stage, and so on. Every batch has to pass
    every stage: did you count both together?"""
    pairs = zip(batches, weights)  # noqa: B905 - as a student writes it
    return [stage(w, jax.device_put(h, NamedSharding(w.sharding.mesh, P("x")))) for h, w in pairs]


@halves_pipeline.mistake
def kept_the_last(batches, weights):
    """Only the last batch came back. The results are wanted as a list, one for each batch."""
    return _pipeline(batches, weights)[-1]


@halves_pipeline.mistake
def put_them_together(batches, weights):
    """The results were joined to one array. They are wanted as a list: the next step may begin with the first
    before the last is there."""
    return jnp.concatenate(_pipeline(batches, weights))


@halves_pipeline.mistake
def all_stages_on_the_first_mesh(batches, weights):
    """The results are on the first mesh. Either the weights were brought there, and all stages ran on one mesh; or the
    results were brought back. In a pipeline weights stay where they are, and activations travel: on, and not back."""
    home = weights[0].sharding
    moved = [jax.device_put(w, home) for w in weights]
    done = []
    for h in batches:
        h = jax.device_put(h, NamedSharding(home.mesh, P("x")))
        for w in moved:
            h = stage(w, h)
        done.append(h)
    return done


@halves_pipeline.mistake
def only_two_stages(batches, weights):
    """It works for two stages. Four meshes are four stages: go through `weights`, however many there are."""
    return _pipeline(batches, [weights[0], weights[1]])


# What stands in older texts, and in every second forum.


def _where_it_runs():
    front, fresh = lab()["first_half"], lab()["fresh"]
    return "on the committed one's devices" if (fresh + front).devices() == front.devices() else "on the default device"


def _what_must_agree():
    """Change the layout, then the order, and see which of the two is too much."""
    layouts, orders = runs("sharded + replicated"), runs("sharded + backwards")
    return {("runs", "error"): "their order", ("error", "runs"): "their specs", ("runs", "runs"): "nothing"}.get(
        (layouts, orders), "both"
    )


def _leads_to_other_devices():
    """Who brings a result there. (JAX 0.7's reshard raises nothing here, and leaves the array where it was.)"""
    front, there = lab()["first_half_explicit"], lab()["second_half_sharding_explicit"]
    arrived = []
    for name, way in {"device_put": jax.device_put, "reshard": jax.sharding.reshard}.items():
        with contextlib.suppress(ValueError):
            if way(front, there).devices() == there.device_set:
                arrived.append(name)
    return " and ".join(arrived)


CLAIMS = {
    "policy": _where_it_runs,
    "same_devices": _what_must_agree,
    "other_devices": _leads_to_other_devices,
}

CLAIMS_CHOSEN = {
    "on the committed one's devices": "The devices of the committed one: there such a sum runs. Is that asked here?",
    "on the default device": "The default device is where an array comes to that was put nowhere.",
    "nothing": "Nothing else: then any two arrays on the same devices could be added, in whatever order these stand.",
    "their order": "Their order: place k of a mesh is one device, and which one it is differs between two orders.",
    "their specs": "Their specs: which dimension is cut over which axis. Can the compiler change that in a program?",
    "device_put": "`device_put` sends an array to where it is told, on whatever devices.",
    "reshard": "`reshard` changes the layout in a program, over its devices.",
    "device_put and reshard": "Both: then `reshard` would lead out of the devices of its program.",
}
placement_claims = TableExercise(
    "placement_claims", points=2, reference=lambda row: CLAIMS[row](), options=CLAIMS_CHOSEN
)
placement_claims.rows(CLAIMS)


@placement_claims.mistake
def the_default_device_decides(row):
    """Where was `first_half + fresh`, above? What you placed decides, and what you did not place follows."""
    return believed(row, "on the default device", "policy")


@placement_claims.mistake
def specs_must_agree(row):
    """Two specs over one list of devices are two layouts: the compiler brings them together. Think of `sharded +
    replicated`."""
    return believed(row, "their specs", "same_devices")


@placement_claims.mistake
def devices_are_a_set(row):
    """`sharded` and `backwards` are on the same eight devices. May they meet?"""
    return believed(row, "nothing", "same_devices")


@placement_claims.mistake
def reshard_leads_anywhere(row):
    """`reshard` is an operation of a program, and a program has one list of devices. Try it, and look at the
    `.devices()` of what comes out."""
    return believed(row, "device_put and reshard", "other_devices")


@placement_claims.mistake
def reshard_is_the_way(row):
    """It is the other way round: one changes the layout on the devices at hand, the other brings an array to
    any devices."""
    return believed(row, "reshard", "other_devices")
