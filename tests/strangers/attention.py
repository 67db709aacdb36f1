"""Long sequences and overlapped matmuls: rings of keys and values, all-to-all of heads, collective matmuls."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, ring, sharded, stranger

N, ROWS, DIM = 4, 3, 4  # devices along the ring, and each device's queries or keys
BLOCK = 2 * ROWS * ROWS * DIM  # FLOPs of one block of logits, or of its product with the values


def merged(state, logits, v):
    """A softmax so far (its numerator, denominator and largest logit), with one more block."""
    above, below, largest = state
    top = jnp.maximum(largest, logits.max(-1, keepdims=True))
    weights, old = jnp.exp(logits - top), jnp.exp(largest - top)
    return above * old + weights @ v, below * old + weights.sum(-1, keepdims=True), top


def start(q):
    return jnp.zeros_like(q), jnp.zeros_like(q[:, :1]), jnp.full_like(q[:, :1], -1e30)


def qkv(mesh, spec, rows=N * ROWS):
    return [sharded(mesh, spec, rows, DIM) + k / 8 for k in range(3)]


@stranger(flops=N * 2 * BLOCK, yours={"collective_permute x": 2 * N}, replayable=True)
def ring_attention_in_a_loop():
    mesh = grid(x=N)

    @on(mesh, P("x"), P("x"))
    def attention(q, k, v):
        def step(_, carry):
            k, v, state = carry
            state = merged(state, q @ k.T, v)
            return *(lax.ppermute(a, "x", ring(N)) for a in (k, v)), state

        above, below, _ = lax.fori_loop(0, N, step, (k, v, start(q)))[2]
        return above / below

    return Call(mesh, attention, *qkv(mesh, P("x")))


@stranger(flops=N * 2 * BLOCK, yours={"collective_permute x": 2 * (N - 1)}, replayable=True)
def ring_attention_unrolled_without_the_last_shift():
    mesh = grid(x=N)

    @on(mesh, P("x"), P("x"))
    def attention(q, k, v):
        state = merged(start(q), q @ k.T, v)
        for _ in range(N - 1):
            k, v = lax.ppermute((k, v), "x", ring(N))
            state = merged(state, q @ k.T, v)
        return state[0] / state[1]

    return Call(mesh, attention, *qkv(mesh, P("x")))


# The last device sees all blocks, and the first one only its own.
@stranger(flops=N * 2 * BLOCK, yours={"collective_permute x": 2 * N}, replayable=True)
def causal_ring_attention_with_cond():
    mesh = grid(x=N)

    @on(mesh, P("x"), P("x"), check_vma=False)
    def attention(q, k, v):
        me = lax.axis_index("x")

        def step(i, carry):
            k, v, state = carry
            owner = (me - i) % N
            before = jnp.where(owner == me, jnp.tril(jnp.ones((ROWS, ROWS))), 1)

            def look(state):
                return merged(state, jnp.where(before, q @ k.T, -1e30), v)

            state = lax.cond(owner <= me, look, lambda state: state, state)
            return *(lax.ppermute(a, "x", ring(N)) for a in (k, v)), state

        above, below, _ = lax.fori_loop(0, N, step, (k, v, start(q)))[2]
        return above / below

    return Call(mesh, attention, *qkv(mesh, P("x")))


# Three branches: all of the block, half of it, none.
@stranger(flops=N * 2 * BLOCK, yours={"collective_permute x": 2 * N}, replayable=True)
def causal_ring_attention_with_switch():
    mesh = grid(x=N)

    @on(mesh, P("x"), P("x"), check_vma=False)
    def attention(q, k, v):
        me = lax.axis_index("x")
        below_diagonal = jnp.tril(jnp.ones((ROWS, ROWS), bool))

        def step(carry, i):
            (k, v), state = carry
            owner = (me - i) % N
            kinds = [
                lambda: state,
                lambda: merged(state, jnp.where(below_diagonal, q @ k.T, -1e30), v),
                lambda: merged(state, q @ k.T, v),
            ]
            state = lax.switch(jnp.sign(me - owner) + 1, kinds)
            return (lax.ppermute((k, v), "x", ring(N)), state), None

        (_, (above, below, _)), _ = lax.scan(step, ((k, v), start(q)), jnp.arange(N))
        return above / below

    return Call(mesh, attention, *qkv(mesh, P("x")))


@stranger(flops=2 * (2 * ROWS * N * ROWS * DIM), yours={"all_gather x": 2}, replayable=True)
def attention_with_gathered_keys():
    mesh = grid(x=N)

    @on(mesh, P("x"), P("x"))
    def attention(q, k, v):
        k, v = (lax.all_gather(a, "x", tiled=True) for a in (k, v))
        return jax.nn.softmax(q @ k.T) @ v

    return Call(mesh, attention, *qkv(mesh, P("x")))


# Keys are sharded, queries are not: devices merge their softmaxes.
@stranger(flops=2 * (2 * ROWS * ROWS * DIM), yours={"all_reduce x": 3}, replayable=True)
def decoding_with_a_sharded_cache():
    mesh = grid(x=N)

    @on(mesh, (P(), P("x"), P("x")), P())
    def attention(q, k, v):
        logits = q @ k.T
        top = lax.pmax(logits.max(-1, keepdims=True), "x")
        weights = jnp.exp(logits - top)
        return lax.psum(weights @ v, "x") / lax.psum(weights.sum(-1, keepdims=True), "x")

    _, k, v = qkv(mesh, P("x"))
    return Call(mesh, attention, sharded(mesh, P(), ROWS, DIM), k, v)


# Sequences of 12 and 4 heads of 2: from all heads of 3 rows to one head of 12 rows, and back.
@stranger(flops=2 * (2 * 12 * 12 * 2), yours={"all_to_all x": 4}, replayable=True)
def ulysses_attention():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def attention(q, k, v):
        q, k, v = (lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        weights = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k))
        return lax.all_to_all(jnp.einsum("hqk,khd->qhd", weights, v), "x", 0, 1, tiled=True)

    return Call(mesh, attention, *(sharded(mesh, P("x"), 12, 4, 2) + k / 8 for k in range(3)))


# Rows circulate while each device multiplies the rows it has: 8 matmuls of 2 × 16 and 16 × 4.
@stranger(flops=8 * 2 * 2 * 16 * 4, yours={"collective_permute x": 7}, replayable=True)
def all_gather_matmul():
    mesh = grid(x=8)

    @on(mesh, (P("x"), P(None, "x")), P(None, "x"))
    def matmul(a, b):
        me, out = lax.axis_index("x"), jnp.zeros((16, 4))
        out = lax.pcast(out, "x", to="varying") if hasattr(lax, "pcast") else lax.pvary(out, "x")
        for k in range(8):
            out = lax.dynamic_update_slice(out, a @ b, (2 * ((me - k) % 8), 0))
            if k < 7:
                a = lax.ppermute(a, "x", ring(8))
        return out

    return Call(mesh, matmul, sharded(mesh, P("x"), 16, 16), sharded(mesh, P(None, "x"), 16, 32))


@stranger(flops=8 * 2 * 2 * 4 * 16, yours={"collective_permute x": 8}, replayable=True)
def matmul_reduce_scatter_in_a_loop():
    mesh = grid(x=8)

    @on(mesh, (P(None, "x"), P("x")), P("x"))
    def matmul(a, b):
        me = lax.axis_index("x")

        def step(k, total):
            rows = lax.dynamic_slice(a, (2 * ((me - k - 1) % 8), 0), (2, 4))
            return lax.ppermute(total, "x", ring(8)) + rows @ b

        return lax.fori_loop(0, 8, step, (a[:2, :1] + b[:1]) * 0)

    return Call(mesh, matmul, sharded(mesh, P(None, "x"), 16, 32), sharded(mesh, P("x"), 32, 16))


# Both halves of the rows, in opposite directions.
@stranger(flops=4 * 2 * 4 * 8 * 4, yours={"collective_permute x": 6}, replayable=True)
def all_gather_matmul_in_both_directions():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P(None, "x")), P(None, "x"))
    def matmul(a, b):
        up, down = a[:2], a[2:]
        parts = [(up @ b, down @ b)]
        for _ in range(3):
            up, down = lax.ppermute(up, "x", ring(4)), lax.ppermute(down, "x", ring(4, -1))
            parts.append((up @ b, down @ b))
        me = lax.axis_index("x")
        ups = jnp.roll(jnp.stack([up for up, _ in parts])[::-1], me + 1, 0)
        downs = jnp.roll(jnp.stack([down for _, down in parts]), me, 0)
        return jnp.concatenate([ups, downs], 1).reshape(16, 4)

    return Call(mesh, matmul, sharded(mesh, P("x"), 16, 8), sharded(mesh, P(None, "x"), 8, 16))


# Cannon's algorithm on 2 × 2 devices: skew both, multiply, shift both, multiply. To skew along two axes only moves
# blocks along one of them: rows of a along y, columns of b along x.
@stranger(flops=2 * 2 * 4 * 3 * 5, yours={"collective_permute x": 2, "collective_permute y": 2}, replayable=True)
def cannon():
    mesh = grid(x=2, y=2)

    @on(mesh, (P("x", "y"), P("x", "y")), P("x", "y"))
    def matmul(a, b):
        a = lax.ppermute(a, ("x", "y"), [(0, 0), (1, 1), (2, 3), (3, 2)])
        b = lax.ppermute(b, ("x", "y"), [(0, 0), (2, 2), (1, 3), (3, 1)])
        first = a @ b
        return first + lax.ppermute(a, "y", ring(2)) @ lax.ppermute(b, "x", ring(2))

    return Call(mesh, matmul, sharded(mesh, P("x", "y"), 8, 6), sharded(mesh, P("x", "y"), 6, 10))


# SUMMA: the panels that all need are gathered, along x and along y.
@stranger(flops=2 * 2 * 8 * 3, yours={"all_gather x": 1, "all_gather y": 1}, replayable=True)
def summa():
    mesh = grid(x=4, y=2)

    @on(mesh, (P("x", "y"), P("x", "y")), P("x", "y"))
    def matmul(a, b):
        return lax.all_gather(a, "y", axis=1, tiled=True) @ lax.all_gather(b, "x", tiled=True)

    return Call(mesh, matmul, sharded(mesh, P("x", "y"), 8, 8), sharded(mesh, P("x", "y"), 8, 6))


# 2.5-dimensional: each of two layers has half of the contracted dimension.
@stranger(flops=2 * 4 * 2 * 8, yours={"all_reduce z": 1, "all_gather x": 1, "all_gather y": 1}, replayable=True)
def matmul_on_a_mesh_of_three_dimensions():
    mesh = grid(x=2, y=2, z=2)

    @on(mesh, (P("x", ("z", "y")), P(("z", "x"), "y")), P("x", "y"))
    def matmul(a, b):
        part = lax.all_gather(a, "y", axis=1, tiled=True) @ lax.all_gather(b, "x", tiled=True)
        return lax.psum(part, "z")

    return Call(mesh, matmul, sharded(mesh, P("x", ("z", "y")), 8, 4), sharded(mesh, P(("z", "x"), "y"), 4, 16))


# A window of the previous device's keys and one's own: 3 rows against 6.
@stranger(flops=2 * (2 * ROWS * 2 * ROWS * DIM), yours={"collective_permute x": 2}, replayable=True)
def sliding_window_attention():
    mesh = grid(x=8)

    @on(mesh, P("x"), P("x"))
    def attention(q, k, v):
        forward = [(d, d + 1) for d in range(7)]
        k, v = (jnp.concatenate([lax.ppermute(a, "x", forward), a]) for a in (k, v))
        near = jnp.tri(ROWS, 2 * ROWS, ROWS) - jnp.tri(ROWS, 2 * ROWS, 0)
        return jax.nn.softmax(jnp.where(near > 0, q @ k.T, -1e30)) @ v

    return Call(mesh, attention, *qkv(mesh, P("x"), 8 * ROWS))


# The gradient sends around the ring in the other direction: 8 shifts forward, 8 backward, and two matmuls for each.
@stranger(flops=N * 2 * BLOCK + N * 4 * BLOCK, yours={"collective_permute x": 2 * N + 2 * N}, replayable=True)
def gradient_of_linear_ring_attention():
    mesh = grid(x=N)

    def attention(q, k, v):
        def step(carry, _):
            k, v, out = carry
            out = out + (q @ k.T) @ v
            return (*(lax.ppermute(a, "x", ring(N)) for a in (k, v)), out), None

        return lax.scan(step, (k, v, 0 * q), length=N)[0][2]

    def loss(q, k, v):
        return (on(mesh, P("x"), P("x"))(attention)(q, k, v) ** 2 / 2).sum()

    return Call(mesh, jax.grad(loss, (0, 1, 2)), *qkv(mesh, P("x")))
