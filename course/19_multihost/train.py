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


def block(step, device):
    """The rows of one device: a real loader reads its share of the files."""
    x = np.random.default_rng([step, device]).normal(size=(BATCH_OF_A_DEVICE, FEATURES)).astype(np.float32)
    return x, np.tanh(x[:, :1] - x[:, 1:2])


def load(step):
    """The rows of this process: those of its devices, one below the other."""
    count = jax.local_device_count()
    blocks = [block(step, device) for device in range(count * jax.process_index(), count * (jax.process_index() + 1))]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def main():
    join()
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    cut, copies = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    w = jax.device_put(np.zeros((FEATURES, 1), np.float32), copies)  # the same values in all processes
    for step in range(STEPS):
        x, y = (jax.make_array_from_process_local_data(cut, rows) for rows in load(step))
        w, loss = update(w, x, y)  # all processes, in the same order
        if step % 10 == 0 and jax.process_index() == 0:  # `loss` is replicated: to print it needs nobody else
            print(f"step {step:3}  loss {float(loss):.4f}  on {jax.device_count()} devices", flush=True)


if __name__ == "__main__":
    main()
