"""DequantizeLinear(Clip(QuantizeLinear(x, scale, 0), low, high))  =>  Quant(x, scale, 0, bits)"""

from typing import Final

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, opt, rewrite, var
from tiered.function_passes.quantization._qonnx_grid import Grid, grid_between, grid_of
from tiered.rewriter.idioms.qonnx_bodies import DOMAINS
from tiered.rewriter.idioms.quantized_tensors import Quantized, dequantized, quantized_by

_INTEGERS: Final = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.UINT8, DataType.UINT16)

_quantized = op.QuantizeLinear(var.x, var.scale, opt.zero, attrs=...).bind("quantize")
_clipped = op.Clip(_quantized, opt.low, opt.high)
_integers = _clipped | _quantized | const(name="codes")


@rewrite(
    op.DequantizeLinear(_integers, var.scale_back, opt.zero_back, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    conflicts=("convert_qonnx_to_qdq",),
    numerics="reassociating",
)
def convert_qdq_to_qonnx(
    graph: Graph,
    node: Node,
    quantize: Node | None,
    low: Value | None,
    high: Value | None,
    codes: Constant | None,
) -> Value | Skip:
    """Quantise by QONNX's operator, where integers of 8 bits are dequantised at once.

    All numbers are equal; but Quant keeps NaN, and the sign of small negative numbers. Constant
    integers become the numbers that a Quant quantises to the same.
    """
    unit = dequantized(node.output, _INTEGERS)
    if isinstance(unit, Skip):
        return unit
    if graph.model.function(DOMAINS[0], "Quant") is not None:
        return Skip("the model defines Quant")
    if quantize is None:
        assert codes is not None
        return _weight(graph, unit, codes)
    if reason := _why_not_at_once(unit, node, quantize):
        return reason
    grid = _grid(unit, low, high)
    x = quantize.given(0)
    return grid if isinstance(grid, Skip) else _quant(graph, x, unit, grid)


def _quant(graph: Graph, x: Value, unit: Quantized, grid: Grid) -> Value:
    """Return a Quant of x with the scale and zero point of quantised integers."""
    dims = _dims(unit, x.rank)
    zeros = unit.zeros if unit.zeros.any() else np.zeros(())
    result: Value = graph.op(DOMAINS[0]).Quant(
        x,
        graph.constant(unit.scales.astype(np.float32).reshape(dims), "scale"),
        graph.constant(zeros.astype(np.float32).reshape(dims if zeros.size > 1 else ()), "zero"),
        graph.constant(np.array(grid.bits, np.float32), "bits"),
        signed=int(grid.signed),
        narrow=int(grid.narrow),
        rounding_mode="ROUND",
    )
    return result


def _dims(unit: Quantized, rank: int | None) -> tuple[int, ...]:
    """Return the dims with which parameters along an axis broadcast to data of a rank."""
    if unit.axis is None:
        return ()
    assert rank is not None
    return (-1, *[1] * (rank - 1 - unit.axis))


def _weight(graph: Graph, unit: Quantized, codes: Constant) -> Value | Skip:
    """Return a Quant of the numbers that constant integers stand for.

    It quantises them to the same integers: of 8 or 16 bits, and scales that are normal numbers,
    the roundings of product and quotient are far from half a step. Of 32 bits, large ones are not.
    """
    assert unit.dtype is not None
    dims = _dims(unit, codes.const.ndim)
    scale = unit.scales.astype(np.float32).reshape(dims)
    zeros = unit.zeros.reshape(dims if unit.zeros.size > 1 else ())
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = (codes.const.astype(np.int64) - zeros).astype(np.float32) * scale
        again = np.rint(numbers / scale + zeros.astype(np.float32))
    if not np.isfinite(numbers).all() or (again.astype(np.float64) != codes.const).any():
        return Skip("Quant rounds to other integers")
    return _quant(graph, graph.constant(numbers, codes.name), unit, grid_of(unit.dtype))


def _why_not_at_once(unit: Quantized, node: Node, quantize: Node) -> Skip | None:
    """Return why a QuantizeLinear and a DequantizeLinear are not one Quant."""
    first = quantized_by(quantize, _INTEGERS)
    if isinstance(first, Skip):
        return first
    if not first.has_parameters_of(unit):
        return Skip("the scales or zero points differ")
    if unit.zeros.any():
        # Quant adds it before it rounds, and the sum rounds too.
        return Skip("the zero point is not zero")
    return None if quantize.given(0).dtype == DataType.FLOAT else Skip("x is not float32")


def _grid(unit: Quantized, low: Value | None, high: Value | None) -> Grid | Skip:
    """Return the integers between the limits of a Clip; absent ones are those of the dtype."""
    assert unit.dtype is not None
    whole = grid_of(unit.dtype)
    limits = []
    for value, end in ((low, whole.low), (high, whole.high)):
        if value is None:
            limits.append(end)
        elif value.const is None:
            return Skip("a limit is not constant")
        elif value.const.size != 1:
            return Skip("a limit is not one number")
        else:
            limits.append(int(value.const.item()))
    found = grid_between(limits[0], limits[1], signed=whole.signed)
    return found or Skip("no number of bits has these limits")
