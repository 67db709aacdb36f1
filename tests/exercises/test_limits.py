"""How a program exceeds its limits, as findings."""

from dataclasses import replace

import pytest
from jax.sharding import PartitionSpec as P

from grader.exercises.limits import (
    ORDER,
    Besides,
    ByCompiler,
    BytesSent,
    ChipFlops,
    Excess,
    Facts,
    Flops,
    InPlace,
    InTurns,
    Limit,
    ManualAlong,
    Meanwhile,
    Move,
    Moves,
    OneWay,
    PeakBytes,
    Roots,
    Steps,
    TakenInside,
    Turns,
    Without,
    Written,
    transfers,
)
from grader.findings.costs import NeedlessTransfers, SendsLess, SentCollective, WrongAmount, WrongCollectives, WrongForm
from grader.programs.execution import Ran
from grader.programs.structure import Collective, Manual, Structure

MESH = {"x": 4, "y": 2}
SUM = {"kind": "all_reduce", "axes": ("x",), "group": 4, "dtype": "f32"}
ROWS, NUMBER = Collective(operand=(8,), bytes=32, **SUM), Collective(operand=(), bytes=4, **SUM)
PASSED = replace(ROWS, kind="collective_permute", shift=1)
SUMMED, NUMBERS, TWICE = transfers([ROWS]), transfers([NUMBER, NUMBER]), replace(ROWS, times=2)


def facts(*collectives, axes=("x", "y"), unwritten=(), compiled=(), shard_maps=1, flops=0, peak_bytes=0, **written):
    structure = Structure(MESH, (Manual(axes, (P(),), (P(),)),) * shard_maps, collectives, 0, **written)
    return Facts(structure, Ran((), flops, peak_bytes, compiled), lambda: unwritten, MESH)


def test_equal_collectives_of_an_unrolled_loop_are_one_that_runs_more_often():
    of_rows, of_number = transfers([ROWS, NUMBER, ROWS, NUMBER, ROWS])
    assert of_rows == SentCollective("all_reduce", ("x",), "f32", (8,), 3, 144)
    assert (of_number.times, of_number.bytes_sent) == (2, 12)
    (unsure,) = transfers([ROWS, replace(ROWS, times=None)])
    assert unsure.times is None


@pytest.mark.parametrize(
    ("limit", "given", "found", "about"),
    [
        (Besides(), facts(unwritten=(ROWS,)), WrongForm("unwritten", (), SUMMED), ()),
        (Besides(), facts(axes=("x",), unwritten=(ROWS,)), WrongForm("unwritten", ("y",), SUMMED), ()),
        (Besides(1), facts(unwritten=(NUMBER,)), None, ()),
        (Turns({"all_reduce": 1}), facts(NUMBER), None, ()),
        (Turns({"all_reduce": 1}), facts(NUMBER, NUMBER), WrongCollectives((("all_reduce", 2, 1),), NUMBERS), (0, 1)),
        (Turns({}), facts(TWICE), WrongCollectives((("all_reduce", 2, 0),), transfers([TWICE])), (0,)),
        (Without("all_reduce", "y"), facts(ROWS), None, ()),
        (Without("all_reduce", "x"), facts(ROWS), WrongForm("collective", ("all_reduce", "x"), SUMMED), (0,)),
        (Without("all_reduce", "x", 2), facts(ROWS), None, ()),
        (
            Without("all_reduce", "x", 1),
            facts(NUMBER, ROWS),
            WrongForm("all at once", ("all_reduce", "x"), SUMMED),
            (1,),
        ),
        (BytesSent(48), facts(ROWS), None, ()),
        (BytesSent(12), facts(ROWS), WrongAmount("bytes", 12, 48, SUMMED), (0,)),
        (BytesSent(12), facts(ROWS, axes=("x",)), WrongAmount("bytes", 12, 48, SUMMED, ("y",)), (0,)),
        (ManualAlong(("x",)), facts(), WrongForm("manual axes", ("y", "x")), ()),
        (TakenInside(), facts(shard_maps=2), WrongForm("several shard_maps"), ()),
        (TakenInside(), facts(), None, ()),
        (OneWay(0), facts(ROWS), None, ()),
        (OneWay(64), facts(PASSED, PASSED), None, ()),
        (OneWay(63), facts(PASSED, PASSED), WrongAmount("bytes to one neighbor", 63, 64, transfers([PASSED] * 2)), ()),
        (OneWay(32), facts(PASSED, replace(PASSED, shift=3)), None, ()),
        (Steps(4), facts(steps=7), WrongAmount("chain", 4, 7), ()),
        (
            Meanwhile(9),
            facts(replace(ROWS, overlappable_flops=9), NUMBER),
            WrongAmount("overlap", 9, 0, transfers([NUMBER])),
            (1,),
        ),
        (Written({"all_reduce": 1}), facts(replace(ROWS, times=9)), None, ()),
        (Written({"all_reduce": 1}), facts(ROWS, NUMBER), WrongAmount("written", 1, 2, name="all_reduce"), (0, 1)),
        (Written({}), facts(ROWS), WrongCollectives((("all_reduce", 1, 0),), SUMMED), (0,)),
    ],
)
def test_what_is_written(limit, given, found, about):
    assert limit.of_written(given) == (Excess(found, about) if found else None)


def test_bytes_are_about_what_is_superfluous_else_about_what_sends_most():
    once, both = BytesSent(48).of_written(facts(ROWS, NUMBER)), BytesSent(50).of_written(facts(ROWS, NUMBER))
    assert (once.about, once.most) == ((1,), False) and (both.about, both.most) == ((0,), True)


@pytest.mark.parametrize(("needed", "told"), [(100, False), (144, False), (150, False), (288, True)])
def test_of_a_wrong_program_it_is_told_only_that_it_sends_clearly_less(needed, told):
    found = BytesSent(needed).of_wrong(facts(ring := replace(ROWS, times=3)))
    assert found == (SendsLess(needed, 144, transfers([ring])) if told else None)


@pytest.mark.parametrize(
    ("limit", "given", "found"),
    [
        (Moves((Move("all_reduce", ("x",), (8,)),)), facts(compiled=(ROWS,)), None),
        (Moves((Move("reduce_scatter", ("x",), (8, 1)),)), facts(compiled=(ROWS,)), None),
        (Moves((Move("all_reduce", ("y",), (8,)),)), facts(compiled=(ROWS,)), (("all_reduce", ("y",), (8,)),)),
        (Moves(()), facts(compiled=(ROWS,)), ()),
        (ByCompiler(), facts(), WrongForm("shard_map")),
        (ByCompiler(), facts(shard_maps=0), None),
        (BytesSent(12), facts(compiled=(ROWS,)), WrongAmount("compiled bytes", 12, 48, SUMMED)),
        (
            BytesSent(99),
            facts(compiled=(unsure := replace(ROWS, times=None),)),
            WrongForm("unknown count", (), transfers([unsure])),
        ),
    ],
)
def test_what_is_compiled(limit, given, found):
    found = NeedlessTransfers(SUMMED, found) if isinstance(found, tuple) else found
    assert limit.of_compiled(given) == (Excess(found) if found else None)


@pytest.mark.parametrize(
    ("limit", "given", "found"),
    [
        (Flops(224), facts(flops=336), None),
        (Flops(224), facts(flops=924), WrongAmount("flops", 224, 924)),
        (Roots(4, times=2), facts(roots=8), None),
        (Roots(4), facts(roots=8), WrongAmount("roots", 4, 8)),
        (InTurns(8), facts(largest_product=8), None),
        (InTurns(8), facts(largest_product=16), WrongAmount("largest matmul", 8, 16)),
        (InTurns(8), facts(largest_product=4), WrongAmount("largest matmul", 8, 4)),
        (PeakBytes(100), facts(peak_bytes=150), None),
        (PeakBytes(100), facts(peak_bytes=151), WrongAmount("peak bytes", 100, 151)),
        (InPlace(("float32",) * 2), facts(donated=(0, 1)), None),
        (InPlace(("float32",) * 2), facts(donated=(1, 2)), WrongAmount("donated", 2, 1)),
    ],
)
def test_work(limit, given, found):
    assert limit.of_work(given) == (Excess(found) if found else None)


@pytest.mark.parametrize(("flops", "expected"), [(3, 4), (4, None), (8, None), (9, 8)])
def test_flops_on_a_chip(flops, expected):
    found = WrongAmount("pod flops", expected, flops) if expected else None
    assert ChipFlops(4, 8).of_chip(flops) == found


def test_every_limit_has_its_place_in_the_order():
    assert set(ORDER) == set(Limit.__subclasses__())
