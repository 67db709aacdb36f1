"""Reading compiled text: groups, branches, loops, kernels, and who sends."""

import math

import pytest

from grader.hlo.reading import read_module
from grader.hlo.text import NotHLO, bits_of, parsed

LINE = {"x": 4}


def read_text(text, sizes=LINE):
    return read_module(parsed(text), (sizes,), scheduled=True)


def main(*lines, before=""):
    """A program whose ENTRY has these lines, and an argument `a` of eight float32."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"{before}\nENTRY %main (a: f32[8]) -> f32[8] {{\n  %a = f32[8]{{0}} parameter(0)\n{body}\n}}\n"


@pytest.mark.parametrize(
    "written, groups",
    [
        ("replica_groups={{0,2},{1,3}}, to_apply=%add", [[0, 2], [1, 3]]),
        ("replica_groups=[2,2]<=[4]", [[0, 1], [2, 3]]),
        ("replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}", [[0, 2], [1, 3]]),
        ("replica_groups=mesh['a'=2,'b'=2] {'a'}, dimensions={0}", [[0, 2], [1, 3]]),
        ("source_target_pairs={{0,1},{1,0}}", [[0, 1], [1, 0]]),
    ],
)
def test_groups_of_devices_are_read_however_they_are_written(written, groups):
    text = f"ENTRY %main (p: f32[4]) -> f32[4] {{\n  %c = f32[4]{{0}} all-gather(%p), channel_id=1, {written}\n}}"
    assert parsed(text).computations["main"]["c"].groups == groups


BRANCHES = """
%sends (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%add
}

%keeps (q: f32[8]) -> f32[8] {
  ROOT %q = f32[8]{0} parameter(0)
}
"""


@pytest.mark.parametrize("other, sent", [("keeps", "at most 48 B"), ("sends", "48 B")])
def test_of_branches_the_largest_counts(other, sent):
    branch = f"ROOT %d = f32[8]{{0}} conditional(%c, %a, %a), branch_computations={{%sends, %{other}}}"
    found = read_text(main("%c = s32[] constant(0)", branch, before=BRANCHES))
    assert found.work.sent.of("B") == sent
    assert {(c.kind, c.times, c.optional) for c in found.collectives} == {("all_reduce", 1, True)}


LOOP = """
%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %k = s32[] get-tuple-element(%p), index=0
  %v = f32[8]{0} get-tuple-element(%p), index=1
  %r = f32[8]{0} collective-permute(%v), channel_id=1, source_target_pairs={{0,1},{1,2},{2,2}}
  ROOT %t = (s32[], f32[8]{0}) tuple(%k, %r)
}

%test (q: (s32[], f32[8])) -> pred[] {
  %q = (s32[], f32[8]{0}) parameter(0)
  %w = f32[8]{0} get-tuple-element(%q), index=1
  %s = f32[8]{0} all-reduce(%w), channel_id=2, replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %l = pred[] custom-call(%s), custom_call_target="Sharding"
}
"""
WHILE = "%w = (s32[], f32[8]{0}) while(%i), condition=%test, body=%body"


def test_a_condition_runs_once_more_than_its_loop():
    found = read_text(main(f'{WHILE}, backend_config={{"known_trip_count":{{"n":"5"}}}}', before=LOOP))
    assert {c.kind: c.times for c in found.collectives} == {"collective_permute": 5, "all_reduce": 6}


def test_a_loop_of_unknown_length_may_not_run_and_is_shown_as_if_it_ran_once():
    found = read_text(main(WHILE, before=LOOP))
    assert {(c.times, c.counted) for c in found.collectives} == {(None, 1)}
    assert found.work.sent.of("B") == f"at least 0 B ({32 + 48} if each loop of unknown length runs once)"


COUNTED = """
%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %k = s32[] get-tuple-element(%p), index=0
  %v = f32[8]{0} get-tuple-element(%p), index=1
  %one = s32[] constant(2)
  %back = s32[] constant(-1)
  %next = s32[] STEP
  %r = f32[8]{0} all-reduce(%v), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %t = (s32[], f32[8]{0}) tuple(%next, %r)
}

%test (q: (s32[], f32[8])) -> pred[] {
  %q = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%q), index=0
  %ten = s32[] constant(10)
  TEST
}
"""
LESS = "%l = pred[] compare(%i, %ten), direction=LT"


@pytest.mark.parametrize(
    "step, test, times",
    [
        ("add(%k, %one)", f"ROOT {LESS}", 5),
        ("add(%k, %one)", f"{LESS}\n  ROOT %b = pred[] and(%l, %l)", None),
        ("add(%k, %one)", "%h = s32[] divide(%i, %ten)\n  ROOT %l = pred[] compare(%h, %ten), direction=LT", None),
        ("multiply(%k, %one)", f"ROOT {LESS}", None),
        ("add(%one, %one)", f"ROOT {LESS}", None),
        ("add(%k, %back)", f"ROOT {LESS}", None),
    ],
)
def test_a_loop_counts_up_to_a_constant_only_if_nothing_else_decides(step, test, times):
    start = "%z = s32[] constant(0)", "%i = (s32[], f32[8]{0}) tuple(%z, %a)"
    (found,) = read_text(main(*start, WHILE, before=COUNTED.replace("STEP", step).replace("TEST", test))).collectives
    assert found.times == times


def test_who_sends_to_itself_sends_nothing():
    (permute,) = [c for c in read_text(main(WHILE, before=LOOP)).collectives if c.kind == "collective_permute"]
    assert permute.sent == (32, 32, 0, 0)
    assert "(32 if each loop of unknown length runs once), 16 B on average" in str(permute)


def test_groups_of_different_sizes_send_different_amounts():
    line = "ROOT %r = f32[8]{0} all-gather(%a), channel_id=1, replica_groups={{0,1,2},{3}}, dimensions={0}"
    (found,) = read_text(main(line)).collectives
    assert found.sent == (64, 64, 64, 0) and found.bytes_sent_mean == 48


def test_a_broadcast_is_passed_on_by_all_but_the_last():
    line = "ROOT %r = f32[8]{0} collective-broadcast(%a), channel_id=1, replica_groups={{0,1,2,3}}"
    (found,) = read_text(main(line)).collectives
    assert found.sent == (32, 32, 32, 0)


@pytest.mark.parametrize(
    "dtype, bits", [("s4", 4), ("u2", 2), ("f8e4m3fn", 8), ("pred", 8), ("bf16", 16), ("c64", 64), ("token", 0)]
)
def test_an_element_takes_its_bits(dtype, bits):
    assert bits_of(dtype) == bits


def test_half_a_byte_counts_as_half_a_byte():
    line = "%b = s4[8]{0} convert(%a)", "ROOT %r = s4[32]{0} all-gather(%b), replica_groups={{0,1,2,3}}, dimensions={0}"
    (found,) = read_text(main(*line)).collectives
    assert (found.shape, found.bytes, found.bytes_sent) == ("i4[8]", 4, 12)


@pytest.mark.parametrize(
    "config, sent, flops, kernels",
    [
        ('"has_communication":true', "at least 0 B", "at least 0 F", ("mine",)),
        ("", "0 B", "at least 0 F", ("mine",)),
        ('"cost_estimate":{"flops":"77","remote_bytes_transferred":"9"},"has_communication":true', "9 B", "77 F", ()),
        (
            '"cost_estimate":{"flops":"77","remote_bytes_transferred":"0"},"has_communication":true',
            "at least 0 B",
            "77 F",
            ("mine",),
        ),
    ],
)
def test_a_kernel_says_what_it_does_or_leaves_it_open(config, sent, flops, kernels):
    call = (
        'ROOT %mine.1 = f32[8]{0} custom-call(%a), custom_call_target="tpu_custom_call", frontend_attributes={names={'
    )
    rest = '}}, metadata={op_name="jit(f)/shard_map/mine/pallas_call"}, backend_config={"custom_call_config":{'
    found = read_text(main(f"{call}\n{rest}{config}}}}}").replace("\n  }}", "\n}}"))
    assert (found.work.sent.of("B"), found.work.matmul_flops.of("F"), found.kernels) == (sent, flops, kernels)


def test_libraries_of_one_device_send_nothing_and_an_unknown_call_may():
    for target, sent in ("lapack_sgetrf_ffi", "0 B"), ("somebody_elses", "at least 0 B"):
        line = f'ROOT %r = f32[8]{{0}} custom-call(%a), custom_call_target="{target}"'
        found = read_text(main(line))
        assert (found.work.sent.of("B"), found.kernels) == (sent, (target,))


def test_a_matmul_of_a_gpus_library_is_counted_by_what_it_contracts():
    text = """
ENTRY %main (a: f32[16,4], b: f32[4,32]) -> f32[16,32] {
  %a = f32[16,4]{1,0} parameter(0)
  %b = f32[4,32]{1,0} parameter(1)
  %g = (f32[16,32]{1,0}, s8[64]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
  ROOT %r = f32[16,32]{1,0} get-tuple-element(%g), index=0
}
"""  # noqa: E501
    assert read_text(text).work.matmul_flops.number == 2 * 16 * 4 * 32


def test_the_mesh_is_the_one_whose_axes_are_the_group():
    meshes = {"x": 4, "y": 2}, {"a": 2, "b": 4}
    for groups, axes in (
        ("{{0,2,4,6},{1,3,5,7}}", ("x",)),
        ("{{0,1,2,3},{4,5,6,7}}", ("b",)),
        ("{{0,4},{1,5},{2,6},{3,7}}", ("a",)),
    ):
        line = f"ROOT %r = f32[8]{{0}} all-reduce(%a), replica_groups={groups}, to_apply=%add"
        (found,) = read_module(parsed(main(line)), meshes, scheduled=True).collectives
        assert found.axes == axes and math.prod(meshes[axes[0] in "ab"][a] for a in axes) == found.group


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_send_to_another_device_is_a_permute_and_one_to_the_host_is_none(quote):
    pairs = f"frontend_attributes={{_xla_send_recv_source_target_pairs={quote}{{{{0,1}},{{1,2}}}}{quote}}}"
    lines = "%t = token[] after-all()", f"%s = (f32[8]{{0}}, u32[], token[]) send(%a, %t), channel_id=1, {pairs}"
    host = "%h = (f32[8]{0}, u32[], token[]) send(%a, %t), channel_id=2, is_host_transfer=true"
    (found,) = read_text(main(*lines, host, "ROOT %r = f32[8]{0} copy(%a)")).collectives
    assert (found.kind, found.axes, found.sent) == ("collective_permute", ("x",), (32, 32, 0, 0))


def test_permutes_that_are_merged_count_all_their_arrays():
    line = "ROOT %r = (f32[8]{0}, f32[8]{0}) collective-permute(%a, %a), source_target_pairs={{0,1}}"
    assert read_text(main(line)).work.sent.number == 64


def test_a_collective_on_a_sparse_core_is_one():
    called = """
%called (p: f32[8]) -> f32[32] {
  %p = f32[8]{0} parameter(0)
  ROOT %g = f32[32]{0} all-gather(%p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
}
"""
    start = '%s = ((f32[8]{0}), f32[32]{0}) call-start(%a), async_execution_thread="sparsecore", to_apply=%called'
    found = read_text(main(start, "ROOT %d = f32[32]{0} call-done(%s)", before=called))
    assert [(c.kind, c.bytes_sent) for c in found.collectives] == [("all_gather", 96)]


def test_operands_are_read_without_percent_signs_and_with_comments():
    text = main("ROOT %r = f32[32]{0} all-gather(f32[8] /*index=0*/%a), replica_groups={{0,1,2,3}}, dimensions={0}")
    assert read_text(text.replace("%", "")).work.sent.number == 96


def test_what_is_no_compiled_program_is_refused():
    before = "HloModule jit_f, num_partitions=8\n" + main("ROOT %r = f32[8]{0} copy(%a)")
    with pytest.raises(NotHLO, match="from before XLA compiled it"):
        parsed(before)
    after = before.replace("jit_f,", "jit_f, is_scheduled=true,")
    with pytest.raises(NotHLO, match="breaks off after"):
        parsed(after[:-20])
    with pytest.raises(NotHLO, match="found two modules"):
        parsed(after + after)
    with pytest.raises(NotHLO, match="expected the text of a compiled program.* found 'module @jit_f"):
        parsed("module @jit_f {\n}")


def test_a_batched_matmul_written_as_a_convolution_counts_its_own_elements_only():
    text = """
ENTRY %main (a: f32[8,16,4], b: f32[8,4,32]) -> f32[8,16,32] {
  %a = f32[8,16,4]{2,1,0} parameter(0)
  %b = f32[8,4,32]{2,1,0} parameter(1)
  ROOT %c = f32[8,16,32]{2,1,0} convolution(%a, %b), window={size=8 stride=7 lhs_dilate=8}, dim_labels=0bf_0io->0bf
}
"""
    assert read_text(text).work.matmul_flops.number == 2 * 8 * 16 * 4 * 32
