"""Programs that were not made for this course: reports compared with an independent count, and replays with JAX."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections import Counter
from collections.abc import Iterable, Mapping

import jax
import numpy as np
import pytest
from rota import in_turn, parts
from strangers.independent import Count, count
from strangers.registry import STRANGERS, Call, Stranger

import grader

THEMES = (
    "collectives arrays loops branches attention layers automatic resharding mixed naming gradients calling edges"
    " training libraries"
)
for theme in THEMES.split():
    importlib.import_module(f"strangers.{theme}")

# Which collectives XLA inserts, and which matmuls it merges, depends on its version: the tables have those of this one.
LOCKED = jax.__version__ == "0.10.2"
A_DAY = 95
TOLERANCES = {"float16": 1e-2, "bfloat16": 3e-2}


def trying(strangers: Iterable[Stranger], every: int = 1) -> list:
    """Programs as parameters. One in `every` runs on each day; those that can't run here are skipped."""
    return [pytest.param(s, id=s.name, marks=[*needs(s), *in_turn(k, every)]) for k, s in enumerate(strangers)]


def needs(stranger: Stranger) -> list[pytest.MarkDecorator]:
    missing = [name for name in stranger.packages if importlib.util.find_spec(name) is None]
    older = jax.__version_info__ < stranger.since
    return [
        pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed"),
        pytest.mark.skipif(older, reason=f"needs JAX {'.'.join(map(str, stranger.since))}"),
    ]


REPLAYABLE = [s for s in STRANGERS if s.replayable]
EVERY = parts(len(STRANGERS), A_DAY)


@functools.cache
def counted(stranger: Stranger) -> tuple[Call, Count]:
    """The program's call, and the independent count of its compiled text."""
    call = stranger.build()
    with stranger.around(call):
        return call, count(jitted(call).lower(*call.args, **call.kwargs).compile().as_text())


def jitted(call: Call) -> jax.stages.Wrapped:
    """The function as it is compiled: with its own options if it has some."""
    return call.fn if hasattr(call.fn, "lower") else jax.jit(call.fn)


def label(kind: str, axes: Iterable[str]) -> str:
    """ "all_reduce x,y", as the tables have it, but with the axes in the order of the alphabet."""
    return f"{kind} {','.join(sorted(axes))}".strip()


def labels(table: Mapping[str, int]) -> Counter[str]:
    """A table of a program, whatever order it has axes in."""
    return Counter(
        {label(kind, axes.split(",")): n for key, n in table.items() for kind, _, axes in [key.partition(" ")]}
    )


def once(times: int | None) -> int:
    """How often a collective runs; one in a loop of unknown length counts once."""
    return 1 if times is None else times


def found_as(expected: Counter[str], call: Call, counted: Count) -> Counter[str]:
    """The labels of the collectives that were counted. If two meshes fit one, that one which is expected."""
    found: Counter[str] = Counter()
    for collective in counted.collectives:
        fitting = [label(collective.kind, axes) for axes in collective.candidates(call.meshes)]
        chosen = next((each for each in fitting if found[each] < expected[each]), fitting[0])
        found[chosen] += once(collective.times)
    return found


def test_there_are_many_and_each_has_its_own_name():
    assert len(STRANGERS) >= 150 and len({s.name for s in STRANGERS}) == len(STRANGERS)
    assert len(REPLAYABLE) >= 80


@pytest.mark.parametrize("stranger", trying(STRANGERS))
def test_the_tables_have_what_is_in_the_compiled_text(stranger):
    yours, inserted = labels(stranger.yours), labels(stranger.inserted)
    call, found = counted(stranger)
    have = found_as(yours + inserted, call, found)
    if LOCKED:
        assert have == yours + inserted
    else:
        assert not yours - have
    if LOCKED and stranger.flops is not None:
        assert found.flops == stranger.flops


@pytest.mark.parametrize("stranger", trying(STRANGERS, EVERY))
def test_communication_reports_what_is_in_the_compiled_text(stranger):
    call, found = counted(stranger)
    with stranger.around(call):
        report = grader.communication(call.fn, *call.args, **call.kwargs)
    long = {name for mesh in call.meshes for name, size in mesh.shape.items() if size > 1}

    left = list(found.collectives)
    for c in report.collectives:
        same = [
            f
            for f in left
            if (f.kind, f.operand, f.times) == (c.kind, c.bytes, c.times)
            and long & set(c.axes) in f.candidates(call.meshes)
        ]
        assert same, f"reported, and not in the compiled text: {c}"
        left.remove(same[0])
    assert not left, "in the compiled text, and not reported"

    assert isinstance(report.bytes_sent, int) and abs(report.bytes_sent - max(found.sent)) <= 0.5
    assert report.bytes_sent_mean == pytest.approx(float(sum(found.sent) / len(found.sent)))
    assert report.flops == (found.flops if stranger.flops is None or not LOCKED else stranger.flops)


@pytest.mark.parametrize("stranger", trying(STRANGERS, EVERY))
def test_communication_tells_yours_from_those_that_the_compiler_inserted(stranger):
    call, found = counted(stranger)
    with stranger.around(call):
        report = grader.communication(call.fn, *call.args, **call.kwargs)
    long = {name for mesh in call.meshes for name, size in mesh.shape.items() if size > 1}
    yours, inserted = labels(stranger.yours), labels(stranger.inserted)
    if not LOCKED:
        inserted = found_as(yours, call, found) - yours

    def told(of_author: bool) -> Counter[str]:
        told: Counter[str] = Counter()
        for c in report.collectives:
            if c.yours == of_author:
                told[label(c.kind, long & set(c.axes))] += once(c.times)
        return told

    if len(call.meshes) > 1:  # a collective may fit axes of both
        assert kinds(told(True)) == kinds(yours) and kinds(told(False)) == kinds(inserted)
    else:
        assert (told(True), told(False)) == (yours, inserted)


def kinds(table: Counter[str]) -> Counter[str]:
    """A table without axes."""
    found: Counter[str] = Counter()
    for key, n in table.items():
        found[key.partition(" ")[0]] += n
    return found


@pytest.mark.parametrize("stranger", trying(STRANGERS[::10]))
def test_a_lowered_or_compiled_program_and_its_text_are_reported_as_the_function_is(stranger):
    call = stranger.build()
    lowered = jitted(call).lower(*call.args, **call.kwargs)
    compiled = lowered.compile()
    reports = [
        grader.communication(call.fn, *call.args, **call.kwargs),
        grader.communication(lowered),
        grader.communication(compiled, mesh_axes=call.meshes[0]),
        grader.communication(compiled.as_text(), mesh_axes=call.meshes[0]),
    ]

    def told(report) -> tuple:
        collectives = Counter((c.kind, frozenset(c.axes), c.bytes, c.times) for c in report.collectives)
        return collectives, report.bytes_sent, report.bytes_sent_mean, report.flops

    first, *others = map(told, reports)
    assert others == [first] * 3


@pytest.mark.parametrize("stranger", trying(REPLAYABLE, EVERY))
def test_replay_gives_what_jax_gives(stranger):
    call = stranger.build()
    with stranger.around(call):
        facts = grader.replay(call.fn, *call.args, **call.kwargs).facts
        expected = jitted(call)(*call.args, **call.kwargs)  # last: it may take donated arguments away
    assert facts.ended == ""
    assert jax.tree.structure(facts.result) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(facts.result), jax.tree.leaves(expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        tolerance = TOLERANCES.get(str(other.dtype), 1e-5)
        wide = np.complex128 if np.issubdtype(other.dtype, np.complexfloating) else np.float64
        np.testing.assert_allclose(np.asarray(one).astype(wide), np.asarray(other).astype(wide), tolerance, tolerance)
