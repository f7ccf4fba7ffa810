"""Nodes of 16-bit floats compute in float, and what they return is rounded."""

import numpy as np
import onnx
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import DataType, Model
from tiered.numerics.precision.emulation import emulate
from tiered.runtime import Session

FLOAT, HALF, BFLOAT = DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16


def emulated(text: str) -> Model:
    model = parsed(text)
    emulate(model)
    model.check_view(types=True)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    return model


def test_operands_are_widened_once_and_results_rounded() -> None:
    model = emulated(
        "(float16[2] x) => (float16[2] y) { a = Sin(x)  b = Add(a, a)  y = Mul(b, x) }"
    )
    assert ops(model) == ["Cast", "Sin", "Cast", "Cast", "Add", "Cast", "Cast", "Mul", "Cast"]
    add, mul = made_by(model, "b"), made_by(model, "y")
    assert (add.op_type, add.attr("to")) == ("Cast", HALF)
    assert mul.op_type == "Cast"
    (node,) = model.main.nodes_of("Add")
    assert node.inputs[0] is node.inputs[1]
    assert {value.dtype for value in (*node.inputs, *node.outputs) if value} == {FLOAT}
    assert named(model, "a").dtype == HALF


@pytest.mark.parametrize(("dtype", "kind"), [("float16", HALF), ("bfloat16", BFLOAT)])
def test_both_types_of_16_bits_are_rounded(dtype: str, kind: int) -> None:
    model = emulated(f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Sin(x) }}")
    first, _, last = model.main.topological_order()
    assert (first.attr("to"), last.attr("to")) == (FLOAT, kind)


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x) => (float[2] y) { y = Sin(x) }",
        "(double[2] x) => (double[2] y) { y = Sin(x) }",
        "(float16[2] x) => (float[2] y) { y = Cast<to=1>(x) }",
        "(float[2] x, float16[2] z) => (float16[2] y) { y = CastLike(x, z) }",
        "(int64[1] x) => (float16[N] y) { y = ConstantOfShape<value = float16[1] {1}>(x) }",
        "(float16[2] x) => (float16[2] y) { y = com.microsoft.Gelu(x) }",
        "(float16[2] x) => (float16[2] y) { y = acme.Any(x) }",
    ],
)
def test_what_converts_or_has_no_16_bits_or_is_not_onnxs_stays(text: str) -> None:
    model = parsed(text)
    before = ops(model)
    emulate(model)
    assert ops(model) == before


def test_a_result_of_another_parameter_is_not_rounded() -> None:
    model = emulated("(float16[2] x) => (bool[2] y) { y = Less(x, x) }")
    assert ops(model) == ["Cast", "Less"]
    assert named(model, "y").dtype == DataType.BOOL


def test_operands_of_other_types_stay() -> None:
    model = emulated("(float16[4] x, int64[2] i) => (float16[2] y) { y = Gather(x, i) }")
    (node,) = model.main.nodes_of("Gather")
    assert [value.dtype for value in node.inputs if value] == [FLOAT, DataType.INT64]


def test_absent_operands_and_outputs_stay_absent() -> None:
    model = emulated(
        "(float16[2] x) => (float16[2] y) <float16 high = {1}> { y = Clip(x, , high) }"
    )
    (node,) = model.main.nodes_of("Clip")
    assert [value and value.dtype for value in node.inputs] == [FLOAT, None, FLOAT]


def test_bodies_are_emulated_and_functions_are_not() -> None:
    model = emulated(
        """(float16[2] x, bool c) => (float16[2] y) {
        y = If(c) <then_branch = t () => (float16[2] p) { p = Sin(x) },
                   else_branch = e () => (float16[2] q) { q = Cos(x) }> }"""
    )
    for graph in model.graphs():
        if not graph.is_main:
            assert [node.op_type for node in graph.nodes][-1] == "Cast"
    assert [node.op_type for node in model.main.nodes if node.op_type != "Cast"] == ["If"]
    model = parsed(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float16[2] x) => (float16[2] y) { y = own.F(x) }
        <domain: "own", opset_import: ["" : 21]> F (v) => (w) { w = Sin(v) }"""
    )
    emulate(model)
    assert [node.op_type for graph in model.graphs() for node in graph.nodes] == ["F", "Sin"]


def test_each_result_is_rounded_and_overflows() -> None:
    """In float, 60000 + 60000 - 60000 is 60000; of halves the sum is infinite."""
    model = emulated("(float16[3] x) => (float16[3] y) { a = Add(x, x)  y = Sub(a, x) }")
    x = np.array([60000, 1, 2049], np.float16)
    found = Session(model.to_proto()).run({"x": x})["y"]
    assert found.dtype == np.float16
    assert found.tolist() == [np.inf, 1, 2048]


def test_absent_operands_and_other_dtypes_stay() -> None:
    model = emulated(
        "(float16[2] x, float16 k, int64[1] i) => (float16[A] y) {"
        " a = Clip(x, , k)  y = Gather(a, i) }"
    )
    (clip,) = model.main.nodes_of("Clip")
    assert clip.inputs[1] is None
    assert {value.dtype for value in (*clip.inputs, *clip.outputs) if value} == {FLOAT}
    (gather,) = model.main.nodes_of("Gather")
    assert gather.inputs[1] is named(model, "i")
