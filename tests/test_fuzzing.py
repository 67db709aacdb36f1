"""What tries inputs for a while sees when one of them is bad."""

import fuzzing
import pytest
from hypothesis import strategies

MUCH = 300 << 20  # bytes: more than an allocator may have kept from what was freed before


def test_a_failing_input_is_kept_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path / "tests" / "corpus")
    tried = []

    def holds(data):
        tried.append(data)
        assert len(data) < 3

    with pytest.raises(AssertionError) as failure:
        fuzzing.fuzz("lengths", strategies.binary(), holds, seconds=1)
    (kept,) = (fuzzing.CORPUS / "lengths").iterdir()
    assert kept.read_bytes() == b"\0\0\0"  # the shortest and simplest
    assert kept.name in "".join(failure.value.__notes__)
    tried.clear()
    with pytest.raises(AssertionError):
        fuzzing.fuzz("lengths", strategies.binary(), holds, seconds=1)
    assert tried == [b"\0\0\0"]


def test_one_that_takes_long_or_much_fails():
    with pytest.raises(fuzzing.TooLong), fuzzing.within(seconds=0.1):
        while True:
            pass
    with pytest.raises(MemoryError), fuzzing.within(megabytes=50):
        bytearray(MUCH)
    bytearray(MUCH)
