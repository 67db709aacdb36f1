"""§ 6, 11: what is said of many processes, and who has to make which call."""

from __future__ import annotations

from grader.exercises import TableExercise

CLAIMS = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

multihost_claims = TableExercise("multihost_claims", points=4, reference=lambda row: CLAIMS[row])
_ROWS = list(CLAIMS)
multihost_claims.rows(CLAIMS)


@multihost_claims.mistake
def local_and_global_confused(row):
    """`device_count` counts the devices of all processes, `local_device_count` those that this process drives."""
    return {_ROWS[0]: 2, _ROWS[1]: 4}.get(row)


@multihost_claims.mistake
def counted_hosts(row):
    """That is how many hosts there are, or processes. Devices are asked for: how many does each of them have?"""
    return {_ROWS[0]: 4, _ROWS[1]: 16}.get(row)


@multihost_claims.mistake
def jax_starts_them(row):
    """JAX starts no process. It joins those that somebody has started: a shell, Slurm, Kubernetes."""
    return {_ROWS[2]: "JAX"}.get(row)


@multihost_claims.mistake
def one_memory(row):
    """The collectives are those of one process. But every process has a memory of its own, on another machine as a
    rule: what one of them reads from its disk, no other has seen, and it can show only what it holds."""
    return {_ROWS[3]: "every collective"}.get(row)


@multihost_claims.mistake
def which_branch_speaks(row):
    """Ask of the branch: does anything in it have to be computed by several devices? Printing what this process
    holds does not. A sum of an array that is cut over all does."""
    return {_ROWS[4]: "not safe", _ROWS[5]: "safe"}.get(row)


# A pipeline over processes: stage f on the devices of processes 0 and 1, stage g on those of 2 and 3.

# Whoever passes y on must have it, as a reference at least: the second half runs the first half's lines, too.

FIRST, SECOND, ALL = [0, 1], [2, 3], [0, 1, 2, 3]
CALLS = {
    "x = jax.device_put(batch, on_first)": ALL,
    "y = f(x)": ALL,
    "y = jax.device_put(y, on_second)": ALL,
    "z = g(y)": SECOND,
    "print(jnp.sum(z))": SECOND,
}

PIPELINE_CALLS_ASKS = {
    "on_first": "Who holds a device that takes part, and who needs the name `x` for a line that it runs later?",
    "f(x)": "Who holds a device of this stage, and who needs the name `y` for a line that it runs later?",
    "on_second": "Who has to send, and who has to be there to receive? Each half is more than one process.",
    "g(y)": "On how many processes' devices does this stage run?",
    "print": "The sum is a computation on all devices that hold z: whose are they?",
}
pipeline_calls = TableExercise(
    "pipeline_calls", points=3, reference=lambda row: CALLS[row], questions=PIPELINE_CALLS_ASKS
)
pipeline_calls.rows(CALLS)


@pipeline_calls.mistake
def only_who_computes(row):
    """Only these have anything to compute here, that is so. But all four run the third line, and each of them passes
    `y` to it. Where would processes 2 and 3 have a `y` from?"""
    return dict.fromkeys(list(CALLS)[:2], FIRST).get(row)


@pipeline_calls.mistake
def only_who_gives(row):
    """A transfer has two ends. Those that hold the source must send, and those that will hold the result must
    be there to receive."""
    return {list(CALLS)[2]: FIRST}.get(row)


@pipeline_calls.mistake
def only_who_takes(row):
    """They would wait for ever: those that hold the source have to send."""
    return {list(CALLS)[2]: SECOND}.get(row)


@pipeline_calls.mistake
def everybody(row):
    """Not all processes have to make that call, even where all may. Who has a device on this stage's mesh, and does
    anybody else need what this line makes?"""
    return dict.fromkeys(list(CALLS)[3:], ALL).get(row)


@pipeline_calls.mistake
def stages_exchanged(row):
    """That is the other stage's half. On whose devices does this line work, and who needs what it makes?"""
    return {row: FIRST if due == SECOND else SECOND for row, due in CALLS.items() if row != list(CALLS)[2]}.get(row)
