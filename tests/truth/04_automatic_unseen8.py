"""Answers to lesson 04, eighth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# -------------------------------------------------------------- error_or_not
error_or_not__right_two_run = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# thought: a mesh of 8 has another shape and another axis than the array's, and two meshes do not meet in one program
error_or_not__wrong_one_mesh_only = dict(error_or_not__right_two_run)
error_or_not__wrong_one_mesh_only["a constraint over the devices as a mesh of 8"] = "an error"

# thought: what holds for the constraint holds for out_shardings, which are a constraint on the result: no error, no message
error_or_not__wrong_out_is_a_constraint = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "runs",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# thought: v knows its mesh, so the bare P takes it from v; and NumPy's array has no sharding that could be required of it
error_or_not__wrong_mesh_from_v = {
    "a constraint with a bare P, no mesh set": "runs",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "an error",
}

# thought: inside jit the compiler moves anything to anywhere among the same eight devices, at the entrance as well
error_or_not__wrong_compiler_moves_all = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "runs",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "runs",
    "in_shardings for a NumPy argument": "runs",
}

# ------------------------------------------------------------ follow_the_mesh
follow_the_mesh__right_table = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# thought: the devices of a 4 × 2 mesh are 2a + b, as in our mesh
follow_the_mesh__wrong_in_order_of_ids = {
    "who holds x[8, 0]": [2],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [2, 3],
}

# thought: "device 4" is the one at place 4 of the mesh, which is number 2, and its neighbour along b is number 3
follow_the_mesh__wrong_inverse_twice = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [3],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# thought: y's rows are cut over b, two blocks of eight, and row 8 is the last of the first block
follow_the_mesh__wrong_row_8_is_the_eighth = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [0, 2, 4, 6],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# thought: columns of the product come from y, whose cut is over b, so the sum is dealt out over b as in a reduce-scatter
follow_the_mesh__wrong_dealt_over_b = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", "b"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4],
}


# --------------------------------------------------------------- init_sharded
def init_sharded__right_static(rows, columns, axis, mesh):
    def make(rows, columns):
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    born = jax.jit(make, static_argnums=(0, 1), out_shardings=NamedSharding(mesh, P(None, axis)))
    program = born.lower(rows, columns).compile()
    return program(), program.memory_analysis().output_size_in_bytes


# thought: the function is the same in both programs, so its memory can be asked of the plain one
def init_sharded__wrong_plain_analysis(rows, columns, axis, mesh):
    def make():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    array = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis)))()
    size = jax.jit(make).lower().compile().memory_analysis().output_size_in_bytes
    return array, size


# thought: each device of the mesh holds its share, so the program's bytes are divided by the number of devices
def init_sharded__wrong_divided_again(rows, columns, axis, mesh):
    where = NamedSharding(mesh, P(None, axis))
    compiled = (
        jax.jit(lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns), out_shardings=where)
        .lower()
        .compile()
    )
    return compiled(), compiled.memory_analysis().output_size_in_bytes // mesh.shape[axis]


# thought: rows are easier to cut: make the array with its columns as rows, cut these, and turn it at the end
def init_sharded__wrong_made_as_rows(rows, columns, axis, mesh):
    def make():
        return jnp.sin(jnp.arange(columns * rows)).reshape(columns, rows).T

    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis))).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


# thought: "columns cut" means that every device has shorter columns, and these run along the first dimension
def init_sharded__wrong_shorter_columns(rows, columns, axis, mesh):
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(axis, None))).lower().compile()
    array = compiled()
    return array, compiled.memory_analysis().output_size_in_bytes
