"""Operands: what is measured for which weights, in groups too, and why nothing is."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.module_passes.precision.weights import with_weight
from tiered import Model, Node, Value
from tiered.numerics.precision.few_bits import sampled_operands
from tiered.numerics.precision.few_bits.sampled_operands import Operands, Sampling, WeightOperand
from tiered.support.errors import RuntimeFailure

MATMUL = "(float[N,64] x) => (float[N,16] y) { s = Neg(x) y = MatMul(s, w) }"
SAME = 'auto_pad = "SAME_UPPER"'
FEEDS = {"x": np.arange(8 * 64, dtype=np.float32).reshape(8, 64)}


def weight_of(model: Model) -> tuple[Value, list[Node]]:
    weight = model.main.value("w")
    assert weight is not None
    return weight, list(dict.fromkeys(use.node for use in weight.users))


def measured(
    text: str, feeds: Sequence[dict[str, np.ndarray]] = (FEEDS,), shape: tuple[int, ...] = (64, 16)
) -> WeightOperand | None:
    model = Model.from_proto(with_weight(text, shape))
    weight, nodes = weight_of(model)
    with Operands(model, Sampling(inputs=feeds)) as found:
        found.plan({weight: nodes})
        return found.of(weight)


def test_rows_of_one_sample_are_held_back_in_turns() -> None:
    operand = measured(MATMUL)
    assert operand is not None
    rows = -FEEDS["x"]
    assert np.array_equal(operand.held, rows[[3, 7]])
    assert np.array_equal(operand.fitted, rows[[0, 1, 2, 4, 5, 6]])


def test_of_four_samples_one_is_held_back() -> None:
    feeds = [{"x": np.full((2, 64), number, np.float32)} for number in range(4)]
    operand = measured(MATMUL, feeds)
    assert operand is not None
    assert np.array_equal(operand.held, -feeds[3]["x"])
    assert operand.fitted.shape == (6, 64)


def test_rows_with_nan_inf_or_masks_do_not_count() -> None:
    feed = FEEDS["x"].copy()
    feed[0, 0], feed[1, 1], feed[2, 2] = np.nan, np.inf, 3.4e38
    operand = measured(MATMUL, [{"x": feed}])
    assert operand is not None
    assert np.array_equal(np.concatenate([operand.fitted, operand.held]), -feed[[3, 4, 5, 7, 6]])


@pytest.mark.parametrize("rows", [0, 3])
def test_too_few_rows(rows: int) -> None:
    assert measured(MATMUL, [{"x": FEEDS["x"][:rows]}]) is None


def test_a_weight_with_two_readers_has_the_rows_of_both() -> None:
    text = (
        "(float[N,64] x) => (float[N,16] y, float[N,16] z) "
        "{ y = MatMul(x, w) s = Neg(x) z = Gemm(s, w) }"
    )
    operand = measured(text)
    assert operand is not None
    assert len(operand.fitted) + len(operand.held) == 2 * len(FEEDS["x"])


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("(float[64,8] x) => (float[8,16] y) { y = Gemm<transA=1>(x, w) }", (64, 16)),
        ("(int64[N] x) => (float[N,16] y) { y = Gather(w, x) }", (64, 16)),
        (f"(float[1,4,9] x) => (float[1,8,9] y) {{ y = Conv<{SAME}>(x, w) }}", (8, 4, 1)),
        ("(float[64,64] x) => (float[64,64] y) { c = MatMul(w, w) y = Add(x, c) }", (64, 64)),
    ],
)
def test_other_operands_are_not_measured(text: str, shape: tuple[int, ...]) -> None:
    model = Model.from_proto(with_weight(text, shape))
    weight, nodes = weight_of(model)
    with Operands(model, Sampling()) as found:
        found.plan({weight: nodes})
        assert found.of(weight) is None
    assert found.reason == "no operand of a MatMul or Gemm of the main graph"


def test_an_operand_in_a_body_is_not_measured() -> None:
    text = (
        "(bool c, float[2,64] x) => (float[2,16] y) { y = If(c) <then_branch = t () => "
        "(float[2,16] p) { p = MatMul(x, w) }, else_branch = e () => (float[2,16] q) "
        "{ m = MatMul(x, w) q = Neg(m) }> }"
    )
    model = Model.from_proto(with_weight(text, (64, 16)))
    weight, nodes = weight_of(model)
    with Operands(model, Sampling()) as found:
        found.plan({weight: nodes})
    assert found.reason


TWO = (
    "(float[N,64] x) => (float[N,16] y, float[N,16] z) "
    "{ y = MatMul(x, w) s = Neg(x) t = Exp(s) z = MatMul(t, v) }"
)


def test_groups_are_measured_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_operands, "_TOGETHER", 1)
    proto = with_weight(TWO, (64, 16))
    proto.graph.initializer.add().CopyFrom(proto.graph.initializer[0])
    proto.graph.initializer[1].name = "v"
    model = Model.from_proto(proto)
    weights = [value for name in "wv" if (value := model.main.value(name)) is not None]
    with Operands(model, Sampling(inputs=[FEEDS])) as found:
        found.plan({weight: [use.node for use in weight.users] for weight in weights})
        first, second, again = (found.of(weights[at]) for at in (0, 1, 0))
    assert first is not None
    assert second is not None
    assert again is not None
    assert np.array_equal(first.fitted[0], FEEDS["x"][0])
    assert np.array_equal(first.held, again.held)
    assert not np.array_equal(first.held, second.held)


UNKNOWN = "(float[N,64] x) => (float[N,16] y) { s = other.Strange(x) y = MatMul(s, w) }"


def test_a_model_that_does_not_run_says_so() -> None:
    proto = with_weight(UNKNOWN, (64, 16))
    proto.opset_import.add(domain="other", version=1)
    model = Model.from_proto(proto)
    weight, nodes = weight_of(model)
    with Operands(model, Sampling()) as found:
        found.plan({weight: nodes})
        assert found.of(weight) is None
    assert "Strange" in found.reason
    with Operands(model, Sampling(inputs=[FEEDS])) as found:
        found.plan({weight: nodes})
        with pytest.raises(RuntimeFailure, match="Strange"):
            found.of(weight)


def test_a_large_model_is_not_run_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_operands, "MOST_MEASURED", 100)
    model = Model.from_proto(with_weight(MATMUL, (64, 16)))
    weight, nodes = weight_of(model)
    with Operands(model, Sampling()) as found:
        found.plan({weight: nodes})
    assert found.reason == "more than 100 bytes of weights, and no inputs are given"
    with Operands(model, Sampling(inputs=[FEEDS])) as found:
        found.plan({weight: nodes})
        assert found.of(weight) is not None
