"""Nodes that do not match their schema are refused with the mismatch, when a file is read."""

from typing import Any

import onnx
import pytest

from tests.small import made_by, parsed
from tiered.graph import Model
from tiered.graph.queries.schema_check import check_node_at
from tiered.support.errors import ModelError
from tiered.testing import parse

GEMM = "(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = Gemm(x, w) }"
SPLIT = "(float[4] x) => (float[2] y, float[2] z) { y, z = Split<num_outputs = 2>(x) }"
CONCAT = "(float[2] x) => (float[4] y) { y = Concat<axis = 0>(x, x) }"


def refusal(proto: onnx.ModelProto) -> str:
    with pytest.raises(ModelError) as raised:
        Model.from_proto(proto)
    return str(raised.value)


def changed(text: str, **how: Any) -> onnx.ModelProto:
    proto = parse(text)
    node = proto.graph.node[0]
    for name, value in how.items():
        if name == "inputs":
            node.input[:] = value
        elif name == "outputs":
            node.output[:] = value
        elif name == "drop":
            del node.attribute[:]
        else:
            node.attribute.append(onnx.helper.make_attribute(name, value))
    return proto


@pytest.mark.parametrize(
    ("text", "how", "because"),
    [
        (GEMM, {"inputs": ["x"]}, "has 1 input; its operator takes 2 to 3"),
        (GEMM, {"inputs": ["x", "w", "x", "w"]}, "has 4 inputs; its operator takes 2 to 3"),
        (GEMM, {"inputs": ["x", ""]}, "lacks its input 1"),
        (GEMM, {"outputs": ["y", "z"]}, "has 2 outputs; its operator takes 1"),
        (GEMM, {"alpha": 2}, "has the attribute 'alpha' as INT; its operator takes FLOAT"),
        (CONCAT, {"drop": True}, "lacks the attribute 'axis'"),
        (CONCAT, {"axis": 1}, "has the attribute 'axis' twice"),
    ],
)
def test_a_mismatch_is_named(text: str, how: dict[str, object], because: str) -> None:
    assert refusal(changed(text, **how)).endswith(because)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (GEMM, {"alpha": 2.0}),
        (GEMM, {"inputs": ["x", "w", ""]}),
        (GEMM, {"unknown": 3}),
        (SPLIT, {}),
        (CONCAT, {}),
    ],
)
def test_what_an_operator_takes_is_read(text: str, how: dict[str, object]) -> None:
    assert Model.from_proto(changed(text, **how)).main.nodes


def test_a_node_is_checked_at_another_opset() -> None:
    node = made_by(parsed("(float[2] x, float m) => (float[2] y) { y = Clip(x, m, m) }"), "y")
    check_node_at(node, 11)
    with pytest.raises(ModelError, match=r"Clip-6\) has 3 inputs; its operator takes 1"):
        check_node_at(node, 6)


def test_a_call_of_a_local_function_is_not_checked() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }
        <domain: "", opset_import: ["" : 21]> Relu (a) => (b) { b = Neg(a) }"""
    proto = parse(text)
    proto.graph.node[0].input.append("x")
    proto.functions[0].input.append("c")
    assert Model.from_proto(proto).main.nodes


def test_each_mismatch_of_a_node_has_its_message() -> None:
    for text, because in (
        ("y = Concat<axis = 1.5>(x)", "(Concat-13) has the attribute 'axis' as FLOAT; its operator takes INT"),
        ("y = Concat()", "(Concat-13) has 0 inputs; its operator takes 1 to 2147483647"),
        ("y = LSTM<hidden_size=1>(x, x)", "(LSTM-14) has 2 inputs; its operator takes 3 to 8"),
        ("y, z = Split(x)", "(Split-18) has 2 outputs; its operator takes 1 to 2147483647"),
        ("y, z = Relu(x)", "(Relu-14) has 2 outputs; its operator takes 1"),
        ("y = Scan(x)", "(Scan-21) lacks the attribute 'body'"),
        ('y = Relu("")', "(Relu-14) lacks its input 0"),
    ):  # fmt: skip
        proto = parse(f"(float[2] x) => (float[2] y) {{ {text} }}")
        if "Split-" in because:
            Model.from_proto(proto)
        else:
            assert refusal(proto) == f"node 'y' {because}"


def test_references_of_attributes_need_no_type() -> None:
    for attribute, is_fit in (("axis: int = @a", True), ("axis: float = @a", False)):
        proto = parse(
            f"""<ir_version: 10, opset_import: ["": 21, "own": 1]> g (float[2] x) => (float[2] y)
            {{ y = own.f<a=0>(x) }} <domain: "own", opset_import: ["": 21]>
            f <a> (v) => (w) {{ w = Softmax<{attribute}>(v) }}"""
        )
        if is_fit:
            proto.functions[0].node[0].attribute[0].ClearField("type")
            assert Model.from_proto(proto).functions
        else:
            assert refusal(proto).endswith("as FLOAT; its operator takes INT")
