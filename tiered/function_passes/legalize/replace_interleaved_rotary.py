"""RotaryEmbedding(x) of neighbours  =>  Transpose(RotaryEmbedding(Transpose(x)) of halves)"""

import math

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.RotaryEmbedding(var.x, ..., attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",  # kernels of halves may fuse a product with a sum
)
def replace_interleaved_rotary(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Rotate halves, for targets that take no tensors of five axes.

    The first of each pair comes before the second ones, and goes back afterwards; the products and
    sums are the same.
    """
    if not node.attr("interleaved"):
        return Skip("its pairs are halves already")
    shape = x.static_shape
    if shape is None or 0 in shape:
        return Skip("the shape is not known, or has no elements")
    heads = node.attr("num_heads")
    size = shape[-1] if len(shape) == 4 else shape[-1] // max(heads, 1)
    if node.attr("rotary_embedding_dim") not in (0, size) or (len(shape) == 3 and not heads):
        return Skip("it rotates a part of each head")

    def moved(value: Value, pairs: list[int]) -> Value:
        parts = graph.op.Reshape(value, np.array([math.prod(shape) // size, *pairs], np.int64))
        turned = graph.op.Transpose(parts, perm=[0, 2, 1])
        made: Value = graph.op.Reshape(turned, np.array(shape, np.int64))
        return made

    halves = graph.op.like(node, moved(x, [size // 2, 2]), *node.inputs[1:], interleaved=0)
    return moved(halves, [2, size // 2])
