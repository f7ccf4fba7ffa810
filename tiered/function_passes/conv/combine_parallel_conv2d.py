"""Conv(x, w), Conv(x, v), ...  =>  Split(Conv(x, Concat(w, v, ...)))"""

from collections.abc import Hashable

import numpy as np

from tiered import (
    Graph,
    Node,
    PassContext,
    Skip,
    Value,
    function_pass,
    join_branches,
    parallel_branches,
)


@function_pass(
    opt_level=4,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def combine_parallel_conv2d(
    graph: Graph, ctx: PassContext, *, min_num_branches: int = 3, min_depth: int = 16
) -> None:
    """Convolve once with the kernels of all branches that read one image.

    An element of the result takes `depth` multiplications, and the Split one copy more: for few of
    them the copies cost more than what is saved by reading the image once.

    Args:
        min_num_branches: fewer are left alone.
        min_depth: the channels times the size of the kernel; less is left alone.
    """
    for branches in parallel_branches(graph, _key):
        refusal = _refusal(branches, min_num_branches, min_depth)
        if refusal is not None:
            ctx.skip(branches[0], refusal)
            continue
        with graph.rewrite("Conv(x, w), Conv(x, v) => Split(Conv(x, [w, v]))", branches[0]):
            _combine(graph, branches)


def _key(node: Node) -> Hashable | None:
    if (node.op_type, node.domain) != ("Conv", "") or node.has_references:
        return None
    weight, bias = node.input(1), node.input(2)
    kernel = None if weight is None or weight.tensor is None else weight.tensor
    if kernel is None or len(kernel.shape) != 4 or node.attr("group") != 1:
        return None
    if bias is not None and (bias.tensor is None or bias.tensor.dtype != kernel.dtype):
        return None
    return kernel.dtype, kernel.shape[1:], repr(sorted(node.settings.items()))


def _refusal(branches: tuple[Node, ...], fewest: int, min_depth: int) -> Skip | None:
    if len(branches) < fewest:
        return Skip("there are {} parallel branches", len(branches))
    weights = [_operand(node, 1) for node in branches]
    if any(not weight.has_one_user for weight in weights):
        return Skip("others read a kernel too")
    depth = weights[0].tensor.size // max(weights[0].tensor.shape[0], 1) if weights[0].tensor else 0
    return Skip("sums of length {} do not pay", depth) if depth < min_depth else None


def _combine(graph: Graph, branches: tuple[Node, ...]) -> None:
    first = branches[0]
    kernels = [_operand(node, 1).const for node in branches]
    sizes = [kernel.shape[0] for kernel in kernels if kernel is not None]
    weight = np.concatenate([kernel for kernel in kernels if kernel is not None])
    operands = [graph.constant(weight, _operand(first, 1).name)]
    if any(node.input(2) is not None for node in branches):
        biases = [
            np.zeros(size, weight.dtype) if bias is None or bias.const is None else bias.const
            for size, bias in zip(sizes, [node.input(2) for node in branches], strict=True)
        ]
        operands.append(graph.constant(np.concatenate(biases)))
    joined = graph.op.Conv(_operand(first, 0), *operands, **first.attributes)
    join_branches(graph, branches, joined, sizes, axis=1)


def _operand(node: Node, slot: int) -> Value:
    value = node.input(slot)
    assert value is not None
    return value
