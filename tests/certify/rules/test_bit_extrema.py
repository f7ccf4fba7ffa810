"""Clamps and extrema on bits: clamps compose, and no order is assumed where zeros may meet."""

import itertools
from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.forms import Clamp, Extremum
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.rules.bit_extrema import EXTREMA, clamp_of, clamp_terms

INT8 = int(onnx.TensorProto.INT8)
X, Z, W = free("x", 3), free("z", 3), free("w", 3)
N, M = free("n", 3, dtype=INT64), free("m", 3, dtype=INT64)
INF = np.inf


def number(value: float) -> CheckedTensor:
    return known(value, np.float32)


def ran(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(EXTREMA[op](call(op, *inputs, **held)))


def are_same(one: CheckedTensor, other: CheckedTensor) -> bool:
    return one.shape == other.shape and bool((one.terms == other.terms).all())


def bounds(x: CheckedTensor) -> tuple[Any, Any]:
    assert isinstance(x.form, Clamp)
    return x.form.low.tolist(), x.form.high.tolist()


# --- Clip and Relu --------------------------------------------------------------------------------


def test_a_clip_is_a_clamp_between_its_bounds() -> None:
    node = call("Clip", X, number(-1), number(2))
    made = only(EXTREMA["Clip"](node))
    assert (made.shape, made.dtype, bounds(made)) == ((3,), FLOAT, (-1, 2))
    assert isinstance(made.form, Clamp)
    assert made.form.base is X
    assert node.axioms == {"clip-keeps-equals"}
    expected = clamp_terms("float", X.terms, np.array(-1.0), np.array(2.0))
    assert (made.terms == expected).all()
    older = ran("Clip", X, min=-1.0, max=2.0, opset=6)
    assert are_same(made, older)


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        (FLOAT, -np.finfo(np.float32).max, np.finfo(np.float32).max),
        (int(onnx.TensorProto.BFLOAT16), -3.3895313892515355e38, 3.3895313892515355e38),
        (int(onnx.TensorProto.FLOAT16), -65504, 65504),
        (INT8, -128, 127),
        (int(onnx.TensorProto.UINT64), 0, 2**64 - 1),
    ],
)
def test_an_absent_bound_is_the_furthest_finite_number(
    dtype: int, least: float, most: float
) -> None:
    x = free("x", 3, dtype=dtype)
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    one = known(1, kind)
    below, above = ran("Clip", x, one), ran("Clip", x, None, one)
    assert bounds(below) == (1, most)
    assert bounds(above) == (least, 1)
    none = ran("Clip", x)
    if dtype in (INT8, onnx.TensorProto.UINT64):
        assert none is x  # there are no others
    else:
        assert bounds(none) == (least, most)


def test_a_relu_is_a_clamp_by_zero_alone() -> None:
    node = call("Relu", X)
    made = only(EXTREMA["Relu"](node))
    assert bounds(made) == (0, INF)
    assert node.axioms == {"clip-keeps-equals"}
    assert bounds(ran("Relu", N)) == (0, 2**63 - 1)
    positive = ran("Relu", known([-1, 2], np.float32))
    assert positive.known is not None
    assert positive.known.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("inner", "outer", "one"),
    [
        ((-1, 5), (0, 3), (0, 3)), ((0, 3), (-1, 5), (0, 3)), ((0, 3), (1, 5), (1, 3)),
        ((0, 1), (2, 5), (2, 2)), ((4, 6), (1, 2), (2, 2)), ((3, 1), (-9, 9), (1, 1)),
    ],
)  # fmt: skip
def test_clamps_compose(
    inner: tuple[int, int], outer: tuple[int, int], one: tuple[int, int]
) -> None:
    """As numpy has it, where the lower bound is first: it checks the law on numbers too."""
    twice = ran("Clip", ran("Clip", X, *map(number, inner)), *map(number, outer))
    assert are_same(twice, ran("Clip", X, *map(number, one)))
    values = np.arange(-10, 11)
    once = np.minimum(np.maximum(values, inner[0]), inner[1])
    found = np.minimum(np.maximum(once, outer[0]), outer[1])
    assert (found == np.clip(values, *one)).all()


def test_a_bound_that_is_zero_keeps_its_sign() -> None:
    plus, minus = number(0.0), number(-0.0)
    assert not are_same(ran("Clip", X, plus), ran("Clip", X, minus))
    twice = ran("Clip", ran("Relu", X), minus)
    assert isinstance(twice.form, Clamp)
    assert not np.signbit(twice.form.low)


def test_bounds_may_be_rows() -> None:
    row = known([[1], [2]], np.float32)
    made = ran("Clip", X, row, number(5))
    assert made.shape == (2, 3)
    assert (made.terms[1] == ran("Clip", X, number(2), number(5)).terms).all()


def test_bounds_that_are_not_known_make_a_plain_function() -> None:
    low = free("low")
    made = ran("Clip", X, low)
    assert made.form is None
    assert not are_same(made, ran("Clip", X, free("high")))
    assert not are_same(made, ran("Clip", X, None, low))


def test_known_numbers_are_clipped() -> None:
    made = ran("Clip", known([-3, 1, 9], np.float32), number(0), number(5))
    assert made.known is not None
    assert made.known.tolist() == [0, 1, 5]
    assert ran("Clip", known([1.0], np.float32), free("low")).known is None
    below = ran("Clip", known([-3, 9], np.float32), None, number(5)).known
    assert below is not None
    assert below.tolist() == [-3, 5]


@pytest.mark.parametrize("inputs", [(number(np.nan), number(1)), (number(1), number(np.nan))])
def test_a_bound_of_nan_has_no_rule(inputs: tuple[CheckedTensor, CheckedTensor]) -> None:
    with pytest.raises(NoRule):
        ran("Clip", X, *inputs)


# --- Max and Min ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "kept", "ordered"),
    [("Max", 1, -1), ("Min", -1, 1), ("Max", 2, 0), ("Min", -2, 0), ("Max", 3, -0.0)],
)
def test_no_order_counts_where_no_zeros_can_meet(op: str, kept: float, ordered: float) -> None:
    """Of the result a zero is no value, as the number is beyond it."""
    node = call(op, X, Z, number(kept))
    made = only(EXTREMA[op](node))
    assert node.axioms == {"no-zeros-meet"}
    assert isinstance(made.form, Extremum)
    for inputs in itertools.permutations((X, Z, number(kept))):
        assert are_same(ran(op, *inputs), made)
    assert are_same(ran(op, X, Z, X, number(kept)), made)
    for number_ in (number(ordered), None):
        inputs = (X, Z, *([number_] if number_ else []))
        swapped = (Z, X, *([number_] if number_ else []))
        assert not are_same(ran(op, *inputs), ran(op, *swapped))


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_with_a_number_that_is_not_zero_an_extremum_is_a_clamp(op: str) -> None:
    made = ran(op, X, number(2))
    assert bounds(made) == ((2, INF) if op == "Max" else (-INF, 2))
    assert are_same(made, ran(op, number(2), X))
    assert are_same(ran(op, made, number(1)), ran(op, X, number(2 if op == "Max" else 1)))
    for zero in (0.0, -0.0):
        node = call(op, X, number(zero))
        assert not isinstance(only(EXTREMA[op](node)).form, Clamp)
        assert node.axioms == set()


def test_over_the_reals_zeros_have_no_sign() -> None:
    node = call("Max", X, number(0))
    node.signed_zeros = False
    assert bounds(only(EXTREMA["Max"](node))) == (0, INF)
    pair = call("Max", X, Z)
    pair.signed_zeros = False
    assert isinstance(only(EXTREMA["Max"](pair)).form, Extremum)


def test_a_number_that_is_not_beyond_zero_at_all_places_keeps_the_order() -> None:
    row = known([1, 0, 2], np.float32)
    assert not are_same(ran("Max", X, Z, row), ran("Max", Z, X, row))
    assert ran("Max", X, row).form is None


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_integers_are_in_any_order(op: str) -> None:
    node = call(op, N, M)
    made = only(EXTREMA[op](node))
    assert node.axioms == {"extremum-of-integers"}
    assert made.dtype == INT64
    assert are_same(made, ran(op, M, N, N))
    assert not are_same(made, N)
    assert are_same(ran(op, N, N), N)
    clamp = ran(op, N, known(3))
    assert bounds(clamp) == ((3, 2**63 - 1) if op == "Max" else (-(2**63), 3))


def test_extrema_inside_of_extrema_are_one() -> None:
    one = number(1)
    inner = ran("Max", X, one)
    whole = ran("Max", X, Z, one)
    assert are_same(ran("Max", inner, Z), whole)
    assert are_same(ran("Max", whole, X), whole)
    assert are_same(ran("Max", whole, W, number(2)), ran("Max", W, X, Z, number(2)))
    assert are_same(ran("Max", Z, inner, number(0.5)), whole)
    integers = ran("Max", N, M)
    assert isinstance(integers.form, Extremum)
    assert integers.form.bound is None
    assert are_same(ran("Max", integers, known(1)), ran("Max", N, known(1), M))


def test_extrema_of_other_kinds_stay_apart() -> None:
    least = ran("Min", N, M)
    made = ran("Max", least, known(1))
    assert isinstance(made.form, Clamp)
    assert made.form.base is least
    clip = ran("Clip", N, known(0), known(5))
    both = ran("Max", clip, M)
    assert isinstance(both.form, Extremum)
    assert set(both.form.parts) == {clip, M}
    assert not are_same(ran("Max", N, M), ran("Min", N, M))


def test_numbers_beyond_others_decide() -> None:
    """In order, a number below another one is never chosen."""
    for op, never, chosen in (("Max", -2, 0), ("Min", 3, 0)):
        with_it = ran(op, X, Z, number(never), number(chosen))
        assert are_same(with_it, ran(op, X, Z, number(chosen)))
    wide = known([[-2], [-3]], np.float32)
    made = ran("Max", X, Z, wide, number(0))
    assert made.shape == (2, 3)


def test_the_same_operand_twice_is_itself() -> None:
    assert are_same(ran("Max", X, X), X)
    assert are_same(ran("Min", X, X, Z), ran("Min", X, Z))
    assert ran("Max", X) is X


def test_nan_among_the_numbers_keeps_the_order() -> None:
    nan = number(np.nan)
    made = ran("Max", X, nan)
    assert not isinstance(made.form, Clamp)
    assert not are_same(made, ran("Max", nan, X))
    assert not are_same(made, ran("Min", X, nan))


def test_known_extrema_are_numbers() -> None:
    made = ran("Max", known([1, 5], np.float32), known([3], np.float32))
    assert made.known is not None
    assert made.known.tolist() == [3, 5]


def test_operands_of_an_extremum_broadcast() -> None:
    column = free("column", 2, 1, dtype=INT64)
    made = ran("Max", N, column)
    assert made.shape == (2, 3)
    assert len(np.unique(made.terms)) == 6
    assert ran("Max", X, known(np.ones((2, 1)), np.float32)).shape == (2, 3)


# --- forms ----------------------------------------------------------------------------------------


def test_terms_of_a_clamp_depend_on_all_of_it() -> None:
    def terms(kind: str, base: CheckedTensor, low: float, high: float) -> Array:
        return clamp_terms(kind, base.terms, np.array(low), np.array(high))

    made = [terms("float", X, 0.0, 1.0), terms("integer", X, 0.0, 1.0), terms("float", Z, 0.0, 1.0),
            terms("float", X, 0.5, 1.0), terms("float", X, 0.0, 0.5)]  # fmt: skip
    assert len(np.unique(np.concatenate(made))) == 15


def test_a_tensor_without_bounds_is_its_own_clamp() -> None:
    held = clamp_of(X)
    assert held.base is X
    assert [held.low.item(), held.high.item()] == [-INF, INF]
    assert clamp_of(N).low == -(2**63)
    assert clamp_of(N).high == 2**63 - 1
    wide = CheckedTensor(FLOAT, (2, 3), lambda: np.broadcast_to(X.terms, (2, 3)))
    assert ran("Max", wide, known(np.full((2, 1), -INF), np.float32)).shape == (2, 3)
    free_row = ran("Max", X, known([-INF, 1, -INF], np.float32))
    assert (free_row.terms[[0, 2]] == X.terms[[0, 2]]).all()
    assert free_row.terms[1] != X.terms[1]
