"""QuantizeLinear(x, scale, zero)  =>  Cast(clamp(Round(x / scale), least, most) + zero)"""

from tiered import Graph, Node, Skip, Value, opt, rewrite, var
from tiered.function_passes.lower._quotients import quotient
from tiered.rewriter.idioms.quantization_parts import QUANTIZE


@rewrite(
    QUANTIZE(var.x, var.scale, opt.zero, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def lower_quantize(
    graph: Graph, node: Node, x: Value, scale: Value, zero: Value | None
) -> Value | Skip:
    """Divide, round half to even, saturate and convert: bit for bit what the operator does.

    NaN becomes the least number, as in onnxruntime: it is not greater than any.
    """
    found = quotient(graph, node, x, scale, zero)
    if isinstance(found, Skip):
        return found
    ops, rounded, least, most = graph.op, found.rounded, found.least, found.most
    clamped = ops.Min(ops.Where(ops.Greater(rounded, least), rounded, least), most)
    whole = clamped if found.zero is None else ops.Add(clamped, found.zero)
    return ops.Cast(whole, to=found.dtype)
