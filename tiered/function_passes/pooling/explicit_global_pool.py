"""GlobalAveragePool(x)  =>  AveragePool(x), with a window of the whole image, also of maxima"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    (op.GlobalAveragePool | op.GlobalMaxPool)(var.x),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def explicit_global_pool(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Say how large the window is.

    Opt-in: for targets that have pools and no global ones.
    """
    sizes = [dim for dim in (x.shape or ())[2:] if isinstance(dim, int) and dim > 0]
    if x.rank is None or x.rank < 3 or len(sizes) != x.rank - 2:
        return Skip("the image size is not known")
    kind = node.op_type.removeprefix("Global")
    return graph.op.named(kind)(x, kernel_shape=sizes)
