"""convert_within: what returns to float for a budget, and what the search leaves as it was."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from tests.module_passes.precision.weights import apply, with_weight
from tiered import DataType, Model, Node, PassContext, Skip, Unable, get_pass
from tiered.numerics.precision.few_bits.returning import OutputBudget, convert_within
from tiered.numerics.precision.lower import OnFound, OnSkip
from tiered.support.errors import UsageError, VerificationError
from tiered.testing import parse

# A product by 1.5 is off by half of its output, one by 1.001 hardly at all.
CHAIN = (
    "(float[4] x) => (float[4] y) <float a = {1}, float b = {1}, float bad = {1.5}, "
    "float good = {1.001}> { h = Mul(x, a) y = Mul(h, b) }"
)
FEEDS = {"x": np.ones(4, np.float32)}


class Other:
    """Replaces the factors of a chain; it counts its calls."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls = 0

    def __call__(
        self, kept: Mapping[Node, str], on_found: OnFound, on_skip: OnSkip
    ) -> Collection[Node]:
        self.calls += 1
        main = self.model.main
        first, second = main.topological_order()
        factors = {first: "good", second: "bad"}
        for node, name in factors.items():
            if node not in kept:
                main.set_input(node, 1, main.value(name))
        return [node for node in factors if node not in kept]


def factors_after(limit: str) -> tuple[list[str], int, list[str]]:
    model, found = Model.from_proto(parse(CHAIN)), list[str]()
    other, settings = Other(model), OutputBudget(limit=limit, inputs=(FEEDS,))
    convert_within(model, other, settings, found.append, lambda node, reason: None, what="node")
    nodes = model.main.topological_order()
    names = [value.name for node in nodes for value in node.inputs[1:] if value is not None]
    return names, other.calls, found


def test_without_a_budget_it_converts_once() -> None:
    assert factors_after("") == (["good", "bad"], 1, [])


def test_the_worst_returns_first() -> None:
    names, _, found = factors_after("relative<=0.01")
    assert names == ["good", "b"]
    (text,) = found
    assert text.startswith("measured on 1 given input by onnxruntime: relative 0.00100")


@pytest.mark.usefixtures("without_effects")
def test_without_gradients_the_error_alone_decides() -> None:
    assert factors_after("relative<=0.01")[0] == ["good", "b"]


@pytest.fixture
def without_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "tiered.numerics.precision.few_bits.returning.effects_for"
    monkeypatch.setattr(path, lambda *given: None)


def test_inputs_are_for_a_budget() -> None:
    OutputBudget().check_read()
    OutputBudget(limit="relative<=1", inputs=(FEEDS,)).check_read()
    with pytest.raises(UsageError, match="inputs have no effect without a budget"):
        OutputBudget(inputs=(FEEDS,)).check_read()


CODED = (
    "(float[4] x) => (float[4] y) <int8[4] q = {1,2,3,4}, float s = {1}> "
    "{ h = DequantizeLinear(q, s) y = Mul(x, h) }"
)
UNTYPED = CODED.replace("h = DequantizeLinear(q,", "u = own.Made(q) h = DequantizeLinear(u,")
SMALL, UNABLE = Skip("it is small"), Unable("it is unable")
NOTHING = Unable("no node is quantised: 1 Mul: it is small")


@pytest.mark.parametrize(
    ("text", "reason", "options", "said"),
    [
        (CHAIN, None, {}, []),
        (CHAIN, SMALL, {}, [SMALL, NOTHING]),
        (CHAIN, SMALL, {"low": DataType.INT8}, [SMALL, NOTHING]),
        (CODED, SMALL, {"low": DataType.FLOAT8E4M3FN}, [SMALL, NOTHING]),
        (CODED, SMALL, {"low": DataType.INT8}, [SMALL]),
        (UNTYPED, SMALL, {}, [SMALL, NOTHING]),
        (CHAIN, UNABLE, {}, [UNABLE]),
        (CHAIN, UNABLE, {"was_converted": True}, [Skip("it is unable")]),
        (CHAIN, SMALL, {"was_converted": True}, [SMALL]),
        (
            CODED,
            SMALL,
            {"low": DataType.INT8, "limit": "relative<=1"},
            [Skip("the model has int8 already")],
        ),
    ],
)
def test_what_is_said_where_nothing_is_converted(
    text: str, reason: Skip | None, options: dict[str, Any], said: list[Skip]
) -> None:
    model, found = Model.from_proto(parse(text)), list[Skip]()
    (node, *_) = model.main.nodes_of("Mul")

    def idle(kept: Mapping[Node, str], on_found: OnFound, on_skip: OnSkip) -> Collection[Node]:
        if reason is not None:
            on_skip(node, reason)
        return ()

    budget = OutputBudget(limit=options.pop("limit", ""))
    convert_within(
        model, idle, budget, print, lambda node, skip: found.append(skip), what="node", **options
    )
    assert list(map(repr, found)) == list(map(repr, said))


def test_nothing_returns_if_the_budget_holds() -> None:
    assert factors_after("relative<=0.6")[0] == ["good", "bad"]


def test_a_budget_that_does_not_hold_leaves_the_model() -> None:
    model = Model.from_proto(parse(CHAIN))
    before = model.to_proto()
    settings = OutputBudget(limit="cosine>=2", inputs=(FEEDS,))
    with pytest.raises(VerificationError, match="cannot be met: cosine is 1 with all 2 nodes"):
        convert_within(model, Other(model), settings, print, lambda node, reason: None, what="node")
    assert model.to_proto() == before


def test_a_budget_that_is_none_is_an_error() -> None:
    model, settings = Model.from_proto(parse(CHAIN)), OutputBudget(limit="tight")
    with pytest.raises(UsageError, match="'tight' is no budget"):
        convert_within(model, Other(model), settings, print, lambda node, reason: None, what="node")


def test_a_weight_that_returns_says_why() -> None:
    proto = with_weight("(float[N,64] x) => (float[N,16] y) { y = MatMul(x, w) }", (64, 16))
    model, found = apply("weights_to_int4", proto, {"budget": "relative<=0.001"})
    assert not model.main.nodes_of("DequantizeLinear")
    assert any("MatMul unchanged: returned for relative<=0.001" in each for each in found), found


TWO = (
    "(float[N,64] x) => (float[N,16] y, float[N,16] z) "
    "{ y = MatMul(x, w) s = Neg(x) z = Gemm(s, w2) }"
)


@pytest.mark.parametrize("name", ["weights_to_int8", "weights_to_int4", "fp8_weight"])
def test_a_second_run_with_a_budget_changes_nothing(name: str) -> None:
    proto = with_weight(TWO, (64, 16))
    other = np.random.default_rng(1).standard_normal((64, 16)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(other, "w2"))
    model, _ = apply(name, proto, {"budget": "relative<=0.2"})
    assert model.main.nodes_of("DequantizeLinear")
    again = PassContext.isolated()
    get_pass(name).with_options(budget="relative<=1e-9").apply(model, again)
    assert any("already" in str(remark) for remark in again.remarks)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "limit"), [("weights_to_int8", 0.006), ("float_to_fp8", 0.03)])
def test_what_reaches_the_outputs_returns_first(name: str, limit: float, seed: int) -> None:
    """Of two products with about the same error, one counts a hundred times as much."""
    text = (
        "(float[N,64] x) => (float[N,64] y) <float k = {0.01}> "
        "{ a = MatMul(x, v) b = MatMul(x, w) m = Mul(b, k) y = Add(a, m) }"
    )
    proto, source = parse(text, opset=21), np.random.default_rng(seed)
    for each in ("v", "w"):
        weight = source.standard_normal((64, 64)).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, each))
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(name).with_options(budget=f"relative<={limit:g}").apply(model, ctx)
    returned = [str(each) for each in ctx.remarks if "returned for" in str(each)]
    assert all("(a)" in each for each in returned)
    assert "w" not in {value.name for value in model.main.initializers}
