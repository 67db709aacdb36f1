"""Answers to lesson 21, sixth batch, written by a reader of the notebook only."""

from collections import Counter, defaultdict

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- hidden


# Right: every product is given to each transfer that is open when it comes.
def hidden__right_open_set(schedule):
    beside, open_now = {}, set()
    for kind, what in schedule:
        if kind == "start":
            beside[what] = 0
            open_now.add(what)
        elif kind == "done":
            open_now.remove(what)
        else:
            for name in open_now:
                beside[name] += what
    return beside


# This student gives a product only to the transfer that began last.
def hidden__wrong_latest_only(schedule):
    result, under_way = {}, []
    for kind, what in schedule:
        if kind == "start":
            under_way.append(what)
            result[what] = 0
        elif kind == "done":
            under_way.remove(what)
        elif under_way:
            result[under_way[-1]] += what
    return result


# This student divides a product among all transfers that are under way: a FLOP can hide only one of them.
def hidden__wrong_shared(schedule):
    result, active = {}, set()
    for kind, what in schedule:
        if kind == "product":
            for name in active:
                result[name] += what / len(active)
        elif kind == "start":
            active |= {what}
            result[what] = 0
        else:
            active -= {what}
    return result


# This student keeps the sums of the starts on a stack: who is done is taken for the one that began last.
def hidden__wrong_stack(schedule):
    total, stack, result = 0, [], {}
    for kind, value in schedule:
        match kind:
            case "product":
                total += value
            case "start":
                stack.append(total)
            case "done":
                result[value] = total - stack.pop()
    return result


# This student only makes an entry when a product comes: transfers with nothing beside them are missing.
def hidden__wrong_no_zeros(schedule):
    flops = defaultdict(int)
    waiting = []
    for kind, what in schedule:
        if kind == "start":
            waiting.append(what)
        if kind == "done":
            waiting = [name for name in waiting if name != what]
        if kind == "product":
            for name in waiting:
                flops[name] += what
    return dict(flops)


# ---------------------------------------------------------------- it_fits


# Right: a pullback in place of jax.grad, and a checkpoint that may leave out what a scan does not need (prevent_cse).
def it_fits__right_pullback(weights, x, *, mesh):
    rows = NamedSharding(mesh, P("x"))

    def one(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), rows)

    again = jax.checkpoint(one, prevent_cse=False)

    def loss(weights):
        last, _ = lax.scan(lambda h, w: (again(h, w), None), x, weights)
        return jnp.mean(jnp.square(last.astype(jnp.float32)))

    value, back = jax.vjp(loss, weights)
    return back(jnp.ones_like(value))[0]


# This student puts the checkpoint around the loss: all is computed again at once, and all is kept then.
def it_fits__wrong_around_the_loss(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# This student wants to compute no product again, and keeps the results of all products by a policy: ten GiB more.
def it_fits__wrong_keeps_products(weights, x, *, mesh):
    policy = jax.checkpoint_policies.dots_saveable

    def layer(h, w):
        h = h + jax.nn.relu(h @ w)
        return lax.with_sharding_constraint(h, NamedSharding(mesh, P("x"))), None

    def loss(weights, x):
        h, _ = lax.scan(jax.checkpoint(layer, policy=policy), x, weights)
        return jnp.mean(h.astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# This student is careful and takes a checkpoint around the layer and another one around the whole: it fits, and computes each layer three times.
def it_fits__wrong_twice_checkpointed(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def stack(weights, x):
        return lax.scan(layer, x, weights)[0]

    def loss(weights, x):
        return jnp.mean(stack(weights, x).astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# This student returns what one usually wants of a training step, the loss as well.
def it_fits__wrong_value_too(weights, x, *, mesh):
    layer = jax.checkpoint(
        lambda h, w: (lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None)
    )
    loss = lambda weights, x: jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)
    return jax.value_and_grad(loss)(weights, x)


# ---------------------------------------------------------------- chip_collectives


# Right: a table of everything that is counted, and a Counter.
def chip_collectives__right_table(lines, turns):
    called = {"all-reduce-scatter fusion": "reduce-scatter"}
    for kind in ("all-gather", "all-reduce", "collective-permute"):
        called[kind] = called[kind + "-start"] = kind
    times = Counter()
    for text in lines:
        kind = called.get(text.strip())
        if kind:
            times[kind] += turns if text[:2] == "  " else 1
    return {kind: n for kind, n in times.items() if n}


# This student counts a start and its done as two.
def chip_collectives__wrong_start_and_done(lines, turns):
    result = {}
    for line in lines:
        name = line.strip()
        name = (
            "reduce-scatter"
            if name == "all-reduce-scatter fusion"
            else name.removesuffix("-start").removesuffix("-done")
        )
        if name in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            result[name] = result.get(name, 0) + (turns if line.startswith("  ") else 1)
    return result


# This student counts what stands in the text: a loop's body once.
def chip_collectives__wrong_body_once(lines, turns):
    names = [line.strip().removesuffix("-start") for line in lines]
    names = ["reduce-scatter" if name == "all-reduce-scatter fusion" else name for name in names]
    kinds = "all-gather", "all-reduce", "collective-permute", "reduce-scatter"
    return {kind: names.count(kind) for kind in kinds if kind in names}


# This student goes by how the line begins, so that a reduce-scatter counts as an all-reduce.
def chip_collectives__wrong_by_beginning(lines, turns):
    result = {}
    for line in lines:
        name = line.strip()
        if name.endswith("-done"):
            continue
        for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            if name.startswith(kind):
                result[kind] = result.get(kind, 0) + (turns if line.startswith("  ") else 1)
                break
    return result


# This student begins with a zero for each of the four kinds, and returns the zeros too.
def chip_collectives__wrong_with_zeros(lines, turns):
    found = dict.fromkeys(["all-gather", "all-reduce", "collective-permute", "reduce-scatter"], 0)
    for line in lines:
        inside = line.startswith("  ")
        name = line.strip().removesuffix("-start").replace("all-reduce-scatter fusion", "reduce-scatter")
        if name in found:
            found[name] += turns if inside else 1
    return found
