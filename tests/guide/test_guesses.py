import pytest

from grader.guide.guesses import guess


@pytest.mark.parametrize(
    "said, found, heard",
    [
        (896, 1799, "You said 896, it is 1,799."),
        (1799, 1799, "You said 1,799, and so it is."),
        ("all_gather", "nothing", "You said all_gather, it is nothing."),
        (True, False, "You said True, it is False."),
        (2.5, 3.0, "You said 2.5, it is 3.0."),
        (128, 131, "You said 128, it is 131: near, 2.3 % off."),
        (99.0, 99.27, "You said 99.0, it is 99.27: near, 0.27 % off."),
        (120, 131, "You said 120, it is 131."),
        (1, 0, "You said 1, it is 0."),
        (True, 1.01, "You said True, it is 1.01."),
    ],
)
def test_a_guess_is_said_again_beside_what_was_found(said, found, heard):
    assert repr(guess(said, found)) == heard


def test_who_wrote_nothing_hears_the_number_and_where_to_write():
    heard = repr(guess(..., 48))
    assert heard.startswith("It is 48.") and "in place of the dots" in heard
