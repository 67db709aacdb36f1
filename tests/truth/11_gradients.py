"""Answers to lesson 11, as students give them: written from the student's notebook alone."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss(params, x, y):
    """A small network's mean squared error, over the rows and over what comes out."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def squares(w, x, y):
    """The squared errors of a linear model, added up. For part 10."""
    return jnp.sum((x @ w - y) ** 2)


def varying(value, axis):
    """The same value, typed as one that may differ along `axis`."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axis, to="varying")
    return jax.lax.pvary(value, axis)  # the same, on JAX before 0.8.2


transposes__right_plain = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}
"""As it is."""

transposes__wrong_psum_is_psum = transposes__right_plain | {"psum to P(), ct 1": 8, "pmean to P(), ct 1": 1}
"""Believes the old sentence: the transpose of psum is psum."""

transposes__wrong_permute_backwards = transposes__right_plain | {"ppermute +1, ct 0 … 7": 2}
"""Sends the cotangent the way of the value."""

transposes__wrong_each_its_own = transposes__right_plain | {
    "all_gather to P('data'), ct 1 each": 1,
    "psum_scatter, ct 0 … 7": 3,
    "w from P() to P('data'), ct 0 … 7": 3,
}
"""Believes that device 3 only hears of its own entry."""

same_with_vma_off__right_plain = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}
"""As it is."""

same_with_vma_off__wrong_as_with_the_check = same_with_vma_off__right_plain | {
    "own loss": 8,
    "own loss, then pmean": 8,
    "own loss, then psum": 64,
    "pmean of the loss": 1,
}
"""Copies the ratios of the checked recipes."""

same_with_vma_off__wrong_pmean_divides = same_with_vma_off__right_plain | {
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
}
"""Divides by 8 once for the pmean of the loss."""

same_with_vma_off__wrong_psum_counts_once = same_with_vma_off__right_plain | {
    "psum of the loss, then pmean": 1,
    "psum of the loss, then psum": 8,
}
"""Takes psum of the loss to be transposed to nothing."""

fsdp_transpose__right_plain = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}
"""As it is."""

fsdp_transpose__wrong_policy_gathers_all = fsdp_transpose__right_plain | {
    "all_gather, keeps all but gathered weights": 6
}
"""Forgets that the first layer's weights are not used backwards."""

fsdp_transpose__wrong_all_reduce_twice = fsdp_transpose__right_plain | {"all_reduce, keeps all": 2}
"""Counts an all-reduce for the transposed pmean."""

fsdp_transpose__wrong_scatters_again = fsdp_transpose__right_plain | {
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps nothing": 3,
}
"""Takes the wrong one of the two for the one that runs again."""


def dp_gradient_outside__right_plain(params, x, y, *, mesh):
    """As in the hints."""

    def body(params, x, y):
        return jax.lax.pmean(loss(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_unchecked(params, x, y, *, mesh):
    """With the check off, which sends more than need be."""

    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data") / jax.lax.axis_size("data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)(
        params, x, y
    )


def dp_gradient_outside__wrong_psum(params, x, y, *, mesh):
    """Sums the devices' means."""

    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_no_collective(params, x, y, *, mesh):
    """Each device its own loss."""
    specs = P(), P("data"), P("data")
    return jax.shard_map(loss, mesh=mesh, in_specs=specs, out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_no_collective_unchecked(params, x, y, *, mesh):
    """Each device its own loss, and the check silenced."""
    specs = P(), P("data"), P("data")
    return jax.shard_map(loss, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


def dp_gradient_outside__wrong_line(params, x, y, *, mesh):
    """Uses the notebook's mesh."""

    def body(params, x, y):
        return jax.lax.pmean(loss(params, x, y), "data")

    return jax.shard_map(body, mesh=line, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_gradient(params, x, y, *, mesh):
    """Returns the gradient in place of the loss."""

    def body(params, x, y):
        return jax.grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_stopped(params, x, y, *, mesh):
    """Writes pmean as a sum of a stopped mean: the value is right, the gradient is not."""

    def body(params, x, y):
        own = loss(params, x, y)
        return jax.lax.stop_gradient(jax.lax.pmean(own, "data"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_of_the_mean__right_plain(params, x, y, *, mesh):
    """As in the hints."""

    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_of_the_mean__right_lambda(params, x, y, *, mesh):
    """The same with psum and a division."""
    n = mesh.shape["data"]

    def body(p, x, y):
        return jax.value_and_grad(lambda p: jax.lax.psum(loss(p, x, y) / n, "data"))(p)

    return jax.jit(
        jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data", None), P("data", None)), out_specs=(P(), P()))
    )(params, x, y)


def gradient_of_the_mean__wrong_pmean_behind(params, x, y, *, mesh):
    """The recipe that everybody knows."""

    def body(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(value, "data"), jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_twice(params, x, y, *, mesh):
    """The right one, and a pmean of the gradients to be safe."""

    def body(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
        return value, jax.lax.pmean(varying(grads, "data"), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_psum(params, x, y, *, mesh):
    """psum in the loss."""

    def body(params, x, y):
        return jax.value_and_grad(lambda p: jax.lax.psum(loss(p, x, y), "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_unchecked(params, x, y, *, mesh):
    """The right lines, with the check off."""

    def body(params, x, y):
        return jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)(
        params, x, y
    )


def gradient_of_the_mean__wrong_outside(params, x, y, *, mesh):
    """Takes the gradient outside, though the text asks for inside."""

    def body(params, x, y):
        return jax.lax.pmean(loss(params, x, y), "data")

    whole = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
    return jax.value_and_grad(whole)(params, x, y)


def gradient_of_the_mean__wrong_order(params, x, y, *, mesh):
    """Returns (gradients, loss)."""

    def body(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
        return grads, value

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_no_loss(params, x, y, *, mesh):
    """Returns the gradients alone."""

    def body(params, x, y):
        return jax.grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_divided__right_plain(params, x, y, *, mesh):
    """As in the hints."""

    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda g: g / jax.lax.axis_size("data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_divided__right_outside(params, x, y, *, mesh):
    """Divides behind the shard_map."""
    summed = jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
    return {name: g / mesh.shape["data"] for name, g in summed.items()}


def gradient_divided__wrong_eight(params, x, y, *, mesh):
    """Divides by the notebook's eight."""

    def body(params, x, y):
        return jax.tree.map(lambda g: g / 8, jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_divided__wrong_mesh_size(params, x, y, *, mesh):
    """Divides by all devices, those along model too."""

    def body(params, x, y):
        return jax.tree.map(lambda g: g / mesh.size, jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_divided__wrong_pmean(params, x, y, *, mesh):
    """pmean in place of a division."""

    def body(params, x, y):
        return jax.lax.pmean(jax.grad(loss)(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_divided__wrong_undivided(params, x, y, *, mesh):
    """As jax.grad gives them."""
    specs = P(), P("data"), P("data")
    return jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=specs, out_specs=P())(params, x, y)


def gradient_divided__wrong_by_rows(params, x, y, *, mesh):
    """Divides by the rows of the batch."""

    def body(params, x, y):
        return jax.tree.map(lambda g: g / x.shape[0], jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_divided__wrong_unchecked(params, x, y, *, mesh):
    """Divides, with the check off: nothing was added."""

    def body(params, x, y):
        return jax.tree.map(lambda g: g / jax.lax.axis_size("data"), jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)(
        params, x, y
    )


def gradient_cast__right_plain(params, x, y, *, mesh):
    """As in the hints."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        return norm[None], jax.lax.pmean(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__right_norm(params, x, y, *, mesh):
    """With the norm of all entries in one vector."""

    def body(params, x, y):
        params = {k: varying(v, ("data",)) for k, v in params.items()}
        g = jax.grad(loss)(params, x[0], y[0])
        flat = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(g)])
        mean = jax.tree.map(lambda leaf: jax.lax.psum(leaf, "data") / mesh.shape["data"], g)
        return jnp.linalg.norm(flat).reshape(1), mean

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_no_cast(params, x, y, *, mesh):
    """Takes the norm of the sum."""

    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        return norm[None], jax.tree.map(lambda g: g / jax.lax.axis_size("data"), grads)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_no_root(params, x, y, *, mesh):
    """Forgets the root."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = sum(jnp.sum(g**2) for g in grads.values())
        return norm[None], jax.lax.pmean(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_sum_of_norms(params, x, y, *, mesh):
    """Adds the norms of the leaves."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = sum(jnp.linalg.norm(g) for g in grads.values())
        return norm[None], jax.lax.pmean(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_psum(params, x, y, *, mesh):
    """psum in place of pmean."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        return norm[None], jax.lax.psum(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_norm_of_the_mean(params, x, y, *, mesh):
    """Averages first, and takes the norm then."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.lax.pmean(jax.grad(loss)(own, x, y), "data")
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        return norm[None], grads

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_one_leaf_cast(params, x, y, *, mesh):
    """Casts w1 only."""

    def body(params, x, y):
        own = params | {"w1": varying(params["w1"], "data")}
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        return norm[None], {"w1": jax.lax.pmean(grads["w1"], "data"), "w2": grads["w2"]}

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


def closed_over_params__right_plain(params, x, y, *, mesh):
    """As in the hints."""

    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)

        def of_one(row, target):
            return jax.grad(loss)(own, row, target)

        return jax.vmap(of_one)(x, y)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


def closed_over_params__right_in_axes(params, x, y, *, mesh):
    """Takes the parameters as an argument, and vmap's in_axes."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(own, x, y)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)


def closed_over_params__right_unchecked(params, x, y, *, mesh):
    """With the check off nothing is added, and out_specs promise nothing."""

    def of_one(row, target):
        return jax.grad(loss)(params, row, target)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"), check_vma=False)(x, y)


def closed_over_params__wrong_as_given(params, x, y, *, mesh):
    """Copies the program of the text."""

    def of_one(row, target):
        return jax.grad(loss)(params, row, target)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


def closed_over_params__wrong_divided(params, x, y, *, mesh):
    """Divides by the devices, as in the exercise before."""

    def of_one(row, target):
        return jax.tree.map(lambda g: g / mesh.shape["data"], jax.grad(loss)(params, row, target))

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


def closed_over_params__wrong_block(params, x, y, *, mesh):
    """Forgets vmap: a gradient for each device."""

    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.tree.map(lambda g: g[None], jax.grad(loss)(own, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


def closed_over_params__wrong_averaged(params, x, y, *, mesh):
    """Casts, and averages over the devices out of habit."""

    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.vmap(lambda row, target: jax.grad(loss)(own, row, target))(x, y)
        return jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"), check_vma=False)(x, y)


def closed_over_params__wrong_rows_cast(params, x, y, *, mesh):
    """Casts the gradient, when it is too late."""

    def of_one(row, target):
        return jax.tree.map(lambda g: varying(g, "data"), jax.grad(loss)(params, row, target))

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


def _pair(params, x, y, mesh, f, g):
    """The layer with these two functions, unchecked."""
    cut = {"w1": P(None, "model"), "w2": P("model", None)}

    def body(params, x, y):
        def local(params, x):
            return jnp.mean((g(jnp.tanh(f(x) @ params["w1"]) @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(local, argnums=(0, 1))(params, x)

    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


def _ruled(forward, backward):
    """A function with these two directions."""
    rule = jax.custom_vjp(forward)
    rule.defvjp(lambda v: (forward(v), None), lambda kept, ct: (backward(ct),))
    return rule


def _same(v):
    return v


def _added(v):
    return jax.lax.psum(v, "model")


def custom_vjp_pair__right_plain(params, x, y, *, mesh):
    """As in the hints."""

    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda kept, ct: (jax.lax.psum(ct, "model"),))

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda kept, ct: (ct,))
    cut = {"w1": P(None, "model"), "w2": P("model", None)}

    def body(params, x, y):
        def local(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(local, argnums=(0, 1))(params, x)

    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


def custom_vjp_pair__wrong_swapped(params, x, y, *, mesh):
    """f and g the wrong way round."""
    return _pair(params, x, y, mesh, _ruled(_added, _same), _ruled(_same, _added))


def custom_vjp_pair__wrong_plain_psum(params, x, y, *, mesh):
    """A plain psum for g."""
    return _pair(params, x, y, mesh, _ruled(_same, _added), _added)


def custom_vjp_pair__wrong_no_f(params, x, y, *, mesh):
    """Leaves f away: the cotangent of x stays a part."""
    return _pair(params, x, y, mesh, _same, _ruled(_added, _same))


def custom_vjp_pair__wrong_no_g(params, x, y, *, mesh):
    """Leaves g away: the sum is never made."""
    return _pair(params, x, y, mesh, _ruled(_same, _added), _same)


def custom_vjp_pair__wrong_plain_both(params, x, y, *, mesh):
    """No rules at all: psum, and nothing."""
    return _pair(params, x, y, mesh, _same, _added)


def custom_vjp_pair__wrong_mean(params, x, y, *, mesh):
    """f averages backwards."""
    return _pair(params, x, y, mesh, _ruled(_same, lambda v: jax.lax.pmean(v, "model")), _ruled(_added, _same))


def one_all_reduce__right_plain(w, xs, ys, *, mesh):
    """The product with an open sum, as in the worked example."""
    later = NamedSharding(mesh, P(unreduced={"data"}))
    total = None
    for x, y in zip(xs, ys):
        part = jnp.dot(2 * x.T, x @ w - y, out_sharding=later)
        total = part if total is None else total + part
    return reshard(total, NamedSharding(mesh, P()))


def one_all_reduce__right_by_hand(w, xs, ys, *, mesh):
    """shard_map: cast, add up, one psum."""

    def body(w, xs, ys):
        own = varying(w, "data")
        total = sum(jax.grad(squares)(own, xs[k], ys[k]) for k in range(xs.shape[0]))
        return jax.lax.psum(total, "data")

    rows = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


def one_all_reduce__right_reduced(w, xs, ys, *, mesh):
    """jax.grad by a reduced copy."""
    copy = reshard(w, NamedSharding(mesh, P(reduced={"data"})))
    grads = [jax.grad(squares)(copy, x, y) for x, y in zip(xs, ys)]
    total = grads[0]
    for more in grads[1:]:
        total = total + more
    return reshard(total, NamedSharding(mesh, P()))


def one_all_reduce__wrong_every_turn(w, xs, ys, *, mesh):
    """The example above: a sum for each small batch."""
    return sum(jax.grad(squares)(w, x, y) for x, y in zip(xs, ys))


def one_all_reduce__right_at_once(w, xs, ys, *, mesh):
    """All rows at once, which the text lets pass."""

    def body(w, xs, ys):
        own = varying(w, "data")
        columns, outs = xs.shape[-1], ys.shape[-1]
        return jax.lax.psum(jax.grad(squares)(own, xs.reshape(-1, columns), ys.reshape(-1, outs)), "data")

    rows = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


def one_all_reduce__wrong_no_two(w, xs, ys, *, mesh):
    """Forgets the factor 2 of a square's derivative."""
    later = NamedSharding(mesh, P(unreduced={"data"}))
    parts = [jnp.dot(x.T, x @ w - y, out_sharding=later) for x, y in zip(xs, ys)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return reshard(total, NamedSharding(mesh, P()))


def one_all_reduce__wrong_mean(w, xs, ys, *, mesh):
    """Averages the small batches."""

    def body(w, xs, ys):
        own = varying(w, "data")
        grads = [jax.grad(squares)(own, xs[k], ys[k]) for k in range(len(xs))]
        return jax.lax.psum(sum(grads) / len(xs), "data")

    rows = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


def one_all_reduce__wrong_last(w, xs, ys, *, mesh):
    """Overwrites instead of adding: the last small batch only."""
    later = NamedSharding(mesh, P(unreduced={"data"}))
    for x, y in zip(xs, ys):
        total = jnp.dot(2 * x.T, x @ w - y, out_sharding=later)
    return reshard(total, NamedSharding(mesh, P()))


def one_all_reduce__wrong_no_cast(w, xs, ys, *, mesh):
    """shard_map, without the cast: summed in every turn, and once more."""

    def body(w, xs, ys):
        total = sum(jax.grad(squares)(w, xs[k], ys[k]) for k in range(xs.shape[0]))
        return jax.lax.psum(varying(total, "data"), "data")

    rows = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


def one_all_reduce__wrong_left_open(w, xs, ys, *, mesh):
    """Forgets the last reshard."""
    later = NamedSharding(mesh, P(unreduced={"data"}))
    parts = [jnp.dot(2 * x.T, x @ w - y, out_sharding=later) for x, y in zip(xs, ys)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _mean_inside(params, x, y, mesh, then):
    def on_device(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
        return value, then(grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_first_once_more(params, x, y, *, mesh):
    """One of the two gradients travels twice."""
    return _mean_inside(params, x, y, mesh, lambda g: {**g, "w1": jax.lax.pmean(g["w1"], "data")})


def gradient_of_the_mean__wrong_second_once_more(params, x, y, *, mesh):
    """The other one travels twice."""
    return _mean_inside(params, x, y, mesh, lambda g: {**g, "w2": jax.lax.pmean(g["w2"], "data")})


def gradient_divided__right_mean_differentiated(params, x, y, *, mesh):
    """The first way once more, which the text says passes."""
    return _mean_inside(params, x, y, mesh, lambda g: g)[1]


def custom_vjp_pair__right_checked(params, x, y, *, mesh):
    """With the check on, which the text says passes."""

    def local_loss(params, x, y):
        found = jax.lax.psum(jnp.tanh(x @ params["w1"]) @ params["w2"], "model")
        return jnp.mean((found - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    gradient = jax.value_and_grad(local_loss, argnums=(0, 1))
    return jax.shard_map(gradient, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())))(params, x, y)
