"""Answers to lesson 20, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- donated

donated__right_bytes = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thought that memory can only be taken over by a result of the same dtype.
donated__wrong_dtype = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "alive",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thought that a result that is smaller fits into the memory all the better.
donated__wrong_smaller = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "deleted",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thought that who has taken a shard out holds a reference of his own, which keeps the memory alive as in PyTorch.
donated__wrong_shard = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "alive",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thought that the shape of the whole array decides, whatever each device holds, and that np.asarray is a view as .numpy() is in PyTorch.
donated__wrong_view = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "deleted",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "deleted",
}

# ---------------------------------------------------------------- recompiles

recompiles__right_layouts = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that a program is made for shape and dtype, and that where the blocks are is sorted out at run time.
recompiles__wrong_layout = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 1,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that two specs that are written in two ways are two shardings, and so two programs.
recompiles__wrong_spelling = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 2,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that a static argument is one that does not count, and that the value of every other one is built in.
recompiles__wrong_static = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 3,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 1,
}

# This student thought that the number of rows stays open, as a batch size does, and that Python numbers are all one kind of scalar.
recompiles__wrong_dynamic = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 1,
    "1, 2 and 3": 1,
    "1 and 1.0": 1,
    "1, 2 and 3, with static_argnums=0": 3,
}

# ---------------------------------------------------------------- own_numbers


def own_numbers__right_places(x, seed, *, mesh):
    def noisy(block, place):
        key = jax.random.fold_in(jax.random.key(seed), place[0])
        return block + jax.random.uniform(key, block.shape)

    places = jnp.arange(mesh.shape["x"])
    return jax.shard_map(noisy, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, places)


# This student thought that another seed for each place is the same as the place folded in.
def own_numbers__wrong_seedplus(x, seed, *, mesh):
    def noisy(block):
        return block + jax.random.uniform(jax.random.key(seed + jax.lax.axis_index("x")), block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student thought that every device needs a number of its own, as a rank, and turned off the check that was in the way.
def own_numbers__wrong_rank(x, seed, *, mesh):
    def noisy(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index(tuple(mesh.axis_names)))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


# This student thought that a draw for the whole of x is cut by jit in such a way that each device folds its place in by itself.
def own_numbers__wrong_whole(x, seed, *, mesh):
    noisy = jax.jit(
        lambda x: x + jax.random.uniform(jax.random.key(seed), x.shape), out_shardings=NamedSharding(mesh, P("x"))
    )
    return noisy(x)


# This student thought that the key is the place's, and that the seed is what is folded into it.
def own_numbers__wrong_swapped(x, seed, *, mesh):
    def noisy(block):
        key = jax.random.fold_in(jax.random.key(jax.lax.axis_index("x")), seed)
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
