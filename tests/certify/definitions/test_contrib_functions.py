"""Operators of com.microsoft: the types of their results, which are functions of their operands."""

from typing import Any

import onnx
import pytest

from tests.certify.call import FLOAT, call, free
from tiered.certify.definitions.contrib_functions import CONTRIB_ON_BITS, TYPES
from tiered.certify.evaluation.call import NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor

UINT8, FLOAT16 = int(onnx.TensorProto.UINT8), int(onnx.TensorProto.FLOAT16)


def x(name: str, *shape: int, dtype: int = FLOAT) -> CheckedTensor:
    return free(name, *shape, dtype=dtype)


def ran(op: str, *inputs: CheckedTensor | None, **held: Any) -> Results:
    return CONTRIB_ON_BITS[f"com.microsoft::{op}"](call(f"com.microsoft::{op}", *inputs, **held))


def only(op: str, *inputs: CheckedTensor | None, **held: Any) -> tuple[int, tuple[int, ...]]:
    (made,) = ran(op, *inputs, **held)
    assert made is not None
    return made.dtype, made.shape


@pytest.mark.parametrize(
    "op",
    ["BiasGelu", "FastGelu", "Gelu", "QuickGelu", "QLinearLeakyRelu", "QLinearSigmoid",
     "RotaryEmbedding"],
)  # fmt: skip
def test_the_result_has_the_type_of_the_first_operand(op: str) -> None:
    for dtype in (FLOAT, FLOAT16):
        assert only(op, x("a", 2, 3, dtype=dtype), x("b", 9)) == (dtype, (2, 3))


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantised_operands_broadcast(op: str) -> None:
    a, b = x("a", 2, 1, dtype=UINT8), x("b", 3, dtype=UINT8)
    scale, zero = x("s"), x("z", dtype=UINT8)
    assert only(op, a, scale, zero, b, scale, zero, scale, zero) == (UINT8, (2, 3))


@pytest.mark.parametrize(
    ("a", "b", "held", "shape"),
    [
        ((2, 3), (3, 4), {}, (2, 4)),
        ((5, 2, 3), (1, 3, 4), {}, (5, 2, 4)),
        ((3, 2), (3, 4), {"transA": 1}, (2, 4)),
        ((2, 3), (4, 3), {"transB": 1}, (2, 4)),
        ((5, 3, 2), (5, 4, 3), {"transA": 1, "transB": 1}, (5, 2, 4)),
        ((2, 5, 3), (5, 3, 4), {"transBatchA": 1}, (5, 2, 4)),
        ((5, 2, 3), (3, 5, 4), {"transBatchB": 1}, (5, 2, 4)),
        ((3, 5, 2), (5, 3, 4), {"transBatchA": 1, "transA": 1}, (5, 2, 4)),
        ((5, 2, 3), (4, 5, 3), {"transBatchB": 1, "transB": 1}, (5, 2, 4)),
        ((2, 6, 5, 3), (6, 5, 3, 4), {"transBatchA": 1}, (6, 5, 2, 4)),
    ],
)
def test_a_fused_product_turns_its_operands(
    a: tuple[int, ...], b: tuple[int, ...], held: dict[str, int], shape: tuple[int, ...]
) -> None:
    assert only("FusedMatMul", x("a", *a), x("b", *b), **held) == (FLOAT, shape)


@pytest.mark.parametrize(("a", "b"), [((3,), (3, 4)), ((2, 3), (3,))])
def test_a_fused_product_of_vectors_has_no_rule(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(NoRule):
        ran("FusedMatMul", x("a", *a), x("b", *b))


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_a_norm_with_a_skip_returns_the_sum_too(op: str) -> None:
    a = x("a", 2, 3, 4)
    names = ("y", "mean", "deviation", "sum")
    made = ran(op, a, x("b", 2, 3, 4), x("s", 4), outputs=names)
    assert [None if each is None else each.shape for each in made] == [
        (2, 3, 4), None, None, (2, 3, 4)
    ]  # fmt: skip
    assert made[0] is not None
    assert made[3] is not None
    assert made[0].key != made[3].key
    unnamed = ran(op, a, x("b", 2, 3, 4), x("s", 4), outputs=("y", "", "", ""))
    assert unnamed[3] is None
    assert len(ran(op, a, x("b", 2, 3, 4), x("s", 4))) == 1


@pytest.mark.parametrize(
    ("value", "size"), [((2, 5, 12), 12), ((2, 3, 5, 4), 12), ((2, 5, 20), 20)]
)
def test_attention_has_the_size_of_its_values(value: tuple[int, ...], size: int) -> None:
    q, k = x("q", 2, 7, 8), x("k", 2, 5, 8)
    assert only("MultiHeadAttention", q, k, x("v", *value)) == (FLOAT, (2, 7, size))


@pytest.mark.parametrize(
    ("q", "value"), [((2, 7, 3, 3, 8), (2, 5, 8)), ((2, 7, 8), None), ((2, 7, 8), (5, 8))]
)
def test_packed_operands_have_no_rule(q: tuple[int, ...], value: tuple[int, ...] | None) -> None:
    with pytest.raises(NoRule):
        ran("MultiHeadAttention", x("q", *q), None, None if value is None else x("v", *value))


def test_grouped_queries_keep_their_shape_unless_they_are_packed() -> None:
    q = x("q", 2, 7, 8)
    assert only("GroupQueryAttention", q, x("k", 2, 7, 4), x("v", 2, 7, 4)) == (FLOAT, (2, 7, 8))
    with pytest.raises(NoRule):
        ran("GroupQueryAttention", q, None, None)


def test_a_quantised_average_is_over_space() -> None:
    a = x("a", 2, 3, 4, 5, dtype=UINT8)
    assert only("QLinearGlobalAveragePool", a, x("s"), x("z")) == (UINT8, (2, 3, 1, 1))
    assert only("QLinearGlobalAveragePool", a, channels_last=0) == (UINT8, (2, 3, 1, 1))
    with pytest.raises(NoRule):
        ran("QLinearGlobalAveragePool", a, channels_last=1)


def test_results_are_functions_of_operands_and_attributes() -> None:
    a, b = x("a", 2, 3), x("b", 3)

    def key(*inputs: CheckedTensor | None, op: str = "BiasGelu", **held: Any) -> object:
        (made,) = ran(op, *inputs, **held)
        assert made is not None
        return made.key

    plain = key(a, b)
    assert key(a, b) == plain
    assert key(a, b, outputs=("another",)) == plain
    others = [key(b, b), key(a, a), key(a, None), key(a, b, op="FastGelu"),
              key(a, b, alpha=0.5), key(a, b, alpha=0.25), key(a)]  # fmt: skip
    assert len({plain, *others}) == 8


def test_each_operator_has_a_rule_of_its_domain() -> None:
    assert set(CONTRIB_ON_BITS) == {f"com.microsoft::{name}" for name in TYPES}
