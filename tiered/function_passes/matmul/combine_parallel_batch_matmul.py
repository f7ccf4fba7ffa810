"""MatMul(x, w), MatMul(x, v), ... of stacks of matrices  =>  Split(MatMul(x, Concat(w, v, ...)))"""

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
    weight = node.input(1)
    tensor = None if weight is None else weight.tensor
    if (node.op_type, node.domain) != ("MatMul", "") or tensor is None or len(tensor.shape) < 3:
        return None
    return tensor.dtype, tensor.shape[:-1]


def _depth(node: Node) -> int:
    weight = node.input(1)
    assert weight is not None
    assert weight.tensor is not None
    return weight.tensor.shape[-2]
