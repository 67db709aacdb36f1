"""Eight devices anywhere, and no hang on few cores."""

import subprocess
import sys
import textwrap

import pytest


def run(code: str, seconds: float = 120, **environment: str) -> subprocess.CompletedProcess:
    """Run code in a process of its own; SIGKILL when its time is over."""
    kept = {"PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=seconds, env=kept
    )


def test_eight_devices_quietly_and_again():
    done = run("""
        import grader
        assert len(grader.eight_devices()) == 8 and len(grader.eight_devices()) == 8
        import jax, os
        print(jax.device_count(), int(os.environ["NPROC"]) >= 16)
    """)
    assert done.stdout.split() == ["8", "True"] and done.stderr == ""


def test_a_started_backend_with_fewer_devices_says_what_to_do():
    done = run("""
        import jax.numpy as jnp
        jnp.ones(1)
        import grader
        try:
            grader.eight_devices()
        except grader.arrays.devices.TooFewDevices as error:
            print(error)
    """)
    assert "restart the kernel" in done.stdout and "1 device," in done.stdout


def test_one_real_chip_gives_way_to_eight_simulated_ones():
    """A platform with one device, as Colab's one-chip TPU: JAX's own question is answered with one, once."""
    done = run("""
        import jax
        real, asked = jax.devices, []
        def one_chip(*args):
            asked.append(args)
            return real(*args)[:1] if len(asked) == 1 else real(*args)
        jax.devices = one_chip
        import grader
        print(len(grader.eight_devices()), jax.make_mesh((4, 2), ("x", "y")).devices.shape)
    """)
    assert done.stdout.strip() == "8 (4, 2)", done.stderr


def test_a_users_own_flags_are_kept():
    done = run(
        """
        import os, grader
        print(len(grader.eight_devices()), os.environ["XLA_FLAGS"])
    """,
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
    )
    assert done.stdout.startswith("8 --xla_force_host_platform_device_count=8")


LOOP = """
    import grader
    grader.eight_devices()
    import jax, jax.numpy as jnp
    from jax.sharding import PartitionSpec as P
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    step = jax.jit(jax.shard_map(lambda *w: tuple(jax.lax.psum(v * 0.1, "x") for v in w), mesh=mesh,
                                 in_specs=(P(),) * 6, out_specs=(P(),) * 6))
    w = (jnp.ones((512, 512)),) * 6
    for _ in range(60):
        w = step(*w)
    jax.block_until_ready(w)
    print("done")
"""


@pytest.mark.parametrize("attempt", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_an_eager_loop_of_all_reduces_comes_to_its_end(attempt):
    done = run(LOOP, seconds=150)
    assert done.stdout.strip() == "done", done.stderr[-500:]
