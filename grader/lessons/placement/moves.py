"""§ 3–5, 7, 11: moving arrays, and meshes that work at the same time."""

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


# One transfer, so that two arrays can be added.


def _brought_to(y, z):
    return y + jax.device_put(z, y.sharding)


fix_the_placement = FunctionExercise(
    "fix_the_placement", points=4, reference=_brought_to, barred=FROM_HOST, way_counts=True
)


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
    """If both arrays are committed, to different devices or to the same ones in a different order, JAX moves
    neither. A `device_put` without a second argument doesn't move anything either. Which of the two should stay
    where it is?"""
    return y + z


@fix_the_placement.mistake
def moved_the_other_one(y, z):
    """The sum is on the devices of z. Which of the two arrays should have moved?"""
    return jax.device_put(y, z.sharding) + z


@fix_the_placement.mistake
def moved_both_to_one_device(y, z):
    """The sum is on a single device, and the others do nothing. Which sharding says where y is?"""
    first = jax.devices()[0]
    return jax.device_put(y, first) + jax.device_put(z, first)


@fix_the_placement.mistake
def moved_to_one_device_of_the_mesh(y, z):
    """z went to a single device. It isn't enough that y has a shard there: z has to be on *all* devices of y, in
    the same order. What says which devices these are?"""
    return y + jax.device_put(z, list(y.sharding.mesh.devices.flat)[0])


@fix_the_placement.mistake
def moved_with_its_own_spec(y, z):
    """A spec names axes of its own mesh, and the mesh of y may have others. Which object says both where y is and
    how it is split?"""
    return y + jax.device_put(z, NamedSharding(y.sharding.mesh, z.sharding.spec))


@fix_the_placement.mistake
def resharded(y, z):
    """`reshard` is for Explicit axes, and even there it only changes the sharding on the same devices. Which
    function sends an array to other devices?"""
    return y + jax.sharding.reshard(z, y.sharding)


@fix_the_placement.mistake
def through_numpy(y, z):
    """Data went through host memory. NumPy arrays are there, and so is an array that is put together on one device
    and then split for others. Which single call sends z from its devices to those of y?"""
    return y + jax.device_put(np.asarray(z), y.sharding)


# Fix the program that has a transfer inside.


def _moved_outside(x, target):
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P("x")))


no_move_in_jit = FunctionExercise(
    "no_move_in_jit", points=3, reference=_moved_outside, barred=FROM_HOST, way_counts=True
)


@no_move_in_jit.cases
def _(draw):
    meshes = [(_line(one), _line(other)) for one, other in (HALVES, EVENS_AND_ODDS, BACK_TO_FRONT)]
    meshes.append((_line((0, 2, 4, 6)), _line((7, 1, 5, 3))))
    # A target whose axis x isn't the first, the last, or the only one.
    meshes.append((OnMesh({"x": 2, "w": 2}, order=(6, 1, 4, 2)), OnMesh({"w": 2, "x": 2, "v": 1}, order=(3, 0, 5, 7))))
    for mesh, target in meshes:
        yield Case({"x": OnDevices(draw.values(8), mesh, P("x")), "target": target})


@no_move_in_jit.mistake
def still_inside(x, target):
    """The transfer is still inside the compiled program. What can happen after the program has ended?"""
    return jax.jit(lambda a: jax.device_put(2 * a, NamedSharding(target, P("x"))))(x)


@no_move_in_jit.mistake
def asked_for_it_with_out_shardings(x, target):
    """`out_shardings` are a part of the compiled program, which runs on the devices of x. What can you do with its
    result, outside of it?"""
    return jax.jit(lambda a: 2 * a, out_shardings=NamedSharding(target, P("x")))(x)


@no_move_in_jit.mistake
def never_moved(x, target):
    """The program runs, but its result is still on the devices of x. Which call moves it?"""
    return jax.jit(lambda a: 2 * a)(x)


@no_move_in_jit.mistake
def everything_to_everyone(x, target):
    """Every device of the target has the full array. The result should be split along x, as the operand is. Which
    spec says that?"""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P()))


@no_move_in_jit.mistake
def to_one_device(x, target):
    """The result is on a single device, but the target is a *mesh*. Which sharding splits an array over all of it?"""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), target.devices.flat[0])


@no_move_in_jit.mistake
def in_the_order_of_numbers(x, target):
    """The result is on the correct devices, but in the order of their IDs: shards go to *positions* in the mesh.
    Did you make a new mesh from its devices?"""
    ordered = sorted(target.devices.flat, key=lambda device: device.id)
    mesh = jax.sharding.Mesh(np.array(ordered).reshape(target.devices.shape), target.axis_names)
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(mesh, P("x")))


@no_move_in_jit.mistake
def doubled_twice(x, target):
    """Every value is four times that of x. Was it doubled both before the transfer and after it?"""
    double = jax.jit(lambda a: 2 * a)
    return double(jax.device_put(double(x), NamedSharding(target, P("x"))))


@no_move_in_jit.mistake
def forgot_to_double(x, target):
    """The array was moved but not doubled. Where does your program multiply by 2?"""
    return jax.device_put(x, NamedSharding(target, P("x")))


# Two stages on two meshes.


def stage(w, x):
    """One stage: the same function as next to the lesson's imports."""
    return jax.nn.relu(x @ w)


def _two_stage(x, w1, w2):
    h = stage(w1, x)
    return stage(w2, jax.device_put(h, NamedSharding(w2.sharding.mesh, P("x"))))


two_stage = FunctionExercise("two_stage", points=5, reference=_two_stage, barred=FROM_HOST, way_counts=True)


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
    """In one stage, two arrays were on different meshes. The result of the first stage is on the first mesh, and
    the weights of the second stage are on the other. Which of the two has to move, and when?"""
    return stage(w2, stage(w1, x))


@two_stage.mistake
def resharded_across(x, w1, w2):
    """`reshard` is for Explicit axes, and even there it only changes the sharding *within* a mesh. Which function
    sends an array to another mesh?"""
    return stage(w2, jax.sharding.reshard(stage(w1, x), NamedSharding(w2.sharding.mesh, P("x"))))


@two_stage.mistake
def everything_on_all_devices(x, w1, w2):
    """The result is replicated on all eight devices. If both stages run on one mesh of all devices, no half can
    already work on the next batch. Which mesh should the second stage run on?"""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    x, w1, w2 = (jax.device_put(a, NamedSharding(mesh, P())) for a in (x, w1, w2))
    return stage(w2, stage(w1, x))


@two_stage.mistake
def moved_the_weights(x, w1, w2):
    """The result is on the first mesh. Either the second stage ran there, with its *weights* moved, or the result
    was sent back. In a pipeline, the weights stay. Which array should be sent, and where to?"""
    return stage(jax.device_put(w2, w1.sharding), stage(w1, x))


@two_stage.mistake
def laid_out_like_the_weights(x, w1, w2):
    """The result is on the correct mesh, but replicated, as `w2` is. So each device of the second mesh computed the
    whole batch. Which spec splits the batch?"""
    return stage(w2, jax.device_put(stage(w1, x), w2.sharding))


@two_stage.mistake
def moved_x_first(x, w1, w2):
    """`w1` was used with an array on the other mesh: x was sent on before the first stage. Which devices hold w1?"""
    return stage(w2, stage(w1, jax.device_put(x, NamedSharding(w2.sharding.mesh, P("x")))))


@two_stage.mistake
def activations_through_numpy(x, w1, w2):
    """Data went through host memory. On real chips, that is the slowest way. Which call sends it directly?"""
    return stage(w2, jax.device_put(np.asarray(stage(w1, x)), NamedSharding(w2.sharding.mesh, P("x"))))


@two_stage.mistake
def only_one_stage(x, w1, w2):
    """The second stage is missing: the activations were never multiplied by w2. Where do you call `stage` for the
    second time?"""
    return jax.device_put(stage(w1, x), NamedSharding(w2.sharding.mesh, P("x")))


@two_stage.mistake
def one_relu_at_the_end(x, w1, w2):
    """Negative values reached w2. The first stage ends with a relu, as the second one does. Did you call `stage`
    for both?"""
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


halves_pipeline = FunctionExercise(
    "halves_pipeline", points=6, reference=_pipeline, barred=FROM_HOST, way_counts=True, must_not_wait=True
)
QUARTERS = ((0, 1), (2, 3), (4, 5), (6, 7))


@halves_pipeline.cases
def _(draw):
    for meshes, count in ((HALVES, 3), (QUARTERS, 5), ((REAR, (2, 0, 3, 1)), 1)):  # fewer batches than stages, once
        yield Case(
            {
                "batches": [OnDevices(draw.values(4, 6)) for _ in range(count)],
                "weights": [OnDevices(draw.values(6, 6), _line(mesh)) for mesh in meshes],
            }
        )


@halves_pipeline.mistake
def waited_in_the_loop(batches, weights):
    """The function waited for a result. In the loop, that leaves the other meshes idle, because nothing else is queued
    until the result is there. Which line waits, or looks at values?"""
    return [jax.block_until_ready(h) for h in _pipeline(batches, weights)]


@halves_pipeline.mistake
def never_sent_on(batches, weights):
    """In one stage, two arrays were on different meshes. Every stage has its own mesh. What has to happen to a
    batch between two stages?"""
    done = []
    for h in batches:
        h = jax.device_put(h, NamedSharding(weights[0].sharding.mesh, P("x")))
        for w in weights:
            h = stage(w, h)
        done.append(h)
    return done


@halves_pipeline.mistake
def did_not_cut_the_batch(batches, weights):
    """Each result is replicated on its mesh. The sharding of the weights doesn't split a batch. Which spec does?"""
    done = []
    for h in batches:
        for w in weights:
            h = stage(w, jax.device_put(h, w.sharding))
        done.append(h)
    return done


@halves_pipeline.mistake
def fed_every_stage_the_batch(batches, weights):
    """The result is what the last stage computes from the *batch* itself. Which array should a stage get?"""
    return [
        stage(weights[-1], jax.device_put(batch, NamedSharding(weights[-1].sharding.mesh, P("x")))) for batch in batches
    ]


@halves_pipeline.mistake
def one_stage_for_each_batch(batches, weights):
    """Each batch passed only one stage: the first batch the first stage, and so on. How many loops does it take for
    every batch to pass every stage?"""
    pairs = zip(batches, weights)  # noqa: B905 - as a student writes it
    return [stage(w, jax.device_put(h, NamedSharding(w.sharding.mesh, P("x")))) for h, w in pairs]


@halves_pipeline.mistake
def kept_the_last(batches, weights):
    """Only the last batch was returned. Where do you keep the results of the others?"""
    return _pipeline(batches, weights)[-1]


@halves_pipeline.mistake
def put_them_together(batches, weights):
    """The results were joined into one array. As a list, the first one can be used before the last is there. What
    does the exercise ask you to return?"""
    return jnp.concatenate(_pipeline(batches, weights))


@halves_pipeline.mistake
def all_stages_on_the_first_mesh(batches, weights):
    """The results are on the first mesh. Either the weights were sent there, or the results were sent back. In a
    pipeline, the weights stay. On which mesh should the last stage run?"""
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
    """It works for two stages. With four meshes, there are four. How many elements does `weights` have?"""
    return _pipeline(batches, [weights[0], weights[1]])


# What older texts and many forums say.


def _where_it_runs():
    front, fresh = lab()["first_half"], lab()["fresh"]
    return "on the committed one's devices" if (fresh + front).devices() == front.devices() else "on the default device"


def _what_must_agree():
    """Change the sharding, then the order, and see which of the two fails."""
    layouts, orders = runs("sharded + replicated"), runs("sharded + backwards")
    return {("runs", "error"): "their order", ("error", "runs"): "their specs", ("runs", "runs"): "nothing"}.get(
        (layouts, orders), "both"
    )


def _leads_to_other_devices():
    """The functions whose result gets there. (JAX 0.7's reshard raises no error, and leaves the array in place.)"""
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
    "on the committed one's devices": "A sum of a committed and an uncommitted array runs on the devices of the "
    "committed one. Does this row ask about that?",
    "on the default device": "The default device is where JAX creates an array if you don't say where. Is that so "
    "here?",
    "nothing": "If nothing else had to agree, you could add any two arrays on the same devices, in any order. Can you?",
    "their order": "In a different order, position k of the mesh is a different device. Does this row ask about that?",
    "their specs": "A spec says which axis splits which dimension. Can the compiler change that in a program?",
    "device_put": "`device_put` sends an array to any devices. Does anything else do that?",
    "reshard": "`reshard` changes the sharding in a program, on its devices. Can it lead to others?",
    "device_put and reshard": "If both did, `reshard` would leave the devices of its program. Can it?",
}
placement_claims = TableExercise(
    "placement_claims", points=2, reference=lambda row: CLAIMS[row](), options=CLAIMS_CHOSEN
)
placement_claims.rows(CLAIMS)


@placement_claims.mistake
def the_default_device_decides(row):
    """`first_half + fresh` ran in part 2. Where was its result?"""
    return believed(row, "on the default device", "policy")


@placement_claims.mistake
def specs_must_agree(row):
    """Two specs over one list of devices are two shardings, and the compiler can combine them. Does `sharded +
    replicated` run?"""
    return believed(row, "their specs", "same_devices")


@placement_claims.mistake
def devices_are_a_set(row):
    """`sharded` and `backwards` are on the same eight devices. Can you add them?"""
    return believed(row, "nothing", "same_devices")


@placement_claims.mistake
def reshard_leads_anywhere(row):
    """`reshard` is an operation of a program, and a program has one list of devices. Try it. What are the
    `.devices()` of the result?"""
    return believed(row, "device_put and reshard", "other_devices")


@placement_claims.mistake
def reshard_is_the_way(row):
    """It is the other way around: one function changes the sharding on the same devices, and the other sends an
    array to any devices. Which one does what?"""
    return believed(row, "reshard", "other_devices")
