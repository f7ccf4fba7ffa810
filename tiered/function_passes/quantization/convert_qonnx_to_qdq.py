"""Quant(x, scale, 0, bits)  =>  DequantizeLinear(Clip(QuantizeLinear(x, scale, 0), low, high))"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var
from tiered.function_passes.quantization._qonnx_grid import steps_of
from tiered.rewriter.idioms.qonnx_bodies import DOMAINS

_operands = (var.x, var.scale, var.zero, var.bits)


@rewrite(
    op(DOMAINS[0]).Quant(*_operands, attrs=...) | op(DOMAINS[1]).Quant(*_operands, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer", "remove_unused_functions"),
    conflicts=("convert_qdq_to_qonnx",),
    numerics="reassociating",
)
def convert_qonnx_to_qdq(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Quantise to 8 bits or fewer, or to 16, without a zero point, by the operators of ONNX.

    All numbers are equal; but integers have neither NaN nor -0.0, which a Quant returns for NaN
    and for small negative numbers. With a zero point, Quant rounds ties and sums otherwise, so that
    only constants are quantised, and stored as integers.
    """
    steps = steps_of(node)
    if isinstance(steps, Skip):
        return steps
    if graph.model.function(node.domain, "Quant") is not None:
        return Skip("the model defines Quant")
    if graph.opset() < 13:
        return Skip("the opset is below 13")
    grid, dtype = steps.grid, steps.grid.dtype.numpy
    if grid.bits == 16 and graph.opset() < 21:
        return Skip("integers of 16 bits need opset 21")
    scale = graph.constant(steps.scale, "scale")
    zero = graph.constant(steps.zeros, "zero_point")
    # The default, which one scale does not need, is not written.
    axis = 1 if steps.axis is None else steps.axis
    if steps.zero.any() or grid.bits > 16:
        assert x.const is not None
        codes = steps.codes_of(x.const)
        if codes is None:
            return Skip("a number is beyond 32 bits")
        return graph.op.DequantizeLinear(graph.constant(codes, x.name), scale, zero, axis=axis)
    q = graph.op.QuantizeLinear(x, scale, zero, axis=axis)
    if not grid.is_whole:
        q = graph.op.Clip(q, np.array(grid.low, dtype), np.array(grid.high, dtype))
    result: Value = graph.op.DequantizeLinear(q, scale, zero, axis=axis)
    return result
