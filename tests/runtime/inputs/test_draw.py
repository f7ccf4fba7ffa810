"""The values of one input: drawn from its constraints, by a rule that is named."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.graph.core.dtypes import float_info
from tiered.runtime.inputs import draw
from tiered.runtime.inputs.draw import Request, _range, _special_floats, make_tensor
from tiered.runtime.inputs.graph_facts import Fact


def request(
    *facts: Fact,
    name: str = "x",
    dtype: Any = np.int64,
    shape: tuple[int, ...] = (50,),
    **held: Any,
) -> Request:
    given = {"seed": 0, "binding": 0, "special": False, "longest": 7, "varied": False, **held}
    return Request(name, np.dtype(dtype), shape, facts, **given)


def drawn(*facts: Fact, **held: Any) -> tuple[Any, str]:
    asked = request(*facts, **held)
    array, rule = make_tensor(asked)
    assert (array.dtype, array.shape) == (asked.dtype, asked.shape)
    return array, rule


def span(array: Any) -> tuple[int, int]:
    return int(array.min()), int(array.max())


def index(low: int = 0, high: int | None = None, why: str = "Gather", **held: Any) -> Fact:
    return Fact("index", why, low, high, **held)


# --- streams --------------------------------------------------------------------------------------


def test_each_input_has_a_stream_of_its_own() -> None:
    plain, _ = drawn()
    assert np.array_equal(drawn()[0], plain)
    for held in ({"name": "z"}, {"seed": 1}, {"binding": 1}):
        assert not np.array_equal(drawn(**held)[0], plain)


def test_facts_are_found_by_their_kinds_in_order() -> None:
    one, two = Fact("divisor", "Div"), Fact("small", "Shift")
    asked = request(one, two)
    assert asked.fact("small") is two
    assert asked.fact("small", "divisor") is one
    assert asked.fact("index") is None


@pytest.mark.parametrize(
    ("dtype", "is_float", "is_wide"),
    [
        (np.float32, True, True), (np.float16, True, True), (ml_dtypes.bfloat16, True, True),
        (ml_dtypes.float8_e4m3fn, True, False), (np.complex64, True, False),
        (np.int8, False, False), (np.bool_, False, False), (ml_dtypes.int4, False, False),
    ],
)  # fmt: skip
def test_only_floats_are_varied_and_no_divisors(dtype: Any, is_float: bool, is_wide: bool) -> None:
    assert request(dtype=dtype).is_float is is_float
    assert request(dtype=dtype, varied=True).is_varied is is_wide
    assert not request(dtype=dtype).is_varied
    assert not request(Fact("divisor", "Div"), dtype=dtype, varied=True).is_varied


# --- prescribed values, strings, bools ------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "values", "expected"),
    [((3,), (2, 4), [2, 4, 4]), ((2,), (2, 4, 6), [2, 4]), ((), (5,), 5),
     ((2, 2), (7,), [[7, 7]] * 2), ((0,), (1,), [])],
)  # fmt: skip
def test_values_are_taken_in_order_and_the_last_one_repeats(
    shape: tuple[int, ...], values: tuple[float, ...], expected: Any
) -> None:
    array, rule = drawn(Fact("values", "Reshape target", values=values), shape=shape)
    assert (array.tolist(), rule) == (expected, "values for Reshape target")


def test_a_trip_count_is_no_more_than_what_its_body_indexes() -> None:
    count = Fact("values", "Loop trip count", values=(5,))
    assert drawn(count, shape=())[0] == 5
    assert drawn(count, index(0, 3), shape=())[0] == 3
    assert drawn(count, index(0, 9), shape=())[0] == 5
    assert drawn(count, index(0), shape=())[0] == 5
    other = Fact("values", "TopK k", values=(5,))
    assert drawn(other, index(0, 3), shape=())[0] == 5


def test_more_than_the_address_space_is_memory_that_there_is_not() -> None:
    for dtype in (np.float32, np.int8, np.bool_, object):
        for shape in ((2**40, 2**20), (2**62, 0, 2**62)):
            with pytest.raises(MemoryError, match="no array has the shape"):
                drawn(dtype=dtype, shape=shape)


def test_strings_are_words() -> None:
    array, rule = drawn(dtype=object, shape=(4, 5))
    assert rule == "strings"
    assert all(isinstance(word, str) for word in array.ravel())
    assert len({*array.ravel()}) > 2


def test_bools_hold_both_and_conditions_alternate() -> None:
    array, rule = drawn(dtype=bool, shape=(2,))
    assert (array.tolist(), rule) == ([True, False], "booleans")
    assert drawn(dtype=bool, shape=(1,))[0].shape == (1,)
    many, _ = drawn(dtype=bool, shape=(100,))
    assert 30 < many.sum() < 70
    assert many[:2].tolist() == [True, False]
    for binding, expected in ((0, True), (1, False), (2, True)):
        array, rule = drawn(dtype=bool, shape=(), binding=binding)
        assert (bool(array), rule) == (expected, "condition")


# --- masks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "facts", "name"),
    [
        (bool, (), "attention_mask"), (bool, (Fact("mask", "Where"),), "x"),
        (bool, (Fact("conjunct", "And"),), "x"), (np.int64, (), "MASK"),
        (np.float32, (), "mask"), (np.float32, (Fact("factor", "Mul"),), "mask"),
        (np.float32, (Fact("mask", "Where"),), "mask"),
    ],
)  # fmt: skip
def test_masks_are_ones_and_the_last_row_is_padded_in_odd_bindings(
    dtype: Any, facts: Sequence[Fact], name: str
) -> None:
    array, rule = drawn(*facts, dtype=dtype, name=name, shape=(2, 8))
    assert (array == 1).all()
    assert rule == "mask of ones"
    array, rule = drawn(*facts, dtype=dtype, name=name, shape=(2, 8), binding=1)
    assert array.astype(int).tolist() == [[1] * 8, [1] * 6 + [0] * 2]
    assert rule == "mask of ones, the last row padded by 2"
    for binding, padded in ((2, False), (3, True)):
        _, rule = drawn(*facts, dtype=dtype, name=name, shape=(2, 8), binding=binding)
        assert rule.endswith("padded by 2") == padded, binding


def test_a_mask_that_is_an_index_stays_in_its_table() -> None:
    assert drawn(index(0, 3), name="mask")[1] == "index: 0 <= x < 3 (Gather)"


@pytest.mark.parametrize("shape", [(8,), (2, 3), (0, 8), (2, 4, 8), ()])
def test_masks_of_other_shapes_are_not_padded(shape: tuple[int, ...]) -> None:
    array, rule = drawn(dtype=np.int64, name="mask", shape=shape, binding=1)
    assert (array == 1).all()
    assert rule == "mask of ones"


@pytest.mark.parametrize("kind", ["mask", "conjunct", "chooser"])
def test_integers_that_are_truth_values_are_ones(kind: str) -> None:
    array, rule = drawn(Fact(kind, "Where"))
    assert (array == 1).all()
    assert rule == "mask of ones (Where)"


def test_a_float_mask_that_is_added_is_zero() -> None:
    for fact in (Fact("addend", "Add"), Fact("mask", "Attention"), Fact("mask", "MultiHead")):
        array, rule = drawn(fact, dtype=np.float32, name="mask")
        assert not array.any()
        assert rule == "added mask of zeros"
    first = (Fact("factor", "Mul"), Fact("addend", "Add"))
    assert drawn(*first, dtype=np.float32, name="mask")[1] == "mask of ones"


# --- indices, positions, lengths ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0, 3, (0, 2)), (-3, 3, (-3, 2)), (2, 3, (2, 2)), (4, 2, (4, 4))]
)
def test_indices_are_between_their_bounds(low: int, high: int, expected: tuple[int, int]) -> None:
    array, rule = drawn(index(low, high), shape=(200,))
    assert span(array) == expected
    assert rule == f"index: {low} <= x < {max(high, low + 1)} (Gather)"


def test_an_index_of_an_unknown_axis_is_small() -> None:
    array, rule = drawn(index(1), shape=(200,))
    assert span(array) == (1, 2)
    assert rule == "index of an unknown axis: 1 <= x < 3 (Gather)"


def test_several_bounds_hold_together() -> None:
    array, _ = drawn(index(-5, 9), index(-2, 4), index(-9), shape=(400,))
    assert span(array) == (-2, 3)


def test_an_unsigned_index_is_not_negative() -> None:
    """Arithmetic before the Gather adds 3: -3 would be an index, and is 253 as uint8."""
    array, rule = drawn(index(-3, 2), dtype=np.uint8, shape=(200,))
    assert span(array) == (0, 1)
    assert rule == "index: 0 <= x < 2 (Gather)"
    array, _ = drawn(index(-3, 2), dtype=np.uint8, shape=(200,), varied=True)
    assert span(array) == (0, 1)
    assert (array[0], array[-1]) == (0, 1)
    assert span(drawn(index(-3), dtype=np.uint8, name="position")[0]) == (0, 49)


def test_varied_indices_reach_both_ends() -> None:
    array, _ = drawn(index(-4, 1000), varied=True, shape=(2, 3))
    assert (array[0, 0], array[-1, -1]) == (-4, 999)
    assert drawn(index(-4, 1000), varied=True, shape=(1,))[0].shape == (1,)
    assert drawn(index(-4, 1000), varied=True, shape=(2,))[0].tolist() == [-4, 999]
    assert drawn(index(-4, 1000), shape=(2,))[0].tolist() != [-4, 999]
    one = drawn(index(-4, 1000), varied=True, shape=(1,))[0]
    assert one.tolist() == drawn(index(-4, 1000), shape=(1,))[0].tolist()


def test_a_float_index_is_a_whole_number() -> None:
    array, rule = drawn(index(0, 5), dtype=np.float32)
    assert np.array_equal(array, np.floor(array))
    assert span(array) == (0, 4)
    assert rule == "index: 0 <= x < 5 (Gather)"
    assert span(drawn(index(0, 5), dtype=np.complex64)[0].real) == (0, 4)


def test_scatters_of_elements_hit_no_place_twice() -> None:
    fact = index(0, 6, "ScatterElements", dims=(1,))
    array, rule = drawn(fact, shape=(2, 6))
    assert [sorted(row) for row in array.tolist()] == [[0, 1, 2, 3, 4, 5]] * 2
    assert rule == "index, no place twice (ScatterElements)"
    array, rule = drawn(index(0, 5, "ScatterElements", dims=(1,)), shape=(2, 6))
    assert rule == "index: 0 <= x < 5 (ScatterElements)"
    assert drawn(fact, shape=())[1].startswith("index: ")
    for other in (index(1, 6, "ScatterElements", dims=(1,)), index(0, 6, "ScatterElements"),
                  index(0, 6, "Gather", dims=(1,))):  # fmt: skip
        assert drawn(other, shape=(2, 6))[1].startswith("index: ")


def test_scatters_of_tuples_hit_no_place_twice() -> None:
    fact = index(0, 3, "ScatterND", dims=(2, 3))
    array, rule = drawn(fact, shape=(3, 2, 2))
    tuples = {tuple(each) for each in array.reshape(-1, 2).tolist()}
    assert tuples == {(i, j) for i in range(2) for j in range(3)}
    assert rule == "index, no place twice (ScatterND)"
    for other in ((7, 2), (4, 3), ()):
        assert drawn(fact, shape=other)[1].startswith("index: ")
    assert drawn(fact, shape=(3, 2))[1] == "index, no place twice (ScatterND)"
    for other_fact in (index(1, 3, "ScatterND", dims=(2, 3)), index(0, 3, dims=(2, 3))):
        assert drawn(other_fact, shape=(3, 2))[1].startswith("index: ")
    assert drawn(index(0, 3, "ScatterND"), shape=(1, 2))[1].startswith("index: ")


@pytest.mark.parametrize(
    "name", ["position_ids", "Positions", "cache_position", "pos_ids", "posid"]
)
def test_positions_are_in_order(name: str) -> None:
    array, rule = drawn(name=name, shape=(2, 4))
    assert array.tolist() == [[0, 1, 2, 3]] * 2
    assert rule == "positions in order"
    assert drawn(index(2, 5), name=name, shape=(5,))[0].tolist() == [2, 3, 4, 2, 3]
    assert drawn(index(2), name=name, shape=(3,))[0].tolist() == [2, 3, 4]
    assert drawn(index(2, 2), name=name, shape=(2,))[0].tolist() == [2, 2]
    assert drawn(index(0, 3), name=name, shape=())[1].startswith("index: ")


@pytest.mark.parametrize("name", ["seq_len", "lengths", "x.lens", "seqlens", "len"])
def test_lengths_are_positive_and_one_is_full(name: str) -> None:
    array, rule = drawn(name=name, shape=(200,))
    assert span(array) == (1, 7)
    assert array[0] == 7
    assert rule == "length: 1 to 7"


def test_a_known_length_bounds_it() -> None:
    array, rule = drawn(Fact("length", "RNN", 0, 4), shape=(200,))
    assert (span(array), array[0], rule) == ((1, 3), 3, "length: 1 to 3")
    assert drawn(Fact("length", "RNN"), shape=(2,))[1] == "length: 1 to 7"
    assert drawn(Fact("length", "RNN", 0, 1), shape=(2,))[0].tolist() == [1, 1]
    assert drawn(Fact("length", "RNN"), shape=(0,))[0].size == 0
    assert drawn(name="lenses", shape=(2,))[1].startswith("integers")


# --- other integers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "held", "expected", "rule"),
    [
        ((), {"name": "sr"}, (16000, 16000), "sampling rate of 16000"),
        ((), {"name": "sample_rate", "binding": 1}, (8000, 8000), "sampling rate of 8000"),
        ((), {"name": "sr", "binding": 2}, (16000, 16000), "sampling rate of 16000"),
        ((), {"name": "sr", "binding": 3}, (8000, 8000), "sampling rate of 8000"),
        ((), {"name": "sr", "dtype": np.int32}, (16000, 16000), "sampling rate of 16000"),
        ((), {"name": "sr", "dtype": np.int16}, (-10, 10), "integers from -10 to 10"),
        ((Fact("size", "Tile"),), {}, (2, 2), "small size (Tile)"),
        ((Fact("divisor", "Div"),), {}, (1, 5), "divisor: 1 to 5"),
        ((Fact("small", "Shift"),), {}, (0, 3), "small: 0 to 3"),
        ((Fact("condition", "If"),), {}, (1, 1), "condition"),
        ((), {"name": "token_type_ids"}, (0, 1), "ids of an unknown table: 0 or 1"),
        ((), {"name": "input_ids"}, (0, 1), "ids of an unknown table: 0 or 1"),
        ((), {"name": "beam_idx"}, (0, 1), "ids of an unknown table: 0 or 1"),
        ((), {"name": "segments"}, (0, 1), "ids of an unknown table: 0 or 1"),
        ((), {}, (-10, 10), "integers from -10 to 10"),
        ((), {"dtype": np.uint64}, (0, 10), "integers from 0 to 10"),
        ((), {"dtype": np.uint8}, (0, 255), "integers from 0 to 255"),
        ((), {"dtype": np.int8}, (-128, 127), "integers from -128 to 127"),
        ((), {"dtype": ml_dtypes.int4}, (-8, 7), "integers from -8 to 7"),
    ],
)
def test_integers_have_their_range(
    facts: Sequence[Fact], held: dict[str, Any], expected: tuple[int, int], rule: str
) -> None:
    array, found = drawn(*facts, shape=(4000,), **held)
    assert (span(array), found) == (expected, rule)


def test_a_zero_point_is_the_same_everywhere() -> None:
    for dtype in (np.uint8, np.int8, ml_dtypes.uint4):
        array, rule = drawn(Fact("zero_point", "QuantizeLinear"), dtype=dtype)
        assert len(np.unique(array.astype(int))) == 1
        assert 0 <= int(array[0]) < 8
        assert rule == "zero point, the same everywhere"


def test_a_zero_point_of_two_bits_has_two_bits() -> None:
    for seed in range(8):
        fact = Fact("zero_point", "QuantizeLinear")
        array, _ = drawn(fact, dtype=ml_dtypes.int2, seed=seed)
        assert int(array[0]) in (0, 1), seed


def test_special_integers_are_the_ends_of_the_dtype() -> None:
    array, rule = drawn(special=True, dtype=np.int32)
    assert {-(2**31), 2**31 - 1, 0} <= {*array.tolist()}
    assert rule == "integers from -10 to 10, and the dtype's least and greatest"
    array, rule = drawn(Fact("dividend", "Div"), special=True, dtype=np.int32)
    assert span(np.abs(array))[1] <= 10
    assert rule == "integers from -10 to 10"
    assert drawn(special=True, shape=(0,))[1] == "integers from -10 to 10"
    few, _ = drawn(special=True, dtype=np.int32, shape=(3,))
    assert sum(abs(int(each)) > 10 or each == 0 for each in few) >= 1


# --- floats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "least", "rule"),
    [("positive", 0.5, "positive (Log)"), ("domain", 0.5, "positive (Log)"),
     (None, -9, "normal distribution")],
)  # fmt: skip
def test_floats_are_normal_or_positive(kind: str | None, least: float, rule: str) -> None:
    facts = [] if kind is None else [Fact(kind, "Log")]
    array, found = drawn(*facts, dtype=np.float32, shape=(500,))
    assert array.min() >= least
    assert (array.min() < 0) == (kind is None)
    assert array.std() > 0.3
    assert found == rule


def test_a_dtype_without_a_sign_is_positive() -> None:
    array, rule = drawn(dtype=ml_dtypes.float8_e8m0fnu)
    assert (array.astype(np.float32) > 0).all()
    assert rule == "positive (the dtype has no sign)"


def test_complex_numbers_have_both_parts() -> None:
    array, _ = drawn(dtype=np.complex64)
    assert array.real.std() > 0.3
    assert array.imag.std() > 0.3
    special, _ = drawn(dtype=np.complex64, special=True)
    assert np.isnan(special.view(np.float32)).any()


@pytest.mark.parametrize(("kind", "number"), [("condition", 1), ("zero_point", 0)])
def test_floats_that_decide_are_plain(kind: str, number: int) -> None:
    array, rule = drawn(Fact(kind, "If"), dtype=np.float32)
    assert (array == number).all()
    assert rule == ("condition" if number else "zero point of 0")


@pytest.mark.parametrize("high", [8, None])
def test_regions_of_an_image_have_their_lower_corner_first(high: int | None) -> None:
    fact = Fact("corners", "RoiAlign", high=high)
    array, rule = drawn(fact, dtype=np.float32, shape=(100, 4))
    most = 2 if high is None else high
    assert (array[:, 2:] >= array[:, :2] + most / 8 - 1e-5).all()
    assert array.min() >= 0
    assert array.max() <= most
    assert array.max() > most * 0.8
    assert rule == "corners of regions (RoiAlign)"
    assert drawn(fact, dtype=np.float32, shape=(100, 5))[1] == "normal distribution"


def test_varied_floats_are_of_other_kinds() -> None:
    array, rule = drawn(dtype=np.float32, shape=(40, 8), varied=True)
    plain, _ = drawn(dtype=np.float32, shape=(40, 8))
    assert not np.array_equal(array, plain)
    assert rule != "normal distribution"
    for shape, is_varied in (((0,), False), ((5,), False), ((6,), True), ((2, 2), True)):
        _, rule = drawn(dtype=np.float32, shape=shape, varied=True)
        assert (rule != "normal distribution") == is_varied, shape
    domain, rule = drawn(Fact("domain", "Log"), dtype=np.float32, shape=(40, 8), varied=True)
    assert domain.min() >= 0.5
    assert rule == "positive (Log)"


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn],
)
def test_special_floats_are_all_there(dtype: Any) -> None:
    array, rule = drawn(dtype=dtype, shape=(64,), special=True)
    wide = array.astype(np.float64)
    info = float_info(np.dtype(dtype))
    expected = {float(info.max), float(info.min), float(info.smallest_subnormal)}
    assert expected <= {*wide.tolist()}
    assert {-0.0, 0.0} <= {*wide.tolist()}
    assert (np.signbit(wide) & (wide == 0)).any()
    if info.bits >= 8:
        assert np.isnan(wide).any()
        assert np.isinf(wide).sum() == 2
    assert rule == "normal distribution, with special values"
    assert drawn(dtype=dtype, shape=(0,), special=True)[1] == "normal distribution"


def test_at_most_half_of_the_elements_are_special() -> None:
    for seed in range(4):
        array, _ = drawn(dtype=np.float32, shape=(8,), special=True, seed=seed)
        plain, _ = drawn(dtype=np.float32, shape=(8,), seed=seed)
        assert (array.view(np.int32) != plain.view(np.int32)).sum() == 4
    single = {
        str(drawn(dtype=np.float32, shape=(1,), special=True, seed=s)[0][0]) for s in range(9)
    }
    assert single == {"inf", "-inf", "nan", "0.0", "-0.0", "1e-45", "-1e-45", "3.4028235e+38",
                      "-3.4028235e+38"}  # fmt: skip


def test_a_range_is_that_of_the_dtype_or_of_a_draw() -> None:
    for dtype, expected in (
        (np.int8, (-128, 127)), (np.uint8, (0, 255)), (ml_dtypes.int4, (-8, 7)),
        (np.int64, (-(2**62), 2**62)), (np.uint64, (0, 2**62)), (np.float32, (-(2**31), 2**31)),
        (np.complex64, (-(2**31), 2**31)),
    ):  # fmt: skip
        assert _range(np.dtype(dtype)) == expected


def test_draws_have_all_that_is_between_their_bounds() -> None:
    many, _ = drawn(dtype=bool, shape=(10_000,))
    assert 4_500 < many.sum() < 5_500
    assert span(drawn(index(0, 1000), dtype=np.int8, shape=(4000,))[0]) == (0, 127)
    points = [
        int(drawn(Fact("zero_point", "Q"), dtype=np.uint8, seed=seed)[0][0]) for seed in range(150)
    ]
    assert set(points) == set(range(8))
    corners, _ = drawn(Fact("corners", "RoiAlign", high=8), dtype=np.float32, shape=(100, 4))
    assert corners[:, :2].min() < 0.5
    assert drawn(index(0, 3, "ScatterND"), shape=(1, 0))[0].shape == (1, 0)


def test_special_values_by_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(draw, "_scatter", lambda request, array, values: seen.append(values))
    drawn(special=True, dtype=np.int32)
    assert seen == [[-(2**31), 2**31 - 1, 0]]
    assert str(_special_floats(np.dtype(ml_dtypes.float4_e2m1fn))) == (
        "[0.0, -0.0, 0.5, -0.5, 6.0, -6.0]"
    )
    assert str(_special_floats(np.dtype(np.float16))[:5]) == "[inf, -inf, nan, 0.0, -0.0]"


def test_parts_of_complex_numbers_are_special_by_themselves() -> None:
    arrays = [drawn(dtype=np.complex64, special=True, seed=seed)[0] for seed in range(8)]
    assert any(np.isnan(array.imag).any() for array in arrays)
    assert any(np.isnan(array.real).any() for array in arrays)
    assert not any((np.isnan(array.imag) & np.isnan(array.real)).any() for array in arrays)


def test_varied_floats_are_of_the_bits_of_their_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def noting(normal: Any, bits: int, seed: int) -> tuple[Any, str]:
        seen.append((bits, seed))
        return normal, "noted"

    monkeypatch.setattr(draw, "varied", noting)
    for dtype, bits in ((np.float32, 32), (np.float16, 16), (ml_dtypes.bfloat16, 16)):
        assert drawn(dtype=dtype, varied=True, seed=5)[1] == "noted"
        assert seen.pop() == (bits, 5)
