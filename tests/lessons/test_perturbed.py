"""Cases notice what is nearly right: the model solution with fewer bits on the wire, without its small terms, with the
last maximum for the first; and everybody computing everything."""

import ast
import inspect
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from answering import LESSONS, answered, asked, verdict
from jax import lax
from jax.sharding import PartitionSpec as P
from rota import in_turn, parts

from grader.arrays.laid import holds_arrays, values_of
from grader.exercises.forms import ProgramExercise
from grader.lessons import EXERCISES
from grader.programs.traceable import in_jax

SENDING = ("psum", "pmean", "all_gather", "psum_scatter", "all_to_all", "ppermute")
SMALL = 1e-4  # a number below this stands against a division by zero
LESSON_OF = {name: lesson for lesson in LESSONS for name in asked(lesson)}
PROGRAMS = [e for e in EXERCISES.values() if type(e) is ProgramExercise and e.name in LESSON_OF]
WRITTEN = [e for e in PROGRAMS if not e.by_compiler and not any(case.explicit for case in e.draw_cases())]


def solution(exercise):
    return answered("solutions", LESSON_OF[exercise.name])[exercise.name]


def one_a_day(exercises):
    every = parts(len(exercises), a_day=1)
    return [pytest.param(e, id=e.name, marks=in_turn(place, every)) for place, e in enumerate(exercises)]


def fewer_bits(number):
    return number.astype(jnp.bfloat16).astype(number.dtype) if number.dtype == np.float32 else number


def is_tame(exercise):
    """Whether bfloat16 keeps all that the exercise is about: what is sent as it came then comes through whole."""
    leaves = [leaf for case in exercise.draw_cases() for a in case.arguments.values() for leaf in leaves_of(a)]
    return all(np.array_equal(leaf, fewer_bits(leaf)) for leaf in leaves)


def leaves_of(argument):
    return map(np.asarray, jax.tree.leaves(values_of(argument))) if holds_arrays(argument) else ()


@pytest.mark.parametrize("exercise", one_a_day(WRITTEN))
def test_fewer_bits_on_the_wire_are_noticed(exercise, monkeypatch):
    used = []

    def rounding(collective):
        def sent(tree, *rest, **options):
            used.append(collective)
            return collective(jax.tree.map(fewer_bits, tree), *rest, **options)

        return sent

    for name in SENDING:
        monkeypatch.setattr(lax, name, rounding(getattr(lax, name)))
    found = verdict(exercise, solution(exercise), seed=0)
    if not used or (found.passed and is_tame(exercise)):
        pytest.skip("it sends nothing, or nothing that bfloat16 would not keep")
    assert not found.passed and found.failure.check == "values"


def with_no_small_terms(function):
    """A function whose numbers against a division by zero are 0."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, float)]
    for node in numbers:
        node.value = 0.0 if abs(node.value) < SMALL else node.value
    space = dict(function.__globals__)
    exec(compile(tree, f"<{function.__name__} without small terms>", "exec"), space)
    return space[function.__name__]


@pytest.mark.parametrize("name", ["sharded_layernorm", "sequence_parallel"])
def test_a_small_term_that_is_missing_is_noticed(name):
    found = verdict(EXERCISES[name], with_no_small_terms(solution(EXERCISES[name])), seed=0)
    assert not found.passed and found.failure.check == "values"


def test_the_last_maximum_for_the_first_is_noticed():
    """`global_argmax` finds the first of several that are the largest."""

    def last_maximum(v, *, mesh):
        def body(block):
            largest = lax.pmax(block.max(), "x")
            place = lax.axis_index("x") * len(block) + jnp.arange(len(block))
            return lax.pmax(jnp.where(block == largest, place, -1).max(), "x")

        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(v)

    found = verdict(EXERCISES["global_argmax"], last_maximum, seed=0)
    assert not found.passed and found.failure.check == "values"


def everywhere(exercise):
    """Every device fetches all there is, computes the whole, and keeps its own part."""
    (case, *_) = exercise.draw_cases()
    holding = [name for name, argument in case.arguments.items() if holds_arrays(argument)]

    def work(*arrays, mesh, **fixed):
        given = dict(zip(holding, arrays, strict=True))
        specs = {name: jax.tree.map(lambda a: a.spec, case.arguments[name]) for name in holding}

        def body(*blocks):
            whole = {n: jax.tree.map(gathered, block, specs[n]) for n, block in zip(holding, blocks, strict=True)}
            result = in_jax(exercise.reference)(*({**whole, **fixed}[name] for name in case.arguments))
            return jax.tree.map(lambda r, spec: own_part(r, spec, mesh), result, case.out)

        each = tuple(specs.values())
        run = jax.shard_map(body, mesh=mesh, in_specs=each, out_specs=case.out, check_vma=False)
        return run(*given.values())

    return work


def axes_in(spec):
    for dimension, names in enumerate(spec):
        for name in (names,) if isinstance(names, str) else names or ():
            yield dimension, name


def gathered(block, spec):
    for dimension, name in reversed(list(axes_in(spec))):
        block = lax.all_gather(block, name, axis=dimension, tiled=True)
    return block


def own_part(whole, spec, mesh):
    for dimension, name in axes_in(spec):
        length = whole.shape[dimension] // mesh.shape[name]
        whole = lax.dynamic_slice_in_dim(whole, lax.axis_index(name) * length, length, dimension)
    return whole


def is_cut(exercise):
    """Whether the devices divide something: else everybody has everything anyhow."""
    (case, *_) = exercise.draw_cases()
    return any(True for spec in jax.tree.leaves(case.out, is_leaf=lambda s: isinstance(s, P)) for _ in axes_in(spec))


@pytest.mark.parametrize("exercise", one_a_day([e for e in WRITTEN if is_cut(e)]))
def test_everybody_computing_everything_is_noticed(exercise):
    found = verdict(exercise, everywhere(exercise), seed=0)
    assert not found.passed and found.failure.check in ("communication", "work")
