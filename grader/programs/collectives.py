"""The collectives, one record each: every reader of programs takes their names and their bytes from here.

Bytes sent per device follow the ring algorithm on n devices (Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH", 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind of collective.

    `ring` says how many times its operand's bytes one of n devices sends. `primitives` are JAX's names for it in a
    jaxpr, `stablehlo` those in lowered text, `hlo` those in compiled text (without `-start` and `-done`).
    """

    name: str
    ring: Callable[[int], float]
    primitives: tuple[str, ...]
    stablehlo: tuple[str, ...]
    hlo: tuple[str, ...]


_ALL = (
    Kind(
        "all_reduce",
        lambda n: 2 * (n - 1) / n,  # a reduce_scatter and an all_gather
        ("psum", "psum_invariant", "unreduced_psum", "pmax", "pmin"),
        ("stablehlo.all_reduce",),
        ("all-reduce",),
    ),
    Kind(
        "all_gather",
        lambda n: n - 1,
        ("all_gather", "all_gather_invariant", "all_gather_reduced"),
        ("stablehlo.all_gather",),
        ("all-gather",),
    ),
    Kind(
        "reduce_scatter",
        lambda n: (n - 1) / n,
        ("reduce_scatter", "unreduced_reduce_scatter"),
        ("stablehlo.reduce_scatter",),
        ("reduce-scatter",),
    ),
    Kind(
        "all_to_all",
        lambda n: (n - 1) / n,
        ("all_to_all",),
        ("stablehlo.all_to_all", "mhlo.all_to_all"),  # mhlo's has one operand for each piece, as compilers write it
        ("all-to-all",),
    ),
    # (At most: how much goes where is known only when it runs, and all of it may go to one other device.)
    Kind("ragged_all_to_all", lambda n: 1, ("ragged_all_to_all",), (), ("ragged-all-to-all",)),
    Kind(
        "collective_permute",
        lambda n: 1,
        ("ppermute",),
        ("stablehlo.collective_permute",),
        ("collective-permute", "send"),
    ),
    Kind(
        "collective_broadcast",
        lambda n: 1,
        ("pbroadcast",),
        ("stablehlo.collective_broadcast",),
        ("collective-broadcast",),
    ),
)
COLLECTIVE_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}
OF_PRIMITIVE: Mapping[str, str] = {primitive: kind.name for kind in _ALL for primitive in kind.primitives}
OF_STABLEHLO: Mapping[str, str] = {op: kind.name for kind in _ALL for op in kind.stablehlo}
OF_HLO: Mapping[str, str] = {op: kind.name for kind in _ALL for op in kind.hlo}


def ring_bytes(kind: str, operand_bytes: float, devices: int) -> float:
    """Bytes one device sends in one collective on a ring of `devices`, given its operand's bytes.

    With b bytes of operand per device and n devices: all_gather (n-1)·b; reduce_scatter and
    all_to_all (n-1)/n·b; all_reduce 2(n-1)/n·b (it is a reduce_scatter and an all_gather);
    a permute or broadcast b. On one device nothing is sent.

    Raises:
      ValueError: there is no such kind of collective.
    """
    if kind not in COLLECTIVE_KINDS:
        raise ValueError(f"there is no collective {kind!r}; there are {', '.join(COLLECTIVE_KINDS)}")
    return operand_bytes * COLLECTIVE_KINDS[kind].ring(devices) if devices > 1 else 0.0
