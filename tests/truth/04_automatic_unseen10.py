"""Answers to lesson 04, tenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- constrain_whole


def constrain_whole__right_out_shardings(v, *, mesh):
    """v + 1, from P("x", "y") to whole on every device."""
    everywhere = NamedSharding(mesh, P(*[None] * v.ndim))
    return jax.jit(lambda u: u + 1, out_shardings=everywhere)(v)


# Thought that "on every device" means over both axes, and that both have to be named for it.
def constrain_whole__wrong_both_axes(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(("x", "y"))))


# Thought that a value without any constraint is whole.
def constrain_whole__wrong_unconstrained(v, *, mesh):
    free = P(P.UNCONSTRAINED, P.UNCONSTRAINED)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, free))


# Thought that each device is to have whole rows, so only the cut of the columns is taken back.
def constrain_whole__wrong_whole_rows(v, *, mesh):
    result = v + 1
    where = NamedSharding(mesh, P("x", None))
    return jax.lax.with_sharding_constraint(result, where)


# Thought that the constraint changes the value that it is given, and returned that one.
def constrain_whole__wrong_not_returned(v, *, mesh):
    w = v + 1
    jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P()))
    return w


# ---------------------------------------------------------------- who_decides

who_decides__right_tried = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Thought that there is one compiled program for each shape, which looks at the layout while it runs and so cannot divide work for a later constraint.
who_decides__wrong_run_time = {
    "jit compiles one program for all layouts": True,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": False,
}

# Took the error of lesson 03 (other devices, or another order) for one about other layouts.
who_decides__wrong_lesson_three = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": True,
    "a constraint can divide work before it": True,
}

# Thought that a product always sums over what is on several devices, so that it needs an all_reduce or a gather.
who_decides__wrong_every_product = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": True,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Thought that layouts travel forward only: a constraint at the end cuts what has been computed whole.
who_decides__wrong_forward_only = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": False,
}


# ---------------------------------------------------------------- same_everywhere


def same_everywhere__right_first_seen(a, b):
    """Whether a and b have the same values and layout, and every copy agrees."""
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    seen = {}
    for shard in [*a.addressable_shards, *b.addressable_shards]:
        where = tuple(s.indices(n) for s, n in zip(shard.index, a.shape))
        block = np.asarray(shard.data)
        if not np.array_equal(seen.setdefault(where, block), block):
            return False
    return True


# Thought that if each device holds the same of a and of b all is well; two arrays whose copies differ in the same way pass.
def same_everywhere__wrong_device_by_device(a, b):
    if a.shape != b.shape:
        return False
    if not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    theirs = {s.device: np.asarray(s.data) for s in b.addressable_shards}
    return all(np.array_equal(np.asarray(s.data), theirs[s.device]) for s in a.addressable_shards)


# Thought that it is enough to look at the copies of a, as b has been found to have a's values.
def same_everywhere__wrong_only_a(a, b):
    if a.shape != b.shape:
        return False
    values = np.array_equal(np.asarray(a), np.asarray(b))
    layout = a.sharding.is_equivalent_to(b.sharding, a.ndim)
    whole = np.asarray(a)
    copies = all(np.array_equal(s.data, whole[s.index]) for s in a.addressable_shards)
    return values and layout and copies


# Thought that two arrays are laid out alike if their blocks have the same shape; which device has which block is not asked.
def same_everywhere__wrong_block_shapes(a, b):
    if a.shape != b.shape or a.sharding.shard_shape(a.shape) != b.sharding.shard_shape(b.shape):
        return False
    whole_a, whole_b = np.asarray(a), np.asarray(b)
    if not np.array_equal(whole_a, whole_b):
        return False
    for array, whole in ((a, whole_a), (b, whole_b)):
        for shard in array.addressable_shards:
            if not np.array_equal(np.asarray(shard.data), whole[shard.index]):
                return False
    return True


# Returned from within the loop: thought that it goes on as long as the answer is True, but it ends at the first shard.
def same_everywhere__wrong_first_shard(a, b):
    if a.shape != b.shape or not np.array_equal(a, b):
        return False
    if not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    for mine, other in zip(a.addressable_shards, b.addressable_shards):
        good_a = np.array_equal(mine.data, np.asarray(a)[mine.index])
        good_b = np.array_equal(other.data, np.asarray(b)[other.index])
        return bool(good_a and good_b)
