"""What a program costs too much of."""

from __future__ import annotations

from collections.abc import Sequence

from grader.findings.costs import NeedlessTransfers, SendsLess, SentCollective, WrongAmount, WrongCollectives, WrongForm
from grader.wording.said import Said, says

UNNEEDED = "Which part of that communication isn't needed?"
_SENT = "too much communication", "{:,} B sent per device", UNNEEDED
FLOPS = "{:,} FLOPs per device"
_LARGEST = "{:,} FLOPs in the largest matmul"
MUCH = {  # what is wrong, though the values are correct; what is counted; and the question
    "bytes": _SENT,
    "compiled bytes": _SENT,
    "bytes to one neighbor": (_SENT[0], "{:,} B to one neighbor", "What could go the other way at the same time?"),
    "chain": (
        "transfers wait for one another",
        "{:,} transfers in a row",
        "Which of them could be in flight at the same time?",
    ),
    "written": (
        "a loop would do",
        "{1} × {0} in the program",
        "In a loop it is written once, for any number of devices. What changes from step to step?",
    ),
    "flops": ("the work isn't divided", FLOPS, "Which part of the work does another device also do, or is never used?"),
    "roots": (
        "tokens are normalized repeatedly",
        "{:,} square roots per device",
        "Do several devices normalize the same token, or one device twice?",
    ),
    "largest matmul": ("one matmul is too large", _LARGEST, "How many rows does a device multiply at a time?"),
    "peak bytes": (
        "too much memory",
        "{:,} B of peak memory per device (50% more is allowed)",
        "What stays alive after its last use, or is a full array when a shard would do?",
    ),
    "pod flops": ("too much computation", FLOPS, "What is recomputed that doesn't need to be?"),
}
_LITTLE = {
    "overlap": (
        "too little overlaps the transfer",
        "{:,} FLOPs of matmuls that neither need the transfer nor feed it",
        "What could a device multiply while the next block is in flight?",
    ),
    "largest matmul": ("the matmuls are too small", _LARGEST, "How many iterations does a device need?"),
    "donated": ("old and new arrays coexist", "{:,} donated arrays", "Which argument of `jax.jit` donates an input?"),
    "pod flops": ("part of the work is missing", FLOPS, "What was left out?"),
}
_FORMS = {  # what is wrong, though the values are correct; the cause; and what to ask or do
    "no shard_map": (
        "nothing is written per device",
        "The compiler chose the communication, and this exercise asks for your choice.",
        "Write it with `jax.shard_map`.",
    ),
    "shard_map": ("it uses `shard_map`", "", "Here, leave the division to the compiler."),
    "several shard_maps": (
        "there is more than one `shard_map`",
        "`jax.grad` of a function that calls `shard_map` adds a second one for the backward pass.",
        "What should return the gradient, so that it is taken inside?",
    ),
    "manual axes": (
        "`shard_map` covers too many mesh axes",
        "The program is written per device along `{0}`, too; it should be only along `{1}`.",
        "Which argument of `jax.shard_map` says which axes are meant?",
    ),
    "in_specs": (
        "`in_specs` don't match the operands",
        "So data is moved before your function begins.",
        "Which sharding does each operand already have?",
    ),
    "unwritten": (
        "the compiler sends what isn't in `shard_map`",
        "The compiler moves data before or after your `shard_map`, or along axes left to it, in its own way.",
        "Do the work inside, on operands with the shardings they already have.",
    ),
    "unwritten unknown": ("the compiler's own communication can't be determined", "{0}: {1}", ""),
    "unknown count": (
        "the number of sends is unknown",
        "The collective is in a branch or in a loop with an unknown number of iterations.",
        "Can the program call it a fixed number of times?",
    ),
    "unknown work": (
        "the amount of work is unknown",
        "A matmul or a square root is in a loop with an unknown number of iterations.",
        "Can the loop run a fixed number of times?",
    ),
    "collective": (
        "one {kind} along `{1}` isn't needed",
        "Afterward, every device along `{1}` holds the full result.",
        "Would a shard of it do?",
    ),
    "all at once": (
        "one {kind} along `{1}` is too large",
        "Afterward, every device along `{1}` holds all of it at once.",
        "Can each piece be sent just before it's used?",
    ),
    "dtype": ("a dtype changes", "Array {0} went in as {1} and came out as {2}, so the next call compiles again.", ""),
}


_NARROW = "Does the dtype that is sent keep enough digits?"


def _but(what: str) -> str:
    return f"Correct values, but {what}."


def collective_name(kind: str) -> str:
    """A kind of collective, as one writes it in a sentence."""
    return "collective permute" if kind == "collective_permute" else kind.replace("_", "-")


def along_axes(axes: Sequence[str]) -> str:
    return f" over {', '.join(f'`{axis}`' for axis in axes)}" if axes else ""


def _transfer(f: SentCollective) -> str:
    often = ", an unknown number of times" if f.times is None else "" if f.times == 1 else f", {f.times:,} times"
    note = " (implicit)" if f.implicit else ""
    shape = f"{f.dtype}[{','.join(map(str, f.operand))}]"
    return f"{collective_name(f.collective)} of {shape}{along_axes(f.axes)}{often}: {f.bytes_sent:,} B per device{note}"


def _listed(transfers: Sequence[SentCollective]) -> str:
    return "\n".join(f"- {_transfer(one)}" for one in transfers)


@says(SentCollective)
def _(f: SentCollective) -> Said:
    return Said(detail=_transfer(f))


@says(NeedlessTransfers)
def _(f: NeedlessTransfers) -> Said:
    allowed = "; or ".join(
        f"{collective_name(kind)} of {list(operand)}{along_axes(axes)}" for kind, axes, operand in f.allowed
    )
    listed = f"The compiler inserts:\n{_listed(f.transfers)}"
    if not allowed:
        return Said(_but(_SENT[0]), expected="no communication", detail=listed, question=UNNEEDED)
    other = "the compiler sends something else"
    return Said(_but(other), expected=allowed, detail=listed, question="Which step makes it send that?")


@says(WrongCollectives)
def _(f: WrongCollectives) -> Said:
    allowed = ", ".join(f"{collective_name(kind)} × {most}" for kind, _, most in f.counts if most)
    return Said(
        _but(f"{'more' if all(most for _, count, most in f.counts if count) else 'other'} collectives than needed"),
        expected=f"at most {allowed}" if allowed else "no collectives",
        found=", ".join(f"{collective_name(kind)} × {count}" for kind, count, _ in f.counts if count),
        detail=_listed(f.transfers),
        question="Which of these isn't needed, or stands in for another?",
    )


@says(WrongAmount)
def _(f: WrongAmount) -> Said:
    is_more = f.found > f.expected
    what, unit, question = (MUCH if is_more else _LITTLE)[f.what]
    ratio = f.found / f.expected if f.expected else 0.0
    about = f" (about {round(ratio, 1 if ratio < 10 else None):,g} times as much)" if ratio >= 1.1 else ""
    saved = (
        f"This counts your program as written; the compiler may save some{along_axes(f.auto_axes)}."
        if f.auto_axes
        else ""
    )
    return Said(
        _but(what),
        expected=f"at {'most' if is_more else 'least'} {unit.format(f.expected, collective_name(f.name))}",
        found=f"{f.found:,}{about}",
        detail=_listed(f.transfers),
        cause=saved,
        question=question,
    )


@says(SendsLess)
def _(f: SendsLess) -> Said:
    return Said(
        detail=_listed(f.transfers),
        cause=f"Each device sends {f.found:,} B; up to {f.allowed:,} B are allowed.",
        question=_NARROW
        if any(one.dtype in ("bf16", "f16") for one in f.transfers)
        else "Does each device get all it needs?",
    )


@says(WrongForm)
def _(f: WrongForm) -> Said:
    kind = collective_name(f.names[0]) if f.names else ""
    what, cause, question = (part.format(*f.names, kind=kind) for part in _FORMS[f.what])
    return Said(_but(what), cause=cause, question=question, detail=_listed(f.transfers))
