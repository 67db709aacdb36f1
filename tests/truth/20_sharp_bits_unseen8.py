"""Answers to lesson 20, eighth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- float_order

_orders = (
    "psum over 8 devices, and a loop that adds one by one",
    "psum over 8 devices, the same program twice",
    "a ring on 8 devices: the copies",
    "psum and the loop, of whole numbers in float32",
    "pmax over 8 devices, and NumPy's max",
    "psum over 8 devices, and over the same numbers shuffled",
)

float_order__right_which = {
    question: "equal" if number in (1, 3, 4) else "not equal" for number, question in enumerate(_orders)
}

# "Kernels add in the order in which their threads arrive": read as true of these devices too, which are threads.
float_order__wrong_threads = dict(zip(_orders, ("not equal", "not equal", "not equal", "equal", "equal", "not equal")))

# Every device of the ring adds the same eight parts, and a + b is b + a: so all copies are alike.
float_order__wrong_commutes = dict(zip(_orders, ("not equal", "equal", "equal", "equal", "equal", "not equal")))

# The order of psum is fixed by the program, and is the same for any numbers: a shuffle changes nothing for it.
float_order__wrong_fixed_order = dict(zip(_orders, ("not equal", "equal", "not equal", "equal", "equal", "equal")))

# "After every addition or comparison the result is rounded to 24 digits": so no reduction in float32 is the same in two orders.
float_order__wrong_always_rounds = dict(
    zip(_orders, ("not equal", "equal", "not equal", "not equal", "not equal", "not equal"))
)


# ---------------------------------------------------------------- rng_partitionable


def _rng(off, on, same, devices, longer, release):
    return {
        "flag off: kinds of collectives": off,
        "flag on: kinds of collectives": on,
        "the same numbers with the flag off and on": same,
        "flag on: the same numbers on 1 and on 8 devices": devices,
        "flag off: draws of 24 and of 25 begin alike": longer,
        "a later release of JAX: the same numbers for sure": release,
    }


rng_partitionable__right_run = _rng(sorted({"collective_permute", "all_gather"}), [], "no", "yes", "no", "no")

# An entry's bits come from *one* other device, its partner in the other half of the counter: that is a permute and nothing else.
rng_partitionable__wrong_partner = _rng(["collective_permute"], [], "no", "yes", "no", "no")

# The flag says who computes an entry, and not what comes out: the key is the same, so are the numbers.
rng_partitionable__wrong_only_who = _rng(["all_gather", "collective_permute"], [], "yes", "yes", "no", "no")

# Entry k is a mixture of the key and of k, with any flag: a longer draw only goes on.
rng_partitionable__wrong_goes_on = _rng(["all_gather", "collective_permute"], [], "no", "yes", "yes", "no")

# Took lesson 20's part 2 for part 1: on each of eight devices the counter begins at 0, so the numbers of one device are other ones.
rng_partitionable__wrong_counter_from_0 = _rng(["all_gather", "collective_permute"], [], "no", "no", "no", "no")


# ---------------------------------------------------------------- donated

_rows = (
    "a, in a + 1",
    "a, in a.astype(jnp.int32)",
    "a, in a.astype(jnp.bfloat16)",
    "a, in a + 1 with the result on every device whole",
    "a.addressable_shards[0].data, taken before a + 1",
    "np.asarray(a), taken before a + 1",
)

donated__right_bytes = dict(zip(_rows, ["deleted", "deleted", "alive", "alive", "deleted", "alive"]))

# A result takes the place of an argument only if it is of the same kind: shape, layout *and dtype*.
donated__wrong_dtype = dict(zip(_rows, ["deleted", "alive", "alive", "alive", "deleted", "alive"]))

# Whoever donates gives away: the name is empty afterwards, whether the program had use for the memory or not.
donated__wrong_given_is_given = dict(zip(_rows, ["deleted", "deleted", "deleted", "deleted", "deleted", "alive"]))

# A shard's `.data` is an array of its own on one device; it was not among the arguments, so it stays.
donated__wrong_shard = dict(zip(_rows, ["deleted", "deleted", "alive", "alive", "alive", "alive"]))

# The bytes of a device's *block* count, and of the program's shapes: a smaller result fits in, a larger one does not.
donated__wrong_fits_in = dict(zip(_rows, ["deleted", "deleted", "deleted", "alive", "deleted", "alive"]))
