"""Pairs of weights that do not saturate, in the order in which kernels add them."""

from typing import Any, Literal

import numpy as np
import onnx
import pytest
from hypothesis import given, strategies as st
from onnx import numpy_helper

from tests.saturation import exact_product, products_that, saturating_product
from tests.small import made_by, parsed
from tiered import Model, PassContext, QuantizationSettings, get_pass, quantize_model
from tiered.numerics.quantization.scales import weight_of
from tiered.numerics.quantization.scheme import Scheme
from tiered.numerics.quantization.weight_pairs import Order, neighbours_of, orders_of, within_pairs
from tiered.runtime.byte_products import ByteProducts
from tiered.support.errors import UsageError
from tiered.testing import parse

Array = np.ndarray[Any, Any]
COLUMNS = [Order((1, 0), 1)]


def _random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _model(text: str, *shape: int, opset: int = 17) -> onnx.ModelProto:
    proto = parse(text, opset=opset)
    proto.graph.initializer.append(numpy_helper.from_array(_random(*shape), "w"))
    return proto


def _sums(lines: Array) -> Array:
    """Return |q1| + |q2| of neighbours in the last axis."""
    wide = np.abs(lines.astype(np.int32))
    last = wide.shape[-1] - wide.shape[-1] % 2
    sums: Array = wide[..., 0:last:2] + wide[..., 1:last:2]
    return sums


def _codes(model: Model) -> Array:
    (found,) = [
        value.tensor.numpy()
        for node in model.main.nodes
        for value in node.inputs[:2]
        if value is not None and value.tensor is not None and value.tensor.numpy().dtype == np.int8
    ]
    return found


@given(st.lists(st.integers(-127, 127), min_size=2, max_size=9))
def test_no_pair_saturates_and_none_that_fits_changes(numbers: list[int]) -> None:
    codes = np.array([numbers], np.float32)
    neighbours = neighbours_of((len(numbers), 1), 1, COLUMNS)
    found = within_pairs(codes, neighbours)
    assert (_sums(found) <= 128).all()
    assert (np.abs(found) <= np.abs(codes)).all()
    assert (found * codes >= 0).all()
    fits = np.repeat(_sums(codes) <= 128, 2, axis=1)
    paired = codes[:, : fits.shape[1]]
    assert (found[:, : fits.shape[1]][fits] == paired[fits]).all()
    assert (found[:, fits.shape[1] :] == codes[:, fits.shape[1] :]).all()
    data = np.full((1, len(numbers)), 255, np.uint8)
    column = found.astype(np.int8).T
    assert (saturating_product(data, column) == exact_product(data, column)).all()


@pytest.mark.parametrize("depth", [64, 63])
def test_limited_pairs_are_nearer_than_seven_bits(depth: int) -> None:
    array, errors = _random(depth, 256), dict[str, float]()
    for name, reduce_range, orders in (("7", True, []), ("pairs", False, COLUMNS)):
        scheme = Scheme(reduce_range=reduce_range)
        found = weight_of(array, 1, scheme, least=None, orders=orders)
        assert found is not None
        errors[name] = float(np.linalg.norm(found.codes * found.scales - array))
    assert errors["pairs"] < 0.75 * errors["7"]


@pytest.mark.parametrize(
    ("text", "shape", "axes"),
    [
        ("(float[2,9] x) => (float[2,8] y) { y = MatMul(x, w) }", (9, 8), (1, 0)),
        ("(float[3,2,9] x) => (float[3,2,8] y) { y = MatMul(x, w) }", (3, 9, 8), (0, 2, 1)),
        ("(float[2,9] x) => (float[2] y) { y = MatMul(x, w) }", (9,), (0,)),
        ("(float[2,9] x) => (float[2,8] y) { y = Gemm(x, w) }", (9, 8), (1, 0)),
        ("(float[2,9] x) => (float[2,8] y) { y = Gemm<transB=1>(x, w) }", (8, 9), (0, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("processor", ["avx2", "any"])
@pytest.mark.parametrize("opset", [12, 17])  # opset 12 has one scale for all columns
def test_pairs_follow_one_another_along_k(
    text: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    processor: Literal["avx2", "any"],
    opset: int,
) -> None:
    model = Model.from_proto(_model(text, *shape, opset=opset))
    quantize_model(model, QuantizationSettings(samples=1, processor=processor))
    codes = _codes(model)
    assert np.abs(codes).max() > 63
    assert _sums(codes.transpose(axes)).max() <= 128


@pytest.mark.parametrize("group", [1, 2])
def test_a_conv_is_limited_in_both_orders(group: int) -> None:
    text = f"(float[1,6,5,5] x) => (float[1,8,N,M] y) {{ y = Conv<group={group}>(x, w) }}"
    model = Model.from_proto(_model(text, 8, 6 // group, 3, 3))
    quantize_model(model, QuantizationSettings(samples=1, processor="avx2"))
    codes = _codes(model)
    assert _sums(codes.reshape(8, -1)).max() <= 128
    assert _sums(codes.transpose(0, 2, 3, 1).reshape(8, -1)).max() <= 128


@pytest.mark.parametrize(
    ("answer", "processor", "is_limited"),
    [
        ("exact", None, False),
        ("saturate", None, True),
        ("unknown", None, True),
        ("exact", "avx2", True),
        ("exact", "any", True),
        ("saturate", "vnni", False),
    ],
)
@pytest.mark.parametrize("name", ["quantize", "quantize_dynamic"])
def test_the_processor_at_hand_or_a_named_one_decides(
    name: str, answer: ByteProducts, processor: str | None, is_limited: bool
) -> None:
    text = "(float[2,64] x) => (float[2,8] y) { y = MatMul(x, w) }"
    model, step = Model.from_proto(_model(text, 64, 8)), get_pass(name)
    if processor is not None:
        step = step.with_options(processor=processor)
    with products_that(answer):
        step.apply(model, PassContext.isolated())
    assert (_sums(_codes(model).T).max() <= 128) == is_limited


def test_saturating_products_of_limited_pairs_hold_a_budget_that_others_do_not() -> None:
    text = "(float[N,64] x) => (float[N,8] y) { y = MatMul(x, w) }"
    random = np.random.default_rng(3)
    samples = [{"x": random.uniform(0, 1, (8, 64)).astype(np.float32)} for _ in range(4)]
    ratios = {}
    for name, reduce_range in {"pairs": None, "7 bits": True, "8 bits": False}.items():
        with products_that("saturate"):
            model = Model.from_proto(_model(text, 64, 8))
            settings = QuantizationSettings(
                inputs=samples, measures=True, reduce_range=reduce_range
            )
            ratios[name] = quantize_model(model, settings).deployed or 0.0
    assert ratios["pairs"] > ratios["7 bits"] > ratios["8 bits"]


def test_what_a_processor_does_not_change_is_an_error() -> None:
    model = Model.from_proto(_model("(float[2,8] x) => (float[2,8] y) { y = MatMul(x, w) }", 8, 8))
    named = get_pass("quantize").with_options(processor="avx2")
    with pytest.raises(UsageError, match="multiplies no uint8 by int8"):
        named.apply(model, PassContext.isolated(backend="tensorrt"))
    with pytest.raises(UsageError, match="weights of 7 bits never saturate"):
        named.with_options(reduce_range=True).apply(model, PassContext.isolated())


def test_a_named_processor_replaces_the_seven_bits_of_a_backend() -> None:
    for processor, limit in (("vnni", 254), ("avx2", 128)):
        text = "(float[2,64] x) => (float[2,8] y) { y = MatMul(x, w) }"
        model = Model.from_proto(_model(text, 64, 8))
        step = get_pass("quantize").with_options(processor=processor)
        step.apply(model, PassContext.isolated(backend="onnxruntime_cpu"))
        assert 63 < np.abs(_codes(model)).max() <= 127
        assert _sums(_codes(model).T).max() <= limit


def test_pairs_of_several_matrices_in_dynamic_products() -> None:
    text = "(float[3,2,9] x) => (float[3,2,8] y) { y = MatMul(x, w) }"
    model = Model.from_proto(_model(text, 3, 9, 8))
    step = get_pass("quantize_dynamic").with_options(processor="any")
    step.apply(model, PassContext.isolated())
    codes = _codes(model)
    assert np.abs(codes).max() > 63
    assert _sums(codes.transpose(0, 2, 1)).max() <= 128


def test_kernels_sum_over_a_weight_in_an_order() -> None:
    for line, slot, rank, orders in (
        ("Conv(x, w)", 1, 4, [Order((0, 1, 2, 3), 1), Order((0, 2, 3, 1), 1)]),
        ("Conv(x, w)", 1, 3, [Order((0, 1, 2), 1), Order((0, 2, 1), 1)]),
        ("ConvTranspose(x, w)", 1, 4, []),
        ("MatMul(x, w)", 1, 2, [Order((1, 0), 1)]),
        ("MatMul(x, w)", 1, 3, [Order((0, 2, 1), 2)]),
        ("MatMul(x, w)", 1, 0, []),
        ("MatMul(x, w)", 0, 2, []),
        ("Gemm(x, w)", 1, 2, [Order((1, 0), 1)]),
        ("Gemm<transB = 1>(x, w)", 1, 2, [Order((0, 1), 1)]),
    ):
        node = made_by(parsed(f"(float[2,2] x, float[2,2] w) => (float y) {{ y = {line} }}"), "y")
        assert orders_of(node, slot, rank) == orders, (line, slot, rank)
