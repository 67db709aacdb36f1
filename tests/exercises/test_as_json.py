"""What crosses the wire as JSON: what no honest worker writes is refused by one kind of error."""

import base64

import jax.numpy as jnp
import numpy as np
import pytest

from grader.exercises.answers import Value
from grader.exercises.as_json import from_json, to_json
from grader.explaining.explained import explained
from grader.lessons import find

EIGHT = base64.b64encode(bytes(8)).decode()


def array(dtype="float64", shape=(1,), data=EIGHT):
    return {"array": {"dtype": dtype, "shape": list(shape), "data": data}}


@pytest.mark.parametrize(
    "record",
    {
        "of no kind": {"verdict": 1.0},
        "of two kinds": {"float": "1", "tuple": []},
        "too short": {"ask": [{"dict": []}, {"dict": []}, ""]},
        "another type": {"script": 4.0},
        "no spec": {"layout": [[1], "f4", None]},
        "an array larger than memory": array(shape=(9999999999999,)),
        "an array of nothing": array(data=""),
        "an array of a negative length": array(shape=(-1,)),
        "an array of objects": array("object"),
        "an array of times": array("timedelta64[s]"),
        "an array of text": array("<U2"),
        "an array of bytes": array("S8"),
        "an array of several fields": array("f4,f4"),
        "an array that says more": {"array": {**array()["array"], "order": "F"}},
        "a file of NumPy's": {"array": EIGHT},
        "a cast to long text": {"cast": {"dtype": "S1900000000", "array": array("float32", (2,))}},
        "a cast to times": {"cast": {"dtype": "m8[s]", "array": array("float32", (2,))}},
        "a cast of no float32": {"cast": {"dtype": "bfloat16", "array": array()}},
        "a mesh": {"mesh": {"sizes": {"dict": [["x", 8]]}, "explicit": False, "order": []}},
        "an array that is laid out": {"laid": {"value": 1, "mesh": None, "spec": [], "instead": [], "memory": ""}},
        "a part for each": {"each": {"values": [1]}},
        "a spec": {"spec": ["x"]},
        "an ask in a value": {"value": {"value": {"each": {"values": []}}, "moved": ""}},
        "an answer in a value": {"value": {"value": {"program": ""}, "moved": ""}},
        "an endless number": {"layout": [[float("inf")], "f4", []]},
    }.items(),
    ids=lambda named: named[0],
)
def test_a_record_that_to_json_did_not_write_is_a_value_error(record):
    with pytest.raises(ValueError):
        from_json([record[1]])


def test_arrays_come_back_as_they_were():
    array = np.arange(6, dtype=np.int8).reshape(2, 3)
    (back,) = from_json(to_json([array]))
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "int4", "float16", "complex64", "bool", "uint8"])
def test_every_kind_of_number_comes_back(kind):
    array = np.ones((2, 1, 3), jnp.dtype(kind)).T
    (back,) = from_json(to_json([array]))
    assert back.dtype == array.dtype and np.array_equal(back, array)


def test_what_no_check_can_be_made_of_is_a_wrong_answer_and_no_alarm():
    class Odd:
        def __eq__(self, other):
            raise OverflowError

        __hash__, __repr__ = None, __eq__

    for name in ("block_matmul", "local_shapes"):
        exercise = find(name)
        cases = exercise.draw_cases(1)
        found = explained(exercise, cases, [Value(Odd())] * len(cases))
        assert found.points == 0 and found.failure is not None
