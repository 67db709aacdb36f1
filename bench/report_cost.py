"""What a report costs: beside compiling a training step, and what `import grader` adds to `import jax`.

`python bench/report_cost.py [LAYERS]`: a transformer's step with Adam, its layers unrolled, on eight simulated devices.
Each figure is the median of several runs in one go, taken in turn; caches are emptied before each.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import grader  # noqa: E402

RUNS = 5
WIDTH, HIDDEN, HEADS, HEAD, TOKENS, BATCH, VOCABULARY = 256, 1024, 8, 32, 64, 16, 1024
IMPORTS = "import time; import jax; start = time.perf_counter(); import grader; print(time.perf_counter() - start)"
SHAPES = {
    "q": ((WIDTH, HEADS, HEAD), P("data", "model")),
    "k": ((WIDTH, HEADS, HEAD), P("data", "model")),
    "v": ((WIDTH, HEADS, HEAD), P("data", "model")),
    "o": ((HEADS, HEAD, WIDTH), P("model", None, "data")),
    "up": ((WIDTH, HIDDEN), P("data", "model")),
    "down": ((HIDDEN, WIDTH), P("model", "data")),
}


def normalized(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def block(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    q, k, v = (jnp.einsum("btd,dhk->bthk", normalized(x), weights[name]) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k) / HEAD**0.5)
    x = x + jnp.einsum("bthk,hkd->btd", jnp.einsum("bhts,bshk->bthk", scores, v), weights["o"])
    return x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"]


def loss(weights: Any, tokens: jax.Array) -> jax.Array:
    x = weights["embedding"][tokens]
    for layer in weights["layers"]:
        x = block(layer, x)
    return -jax.nn.log_softmax(x @ weights["embedding"].T)[..., 0].mean()


def step(weights: Any, mean: Any, square: Any, tokens: jax.Array) -> Any:
    grads = jax.grad(loss)(weights, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    return jax.tree.map(lambda w, m, s: w - 1e-3 * m / (jnp.sqrt(s) + 1e-8), weights, mean, square), mean, square


def arguments(layers: int) -> tuple[Any, ...]:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def shaped(shape: tuple[int, ...], spec: P, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    weights = {
        "layers": [{name: shaped(*known) for name, known in SHAPES.items()} for _ in range(layers)],
        "embedding": shaped((VOCABULARY, WIDTH), P("model", "data")),
    }
    return weights, weights, weights, shaped((BATCH, TOKENS), P("data"), jnp.int32)


def seconds(work: Callable[[], Any]) -> float:
    jax.clear_caches()
    start = time.process_time()
    work()
    return time.process_time() - start


def main(layers: int) -> None:
    args = arguments(layers)
    ways = (lambda: jax.jit(step).lower(*args).compile(), lambda: grader.communication(step, *args))
    rounds = [[seconds(way) for way in ways] for _ in range(RUNS + 1)][1:]  # in the first one, more is imported
    compiling, reporting = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for other, one in rounds)
    print(
        f"{layers} layers: {compiling:.2f} s of processor time to compile, {reporting:.2f} s with a report: {ratio:.3f}"
    )
    added = [float(subprocess.check_output([sys.executable, "-c", IMPORTS], text=True)) for _ in range(RUNS)]
    print(f"import grader, after import jax: {statistics.median(added):.3f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
