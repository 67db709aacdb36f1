"""Tables as pictures: their text, and that something is drawn."""

from grader import draw

CELLS = {"own loss": {"on": "8", "off": "replicas disagree"}, "mean loss": {"on": "1"}}


def test_the_text_is_the_table():
    assert repr(draw.table(CELLS)) == ("           on  off\nown loss   8   replicas disagree\nmean loss  1")


def test_the_same_table_is_drawn_alike_every_time_and_what_is_right_shows():
    one, other = draw.table(CELLS), draw.table(CELLS)
    assert one.svg() == other.svg() and one.svg().startswith("<svg")
    assert draw.table(CELLS, right="8").svg() != one.svg()
