"""Data-parallel training of a small network, the same file on a laptop and on a cluster.

    python train.py                 on Slurm, Kubernetes or Cloud TPU, which say who the other processes are
    python train.py NUMBER COUNT    anywhere else, with JAX_COORDINATOR_ADDRESS=host:port in the environment
    grader launch train.py          four processes on this machine
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

BATCH_OF_A_DEVICE, FEATURES, STEPS, RATE = 16, 32, 50, 0.1


def join():
    """First of all: before any array, before `jax.devices()`."""
    if len(sys.argv) == 3:
        jax.distributed.initialize(process_id=int(sys.argv[1]), num_processes=int(sys.argv[2]))
    else:
        jax.distributed.initialize()


def loss_of(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


@jax.jit
def update(w, x, y):
    loss, gradient = jax.value_and_grad(loss_of)(w, x, y)
    return w - RATE * gradient, loss


def load(step, rows):
    """This process's rows of a step. A real loader reads its share of the files; other numbers, other rows."""
    rng = np.random.default_rng([step, jax.process_index()])
    x = rng.normal(size=(rows, FEATURES)).astype(np.float32)
    return x, np.tanh(x[:, :1] - x[:, 1:2])


def main():
    join()
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    cut, copies = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    w = jax.device_put(np.zeros((FEATURES, 1), np.float32), copies)  # the same values in all processes
    for step in range(STEPS):
        mine = load(step, BATCH_OF_A_DEVICE * jax.local_device_count())
        x, y = (jax.make_array_from_process_local_data(cut, rows) for rows in mine)
        w, loss = update(w, x, y)  # all processes, in the same order
        if step % 10 == 0 and jax.process_index() == 0:  # `loss` is replicated: to print it needs nobody else
            print(f"step {step:3}  loss {float(loss):.4f}  on {jax.device_count()} devices", flush=True)


if __name__ == "__main__":
    main()
