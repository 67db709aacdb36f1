"""An array that stands for a file: cut as an array is, and no more of it than may be."""

import numpy as np
import pytest

from grader.arrays.described import built
from grader.arrays.files import OnFile, ReadTooMuch
from grader.exercises.as_json import question_from_json, to_json

VALUES = np.arange(24.0).reshape(8, 3)


def test_a_part_is_cut_as_from_an_array_and_may_be_read_again():
    file = built(OnFile(VALUES, 6))
    assert (file.shape, file.size, len(file), file.dtype) == ((8, 3), 24, 8, VALUES.dtype)
    assert np.array_equal(file[2:4], VALUES[2:4]) and np.array_equal(file[2:4, 1], VALUES[2:4, 1])
    assert not hasattr(file, "sizes")  # nor has an array
    with pytest.raises(IndexError):
        file[8]


@pytest.mark.parametrize("read", [lambda file: file[:3], np.asarray, list, np.sum, lambda file: file.sum()])
def test_more_than_that_is_refused(read):
    with pytest.raises(ReadTooMuch, match="9 of the 24|24 of the 24"):
        read(built(OnFile(VALUES, 6)))


def test_what_was_read_cannot_be_written_to():
    file = built(OnFile(VALUES, 6))
    file[:2][:] = 0
    assert np.array_equal(file[:2], VALUES[:2])


def test_it_crosses_the_wire_as_a_description():
    there = question_from_json(to_json(OnFile(VALUES, 6)))
    assert isinstance(there, OnFile) and there.entries == 6 and np.array_equal(there.value, VALUES)
