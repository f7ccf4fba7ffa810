"""QuantizeLinear and DequantizeLinear: round trips by numbers, and what stays a function."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, call, free, known, only
from tiered.certify.domains.terms import flipped
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.forms import Clamp, Dequantized
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.rules.bit_extrema import EXTREMA
from tiered.certify.rules.quantized_bits import QUANTIZED, rounded, unsigned

INT8, UINT8, INT16, UINT16, INT32, FLOAT8, FLOAT16 = (
    int(getattr(onnx.TensorProto, name))
    for name in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "FLOAT8E4M3FN", "FLOAT16")
)
X = free("x", 2, 3)
Q = free("q", 2, 3, dtype=UINT8)
HALF = known(0.5, np.float32)
KINDS = {INT8: np.int8, UINT8: np.uint8, INT16: np.int16, UINT16: np.uint16}


def zero(number: Any, kind: Any = np.uint8) -> CheckedTensor:
    return known(number, kind)


def quantized(x: CheckedTensor, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(QUANTIZED["QuantizeLinear"](call("QuantizeLinear", x, *inputs, **held)))


def dequantized(x: CheckedTensor, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(QUANTIZED["DequantizeLinear"](call("DequantizeLinear", x, *inputs, **held)))


def are_same(one: CheckedTensor, other: CheckedTensor) -> bool:
    return one.shape == other.shape and bool((one.terms == other.terms).all())


# --- dtypes, scales, zero points ------------------------------------------------------------------


def test_the_dtype_is_that_of_the_zero_point_or_named_or_unsigned() -> None:
    assert quantized(X, HALF).dtype == UINT8
    assert quantized(X, HALF, output_dtype=INT16).dtype == INT16
    for dtype, kind in KINDS.items():
        assert quantized(X, HALF, zero(0, kind), output_dtype=dtype).dtype == dtype
    assert dequantized(Q, HALF).dtype == FLOAT
    assert dequantized(Q, known(0.5, np.float16)).dtype == FLOAT16
    assert dequantized(Q, HALF, output_dtype=FLOAT).dtype == FLOAT
    with pytest.raises(NoRule):
        dequantized(Q, HALF, output_dtype=FLOAT16)


def test_an_absent_zero_point_is_zero() -> None:
    assert are_same(quantized(X, HALF), quantized(X, HALF, zero(0)))
    assert not are_same(quantized(X, HALF), quantized(X, HALF, zero(1)))
    assert are_same(dequantized(Q, HALF), dequantized(Q, HALF, zero(0)))
    signed = free("signed", 2, 3, dtype=INT8)
    assert are_same(dequantized(signed, HALF), dequantized(signed, HALF, zero(0, np.int8)))


@pytest.mark.parametrize(
    ("held", "axis"), [({}, 1), ({"axis": 1}, 1), ({"axis": 0}, 0), ({"axis": -1}, 1)]
)
def test_scales_are_along_an_axis(held: dict[str, int], axis: int) -> None:
    size = (2, 3)[axis]
    numbers = np.arange(1, size + 1, dtype=np.float32)
    scale, zeros = known(numbers, np.float32), zero(np.arange(size))
    for rule, x in ((quantized, X), (dequantized, Q)):
        made = rule(x, scale, zeros, **held)
        assert made.shape == (2, 3)
        for at in range(size):
            alone = rule(x, known(numbers[at], np.float32), zero(at))
            assert (np.take(made.terms, at, axis) == np.take(alone.terms, at, axis)).all()
    with pytest.raises(Unproved, match="axis 2 of a tensor of rank 2"):
        quantized(X, scale, zeros, axis=2)


def test_a_scale_of_one_element_has_no_axis() -> None:
    """DequantizeLinear of a number: an axis of 1 would be out of range."""
    scalar = free("scalar", dtype=UINT8)
    assert dequantized(scalar, known([0.5], np.float32), zero([3])).shape == ()
    one = dequantized(Q, known([0.5], np.float32), zero([3]), axis=0)
    assert are_same(one, dequantized(Q, HALF, zero(3)))


def test_blocks_have_no_rule() -> None:
    for rule, x in ((quantized, X), (dequantized, Q)):
        with pytest.raises(NoRule):
            rule(x, HALF, zero(0), block_size=2)
        assert rule(x, HALF, zero(0), block_size=0).shape == (2, 3)


def test_what_is_read_counts() -> None:
    scale, point = free("scale"), free("point", dtype=UINT8)
    made = [
        quantized(X, scale, point), quantized(free("y", 2, 3), scale, point),
        quantized(X, free("other"), point), quantized(X, scale, free("p", dtype=UINT8)),
        quantized(X, scale, free("point", dtype=UINT16)), quantized(X, scale, point, saturate=0),
        quantized(free("x", 2, 3, dtype=FLOAT16), scale, point), dequantized(Q, scale, point),
        dequantized(free("o", 2, 3, dtype=UINT8), scale, point),
        dequantized(Q, scale, free("p", dtype=UINT8)), dequantized(Q, free("other"), point),
        dequantized(Q, free("scale", dtype=FLOAT16), point),
    ]  # fmt: skip
    assert len({int(each.terms["a"][0, 0]) for each in made}) == len(made)
    assert len(np.unique(made[0].terms)) == 6


def test_known_numbers_are_computed_by_the_runtime() -> None:
    made = quantized(known([0.6, 1.4, 200.0], np.float32), HALF, zero(3))
    assert made.known is not None
    assert (made.known.tolist(), made.dtype) == ([4, 6, 255], UINT8)
    back = dequantized(known([4, 6], np.uint8), HALF, zero(3))
    assert back.known is not None
    assert (back.known.tolist(), back.dtype) == ([0.5, 1.5], FLOAT)
    assert quantized(known([0.5], np.float32), free("scale"), zero(3)).known is None
    assert dequantized(known([4], np.uint8), free("scale"), zero(3)).known is None


# --- signed and unsigned --------------------------------------------------------------------------


def test_signed_integers_are_unsigned_ones_128_apart() -> None:
    signed, plain = quantized(X, HALF, zero(-125, np.int8)), quantized(X, HALF, zero(3))
    assert (signed.dtype, plain.dtype) == (INT8, UINT8)
    assert (flipped(signed.terms) == plain.terms).all()
    held = CheckedTensor(INT8, (2, 3), lambda: flipped(Q.terms))
    made = dequantized(held, HALF, zero(-125, np.int8))
    assert are_same(made, dequantized(Q, HALF, zero(3)))
    assert not are_same(made, dequantized(Q, HALF, zero(4)))


def test_unsigned_is_known_where_signed_is() -> None:
    made = unsigned(call("Any", X), known([-128, -1, 0, 127], np.int8))
    assert made.known is not None
    assert (made.known.tolist(), made.dtype) == ([0, 127, 128, 255], UINT8)
    assert made.known.dtype == np.uint8
    assert unsigned(call("Any", X), Q) is Q
    wide = free("wide", 2, dtype=INT16)
    assert unsigned(call("Any", X), wide) is wide


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.25, 3), (0.75, 5), (1.25, 5), (-0.25, 3), (-0.75, 1), (126.0, 255), (125.9, 255),
        (-1.5, 0), (-9.0, 0), (np.inf, 255), (-np.inf, 0), (0.1, 3), (0.3, 4),
    ],
)  # fmt: skip
def test_quotients_are_rounded_to_even_and_saturated(number: float, expected: int) -> None:
    """By 0.5 with a zero point of 3: 0.25 is 0.5 steps, which is rounded to 0."""
    assert rounded(np.float32(number), np.array(0.5), np.array(3, np.uint8)) == expected


def test_quotients_are_those_of_floats_of_32_bits() -> None:
    made = rounded(
        np.array([0.15], np.float64), np.array([0.1], np.float64), np.array([0], np.int8)
    )
    assert made == np.rint(np.float32(0.15) / np.float32(0.1))
    assert rounded(
        np.array([-129, -128.5], np.float32), np.array([1], np.float32), np.array([0], np.int8)
    ).tolist() == [
        -128,
        -128,
    ]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("scale", "point"), [(0.1, 3), (0.5, 0), (1e-3, 100), (7.0, 127)])
def test_integers_there_and_back_are_themselves(dtype: int, scale: float, point: int) -> None:
    x = free("integers", 2, 3, dtype=dtype)
    numbers = known(scale, np.float32), zero(point, KINDS[dtype])
    node = call("QuantizeLinear", dequantized(x, *numbers), *numbers)
    assert only(QUANTIZED["QuantizeLinear"](node)) is x
    assert node.axioms == {"quantized-again"}


@pytest.mark.parametrize(
    ("scale", "point"), [(0.25, 3), (0.5, 4), (1.0, 3), (-0.5, 3), (0.0, 3), (np.inf, 3)]
)
def test_by_other_numbers_they_are_not(scale: float, point: int) -> None:
    made = quantized(dequantized(Q, HALF, zero(3)), known(scale, np.float32), zero(point))
    assert made is not Q
    assert made.form is None


@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan])
def test_by_no_scale_at_all_they_are_not(scale: float) -> None:
    numbers = known(scale, np.float32), zero(3)
    assert quantized(dequantized(Q, *numbers), *numbers) is not Q


def test_scales_by_channel_come_back_along_one_axis() -> None:
    square = free("square", 2, 2, dtype=UINT8)
    scale, zeros = known([0.5, 0.25], np.float32), zero([3, 4])
    there = dequantized(square, scale, zeros, axis=0)
    assert quantized(there, scale, zeros, axis=0) is square
    assert quantized(there, scale, zeros, axis=1) is not square
    assert quantized(there, known([0.25, 0.5], np.float32), zeros, axis=0) is not square
    assert quantized(there, HALF, zero(3)) is not square
    # Of as many numbers, even if they are all the same.
    halves, threes = known([0.5, 0.5], np.float32), zero([3, 3])
    assert quantized(dequantized(square, halves, threes, axis=0), halves, threes, axis=0) is square
    for one, other in (
        ((halves, threes), (halves, zero([3]))),
        ((halves, zero([3])), (HALF, zero(3))),
        ((HALF, zero(3)), (halves, threes)),
    ):
        assert quantized(dequantized(square, *one, axis=0), *other, axis=0) is not square


def test_signed_and_unsigned_integers_are_no_round_trip() -> None:
    assert quantized(dequantized(Q, HALF, zero(3)), HALF, zero(3, np.int8)) is not Q


def test_only_integers_of_float_numbers_are_remembered() -> None:
    assert isinstance(dequantized(Q, HALF, zero(3)).form, Dequantized)
    assert dequantized(Q, free("scale"), zero(3)).form is None
    assert dequantized(Q, HALF, free("point", dtype=UINT8)).form is None
    assert dequantized(Q, known(0.5, np.float16), zero(3)).form is None
    assert dequantized(free("i", 2, dtype=INT32), HALF, known(0, np.int32)).form is None
    small = free("small", 2, dtype=FLOAT8)
    assert dequantized(small, HALF).form is None


# --- clamps before --------------------------------------------------------------------------------


def clipped(low: float | None, high: float | None) -> CheckedTensor:
    ends = [None if end is None else known(end, np.float32) for end in (low, high)]
    return only(EXTREMA["Clip"](call("Clip", X, *ends)))


@pytest.mark.parametrize(
    ("low", "high", "is_seen"),
    [
        (-1.5, 126.0, False), (-9.0, 999.0, False), (None, None, False), (-1.26, 125.76, False),
        (-1.0, 126.0, True), (-1.5, 125.0, True), (0.0, 999.0, True),
    ],
)  # fmt: skip
def test_bounds_beyond_the_integers_are_not_seen(
    low: float | None, high: float | None, is_seen: bool
) -> None:
    """By 0.5 with a zero point of 3, -1.5 is 0 and 126 is 255."""
    clip = clipped(low, high)
    assert isinstance(clip.form, Clamp)
    made, plain = quantized(clip, HALF, zero(3)), quantized(X, HALF, zero(3))
    assert are_same(made, plain) == (not is_seen)


def test_before_floats_of_8_bits_bounds_are_seen() -> None:
    point = zero(0, ml_dtypes.float8_e4m3fn)
    made = quantized(clipped(-9, 999), HALF, point)
    assert made.dtype == FLOAT8
    assert not are_same(made, quantized(X, HALF, point))


@pytest.mark.parametrize("scale", [-0.5, 0.0, np.inf, np.nan])
def test_by_other_scales_bounds_are_seen(scale: float) -> None:
    numbers = known(scale, np.float32), zero(3)
    assert not are_same(quantized(clipped(-9, 999), *numbers), quantized(X, *numbers))


def test_a_relu_before_integers_from_zero_on_is_not_seen() -> None:
    relu = only(EXTREMA["Relu"](call("Relu", X)))
    assert are_same(quantized(relu, HALF, zero(0)), quantized(X, HALF, zero(0)))
    assert not are_same(quantized(relu, HALF, zero(1)), quantized(X, HALF, zero(1)))
    assert not are_same(quantized(relu, free("s"), zero(0)), quantized(X, free("s"), zero(0)))


def test_operators_of_com_microsoft_are_the_same() -> None:
    for op in ("QuantizeLinear", "DequantizeLinear"):
        assert QUANTIZED[f"com.microsoft::{op}"] is QUANTIZED[op]
