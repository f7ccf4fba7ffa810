"""Softmax over the reals: what is the same along its axis changes nothing, and rows sum to one."""

from typing import Any

import pytest

from tests.certify.call import FLOAT
from tests.certify.reals.field import are_same, number, ran, unknown
from tiered.certify.evaluation.forms import SumsToOne
from tiered.certify.evaluation.values import CheckedTensor

X, ROW, COLUMN = unknown("x", 2, 3), unknown("row", 3), unknown("column", 2, 1)
CUBE = unknown("cube", 2, 3, 4)


@pytest.mark.parametrize(
    ("x", "shift", "held", "is_free"),
    [
        (X, COLUMN, {}, True),
        (X, unknown("scalar"), {}, True),
        (X, ROW, {}, False),
        (X, ROW, {"axis": 0}, True),
        (X, COLUMN, {"axis": 0}, False),
        (X, unknown("whole", 2, 3), {}, False),
        (CUBE, unknown("middle", 2, 1, 4), {"axis": 1}, True),
        (CUBE, unknown("middle", 2, 1, 4), {"axis": 1, "opset": 13}, True),
        (CUBE, unknown("middle", 2, 1, 4), {"axis": 1, "opset": 12}, False),
        (CUBE, unknown("middle", 2, 1, 4), {"opset": 12}, False),
        (CUBE, unknown("last", 2, 3, 1), {"axis": 2, "opset": 12}, True),
        (CUBE, unknown("last", 2, 3, 1), {"opset": 13}, True),
    ],
)
def test_what_is_the_same_along_the_axis_changes_nothing(
    x: CheckedTensor, shift: CheckedTensor, held: dict[str, Any], is_free: bool
) -> None:
    shifted = ran("Softmax", ran("Add", x, shift), **held)
    assert are_same(shifted, ran("Softmax", x, **held)) is is_free


def test_a_sum_that_is_wider_than_what_varies_keeps_its_shape() -> None:
    assert ran("Softmax", ran("Add", ROW, COLUMN)).shape == (2, 3)


def test_a_single_element_is_one() -> None:
    found = ran("Softmax", ran("Add", COLUMN, unknown("other", 2, 1)))
    assert found.known is not None
    assert (found.dtype, found.known.tolist()) == (FLOAT, [[1.0], [1.0]])


def test_the_last_axis_sums_to_one() -> None:
    assert ran("Softmax", X).form == SumsToOne()
    assert ran("Softmax", X, opset=12).form == SumsToOne()
    assert ran("Softmax", CUBE, opset=12).form is None
    assert ran("Softmax", X, axis=0).form is None
    assert ran("Softmax", number([[1.0, 2.0]])).form is None
