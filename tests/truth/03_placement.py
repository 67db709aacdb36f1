"""Answers to lesson 03, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def line(*numbers, explicit=False):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(kind,))


def stage(w, x):
    return jax.nn.relu(x @ w)


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)
there = NamedSharding(second, P("x"))

who_holds_it__right_asked = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}
# NumPy's array lies on device 0
who_holds_it__wrong_numpy = who_holds_it__right_asked | {"v": [0]}
# one entry, one device
who_holds_it__wrong_entry = who_holds_it__right_asked | {"whole[0]": [0]}
# a new array is spread
who_holds_it__wrong_new = who_holds_it__right_asked | {"jnp.arange(8)": [0, 1, 2, 3, 4, 5, 6, 7]}
# device_put adds devices
who_holds_it__wrong_put = who_holds_it__right_asked | {"jax.device_put(front, there)": [0, 1, 2, 3, 4, 5, 6, 7]}
commit_status__right_asked = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}
# device_put always commits
commit_status__wrong_put = commit_status__right_asked | {"jax.device_put(v)": True}
# ones_like follows the shape only
commit_status__wrong_like = commit_status__right_asked | {"jnp.ones_like(front)": False}
# an uncommitted operand makes the result free
commit_status__wrong_free = commit_status__right_asked | {"front + fresh": False}
# NumPy remembers
commit_status__wrong_numpy = commit_status__right_asked | {"jnp.asarray(np.asarray(front))": True}
# the default device is no commitment
commit_status__wrong_default = commit_status__right_asked | {"jax.device_put(v, jax.devices()[0])": False}
# a shape carries the place
commit_status__wrong_shape = commit_status__right_asked | {"jnp.zeros(front.shape)": True}

device_order__right_counted = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}
# device k holds entry k
device_order__wrong_same = device_order__right_counted | {"backwards on device 0": 0, "backwards on device 5": 50}
# counts from one
device_order__wrong_from_one = device_order__right_counted | {"winding on device 4": 40}
# the fourth place in place of device 4
device_order__wrong_place = device_order__right_counted | {"winding on device 4": 70}
# the second place in place of device 1
device_order__wrong_place_one = device_order__right_counted | {"winding on device 1": 20}
# NumPy reads in the order of the devices
device_order__wrong_numpy = device_order__right_counted | {"np.asarray(backwards)[0]": 70}
# device_put keeps what is there
device_order__wrong_stays = device_order__right_counted | {"jax.device_put(backwards, whole.sharding) on device 0": 70}
will_it_run__right_tried = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}
# other layouts may not meet
will_it_run__wrong_layouts = will_it_run__right_tried | {"whole + copies": "error"}
# the same set of devices is enough
will_it_run__wrong_set = will_it_run__right_tried | {"whole + backwards": "runs"}
# other meshes may not meet
will_it_run__wrong_meshes = will_it_run__right_tried | {"tall + wide": "error"}
# ones_like is free
will_it_run__wrong_like = will_it_run__right_tried | {"front + jnp.ones_like(rear)": "runs"}
# one device is among the eight
will_it_run__wrong_alone = will_it_run__right_tried | {"whole + alone": "runs"}


def fix_the_placement__right_put(y, z):
    """The plain way."""
    return y + jax.device_put(z, y.sharding)


def fix_the_placement__right_jnp(y, z):
    """jnp.add, with a name for the visitor."""
    visitor = jax.device_put(z, device=y.sharding)
    return jnp.add(y, visitor)


def fix_the_placement__wrong_other(y, z):
    """Moved the wrong one."""
    return jax.device_put(y, z.sharding) + z


def fix_the_placement__wrong_numpy(y, z):
    """Through the host."""
    return y + np.asarray(z)


def fix_the_placement__wrong_back(y, z):
    """Moves y there and the sum back: two transfers."""
    return jax.device_put(jax.device_put(y, z.sharding) + z, y.sharding)


def fix_the_placement__wrong_both(y, z):
    """Brings both to device 0."""
    d = jax.devices()[0]
    return jax.device_put(y, d) + jax.device_put(z, d)


def fix_the_placement__wrong_no_return(y, z):
    """Forgot to return."""
    total = y + jax.device_put(z, y.sharding)


def fix_the_placement__wrong_unchanged(y, z):
    """Moves z and forgets to use it."""
    jax.device_put(z, y.sharding)
    return y + z


def fix_the_placement__wrong_fixed(y, z):
    """The notebook's first mesh."""
    return y + jax.device_put(z, NamedSharding(first, P("x")))


def fix_the_placement__wrong_jit(y, z):
    """The transfer inside jit."""
    return jax.jit(lambda a, b: a + jax.device_put(b, y.sharding))(y, z)


def fix_the_placement__wrong_mesh(y, z):
    """Mesh of y, copies everywhere."""
    return y + jax.device_put(z, NamedSharding(y.sharding.mesh, P()))


inside_jit__right_tried = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}
# out_shardings may lead elsewhere
inside_jit__wrong_out = inside_jit__right_tried | {"jax.jit(jnp.sin, out_shardings=there)(front)": "runs"}
# no device_put inside jit at all
inside_jit__wrong_never = inside_jit__right_tried | {
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "error"
}
# fresh lies on device 0
inside_jit__wrong_fresh = inside_jit__right_tried | {"jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error"}
# the same devices
inside_jit__wrong_order = inside_jit__right_tried | {
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "runs"
}
# a journey behind a jit fails
inside_jit__wrong_behind = inside_jit__right_tried | {"jax.device_put(jax.jit(jnp.sin)(front), there)": "error"}


def no_move_in_jit__right_lambda(x, target):
    """Compiled doubling, then the journey."""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P("x")))


def no_move_in_jit__right_decorated(x, target):
    """A decorated inner function."""

    @jax.jit
    def double(a):
        return a + a

    doubled = double(x)
    return jax.device_put(doubled, NamedSharding(target, P("x")))


def no_move_in_jit__wrong_inside(x, target):
    """device_put stays inside."""
    return jax.jit(lambda a: jax.device_put(2 * a, NamedSharding(target, P("x"))))(x)


def no_move_in_jit__wrong_there(x, target):
    """The notebook's `there`."""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), there)


def no_move_in_jit__right_before(x, target):
    """Moves first, doubles there, which the text leaves open."""
    return jax.jit(lambda a: 2 * a)(jax.device_put(x, NamedSharding(target, P("x"))))


def no_move_in_jit__wrong_whole(x, target):
    """Copies over the target."""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P()))


def no_move_in_jit__wrong_mesh(x, target):
    """A mesh in place of a sharding."""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), target)


def no_move_in_jit__wrong_not_doubled(x, target):
    """Forgot the doubling."""
    return jax.device_put(x, NamedSharding(target, P("x")))


def no_move_in_jit__wrong_no_return(x, target):
    """Forgot to return."""
    y = jax.jit(lambda a: 2 * a)(x)
    jax.device_put(y, NamedSharding(target, P("x")))


def no_move_in_jit__wrong_host(x, target):
    """Doubles in NumPy."""
    return jax.device_put(2 * np.asarray(x), NamedSharding(target, P("x")))


def no_move_in_jit__wrong_stays(x, target):
    """Returns the doubled one where it is."""
    y = jax.jit(lambda a: 2 * a)(x)
    jax.device_put(y, NamedSharding(target, P("x")))
    return y


def no_move_in_jit__right_not_compiled(x, target):
    """Doubles without jit, for which the text does not ask."""
    return jax.device_put(2 * x, NamedSharding(target, P("x")))


how_it_travels__right_tried = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}
# straight across always
how_it_travels__wrong_across = how_it_travels__right_tried | {
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "between devices"
}
# one device has to be cut by the host
how_it_travels__wrong_alone = how_it_travels__right_tried | {"jax.device_put(alone, there)": "through the host"}
# jit uses the runtime
how_it_travels__wrong_jit = how_it_travels__right_tried | {
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "between devices"
}
# always something moves
how_it_travels__wrong_copy = how_it_travels__right_tried | {"jax.device_put(front, front.sharding)": "between devices"}
alias__right_tried = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}
# asarray copies
alias__wrong_asarray = alias__right_tried | {"jnp.asarray(a)": "alive"}
# device_put copies always
alias__wrong_put = alias__right_tried | {"jax.device_put(a, a.sharding)": "alive"}
# adding nothing does nothing
alias__wrong_zero = alias__right_tried | {"a + 0": "deleted"}
# donation is a hint
alias__wrong_donated = alias__right_tried | {"a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive"}
# may_alias has no effect
alias__wrong_may = alias__right_tried | {"jax.device_put(a, a.sharding, may_alias=False)": "deleted"}


def two_stage__right_put(x, w1, w2):
    """The plain way."""
    h = stage(w1, x)
    return stage(w2, jax.device_put(h, NamedSharding(w2.sharding.mesh, P("x"))))


def two_stage__right_spec(x, w1, w2):
    """Takes the spec from the activations, and spells the stage out."""
    h = jax.nn.relu(x @ w1)
    h = jax.device_put(h, NamedSharding(w2.sharding.mesh, h.sharding.spec))
    return jax.nn.relu(h @ w2)


def two_stage__wrong_weights(x, w1, w2):
    """Moves the weights to the activations."""
    return stage(jax.device_put(w2, w1.sharding), stage(w1, x))


def two_stage__wrong_copies(x, w1, w2):
    """w2.sharding for the activations: copies."""
    return stage(w2, jax.device_put(stage(w1, x), w2.sharding))


def two_stage__wrong_second(x, w1, w2):
    """The notebook's second mesh."""
    return stage(w2, jax.device_put(stage(w1, x), NamedSharding(second, P("x"))))


def two_stage__wrong_no_move(x, w1, w2):
    """No transfer."""
    return stage(w2, stage(w1, x))


def two_stage__right_early(x, w1, w2):
    """Moves x and w1 first: all is computed on the second mesh. The text says that the check does not see it."""
    m = w2.sharding.mesh
    x = jax.device_put(x, NamedSharding(m, P("x")))
    w1 = jax.device_put(w1, NamedSharding(m, P()))
    return stage(w2, stage(w1, x))


def two_stage__wrong_swapped(x, w1, w2):
    """The arguments of stage swapped."""
    h = jax.device_put(stage(x, w1), NamedSharding(w2.sharding.mesh, P("x")))
    return stage(h, w2)


def two_stage__wrong_host(x, w1, w2):
    """Through the host."""
    h = np.asarray(stage(w1, x))
    return stage(w2, jax.device_put(h, NamedSharding(w2.sharding.mesh, P("x"))))


def two_stage__wrong_columns(x, w1, w2):
    """The features cut, not the batch."""
    return stage(w2, jax.device_put(stage(w1, x), NamedSharding(w2.sharding.mesh, P(None, "x"))))


def two_stage__wrong_no_return(x, w1, w2):
    """Forgot to return."""
    h = jax.device_put(stage(w1, x), NamedSharding(w2.sharding.mesh, P("x")))
    y = stage(w2, h)


def two_stage__wrong_no_relu(x, w1, w2):
    """Forgot the relu of the second stage."""
    return jax.device_put(stage(w1, x), NamedSharding(w2.sharding.mesh, P("x"))) @ w2


def two_stage__wrong_back(x, w1, w2):
    """Brings the result back."""
    h = jax.device_put(stage(w1, x), NamedSharding(w2.sharding.mesh, P("x")))
    return jax.device_put(stage(w2, h), x.sharding)


def halves_pipeline__right_loops(batches, weights):
    """The hints' way."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(batch)
    return results


def halves_pipeline__right_stagewise(batches, weights):
    """Stage by stage, all batches; nobody waits either."""
    flow = list(batches)
    for w in weights:
        flow = [stage(w, jax.device_put(b, NamedSharding(w.sharding.mesh, P("x")))) for b in flow]
    return flow


def halves_pipeline__right_waits(batches, weights):
    """Waits for each result. The text says that the check does not see it."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(batch.block_until_ready())
    return results


def halves_pipeline__wrong_numpy(batches, weights):
    """Reads each result."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(np.asarray(batch))
    return results


def halves_pipeline__wrong_first_only(batches, weights):
    """Moves the first time only."""
    results = []
    for batch in batches:
        batch = jax.device_put(batch, NamedSharding(weights[0].sharding.mesh, P("x")))
        for w in weights:
            batch = stage(w, batch)
        results.append(batch)
    return results


def halves_pipeline__wrong_two(batches, weights):
    """Two stages, hard-coded."""
    results = []
    for batch in batches:
        for w in weights[:2]:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(batch)
    return results


def halves_pipeline__wrong_copies(batches, weights):
    """w.sharding for the activations."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, w.sharding))
        results.append(batch)
    return results


def halves_pipeline__wrong_last(batches, weights):
    """Returns the last result only."""
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
    return batch


def halves_pipeline__wrong_indent(batches, weights):
    """append inside the inner loop."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
            results.append(batch)
    return results


def halves_pipeline__wrong_restarts(batches, weights):
    """Every stage gets the batch, not the activations."""
    results = []
    for batch in batches:
        for w in weights:
            h = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(h)
    return results


def halves_pipeline__wrong_no_return(batches, weights):
    """Forgot to return."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(batch)


def halves_pipeline__wrong_weights(batches, weights):
    """Weights travel to the first mesh."""
    home = weights[0].sharding
    results = []
    for batch in batches:
        batch = jax.device_put(batch, NamedSharding(home.mesh, P("x")))
        for w in weights:
            batch = stage(jax.device_put(w, home), batch)
        results.append(batch)
    return results


placement_claims__right_found = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put",
}
# the default device decides
placement_claims__wrong_policy = placement_claims__right_found | {"policy": "on the default device"}
# believes that specs must agree
placement_claims__wrong_specs = placement_claims__right_found | {"same_devices": "their specs"}
# a set
placement_claims__wrong_set = placement_claims__right_found | {"same_devices": "nothing"}
# reshard too
placement_claims__wrong_reshard = placement_claims__right_found | {"other_devices": "device_put and reshard"}


# Near misses: wrong at an edge that the text covers.


def no_move_in_jit__wrong_first_axis(x, target):
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P(target.axis_names[0])))


def no_move_in_jit__right_spec_of_x(x, target):
    return jax.jit(lambda a: a + a)(jax.device_put(x, NamedSharding(target, x.sharding.spec)))


def halves_pipeline__wrong_full_queue(batches, weights):
    """Fills the pipeline first: needs at least as many batches as stages."""
    S = len(weights)
    results = []

    def run(h):
        for w in weights:
            h = stage(w, jax.device_put(h, NamedSharding(w.sharding.mesh, P("x"))))
        return h

    for k in range(S):
        results.append(run(batches[k]))
    for k in range(S, len(batches)):
        results.append(run(batches[k]))
    return results


def halves_pipeline__right_wavefront(batches, weights):
    n, s = len(batches), len(weights)
    held = list(batches)
    for t in range(n + s - 1):
        for k in reversed(range(s)):
            if 0 <= t - k < n:
                w = weights[k]
                h = jax.device_put(held[t - k], NamedSharding(w.sharding.mesh, P("x")))
                held[t - k] = stage(w, h)
    return held


def fix_the_placement__wrong_always_named(y, z):
    """Every sharding has a mesh and a spec."""
    return y + jax.device_put(z, NamedSharding(y.sharding.mesh, y.sharding.spec))


def two_stage__wrong_sorted(x, w1, w2):
    """The devices of w2, in the order of their numbers."""
    there = Mesh(np.array(sorted(w2.devices(), key=lambda d: d.id)), ("x",))
    return stage(w2, jax.device_put(stage(w1, x), NamedSharding(there, P("x"))))


def no_move_in_jit__wrong_all_axes(x, target):
    """A target has the axes that it needs: all of them cut."""
    return jax.device_put(2 * x, NamedSharding(target, P(target.axis_names)))


def no_move_in_jit__wrong_last_axis(x, target):
    """The last axis of the target, along which neighbours stand."""
    return jax.device_put(2 * x, NamedSharding(target, P(target.axis_names[-1])))


def no_move_in_jit__right_loop(x, target):
    """Added twice in a loop of the program, and then moved."""
    doubled = jax.jit(lambda a: jax.lax.fori_loop(0, 2, lambda _, so_far: so_far + a, jnp.zeros_like(a)))(x)
    return jax.device_put(doubled, NamedSharding(target, P("x")))
