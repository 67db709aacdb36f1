"""Answers to lesson 12, as students give them: written from the student's notebook alone."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def momentum_step(state, batch):
    """One step with momentum. The state is a dict of "params" and "velocity"; part 9 needs it."""
    gradients = jax.grad(loss)(state["params"], batch["x"], batch["y"])
    velocity = jax.tree.map(lambda v, g: 0.5 * v + g, state["velocity"], gradients)
    return {"params": descend(state["params"], velocity, 1 / 64), "velocity": velocity}


def compiled(function, **options):
    """`jax.jit(function, **options)` that asks first whether its arguments still exist; part 9 tells why."""
    jitted = jax.jit(function, **options)

    def call(*arguments):
        for leaf in jax.tree.leaves(arguments):
            if leaf.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")
        return jitted(*arguments)

    return call


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


def place_dp__right_plain(params, batch, mesh):
    """As in the hints."""
    whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    return jax.device_put(params, whole), jax.device_put(batch, cut)


def place_dp__right_leaf_by_leaf(params, batch, mesh):
    """By tree.map and a dict comprehension."""
    laid = jax.tree.map(lambda leaf: jax.device_put(leaf, NamedSharding(mesh, P(*(None,) * leaf.ndim))), params)
    rows = {name: P("data", *(None,) * (array.ndim - 1)) for name, array in batch.items()}
    return laid, {name: jax.device_put(array, NamedSharding(mesh, rows[name])) for name, array in batch.items()}


def place_dp__wrong_batch_whole(params, batch, mesh):
    """Copies everything to all."""
    whole = NamedSharding(mesh, P())
    return jax.device_put(params, whole), jax.device_put(batch, whole)


def place_dp__wrong_all_cut(params, batch, mesh):
    """Cuts the parameters as well."""
    cut = NamedSharding(mesh, P("data"))
    return jax.device_put(params, cut), jax.device_put(batch, cut)


def place_dp__wrong_line(params, batch, mesh):
    """Uses the notebook's mesh."""
    whole, cut = NamedSharding(line, P()), NamedSharding(line, P("data"))
    return jax.device_put(params, whole), jax.device_put(batch, cut)


def place_dp__wrong_columns(params, batch, mesh):
    """Cuts features instead of examples."""
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P(None, "data")))


def place_dp__wrong_swapped(params, batch, mesh):
    """Returns them the other way round."""
    whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    return jax.device_put(batch, cut), jax.device_put(params, whole)


def place_dp__wrong_params_left(params, batch, mesh):
    """Lays out the batch only: the parameters stay on one device."""
    return params, jax.device_put(batch, NamedSharding(mesh, P("data")))


def place_dp__wrong_trimmed(params, batch, mesh):
    """Throws away the rows that do not fit, where the error was asked for."""
    n = mesh.shape["data"]
    batch = {name: array[: len(array) // n * n] for name, array in batch.items()}
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P("data")))


def jit_dp__right_plain(params, x, y, *, steps, rate, mesh):
    """As in the hints."""
    cut = NamedSharding(mesh, P("data"))
    x, y = jax.lax.with_sharding_constraint(x, cut), jax.lax.with_sharding_constraint(y, cut)
    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, grads, rate)
        losses.append(value)
    return jnp.stack(losses), params


def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    """By scan, both constraints in one."""
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data", None)))

    def step(params, _):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return descend(params, grads, rate), value

    params, losses = jax.lax.scan(step, params, length=steps)
    return losses, params


def jit_dp__wrong_no_constraint(params, x, y, *, steps, rate, mesh):
    """Forgets the constraint: every device does everything."""
    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, grads, rate)
        losses.append(value)
    return jnp.stack(losses), params


def jit_dp__wrong_params_cut(params, x, y, *, steps, rate, mesh):
    """Cuts the parameters over model too."""
    cut = NamedSharding(mesh, P("data"))
    x, y = jax.lax.with_sharding_constraint((x, y), cut)
    params = [
        {"W": jax.lax.with_sharding_constraint(layer["W"], NamedSharding(mesh, P(None, "model"))), "b": layer["b"]}
        for layer in params
    ]
    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, grads, rate)
        losses.append(value)
    return jnp.stack(losses), params


def jit_dp__wrong_loss_after(params, x, y, *, steps, rate, mesh):
    """Takes the loss after each step."""
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


def jit_dp__wrong_last_loss(params, x, y, *, steps, rate, mesh):
    """Returns the last loss only."""
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, grads, rate)
    return value, params


def jit_dp__wrong_divided(params, x, y, *, steps, rate, mesh):
    """Divides the gradients by the devices, though a mean is a mean."""
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, grads, rate / mesh.shape["data"])
        losses.append(value)
    return jnp.stack(losses), params


def jit_dp__wrong_params_forgotten(params, x, y, *, steps, rate, mesh):
    """Never gives the new parameters the name that the next step reads."""
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        new = descend(params, grads, rate)
        losses.append(value)
    return jnp.stack(losses), new


_n = 784 * 8192 + 2 * 8192 * 8192 + 8192 * 10 + 3 * 8192 + 10
dp_numbers__right_plain = {
    "parameters": _n,
    "bytes of parameters on each device": 4 * _n,
    "bytes of x on each device": 8192 * 784 * 4 // 8,
    "bytes each device sends in a step": 2 * 7 / 8 * 4 * (_n + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 2 * 7 / 8 * 4 * (_n + 1),
}
"""As it is."""

dp_numbers__wrong_no_biases = dp_numbers__right_plain | {"parameters": _n - 3 * 8192 - 10}
"""Forgets the biases."""

dp_numbers__wrong_params_divided = dp_numbers__right_plain | {
    "bytes of parameters on each device": _n / 2,
    "bytes of x on each device": 8192 * 784 * 4,
}
"""Divides the parameters by eight, and x not."""

dp_numbers__wrong_loss_forgotten = dp_numbers__right_plain | {
    "bytes each device sends in a step": 7 * _n,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * _n,
}
"""Forgets the loss: one number."""

dp_numbers__wrong_rows_count = dp_numbers__right_plain | {
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_n + 1) / 128
}
"""Believes that fewer rows send less."""

dp_numbers__wrong_one_way = dp_numbers__right_plain | {"bytes each device sends in a step": 7 / 8 * 4 * (_n + 1)}
"""Counts half of an all-reduce."""


def _by_hand(step, params, x, y, steps, mesh, check_vma=True):
    """The losses and the parameters of a loop of `step`, in one shard_map."""

    def body(params, x, y):
        losses = []
        for _ in range(steps):
            value, params = step(params, x, y)
            losses.append(value)
        return jnp.stack(losses), params

    return jax.shard_map(
        body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=check_vma
    )(params, x, y)


def shard_map_dp__right_plain(params, x, y, *, steps, rate, mesh):
    """The gradient of the pmean."""

    def body(params, x, y):
        losses = []
        for _ in range(steps):
            value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
            params = descend(params, grads, rate)
            losses.append(value)
        return jnp.stack(losses), params

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P()))(params, x, y)


def shard_map_dp__right_varying(params, x, y, *, steps, rate, mesh):
    """Local gradients of varying parameters, one pmean of both."""

    def step(params, x, y):
        both = jax.value_and_grad(loss)(varying(params, "data"), x, y)
        value, grads = jax.lax.pmean(both, "data")
        return value, descend(params, grads, rate)

    return _by_hand(step, params, x, y, steps, mesh)


def shard_map_dp__right_unchecked_scan(params, x, y, *, steps, rate, mesh):
    """The check off, scan, pmean behind."""

    def body(params, x, y):
        def turn(params, _):
            value, grads = jax.lax.pmean(jax.value_and_grad(loss)(params, x, y), "data")
            return descend(params, grads, rate), value

        params, losses = jax.lax.scan(turn, params, None, steps)
        return losses, params

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P()), check_vma=False)(params, x, y)


def shard_map_dp__wrong_sum(params, x, y, *, steps, rate, mesh):
    """The gradient as it comes, the loss averaged."""

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(value, "data"), descend(params, grads, rate)

    return _by_hand(step, params, x, y, steps, mesh)


def shard_map_dp__wrong_pmean_of_sum(params, x, y, *, steps, rate, mesh):
    """pmean behind, with the check on."""

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(value, "data"), descend(params, jax.lax.pmean(grads, "data"), rate)

    return _by_hand(step, params, x, y, steps, mesh)


def shard_map_dp__wrong_unsynchronised(params, x, y, *, steps, rate, mesh):
    """No reduction, the check off."""

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return value, descend(params, grads, rate)

    return _by_hand(step, params, x, y, steps, mesh, check_vma=False)


def shard_map_dp__wrong_local_loss(params, x, y, *, steps, rate, mesh):
    """Averages the gradients, and reports the own loss."""

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return value, descend(params, jax.lax.pmean(grads, "data"), rate)

    return _by_hand(step, params, x, y, steps, mesh, check_vma=False)


def shard_map_dp__wrong_params_averaged_too(params, x, y, *, steps, rate, mesh):
    """Averages gradients and parameters: twice as much travels."""

    def step(params, x, y):
        value, grads = jax.lax.pmean(jax.value_and_grad(loss)(varying(params, "data"), x, y), "data")
        return value, jax.lax.pmean(varying(descend(params, grads, rate), "data"), "data")

    return _by_hand(step, params, x, y, steps, mesh)


def shard_map_dp__wrong_psum(params, x, y, *, steps, rate, mesh):
    """psum in the loss, the reported loss averaged."""

    def step(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.psum(loss(p, x, y), "data"))(params)
        return value / jax.lax.axis_size("data"), descend(params, grads, rate)

    return _by_hand(step, params, x, y, steps, mesh)


def shard_map_dp__wrong_line(params, x, y, *, steps, rate, mesh):
    """The notebook's mesh."""

    def step(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
        return value, descend(params, grads, rate)

    return _by_hand(step, params, x, y, steps, line)


average_what__right_plain = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}
"""As it is."""

average_what__wrong_momentum = average_what__right_plain | {"SGD with momentum": "different"}
"""Believes that a memory that stays local must differ."""

average_what__wrong_every_second = average_what__right_plain | {"SGD, averaged after every second step": "same"}
"""Believes that SGD is linear over two steps as well."""

average_what__wrong_adam = average_what__right_plain | {"Adam": "same", "SGD, gradients clipped on each device": "same"}
"""Believes that everything may be averaged."""

same_lr_question__right_plain = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}
"""As it is."""

same_lr_question__wrong_multiplied = same_lr_question__right_plain | {
    "local mean, psum": 3.84,
    "local sum, pmean": 2.88,
    "local sum, psum": 23.04,
}
"""Multiplies by the factor: "with N devices, multiply the learning rate by N"."""

same_lr_question__wrong_nothing = same_lr_question__right_plain | {"local mean, nothing, check_vma on": 0.48}
"""Believes that where nothing is written nothing is summed."""

same_lr_question__wrong_microbatches = same_lr_question__right_plain | {
    "local mean, summed over 4 microbatches, pmean": 0.48,
    "local sum / 48, psum": 0.06,
}
"""Forgets the turns, and the 48."""


def accumulate__right_plain(params, x, y, *, microbatches, mesh):
    """The check off, a Python loop."""

    def body(params, x, y):
        total = None
        for part_x, part_y in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            found = jax.value_and_grad(loss)(params, part_x, part_y)
            total = found if total is None else jax.tree.map(jnp.add, total, found)
        return jax.lax.pmean(jax.tree.map(lambda t: t / microbatches, total), "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P()), check_vma=False)(params, x, y)


def accumulate__right_scan(params, x, y, *, microbatches, mesh):
    """Varying parameters, scan."""

    def body(params, x, y):
        own = varying(params, "data")
        xs, ys = (v.reshape(microbatches, -1, v.shape[-1]) for v in (x, y))

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *part)), None

        zeros = varying((jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)), "data")
        total, _ = jax.lax.scan(turn, zeros, (xs, ys))
        return jax.tree.map(lambda t: t / microbatches, jax.lax.pmean(total, "data"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_not_divided(params, x, y, *, microbatches, mesh):
    """Forgets to divide by the turns."""

    def body(params, x, y):
        own = varying(params, "data")
        found = [
            jax.value_and_grad(loss)(own, *part) for part in zip(jnp.split(x, microbatches), jnp.split(y, microbatches))
        ]
        return jax.lax.pmean(jax.tree.map(lambda *turns: sum(turns), *found), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_every_turn(params, x, y, *, microbatches, mesh):
    """A reduction in each turn, right values."""

    def body(params, x, y):
        found = [
            jax.value_and_grad(lambda p, x, y: jax.lax.pmean(loss(p, x, y), "data"))(params, *part)
            for part in zip(jnp.split(x, microbatches), jnp.split(y, microbatches))
        ]
        return jax.tree.map(lambda *turns: sum(turns) / microbatches, *found)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_psum(params, x, y, *, microbatches, mesh):
    """psum at the end in place of pmean."""

    def body(params, x, y):
        own = varying(params, "data")
        found = [
            jax.value_and_grad(loss)(own, *part) for part in zip(jnp.split(x, microbatches), jnp.split(y, microbatches))
        ]
        return jax.lax.psum(jax.tree.map(lambda *turns: sum(turns) / microbatches, *found), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_two_at_once(params, x, y, *, microbatches, mesh):
    """Neither divides by the turns nor averages: psum."""

    def body(params, x, y):
        own = varying(params, "data")
        found = [
            jax.value_and_grad(loss)(own, *part) for part in zip(jnp.split(x, microbatches), jnp.split(y, microbatches))
        ]
        return jax.lax.psum(jax.tree.map(lambda *turns: sum(turns), *found), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_last(params, x, y, *, microbatches, mesh):
    """Keeps the last turn only."""

    def body(params, x, y):
        own = varying(params, "data")
        for part in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            found = jax.value_and_grad(loss)(own, *part)
        return jax.lax.pmean(found, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_loss_of_the_last(params, x, y, *, microbatches, mesh):
    """Adds the gradients, and takes the last turn's loss."""

    def body(params, x, y):
        own = varying(params, "data")
        total = jax.tree.map(jnp.zeros_like, own)
        for part in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            value, grads = jax.value_and_grad(loss)(own, *part)
            total = jax.tree.map(lambda t, g: t + g / microbatches, total, grads)
        return jax.lax.pmean((value, total), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def _rows(logits, labels):
    """Whether each row is right, and its loss."""
    log_p = jax.nn.log_softmax(logits)
    return logits.argmax(-1) == labels, -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]


def metrics__right_plain(logits, labels, real, *, mesh):
    """As in the hints."""

    def body(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hits = (jnp.argmax(logits, axis=-1) == labels) * real
        count, right, total = jax.lax.psum((real.sum(), hits.sum(), (losses * real).sum()), "data")
        return {"accuracy": right / count, "loss": total / count}

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def metrics__right_where(logits, labels, real, *, mesh):
    """With where and a one-hot."""

    def body(logits, labels, real):
        losses = -jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[-1]), axis=-1)
        numbers = jnp.stack(
            [
                jnp.where(real > 0, logits.argmax(-1) == labels, 0.0).sum(),
                jnp.where(real > 0, losses, 0.0).sum(),
                real.sum(),
            ]
        )
        right, total, count = jax.lax.psum(numbers, "data")
        return {"loss": total / count, "accuracy": right / count}

    rows = P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=(rows, rows, rows), out_specs=P())(logits, labels, real)


def metrics__wrong_mean_of_means(logits, labels, real, *, mesh):
    """Divides on each device, then averages."""

    def body(logits, labels, real):
        right, losses = _rows(logits, labels)
        own = {"accuracy": (right * real).sum() / real.sum(), "loss": (losses * real).sum() / real.sum()}
        return jax.lax.pmean(own, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def metrics__wrong_padding_counted(logits, labels, real, *, mesh):
    """Forgets the mask."""

    def body(logits, labels, real):
        right, losses = _rows(logits, labels)
        return jax.lax.pmean({"accuracy": right.mean(), "loss": losses.mean()}, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def metrics__wrong_divided_by_all(logits, labels, real, *, mesh):
    """Masks the sums, and divides by all rows."""

    def body(logits, labels, real):
        right, losses = _rows(logits, labels)
        rows = real.shape[0] * jax.lax.axis_size("data")
        return {
            "accuracy": jax.lax.psum((right * real).sum(), "data") / rows,
            "loss": jax.lax.psum((losses * real).sum(), "data") / rows,
        }

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def metrics__wrong_local_count(logits, labels, real, *, mesh):
    """Sums hits and losses over the devices, and divides by the own count."""

    def body(logits, labels, real):
        right, losses = _rows(logits, labels)
        count = real.sum()
        return {
            "accuracy": jax.lax.psum((right * real).sum(), "data") / count,
            "loss": jax.lax.psum((losses * real).sum(), "data") / count,
        }

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)(logits, labels, real)


def metrics__wrong_sign(logits, labels, real, *, mesh):
    """Forgets the minus of the loss."""

    def body(logits, labels, real):
        right, losses = _rows(logits, labels)
        count, hits, total = jax.lax.psum((real.sum(), (right * real).sum(), (-losses * real).sum()), "data")
        return {"accuracy": hits / count, "loss": total / count}

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def metrics__wrong_rows_sent(logits, labels, real, *, mesh):
    """Gathers all rows, and computes on every device."""

    def body(logits, labels, real):
        logits, labels, real = (jax.lax.all_gather(v, "data", tiled=True) for v in (logits, labels, real))
        right, losses = _rows(logits, labels)
        return {"accuracy": (right * real).sum() / real.sum(), "loss": (losses * real).sum() / real.sum()}

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)(logits, labels, real)


def _dropout(key_data, x, hidden, mesh, numbers, keep=0.75):
    """x @ w with masks by these row numbers."""
    init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
    w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8

    def body(block):
        def mask(r):
            return jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,))

        return jnp.where(jax.vmap(mask)(numbers(block)), block @ w / keep, 0)

    return {"w": w, "h": jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)}


def dropout_rng__right_plain(key_data, x, *, hidden, mesh):
    """As in the hints."""

    def body(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = jax.lax.axis_index("data") * x.shape[0] + jnp.arange(x.shape[0])
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(rows)
        return {"w": w, "h": jnp.where(keep, (x @ w) / 0.75, 0.0)}

    out = {"w": P(), "h": P("data")}
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=out)(key_data, x)


def dropout_rng__right_jit(key_data, x, *, hidden, mesh):
    """Without shard_map: row numbers of the whole batch, and the compiler."""
    init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
    w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
    keys = jax.vmap(jax.random.fold_in, (None, 0))(mask_key, jnp.arange(x.shape[0]))
    keep = jax.vmap(lambda k: jax.random.bernoulli(k, 0.75, (hidden,)))(keys)
    h = jnp.where(keep, x @ w / 0.75, 0)
    return {"w": w, "h": jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P("data")))}


def dropout_rng__wrong_same_masks(key_data, x, *, hidden, mesh):
    """Numbers rows from 0 on every device."""
    return _dropout(key_data, x, hidden, mesh, lambda block: jnp.arange(block.shape[0]))


def dropout_rng__wrong_device(key_data, x, *, hidden, mesh):
    """Folds in the device's number for all of its rows."""
    return _dropout(
        key_data, x, hidden, mesh, lambda block: jnp.zeros(block.shape[0], jnp.int32) + jax.lax.axis_index("data")
    )


def dropout_rng__wrong_interleaved(key_data, x, *, hidden, mesh):
    """Deals rows like cards: r = row · devices + device."""
    return _dropout(
        key_data,
        x,
        hidden,
        mesh,
        lambda block: jnp.arange(block.shape[0]) * mesh.shape["data"] + jax.lax.axis_index("data"),
    )


def dropout_rng__wrong_from_one(key_data, x, *, hidden, mesh):
    """Counts rows from one."""
    return _dropout(
        key_data,
        x,
        hidden,
        mesh,
        lambda block: 1 + jnp.arange(block.shape[0]) + jax.lax.axis_index("data") * block.shape[0],
    )


def dropout_rng__wrong_not_scaled(key_data, x, *, hidden, mesh):
    """Forgets to divide by 0.75."""
    return _dropout(
        key_data,
        x,
        hidden,
        mesh,
        lambda block: jnp.arange(block.shape[0]) + jax.lax.axis_index("data") * block.shape[0],
        keep=1,
    )


def dropout_rng__wrong_keys_swapped(key_data, x, *, hidden, mesh):
    """Takes the two keys the other way round."""

    def body(key_data, x):
        mask_key, init_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = jax.lax.axis_index("data") * x.shape[0] + jnp.arange(x.shape[0])
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(rows)
        return {"w": w, "h": jnp.where(keep, (x @ w) / 0.75, 0.0)}

    out = {"w": P(), "h": P("data")}
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=out)(key_data, x)


def dropout_rng__wrong_mask_per_batch(key_data, x, *, hidden, mesh):
    """One mask for the whole block, of the common key."""

    def body(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        keep = jax.random.bernoulli(mask_key, 0.75, (x.shape[0], hidden))
        return {"w": w, "h": jnp.where(keep, (x @ w) / 0.75, 0.0)}

    out = {"w": P(), "h": P("data")}
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=out)(key_data, x)


_LIES = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}


def _clipped(gradients, limit, mesh, norm_of, factor=lambda limit, norm: jnp.minimum(1, limit / norm), vma=True):
    """The gradients, shortened by a norm of this kind."""

    def body(g):
        norm = norm_of(g)
        return jax.tree.map(lambda leaf: leaf * factor(limit, norm), g), norm

    return jax.shard_map(body, mesh=mesh, in_specs=(_LIES,), out_specs=(_LIES, P()), check_vma=vma)(gradients)


def _square(leaf):
    return jnp.sum(leaf**2)


def clip_by_global_norm__right_plain(gradients, *, limit, mesh):
    """As in the hints."""
    lies = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def body(g):
        parts = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(parts, "model") + jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1.0, limit / norm)
        return {name: factor * leaf for name, leaf in g.items()}, norm

    return jax.shard_map(body, mesh=mesh, in_specs=(lies,), out_specs=(lies, P()))(gradients)


def clip_by_global_norm__wrong_jit(gradients, *, limit, mesh):
    """Whole arrays; the compiler sums, and for vdot gathers a matrix first, to make one row of it."""
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradients)))
    scale = jnp.where(norm > limit, limit / norm, 1.0)
    lies = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    return {
        name: jax.lax.with_sharding_constraint(scale * g, NamedSharding(mesh, lies[name]))
        for name, g in gradients.items()
    }, norm


def clip_by_global_norm__wrong_copies_summed(gradients, *, limit, mesh):
    """Sums all squares over model, the copies' too."""
    return _clipped(
        gradients, limit, mesh, lambda g: jnp.sqrt(jax.lax.psum(sum(_square(leaf) for leaf in g.values()), "model"))
    )


def clip_by_global_norm__wrong_local(gradients, *, limit, mesh):
    """Each device its own norm."""
    return _clipped(gradients, limit, mesh, lambda g: jnp.sqrt(sum(_square(leaf) for leaf in g.values())), vma=False)


def clip_by_global_norm__wrong_sum_of_norms(gradients, *, limit, mesh):
    """The root too early."""
    return _clipped(
        gradients,
        limit,
        mesh,
        lambda g: (
            jax.lax.psum(jnp.sqrt(sum(_square(g[n]) for n in ("W1", "b1", "W2"))), "model") + jnp.sqrt(_square(g["b2"]))
        ),
    )


def clip_by_global_norm__wrong_no_root(gradients, *, limit, mesh):
    """Forgets the root."""
    return _clipped(
        gradients,
        limit,
        mesh,
        lambda g: jax.lax.psum(sum(_square(g[n]) for n in ("W1", "b1", "W2")), "model") + _square(g["b2"]),
    )


def clip_by_global_norm__wrong_always(gradients, *, limit, mesh):
    """Scales small gradients up as well."""
    return _clipped(
        gradients,
        limit,
        mesh,
        lambda g: jnp.sqrt(jax.lax.psum(sum(_square(g[n]) for n in ("W1", "b1", "W2")), "model") + _square(g["b2"])),
        lambda limit, norm: limit / norm,
    )


def clip_by_global_norm__wrong_data_too(gradients, *, limit, mesh):
    """Sums over data as well, where all have the same."""
    return _clipped(
        gradients,
        limit,
        mesh,
        lambda g: jnp.sqrt(
            jax.lax.psum(sum(_square(g[n]) for n in ("W1", "b1", "W2")), ("data", "model")) + _square(g["b2"])
        ),
        vma=False,
    )


def clip_by_global_norm__wrong_norm_after(gradients, *, limit, mesh):
    """Returns the norm of the clipped gradients."""
    clipped, norm = _clipped(
        gradients,
        limit,
        mesh,
        lambda g: jnp.sqrt(jax.lax.psum(sum(_square(g[n]) for n in ("W1", "b1", "W2")), "model") + _square(g["b2"])),
    )
    return clipped, jnp.minimum(norm, limit)


def donate__right_plain(state, batches):
    """As in the hints."""
    step = compiled(momentum_step, donate_argnums=0)
    new = state
    for batch in batches:
        new = step(new, batch)
    return new, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


def donate__right_by_name(state, batches):
    """donate_argnames, another order of names."""
    step, first = compiled(momentum_step, donate_argnums=(0,)), jax.tree.leaves(state)
    for batch in batches:
        state = step(state, batch)
    return state, len([leaf for leaf in first if not leaf.is_deleted()])


def donate__wrong_not_donated(state, batches):
    """Forgets the option."""
    step, new = compiled(momentum_step), state
    for batch in batches:
        new = step(new, batch)
    return new, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


def donate__wrong_batch_donated(state, batches):
    """Donates the batch."""
    step, new = compiled(momentum_step, donate_argnums=1), state
    for batch in batches:
        new = step(new, batch)
    return new, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


def donate__wrong_old_state(state, batches):
    """Makes each step from the state that was given."""
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        new = step(state, batch)
    return new, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


def donate__wrong_deleted_counted(state, batches):
    """Counts those that are gone."""
    step, new = compiled(momentum_step, donate_argnums=0), state
    for batch in batches:
        new = step(new, batch)
    return new, sum(leaf.is_deleted() for leaf in jax.tree.leaves(state))


def donate__wrong_count_of_the_new(state, batches):
    """Asks the new state's leaves, since the name was given away."""
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


def donate__wrong_claimed(state, batches):
    """Donates nothing, and claims that nothing is left."""
    step = compiled(momentum_step)
    for batch in batches:
        state = step(state, batch)
    return state, 0


def donate__wrong_first_only(state, batches):
    """Donates in the first step only."""
    new = compiled(momentum_step, donate_argnums=0)(state, batches[0])
    for batch in batches[1:]:
        new = momentum_step(new, batch)
    return new, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


which_run__right_plain = {
    "A": "same dropout masks",
    "B": "never synchronised",
    "C": "sum of means",
    "D": "padding counted",
    "E": "sum taken for the mean",
    "F": "last microbatch only",
    "G": "averaged over one axis",
}
"""As measured."""

which_run__wrong_sums_swapped = which_run__right_plain | {"C": "sum taken for the mean", "E": "sum of means"}
"""Mixes up the two runs that are 8 times too large."""

which_run__wrong_copies_swapped = which_run__right_plain | {"B": "averaged over one axis", "G": "never synchronised"}
"""Counts copies the wrong way."""

which_run__wrong_group = which_run__right_plain | {"A": "last microbatch only", "F": "same dropout masks"}
"""Guesses within the group without a constant."""

which_run__wrong_all_the_same = dict.fromkeys("ABCDEFG", "padding counted")
"""Writes one word everywhere, for a seventh of the points."""


def place_dp__wrong_two_dimensions(params, batch, mesh):
    """Fits arrays of two dimensions, and no vector of labels."""
    cut = NamedSharding(mesh, P("data", None))
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, cut)


def accumulate__wrong_row_by_row(params, x, y, *, microbatches, mesh):
    """As many turns as there are rows."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, row):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *row)), None

        total, _ = jax.lax.scan(turn, nothing, (x[:, None], y[:, None]))
        return jax.lax.pmean(jax.tree.map(lambda leaf: leaf / len(x), total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def _measured(logits, labels, real, mesh, right):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        sums = jnp.stack([jnp.sum(real), jnp.sum(right(logits, labels) * real), jnp.sum(losses * real)])
        count, hits, total = jax.lax.psum(sums, "data")
        return {"accuracy": hits / count, "loss": total / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def metrics__right_at_the_maximum(logits, labels, real, *, mesh):
    """Right where the label's logit is the largest."""

    def right(logits, labels):
        return jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0] >= logits.max(axis=1)

    return _measured(logits, labels, real, mesh, right)


def metrics__right_argsort(logits, labels, real, *, mesh):
    """Right where the label comes last when they are sorted."""
    return _measured(logits, labels, real, mesh, lambda logits, labels: jnp.argsort(logits, axis=1)[:, -1] == labels)


def clip_by_global_norm__wrong_zero_over_zero(gradients, *, limit, mesh):
    """Divides by the norm, also where that is 0."""
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(gradients):
        squares = {name: jnp.sum(g**2) for name, g in gradients.items()}
        parts = jax.lax.psum(squares["W1"] + squares["b1"] + squares["W2"], "model")
        norm = jnp.sqrt(parts + squares["b2"])
        return jax.tree.map(lambda g: g / norm * jnp.minimum(norm, limit), gradients), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts,), out_specs=(layouts, P()))(gradients)


def place_dp__wrong_first_axis(params, batch, mesh):
    """The axis that the mesh names first."""
    first = NamedSharding(mesh, P(mesh.axis_names[0]))
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, first)


def metrics__wrong_padding_behind(logits, labels, real, *, mesh):
    """The real rows of a device are its first ones."""

    def on_device(logits, labels, real):
        first = jnp.arange(len(real)) < jnp.sum(real)
        losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]
        hits = jnp.argmax(logits, axis=-1) == labels
        sums = jnp.stack([jnp.sum(real), jnp.sum(hits * first), jnp.sum(losses * first)])
        count, hits, total = jax.lax.psum(sums, "data")
        return {"accuracy": hits / count, "loss": total / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def metrics__wrong_sum_of_exps(logits, labels, real, *, mesh):
    """The softmax written out, without the largest logit."""

    def on_device(logits, labels, real):
        picked = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
        losses = jnp.log(jnp.sum(jnp.exp(logits), axis=-1)) - picked
        hits = jnp.argmax(logits, axis=-1) == labels
        sums = jnp.stack([jnp.sum(real), jnp.sum(hits * real), jnp.sum(losses * real)])
        count, hits, total = jax.lax.psum(sums, "data")
        return {"accuracy": hits / count, "loss": total / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


def clip_by_global_norm__right_over_all_devices(gradients, *, limit, mesh):
    """Adds the parts' squares up over all devices, and divides by the copies."""

    def norm(g):
        parts = jax.lax.psum(_square(g["W1"]) + _square(g["b1"]) + _square(g["W2"]), ("data", "model"))
        return jnp.sqrt(parts / jax.lax.axis_size("data") + _square(g["b2"]))

    return _clipped(gradients, limit, mesh, norm, vma=False)


def clip_by_global_norm__right_squares_gathered(gradients, *, limit, mesh):
    """Gathers three sums of squares from each device."""

    def norm(g):
        squares = jnp.stack([_square(g[name]) for name in ("W1", "b1", "W2")])
        return jnp.sqrt(jnp.sum(jax.lax.all_gather(squares, "model")) + _square(g["b2"]))

    return _clipped(gradients, limit, mesh, norm, vma=False)


def clip_by_global_norm__wrong_above_one(gradients, *, limit, mesh):
    """Shortens what is longer than 1, as if that were the limit."""

    def norm(g):
        parts = jax.lax.psum(_square(g["W1"]) + _square(g["b1"]) + _square(g["W2"]), "model")
        return jnp.sqrt(parts + _square(g["b2"]))

    return _clipped(
        gradients, limit, mesh, norm, lambda limit, norm: jnp.where(norm > 1, jnp.minimum(1, limit / norm), 1)
    )


def metrics__right_sums_gathered(logits, labels, real, *, mesh):
    """Gathers the three numbers of all devices, and adds them up there."""

    def on_device(logits, labels, real):
        own = jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels]
        right = logits.argmax(axis=1) == labels
        sums = jnp.stack([jnp.sum(real), jnp.sum(right * real), -jnp.sum(own * real)])
        count, hits, total = jax.lax.all_gather(sums, "data").sum(axis=0)
        return {"accuracy": hits / count, "loss": total / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)(logits, labels, real)


def accumulate__wrong_side_by_side(params, x, y, *, microbatches, mesh):
    """Takes all turns at once, with vmap."""

    def on_device(params, x, y):
        own = varying(params, "data")
        xs, ys = (v.reshape(microbatches, -1, v.shape[-1]) for v in (x, y))
        found = jax.vmap(jax.value_and_grad(loss), (None, 0, 0))(own, xs, ys)
        return jax.lax.pmean(jax.tree.map(lambda leaf: leaf.mean(axis=0), found), "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P()))(params, x, y)
