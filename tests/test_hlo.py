"""The text of compiled programs: every way to write who takes part, loops, tuples, pairs of start and done."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader import communication, hlo
from grader.blocks import blocks
from grader.draw.changes import changed
from grader.program import aval, make_mesh, put

MESH = {"x": 4, "y": 2}


def program(*lines, body=""):
    listed = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n\n{body}ENTRY %main.1 (p: f32[4,8]) -> f32[4,8] {{\n  %p = f32[4,8]{{1,0}} parameter(0)\n" \
           f"{listed}\n}}\n"


def groups(written):
    (found,) = hlo.sent(program(f"%a = f32[4,8]{{1,0}} all-reduce(%p), channel_id=1, {written}, to_apply=%add"))
    return found.groups


X, Y = ((0, 2, 4, 6), (1, 3, 5, 7)), ((0, 1), (2, 3), (4, 5), (6, 7))


@pytest.mark.parametrize("written, expected", [
    ("replica_groups={{0,2,4,6},{1,3,5,7}}", X),
    ("replica_groups=[4,2]<=[8]", Y),
    ("replica_groups=[2,4]<=[4,2]T(1,0)", X),
    ("replica_groups=mesh['x'=4,'y'=2] {'x'}", X),
    ("replica_groups=mesh['x'=4,'y'=2] {'y'}", Y),
    ("replica_groups=mesh['axis_0'=4,'axis_1'=1,'axis_2'=2] {'axis_0'}", X),
    ("replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}", X),
    ("replica_groups=mesh['a'=2,'b'=4], device_ids=(0,2,4,6,1,3,5,7) {'b'}", X),
    ("replica_groups=mesh['x'=4,'y'=2] {'x':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
    ("replica_groups=mesh['x'=4,'y'=2] {'x':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("replica_groups=mesh['x'=4,'y'=2] {'x','y'}", (tuple(range(8)),)),
    ("replica_groups={}", ()),
])
def test_every_way_to_write_groups(written, expected):
    assert groups(written) == expected


def test_quoted_text_says_nothing():
    assert groups('replica_groups=[4,2]<=[8], metadata={op_name="source_target_pairs={{0,0}} \\" calls=%main.1"}') == Y


def test_a_scope_of_the_authors_hides_nothing():
    laid = aval((16, 32), jnp.float32, P("x"), make_mesh(MESH))

    def summed(v):
        with jax.named_scope('"}, source_target_pairs={{0,0}}, replica_groups={{0}}'):
            return v.sum(0)
    (found,) = communication(summed, laid).collectives
    assert (found.kind, found.axes, found.group) == ("all_reduce", ("x",), 4)


def test_an_unknown_way_is_no_silence():
    with pytest.raises(ValueError, match="cannot read who takes part"):
        groups("replica_groups=new<4>")


def test_start_and_done_are_one_and_tuples_are_several_operands():
    found = hlo.sent(program(
        "%s = (f32[4,8], f32[8,8]) all-gather-start(%p), replica_groups={{0,1}}, dimensions={0}",
        "%d = f32[8,8]{1,0:T(8,128)} all-gather-done(%s)",
        "%q = s32[2]{0} constant({1, 2})",
        "%t = (f32[4,8]{1,0}, /*index=1*/s32[2]{0}) all-reduce(%p, /*index=1*/%q), replica_groups={{0,1}}",
        'ROOT %m = f32[4,8]{1,0} add(%p, %p), metadata={op_name="an \\"all-reduce(\\" in words"}'))
    assert [(s.kind, s.operands) for s in found] == [
        ("all_gather", (("f32", (4, 8)),)), ("all_reduce", (("f32", (4, 8)), ("s32", (2,))))]


BODY = """%body.1 (c: f32[4,8]) -> f32[4,8] {
  %c = f32[4,8]{1,0} parameter(0)
  ROOT %r = f32[4,8]{1,0} collective-permute(%c), source_target_pairs={{0,1},{1,0}}
}

"""


@pytest.mark.parametrize("line, times", [
    ('%w = f32[4,8] while(%p), condition=%cond, body=%body.1, backend_config={"known_trip_count":{"n":"7"}}', 7),
    ('%w = f32[4,8] while(%p), condition=%cond, body=%body.1, '
     'metadata={op_name="backend_config={\\"known_trip_count\\":{\\"n\\":\\"0\\"}}"}', None),
    ("%w = f32[4,8] while(%p), condition=%cond, body=%body.1", None),
    ("%w = f32[4,8] conditional(%p, %p), branch_computations={%body.1, %other}", None),
    ("%w = f32[4,8] fusion(%p), kind=kCustom, calls=%body.1", 1),
    ("%w = f32[4,8] async-start(%p), calls=%body.1", 1),
])
def test_what_is_called_is_followed_and_turns_are_multiplied(line, times):
    (found,) = hlo.sent(program(line, body=BODY))
    assert (found.kind, found.times, found.groups) == ("collective_permute", times, ((0, 1), (1, 0)))


def test_what_nobody_calls_is_not_sent():
    assert hlo.sent(program("%w = f32[4,8] add(%p, %p)", body=BODY)) == ()


SPECS = [P("x"), P(None, "x"), P(), P("x", "y"), P("y", "x"), P(("y", "x")), P(("x", "y")), P(None, "y")]


@pytest.mark.parametrize("order", [None, (0, 1, 4, 5, 2, 3, 6, 7)])
def test_whatever_arrives_was_sent(order):
    """For every change of layout: what devices receive by the report covers what they lack."""
    devices = np.array(jax.devices()[:8])[list(order or range(8))].reshape(4, 2)
    mesh = Mesh(devices, ("x", "y"))
    for before, after in itertools.permutations(SPECS[:: 1 if order is None else 3], 2):
        laid = put(np.ones((16, 32), np.float32), before, mesh)
        wanted = NamedSharding(mesh, after)
        found = communication(lambda v, w=wanted: lax.with_sharding_constraint(v + 1, w), laid)
        lacking = max(changed(blocks((16, 32), before, MESH), blocks((16, 32), after, MESH)).arriving)
        assert found.bytes_sent >= 4 * lacking * (7 / 8), (before, after, found)
        assert bool(found.bytes_sent) == bool(lacking), (before, after, found)


def test_the_compilers_own_loops_are_counted():
    mesh = make_mesh(MESH)
    laid = aval((16, 32), jnp.float32, P("x"), mesh)
    (found,) = communication(lambda v: lax.fori_loop(0, 7, lambda k, c: c / (1 + c.sum(0)), v), laid).collectives
    assert (found.kind, found.axes, found.times) == ("all_reduce", ("x",), 7)


def test_an_all_to_all_of_the_compiler_is_seen():
    """As StableHLO it is lost or unreadable: this is why the text is read."""
    laid = aval((16, 16), jnp.float32, P("d"), make_mesh({"d": 8}))
    (found,) = communication(lambda v: v + v.T, laid).collectives
    assert (found.kind, found.axes, found.group, found.operand, found.bytes_sent) == (
        "all_to_all", ("d",), 8, (8, 2, 2), 112)
