"""What NumPy works out in place of XLA is the same up to rounding, and the rest is left to XLA."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from grader.arrays.numbers import close
from grader.programs.in_numpy import IN_NUMPY, in_numpy

WHOLES = np.random.default_rng(0).integers(-9, 10, (4, 6)).astype(np.float32)
PARTS = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
COUNTS = np.arange(24, dtype=np.int32).reshape(4, 6)
BIG = COUNTS * 2**26
TRUE = WHOLES > 0
AT = np.array(-1, np.int32), np.array(5, np.int32)

OPERATIONS = {
    "add": (lax.add, (PARTS, WHOLES), (BIG, BIG)),
    "sub": (lax.sub, (PARTS, WHOLES), (COUNTS, BIG)),
    "mul": (lax.mul, (PARTS, WHOLES), (BIG, BIG)),
    "div": (lax.div, (PARTS, abs(WHOLES) + 1)),
    "add_any": (lambda a, b: jax.vjp(lambda c: c * a + c, b)[1](b)[0], (PARTS, WHOLES)),
    "max": (lax.max, (PARTS, WHOLES), (BIG, BIG + 1)),
    "min": (lax.min, (PARTS, WHOLES), (BIG, BIG + 1)),
    "neg": (lax.neg, (PARTS,), (WHOLES,)),
    "sqrt": (lax.sqrt, (abs(PARTS),), (abs(WHOLES),)),
    "integer_pow": (lambda a: lax.integer_pow(a, 3), (PARTS,)),
    "convert_element_type": (lambda a: lax.convert_element_type(a, np.float32), (TRUE,), (COUNTS,), (BIG,)),
    "iota": (lambda: lax.broadcasted_iota(np.int32, (3, 4), 1), ()),
    "lt": (lax.lt, (PARTS, WHOLES)),
    "le": (lax.le, (COUNTS, BIG)),
    "gt": (lax.gt, (PARTS, WHOLES)),
    "ge": (lax.ge, (WHOLES, WHOLES)),
    "eq": (lax.eq, (WHOLES, PARTS)),
    "ne": (lax.ne, (COUNTS, BIG)),
    "dot_general": (lambda a, b: a @ b.T, (abs(WHOLES), abs(WHOLES) + 1), (WHOLES + 20, WHOLES - 20)),
    "reduce_sum": (lambda a: lax.reduce(a, np.float32(0), lax.add, (1,)), (abs(WHOLES) + 1,)),
    "reduce_max": (lambda a: a.max(1), (PARTS,)),
    "reduce_min": (lambda a: a.min(1), (PARTS,)),
    "select_n": (lax.select_n, (TRUE, PARTS, WHOLES)),
    "dynamic_slice": (lambda a, i, j: lax.dynamic_slice_p.bind(a, i, j, slice_sizes=(2, 3)), (PARTS, *AT)),
    "dynamic_update_slice": (
        lambda a, b, i, j: lax.dynamic_update_slice_p.bind(a, b, i, j),
        (PARTS, WHOLES[:2, :3], *AT),
    ),
    "broadcast_in_dim": (lambda a: lax.broadcast_in_dim(a, (3, 4, 6), (1, 2)), (PARTS,), (PARTS[:1],)),
    "reshape": (lambda a: lax.reshape(a, (3, 8)), (PARTS,)),
    "squeeze": (lambda a: lax.squeeze(a, (0,)), (PARTS[:1],)),
    "transpose": (lambda a: a.T, (PARTS,)),
    "slice": (lambda a: lax.slice(a, (1, 0), (4, 5), (1, 2)), (PARTS,)),
    "concatenate": (lambda *a: jnp.concatenate(a, 1), (PARTS, WHOLES)),
    **{name: (getattr(lax, name), (PARTS,)) for name in ("abs", "ceil", "cos", "exp", "expm1", "floor", "sign", "sin")},
    **{name: (getattr(lax, name), (PARTS,)) for name in ("tanh", "square", "logistic", "is_finite")},
    **{name: (getattr(lax, name), (abs(PARTS),)) for name in ("log", "log1p", "rsqrt")},
    "pow": (lax.pow, (abs(PARTS), WHOLES)),
    "and": (lax.bitwise_and, (TRUE, WHOLES > 3)),
    "or": (lax.bitwise_or, (TRUE, WHOLES > 3)),
    "not": (lax.bitwise_not, (TRUE,)),
    "reduce_prod": (lambda a: a.prod(1), (PARTS,)),
    "argmax": (lambda a: lax.argmax(a, 1, np.int32), (WHOLES,)),
    "rev": (lambda a: lax.rev(a, (1,)), (PARTS,)),
    "copy": (lambda a: lax.copy_p.bind(a), (PARTS,)),
    "stop_gradient": (jax.lax.stop_gradient, (PARTS,)),
}
CASES = [(name, work, given) for name, (work, *several) in OPERATIONS.items() for given in several]


def one_operation(name, work, given):
    """The operation of this name in a function, the only one that does more than cast."""
    found = [eqn for eqn in jax.make_jaxpr(work)(*given).eqns if eqn.primitive.name == name]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(("name", "work", "given"), CASES, ids=[name for name, *_ in CASES])
def test_it_is_what_xla_gives(name, work, given):
    eqn = one_operation(name, work, given)
    if name == "dot_general":  # its second operand comes from a transposition
        given = (given[0], given[1].T)
    found, due = in_numpy(eqn, given), np.asarray(jax.jit(lambda *a: eqn.primitive.bind(*a, **eqn.params))(*given))
    assert found is not None and (found.shape, found.dtype) == (due.shape, due.dtype)
    assert close(found, due)


def test_all_that_is_worked_out_is_tried():
    assert OPERATIONS.keys() == IN_NUMPY.keys()


@pytest.mark.parametrize(
    ("name", "work", "given"),
    [
        ("dot_general", lambda a, b: a @ b, (np.ones((1024, 2), np.float32), np.ones((2, 1024), np.float32))),
        ("div", lax.div, (COUNTS, COUNTS + 1)),
        ("convert_element_type", lambda a: lax.convert_element_type(a, np.int32), (PARTS,)),
        ("add", lax.add, (PARTS.astype(jnp.bfloat16), PARTS.astype(jnp.bfloat16))),
        ("tan", lax.tan, (PARTS,)),
        ("add", lax.add, (jnp.asarray(PARTS), WHOLES)),
    ],
)
def test_what_differs_is_left_to_xla(name, work, given):
    assert in_numpy(one_operation(name, work, given), given) is None


def test_what_another_jax_calls_otherwise_is_left_to_xla():
    eqn = one_operation("transpose", lambda a: a.T, (PARTS,))
    assert in_numpy(eqn, [PARTS]) is not None
    assert in_numpy(eqn.replace(params={"order": (1, 0)}), [PARTS]) is None
