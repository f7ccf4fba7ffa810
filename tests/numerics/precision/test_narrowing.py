"""Where a wide dtype may become a narrow one, and how constants are converted."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.small import made_by, named, parsed
from tiered import DataType, Model, UsageError
from tiered.numerics.precision import narrowing as module
from tiered.numerics.precision.narrowing import (
    FloatNarrowing,
    has_operator,
    is_chosen,
    is_in_unit,
    narrow,
    unmatched,
    why_no_weight,
    why_skipped,
)

HALF, BFLOAT, E4M3 = DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT8E4M3FN
TEXT = """(float[2] x) => (float[2] y) {
    [first_one] a = Relu(x)  [first_two] b = com.microsoft.Gelu(a)  [last] y = Neg(b) }"""


# --- what a user says of nodes --------------------------------------------------------------------


def test_an_operator_has_its_name_in_any_domain_or_with_one() -> None:
    node = made_by(parsed(TEXT), "b")
    assert has_operator(node, ("Gelu",))
    assert has_operator(node, ("com.microsoft::Gelu",))
    assert not has_operator(node, ("Relu", "acme::Gelu"))
    assert not has_operator(made_by(parsed(TEXT), "a"), ("Gelu",))


def test_a_node_is_chosen_by_its_operator_or_its_name() -> None:
    node = made_by(parsed(TEXT), "a")
    assert is_chosen(node, ("Relu",), ())
    assert is_chosen(node, (), ("last", "first_*"))
    assert not is_chosen(node, ("Gelu",), ("first", "*_two"))


def test_why_a_node_is_skipped_names_the_operator_first() -> None:
    node = made_by(parsed(TEXT), "a")
    assert why_skipped(node, ("Relu",), ("first_*",)) == "Relu is skipped"
    assert why_skipped(node, ("Gelu",), ("first_*",)) == "the node is skipped"
    assert why_skipped(node, ("Gelu",), ("last",)) == ""


def test_operators_that_no_node_has_are_named_once() -> None:
    model = parsed(TEXT)
    assert list(unmatched(model, (), ())) == []
    assert list(unmatched(model, ("Relu", "Gelu", "com.microsoft::Gelu"), ("fir*", "last"))) == []
    said = list(unmatched(model, ("Sin", "Relu", "Cos", "Sin"), ()))
    assert said == ["no node has the operator Sin or Cos"]


def test_what_exists_nowhere_is_an_error() -> None:
    model = parsed(TEXT)
    with pytest.raises(UsageError, match="there is no operator 'Rellu'; did you mean 'Relu'"):
        list(unmatched(model, ("Rellu",), ()))
    with pytest.raises(UsageError) as caught:
        list(unmatched(model, (), ("last", "lst")))
    assert str(caught.value).endswith("has the name 'lst'; did you mean 'last'?")


# --- weights that callers may feed ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ir", "why"), [(3, "as all are before IR 4"), (4, "which callers may feed")]
)
def test_a_weight_with_a_default_is_an_input(ir: int, why: str) -> None:
    model = parsed(
        f"""<ir_version: {ir}, opset_import: ["" : 9]> g
        (float[2] x, float[2] w = {{1,2}}) => (float[2] y) {{ y = Add(x, w) }}"""
    )
    assert why_no_weight(named(model, "w")) == (
        f"the weight is an input, {why}: "
        "`tiered optimize --require remove_initializer_from_input` makes a constant of it"
    )
    assert why_no_weight(named(model, "x")) == ""
    assert why_no_weight(None) == ""


# --- floats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Relu(x)", ""),
        ("QuantizeLinear(x, s)", "inside a Q/DQ unit"),
        ("DequantizeLinear(q, s)", "inside a Q/DQ unit"),
        ("Add(d, x)", "inside a Q/DQ unit"),
        ("RandomNormalLike(x)", "other numbers would be drawn, and onnxruntime has no kernel"),
        ("Dropout(x)", ""),
        ("acme.RandomNormalLike(x)", ""),
    ],
)
def test_a_node_keeps_its_type_for_a_reason(line: str, reason: str) -> None:
    model = parsed(
        f"""(float[2] x, uint8[2] q) => (float[2] y) <float s = {{1}}> {{
        d = DequantizeLinear(q, s)  r = Relu(d)  y = {line} }}"""
    )
    node = made_by(model, "y")
    assert FloatNarrowing(HALF).keep(node) == reason
    assert FloatNarrowing(HALF).keep(made_by(model, "r")) == "inside a Q/DQ unit"
    assert is_in_unit(node) == (reason == "inside a Q/DQ unit")
    assert FloatNarrowing(HALF).refuse(named(model, "x")) == ""


def test_a_sparse_constant_stays() -> None:
    weight = helper.make_sparse_tensor(
        helper.make_tensor("w", 1, [1], [2.0]), helper.make_tensor("i", 7, [1], [1]), [3]
    )
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [3])],
        [helper.make_tensor_value_info("y", 1, [3])],
        sparse_initializer=[weight],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = Model.from_proto(made)
    assert FloatNarrowing(HALF).keep(made_by(model, "y")) == "a sparse constant"


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def test_numbers_are_rounded_to_the_nearest_ties_to_even() -> None:
    # float16 has 11 bits: of 2048 and 2050 the even one is nearest to 2049.
    found, is_clamped = narrow(floats(2049, 2051, 1 / 3, -0.0, 1e-9), HALF)
    assert found.dtype == np.float16
    assert found.tolist() == [2048, 2052, float(np.float16(1 / 3)), 0, 0]
    assert np.signbit(found).tolist() == [False, False, False, True, False]
    assert not is_clamped


@pytest.mark.parametrize(
    ("low", "largest"), [(HALF, 65504), (E4M3, 448), (BFLOAT, 3.3895313892515355e38)]
)
def test_finite_numbers_beyond_the_range_are_the_largest_ones(
    low: DataType, largest: float
) -> None:
    next_up = float(np.nextafter(np.float32(largest), np.float32(np.inf)))
    for sign in (1, -1):
        found, is_clamped = narrow(floats(sign * largest), low)
        assert (found.astype(np.float64).tolist(), is_clamped) == ([sign * largest], False)
        found, is_clamped = narrow(floats(sign * next_up), low)
        assert (found.astype(np.float64).tolist(), is_clamped) == ([sign * largest], True)


def test_infinities_and_nan_stay() -> None:
    for low in (HALF, BFLOAT):
        found, is_clamped = narrow(floats(np.inf, -np.inf, np.nan), low)
        wide = found.astype(np.float32)
        assert wide[:2].tolist() == [np.inf, -np.inf]
        assert np.isnan(wide[2])
        assert not is_clamped


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 2)


@pytest.mark.parametrize("place", range(5))
@pytest.mark.usefixtures("few_at_once")
def test_a_large_array_is_converted_in_parts(place: int) -> None:
    numbers = np.arange(5, dtype=np.float32)
    numbers[place] = 1e6
    found, is_clamped = FloatNarrowing(HALF).converted(numbers.reshape(1, 5))
    expected = np.minimum(numbers, 65504).reshape(1, 5)
    np.testing.assert_array_equal(found, expected.astype(np.float16))
    assert is_clamped


def test_a_scalar_and_no_numbers_keep_their_shape() -> None:
    assert narrow(np.array(3, np.float32), HALF)[0].shape == ()
    found, is_clamped = narrow(np.zeros((0, 2), np.float32), HALF)
    assert (found.shape, is_clamped) == ((0, 2), False)
