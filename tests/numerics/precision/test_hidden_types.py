"""Places where a type hides: attributes, control flow, defaults of inputs, old opsets."""

import numpy as np
import onnx
import pytest

from tiered import DataType, Model, PassContext, get_pass
from tiered.runtime import run
from tiered.testing import parse

HALF = int(DataType.FLOAT16)


def lowered(
    text: str, name: str = "float_to_bfloat16", *, opset: int = 21, **options: object
) -> tuple[Model, list[str]]:
    """Return a model in a narrower type, valid and at rest, and the findings."""
    model, ctx = Model.from_proto(parse(text, opset=opset)), PassContext.isolated()
    lower = get_pass(name).with_options(**options)
    lower.apply(model, ctx)
    proto = model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    again = Model.from_proto(proto)
    lower.apply(again)
    assert again.to_proto() == proto
    return model, [str(remark) for remark in ctx.remarks]


def dtypes_of(model: Model, operator: str) -> set[int | None]:
    nodes = model.main.nodes_of(operator)
    return {value.dtype for node in nodes for value in node.outputs if value is not None}


FLOWS = {
    "If": "(bool c, float[2] x) => (float[2] y) { a = Relu(x) b = If(c) <then_branch = t () => "
    "(float[2] p) { p = Exp(a) }, else_branch = e () => (float[2] q) { q = Identity(a) }> "
    "y = Relu(b) }",
    "Loop": "(float[2] x) => (float[2] y) <int64 n = {3}, bool c = {1}> { a = Relu(x) "
    "b = Loop(n, c, a) <body = f (int64 i, bool d, float[2] s) => (bool e, float[2] t) "
    "{ e = Identity(d) t = Exp(s) }> y = Relu(b) }",
    "Scan": "(float[2] x, float[4,2] s) => (float[2] y, float[4,2] z) { a = Relu(x) "
    "b, z = Scan <num_scan_inputs = 1, body = f (float[2] u, float[2] e) => (float[2] v, "
    "float[2] o) { v = Add(u, e) o = Exp(v) }> (a, s) y = Relu(b) }",
}


@pytest.mark.parametrize("operator", FLOWS)
def test_control_flow_has_no_bfloat16_before_opset_16(operator: str) -> None:
    model, found = lowered(FLOWS[operator], opset=13)
    assert dtypes_of(model, operator) == {DataType.FLOAT}
    assert any(f"{operator} has no bfloat16" in each for each in found), found
    model, _ = lowered(FLOWS[operator], opset=17)
    assert dtypes_of(model, operator) == {DataType.BFLOAT16}


@pytest.mark.parametrize("opset", [7, 11, 12])
@pytest.mark.parametrize("keep_io_types", [True, False])
def test_there_is_no_bfloat16_before_opset_13(opset: int, keep_io_types: bool) -> None:
    text = "(float[2] x) => (float[2] y) { a = Relu(x) y = Identity(a) }"
    model, found = lowered(text, opset=opset, keep_io_types=keep_io_types)
    assert [value.dtype for value in model.main.inputs] == [DataType.FLOAT]
    assert any("Relu has no bfloat16" in each for each in found), found


@pytest.mark.parametrize("opset", [17, 21])
def test_an_attribute_names_the_dtype_of_a_mean(opset: int) -> None:
    text = (
        "(float[2,4] x) => (float[2,4] y, float[2,1] m) <float[4] s = {1,1,1,1}> "
        "{ a = Relu(x) y, m = LayerNormalization(a, s) }"
    )
    model, found = lowered(text, opset=opset, keep_io_types=False)
    assert [value.dtype for value in model.main.outputs] == [DataType.BFLOAT16, DataType.FLOAT]
    assert any("attribute 'stash_type' names the dtype" in each for each in found), found


def test_a_default_of_an_input_follows_it() -> None:
    text = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,70000}> { y = Add(x, w) }"
    model, _ = lowered(text, "float_to_half", keep_io_types=False)
    (w,) = model.main.initializers
    assert (w.is_overridable, w.dtype) == (True, HALF)
    x = np.array([1, -1], np.float16)
    assert run(model.to_proto(), {"x": x})["y"].tolist() == [2, 65504]
    assert run(model.to_proto(), {"x": x, "w": x})["y"].tolist() == [2, -2]


def test_the_dtype_of_mel_weights_follows() -> None:
    text = (
        "() => (float[4,3] y) <int64 a = {3}, int64 d = {6}, int64 r = {100}, float l = {0}, "
        "float u = {40}> { m = MelWeightMatrix(a, d, r, l, u) y = Relu(m) }"
    )
    model, _ = lowered(text, "float_to_half")
    (node,) = model.main.nodes_of("MelWeightMatrix")
    assert node.attr("output_datatype") == HALF


BITS = (
    "(float[4] x) => (float[4] y) { a = Relu(x) i = BitCast <to = 6> (a) "
    "b = BitCast <to = 1> (i) y = Relu(b) }"
)
LABELS = (
    '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 4]> g (float[2] x) => (float[2] y) '
    "{ a = Relu(x) b = ai.onnx.ml.LabelEncoder <keys_floats = [0.0, 1.0], "
    "values_floats = [3.0, 4.0]> (a) y = Relu(b) }"
)


@pytest.mark.parametrize(
    ("text", "opset", "operator", "reason"),
    [
        (BITS, 26, "BitCast", "its result depends on the bits"),
        (LABELS, 21, "LabelEncoder", "numbers of an attribute may decide the dtype"),
    ],
)
def test_what_stays_float(text: str, opset: int, operator: str, reason: str) -> None:
    model, found = lowered(text, "float_to_half", opset=opset)
    (*_, last) = [node for node in model.main.topological_order() if node.op_type == operator]
    assert last.output.dtype == DataType.FLOAT
    assert any(reason in each for each in found), found
