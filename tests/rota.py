"""Of what takes too long to be tried in full every day, each week another part.

The part is chosen by place, not by name, so that to rename an exercise changes nothing. Whoever wants to see again what
failed in another week sets `TEST_WEEK`; it is set here too, so that all of pytest's processes agree.
"""

import datetime
import os

import pytest

# (Weeks since Monday the first of January of the year 1: they go on over New Year, so that every part has its turn.)
WEEK = int(os.environ.setdefault("TEST_WEEK", str((datetime.date.today().toordinal() - 1) // 7)))


def in_turn(place, every):
    """Marks for the test at this place in a list of which one in `every` is tried: slow, but in its week."""
    return [pytest.mark.slow] * (place % every != WEEK % every)
