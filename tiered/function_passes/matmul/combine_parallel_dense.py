"""MatMul(x, w), MatMul(x, v), ... of matrices  =>  Split(MatMul(x, Concat(w, v, ...)))"""

from collections.abc import Hashable

from tiered import Graph, Node, PassContext, function_pass
from tiered.rewriter.idioms.parallel_branches import combine_branches


@function_pass(
    opt_level=4,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
    matches=("Gemm", "MatMul"),
)
def combine_parallel_dense(
    graph: Graph, ctx: PassContext, *, min_num_branches: int = 3, min_depth: int = 16
) -> None:
    """Multiply once with the matrices of all branches that read one tensor; biases come along.

    An element of the result takes `depth` multiplications, and the Split one copy more: for few of
    them the copies cost more than what is saved by reading the tensor once.

    Args:
        min_num_branches: fewer are left alone.
        min_depth: the length of the sums; less is left alone.
    """
    combine_branches(graph, _key, ctx.skip, min_num_branches=min_num_branches, min_depth=min_depth)


def _key(node: Node) -> Hashable | None:
    weight, bias = node.input(1), node.input(2)
    tensor = None if weight is None else weight.tensor
    if node.domain or node.has_references or tensor is None or len(tensor.shape) != 2:
        return None
    if node.op_type == "MatMul":
        return "MatMul", tensor.dtype, tensor.shape[0]
    if node.op_type != "Gemm":
        return None
    columns = 0 if node.attr("transB") else 1
    if bias is not None and (bias.tensor is None or bias.tensor.shape != (tensor.shape[columns],)):
        return None
    return "Gemm", tensor.dtype, tensor.shape[1 - columns], repr(sorted(node.settings.items()))
