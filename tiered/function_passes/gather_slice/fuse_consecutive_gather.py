"""Gather(Gather(x, i), j)  =>  Gather(x, i[j]), along one axis"""

from tiered import Constant, Graph, Skip, Value, const, op, rewrite, same_axes, var


@rewrite(
    op.Gather(
        op.Gather(var.x, const(name="first"), axis=var.inner_axis).shared(),
        const(name="second"),
        axis=var.axis,
    ),
    opt_level=1,
)
def fuse_consecutive_gather(
    graph: Graph, x: Value, first: Constant, second: Constant, inner_axis: int, axis: int
) -> Value | Skip:
    """Gather once: the second indices select among the first ones."""
    if len(first.tensor.shape) != 1:
        return Skip("the first indices are not a list")
    # With a list of indices, the rank stays.
    if not same_axes([inner_axis], [axis], x.rank):
        return Skip("the axes may differ")
    size, places = first.tensor.shape[0], second.const
    if places.size and not -size <= places.min() <= places.max() < size:
        return Skip("an index is out of range")
    indices = first.const[places]
    return graph.op.Gather(x, graph.constant(indices, second.name), axis=axis)
