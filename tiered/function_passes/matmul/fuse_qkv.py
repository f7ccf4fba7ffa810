"""Three Reshape(x * w + b)  =>  the parts of Transpose(Reshape(x * [w] + [b]))"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.idioms.parallel_branches import only_reader, parallel_branches


class _Branch(NamedTuple):
    weight: Value
    bias: Value
    shape: tuple[int, ...]
    end: Node


@function_pass(
    opt_level=4,
    required=("infer_shapes",),
    followed_by=("fold_constant", "eliminate_unused_initializer"),
    numerics="reassociating",
    looks_for=("MatMul",),
)
def fuse_qkv(graph: Graph, ctx: PassContext) -> None:
    """Project queries, keys and values by one product, and share out its heads.

    The three matrices are concatenated; one that is not constant is concatenated in each run.
    """
    for nodes in parallel_branches(graph, _key):
        branches = [branch for node in nodes if (branch := _branch(node)) is not None]
        if len(branches) < 3:
            continue
        if len(branches) > 3 or len({branch.weight.shape for branch in branches}) != 1:
            ctx.skip(nodes[0], Skip("the branches are not three of one shape"))
        elif len({branch.shape for branch in branches}) != 1:
            ctx.skip(nodes[0], Skip("the branches have other heads"))
        elif any(not branch.weight.has_one_user for branch in branches):
            ctx.skip(nodes[0], Skip("a matrix has other consumers"))
        elif _is_circular(nodes, branches):
            ctx.skip(nodes[0], Skip("a matrix depends on another branch"))
        else:
            with graph.rewrite("three x * w + b => the parts of x * [w] + [b]", nodes[0]):
                _fuse(graph, nodes[0].inputs[0], branches)


def _key(node: Node) -> Hashable | None:
    weight = node.input(1)
    if not node.is_op("MatMul") or weight is None:
        return None
    return weight.dtype if weight.rank == 2 else None


def _branch(node: Node) -> _Branch | None:
    """Return the branch of a product: a bias, then the split into heads; None for another one."""
    add = only_reader(node)
    if add is None or not add.is_op("Add"):
        return None
    bias = add.inputs[1] if add.inputs[0] is node.output else add.inputs[0]
    end, weight = only_reader(add), node.inputs[1]
    if end is None or not end.is_op("Reshape") or end.attr("allowzero"):
        return None
    target = end.inputs[1]
    if bias is None or weight is None or target is None or target.const is None:
        return None
    shape = tuple(target.const.tolist())
    width, x = weight.dim(1), node.inputs[0]
    if x is None or x.rank != 3 or bias.shape != (width,) or not isinstance(width, int):
        return None
    is_heads = len(shape) == 4 and min(shape[2:]) > 0 and shape[2] * shape[3] == width
    return _Branch(weight, bias, shape, end) if is_heads else None


def _is_circular(products: Sequence[Node], branches: Sequence[_Branch]) -> bool:
    """Return whether a matrix or a bias depends on one of the products."""
    seen: set[Node] = set()
    pending = [part for branch in branches for part in (branch.weight, branch.bias)]
    while pending:
        node = pending.pop().producer
        if node is None or node in seen:
            continue
        if node in products:
            return True
        seen.add(node)
        pending += [value for value in (*node.inputs, *node.captured) if value is not None]
    return False


def _fuse(graph: Graph, x: Value | None, branches: Sequence[_Branch]) -> None:
    op = graph.op
    weight = _joined(graph, [branch.weight for branch in branches], axis=1)
    bias = _joined(graph, [branch.bias for branch in branches], axis=0)
    shape = branches[0].shape
    heads = op.Reshape(op.Add(op.MatMul(x, weight), bias), np.array([*shape[:2], 3, *shape[2:]]))
    # Parts that are transposed later need no Transpose before the Split.
    axis = 2 if all(map(_is_transposed, branches)) else 0
    apart = heads if axis else op.Transpose(heads, perm=[2, 0, 1, 3, 4])
    squeezed = graph.constant(np.array([axis]))
    parts = op.Split(apart, np.array([1, 1, 1]), axis=axis, outputs=3)
    for branch, part in zip(branches, parts, strict=True):
        graph.replace(branch.end, (op.Squeeze(part, squeezed),))


def _is_transposed(branch: _Branch) -> bool:
    """Return whether all consumers of the heads of a branch are Transposes."""
    value = branch.end.output
    readers = {(user.node.op_type, user.node.domain) for user in value.users}
    return readers == {("Transpose", "")} and not value.is_graph_output


def _joined(graph: Graph, values: Sequence[Value], axis: int) -> Value:
    arrays = [array for value in values if (array := value.const) is not None]
    if len(arrays) == len(values):
        return graph.constant(np.concatenate(arrays, axis), values[0].name)
    joined: Value = graph.op.Concat(*values, axis=axis)
    return joined
