"""The independent count itself, on small HLO texts whose bytes are worked out by hand."""

from fractions import Fraction

import jax
import numpy as np
import pytest
from strangers.independent import count, groups_in

HEAD = "HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, num_partitions=8\n"
ADD = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""
PAIRS = "replica_groups={{0,1},{2,3},{4,5},{6,7}}"


def entry(*lines: str, argument: str = "f32[8,4]{1,0}") -> str:
    """A program whose entry has these lines; `%p` is its argument."""
    body = "\n".join(f"  {line}" for line in (f"%p = {argument} parameter(0)", *lines))
    return f"{HEAD}{ADD}\nENTRY %main (p: {argument}) -> {argument} {{\n{body}\n}}\n"


def only(text: str):
    (found,) = count(text).collectives
    return found


@pytest.mark.parametrize(
    "line, kind, operand, sent",
    [
        (f"ROOT %r = f32[8,4]{{1,0}} all-reduce(%p), {PAIRS}, to_apply=%add", "all_reduce", 128, 128),
        (f"ROOT %r = f32[16,4]{{1,0}} all-gather(%p), {PAIRS}, dimensions={{0}}", "all_gather", 128, 128),
        (
            f"ROOT %r = f32[4,4]{{1,0}} reduce-scatter(%p), {PAIRS}, dimensions={{0}}, to_apply=%add",
            "reduce_scatter",
            128,
            64,
        ),
        (f"ROOT %r = f32[8,4]{{1,0}} all-to-all(%p), {PAIRS}, dimensions={{0}}", "all_to_all", 128, 64),
        ("ROOT %r = f32[8,4]{1,0} all-reduce(%p), replica_groups={}, to_apply=%add", "all_reduce", 128, 224),
        ("ROOT %r = f32[64,4]{1,0} all-gather(%p), replica_groups=[1,8]<=[8]", "all_gather", 128, 7 * 128),
    ],
)
def test_each_kind_sends_what_a_ring_sends(line, kind, operand, sent):
    found = only(entry(line))
    assert (found.kind, found.dtype, found.elements, found.operand, found.times) == (kind, "f32", 32, operand, 1)
    assert found.sent == (sent,) * 8


def test_a_permute_sends_from_the_sources_of_pairs_and_not_to_oneself():
    pairs = "source_target_pairs={{0,1},{1,0},{2,2},{3,5}}"
    found = only(entry(f"ROOT %r = f32[8,4]{{1,0}} collective-permute(%p), channel_id=1, {pairs}"))
    assert found.kind == "collective_permute" and found.sent == (128, 128, 0, 128, 0, 0, 0, 0)


def test_a_broadcast_is_passed_on_by_all_but_the_last():
    line = "ROOT %r = f32[8,4]{1,0} collective-broadcast(%p), replica_groups={{2,0,1},{5,6}}"
    assert only(entry(line)).sent == (128, 0, 128, 0, 0, 128, 0, 0)


def test_several_operands_count_each_and_pieces_of_an_all_to_all_together():
    both = entry(
        "%s = s8[6]{0} slice(%p), slice={[0:6]}",
        f"%r = (f32[8,4]{{1,0}}, /*index=1*/s8[6]{{0}}) all-reduce(%p, %s), {PAIRS}, to_apply=%add",
    )
    assert [(f.dtype, f.operand) for f in count(both).collectives] == [("f32", 128), ("s8", 6)]
    assert count(both).sent == (134,) * 8
    pieces = entry(
        "%a = f32[4,4]{1,0} slice(%p), slice={[0:4], [0:4]}",
        "%b = f32[4,4]{1,0} slice(%p), slice={[4:8], [0:4]}",
        f"%r = (f32[4,4]{{1,0}}, f32[4,4]{{1,0}}) all-to-all(%a, %b), channel_id=1, {PAIRS}",
    )
    assert (only(pieces).operand, only(pieces).sent[0]) == (128, 64)


def test_four_bits_are_half_a_byte():
    found = only(entry(f"ROOT %r = s4[10]{{0:E(4)}} all-gather(%p), {PAIRS}", argument="s4[5]{0:E(4)}"))
    assert found.operand == found.sent[0] == Fraction(5, 2)


@pytest.mark.parametrize(
    "dtype, width", [("pred", 1), ("bf16", 2), ("f8e4m3fn", 1), ("c64", 8), ("f64", 8), ("u2", 0.25)]
)
def test_bytes_of_one_element(dtype, width):
    assert (
        only(entry(f"ROOT %r = {dtype}[8]{{0}} all-gather(%p), {PAIRS}", argument=f"{dtype}[4]{{0}}")).operand
        == 4 * width
    )


@pytest.mark.parametrize(
    "spelled, groups",
    [
        ("replica_groups={{0,2},{1,3}}", [[0, 2], [1, 3]]),
        ("replica_groups=[1,8]<=[8]", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ("replica_groups=[2,4]<=[8]", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("replica_groups=[2,4]<=[4,2]T(1,0)", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("replica_groups=[4,2]<=[2,2,2]T(0,2,1)", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ("replica_groups=mesh['x'=4,'y'=2] {'x'}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("replica_groups=mesh['x'=4,'y'=2] {'y'}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("replica_groups=mesh['x'=2,'y'=2] {'x','y'}", [[0, 1, 2, 3]]),
        ("replica_groups=mesh['x'=2,'y'=2] {'y','x'}", [[0, 2, 1, 3]]),
        ("replica_groups=mesh['x'=8] {'x':(1)4}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("replica_groups=mesh['x'=8] {'x':(4)2}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("replica_groups=mesh['x'=8] {'x':(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ("replica_groups=mesh['a'=2,'b'=4], device_ids=([2,2,2]T(0,2,1)) {'b':(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ("replica_groups=mesh['a'=1,'b'=4,'c'=2], device_ids=([2,4]T(1,0)) {'b'}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("replica_groups=mesh['a'=1,'b'=8] {'a','b':(2)4}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("replica_groups=mesh['a'=1,'b'=2] {'a'}", [[0], [1]]),
    ],
)
def test_the_spellings_of_groups(spelled, groups):
    assert sorted(groups_in(f"%p), channel_id=1, {spelled}, use_global_device_ids=true", 8)) == sorted(
        map(tuple, groups)
    )


def test_a_spelling_that_is_not_known_is_no_group_of_all():
    with pytest.raises(ValueError, match="not known"):
        groups_in("%p), replica_groups=@other", 8)


LOOP = """
%body (carry: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {{
  %carry = (s32[], f32[8,4]{{1,0}}) parameter(0)
  %k = s32[] get-tuple-element(%carry), index=0
  %v = f32[8,4]{{1,0}} get-tuple-element(%carry), index=1
  %r = f32[8,4]{{1,0}} all-reduce(%v), {pairs}, to_apply=%add
  %d = f32[8,8]{{1,0}} dot(%r, %v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  ROOT %t = (s32[], f32[8,4]{{1,0}}) tuple(%k, %r)
}}

%more (carry.1: (s32[], f32[8,4])) -> pred[] {{
  %carry.1 = (s32[], f32[8,4]{{1,0}}) parameter(0)
  %v.1 = f32[8,4]{{1,0}} get-tuple-element(%carry.1), index=1
  %g = f32[16,4]{{1,0}} all-gather(%v.1), {pairs}, dimensions={{0}}
  ROOT %c = pred[] constant(true)
}}
"""


@pytest.mark.parametrize(
    "known, times, least, flops",
    [(', backend_config={"known_trip_count":{"n":"3"}}', (3, 4), (3, 4), 3 * 512), ("", (None, None), (1, 1), 512)],
)
def test_a_loop_multiplies_if_its_length_is_known(known, times, least, flops):
    text = entry(
        "%t = (s32[], f32[8,4]{1,0}) tuple(%p, %p)",
        f"ROOT %w = (s32[], f32[8,4]{{1,0}}) while(%t), condition=%more, body=%body{known}",
    )
    found = count(text.replace("\nENTRY", LOOP.format(pairs=PAIRS) + "\nENTRY"))
    assert tuple(f.times for f in found.collectives) == times
    assert found.flops == flops and found.sent == (sum(128 * n for n in least),) * 8
    assert found.open == (not known)


BRANCHES = """
%left (a.1: f32[8,4]) -> f32[8,4] {
  %a.1 = f32[8,4]{1,0} parameter(0)
  ROOT %r.1 = f32[8,4]{1,0} collective-permute(%a.1), source_target_pairs={{0,1}}
}

%right (a.2: f32[8,4]) -> f32[8,4] {
  %a.2 = f32[8,4]{1,0} parameter(0)
  %half = f32[4,4]{1,0} slice(%a.2), slice={[0:4], [0:4]}
  %r.2 = f32[4,4]{1,0} collective-permute(%half), source_target_pairs={{0,1},{1,2}}
  %d.2 = f32[4,4]{1,0} dot(%half, %r.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %c.2 = f32[8,4]{1,0} concatenate(%d.2, %r.2), dimensions={0}
}
"""


@pytest.mark.parametrize(
    "spelled",
    ["branch_computations={%left, %right}", "true_computation=%left, false_computation=%right"],
)
def test_of_branches_each_device_sends_the_most_of_any(spelled):
    text = entry(f'ROOT %c = f32[8,4]{{1,0}} conditional(%p, %p, %p), {spelled}, metadata={{op_name="jit(f)/cond"}}')
    found = count(text.replace("\nENTRY", BRANCHES + "\nENTRY"))
    assert len(found.collectives) == 2 and found.flops == 2 * 4 * 4 * 4
    assert found.sent == (128, 64, 0, 0, 0, 0, 0, 0)


CALLED = f"""
%wrapped (a.3: f32[8,4]) -> f32[8,4] {{
  %a.3 = f32[8,4]{{1,0}} parameter(0)
  ROOT %r.3 = f32[8,4]{{1,0}} all-to-all(%a.3), {PAIRS}, dimensions={{0}}
}}

%never (a.4: f32[8,4]) -> f32[8,4] {{
  %a.4 = f32[8,4]{{1,0}} parameter(0)
  ROOT %r.4 = f32[8,4]{{1,0}} all-reduce(%a.4), {PAIRS}, to_apply=%add
}}
"""


def test_what_is_called_counts_wherever_it_is_called_and_nothing_else_does():
    text = entry(
        "%s = ((f32[8,4]{1,0}), f32[8,4]{1,0}, u32[]) async-start(%p), calls=%wrapped",
        "%d = f32[8,4]{1,0} async-done(%s), calls=%wrapped",
        "%g = (f32[8,4]{1,0}, f32[16,4]{1,0}) all-gather-start(%d), replica_groups=[4,2]<=[8], dimensions={0}",
        "%h = f32[16,4]{1,0} all-gather-done(%g)",
        "ROOT %c = f32[8,4]{1,0} call(%d), to_apply=%wrapped",
    )
    found = count(text.replace("\nENTRY", CALLED + "\nENTRY"))
    assert [f.kind for f in found.collectives] == ["all_to_all", "all_gather", "all_to_all"]
    assert found.sent == (64 + 128 + 64,) * 8


def test_flops_of_a_batched_dot_and_of_a_grouped_convolution():
    dot = "%d = f32[2,5,7]{2,1,0} dot(%p, %q), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    text = entry("%q = f32[2,4,7]{2,1,0} parameter(1)", dot, argument="f32[2,5,4]{2,1,0}")
    assert count(text).flops == 2 * (2 * 5 * 7) * 4
    conv = "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2"
    text = entry(
        "%k = f32[3,3,2,6]{3,2,1,0} parameter(1)",
        f"ROOT %o = f32[1,4,4,6]{{3,2,1,0}} convolution(%p, %k), {conv}",
        argument="f32[1,6,6,4]{3,2,1,0}",
    )
    assert count(text).flops == 2 * (4 * 4 * 6) * (3 * 3 * 2)


@pytest.mark.parametrize(
    "window, out, pairs",
    [
        ("size=3", 4, 4 * 3),
        ("size=3 pad=1_1", 6, 6 * 3 - 2),
        ("size=3 stride=2 pad=1_0", 3, 3 * 3 - 1),
        ("size=3 rhs_dilate=2", 2, 2 * 3),
        ("size=3 pad=2_2 lhs_dilate=2", 13, 6 * 3),
    ],
)
def test_a_convolution_does_not_multiply_with_padding(window, out, pairs):
    text = entry(
        "%k = f32[3,4,7]{2,1,0} parameter(1)",
        f"ROOT %o = f32[2,{out},7]{{2,1,0}} convolution(%p, %k), window={{{window}}}, dim_labels=b0f_0io->b0f",
        argument="f32[2,6,4]{2,1,0}",
    )
    assert count(text).flops == 2 * (2 * 7 * 4) * pairs


def test_axes_are_those_along_which_members_of_a_group_differ():
    devices = np.array(jax.devices()[:8])
    square, wide = jax.sharding.Mesh(devices.reshape(4, 2), ("x", "y")), jax.sharding.Mesh(devices, ("d",))
    rows = only(entry("ROOT %r = f32[8,4]{1,0} all-reduce(%p), replica_groups={{0,2,4,6},{1,3,5,7}}, to_apply=%add"))
    assert rows.axes(square) == {"x"} and rows.candidates([wide, square]) == [{"x"}]
    every = only(entry("ROOT %r = f32[8,4]{1,0} all-reduce(%p), replica_groups={}, to_apply=%add"))
    assert every.candidates([wide, square]) == [{"d"}, {"x", "y"}]
    none = only(entry("ROOT %r = f32[8,4]{1,0} collective-permute(%p), source_target_pairs={{0,0},{1,1}}"))
    assert none.axes(square) == set()
