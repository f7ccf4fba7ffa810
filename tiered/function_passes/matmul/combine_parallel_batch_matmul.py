"""MatMul(x, w), MatMul(x, v), ... of stacks of matrices  =>  Split(MatMul(x, Concat(w, v, ...)))"""

from collections.abc import Hashable

from tiered import Graph, Node, PassContext, function_pass
from tiered.rewriter.idioms.parallel_branches import combine_branches


@function_pass(
    opt_level=4,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
    matches=("MatMul",),
)
def combine_parallel_batch_matmul(
    graph: Graph, ctx: PassContext, *, min_num_branches: int = 3, min_depth: int = 16
) -> None:
    """Multiply once with the stacks of matrices of all branches that read one tensor.

    An element of the result takes `depth` multiplications, and the Split one copy more: for few of
    them the copies cost more than what is saved by reading the tensor once.

    Args:
        min_num_branches: fewer are left alone.
        min_depth: the length of the sums; less is left alone.
    """
    combine_branches(graph, _key, ctx.skip, min_num_branches=min_num_branches, min_depth=min_depth)


def _key(node: Node) -> Hashable | None:
    tensor = node.given(1).tensor if node.is_op("MatMul") else None
    if tensor is None or len(tensor.shape) < 3:
        return None
    return tensor.dtype, tensor.shape[:-1]
