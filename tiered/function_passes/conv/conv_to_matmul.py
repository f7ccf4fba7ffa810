"""Conv(x, weight) of one pixel  =>  Reshape(MatMul(weight, Reshape(x)))"""

import math

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var


@rewrite(
    op.Conv(var.x, var.weight, opt.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("fold_constant", "eliminate_unused_initializer"),
    legalizes=True,
    numerics="reassociating",
)
def conv_to_matmul(
    graph: Graph, node: Node, x: Value, weight: Value, bias: Value | None
) -> Value | Skip:
    """Multiply the channels of each pixel by a matrix.

    Opt-in: for targets with MatMul but without Conv.
    """
    kernel, sizes = weight.shape, (x.shape or ())[2:]
    if kernel is None or x.rank != len(kernel) or any(dim != 1 for dim in kernel[2:]):
        return Skip("the kernel size may not be 1")
    if any(node.attr("pads") or ()) or node.attr("auto_pad") not in ("NOTSET", "VALID"):
        return Skip("the image is padded")
    if node.attr("group") != 1 or any(stride != 1 for stride in node.attr("strides") or ()):
        return Skip("it has groups or strides")
    known = [dim for dim in (*sizes, *kernel[:2]) if isinstance(dim, int) and dim]
    if len(known) < len(sizes) + 2:
        return Skip("image and kernel sizes are not known")
    if not isinstance(x.dim(0), int):
        return Skip("onnxruntime's kernel rejects an empty batch")
    matrix = graph.op.Reshape(weight, np.array(kernel[:2], np.int64))
    pixels = graph.op.Reshape(x, np.array([0, 0, math.prod(known[:-2])], np.int64))
    product = graph.op.MatMul(matrix, pixels)
    if bias is not None:
        product = graph.op.Add(product, graph.op.Unsqueeze(bias, np.array([1], np.int64)))
    return graph.op.Reshape(product, np.array([0, 0, *sizes], np.int64))
