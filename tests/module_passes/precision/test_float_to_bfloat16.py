"""float_to_bfloat16: as float_to_half, with the operators that take bfloat16."""

import onnx

from tiered import DataType, Model, PassContext, get_pass
from tiered.testing import assert_rewrites, parse


def test_the_inner_tensors_are_bfloat16() -> None:
    assert_rewrites(
        "float_to_bfloat16",
        "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,4}> "
        "{ a = MatMul(x, w) y = Relu(a) }",
        # The numbers of the weight are the bits of 1, 2, 3 and 4.
        "(float[N,2] x) => (float[N,2] y) <bfloat16[2,2] w = {16256,16384,16448,16512}> "
        "{ h = Cast<to=16>(x) a = MatMul(h, w) b = Relu(a) y = Cast<to=1>(b) }",
        runtime="reference",
    )


def test_operators_without_bfloat16_stay_float() -> None:
    text = (
        "(float[1,1,4,4] x) => (float[1,1,4,4] y) <float[1,1,1,1] w = {2}> "
        "{ a = Relu(x) b = Conv(a, w) y = Mul(b, b) }"
    )
    model, ctx = Model.from_proto(parse(text, opset=17)), PassContext.isolated()
    get_pass("float_to_bfloat16").apply(model, ctx)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    assert model.main.nodes_of("Conv")[0].output.dtype == DataType.FLOAT
    assert model.main.nodes_of("Mul")[0].output.dtype == DataType.BFLOAT16
    assert any("Conv has no bfloat16" in str(remark) for remark in ctx.remarks)


def test_large_numbers_are_in_range() -> None:
    text = "(float[2] x) => (float[2] y) <float m = {-3e38}> { a = Relu(x) y = Add(a, m) }"
    model = Model.from_proto(parse(text))
    get_pass("float_to_bfloat16").apply(model)
    (mask,) = model.main.initializers
    assert mask.const is not None
    assert float(mask.const) < -2.9e38


def test_a_second_run_changes_nothing() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { a = Relu(x) y = Exp(a) }"))
    get_pass("float_to_bfloat16").apply(model)
    proto = model.to_proto()
    again = Model.from_proto(proto)
    get_pass("float_to_bfloat16").apply(again)
    assert again.to_proto() == proto
