"""What crosses the wire as JSON: what no honest worker writes is refused by one kind of error."""

import base64

import numpy as np
import pytest

from grader.exercises.as_json import from_json, to_json

HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,), }"
TOO_LARGE = b"\x93NUMPY\1\0\x76\0" + HEADER.ljust(117) + b"\n"


@pytest.mark.parametrize(
    "record",
    {
        "of no kind": {"verdict": 1.0},
        "of two kinds": {"float": "1", "tuple": []},
        "too short": {"ask": [{"dict": []}, {"dict": []}, ""]},
        "another type": {"script": 4.0},
        "no spec": {"layout": [[1], "f4", None]},
        "an array larger than memory": {"array": base64.b64encode(TOO_LARGE).decode()},
        "an array of nothing": {"array": ""},
        "an archive that is none": {"array": base64.b64encode(b"PK\3\4").decode()},
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
