"""§ 3–8: promises that nobody checks, memory given away, memory elsewhere, caches, and meshes left behind.

Every row of a table is an experiment, done when it is asked for.
"""

from __future__ import annotations

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import TO_THE_HOST, OnDevices, OnMesh
from grader.arrays.meshes import make_mesh, put
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.shared import believed
from grader.programs.compilations import compilations

MESH = {"x": 4, "y": 2}  # the mesh of the lesson


# check_vma=False: seven bodies on 4 × 2 devices. x is cut over x, w is 3 everywhere.

TENTHS = np.arange(1, 9, dtype=np.float32) / 10
WHOLE = np.arange(1, 9, dtype=np.float32)


def _around(block):
    """Add up what comes by on a ring: everyone adds the same terms, each in an order of its own."""
    total = block
    for _ in range(MESH["x"] - 1):
        block = lax.ppermute(block, "x", [(k, (k + 1) % MESH["x"]) for k in range(MESH["x"])])
        total = total + block
    return total


def _drawn_along_y(block, w):
    key = jax.random.fold_in(jax.random.key(0), lax.axis_index("y"))
    return lax.psum(block.sum(), "x") + jax.random.uniform(key)


# Per snippet: the body, x, the out_specs, and what NumPy says (None: whatever, as long as the copies agree).
SNIPPETS = {
    "A": (lambda block, w: lax.psum(block, "x") / lax.axis_size("x"), WHOLE, P(), WHOLE.reshape(4, 2).sum(0) / 4),
    "B": (lambda block, w: lax.psum(block.sum(), "y"), WHOLE, P(), WHOLE.sum()),
    "C": (lambda block, w: block - lax.pmax(block.max(), "x"), WHOLE, P("x"), WHOLE - 8),
    "D": (lambda block, w: _around(block.sum()), WHOLE, P(), WHOLE.sum()),
    "E": (lambda block, w: _around(block.sum()), TENTHS, P(), None),
    "F": (_drawn_along_y, WHOLE, P(), None),
}


@functools.cache
def _unchecked(row):
    """Run a snippet, and look at every shard: is it what the specs say it is, and what was wanted?"""
    body, value, out, wanted = SNIPPETS[row]
    mesh = make_mesh(MESH)
    program = jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=out, check_vma=False)
    result = jax.jit(program)(put(value, P("x"), mesh), jnp.float32(3))
    held: dict[str, list[np.ndarray]] = {}
    for shard in result.addressable_shards:
        held.setdefault(str(shard.index), []).append(np.asarray(shard.data))
    copies_agree = all(np.array_equal(first, other) for first, *others in held.values() for other in others)
    return "safe" if copies_agree and (wanted is None or np.array_equal(result, wanted)) else "unsafe"


unchecked = TableExercise("unchecked", points=4, reference=_unchecked)
unchecked.rows(SNIPPETS)


@unchecked.mistake
def summed_where_the_blocks_are_alike(row):
    """The sum runs over y. Along y the devices hold the same block, so it counts that twice, and the other blocks along
    x not at all. Look at the shards of the result, not at `print(result)`."""
    return believed(row, "safe", "B")


@unchecked.mistake
def took_equal_in_mathematics_for_equal(row):
    """Every device adds the same four numbers, each in another order. In floating point that need not give the same
    sum: print `shard.data` with `repr`, and look at the last digits of the copies."""
    return believed(row, "safe", "E")


@unchecked.mistake
def trusted_a_key_that_differs(row):
    """The key depends on the place along y, and `out_specs=P()` calls the results copies. What do devices 0 and 1
    hold?"""
    return believed(row, "safe", "F")


@unchecked.mistake
def doubted_every_unchecked_sum(row):
    """The check is off, and the promise is kept all the same: a psum, a pmax or a full turn of whole numbers gives
    every device the same. Off does not mean wrong; it means that nobody looks. Look at the shards."""
    return believed(row, "unsafe", "A", "C", "D")


# Donation: a is float32[16], cut over eight devices.

LINE = {"x": 8}


def _piece(a):
    return a.addressable_shards[0].data


DONATED = {
    "a, in a + 1": (lambda a: a + 1, {}, lambda a: a),
    "a, in a.astype(jnp.int32)": (lambda a: a.astype(jnp.int32), {}, lambda a: a),
    "a, in a.astype(jnp.bfloat16)": (lambda a: a.astype(jnp.bfloat16), {}, lambda a: a),
    "a, in a + 1 with the result on every device whole": (lambda a: a + 1, {"out_shardings": P()}, lambda a: a),
    "a.addressable_shards[0].data, taken before a + 1": (lambda a: a + 1, {}, _piece),
    "np.asarray(a), taken before a + 1": (lambda a: a + 1, {}, np.asarray),
}


@functools.cache
def _after_donation(row):
    """Donate, and look whether what is asked about can still be read."""
    fn, options, taken = DONATED[row]
    mesh = make_mesh(LINE)
    laid_out = {name: NamedSharding(mesh, spec) for name, spec in options.items()}
    given = np.arange(16, dtype=np.float32)
    if taken:
        given = put(given, P("x"), mesh)
    asked_about = taken(given) if taken else given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Some donated buffers were not usable"
        jax.block_until_ready(jax.jit(fn, donate_argnums=0, **laid_out)(given))
    gone = isinstance(asked_about, jax.Array) and asked_about.is_deleted()
    return "deleted" if gone else "alive"


donated = TableExercise("donated", points=3, reference=_after_donation)
donated.rows(DONATED)


@donated.mistake
def donation_is_only_an_offer(row):
    """A result of the same size and layout comes out, so the program takes the memory for it. The old name is then
    empty."""
    return believed(row, "alive", "a, in a + 1")


@donated.mistake
def donation_always_deletes(row):
    """The memory is taken only for a result that fits into it, byte for byte, on every device. How many bytes does a
    device hold of a, and how many of the result?"""
    return believed(
        row,
        "deleted",
        "a, in a.astype(jnp.bfloat16)",
        "a, in a + 1 with the result on every device whole",
    )


@donated.mistake
def memory_has_a_type(row):
    """Memory is bytes. An int32 is as long as a float32: does the result fit?"""
    return believed(row, "alive", "a, in a.astype(jnp.int32)")


@donated.mistake
def thought_a_piece_is_a_copy(row):
    """A shard's `.data` is no copy: it is the memory of a on that device, under a name of its own. When a gives it
    away, what is left for the piece?"""
    return believed(row, "alive", "a.addressable_shards[0].data, taken before a + 1")


@donated.mistake
def thought_the_host_loses_it_too(row):
    """`np.asarray` put the eight pieces together in the host's memory. That is not the devices' to give away."""
    return believed(row, "deleted", "np.asarray(a), taken before a + 1")


# Memory kinds: Adam's state waits in the host's memory.


def adam(w, g, m, v):
    """One step of Adam without the corrections for its start: the same function as beside the lesson's imports."""
    m = m + 0.1 * (g - m)
    v = v + 0.01 * (g**2 - v)
    return w - 0.1 * m / (jnp.sqrt(v) + 1e-6), m, v


HOST = "pinned_host"


def _on_device(a):
    return jax.device_put(a, a.sharding.with_memory_kind("device"))


def _to_host(a, kind=HOST):
    return jax.device_put(a, a.sharding.with_memory_kind(kind))


def _offloaded_step(w, g, m, v):
    w, m, v = adam(w, g, _on_device(m), _on_device(v))
    return w, _to_host(m), _to_host(v)


offloaded_step = FunctionExercise("offloaded_step", points=5, reference=_offloaded_step, barred=TO_THE_HOST)


@offloaded_step.cases
def _(draw):
    for sizes, spec in ((LINE, P("x")), (MESH, P("x", "y")), (MESH, P(None, "x"))):
        shape, mesh = (8,) * len(spec), OnMesh(sizes)
        w, g, m, v = (draw.values(*shape) for _ in range(4))
        yield Case(
            {
                "w": OnDevices(w, mesh, spec),
                "g": OnDevices(g, mesh, spec),
                "m": OnDevices(m, mesh, spec, memory=HOST),
                "v": OnDevices(np.abs(v), mesh, spec, memory=HOST),
            }
        )


@offloaded_step.mistake
def mixed_the_memories(w, g, m, v):
    """g is on the devices, m and v in the host's memory. JAX does not fetch anything unasked: bring both of them to
    the devices first. `m.sharding.with_memory_kind(...)` is the same layout in another memory."""
    return adam(w, g, m, v)


@offloaded_step.mistake
def left_them_on_the_devices(w, g, m, v):
    """The step is right, and now the state is on the devices, from the first step on: nothing has been saved.
    Where did m and v come from?"""
    return adam(w, g, _on_device(m), _on_device(v))


@offloaded_step.mistake
def sent_the_weights_away_too(w, g, m, v):
    """The weights went to the host as well. The next forward pass needs them on the devices; only m and v can
    wait elsewhere."""
    return tuple(map(_to_host, adam(w, g, _on_device(m), _on_device(v))))


@offloaded_step.mistake
def kept_the_old_state(w, g, m, v):
    """m and v came back as they went in. What `adam` returned is the state of the next step: that is what has to be
    put away."""
    return adam(w, g, _on_device(m), _on_device(v))[0], m, v


@offloaded_step.mistake
def put_away_whole(w, g, m, v):
    """The state came back to the host as a whole copy for each device. On the way in it was cut: the layout stays
    the same, and only the memory changes."""
    w, m, v = adam(w, g, _on_device(m), _on_device(v))
    whole = NamedSharding(w.sharding.mesh, P(), memory_kind=HOST)
    return w, jax.device_put(m, whole), jax.device_put(v, whole)


@offloaded_step.mistake
def put_into_memory_that_moves(w, g, m, v):
    """The state is in ordinary host memory now. It came from *pinned* memory, which the system may not move, so
    that a device can read it by itself. Put it back where it was."""
    w, m, v = adam(w, g, _on_device(m), _on_device(v))
    return w, _to_host(m, "unpinned_host"), _to_host(v, "unpinned_host")


# How many programs are compiled for some calls of a jitted function.


def _table(*spec):
    """An 8 × 8 array on the lesson's mesh."""
    return put(np.arange(64, dtype=np.float32).reshape(8, 8), P(*spec), make_mesh(MESH))


def _host():
    return np.arange(64, dtype=np.float32).reshape(8, 8)


def _each(*makers):
    """A call with what each of them makes; to make it may take programs as well, which do not count."""

    def count(f):
        arguments = [make() for make in makers]
        with compilations() as made:
            for a in arguments:
                f(a)
        return len(made)

    return count


CALLS = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': _each(
        lambda: _table("x", None), lambda: _table(None, "x"), lambda: _table("x", "y"), lambda: _table()
    ),
    'P("x") and P("x", None)': _each(lambda: _table("x"), lambda: _table("x", None)),
    "shapes (8, 8) and (4, 8)": _each(_host, lambda: _host()[:4]),
    "1, 2 and 3": _each(lambda: 1, lambda: 2, lambda: 3),
    "1 and 1.0": _each(lambda: 1, lambda: 1.0),
    "1, 2 and 3, with static_argnums=0": _each(lambda: 1, lambda: 2, lambda: 3),
}


@functools.cache
def _compiled(row):
    """Make the calls, and count the programs."""

    def fresh(a):  # jit's cache belongs to the function: each row has one of its own
        return a + 1

    f = jax.jit(fresh, static_argnums=(0,) if "static" in row else ())
    return CALLS[row](f)


recompiles = TableExercise("recompiles", points=4, reference=_compiled)
recompiles.rows(CALLS)


@recompiles.mistake
def thought_layouts_share_a_program(row):
    """A compiled program holds its collectives, and those depend on the layout: each layout is a program of its
    own."""
    return believed(row, 1, 'P("x", None), P(None, "x"), P("x", "y"), P()')


@recompiles.mistake
def counted_values(row):
    """A program is made for shape, dtype and layout. The values come in when it runs."""
    return believed(row, 3, "1, 2 and 3")


@recompiles.mistake
def took_a_spelling_for_a_layout(row):
    """Both say the same about who holds what, however they are spelled, and a program made for one serves the other.
    (`_cache_size()` may say 2 all the same: it counts the keys under which calls come in.) Count what is compiled."""
    return believed(row, 2, 'P("x") and P("x", None)')


@recompiles.mistake
def thought_a_shape_is_a_value(row):
    """Shapes are known when the function is traced, and loops and buffers are made for them. Another shape, another
    program."""
    return believed(row, 1, "shapes (8, 8) and (4, 8)")


@recompiles.mistake
def took_an_int_for_a_float(row):
    """In Python 1 == 1.0. For JAX one is an int32 and the other a float32, and another type is another program."""
    return believed(row, 1, "1 and 1.0")


@recompiles.mistake
def thought_static_is_cheaper(row):
    """A static argument is a part of the program: it is written into it as a constant. How many programs are
    that?"""
    return believed(row, 1, "1, 2 and 3, with static_argnums=0")


# NumPy into jit, when there is more than one process. JAX's condition, for each argument of a jitted function:
# in_shardings say that it is cut, it comes from NumPy, and this is one process of several. (In
# tests/test_sharp_bits.py two processes try the rows.)

NUMPY_INTO_JIT = {
    'one process, in_shardings P("x"), a NumPy array': (1, P("x"), True),
    "two processes, in_shardings P(), a NumPy array": (2, P(), True),
    'two processes, in_shardings P("x"), a NumPy array': (2, P("x"), True),
    'two processes, in_shardings P("x"), the same NumPy array in both': (2, P("x"), True),
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': (2, P("x"), False),
}


def _numpy_into_jit(row):
    processes, spec, of_numpy = NUMPY_INTO_JIT[row]
    cut = not NamedSharding(make_mesh(LINE), spec).is_fully_replicated
    return "error" if processes > 1 and cut and of_numpy else "runs"


numpy_into_jit = TableExercise("numpy_into_jit", points=2, reference=_numpy_into_jit)
numpy_into_jit.rows(NUMPY_INTO_JIT)


@numpy_into_jit.mistake
def thought_jit_knows_whose_rows(row):
    """A NumPy array belongs to one process. Are these all the rows, or this process's rows only? `jit` cannot know,
    and refuses to guess."""
    return believed(row, "runs", 'two processes, in_shardings P("x"), a NumPy array')


@numpy_into_jit.mistake
def thought_equal_arrays_are_enough(row):
    """You know that both processes have the same; JAX would have to send it around to find out. There is a function
    by which you tell it."""
    return believed(row, "runs", 'two processes, in_shardings P("x"), the same NumPy array in both')


@numpy_into_jit.mistake
def thought_numpy_is_never_allowed(row):
    """Nothing is cut here: every device gets the whole array, and it makes no difference from which process it comes.
    Which entry of in_shardings would make it matter?"""
    return believed(row, "error", "two processes, in_shardings P(), a NumPy array")


@numpy_into_jit.mistake
def thought_one_process_must_say_it_too(row):
    """With one process the NumPy array is the whole array, and nobody can misunderstand it."""
    return believed(row, "error", 'one process, in_shardings P("x"), a NumPy array')


@numpy_into_jit.mistake
def thought_a_global_array_is_refused(row):
    """This is an array of JAX already: which process holds which part is said in its sharding. The error is about
    arrays that do not say it."""
    return believed(row, "error", 'two processes, in_shardings P("x"), an array of jax.make_array_from_callback')


# A mesh that was set and not taken back. Each row is run before, and with the other mesh in force.

LEFT_BEHIND = {
    "big + 1": lambda big: big + 1,
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': lambda big: jax.shard_map(
        jnp.sin, mesh=make_mesh(MESH), in_specs=P("x"), out_specs=P("x")
    )(big),
    "jnp.arange(8)": lambda big: jnp.arange(8),
    'jax.device_put(np.ones(8), P("x"))': lambda big: jax.device_put(np.ones(8), P("x")),
    "np.asarray(big).sum()": lambda big: np.asarray(big).sum(),
    "big + 1, after `with jax.set_mesh(strict): ...`": None,
}


def _outcome(fn, big):
    """What a call comes to: "error", or where its result is."""
    try:
        result = fn(big)
    except Exception:  # which one differs between versions of JAX
        return "error"
    return str(result.sharding) if isinstance(result, jax.Array) else "on the host"


@functools.cache
def _left_behind(row):
    mesh, strict = make_mesh(MESH), make_mesh(LINE, explicit=True)
    big = put(np.arange(64, dtype=np.float32).reshape(8, 8), P("x"), mesh)
    if LEFT_BEHIND[row] is None:
        fn = LEFT_BEHIND["big + 1"]
        before = _outcome(fn, big)
        with jax.set_mesh(strict):
            pass
        after = _outcome(fn, big)
    else:
        before = _outcome(LEFT_BEHIND[row], big)
        with jax.set_mesh(strict):
            after = _outcome(LEFT_BEHIND[row], big)
    return "error" if after == "error" else "as before" if after == before else "changed"


FATES = {
    "error": "That would be said where something asks for another mesh than the one in force. Does anything in this "
    "line?",
    "changed": "That would be said where the line runs, and its result is elsewhere, or came about where there "
    "was an error. Does it run, and where is its result?",
    "as before": "That would be said where the mesh in force plays no part. Does this line make an array, or "
    "compute on devices?",
}
mesh_leak = TableExercise("mesh_leak", points=4, reference=_left_behind, options=FATES)
mesh_leak.rows(LEFT_BEHIND)


@mesh_leak.mistake
def thought_arrays_bring_their_mesh(row):
    """big is on `mesh`, and the mesh in force is `strict`. An operation runs on the mesh in force, and finds an
    array that belongs to another."""
    return believed(row, "as before", "big + 1")


@mesh_leak.mistake
def thought_shard_map_is_asked_first(row):
    """You hand over `mesh`, and another one is in force. JAX does not choose between two: the two have to be the
    same."""
    return believed(row, "as before", 'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)')


@mesh_leak.mistake
def thought_new_arrays_are_free(row):
    """Nothing fails, and that is the worst of it. With a mesh in force a new array is born on that mesh: look at its
    `.sharding`."""
    return believed(row, "as before", "jnp.arange(8)")


@mesh_leak.mistake
def thought_a_bare_spec_fails(row):
    """Without a mesh in force this is an error. With one, a bare spec means that one: the line runs, by accident."""
    return believed(row, "error", 'jax.device_put(np.ones(8), P("x"))')


@mesh_leak.mistake
def thought_a_bare_spec_knows_its_mesh(row):
    """A bare P names an axis, and not whose. Before, this line was an error. Is it still?"""
    return believed(row, "as before", 'jax.device_put(np.ones(8), P("x"))')


@mesh_leak.mistake
def thought_nothing_works_any_more(row):
    """Nothing is computed on a mesh here: an array is laid out where a *whole* sharding says, or read by NumPy. What
    does the mesh in force have to do with it?"""
    return believed(row, "error", "np.asarray(big).sum()")


@mesh_leak.mistake
def thought_with_leaves_it_behind(row):
    """At the end of a `with` block the mesh that was in force before is in force again, also if the block ends with
    an error. That is why the lesson writes `with`."""
    return believed(row, "error", "big + 1, after `with jax.set_mesh(strict): ...`")
