"""Squeeze(Unsqueeze(x, axes), axes)  =>  x, and Unsqueeze(Squeeze(x, axes), axes)  =>  x"""

from tiered import Graph, Node, Skip, Value, op, rewrite, same_axes, var

_pairs = op.Squeeze(op.Unsqueeze(var.x, var.inner).shared(), var.outer) | op.Unsqueeze(
    op.Squeeze(var.x, var.inner).shared(), var.outer
)


@rewrite(_pairs, opt_level=1)
def eliminate_squeeze_unsqueeze(
    graph: Graph, x: Value, inner: Value, outer: Value, node: Node
) -> Value | Skip:
    """Drop two inverse operators; a Squeeze without axes may remove more dims than were added."""
    if inner.const is None or outer.const is None:
        return Skip("axes is not a constant")
    if not inner.const.size:
        return Skip("empty axes mean none or all")
    # Both axes count in the tensor with the dims of 1.
    rank = x.rank
    if rank is not None and node.op_type == "Squeeze":
        rank += inner.const.size
    if not same_axes(inner.const.ravel(), outer.const.ravel(), rank):
        return Skip("the axes may differ")
    return x
