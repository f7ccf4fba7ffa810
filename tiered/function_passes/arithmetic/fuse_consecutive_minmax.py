"""Max(Max(a, b), c)  =>  Max(a, b, c), and so for Min"""

from collections.abc import Sequence
from typing import Final

from tiered import DataType, Graph, Node, Skip, Value, op, rest, rewrite

_INTEGERS: Final = frozenset(
    {DataType.INT16, DataType.INT32, DataType.INT64, DataType.INT8, DataType.UINT16,
     DataType.UINT32, DataType.UINT64, DataType.UINT8}
)  # fmt: skip


@rewrite(op.Max(rest.operands) | op.Min(rest.operands), opt_level=1)
def fuse_consecutive_minmax(graph: Graph, operands: Sequence[Value], node: Node) -> Value | Skip:
    """Compare all at once.

    Operands are compared from the left, and which of two zeros is taken depends on their order:
    among floats only the first may be spelled out, which keeps it.
    """
    flat: list[Value | None] = []
    for place, value in enumerate(operands):
        inner = value.producer
        if inner is None or not inner.is_op(node.op_type):
            flat.append(value)
            continue
        if not value.is_only_read_by(node):
            return Skip("the inner one is read elsewhere too")
        if place and value.dtype not in _INTEGERS:
            return Skip("zeros of two signs would be compared in another order")
        flat += inner.inputs
    if len(flat) == len(operands):
        return Skip("no operand is of the same kind")
    result: Value = getattr(graph.op, node.op_type)(*flat)
    return result
