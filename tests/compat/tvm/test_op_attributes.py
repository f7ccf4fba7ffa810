r"""Predicates of targets and layout rules, as \`register_op_attr\` takes them."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import tiered
from tests.recorded import assert_values
from tests.small import named, parsed
from tiered import Model
from tiered.analysis.layout.axis_propagation import LAYOUTS
from tiered.compat import tvm
from tiered.compat.tvm import op_attributes, relay
from tiered.compat.tvm.op_attributes import register_op_attr, registered_support
from tiered.support.errors import (
    UsageError,
)
from tiered.testing import parse

CONV = """(float[1,3,4,4] x) => (float[1,2,4,4] y)
    <float[2,3,1,1] w = {1,2,3,4,5,6}, float[2,1,1] b = {1,2}> {
    a = Conv(x, w) c = Add(a, b) y = Relu(c) }"""


def test_predicates_are_registered_as_in_tvm() -> None:
    def relu(expr: Any) -> bool:
        return bool(expr.inputs[0].rank == 4)

    assert tvm.ir.register_op_attr("nn.relu", "target.test_xyz")(relu) is relu

    reg = importlib.import_module("tiered.compat.tvm.relay.op.op")
    reg.register("nn.conv2d", "target.test_dnnl", lambda attrs, args: len(args) == 2)
    reg.register("add", "target.test_dnnl", True)
    tvm.ir.register_op_attr("sigmoid", "target.test_dnnl", False)
    for targets, expected in (
        (["test_dnnl", "test_xyz"], ["test_dnnl", "test_dnnl", "test_xyz"]),
        (["test_xyz", "llvm"], ["onnxruntime_cpu", "onnxruntime_cpu", "test_xyz"]),
    ):
        made = tvm.transform.AnnotateTarget(target=targets)(parse(CONV))
        assert [node.metadata_props[0].value for node in made.graph.node] == expected
    with pytest.raises(UsageError, match="'FTVMCompute' has no equivalent"):
        tvm.ir.register_op_attr("add", "FTVMCompute", relu)
    with pytest.raises(UsageError, match=r"named 'nn\.relv'; did you mean 'nn\.relu'"):
        tvm.ir.register_op_attr("nn.relv", "target.x", relu)


def test_a_layout_rule_is_registered_as_in_tvm() -> None:
    def scale(node: Any) -> Any:
        return tiered.Skip("for the test")

    tvm.ir.register_op_attr("test.tvm::ScaleOfTvm", "FInferCorrectLayout", scale)
    assert LAYOUTS.find(("test.tvm", "ScaleOfTvm")) is scale
    LAYOUTS.remove("ScaleOfTvm", "test.tvm")


@pytest.fixture
def target() -> Iterator[str]:
    """Return a target without predicates, which are forgotten at the end."""
    yield "target_of_test"
    op_attributes._PREDICATES.pop("target_of_test", None)


def taken(target: str, of: Model) -> list[str]:
    """Return the operators of the nodes that a target takes."""
    support = registered_support(target)
    assert support is not None
    return [node.op_type for node in of.main.nodes if support.is_node_supported(of.main, node)]


def test_a_target_without_predicates_has_no_support(target: str) -> None:
    assert registered_support(target) is None


def test_a_predicate_is_of_a_node_or_of_attributes_and_inputs_or_a_constant(target: str) -> None:
    of = parsed(
        """(float[2] x) => (float[2] y) {
        a = Neg(x)  b = Abs(a)  c = Exp(b)  d = Log(c)  y = Add(d, d) }"""
    )
    key = f"target.{target}"
    seen: list[Any] = []
    register_op_attr("negative", key, lambda node: node.op_type == "Neg")
    register_op_attr("abs", key, lambda attrs, args: seen.append((attrs, args)))
    register_op_attr("exp", key, True)
    register_op_attr("Log", key, False)
    assert taken(target, of) == ["Neg", "Exp"]
    assert seen == [({}, (named(of, "a"),))]
    register_op_attr("Log", key, True, level=3)
    assert taken(target, of) == ["Neg", "Exp", "Log"]


def test_a_name_of_several_operators_registers_all(target: str) -> None:
    register_op_attr("nn.dense", f"target.{target}", True)
    of = parsed(
        "(float[2,2] x) => (float[2,2] y) { a = MatMul(x, x)  b = Gemm(a, x)  y = Relu(b) }"
    )
    assert taken(target, of) == ["MatMul", "Gemm"]


def test_a_target_takes_its_own_composites(target: str) -> None:
    register_op_attr("nn.relu", f"target.{target}", True)
    relu = relay.dataflow_pattern.is_op("negative")(relay.dataflow_pattern.wildcard())
    text = "(float[2] x) => (float[2] y) { a = Neg(x)  y = Relu(a) }"
    for name, expected in ((target, [f"{target}.neg", "Relu"]), ("other", ["Relu"])):
        table = [(f"{name}.neg", relu)]
        merged = Model.from_proto(tvm.transform.MergeComposite(table)(parse(text)))
        assert taken(target, merged) == expected


def test_a_decorator_returns_its_function(target: str) -> None:
    def predicate(node: Any) -> bool:
        return True

    assert register_op_attr("nn.relu", f"target.{target}")(predicate) is predicate
    assert op_attributes.register is register_op_attr


@pytest.mark.parametrize("key", ["target.", "target", "FTVMCompute"])
def test_other_attributes_have_no_equivalent(key: str) -> None:
    with pytest.raises(
        UsageError, match=f"'{key}' has no equivalent; expected target.NAME or FInfer"
    ):
        register_op_attr("nn.relu", key, True)


def test_functions_of_relay_are_found() -> None:
    assert op_attributes.add.__name__ == "add"
    assert op_attributes.nn.relu.__name__ == "relu"
    with pytest.raises(AttributeError, match="relay has no operator 'nothing'"):
        op_attributes.nothing  # noqa: B018  # raises
    with pytest.raises(AttributeError, match="__path__"):
        op_attributes.__path__  # noqa: B018  # raises


def test_supports_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_attributes, "_PREDICATES", {})
    of = parsed(
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1, "tiered.composite" : 1]> '
        "g (float[2,2] x) => (float[2,2] y) { a = Relu(x) b = Gemm<alpha = 2.0>(a, x) c = Neg(b)"
        " d = own.Scale(c) y = Softmax<axis = 0>(d) }"
    )

    def taken(target: str) -> object:
        support = registered_support(target)
        if support is None:
            return None
        return [n.op_type for n in of.main.nodes if support.is_node_supported(of.main, n)]

    names = {"register": register_op_attr, "taken": taken, "op": op_attributes}
    assert_values(__file__, names)
