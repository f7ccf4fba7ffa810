"""MatMul(x, w), MatMul(x, v), ... of matrices  =>  Split(MatMul(x, Concat(w, v, ...)))"""

from collections.abc import Hashable

from tiered import (
    Graph,
    Node,
    PassContext,
    Skip,
    function_pass,
    join_matmuls,
    parallel_branches,
)


@function_pass(
    opt_level=4,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
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
    for branches in parallel_branches(graph, _key):
        node, weights = branches[0], [branch.input(1) for branch in branches]
        if len(branches) < min_num_branches:
            ctx.skip(node, Skip("there are {} parallel branches", len(branches)))
        elif any(weight is None or not weight.has_one_user for weight in weights):
            ctx.skip(node, Skip("others read a matrix too"))
        elif (depth := _depth(node)) < min_depth:
            ctx.skip(node, Skip("sums of length {} do not pay", depth))
        else:
            with graph.rewrite("MatMul(x, w), MatMul(x, v) => Split(MatMul(x, [w, v]))", node):
                join_matmuls(graph, branches)


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


def _depth(node: Node) -> int:
    weight = node.input(1)
    assert weight is not None
    assert weight.tensor is not None
    return weight.tensor.shape[1 if node.op_type == "Gemm" and node.attr("transB") else 0]
