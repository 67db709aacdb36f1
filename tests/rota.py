"""Of what takes too long to be tried in full every day, each day another part.

How much a day tries is a number, not a share: when lessons are added, the turn gets longer and the day does not. A part
is chosen by place, not by name, so that to rename an exercise changes nothing. Whoever wants to see again what failed
on another day sets `TEST_DAY`; it is set here too, so that all of pytest's processes agree.
"""

import datetime
import os

import pytest

# (Days since the first of January of the year 1: they go on over New Year, so that every part has its turn.)
DAY = int(os.environ.setdefault("TEST_DAY", str(datetime.date.today().toordinal())))


def parts(length, a_day):
    """Into how many parts a list of this length is cut, for about so many of it to be tried a day."""
    return -(-length // a_day)


def in_turn(place, every):
    """Marks for the test at this place in a list of which one in `every` is tried: slow, but on its day."""
    return [pytest.mark.slow] * (place % every != DAY % every)


# How many tests there are that start JupyterLab; and into how many parts those are cut that take a quarter of a minute.
LABS, LONG = 5, 4


def taking_turns(place, every):
    """The same for a test that stands by itself, as a decorator. Each of `every` like it has a place of its own."""

    def marked(test):
        for mark in in_turn(place, every):
            test = mark(test)
        return test

    return marked
