"""Answers to lesson 21, eighth batch, written by a reader of the notebook only."""

from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- mfu


def mfu__right_two_times(parameters, tokens, seconds, chips, peak):
    forwards = 2 * parameters * tokens
    needed = forwards + 2 * forwards
    at_the_peak = needed / peak / chips  # seconds
    return at_the_peak / seconds


# The layers are computed again on the way back, as in `it_fits`, so a token takes 2 N + 2 N + 4 N.
def mfu__wrong_eight(parameters, tokens, seconds, chips, peak):
    forwards, again, backwards = 2 * parameters, 2 * parameters, 4 * parameters
    return (forwards + again + backwards) * tokens / (seconds * chips * peak)


# First the tokens of one chip, since they are cut over the chips; and then once more the chips below the line.
def mfu__wrong_own_tokens(parameters, tokens, seconds, chips, peak):
    own = tokens / chips
    return 6 * parameters * own / (seconds * chips * peak)


# Backwards is twice forwards, 4 N, and that is taken for the whole: the way forwards is a part of it.
def mfu__wrong_four(parameters, tokens, seconds, chips, peak):
    def flops_of_a_token(n):
        return max(2 * n, 4 * n)

    return flops_of_a_token(parameters) * tokens / seconds / (chips * peak)


# "0 to 1", so what comes out is cut there and given in whole per cent.
def mfu__wrong_whole_percent(parameters, tokens, seconds, chips, peak):
    part = 6 * parameters * tokens / (seconds * chips * peak)
    return int(100 * min(part, 1)) / 100


# ---------------------------------------------------------------- cpu_and_tpu

_programs = (
    "written gather, bfloat16",
    "written gather, float32",
    "written reduce_scatter, float32",
    "left sum, float32",
    "left sum, bfloat16",
    "left sum, bfloat16, 8192",
)

cpu_and_tpu__right_zip = dict(zip(_programs, ("dtype", "dtype", "nothing", "kind", "both", "both")))

# A chip multiplies float32 by rounding to bfloat16, so whatever belongs to a product in float32 travels as bfloat16 there, sums too.
cpu_and_tpu__wrong_sums_too = dict(zip(_programs, ("dtype", "dtype", "dtype", "both", "both", "both")))

# Simulated devices compute bfloat16 in float32, and so they send float32: the written gather of bfloat16 as well.
cpu_and_tpu__right_gather_too = dict(zip(_programs, ("dtype", "dtype", "nothing", "kind", "both", "both")))

# "Simulated devices never form a reduce-scatter": not where it is written, either.
cpu_and_tpu__wrong_never = dict(zip(_programs, ("dtype", "dtype", "kind", "kind", "both", "both")))

# Products of the chip are summed up in float32, and partial sums are sent before they are rounded: so only the kind differs.
cpu_and_tpu__wrong_partial_sums = dict(zip(_programs, ("dtype", "dtype", "nothing", "kind", "kind", "kind")))


# ---------------------------------------------------------------- hbm


def hbm__right_steps(arguments, results, temporaries, shared, peak, room):
    other_results = results - shared
    gib = 1024**3
    return arguments + other_results + temporaries, not peak > room * gib


# Shared bytes "stand twice", among the arguments and among the results: so they are taken from both.
def hbm__wrong_from_both(arguments, results, temporaries, shared, peak, room):
    total = (arguments - shared) + (results - shared) + temporaries
    return total, peak <= room * 2**30


# To be on the safe side: it fits if both the peak and the sum of the parts do.
def hbm__wrong_both_fit(arguments, results, temporaries, shared, peak, room):
    total = arguments + results + temporaries - shared
    return total, max(total, peak) <= room * 2**30


# A v5e keeps a quarter of a GiB for itself, and that is taken from the room that the refusal calls available.
def hbm__wrong_quarter_again(arguments, results, temporaries, shared, peak, room):
    total = arguments + results + temporaries - shared
    return total, peak <= (room - 0.25) * 2**30


# What is shared lies on top of each other, so arguments and results take as much as the larger of the two, if anything is donated.
def hbm__wrong_larger(arguments, results, temporaries, shared, peak, room):
    state = max(arguments, results) if shared else arguments + results
    return state + temporaries, peak <= room * 2**30
