"""What a compiled program says, read from texts that libtpu wrote (`compiled/`); no compiler is needed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pod_programs import FOUR, PROGRAMS, TWO, aval

import grader
from grader.chips import compiling
from grader.chips.buffers import largest
from grader.chips.compiling import NoCompiler, kept_answer, request
from grader.chips.report import pod_report
from grader.chips.topologies import topology
from grader.hlo.text import parsed

COMPILED = Path(__file__).parent / "compiled"


def reported(name):
    fn, args, on = PROGRAMS[name]
    pod = topology(on)
    return pod_report(pod, request(fn, args, pod), kept_answer(COMPILED / f"{name}.json.gz"))


def test_a_reduce_scatter_is_one_however_it_is_written():
    (only,) = reported("sums_scattered").collectives
    assert (only.kind, only.axes, only.group, only.operand) == ("reduce_scatter", ("x",), 4, (1024, 1024))
    assert only.bytes_sent == 3 * 1024 * 1024 * 2 // 4 and only.overlappable_flops == 0


def test_what_stands_between_start_and_done_runs_beside_the_transfer():
    report = reported("ring")
    product = 2 * 1024 * 1024 * 2048  # one device's, one turn
    assert [c.kind for c in report.collectives] == ["collective_permute"] * 3
    assert [c.overlappable_flops // product for c in report.collectives] == [0, 1, 2]
    assert report.flops == 4 * product
    assert {c.shift for c in report.collectives} == {1}


def test_loops_are_multiplied_out_forwards_and_backwards():
    report = reported("layers")
    assert [(c.kind, c.times) for c in report.collectives] == [
        ("all_gather", 6),
        ("all_gather", 6),
        ("reduce_scatter", 6),  # a fusion; what does not fit its tiles goes on by a permute
        ("collective_permute", 6),
    ]
    assert report.flops == 18 * 2 * 1024 * 2048 * 2048  # three products in each of six layers


def test_an_asynchronous_fusion_is_one_gather_and_its_product_runs_beside_it():
    gather = reported("layers").collectives[1]
    assert gather.overlappable_flops == 2 * 1024 * 2048 * 2048


def test_memory_counts_donated_arguments_once():
    memory = reported("layers").memory
    weights = 6 * 2048 * 2048 * 2 // 4
    assert memory.shared == weights and memory.arguments == weights + 1024 * 2048 * 2
    assert 0 < memory.peak < topology("v5e:2x4").chip.room


def test_a_refusal_is_an_answer():
    report = reported("too_large")
    assert not report.fits and report.memory is None
    assert report.refusal.wanted == 24 * 2**30
    assert "REFUSED: Ran out of memory on HBM" in repr(report) and "roofline" not in repr(report)


def test_the_report_tells_what_it_estimates_and_from_where():
    text = repr(reported("ring"))
    assert "x=4 × y=2, compiled for TPU, on v5e:2x4 (8 chips, 2 hosts)" in text
    assert "roofline, an estimate and no measurement" in text and "How To Scale Your Model" in text
    assert "overlaps with 4,294,967,296 FLOPs an iteration" in text and " of 15.75 GiB (" in text


def test_what_is_sent_is_summed_along_each_axis():
    assert reported("ring").bytes_along == {"x": 3 * 1024 * 2048 * 2}


def test_a_roofline_divides_by_the_chips_own_numbers():
    report = reported("ring")
    assert np.isclose(report.roofline.matmuls, report.flops / 1.97e14)
    assert np.isclose(report.roofline.transfers, report.bytes_sent / 4.5e10)


def test_padding_to_tiles_is_counted_and_memory_on_the_chip_is_not_hbm():
    text = """
ENTRY %main (a: bf16[10,10]) -> bf16[10,10] {
  %a = bf16[10,10]{1,0:T(8,128)(2,1)} parameter(0)
  %b = bf16[10,10]{1,0:T(8,128)(2,1)} negate(%a)
  ROOT %c = bf16[10,10]{1,0:T(8,128)(2,1)S(1)} negate(%b)
}
"""
    (buffer,) = largest(parsed(text))
    assert (buffer.array.bytes, buffer.array.padded) == (200, 16 * 128 * 2)


def test_arguments_without_a_mesh_are_asked_for_one():
    with pytest.raises(ValueError, match="no argument says how it is sharded over a mesh"):
        grader.communication(lambda a: a, np.ones(8), on="v5e:2x4")


def test_a_mesh_of_another_size_is_refused_before_anything_is_compiled(monkeypatch):
    monkeypatch.setattr(compiling, "libtpu", lambda: None)
    with pytest.raises(ValueError, match="v5e:2x4 has 8 devices, and the mesh x=4 has 4"):
        grader.communication(lambda a: a, aval(FOUR, (8,), "x"), on="v5e:2x4")


def test_without_the_compiler_one_line_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "libtpu", lambda: None)
    monkeypatch.setenv(compiling.CACHE, str(tmp_path))
    with pytest.raises(NoCompiler) as told:
        grader.communication(lambda a: a, aval(TWO, (8,), "x"), on="v5e:2x4")
    (line,) = told.value._render_traceback_()
    assert "pip install" in line and "libtpu==" in line and "\n" not in line


def test_what_was_compiled_once_is_not_compiled_again(monkeypatch, tmp_path):
    monkeypatch.setenv(compiling.CACHE, str(tmp_path))
    fn, args, on = PROGRAMS["ring"]
    said = kept_answer(COMPILED / "ring.json.gz")
    monkeypatch.setattr(compiling, "_compile", lambda asked, seconds: said)
    first = grader.communication(fn, *args, on=on)
    monkeypatch.setattr(compiling, "_compile", lambda asked, seconds: pytest.fail("compiled twice"))
    assert grader.communication(fn, *args, on=on) == first


def test_a_damaged_answer_counts_as_none(tmp_path):
    (tmp_path / "answer.json.gz").write_bytes(b"\x1f\x8bnothing")
    assert kept_answer(tmp_path / "answer.json.gz") is None


def test_a_request_names_what_is_given_away_and_how_arguments_lie():
    fn, args, on = PROGRAMS["layers"]
    asked = request(fn, args, topology(on))
    assert asked.donated == (0,) and dict(asked.mesh) == {"x": 4, "y": 2}
    assert json.loads(json.dumps(asked.arguments))[0] == [[6, 2048, 2048], "bfloat16", [None, "x"]]


def test_the_same_function_is_the_same_request_and_another_pod_is_another():
    fn, args, on = PROGRAMS["ring"]
    asked = [request(fn, args, topology(name)).key for name in (on, on, "v6e:2x4")]
    assert asked[0] == asked[1] != asked[2]


def test_without_a_compiler_a_stored_answer_is_found_by_the_functions_source(monkeypatch, tmp_path):
    """As another JAX would find it, whose bytes for the same function are others."""
    fn, args, on = PROGRAMS["layers"]
    monkeypatch.setattr(compiling, "STORED", tmp_path)
    monkeypatch.setenv(compiling.CACHE, str(tmp_path / "none"))
    monkeypatch.setattr(compiling, "libtpu", lambda: None)
    asked = request(fn, args, topology(on))
    said = kept_answer(COMPILED / "layers.json.gz")
    compiling.keep_answer(tmp_path / f"{asked.key_of_source}.json.gz", said)
    elsewhere = replace(asked, program=b"of another JAX")
    assert compiling.answer(elsewhere) == said
    with pytest.raises(NoCompiler):
        compiling.answer(replace(elsewhere, written=asked.written.replace("0.1", "0.2")))


def test_a_programs_source_has_the_functions_that_it_calls():
    def outer(a):
        return helper(a)

    asked = request(outer, (aval(TWO, (8,), "x"),), topology("v5e:2x4"))
    assert "return helper(a)" in asked.written and "a called function" in asked.written


def helper(a):
    """Nothing but a called function."""
    return 2 * a
