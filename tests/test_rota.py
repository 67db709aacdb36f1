"""What takes turns: each has its day, and a day has no more of them when there are more."""

import pytest
import rota


def tried(monkeypatch, length, every, day):
    monkeypatch.setattr(rota, "DAY", day)
    return [place for place in range(length) if not rota.in_turn(place, every)]


@pytest.mark.parametrize("length", [1, 15, 16, 17, 1380])
def test_each_has_its_day_in_every_turn_and_a_day_its_number(monkeypatch, length):
    every = rota.parts(length, a_day=16)
    days = [tried(monkeypatch, length, every, day) for day in range(739_943, 739_943 + every)]
    assert sorted(place for day in days for place in day) == list(range(length))
    assert max(map(len, days)) <= 16


def test_a_test_by_itself_is_slow_but_on_its_day(monkeypatch):
    monkeypatch.setattr(rota, "DAY", 7)

    def names(place):
        @rota.taking_turns(place, 4)
        def test(): ...

        return [mark.name for mark in getattr(test, "pytestmark", ())]

    assert [names(place) for place in range(4)] == [["slow"], ["slow"], ["slow"], []]
