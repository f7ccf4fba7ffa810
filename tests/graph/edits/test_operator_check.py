"""The builder rejects calls that the schemas forbid, and makes constants of numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from ml_dtypes import bfloat16

from tiered import Graph, Model, OperatorError, Skip, Value, get_pass, op, rewrite, var
from tiered.context import PassContext
from tiered.graph.core.operator_calls import OperatorCalls
from tiered.graph.edits.operator_check import check_call, check_operator
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.pipeline.optimize import optimize
from tiered.testing import parse

Call = Callable[[OperatorCalls, Value, Value], Any]

TEXT = "(float[2,3] x, int64[3] i) => (float[2,3] y, int64[3] j) { y = Relu(x) j = Abs(i) }"


def loaded(text: str = TEXT, opset: int = 21) -> tuple[Graph, Value, Value]:
    graph = Model.from_proto(parse(text, opset=opset)).main
    x, i = graph.inputs
    return graph, x, i


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda o, x, i: o.Sigmiod(x), "onnx has no operator 'Sigmiod'; did you mean 'Sigmoid'"),
        (lambda o, x, i: o("ai.onnx.ml").Normalizr(x), "did you mean 'Normalizer'"),
        (lambda o, x, i: o.Softmax(x, axes=1), "no attribute 'axes'; it has axis; did you mean"),
        (lambda o, x, i: o.Squeeze(x, axes=[0]), "'axes' is operand 1, not an attribute"),
        (
            lambda o, x, i: o.Softmax(x, axis=1.5),
            "the type of an attribute differs from the schema",
        ),
        (lambda o, x, i: o.Cast(x), "attribute 'to' is missing"),
        (lambda o, x, i: o.Add(x), "it has 2 operands, not 1"),
        (lambda o, x, i: o.Reshape(None, i), r"operand 0 \(data\) is missing"),
        (lambda o, x, i: o.Relu(x, outputs=2), "it has 1 output, not 2"),
        (lambda o, x, i: o.Add(x, i), r"operand 1 \(B\) is int64, and A is float"),
        (lambda o, x, i: o.And(x, x), r"operand 0 \(A\) is float; it takes bool"),
        (lambda o, x, i: o.Sigmoid(o.Shape(x)), r"operand 0 \(X\) is int64; it takes"),
        (lambda o, x, i: o.Add(o.Neg(o.Cast(x, to=7)), x), "is float, and A is int64"),
        (lambda o, x, i: o.Mul(x, [1.0]), r"operand 1 is \[1.0\]; pass a value, an array"),
    ],
)
def test_an_invalid_call_is_an_error_that_names_the_cause(call: Call, found: str) -> None:
    graph, x, i = loaded()
    with pytest.raises(OperatorError, match=r"^graph.op.*: .*" + found):
        call(graph.op, x, i)


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (lambda o, x, i: o.Mul(x, 1.5), np.float32(1.5)),
        (lambda o, x, i: o.Sub(2, x), np.float32(2)),
        (lambda o, x, i: o.Mul(i, -3), np.int64(-3)),
        (lambda o, x, i: o.Mul(x, -0.0), np.float32(-0.0)),
        (lambda o, x, i: o.Mul(x, float("nan")), np.float32("nan")),
        (lambda o, x, i: o.Mul(x, float("-inf")), np.float32("-inf")),
        (lambda o, x, i: o.Mul(x, np.float64(0.1)), np.float32(0.1)),
        (lambda o, x, i: o.Mul(x, np.array([0.1])), np.array([0.1], np.float32)),
        (lambda o, x, i: o.Mul(o.Cast(x, to=16), 1.5), np.array(1.5, bfloat16)),
        (lambda o, x, i: o.Reshape(x, np.array([6], np.int32)), np.array([6])),
        (lambda o, x, i: o.Where(True, x, x), np.True_),
        (lambda o, x, i: o.Pow(x, np.array(2)), np.array(2)),
    ],
)
def test_a_number_has_the_dtype_that_the_schema_demands(call: Call, number: Any) -> None:
    graph, x, i = loaded()
    made = call(graph.op, x, i)
    constants = (value.const for value in made.producer.inputs if value is not None)
    (array,) = [constant for constant in constants if constant is not None]
    assert array.dtype == number.dtype
    assert array.shape == number.shape
    assert array.tobytes() == number.tobytes()


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda o, x, i: o.Mul(i, 1.5), "is 1.5, which int64 cannot hold"),
        (lambda o, x, i: o.Mul(i, 1 << 63), "which int64 cannot hold"),
        (lambda o, x, i: o.Mul(o.Cast(i, to=3), 300), "is 300, which int8 cannot hold"),
        (lambda o, x, i: o.Mul(x, 1e39), "too large for float"),
        (lambda o, x, i: o.Mul(x, np.array(1e39)), "is double, and A is float"),
        (lambda o, x, i: o.Mul(i, np.array([1.5])), "is double, and A is int64"),
        (lambda o, x, i: o.Mul(x, True), "is the number True, where float is expected"),
        (
            lambda o, x, i: o.Add(1.0, 2.0),
            r"no other operand determines its dtype; pass an array: np.array\(1.0",
        ),
        (
            lambda o, x, i: o("com.microsoft").FastGelu(x, 1.0),
            "no other operand determines its dtype",
        ),
        (lambda o, x, i: o.Mul("x", x), r"is 'x'; pass a value, an array, a number or None"),
    ],
)
def test_a_number_that_does_not_fit_is_an_error(call: Call, found: str) -> None:
    graph, x, i = loaded()
    with pytest.raises(OperatorError, match=found):
        call(graph.op, x, i)


def test_the_form_of_an_old_opset_is_not_refused() -> None:
    graph, x, _ = loaded(opset=9)
    assert graph.op.Slice(x, starts=[0], ends=[1], axes=[0]).shape == (1, 3)
    assert graph.op.Dropout(x, ratio=0.25).producer is not None


def test_a_local_function_may_have_any_name() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Mine(x) } '
        '<domain: "", opset_import: ["" : 21]> Mine (a) => (b) { b = Relu(a) }'
    )
    graph = Model.from_proto(parse(text)).main
    assert graph.op.Mine(graph.inputs[0]).producer is not None


def test_a_domain_that_is_not_imported_is_imported() -> None:
    graph, x, _ = loaded()
    graph.op("npu").Clamp(x)
    graph.add_node("Scaler", (x,), domain="ai.onnx.ml")
    assert graph.model.opset_imports == {"": 21, "npu": 1, "ai.onnx.ml": 1}
    (node, *_) = graph.nodes
    graph.set_operator(node, "Relu", "odd")
    assert graph.model.opset("odd") == 1


@rewrite(op.Relu(var.x), opt_level=0)
def misspell(graph: Graph, x: Value) -> Value | Skip:
    return graph.op.Sigmiod(x)


def test_a_rewrite_is_named_and_undone() -> None:
    source = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    model = Model.from_proto(source)
    with pytest.raises(OperatorError, match=r"misspell: graph.op.Sigmiod \(at node 'y'\)"):
        misspell.apply(model)
    assert model.to_proto() == source
    with pytest.raises(OperatorError):
        optimize(source, passes=[misspell])
    assert OperatorError.exit_code == 5


@rewrite(op.Relu(var.x), opt_level=0)
def widen(graph: Graph, x: Value) -> Value | Skip:
    return graph.op.Unsqueeze(graph.op.Relu(x), np.array([0]))


@rewrite(op.Relu(var.x), opt_level=0)
def quantize(graph: Graph, x: Value) -> Value | Skip:
    return graph.op.Cast(x, to=int(onnx.TensorProto.INT8))


def test_another_dtype_or_rank_at_an_output_is_an_error() -> None:
    source = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(OperatorError, match=r"^widen: output 'y' of the model is float\[2\]"):
        widen(source)
    with pytest.raises(OperatorError, match=r"\(Cast\), which would replace it, is int8\[2\]"):
        quantize(source)
    inner = parse("(float[2] x) => (float[2] y) { z = Abs(x) y = Abs(z) }")
    assert get_pass("eliminate_idempotent")(inner).graph.output == inner.graph.output


def test_dtypes_of_a_model_that_was_invalid_before_are_no_fault_of_the_pass() -> None:
    @rewrite(op.Add(var.a, var.b), opt_level=0)
    def swap(graph: Graph, a: Value, b: Value) -> Value | Skip:
        return graph.op.Mul(a, b)

    source = parse("(float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }")
    with PassContext(3) as ctx:
        assert swap(source) == source
    (remark,) = [remark for remark in ctx.remarks if remark.kind == "missed"]
    assert "the model was invalid" in remark.reason


CALLS: list[tuple[int, str, str, list[str | None], dict[str, Any], int | None, str | None]] = [
    (21, "Relu", "", ["x"], {}, 1, None),
    (21, "Relu", "", ["x"], {}, None, None),
    (21, "Relu", "", ["x"], {}, 2, "graph.op.Relu: it has 1 output, not 2"),
    (21, "Relu", "", ["x"], {"k": 1}, 1, "graph.op.Relu: it has no attribute 'k'; it has none"),
    (21, "Clip", "", [None], {}, 1, "graph.op.Clip: it has 1 to 3 operands, not 0"),
    (21, "Clip", "", ["x", None, None], {}, 1, None),
    (21, "Add", "", [None, "x"], {}, 1, "graph.op.Add: operand 0 (A) is missing"),
    (21, "Loop", "", [None, None, "x"], {"body": 1}, 1, None),
    (21, "Normalizr", "ai.onnx.ml", ["x"], {}, 1,
     "graph.op(\"ai.onnx.ml\").Normalizr: onnx has no operator 'Normalizr'; did you mean 'Normalizer'?"),
    (21, "Any", "vendor", ["x"], {"k": 1}, 5, None),
    (21, "Normalizer", "ai.onnx.ml", ["x"], {"norm": "L1"}, 1, None),
    (21, "Scaler", "ai.onnx.ml", ["x"], {"k": 1}, 1,
     "graph.op(\"ai.onnx.ml\").Scaler: it has no attribute 'k'; it has offset, scale"),
    (13, "Gelu", "", ["x"], {"approximate": "tanh"}, 1, None),
    (13, "Gelu", "", ["x"], {"k": 1}, 1, "graph.op.Gelu: it has no attribute 'k'; it has approximate"),
    (13, "Cast", "", ["x"], {"to": 1, "saturate": 1}, 1, None),
    (13, "Squeeze", "", ["x"], {"axes": [0]}, 1, "graph.op.Squeeze: 'axes' is operand 1, not an attribute"),
    (12, "Squeeze", "", ["x"], {"axes": [0]}, 1, None),
    (1, "Tile", "", ["x", "x", "x"], {}, 1, None),
    (6, "Tile", "", ["x", "x", "x"], {}, 1, "graph.op.Tile: it has 2 operands, not 3"),
    (3, "Concat", "", ["x", "x"], {}, 1, "graph.op.Concat: attribute 'axis' is missing"),
    (9, "Split", "", ["x"], {"split": [1, 1]}, 2, None),
    (21, "Mul", "", ["x", "odd"], {}, 1, None),
    (21, "Gather", "", ["x", "x"], {}, 1, "graph.op.Gather: operand 1 (indices) is float; it takes int32, int64"),
    (21, "Add", "", ["x", "i"], {}, 1, "graph.op.Add: operand 1 (B) is int64, and A is float; they must have "
     "one dtype: insert a Cast, or convert the constant"),
]  # fmt: skip


def test_calls_are_refused_for_their_reasons() -> None:
    for opset, op_type, domain, operands, attributes, outputs, expected in CALLS:
        graph, x, i = loaded(opset=opset)
        values = {"x": x, "i": i, "odd": Value(0, None, "odd")}
        held = [None if each is None else values[each] for each in operands]
        if expected is None:
            check_call(graph, op_type, domain, held, attributes, outputs)
            continue
        with pytest.raises(OperatorError) as caught:
            check_call(graph, op_type, domain, held, attributes, outputs)
        assert str(caught.value) == expected
    check_operator(loaded()[0], "Relu", "")


def test_an_unknown_attribute_in_an_invalid_model_is_no_fault_of_the_pass() -> None:
    graph = Model.from_proto(
        parse("(float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }")
    ).main
    graph.model.gate.pass_name, graph.model.gate.at = "mine", "node"
    with pytest.raises(
        NoEquivalentForm, match=r"^Relu: it has no attribute 'k'; .*; the model was"
    ):
        check_call(graph, "Relu", "", graph.inputs[:1], {"k": 1}, 1)
    with pytest.raises(
        OperatorError, match=r"^mine: graph.op.Relu \(at node 'node'\): it has 1 output"
    ):
        check_call(graph, "Relu", "", graph.inputs[:1], {}, 2)
