"""Why there is nothing to judge."""

from __future__ import annotations

from grader.arrays.words import times
from grader.findings.problems import Raised, Reason, Refusal, WouldDeadlock
from grader.wording.costs import along_axes, collective_name
from grader.wording.said import Said, says

TYPE = "The answer has the wrong type."
OTHER = "The answer can't be compared."
PROCESS = "`{0}` can't go to another process."
COMPUTE = "Compute with `jax.numpy` and `jax.lax` instead."
REFUSALS: dict[Reason, tuple[str, str, str]] = {  # the headline, the cause, and what to ask or do
    "missing": ("There is no `{0}`.", "The cell that defines it didn't run to its end, or it was renamed.", ""),
    "starter": ("`{0}` is still the starter.", "", "Replace the `...` with your own code, then run this check again."),
    "unknown": ("There is no answer.", "", ""),
    "no function": (TYPE, "It should be a function; it is of type `{0}`.", ""),
    "no def": (TYPE, "It should be a function, written with `def`; it is of type `{0}`.", ""),
    "no dict": (TYPE, "It should be a dict with a key for every row; it is of type `{0}`.", ""),
    "no program": (TYPE, "It should be a program: a function of arrays.", ""),
    "returns nothing": (
        "The function returns nothing (`None`).",
        "Printing a value doesn't return it.",
        "Is a `return` missing?",
    ),
    "holds type": (OTHER, "It holds a value of type `{0}`.", "Return numbers, strings, or arrays."),
    "holds devices": (OTHER, "It holds devices.", "Return their IDs, which are numbers: `device.id`."),
    "holds dtype": (OTHER, "It holds an array of dtype `{0}`.", "Use a list for strings; arrays hold only numbers."),
    "holds key": (OTHER, "It holds a dict with the key `{0}`, which is reserved.", "Use another key."),
    "long number": (OTHER, "It holds a number with more than a thousand digits.", "Which number is asked for?"),
    "calls host": ("The function calls back to Python on the host.", "It uses `{0}`.", COMPUTE),
    "many results": ("The function returns {0} arrays.", "At most {1} are compiled.", "Is a list built in a loop?"),
    "axis name": (
        "XLA's compiler can't read the mesh axis name `{0}`, and would crash.",
        "It can only read ASCII characters without a backslash.",
        "Rename the axis.",
    ),
    "calls outside": (
        "The program calls `{0}`, so it was not run.",
        "That runs outside the devices, as LAPACK's functions in `jnp.linalg` do.",
        COMPUTE,
    ),
    "no source": ("The source of `{0}` can't be found.", "", "Define it with `def`, in its own cell."),
    "uses enclosing": (PROCESS, "It uses `{1}` of the function around it.", "Define it outside of any other function."),
    "uses alias": (PROCESS, "`{1}` is another name for `{2}`.", "Call `{2}` by its own name."),
    "uses notebook": (PROCESS, "It uses `{1}`, a {2} of this notebook.", "Create one inside the function instead."),
    "unreduced": (
        "The result is an unreduced sum over `{0}`.",
        "Each device holds only its partial sum, and JAX doesn't show those.",
        "Where should `reshard` make the sum?",
    ),
    "too large": ("The answer is too large.", "At most {0} MiB are allowed.", ""),
    "unreadable": ("The answer can't be read.", "", ""),
}


@says(Refusal)
def _(f: Refusal) -> Said:
    headline, cause, question = (part.format(*f.names) for part in REFUSALS[f.reason])
    return Said(headline, cause=cause, question=question)


@says(Raised)
def _(f: Raised) -> Said:
    given = f" Given: {f.given}." if f.given else ""
    return Said(f"Your code raised {f.error}.", detail=f"{f.message}{given}" if f.message else "It has no message.")


@says(WouldDeadlock)
def _(f: WouldDeadlock) -> Said:
    kind = collective_name(f.collective)
    why = "because the call is in a branch or loop that each device decides for itself"
    why_not = f"Some devices may never call the {kind}{along_axes(f.axes)}, {why}, so the others would wait forever."
    if f.devices and f.calls:
        waiting, missing = f.devices
        which = f"one of {f.alike} {kind}s" if f.alike > 1 else f"the {kind}"
        calls = f"calls it {times(f.calls[1])}" if f.calls[1] else "never calls it"
        why_not = (
            f"Device {waiting} calls {which}{along_axes(f.axes)} {times(f.calls[0])}. Device {missing} {calls}, {why}, "
            f"so device {waiting} would wait forever."
        )
    return Said(
        "Deadlock: the program was not run.",
        detail=why_not,
        question="Have every device call it, and then choose between results with `jnp.where`.",
    )
