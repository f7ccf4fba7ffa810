"""Comparing outputs: bitwise for every dtype, tolerances, and the reasons that are given."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.runtime.compare.outputs import RANDOM_DRAW, Comparison, Numerics, compare, left_out
from tiered.runtime.compare.tensors import OutputDifference
from tiered.support.errors import UsageError
from tiered.support.numerics import QUANTIZED, Promise

f32 = partial(np.array, dtype=np.float32)
f64 = partial(np.array, dtype=np.float64)
i32 = partial(np.array, dtype=np.int32)
i64 = partial(np.array, dtype=np.int64)
u64 = partial(np.array, dtype=np.uint64)
u8 = partial(np.array, dtype=np.uint8)

FLOATS = [
    np.float16,
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
]
SIGNLESS_NAN_FLOATS = [ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz]
INTEGERS = [
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2),
]


def one(
    expected: Any, actual: Any, numerics: Promise | str = "exact", **limits: Any
) -> OutputDifference:
    (output,) = compare({"y": expected}, {"y": actual}, numerics, **limits).outputs
    return output


@pytest.mark.parametrize("dtype", [*FLOATS, *SIGNLESS_NAN_FLOATS, *INTEGERS, bool])
def test_equal_arrays_of_every_dtype_agree(dtype: Any) -> None:
    x = np.array([[0, 1], [1, 0]]).astype(dtype)
    assert one(x, x.copy()).ok


@pytest.mark.parametrize("dtype", [*FLOATS, *SIGNLESS_NAN_FLOATS, *INTEGERS, bool])
def test_one_changed_element_of_every_dtype_is_found(dtype: Any) -> None:
    x = np.array([[0, 1], [1, 0]]).astype(dtype)
    y = x.copy()
    y[1, 1] = 1
    output = one(x, y)
    assert not output.ok
    assert output.max_abs == 1.0
    assert "1 of 4 elements differ" in output.reason
    assert "at [1,1]" in output.reason


@pytest.mark.parametrize("dtype", FLOATS)
def test_negative_zero_is_not_zero(dtype: Any) -> None:
    output = one(np.array([1, 0.0]).astype(dtype), np.array([1, -0.0]).astype(dtype))
    assert not output.ok
    assert output.reason == "1 of 2 elements differ in the sign of zero, first at [1]"
    assert output.max_abs == 0.0


def test_negative_zero_of_four_bits_is_not_zero() -> None:
    zeros = np.array([0.0, -0.0]).astype(ml_dtypes.float4_e2m1fn)
    assert not one(zeros, zeros[::-1]).ok
    assert one(zeros, zeros.copy()).ok


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_nan_equals_every_nan(dtype: Any) -> None:
    x = np.array([np.nan, 1.0]).astype(dtype)
    assert one(x, np.copysign(x, np.array([-1, 1]).astype(dtype))).ok


def test_nan_payload_does_not_count() -> None:
    quiet, other = np.array([0x7FC00000, 0xFF800001], np.uint32).view(np.float32)
    assert one(np.array([quiet]), np.array([other])).ok


def test_eight_bit_float_without_infinity_compares_its_nan() -> None:
    x = np.array([np.nan, 448.0]).astype(ml_dtypes.float8_e4m3fn)
    assert one(x, x.copy()).ok
    assert one(x, x[::-1]).nan_mismatch == 2


def test_nan_that_appears_is_counted_and_named() -> None:
    output = one(f32([1, 2, np.nan]), f32([1, np.nan, 3]))
    assert output.nan_mismatch == 2
    assert output.reason.startswith("a number became NaN at [1] (2 of 3 elements differ")
    gone = one(f32([np.nan, 2]), f32([1, 3]))
    assert gone.reason == "NaN became a number at [0] (1 of 2 elements differ in being NaN; " + (
        "1 others differ)"
    )


@pytest.mark.parametrize("numerics", list(Numerics))
def test_infinities_must_stay_in_every_class(numerics: Numerics) -> None:
    x = f32([np.inf, -np.inf, 1])
    assert one(x, x.copy(), numerics).ok
    for y in (f32([-np.inf, -np.inf, 1]), f32([3e38, -np.inf, 1])):
        output = one(x, y, numerics)
        assert not output.ok
        assert output.max_abs == np.inf


@pytest.mark.parametrize("numerics", list(Numerics))
def test_nan_pattern_must_stay_in_every_class(numerics: Numerics) -> None:
    assert not one(f32([np.nan, 1]), f32([0, 1]), numerics).ok
    assert one(f32([np.nan, 1]), f32([np.nan, 1]), numerics).ok


@pytest.mark.parametrize("numerics", list(Numerics))
def test_dtype_must_stay_in_every_class(numerics: Numerics) -> None:
    output = one(f32([1]), f64([1]), numerics)
    assert output.reason == "dtype float32 became float64"


@pytest.mark.parametrize("numerics", list(Numerics))
def test_shape_is_compared_without_broadcasting(numerics: Numerics) -> None:
    output = one(np.ones((2, 1), np.float32), np.ones((2, 3), np.float32), numerics)
    assert output.reason == "shape [2, 1] became [2, 3]"


def test_bits_of_same_width_but_other_dtype_differ() -> None:
    x = np.array([1, 2], ml_dtypes.bfloat16)
    assert one(x, x.view(np.uint16)).reason == "dtype bfloat16 became uint16"


@pytest.mark.parametrize(
    ("dtype", "bits"), [(np.float16, 16), (ml_dtypes.bfloat16, 16), (np.float32, 32), (float, 64)]
)
def test_ulp_counts_representable_numbers(dtype: Any, bits: int) -> None:
    x = np.array([1.0, -1.0]).astype(dtype)
    y = (x.view(f"u{bits // 8}") + np.array([3, 5]).astype(f"u{bits // 8}")).view(dtype)
    assert one(x, y).max_ulp == 5


def test_ulp_counts_across_zero() -> None:
    tiny = np.float32(1.4e-45)
    assert one(np.array([tiny]), np.array([-tiny])).max_ulp == 2
    assert one(f32([0.0]), f32([-0.0])).max_ulp == 0


def test_ulp_of_the_widest_gap_does_not_overflow() -> None:
    ends = np.array([np.finfo(np.float64).max])
    assert one(ends, -ends).max_ulp == 2 * int(ends.view(np.uint64)[0])


def test_metrics_of_a_small_difference() -> None:
    output = one(f32([1, 2, 0]), f32([1, 2.5, 0.25]))
    assert output.max_abs == 0.5
    assert output.max_rel == 0.25
    assert output.cosine == pytest.approx(6 / np.sqrt(5 * (1 + 6.25 + 0.0625)))


def test_a_denormal_has_the_tolerance_of_the_least_normal_number() -> None:
    x = np.array([1e-42], np.float32)
    step = np.spacing(x)
    assert one(x, x + step, "reassociating").ok
    assert not one(x, x + np.float32(1e-41), "reassociating").ok
    assert not one(x, x + step, "exact").ok


def test_cosine_survives_huge_and_tiny_numbers() -> None:
    assert one(np.array([1e300, 0.0]), np.array([0.0, 1e300])).cosine == 0.0
    assert one(np.array([1e-300, 0.0]), np.array([2e-300, 0.0])).cosine == 1.0
    zero = f32([0])
    assert [one(a, b).cosine for a, b in ((zero, zero + 1), (zero + 1, zero))] == [0.0, 0.0]


def test_reason_counts_and_places_the_largest() -> None:
    x = np.zeros((2, 256), np.float32)
    y = x.copy()
    y[0, 4], y[1, 0], y[1, 9] = 3.1e-2, 1e-3, -2e-2
    assert one(x, y).reason == "3 of 512 elements differ, max abs 3.1e-02 at [0,4]"


def test_scalars_and_empty_arrays() -> None:
    assert one(np.float32(1), np.float32(1)).ok
    assert one(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).ok
    assert one(np.float32(1), np.float32(2)).reason.endswith("at []")


def test_noncontiguous_arrays() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert one(x.T, x.T.copy()).ok
    assert not one(x.T, x.T + 1).ok


def test_float32_tolerance_scales_with_the_largest_expected() -> None:
    x = f32([1000.0, 0.0])
    assert one(x, f32([1000.0, 0.9e-2]), "reassociating").ok
    assert not one(x, f32([1000.0, 1.2e-2]), "reassociating").ok
    assert one(f32([0.0]), f32([0.9e-5]), "reassociating").ok
    assert not one(f32([0.0]), f32([1.2e-5]), "reassociating").ok


def test_infinities_do_not_widen_the_tolerance() -> None:
    x = f32([np.inf, 0.0])
    assert not one(x, f32([np.inf, 1.0]), "reassociating").ok


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        (np.float64, 1 + 1e-9, 1 + 1e-8),
        (np.float32, 1 + 1e-4, 1 + 1e-3),
        (np.float16, 1 + 1e-2, 1 + 5e-2),
        (ml_dtypes.bfloat16, 1 + 4e-2, 1 + 1e-1),
        (ml_dtypes.float8_e4m3fn, 1.125, 1.5),
    ],
)
def test_each_dtype_has_its_tolerance(dtype: Any, near: float, far: float) -> None:
    x = np.array([1.0]).astype(dtype)
    assert one(x, np.array([near]).astype(dtype), "reassociating").ok
    assert not one(x, np.array([far]).astype(dtype), "reassociating").ok


def test_doubles_that_were_floats_have_the_tolerance_of_floats() -> None:
    narrow = np.array([0.1, 1.5, np.inf], np.float32)
    near = (narrow * np.float32(1 + 1e-5)).astype(np.float64)
    assert compare({"y": narrow.astype(np.float64)}, {"y": near}, "reassociating").ok
    wide = np.array([0.1, 1.5, np.inf])
    assert not compare({"y": wide}, {"y": wide * (1 + 1e-5)}, "reassociating").ok
    whole = np.array([100_000.0, 2.0])
    assert not compare({"y": whole}, {"y": whole + np.array([1.0, 0.0])}, "reassociating").ok


def test_floats_that_were_halves_have_the_tolerance_of_halves() -> None:
    half = np.linspace(0.1, 2, 64).astype(np.float16)
    near = np.nextafter(half, np.float16(3)).astype(np.float32)
    wide = half.astype(np.float32)
    assert compare({"y": wide}, {"y": near}, "reassociating").ok
    assert not compare({"y": wide}, {"y": near + np.float32(1e-6)}, "reassociating").ok
    for step in (1, 1 / 128):
        steps = np.arange(1, 1000, dtype=np.float32) * np.float32(step)
        assert not compare({"y": steps}, {"y": steps + np.float32(step)}, "reassociating").ok


def test_negative_zero_is_within_tolerance() -> None:
    assert one(f32([0.0]), f32([-0.0]), "reassociating").ok


def test_looser_classes_allow_more() -> None:
    x, y = f32([1.0]), f32([1.005])
    assert [one(x, y, n).ok for n in Numerics] == [False, False, True, True]
    assert one(x, f32([1.1]), "lossy").ok
    assert not one(x, f32([1.5]), "lossy").ok


def test_explicit_tolerance_wins() -> None:
    x, y = f32([1.0]), f32([1.005])
    assert not one(x, y, "approximate", rtol=1e-6, atol=0).ok
    assert one(x, y, "reassociating", rtol=0.1).ok


def test_cosine_can_judge_instead() -> None:
    x = f32([1, 2, 3, 0.0])
    assert one(x, x * 2, "lossy", min_cosine=0.999).ok
    failed = one(x, x[::-1], "lossy", min_cosine=0.999)
    assert failed.reason.startswith("cosine 0.")
    assert one(x[1:2], -x[1:2], "lossy", min_cosine=-1).ok
    worse = one(x, f32([-1, -2, -3, np.inf]), "lossy", min_cosine=0.9)
    assert worse.reason.startswith("1 of 4 elements differ")
    assert not one(x, f32([1, 2, np.nan, 0]), "lossy", min_cosine=0.1).ok


def test_exact_takes_no_tolerance() -> None:
    with pytest.raises(UsageError, match="no tolerance"):
        compare({}, {}, rtol=1e-3)
    with pytest.raises(UsageError, match="no tolerance"):
        compare({}, {}, atol=0)
    with pytest.raises(UsageError, match="not by cosine"):
        compare({}, {}, "reassociating", min_cosine=0.9)
    for cosine in (1.5, -1.5):
        with pytest.raises(UsageError, match=f"a cosine is from -1 to 1, not {cosine}"):
            compare({}, {}, "lossy", min_cosine=cosine)
    assert compare({}, {}, "lossy", min_cosine=-1).ok


@pytest.mark.parametrize("numerics", [Numerics.REASSOCIATING, Numerics.APPROXIMATE])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
def test_integers_and_booleans_stay_exact(numerics: Numerics, dtype: Any) -> None:
    assert not one(np.array([0, 1], dtype), np.array([1, 1], dtype), numerics).ok


def test_a_promise_may_allow_steps_of_a_quantised_integer() -> None:
    two = Promise(Numerics.REASSOCIATING, steps=2)
    assert one(u8([7, 9]), u8([9, 9]), two).ok
    assert not one(u8([7, 9]), u8([10, 9]), two).ok
    assert not one(i32([7]), i32([8]), two).ok
    assert str(two) == "reassociating (integers within 2)"


def test_operators_of_integers_are_judged_by_the_mean_difference() -> None:
    x = f32([100, -50, 3, 0])
    assert one(x, x + f32([3, 0, 0, 0]), QUANTIZED).ok
    assert not one(x, x + f32([9, 0, 0, 0]), QUANTIZED).ok
    assert not one(x, f32([100, np.nan, 3, 0]), QUANTIZED).ok


def test_lossy_allows_one_step_of_a_quantised_integer() -> None:
    assert one(u8([7, 9]), u8([8, 9]), "lossy").ok
    assert not one(u8([7, 9]), u8([9, 9]), "lossy").ok
    assert not one(i32([7]), i32([8]), "lossy").ok
    assert not one(np.array([True]), np.array([False]), "lossy").ok


def test_integer_difference_is_exact_at_the_ends() -> None:
    ends = np.iinfo(np.int64)
    output = one(i64([ends.min]), i64([ends.max]))
    assert output.max_abs == 2.0**64
    assert "max abs 18446744073709551615 at [0]" in output.reason
    assert one(u64([0]), u64([2**64 - 1])).max_abs == 2.0**64


def test_large_integers_that_a_float_cannot_tell_apart() -> None:
    assert one(i64([2**60]), i64([2**60 + 1])).max_abs == 1.0


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_compare_part_by_part(dtype: Any) -> None:
    x = np.array([1 + 2j, complex(np.nan, 0)]).astype(dtype)
    assert one(x, x.copy()).ok
    assert not one(x, np.conj(x)).ok
    near = x[:1] * dtype(1 + 1e-12)
    assert one(x[:1], near, "reassociating").ok
    assert not one(np.array([1 + 0j], dtype), np.array([complex(1, -0.0)], dtype)).ok


def test_strings_compare_by_content_in_any_dtype() -> None:
    x = np.array(["a", "naïve"], dtype=object)
    assert one(x, np.array(["a", "naïve"])).ok
    assert one(x, np.char.encode(np.array(["a", "naïve"]), "utf-8")).ok
    output = one(x, np.array(["a", "b"], dtype=object))
    assert output.reason == "1 of 2 elements differ, first 'naïve' became 'b' at [1]"
    assert one(x, f32([1, 2])).reason == "dtype string became float32"


def test_issue_40_an_output_of_nan_alone_is_not_compared() -> None:
    nothing, some = f32([np.nan, np.nan]), f32([np.nan, 1])
    for numerics in ("exact", "lossy"):
        output = one(nothing, nothing.copy(), numerics)
        assert (output.ok, output.note) == (True, "not comparable: all its elements are NaN")
        assert one(some, some.copy(), numerics).note == ""
        assert one(f32([]), f32([]), numerics).note == ""
        assert not one(nothing, some, numerics).ok
    assert one([nothing, nothing], [nothing, nothing]).note
    assert one([nothing, some], [nothing, some]).note == ""
    alone = compare({"y": nothing}, {"y": nothing})
    assert str(alone).endswith("; y (not comparable: all its elements are NaN)")
    assert str(alone.outputs[0]) == "y: not comparable: all its elements are NaN"
    assert not one(some, nothing).ok


def test_what_one_sample_has_numbers_of_is_not_left_out() -> None:
    nothing, some = f32([np.nan]), f32([1])
    samples = [{"y": nothing, "z": nothing}, {"y": some, "z": nothing}]
    compared = [compare(sample, sample) for sample in samples]
    assert left_out(compared) == ("z (not comparable: all its elements are NaN)",)
    assert left_out(compared[::-1]) == left_out(compared)


def test_sequences_compare_element_by_element() -> None:
    x = [f32([1]), f32([2, 3])]
    assert one(x, [a.copy() for a in x]).ok
    output = one(x, [f32([1]), f32([2, 4])])
    assert output.reason == "element 1: 1 of 2 elements differ, max abs 1.0e+00 at [1]"
    assert output.max_abs == 1.0
    assert one(x, x[:1]).reason == "length 2 became 1"
    assert one(x, [f32([2]), f32([3, 3])]).reason.startswith("element 0: ")
    assert one([], []).ok


def test_none_equals_only_none() -> None:
    assert one(None, None).ok
    assert one(None, f32([1])).reason == "None became a tensor"
    assert one([None], [[]]).reason == "element 0: None became a sequence"


def test_maps_compare_by_key() -> None:
    assert one({"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}).ok
    assert one({"a": 1.0}, {"a": 1.5}).reason.startswith("key 'a': 1 of 1 elements differ")
    assert one({"a": 1.0}, {"b": 1.0}).reason == "lost key 'a'; new key 'b'"
    assert one([{1: np.float32(2)}], [{1: np.float32(2)}]).ok


def test_outputs_that_come_and_go_are_named() -> None:
    result = compare({"a": f32([1])}, {"b": f32([1])})
    assert [str(o) for o in result.outputs] == ["a: is missing", "b: was not there before"]
    assert not result.ok


def test_comparison_reads_as_a_sentence() -> None:
    x = {"y": f32([1]), "z": i64([1])}
    assert str(compare(x, x)) == "2 outputs agree (exact, max abs 0.0e+00)"
    bad = compare(x, {"y": f32([2]), "z": i64([3])})
    assert str(bad).splitlines() == [
        "y: 1 of 1 elements differ, max abs 1.0e+00 at [0]",
        "z: 1 of 1 elements differ, max abs 2 at [0]",
    ]
    assert bad.worst is not None
    assert bad.worst.name == "z"
    assert Comparison([], Numerics.EXACT).worst is None


def test_numeric_class_is_its_text() -> None:
    assert Numerics("lossy") is Numerics.LOSSY
    assert f"{Numerics.EXACT}" == "exact"
    with pytest.raises(ValueError, match="sloppy"):
        compare({}, {}, "sloppy")


def test_lossy_floats_of_fewer_bits_are_compared_in_the_expected_dtype() -> None:
    x = f32([1.0001, 70000])
    half = np.array([1, np.inf], np.float16)
    (row,) = compare({"y": x[:1]}, {"y": half[:1]}, "lossy").outputs
    assert row.ok
    assert row.max_abs == pytest.approx(1e-4, rel=1e-2), "the expected side is not rounded"
    assert not compare({"y": x}, {"y": half}, "lossy").ok, "an overflow is a difference"
    for numerics in ("exact", "reassociating", "approximate"):
        found = compare({"y": x[:1]}, {"y": half[:1]}, numerics).outputs[0].reason
        assert found == "dtype float32 became float16"
    assert not compare({"y": half[:1]}, {"y": x[:1]}, "lossy").ok
    wide = np.array([1], ml_dtypes.bfloat16)
    for before, after in (
        *((x[:1], np.array([1], np.int8)), (i64([1]), half[:1])),
        (half[:1], wide),
    ):
        reason = compare({"y": before}, {"y": after}, "lossy").outputs[0].reason
        assert reason == f"dtype {before.dtype} became {after.dtype}"


def test_of_random_draws_only_kinds_and_dtypes_are_compared() -> None:
    def drawn(before: Any, after: Any) -> OutputDifference:
        return one(before, after, random=["y"])

    assert (drawn(f32([1]), f32([2])).ok, drawn(f32([1]), f32([2])).note) == (True, RANDOM_DRAW)
    assert drawn(f32([1]), f64([1])).reason == "float32 became float64"
    assert drawn([f32([1])], [f32([2]), f32([3])]).ok
    assert drawn(None, f32([1])).reason == "None became float32"
    assert one(f32([1]), f32([2]), random=["z"]).note == ""
    missing = compare({"y": f32([1])}, {}, random=["y"]).outputs[0]
    assert missing.reason == "is missing"


def test_the_limits_of_the_target_are_enough() -> None:
    promise = Promise(Numerics.REASSOCIATING, target=Promise(Numerics.REASSOCIATING, rtol=0.1))
    assert one(f32([1]), f32([1.05]), promise).ok
    assert not one(f32([1]), f32([1.05]), Promise(Numerics.REASSOCIATING)).ok
    assert not one(f32([1]), f32([1.5]), promise).ok


def test_a_notebook_shows_a_verdict_for_each_output() -> None:
    some, nothing = f32([1]), f32([np.nan])
    html = compare({"y": some, "z": nothing}, {"y": some, "z": nothing})._repr_html_()
    assert "The outputs agree" in html
    assert ">ok<" in html
    assert "not comparable: all its elements are NaN" in html
    html = compare({"y": some}, {"y": some + 1})._repr_html_()
    assert "The outputs differ" in html
    assert "differs: 1 of 1 elements differ" in html


def test_the_tolerance_of_a_class_has_no_unit() -> None:
    """BatchNormalization with a variance of 1e6 in halves: outputs of 1e-3, 290 % off."""
    x = f32([1e-3, -2e-3, 5e-4])
    for unit in (1.0, 1e-6, 1e6):
        assert not one(x * unit, x * np.float32(3.9 * unit), "lossy").ok
        assert one(x * unit, x * np.float32(1.05 * unit), "lossy").ok
        assert not one(x * unit, (x + np.float32(1e-6)) * unit, "reassociating").ok
    assert one(x, x + np.float32(1e-2), "lossy", atol=0.02).ok  # what a caller gives is absolute
