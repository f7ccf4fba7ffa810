"""Operators on quantised tensors over the reals: dequantise, compute, quantise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.definitions.composed import Composed, Rule, optional
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor

FLOAT: Final = int(onnx.TensorProto.FLOAT)
Triple = tuple[CheckedTensor, CheckedTensor, CheckedTensor | None]


def _triple(call: EvaluatedCall, at: int) -> Triple:
    """Return a tensor, its scale and its zero point."""
    return call.operand(at), call.operand(at + 1), optional(call, at + 2)


def real(make: Composed, x: Triple, axis: int = 1) -> CheckedTensor:
    """Return the real numbers of a quantised tensor."""
    return make("DequantizeLinear", *x, axis=axis)


def quantized(
    make: Composed, y: CheckedTensor, scale: CheckedTensor, zero: CheckedTensor | None
) -> Results:
    return [make("QuantizeLinear", y, scale, zero)]


def binary(call: EvaluatedCall) -> Results:
    """QLinearAdd and QLinearMul."""
    make = Composed(call)
    made = make(call.op.removeprefix("QLinear"), *(real(make, _triple(call, at)) for at in (0, 3)))
    return quantized(make, made, call.operand(6), optional(call, 7))


def unary(call: EvaluatedCall) -> Results:
    """QLinearSigmoid and QLinearLeakyRelu."""
    make, op = Composed(call), call.op.removeprefix("QLinear")
    held = {"alpha": float(call.get("alpha", 0.01))} if op == "LeakyRelu" else {}
    made = make(op, real(make, _triple(call, 0)), **held)
    return quantized(make, made, call.operand(3), optional(call, 4))


def pool(call: EvaluatedCall) -> Results:
    """QLinearAveragePool and QLinearGlobalAveragePool."""
    if call.get("channels_last", 0):
        raise NoRule
    make = Composed(call)
    own = _without(call, "channels_last")
    made = make(call.op.removeprefix("QLinear"), real(make, _triple(call, 0)), **own)
    return quantized(make, made, call.operand(3), optional(call, 4))


def concat(call: EvaluatedCall) -> Results:
    make = Composed(call)
    parts = [real(make, _triple(call, at)) for at in range(2, len(call.inputs), 3)]
    made = make("Concat", *parts, axis=call.attributes["axis"])
    return quantized(make, made, call.operand(0), optional(call, 1))


def conv(call: EvaluatedCall) -> Results:
    """QLinearConv; its bias has the scale of the product."""
    make, (x, w) = Composed(call), (_triple(call, at) for at in (0, 3))
    bias = optional(call, 8)
    b = None if bias is None else _scaled(make, bias, (x[1], w[1]))
    made = make("Conv", real(make, x), real(make, w, axis=0), b, **call.attributes)
    return quantized(make, made, call.operand(6), optional(call, 7))


def _scaled(make: Composed, bias: CheckedTensor, scales: Sequence[CheckedTensor]) -> CheckedTensor:
    made = make("Cast", bias, to=FLOAT)
    for scale in scales:
        made = make("Mul", made, scale)
    return made


def matmul(call: EvaluatedCall) -> Results:
    """QLinearMatMul."""
    make, (x, y) = Composed(call), (_triple(call, at) for at in (0, 3))
    made = make("MatMul", real(make, x, axis=-2), real(make, y, axis=-1))
    return quantized(make, made, call.operand(6), optional(call, 7))


def gemm(call: EvaluatedCall) -> Results:
    """QGemm; its bias has the scale of the product, without alpha."""
    make, (x, y) = Composed(call), (_triple(call, at) for at in (0, 3))
    turned = call.get("transB", 0)
    own = _without(call)
    made = make("Gemm", real(make, x), real(make, y, axis=0 if turned else 1), **own)
    bias = optional(call, 6)
    if bias is not None:
        made = make("Add", made, _scaled(make, bias, (x[1], y[1])))
    if not call.has(7):
        return [made]
    return quantized(make, made, call.operand(7), optional(call, 8))


def _without(call: EvaluatedCall, *names: str) -> dict[str, Any]:
    return {name: value for name, value in call.attributes.items() if name not in names}


def integer_to_float(call: EvaluatedCall) -> Results:
    """MatMulIntegerToFloat: the product of integers without their zero points, scaled."""
    make = Composed(call)
    a, b, a_scale, b_scale = (call.operand(at) for at in range(4))
    parts = [_centred(make, x, optional(call, at)) for x, at in ((a, 4), (b, 5))]
    made = make("Mul", make("Mul", make("MatMul", *parts), a_scale), b_scale)
    bias = optional(call, 6)
    return [made if bias is None else make("Add", made, bias)]


def _centred(make: Composed, x: CheckedTensor, zero: CheckedTensor | None) -> CheckedTensor:
    made = make("Cast", x, to=FLOAT)
    return made if zero is None else make("Sub", made, make("Cast", zero, to=FLOAT))


def matmul_integer(call: EvaluatedCall) -> Results:
    """MatMulInteger as the product of reals: int32 holds it."""
    make = Composed(call)
    parts = [
        _centred(make, call.operand(at), _zero_of(make, optional(call, at + 2), at))
        for at in (0, 1)
    ]
    product = make("MatMul", *parts)
    return [make.recast(product, int(onnx.TensorProto.INT32))]


def conv_integer(call: EvaluatedCall) -> Results:
    """ConvInteger as the Conv of reals: pads are zero points of x, which are 0 then."""
    make, w_zero = Composed(call), optional(call, 3)
    if w_zero is not None and w_zero.size > 1:
        shape = np.asarray([-1, *[1] * (call.operand(1).rank - 1)])
        w_zero = make("Reshape", w_zero, make.known(shape, int(onnx.TensorProto.INT64)))
    x = _centred(make, call.operand(0), optional(call, 2))
    product = make("Conv", x, _centred(make, call.operand(1), w_zero), **call.attributes)
    return [make.recast(product, int(onnx.TensorProto.INT32))]


def dynamic_matmul(call: EvaluatedCall) -> Results:
    """DynamicQuantizeMatMul: DynamicQuantizeLinear, then MatMulIntegerToFloat."""
    make = Composed(call)
    x, scale, zero = make.all("DynamicQuantizeLinear", 3, call.operand(0))
    w, w_scale, w_zero = call.operand(1), call.operand(2), optional(call, 3)
    inputs = (x, w, scale, w_scale, zero, w_zero, optional(call, 4))
    return [make("com.microsoft::MatMulIntegerToFloat", *inputs)]


def _zero_of(make: Composed, zero: CheckedTensor | None, at: int) -> CheckedTensor | None:
    """Return a zero point that broadcasts: those of the first operand belong to its rows."""
    if zero is None or zero.size <= 1 or at == 1:
        return zero
    return make("Unsqueeze", zero, make.known(np.asarray([-1]), int(onnx.TensorProto.INT64)))


def dequantize(call: EvaluatedCall) -> Results:
    """DequantizeLinear over the reals: (x - zero) * scale."""
    x, scale, zero = call.operand(0), call.operand(1), optional(call, 2)
    if call.get("block_size", 0) or call.get("output_dtype", 0) not in (0, scale.dtype):
        raise NoRule
    if x.known is not None and scale.known is not None:
        raise NoRule
    make = Composed(call)
    if scale.size > 1:
        axis = call.get("axis", 1) % x.rank
        shape = [-1 if at == axis else 1 for at in range(x.rank)]
        wanted = make.known(np.asarray(shape), int(onnx.TensorProto.INT64))
        scale = make("Reshape", scale, wanted)
        zero = None if zero is None else make("Reshape", zero, wanted)
    elif scale.rank:
        wanted = make.known(np.asarray([], np.int64), int(onnx.TensorProto.INT64))
        scale = make("Reshape", scale, wanted)
        zero = None if zero is None else make("Reshape", zero, wanted)
    return [make("Mul", _centred(make, x, zero), scale)]


QUANTIZED_REALS: Final[dict[str, Rule]] = {
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize,
    "MatMulInteger": matmul_integer,
    "QLinearConv": conv,
    "QLinearMatMul": matmul,
    "com.microsoft::DequantizeLinear": dequantize,
    "com.microsoft::DynamicQuantizeMatMul": dynamic_matmul,
    "com.microsoft::MatMulIntegerToFloat": integer_to_float,
    "com.microsoft::QGemm": gemm,
    "com.microsoft::QLinearAdd": binary,
    "com.microsoft::QLinearAveragePool": pool,
    "com.microsoft::QLinearConcat": concat,
    "com.microsoft::QLinearGlobalAveragePool": pool,
    "com.microsoft::QLinearLeakyRelu": unary,
    "com.microsoft::QLinearMul": binary,
    "com.microsoft::QLinearSigmoid": unary,
}
