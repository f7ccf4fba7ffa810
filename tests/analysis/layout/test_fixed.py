"""Operators through which no permutation propagates, and why."""

import pytest

from tiered import Model, Skip
from tiered.analysis.layout.rules import propagation_of
from tiered.testing import parse


@pytest.mark.parametrize(
    ("opset", "text", "because"),
    [
        (21, "(float[] x) => (float[] y) { y = Softmax(x) }", "its rank is not known"),
        (
            21,
            "(float[2] x) => (float[2,2] y) { y = vendor.Op(x) }",
            "the operator fixes its axis order",
        ),
        (
            21,
            "(float[2,3] x) => (float[2,3] y) { y = Softmax<axis=2>(x) }",
            "its axis is out of range",
        ),
        (
            12,
            "(float[2,3] x) => (float[2,3] y) { y = Softmax<axis=3>(x) }",
            "its axis is out of range",
        ),
        (
            21,
            "(float[2,3] x, float[3] z) => (float[2,3] y) { y = Concat<axis=0>(x, z) }",
            "its operands differ in rank",
        ),
        (
            21,
            "(float[2] x, int32 a) => (float[2] y) { y = CumSum(x, a) }",
            "its axis is not constant",
        ),
        (
            21,
            "(float[2] x, int64[1] a) => (float[1] y) { y = ReduceSum(x, a) }",
            "its axes are not constant",
        ),
        (
            21,
            "(float[2,1] x, int64[1] a) => (y) { y = Squeeze(x, a) }",
            "its axes are not constant",
        ),
        (21, "(float[N,1] x) => (y) { y = Squeeze(x) }", "the dims that it removes are not known"),
        (
            21,
            "(float[2] x, int64[1] a) => (y) { y = Unsqueeze(x, a) }",
            "its axes are not constant",
        ),
        (
            21,
            "(float[2,3] x, int64[2] p, int64[1] a) => (y) { y = Pad(x, p, , a) }",
            "its axes are not constant",
        ),
        (
            21,
            "(float[2,3] x, int64[K] s, int64[K] e) => (y) { y = Slice(x, s, e) }",
            "its axes are not constant",
        ),
        (
            21,
            "(float[2,3] x, int64[1] s) => (y) { y = Expand(x, s) }",
            "its shape has fewer axes than its operand",
        ),
        (
            9,
            '(float[1,1,2,2] x, float[4] s) => (y) { y = Upsample<mode="linear">(x, s) }',
            "it interpolates",
        ),
        (
            21,
            "(float[2,3] x, float[1] l) => (float[2,3] y) { y = Clip(x, l) }",
            "an operand beside the first one is no scalar",
        ),
        (
            21,
            "(uint8[2,3] x, float[2,3] s) => (y) { y = DequantizeLinear(x, s) }",
            "its scale is neither a scalar nor 1-D",
        ),
        (
            21,
            "(uint8[2,3] x, float[3] s) => (y) { y = DequantizeLinear<axis=2>(x, s) }",
            "its axis is out of range",
        ),
        (
            21,
            "(float[1,2,3] x, float[2] s) => (y, m, v)"
            " { y, m, v = BatchNormalization<training_mode=1>(x, s, s, s, s) }",
            "it is in training mode",
        ),
        (
            21,
            "(float[2,3] x) => (y) <float r = {0.5}, bool t = {1}> { y = Dropout(x, r, t) }",
            "it draws random numbers",
        ),
        (
            21,
            "(float[2,3] x, float r, bool t) => (y) { y = Dropout(x, r, t) }",
            "it draws random numbers",
        ),
        (
            12,
            "(float[2,3] x, bool t) => (y, m) { y, m = Dropout(x, , t) }",
            "it draws random numbers",
        ),
        (6, "(float[2,3] x) => (y) { y = Dropout(x) }", "it is in training mode"),
        *(
            (
                23,
                f"(float[2,2,4] x, float{dims} s) => (y) {{ y = {name}<axis=-1>(x, s) }}",
                "scale or bias may exceed the normalised dims",
            )
            for name in ("LayerNormalization", "RMSNormalization")
            for dims in ("[2,1,4]", "[2,4]")
        ),
        (
            23,
            "(float[2,2,4] x, float[] s) => (y) { y = LayerNormalization<axis=-1>(x, s) }",
            "its rank is not known",
        ),
        (
            21,
            "(float[2,2,4] x, float[4] s, float[2,1,4] b) => (y) "
            "{ y = LayerNormalization<axis=-1>(x, s, b) }",
            "scale or bias may exceed the normalised dims",
        ),
        (21, "(float[3] x, float[3] z) => (y) { y = MatMul(x, z) }", "both operands are vectors"),
        (
            21,
            '(float[2,2] x) => (y) { y = Einsum<equation="ii->i">(x) }',
            "its equation reads an operand along a diagonal",
        ),
        (
            21,
            "(float[0,3] x, int64[2] s) => (float[3,0] y) { y = Reshape(x, s) }",
            "a dim is 0",
        ),
        (
            21,
            "(float[N] x) => (float[1] y) <int64[1] s = {1}> { y = Reshape(x, s) }",
            "the dims that it splits or merges are not known",
        ),
        (
            21,
            "(float[2,3] x, bool[6] c) => (float[K] y) { y = Compress(x, c) }",
            "without an axis it flattens its operand",
        ),
        (
            21,
            "(float[2,4] x, int64[1] k) => (i) { , i = TopK(x, k) }",
            "an output is absent",
        ),
        (
            6,
            "(float[2,3,4] x, float[3] b) => (y) { y = Add<broadcast=1, axis=1>(x, b) }",
            "its opset broadcasts in another way",
        ),
        (
            8,
            "(float[2,3,4] x, float[3,4] s) => (y)"
            " { y = BatchNormalization<spatial=0>(x, s, s, s, s) }",
            "it has a scale for each element",
        ),
        (
            13,
            "(float[2,4] x, float[4] s) => (y) { y = RMSNormalization(x, s) }",
            "its opset has no such operator",
        ),
    ],
)
def test_operators_without_propagation(opset: int, text: str, because: str) -> None:
    model = Model.from_proto(parse(text, opset=opset))
    model.refresh_types()
    (node,) = model.main.nodes
    propagation = propagation_of(node)
    assert isinstance(propagation, Skip)
    assert because in str(propagation)


def test_what_training_info_or_an_annotation_names_stays_as_it_is() -> None:
    proto = parse("(float x) => (float y) { h = Relu(x) y = Neg(h) }")
    annotation = proto.graph.quantization_annotation.add(tensor_name="y")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="h")
    propagation = propagation_of(Model.from_proto(proto).main.nodes[0])
    assert str(propagation) == "training info or an annotation names its output"


def test_what_a_call_decides_is_not_known() -> None:
    model = Model.from_proto(
        parse(
            """<ir_version: 10, opset_import: ["": 21, "local": 1]>
            g (float[2,2] x) => (float[2,2] y) { y = local.f<axis=1>(x) }
            <domain: "local", opset_import: ["": 21]>
            f <axis> (x) => (y) { y = Softmax<axis: int = @axis>(x) }"""
        )
    )
    (function,) = model.functions
    propagation = propagation_of(next(iter(function.nodes)))
    assert str(propagation) == "attribute 'axis' is a function parameter"


def test_what_its_opset_alone_can_say_stays() -> None:
    text = "(float[1,1,2,2] x, float[4] s) => (y) { y = Resize(x, s) }"
    model = Model.from_proto(parse(text, opset=10))
    propagation = propagation_of(model.main.nodes[0])
    assert (
        str(propagation) == "Resize rounds up where it shrinks and down where it grows (opset 10)"
    )
