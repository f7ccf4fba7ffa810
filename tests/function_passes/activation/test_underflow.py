"""Whether an element of a Softmax may be too small for all of its digits."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.function_passes.activation._underflow import softmax_may_underflow


def may(text: str, axis: int = -1, dims: str = "2", dtype: str = "float") -> bool:
    """Return the answer for `a` of a model with the input x."""
    of = parsed(f"({dtype}[{dims}] x) => (y) <{text}> {{ a = Clip(x, low, high)  y = Neg(a) }}")
    return softmax_may_underflow(named(of, "a"), axis)


def limits(low: float, high: float, dtype: str = "float") -> str:
    return f"{dtype} low = {{{low}}}, {dtype} high = {{{high}}}"


# The least is exp(low - high) / count at worst: -log(tiny) is 87.3 for float, 9.7 for float16.
@pytest.mark.parametrize(
    ("low", "high", "dims", "axis", "dtype", "expected"),
    [
        (0, 87, "1", 0, "float", False),
        (0, 87.5, "1", 0, "float", True),
        (-43, 43, "2", 0, "float", False),
        (-43, 43, "4", 0, "float", True),  # log(4) is 1.4
        (-43, 43, "4,2", -1, "float", False),
        (-43, 43, "4,2", 0, "float", True),
        (-43, 43, "0", 0, "float", False),
        (0, 80, "N", 0, "float", True),  # as many as may be
        (0, 40, "N", 0, "float", False),
        (0, 700, "2", 0, "double", False),
        (0, 710, "2", 0, "double", True),
    ],
)
def test_the_spread_and_the_count_decide(
    low: float, high: float, dims: str, axis: int, dtype: str, expected: bool
) -> None:
    assert may(limits(low, high, dtype), axis, dims, dtype) is expected


def test_what_may_be_infinite_may_underflow() -> None:
    of = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert softmax_may_underflow(named(of, "x"), 0)


def test_what_has_no_type_may_underflow() -> None:
    of = parsed("(float[2] x) => (y) { a = own.Any(x)  y = Sigmoid(a) }")
    assert softmax_may_underflow(named(of, "a"), 0)


def test_what_has_no_shape_counts_as_many_as_may_be() -> None:
    text = """(float[2] x) => (y) <%s> {
        u = own.Any(x)  c = Cast<to = 1>(u)  a = Clip(c, low, high)  y = Neg(a) }"""
    assert [
        softmax_may_underflow(named(parsed(text % limits(0, high)), "a"), 0) for high in (40, 80)
    ] == [False, True]


def test_float16_has_fewer_digits() -> None:
    assert np.finfo(np.float16).tiny == 2**-14
    text = "(float[1] x) => (y) <%s> { c = Clip(x, low, high)  a = Cast<to = 10>(c)  y = Neg(a) }"
    assert [
        softmax_may_underflow(named(parsed(text % limits(0, high)), "a"), 0) for high in (9, 10)
    ] == [False, True]


def test_of_a_value_outside_of_a_graph_nothing_is_known() -> None:
    of = parsed("(float[2] x) => (float[2] y) { a = Tanh(x)  y = Abs(x) }")
    value = named(of, "a")
    assert not softmax_may_underflow(value, -1)
    of.main.remove_node(made_by(of, "a"))
    assert softmax_may_underflow(value, -1)
