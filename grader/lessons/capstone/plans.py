"""§ 9: a plan for a machine that has to be paid for: mesh, microbatches, what is computed again.

Bytes and seconds are those of lessons 09, 13, 14 and 21, per device; `memory_bytes` and `step_time` give their sources.
A roofline knows no kernel that is slower than the peak, so that a real run stays below its MFU.
"""

from __future__ import annotations

from grader.chips.compiling import NoCompiler
from grader.exercises import Case, FunctionExercise
from grader.lessons.capstone.pods import fit

# Meta's model cards; `length` is the tokens of a sequence.
LLAMA_3 = {
    "8B": {"parameters": 8.03e9, "layers": 32, "width": 4096, "hidden": 14336, "heads": 32, "kv_heads": 8,
           "vocabulary": 128256, "length": 8192},
    "70B": {"parameters": 70.6e9, "layers": 80, "width": 8192, "hidden": 28672, "heads": 64, "kv_heads": 8,
            "vocabulary": 128256, "length": 8192},
}  # fmt: skip
# A device: FLOPs a second, bytes that a program may have, dollars an hour (list prices, 2025), bytes a second along
# `model`, and along `data` where `model` has 1, 2, 4 or 8 devices. On a v5e an axis of the torus, both ways at once,
# and both axes where `model` takes none; of H100s eight share a node's eight network cards of 5·10¹⁰.
MACHINES = {
    "v5e": {
        "peak": 1.97e14,
        "memory": 15.75 * 2**30,
        "dollars": 1.2,
        "model": 9e10,
        "data": [1.8e11, 9e10, 9e10, 9e10],
    },
    "H100": {"peak": 9.9e14, "memory": 80e9, "dollars": 3.0, "model": 4.5e11, "data": [4e11, 2e11, 1e11, 5e10]},
}
REMAT = "none", "mlp", "full"
PLAN = "data", "model", "rows", "micro", "remat"
PODS = (("v5e", 256, "v5e:16x16"),)  # machines, and so many of them, that a compiler is asked about
# Collectives of a layer along `model`. Lesson 13: four forwards, four backwards. No plan keeps what the two all_gathers
# bring, so both are made again on the way back; so is the first reduce_scatter where nothing is kept.
ALONG_MODEL = {"none": 10, "mlp": 10, "full": 11}
MARGIN = 0.9  # of the memory, for what nobody counts: fragments, a collective's buffers


def memory_bytes(model, plan):
    """Bytes of one device: state, weights of two layers that are gathered, activations, logits."""
    data, axis, tokens = plan["data"], plan["model"], plan["rows"] * model["length"]
    d, f, layers = model["width"], model["hidden"], model["layers"]
    state = 16 * model["parameters"] / (data * axis)  # lessons 09, 14: weights, gradients, Adam, all of them cut
    gathered = 2 * 2 * model["parameters"] / layers / axis
    attention = (
        (8 + 4 * model["kv_heads"] / model["heads"]) * d * tokens / axis
    )  # two norms' inputs, q, k, v, their sum
    hidden = 6 * f * tokens / axis  # gate, up, their product
    kept = {
        "none": layers * (attention + hidden),
        "mlp": layers * attention + hidden,
        "full": layers * 2 * d * tokens / axis + attention + hidden,
    }
    logits = 2 * 4 * model["vocabulary"] * tokens / axis  # float32, and their gradient
    return state + gathered + kept[plan["remat"]] + logits


def step_time(model, machine, plan):
    """Seconds of a step: arithmetic with FSDP's passes behind it, then what stands in the layers' way along `model`."""
    data, axis, micro = plan["data"], plan["model"], plan["micro"]
    tokens, layers = plan["rows"] * model["length"], model["layers"]
    again = {"none": 0, "mlp": 4 * model["width"] * model["hidden"] * layers, "full": 2 * model["parameters"]}
    flops = (6 * model["parameters"] + again[plan["remat"]]) * tokens * micro / axis
    # Lesson 14: gathered forwards and backwards, and the gradients dealt out, for every microbatch.
    passes = 3 * 2 * model["parameters"] / axis * (data - 1) / data * micro
    sent = ALONG_MODEL[plan["remat"]] * layers * micro * 2 * model["width"] * tokens * (axis - 1) / axis
    hidden = max(flops / machine["peak"], passes / machine["data"][axis.bit_length() - 1])
    return hidden + sent / machine["model"]


def mfu(model, machine, plan):
    """Lesson 21: what the model's own FLOPs are of those that the devices could have done."""
    tokens = plan["data"] * plan["rows"] * plan["micro"] * model["length"]
    devices = plan["data"] * plan["model"]
    return 6 * model["parameters"] * tokens / (step_time(model, machine, plan) * devices * machine["peak"])


def plans(model, devices, sequences):
    """All plans of powers of two that cut heads and batch evenly."""
    for k in range(devices.bit_length()):
        axis, data = 2**k, devices // 2**k
        if model["kv_heads"] % axis or sequences % data:
            continue
        share = sequences // data
        for rows in (2**i for i in range(share.bit_length()) if share % 2**i == 0):
            for remat in REMAT:
                yield {"data": data, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}


def _best(model, machine, devices, sequences, margin=MARGIN, wanted=lambda plan: True):
    """The plan with the highest MFU among those that are wanted and fit, or if none fits, the one that holds least."""
    every = [plan for plan in plans(model, devices, sequences) if wanted(plan)]
    fits = [one for one in every if memory_bytes(model, one) <= margin * machine["memory"]]
    if not fits:
        return min(every, key=lambda plan: memory_bytes(model, plan))
    return max(fits, key=lambda plan: mfu(model, machine, plan))


def _reference(model, machine, devices, sequences):
    """The best of all plans, and the MFU that it is held to."""
    found = _best(model, machine, devices, sequences)
    return found | {"mfu": mfu(model, machine, found)}


def good_plan(one, other, *, model, machine, devices, sequences):
    """Whether a plan is possible, fits with the margin, and comes within 10 % of the reference's MFU, or beyond it.
    Where none fits, whether it holds as little as the reference.

    Two answers of which none is the reference are the same if they are equal.
    """
    if not isinstance(other, dict) or "mfu" not in other:
        return one == other
    try:
        one = one | {name: _whole(one[name]) for name in ("data", "model", "rows", "micro")}
        whole = all(isinstance(one[name], int) and one[name] > 0 for name in ("data", "model", "rows", "micro"))
        return (
            whole
            and one["data"] * one["model"] == devices
            and one["data"] * one["rows"] * one["micro"] == sequences
            and model["kv_heads"] % one["model"] == 0
            and (_is_good(one, other, model, machine) if _fits(other, model, machine) else _is_least(one, other, model))
        )
    except (TypeError, ValueError, LookupError):
        return False


def _whole(number):
    """A whole number as such, where it is a float, or a number of JAX's."""
    return int(number) if float(number).is_integer() else number


def _fits(one, model, machine):
    return memory_bytes(model, one) <= MARGIN * machine["memory"]


def _is_good(one, other, model, machine):
    """Whether a plan that has to fit does, and is as fast as another but for 10 %."""
    fast = mfu(model, machine, one) >= 0.9 * other["mfu"]
    return _fits(one, model, machine) and fast and _is_taken_by_its_compiler(model, machine, one)


def _is_least(one, other, model):
    """Whether a plan holds no more than another, up to rounding."""
    return memory_bytes(model, one) <= memory_bytes(model, other) * (1 + 1e-9)


def _is_taken_by_its_compiler(model, machine, one):
    """Whether the compiler of the plan's pod takes it, where there is such a pod, and the compiler can be asked."""
    asked = machine, one["data"] * one["model"]
    pod = next((pod for kind, devices, pod in PODS if asked == (MACHINES[kind], devices)), "")
    try:
        return not pod or not fit(model, {name: one[name] for name in PLAN}, pod).refusal
    except NoCompiler:
        return True


plan = FunctionExercise(
    "plan", points=6, reference=_reference, same=good_plan, taught_in=("09_cost", "14_fsdp", "21_real_chips")
)


@plan.cases
def _(draw):
    """The two of the lesson; then other machines, some of whose best plans leave too little of the memory free, one
    with slow wires, and one on which no plan fits."""
    yield Case({"model": LLAMA_3["8B"], "machine": MACHINES["v5e"], "devices": 256, "sequences": 512})
    yield Case({"model": LLAMA_3["70B"], "machine": MACHINES["H100"], "devices": 512, "sequences": 512})
    shares = [2, 4, 8]  # sequences for two devices; where it is one, not every device along `data` can have its own
    for name, kind, smallest, of_two in (
        ("8B", "H100", 3, shares),
        ("8B", "v5e", 7, shares),
        ("70B", "H100", 7, [1]),
        ("70B", "v5e", 9, shares),
    ):
        model, devices = LLAMA_3[name], 2 ** int(draw.rng.integers(smallest, smallest + 3))
        asked = {"model": model, "devices": devices, "sequences": devices // 2 * int(draw.rng.choice(of_two))}
        full = memory_bytes(model, _best(machine=MACHINES[kind], **asked)) / draw.rng.uniform(0.93, 0.99)
        for memory in (MACHINES[kind]["memory"] * draw.rng.uniform(0.9, 1.1), full):
            yield Case({**asked, "machine": MACHINES[kind] | {"memory": float(memory)}})
    slow = {"memory": 8 * MACHINES["H100"]["memory"], "data": [wire / 8 for wire in MACHINES["H100"]["data"]]}
    asked = {"model": LLAMA_3["8B"], "devices": 64, "sequences": 512}
    yield Case({**asked, "machine": MACHINES["H100"] | slow})  # room for long microbatches, which gather less often
    model = LLAMA_3["8B"] | {"kv_heads": 4}  # `model` is 4 at most
    asked = {"model": model, "devices": 8, "sequences": 64}
    least = memory_bytes(model, _best(machine=MACHINES["H100"], **asked, margin=0))
    yield Case({**asked, "machine": MACHINES["H100"] | {"memory": float(least * draw.rng.uniform(0.5, 0.9))}})


@plan.mistake
def memory_forgotten(model, machine, devices, sequences):
    """The fastest plan of all, on devices with more memory than these. What do the activations come to, and what the
    state? A plan counts if `memory_bytes` stays within nine tenths of a device's memory."""
    return _best(model, machine, devices, sequences, margin=float("inf"))


@plan.mistake
def everything_computed_again(model, machine, devices, sequences):
    """It fits, and computes every layer twice: a third more arithmetic, of which the model asked for none. Is there
    nothing between keeping all and keeping nothing?"""
    return _best(model, machine, devices, sequences, wanted=lambda plan: plan["remat"] == "full")


@plan.mistake
def cut_as_far_as_it_goes(model, machine, devices, sequences):
    """As many devices along `model` as there are key-value heads. It saves memory that you need not save, and its
    collectives stand in every layer's way, where those along `data` are hidden behind the arithmetic. What is the
    smallest axis with which it fits?"""
    return _best(model, machine, devices, sequences, wanted=lambda plan: plan["model"] == 8)


@plan.mistake
def all_rows_at_once(model, machine, devices, sequences):
    """Each device takes its whole share of the batch in one piece, and keeps the activations of all of it. Which
    number of the plan makes the pieces smaller, and leaves the batch as it is?"""
    return _best(model, machine, devices, sequences, wanted=lambda plan: plan["micro"] == 1)


@plan.mistake
def to_the_last_byte(model, machine, devices, sequences):
    """It fits by the formula, to the last byte. No formula counts all: memory comes in pieces, a collective has its
    buffers. One tenth is to be left free."""
    return _best(model, machine, devices, sequences, margin=1.0)


@plan.mistake
def the_tenth_on_the_other_side(model, machine, devices, sequences):
    """This comes out when nine tenths of what is held have to be within the memory: up to a ninth more than there is.
    Which of the two numbers is to be made smaller?"""
    return _best(model, machine, devices, sequences, margin=1 / 0.9)


@plan.mistake
def computes_again_only_if_it_must(model, machine, devices, sequences):
    """This comes out when "mlp" is tried only where no plan keeps all, and "full" only where none fits with "mlp". To
    compute a little again may leave room for longer microbatches, or for a smaller `model`. Is it never faster?"""
    asked = model, machine, devices, sequences
    chosen = (_best(*asked, wanted=lambda plan, how=how: plan["remat"] == how) for how in ("none", "mlp", "full"))
    return next((best for best in chosen if _fits(best, model, machine)), _best(*asked))


@plan.mistake
def batch_not_divided(model, machine, devices, sequences):
    """`data` × `rows` × `micro` comes to more than the batch: every group of devices is to do all the sequences, though
    each has its share of them. Which of the three numbers follows from the other two?"""
    best = _best(model, machine, devices, sequences)
    return best | {"micro": sequences // best["rows"]}


@plan.mistake
def rows_and_micro_exchanged(model, machine, devices, sequences):
    """`rows` and `micro` stand in each other's place. `rows` are the sequences that a group of devices works on at
    once, `micro` how often it does so in a step. Which of the two decides what has to be held?"""
    best = _best(model, machine, devices, sequences)
    return best | {"rows": best["micro"], "micro": best["rows"]}


@plan.mistake
def rows_of_the_whole_batch(model, machine, devices, sequences):
    """`rows` are counted for all groups of devices together: `data` times as many as one group works on at once. Then
    `data` × `rows` × `micro` is more than the batch. How many of the rows are one group's?"""
    best = _best(model, machine, devices, sequences)
    return best | {"rows": best["rows"] * best["data"]}


@plan.mistake
def nothing_along_model(model, machine, devices, sequences):
    """`model` is 1: no layer is cut, and every group of devices has all its heads. Where that fits it is fast. Where
    it does not, or leaves fewer sequences than there are devices, which other sizes may the axis have?"""
    return _best(model, machine, devices, sequences, wanted=lambda plan: plan["model"] == 1)


@plan.mistake
def no_plan_where_none_fits(model, machine, devices, sequences):
    """Where no plan fits, none came out. What is to be returned then?"""
    best = _best(model, machine, devices, sequences)
    return best if _fits(best, model, machine) else None
