"""The registry of shape rules: parameters and results of rules, and one rule of each kind."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import onnx
import pytest

from tiered import Node, TensorType, UsageError, shape_rule
from tiered.graph import Model
from tiered.graph.core.value import Elements
from tiered.graph.shape_inference.infer import inferred_types
from tiered.graph.shape_inference.rules.shape_rule import (
    TYPES,
    VALUES,
    register_type_rule,
    unregister_type_rule,
)
from tiered.testing import parse


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Restore the registry after a test."""
    tables = [(table, dict(table)) for table in (TYPES.rules, VALUES.rules)]
    yield
    for table, before in tables:
        table.clear()
        table.update(before)


def parsed(text: str) -> Model:
    header = '<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]> g '
    return Model.from_proto(onnx.parser.parse_model(header + text))


def output_type(model: Model) -> str:
    return str(model.main.nodes[0].output.type)


def test_a_rule_takes_the_types_of_the_operands() -> None:
    @shape_rule("Stack", "Pile", domain="vendor")
    def stack(node: Node, operands: list[TensorType]) -> TensorType:
        assert node.op_type == "Pile"
        return TensorType(operands[1].dtype, (len(operands), *(operands[0].shape or ())))

    model = parsed("(float[N] x, int64[N] i) => (float y) { a = vendor.Pile(x, i) y = Neg(x) }")
    assert output_type(model) == "int64[2,N]"
    assert TYPES.of(model.main.nodes[0]) is not None
    assert VALUES.of(model.main.nodes[0]) is None


@pytest.mark.parametrize(
    "call",
    ["vendor.Twice(parts)", "vendor.Twice(unknown)", "vendor.Twice<by: int = @by>(x)"],
)
def test_a_rule_with_operands_is_called_for_known_tensors_and_attributes(call: str) -> None:
    called = list[str]()

    @shape_rule("Twice", domain="vendor")
    def twice(node: Node, operands: list[TensorType]) -> TensorType:
        called.append(node.op_type)
        return operands[0]

    header = (
        '<ir_version: 10, opset_import: ["" : 21, "vendor" : 1, "local" : 1]> g '
        "(float[N] x, seq(float[N]) parts) => (float[N] y) { y = local.F<by=2>(x, parts) }"
        ' <domain: "local", opset_import: ["" : 21, "vendor" : 1]>'
        f" F <by> (x, parts) => (y) {{ unknown = vendor.Other(x) a = {call} y = Relu(x) }}"
    )
    proto = onnx.parser.parse_model(header)
    model = Model.from_proto(proto)
    (function,) = model.functions
    for node in function.nodes:
        for output in node.outputs:
            assert output is not None
            assert output.type is None or "Twice" not in node.op_type
    assert called == []


def test_a_rule_of_values_propagates_data() -> None:
    @shape_rule("Twice", domain="vendor", infers="values")
    def twice(node: Node) -> Elements | None:
        elements = node.inputs[0].elements if node.inputs[0] else None
        return None if elements is None else np.concatenate([elements, elements])

    @shape_rule("Twice", domain="vendor")
    def twice_as_long(node: Node, operands: list[TensorType]) -> TensorType:
        (length,) = operands[0].shape or (None,)
        return TensorType(7, (length * 2 if isinstance(length, int) else None,))

    model = parsed(
        "(float[N,3] x, float[1,1,1,1] one) => (float[P,Q,R,S] y)"
        " { s = Shape(x) t = vendor.Twice(s) y = Expand(one, t) }"
    )
    assert VALUES.of(model.main.nodes[1]) is not None
    elements = model.main.values["t"].elements
    assert elements is not None
    assert [str(element) for element in elements] == ["N", "3", "N", "3"]
    assert str(model.main.values["y"].type) == "float[N,3,N,3]"


def test_a_rule_may_leave_dims_to_onnx() -> None:
    @shape_rule("Compress", ask_onnx=True)
    def rank_alone(node: Node, operands: list[TensorType]) -> TensorType:
        return TensorType(operands[0].dtype, (None, 3))

    model = parsed("(float[N,3] x, bool[N] c) => (float y) { y = Compress<axis=0>(x, c) }")
    assert output_type(model).endswith(",3]")


def test_an_operator_of_onnx_without_a_rule_takes_one() -> None:
    @shape_rule("Hardmax")
    def hardmax(node: Node, operands: list[TensorType]) -> TensorType:
        return operands[0]

    model = parsed("(float[N,3] x) => (float[N,3] y) { y = Hardmax(x) }")
    assert output_type(model) == "float[N,3]"


@pytest.mark.parametrize("error", [IndexError, KeyError, TypeError, ValueError, AttributeError])
def test_a_rule_declines_by_an_error(error: type[Exception]) -> None:
    @shape_rule("Twice", domain="vendor")
    def declined(node: Node) -> None:
        raise error("not for this node")

    model = parsed("(float[N] x) => (float y) { a = vendor.Twice(x) y = Neg(x) }")
    assert output_type(model) == "None"


@pytest.mark.parametrize(("domain", "op_type"), sorted(TYPES.rules))
def test_an_operator_has_one_type_rule(domain: str, op_type: str) -> None:
    with pytest.raises(UsageError, match="there is a type rule for"):
        shape_rule("Other", op_type, domain=domain)(lambda node: None)
    assert (domain, "Other") not in TYPES.rules


@pytest.mark.parametrize(("domain", "op_type"), sorted(VALUES.rules))
def test_an_operator_has_one_value_rule(domain: str, op_type: str) -> None:
    with pytest.raises(UsageError, match="there is a value rule for"):
        shape_rule(op_type, domain=domain, infers="values")(lambda node: None)


def test_a_rule_names_its_operators() -> None:
    with pytest.raises(UsageError, match="shape_rule takes names of operators"):
        shape_rule()
    with pytest.raises(UsageError, match="shape_rule takes names of operators"):
        shape_rule(lambda node: None)  # type: ignore[call-overload]  # the mistake of no brackets


def test_the_rules_of_tiered_are_there_before_a_plug_in_registers_another() -> None:
    code = "import tiered\nfrom tiered import shape_rule\nshape_rule('Conv')(lambda node: None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "there is a type rule for Conv already" in done.stderr


def test_a_function_of_the_model_comes_before_the_rule_of_its_name() -> None:
    model = Model.from_proto(
        parse("""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (float[2,3] x) => (float[A,B] y) {
            h = com.microsoft.FastGelu(x)  y = Neg(h) }
        <domain: "com.microsoft", opset_import: ["" : 21]> FastGelu (a) => (b) {
            b = Transpose(a) }""")
    )
    (node,) = model.main.nodes_of("FastGelu", "com.microsoft")
    assert inferred_types(node) is None
    assert node.output.shape == (3, 2)


def test_operators_that_onnx_infers_take_no_registered_rule() -> None:
    for op_type, domain, name in (
        ("Conv", "", "Conv"),
        ("Odd", "", "Odd"),
        ("Scaler", "ai.onnx.ml", "ai.onnx.ml::Scaler"),
    ):
        with pytest.raises(UsageError) as caught:
            register_type_rule(op_type, domain, lambda node: None)
        assert str(caught.value).startswith("onnx knows the types of "), name
        assert str(caught.value).endswith(": it takes no rule"), name
    register_type_rule("Odd", "ai.onnx.ml", lambda node: None)
    assert ("ai.onnx.ml", "Odd") in TYPES.rules
    unregister_type_rule("Odd", "ai.onnx.ml")
    assert ("ai.onnx.ml", "Odd") not in TYPES.rules
