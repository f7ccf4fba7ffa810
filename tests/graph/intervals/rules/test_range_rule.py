"""What a range rule is called with: operands, dtypes, and the bounds of numbers of elements."""

import math

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.graph.intervals.interval import ANY, Interval
from tiered.graph.intervals.rules.range_rule import RANGES, Counts, RangeCall, range_rule

DIMS = Counts(1, 10)


def call_of(
    node: str, *operands: Interval | None, dtype: str = "float", shape: str = "2,N"
) -> RangeCall:
    model = parsed(f"({dtype}[{shape}] x) => ({dtype}[?] y) {{ y = {node} }}")
    return RangeCall(made_by(model, "y"), operands, DIMS)


def test_an_operand_that_is_absent_may_be_anything() -> None:
    one = Interval(1, 2)
    call = call_of("Clip(x, , x)", one, None, Interval(3, 4))
    assert call.x == call.operand(0) == one
    assert call.operand(1) == ANY
    assert call.operand(3) == call.operand(7) == ANY
    assert [call.has(place) for place in range(4)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("dtype", "eps", "limit"),
    [
        ("float", 2.0**-23, float(np.finfo(np.float32).max)),
        ("double", 2.0**-52, float(np.finfo(np.float64).max)),
        ("float16", 2.0**-10, 65504.0),
        ("int32", 0.0, math.inf),
    ],
)
def test_the_precision_and_the_largest_number_of_the_result(
    dtype: str, eps: float, limit: float
) -> None:
    call = call_of("Neg(x)", dtype=dtype)
    assert (call.eps, call.limit) == (eps, limit)


def test_a_result_of_unknown_dtype_is_taken_as_exact() -> None:
    model = parsed("(float[2] x) => (float[2] z) { y = com.microsoft.Odd(x)  z = Neg(x) }")
    call = RangeCall(made_by(model, "y"), (), DIMS)
    assert (call.dtype, call.eps, call.limit) == (None, 0.0, math.inf)
    text = "(float[4] x) => (float[2] b) { a, b = Split<num_outputs=2>(x) }"
    node = made_by(parsed(text), "b")
    node.owner.drop_outputs(node, [0])
    assert RangeCall(node, (), DIMS).dtype is None


def test_a_margin_is_some_units_of_the_precision() -> None:
    call = call_of("Neg(x)")
    found = call.roughly(Interval(-1.0, 2.0))
    assert found.low == -1 - 64 * call.eps - 16 * call.eps
    assert found.high == 2 + 128 * call.eps + 16 * call.eps
    exact = call_of("Neg(x)", dtype="int32").roughly(Interval(-1, 2))
    assert (exact.low, exact.high) == (-1, 2)


def test_a_sum_that_may_overflow_in_both_directions_may_be_nan() -> None:
    call = call_of("ReduceSum(x)", dtype="float16")
    assert not call.total(Interval(-100, 100), Counts(1, 10)).may_be_nan
    assert not call.total(Interval(0, 60000), Counts(1, 10)).may_be_nan
    assert call.total(Interval(-60000, 60000), Counts(1, 10)).may_be_nan
    assert not call.total(Interval(-60000, 0), Counts(1, 10)).may_be_nan
    assert not call.total(Interval(-65504, 65505), Counts(1, 1)).may_be_nan
    assert not call.total(Interval(-65505, 65504), Counts(1, 1)).may_be_nan
    found = call_of("ReduceSum(x)", dtype="int64").total(Interval(-3, 2), Counts(2, 4))
    assert (found.low, found.high, found.may_be_nan) == (-12, 8, False)


def test_a_known_dim_has_one_size_and_others_the_given_bounds() -> None:
    call = call_of("Neg(x)")
    assert call.size(5) == Counts(5, 5)
    assert call.size("N") == call.size(None) == DIMS


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ("2,N", slice(None), Counts(2, 20)),
        ("2,N", slice(1, None), Counts(1, 10)),
        ("3,4,5", slice(-2, None), Counts(20, 20)),
        ("3,4", [2], Counts(1, 10)),
        ("2,N", [0], Counts(2, 2)),
        ("2,N", [-1], Counts(1, 10)),
        ("2,N", [], Counts(1, 1)),
        ("3,4", [0, -1], Counts(12, 12)),
        ("N,M", slice(None), Counts(1, 100)),
        ("", slice(None), Counts(1, 10_000)),
    ],
)
def test_the_number_of_elements_along_axes(
    shape: str, axes: list[int] | slice, expected: Counts
) -> None:
    call = call_of("Neg(x)", shape=shape)
    assert call.extent(named(call.node.owner, "x"), axes) == expected


def test_of_an_unknown_rank_any_number_of_elements_is_taken() -> None:
    call = call_of("Neg(x)", shape="")
    x = named(call.node.owner, "x")
    assert call.extent(x) == Counts(1, 10_000)
    assert call._replace(dims=Counts(0, 2)).extent(x, [0]) == Counts(0, 16)


def test_a_rule_is_registered_for_its_operators() -> None:
    try:

        @range_rule("RangeRuleTest", domain="test.domain")
        def rule(call: RangeCall) -> Interval:
            return call.x

        assert RANGES.find(("test.domain", "RangeRuleTest")) is rule
    finally:
        RANGES.remove("RangeRuleTest", "test.domain")
    assert RANGES.find(("test.domain", "RangeRuleTest")) is None
