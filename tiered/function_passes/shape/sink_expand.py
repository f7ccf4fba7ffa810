"""f(Expand(x, shape))  =>  Expand(f(x), shape), and so for Tile, if f is elementwise"""

import math
from typing import Final

from tiered import DataType, Graph, Node, PassContext, Skip, Value, broadcasts_into, function_pass
from tiered.graph.queries.determinism import is_same_at_all_places
from tiered.graph.queries.formals import takes_dtype
from tiered.graph.queries.op_traits import SAME_AT_ALL_PLACES

_OLDEST: Final = 7
"""Before this opset, operands broadcast only if an attribute is set."""


@function_pass(
    opt_level=2, required=("infer_shapes",), matches=("Expand", "Tile"), touches=("elementwise",)
)
def sink_expand(graph: Graph, ctx: PassContext) -> None:
    """Compute before elements are repeated, and repeat the results.

    The other operands of f repeat with x: they broadcast to its shape.
    """
    if graph.opset() < _OLDEST:
        return
    for op_type in ("Expand", "Tile"):
        for repeat in graph.nodes_of(op_type):
            node: Node | None = repeat
            while node is not None:
                node = _sunk(graph, ctx, node)


def _sunk(graph: Graph, ctx: PassContext, repeat: Node) -> Node | None:
    """Sink a node past its consumer; return the new one."""
    wide = repeat.output
    readers = wide.readers
    f = readers[0] if readers else None
    if f is None or f.domain or f.op_type not in SAME_AT_ALL_PLACES:
        return None
    reason = _why_not(repeat, f)
    if reason is not None:
        ctx.skip(repeat, reason)
        return None
    x = repeat.inputs[0]
    law = f"{f.op_type}({repeat.op_type}(x)) => {repeat.op_type}({f.op_type}(x))"
    with graph.rewrite(law, f):
        operands = [x if value is wide else value for value in f.inputs]
        copy = graph.add_node(f.op_type, operands, attributes=f.attributes, name=f.name)
        made = graph.add_node(repeat.op_type, [copy.output, *repeat.inputs[1:]])
        graph.replace(f, made.outputs)
    return made


def _why_not(repeat: Node, f: Node) -> Skip | None:
    wide, x = repeat.output, repeat.given(0)
    if not wide.is_only_read_by(f):
        return Skip("the repeated elements have other consumers")
    if f.has_references or repeat.has_references:
        return Skip("{}", f.parameter_reason or repeat.parameter_reason)
    if not is_same_at_all_places(f):
        return Skip("a number that fits no integer differs by its place")
    if x.rank is None or wide.rank is None:
        return Skip("a rank is not known")
    if x.static_shape is not None and x.static_shape == wide.static_shape:
        return Skip("nothing is repeated")
    if not takes_dtype(f.owner, repeat.op_type, f.output.dtype):
        return Skip("{} does not take the dtype of the results", repeat.op_type)
    if f.output.dtype == DataType.BFLOAT16 and x.dtype != DataType.BFLOAT16:
        return Skip("{} may have no kernel for the dtype of the results", repeat.op_type)
    others = [value for value in f.reads if value is not wide]
    if any(not broadcasts_into(value.shape, x.shape) for value in others):
        return Skip("another operand may not repeat with it")
    if _widens(repeat, x, f.output):
        return Skip("it would move more bytes")
    return None


def _widens(repeat: Node, x: Value, result: Value) -> bool:
    """Return whether the results are so much larger that fewer bytes are moved if f comes last."""
    few, many = x.static_shape, repeat.output.static_shape
    if few is None or many is None or x.dtype is None or result.dtype is None:
        return False
    before, after = (DataType(value.dtype or 0).numpy.itemsize for value in (x, result))
    return math.prod(many) * before <= math.prod(few) * after
