"""Values in types that cross the wire."""

import numpy as np
import pytest

from grader.exercises.plain import plain


@pytest.mark.parametrize("value", [np.float64(0.125), np.int64(3), np.bool_(True), np.str_("x")])
def test_a_number_of_numpys_is_shown_as_a_number(value):
    assert repr(plain({"a": [value]})) == repr({"a": [value.item()]})
