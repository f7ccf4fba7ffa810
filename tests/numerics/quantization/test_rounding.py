"""Weights of 8 bits that are rounded for data: what that gains, and what stays to nearest."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import numpy_helper

from tiered import Model, QuantizationSettings, quantize_model
from tiered.numerics.precision.few_bits.sampled_operands import WeightOperand
from tiered.numerics.quantization import rounding
from tiered.numerics.quantization.rounding import Rounding, Rows, compensated
from tiered.numerics.quantization.scales import Weight
from tiered.numerics.quantization.settings import RoundingMode
from tiered.numerics.quantization.weight_pairs import Order, neighbours_of, within_pairs
from tiered.runtime import run
from tiered.testing import parse

Array = np.ndarray[Any, Any]


def drawn(*shape: int, seed: int = 0) -> Array:
    numbers: Array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numbers


def directed(rows: int, columns: int, seed: int) -> Array:
    """Return data that has almost all of its energy in a few directions."""
    few: Array = drawn(rows, 3, seed=seed) @ drawn(3, columns, seed=9)
    return few + 0.01 * drawn(rows, columns, seed=seed + 1)


def rows_of(weight: Array, *, pairs: bool = False) -> tuple[Rows, Array]:
    """Return a weight [groups, rows, columns], and its codes to nearest."""
    scales = np.abs(weight).max(2) / 127
    codes = np.rint(weight / scales[..., None])
    columns = weight.shape[2]
    found = neighbours_of((1, columns), 0, [Order((0, 1), 1)]) if pairs else []
    if pairs:
        codes = within_pairs(codes.reshape(-1, columns), found).reshape(weight.shape)
    return Rows(weight, scales, 127, found), codes


@pytest.mark.parametrize(("groups", "columns"), [(1, 64), (1, 70), (5, 9)])
@pytest.mark.parametrize("pairs", [False, True])
def test_errors_cancel_on_rows_that_it_has_not_seen(
    groups: int, columns: int, *, pairs: bool
) -> None:
    weight = drawn(groups, 6, columns)
    rows, nearest = rows_of(weight, pairs=pairs)
    operand = WeightOperand(directed(96, groups * columns, 1), directed(32, groups * columns, 5))
    codes = compensated(rows, nearest, operand)
    assert codes is not None
    assert codes.shape == weight.shape
    assert np.array_equal(codes, np.rint(codes))
    other = directed(50, groups * columns, 7).reshape(50, groups, columns)
    errors = [
        np.linalg.norm(np.einsum("ngk,grk->ngr", other, each * rows.scales[..., None] - weight))
        for each in (codes, nearest)
    ]
    assert errors[0] < errors[1] * 0.7


@given(st.integers(0, 1 << 16), st.integers(2, 40))
@settings(max_examples=30, deadline=None)
def test_pairs_stay_within_their_limit(seed: int, columns: int) -> None:
    rows, nearest = rows_of(drawn(1, 4, columns, seed=seed), pairs=True)
    operand = WeightOperand(directed(64, columns, seed), directed(16, columns, seed + 2))
    codes = compensated(rows, nearest, operand)
    if codes is not None:
        last = columns - columns % 2
        assert (np.abs(codes[..., :last:2]) + np.abs(codes[..., 1:last:2]) <= 128).all()
        assert np.abs(codes).max() <= 127


def test_an_operand_without_a_direction_gains_nothing() -> None:
    rows, nearest = rows_of(drawn(1, 6, 64))
    operand = WeightOperand(drawn(96, 64, seed=1), drawn(32, 64, seed=2))
    assert compensated(rows, nearest, operand) is None


def test_an_operand_of_zeros_gains_nothing() -> None:
    zeros = np.zeros((8, 64), np.float32)
    assert compensated(*rows_of(drawn(1, 6, 64)), WeightOperand(zeros, zeros)) is None


def test_a_group_of_zeros_beside_another() -> None:
    rows, nearest = rows_of(drawn(2, 6, 16))
    fitted, held = directed(96, 32, 1), directed(32, 32, 5)
    fitted[:, :16] = held[:, :16] = 0
    codes = compensated(rows, nearest, WeightOperand(fitted, held))
    assert codes is not None
    assert np.isfinite(codes).all()


def test_many_columns_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "MOST_COLUMNS", 63)
    operand = WeightOperand(directed(96, 64, 1), directed(32, 64, 5))
    assert compensated(*rows_of(drawn(1, 6, 64)), operand) is None


# --- whole models ---------------------------------------------------------------------------------


def quantized(
    text: str, mode: RoundingMode, feeds: list[dict[str, Array]], **weights: Array
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return a model, and the same quantised."""
    proto = parse(text, opset=17)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    model = Model.from_proto(proto)
    found = quantize_model(model, QuantizationSettings(inputs=feeds, rounding=mode))
    assert found.plan.units
    return proto, model.to_proto()


def error(models: tuple[onnx.ModelProto, onnx.ModelProto], feeds: dict[str, Array]) -> float:
    exact, found = (run(each, feeds)["y"] for each in models)
    return float(np.linalg.norm(exact - found) / np.linalg.norm(exact))


def codes_of(proto: onnx.ModelProto) -> list[bytes]:
    return [each.raw_data for each in proto.graph.initializer if each.data_type == each.INT8]


MATMUL = "(float[N,32] x) => (float[N,16] y) { y = MatMul(x, w) }"
PRODUCTS = {
    "MatMul": (MATMUL, (32, 16), (24, 32)),
    "Gemm": ("(float[N,32] x) => (float[N,16] y) { y = Gemm(x, w) }", (32, 16), (24, 32)),
    "transposed": (
        "(float[N,32] x) => (float[N,16] y) { y = Gemm<transB=1>(x, w) }", (16, 32), (24, 32)
    ),
    "Conv": (
        "(float[N,4,8] x) => (float y) { y = Conv<pads=[1,1]>(x, w) }", (6, 4, 3), (24, 4, 8)
    ),
    "groups": (
        "(float[N,4,8] x) => (float y) { y = Conv<group=2>(x, w) }", (6, 2, 3), (24, 4, 8)
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PRODUCTS)
def test_data_with_a_direction_loses_less(kind: str) -> None:
    text, shape, rows = PRODUCTS[kind]
    size = int(np.prod(rows[1:]))
    # Few numbers have few codes, so that the data itself is exact.
    feeds = [
        {"x": np.rint(8 * directed(rows[0], size, seed)).clip(-99, 99).reshape(rows) + 100}
        for seed in range(9)
    ]
    found = {
        mode: error(quantized(text, mode, feeds[:8], w=drawn(*shape)), feeds[8])
        for mode in ("samples", "nearest")
    }
    assert found["samples"] < found["nearest"] * 0.8


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("(float[32,N] x) => (float y) { y = MatMul(w, x) }", {"w": (16, 32)}),
        ("(float[N,32] x) => (float y) { a = MatMul(x, w) y = Gemm<transB=1>(a, w) }",
         {"w": (32, 32)}),
        ("(float[4,N,32] x) => (float y) { y = MatMul(x, w) }", {"w": (4, 32, 16)}),
    ],
)  # fmt: skip
def test_other_weights_are_rounded_to_nearest(text: str, shapes: dict[str, Any]) -> None:
    """On the left; summed over two axes; several matrices."""
    first = next(iter(parse(text, opset=17).graph.input))
    dims = [each.dim_value or 24 for each in first.type.tensor_type.shape.dim]
    feeds = [{"x": directed(int(np.prod(dims[:-1])), dims[-1], seed).reshape(dims)}
             for seed in range(8)]  # fmt: skip
    weights = {name: drawn(*shape) for name, shape in shapes.items()}
    made = [quantized(text, mode, feeds, **weights)[1] for mode in ("samples", "nearest")]
    assert codes_of(made[0]) == codes_of(made[1])


def test_results_are_the_same_each_time() -> None:
    feeds = [{"x": directed(24, 32, seed)} for seed in range(8)]
    made = [quantized(MATMUL, "samples", feeds, w=drawn(32, 16))[1] for _ in range(2)]
    assert made[0] == made[1]


def test_codes_stay_to_nearest_where_an_operand_cannot_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, nearest = rows_of(drawn(1, 6, 16))
    good = WeightOperand(directed(96, 16, 1), directed(32, 16, 5))
    zeros, other = np.zeros((96, 16), np.float32), directed(96, 15, 1)
    for most, operand, is_rounded in (
        (16, good, True),
        (15, good, False),
        (16, WeightOperand(zeros, good.held), False),
        (16, WeightOperand(other, other[:32]), False),
    ):
        monkeypatch.setattr(rounding, "MOST_COLUMNS", most)
        assert (compensated(rows, nearest, operand) is not None) == is_rounded


def test_a_weight_with_channels_is_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()
    made = object.__new__(Rounding)
    made._known = {}
    operands: Any = SimpleNamespace(of={"w": "an operand"}.get)
    made._operands = operands

    def fitted(*them: Any) -> Any:
        asked.append(them)
        return None if them[0] == "gains nothing" else np.ones((2, 2), np.int8)

    monkeypatch.setattr(rounding, "_fitted", fitted)
    codes, scales, zeros = np.zeros((2, 2), np.int8), np.ones(2, np.float32), np.zeros(2, np.int8)
    node: Any = "a node"
    for value, axis, points, is_changed, count in (
        ("w", None, zeros, False, 0),
        ("w", 0, zeros + 1, False, 0),
        ("v", 0, zeros, False, 0),
        ("w", 0, zeros, True, 1),
        ("w", 0, zeros, True, 1),
        ("w", 1, zeros, True, 2),
    ):
        name: Any = value
        weight = Weight(codes, scales, points, axis)
        found = made.of(node, name, weight, ())
        assert (bool(found.codes.any()), len(asked)) == (is_changed, count)
        assert (found is weight) != is_changed
    node = "gains nothing"
    weight = Weight(codes, scales * 2, zeros, 0)
    key: Any = "w"
    assert made.of(node, key, weight, ()) is weight
