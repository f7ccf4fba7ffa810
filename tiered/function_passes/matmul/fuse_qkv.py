"""Three Reshape(x * w + b)  =>  the parts of Transpose(Reshape(x * [w] + [b]))"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.graph.core.types import Dim
from tiered.rewriter.idioms.parallel_branches import only_reader, parallel_branches


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
    matches=("MatMul",),
)
def fuse_qkv(graph: Graph, ctx: PassContext) -> None:
    """Project queries, keys and values by one product, and share out its heads.

    The three matrices are concatenated; one that is not constant is concatenated in each run.
    """
    for nodes in parallel_branches(graph, _key):
        branches = [branch for node in nodes if (branch := _branch(node)) is not None]
        if len(branches) < 3:
            if len(nodes) > 2:
                ctx.skip(nodes[0], Skip("fewer than three products become heads"))
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
    if not node.is_op("MatMul") or node.given(1).rank != 2:
        return None
    return node.given(1).dtype


def _branch(node: Node) -> _Branch | None:
    """Return the branch of a product: a bias, then the split into heads; None for another one."""
    x, weight, add = node.given(0), node.given(1), only_reader(node)
    product, between = node.output, None
    if add is not None and add.is_op("Reshape") and x.rank == 2:
        product, between = add.output, _target(add)
        add = only_reader(add) if between is not None else None
    if add is None or not add.is_op("Add"):
        return None
    bias = add.given(1) if add.given(0) is product else add.given(0)
    end = only_reader(add)
    if end is None or not end.is_op("Reshape") or (shape := _target(end)) is None:
        return None
    width = weight.dim(1)
    if bias.shape != (width,):
        return None
    if len(shape) != 4 or min(shape[2:]) <= 0 or shape[2] * shape[3] != width:
        return None
    if x.rank == 2:
        outer = _outer_of_rows(shape[:2], between, width)
    else:
        outer = shape[:2] if x.rank == 3 else None
    return None if outer is None else _Branch(weight, bias, (*outer, *shape[2:]), end)


def _target(reshape: Node) -> tuple[int, ...] | None:
    """Return the constant target of a Reshape, in which 0 copies a dim; None if there is none."""
    target = reshape.const(1)
    return None if target is None or reshape.attr("allowzero") else tuple(target.tolist())


def _outer_of_rows(
    outer: Sequence[int], between: Sequence[int] | None, width: Dim
) -> tuple[int, ...] | None:
    """Return the first two dims of the heads of a matrix of rows, for one Reshape of the rows.

    Args:
        outer: the first two dims of the target of the last Reshape.
        between: the target of the Reshape before it; None without one.
        width: the number of columns.
    """
    first, second = outer
    if between is not None:
        if len(between) != 3 or between[2] != width:
            return None
        if first == 0:
            first = between[0]
            second = between[1] if second <= 0 else second
        elif second == 0:
            second = between[1]
            first = between[0] if second == -1 else first
    # A 0 copies the rows; one for the second dim would copy the columns.
    return None if second == 0 else (first, second)


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
        pending += node.reads
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
