"""Operands: what is measured for which weights, in groups too, and why nothing is."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.module_passes.precision.weights import with_weight
from tests.small import made_by, named, parsed
from tiered import Model, Node, Value
from tiered.numerics.precision.few_bits import sampled_operands
from tiered.numerics.precision.few_bits.convolution_rows import ConvolutionWindow
from tiered.numerics.precision.few_bits.sampled_operands import (
    Operands,
    Sampling,
    WeightOperand,
    _ReadRows,
)
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
        assert found.of(weight) is None
    assert found.reason == "more than 100 bytes of weights, and no inputs are given"
    monkeypatch.setattr(sampled_operands, "MOST_MEASURED", model.nbytes)
    found, opens = opened(monkeypatch)
    assert (len(found.samples()), opens) == (1, ["open"])
    monkeypatch.setattr(sampled_operands, "MOST_MEASURED", 100)
    with Operands(model, Sampling(inputs=[FEEDS])) as found:
        found.plan({weight: nodes})
        assert found.of(weight) is not None


# --- without a run --------------------------------------------------------------------------------


def test_usable_rows_are_smaller_than_masks_and_not_all_held_back() -> None:
    ones, large = np.ones((2, 3), np.float32), np.full((2, 3), 1e30, np.float32)
    for samples, counts in (
        ([ones, ones, ones, ones], (6, 2)),
        ([np.concatenate([large, ones, -large, ones])], (3, 1)),
        ([large, large, large, ones], None),  # all held back
        ([ones, ones, ones, large], None),  # none
    ):
        found = WeightOperand.of(samples)
        assert (found and (len(found.fitted), len(found.held))) == counts


def opened(
    monkeypatch: pytest.MonkeyPatch, text: str = MATMUL, samples: int = 1
) -> tuple[Operands, list[str]]:
    """Return operands that note when their model is opened."""
    found, opens = Operands(Model.from_proto(with_weight(text, (64, 16))), Sampling()), list[str]()

    def open_it() -> None:
        opens.append("open")
        found._running, found._feeds = cast("Any", "running"), [{}] * samples

    monkeypatch.setattr(found, "_open", open_it)
    return found, opens


def test_a_model_is_opened_and_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, opens = opened(monkeypatch)
    weight, nodes = weight_of(found._model)
    found.plan({weight: nodes})
    found.plan({})  # has no effect
    assert (found.samples(), found.reason, opens) == ([{}], "", ["open"])
    assert found._groups == {weight: [weight]}

    def measure(_: object) -> None:
        opens.append("rows")
        found._rows = {read: [np.ones((8, 64), np.float32)] for read in found._reads[weight]}

    monkeypatch.setattr(found, "_measure", measure)
    assert found.of(weight) is not None
    assert found.of(weight) is not None
    assert opens == ["open", "rows"]
    found, opens = opened(monkeypatch)
    found.plan({})
    found.plan({weight: nodes})
    assert found.reason == "no operand of a MatMul or Gemm of the main graph"
    assert (found.samples(), found._reads, opens) == ((), {}, [])


def test_a_model_that_cannot_be_opened_on_given_inputs_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: Operands) -> None:
        raise RuntimeFailure("first\nsecond")

    monkeypatch.setattr(Operands, "_open", fail)
    model = Model.from_proto(with_weight(MATMUL, (64, 16)))
    found = Operands(model, Sampling())
    assert (found.samples(), found.reason) == ((), "first")
    with pytest.raises(RuntimeFailure, match="first"):
        Operands(model, Sampling(inputs=[FEEDS])).samples()


def test_given_inputs_are_read_even_if_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[Any]()
    monkeypatch.setattr(sampled_operands, "read_samples", read.append)
    found, _ = opened(monkeypatch)
    for inputs, running, reads in (((), None, 0), ((FEEDS,), "running", 0), ((FEEDS,), None, 1)):
        found._sampling, found._running = Sampling(inputs=inputs), cast("Any", running)
        read.clear()
        found.check_inputs()
        assert len(read) == reads


SHAPES = """(float[N,6] x, float[N,4,1,3] i) => (float[N,2] y, float[N,2,1,1] z, float[N,6] t)
    <float[6,2] w = {0,0,0,0,0,0,0,0,0,0,0,0}, float[2,6] v = {0,0,0,0,0,0,0,0,0,0,0,0},
     float[2,4,1,3] k = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
    y = MatMul(x, w)  z = Conv(i, k)  t = MatMul(y, v) }"""


def test_groups_have_a_limit_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_operands, "_ROWS", 1)
    model = parsed(SHAPES)
    values = {name: named(model, name) for name in "wkv"}
    found = Operands(model, Sampling())
    found._feeds = [{}, {}]
    reads = _ReadRows("x"), _ReadRows("y")
    found._reads = dict(zip(values.values(), (reads, reads, reads[:1]), strict=True))
    # 4 bytes, 2 samples; w: 2 * 6 columns; k: 2 * 12; v: 6
    for most, groups in ((336, ["wkv"]), (335, ["wk", "v"]), (288, ["wk", "v"]),
                         (287, ["w", "kv"]), (240, ["w", "kv"]), (239, ["w", "k", "v"]),
                         (1, ["w", "k", "v"])):  # fmt: skip
        monkeypatch.setattr(sampled_operands, "_TOGETHER", most)
        assert list(found._grouped()) == [[values[name] for name in group] for group in groups]


def test_operands_of_products_and_convolutions_of_the_main_graph_are_read() -> None:
    model = parsed(SHAPES)
    window = ConvolutionWindow((1, 3), (1, 1), (1, 1), ((0, 0), (0, 0)))
    for name, read in (("y", _ReadRows("x")), ("z", _ReadRows("i", window)), ("t", _ReadRows("y"))):
        assert sampled_operands._operands([made_by(model, name)]) == (read,)
    fed = parsed(SHAPES.replace("i) =>", "i, float[2,4,1,3] k) =>"))
    assert sampled_operands._operands([made_by(fed, "z")]) == ()


def test_each_sample_has_few_rows_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = opened(monkeypatch)
    weight, nodes = weight_of(found._model)
    array = np.arange(12).reshape(2, 3, 2)
    stream = SimpleNamespace(stream=lambda feeds, names: [("s", array), ("other", array)])
    monkeypatch.setattr(sampled_operands, "_ROWS", 3)
    for samples, most, rows in ((1, 6, [0, 4, 8]), (2, 4, [0, 6]), (4, 4, [0]), (5, 4, [0])):
        found._feeds, found._running = [{}] * samples, cast("Any", stream)
        monkeypatch.setattr(sampled_operands, "_ALL_ROWS", most)
        found._reads = {weight: sampled_operands._operands(nodes)}
        found._measure([weight])
        expected = [[row, row + 1] for row in rows]
        assert [each.tolist() for each in found._rows[_ReadRows("s")]] == [expected] * samples
