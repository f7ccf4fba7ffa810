"""Parallel branches: nodes of one operator and one input, with weights of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tiered.graph import Graph, Node, Value

# Unary and elementwise: applied to the parts of a Split or before it, the result is the same.
_UNARY: Final = frozenset(
    {
        "Abs", "Ceil", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish",
        "LeakyRelu", "Mish", "Neg", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt",
        "Swish", "Tanh",
    }
)  # fmt: skip


def parallel_branches(
    graph: Graph, key: Callable[[Node], Hashable | None]
) -> Iterator[tuple[Node, ...]]:
    """Yield groups of two or more nodes with the same first input and the same key.

    Args:
        graph: the graph, without its bodies.
        key: returns the key of a node, None for a node that is no branch.
    """
    groups: dict[tuple[int, Hashable], list[Node]] = {}
    for node in graph.topological_order():
        x = node.input(0)
        if x is None or x.is_constant:
            continue
        common = key(node)
        if common is not None:
            groups.setdefault((x.id, common), []).append(node)
    yield from (tuple(nodes) for nodes in groups.values() if len(nodes) > 1)


def only_reader(node: Node) -> Node | None:
    """Return the only consumer of the only output of a node, in the same graph; else None."""
    if not node.output.has_one_user:
        return None
    reader = node.output.users[0].node
    return reader if reader.graph is node.graph else None


def combine_branches(
    graph: Graph,
    key: Callable[[Node], Hashable | None],
    skip: Callable[[Node, Skip], None],
    *,
    min_num_branches: int,
    min_depth: int,
) -> None:
    """Replace branches of one operator by one node with the concatenated weights, and a Split.

    Biases are concatenated too, in slot 2 or of an Add after each product; equal elementwise
    operators after all branches move before the Split.

    Args:
        graph: the graph.
        key: returns the key of a node, None for a node that is no branch. A branch is a
            Conv, Gemm or MatMul whose second input is a constant, and so is the third where it has
            one; branches with one key differ in the number of channels or columns at most.
        skip: called with the first branch and the reason if branches are not combined.
        min_num_branches: fewer are left alone.
        min_depth: the length of the sums; less is left alone.
    """
    for branches in parallel_branches(graph, lambda node: None if _is_sparse(node) else key(node)):
        first = branches[0]
        if len(branches) < min_num_branches:
            skip(first, Skip("there are {} parallel branches", len(branches)))
        elif any(not node.given(1).has_one_user for node in branches):
            skip(first, Skip("a weight has other consumers"))
        elif (depth := _depth(first)) < min_depth:
            skip(first, Skip("sums of length {} are too short", depth))
        else:
            kind = first.op_type
            law = f"{kind}(x, w), {kind}(x, v) => Split({kind}(x, [w, v]))"
            with graph.rewrite(law, first):
                _combine(graph, branches)


def _weight_axis(node: Node) -> int:
    """Return the axis of the weight that is the channels or columns of the result."""
    is_first = node.op_type == "Conv" or (node.op_type == "Gemm" and node.attr("transB"))
    return 0 if is_first else -1


def _depth(node: Node) -> int:
    """Return the number of products in the sum of each element of the result."""
    tensor = node.given(1).tensor
    assert tensor is not None
    return math.prod(tensor.shape[1:]) if _weight_axis(node) == 0 else tensor.shape[-2]


def _combine(graph: Graph, branches: Sequence[Node]) -> None:
    first, axis = branches[0], _weight_axis(branches[0])
    weights: list[Any] = [node.const(1) for node in branches]
    sizes = [weight.shape[axis] for weight in weights]
    operands = [graph.constant(np.concatenate(weights, axis), first.given(1).name)]
    biases = [node.const(2) for node in branches]
    if any(bias is not None for bias in biases):
        operands.append(graph.constant(_vectors(biases, sizes, weights[0])))
    joined = graph.op.like(first, first.given(0), *operands)
    added = [_bias_after(node, size) for node, size in zip(branches, sizes, strict=True)]
    adds = [only_reader(node) for node in branches]
    if first.op_type == "MatMul" and all(bias is not None for bias in added):
        joined = graph.op.Add(joined, graph.constant(_vectors(added, sizes, weights[0])))
        branches = [node for node in adds if node is not None]
    _split_among(graph, branches, joined, sizes, axis=1 if first.op_type == "Conv" else -1)


def _split_among(
    graph: Graph, branches: Sequence[Node], joined: Value, sizes: Sequence[int], axis: int
) -> None:
    """Replace the outputs of branches by the parts of a value, of these sizes along an axis."""
    while (followers := _followers(branches)) is not None:
        first = followers[0]
        joined = graph.op.like(first, joined)
        branches = followers
    if axis < 0 and joined.rank is not None:
        axis += joined.rank
    parts = graph.op.Split(
        joined, graph.constant(np.array(sizes, np.int64)), axis=axis, outputs=len(sizes)
    )
    for node, part in zip(branches, parts, strict=True):
        graph.replace(node, (part,))


def _followers(branches: Sequence[Node]) -> list[Node] | None:
    followers = [only_reader(node) for node in branches]
    found = [node for node in followers if node is not None and not node.domain]
    if len(found) != len(branches):
        return None
    kinds: set[Any] = {(node.op_type, repr(sorted(node.settings.items()))) for node in found}
    is_alike = len(kinds) == 1 and not any(node.has_references for node in found)
    return found if is_alike and found[0].op_type in _UNARY else None


def _bias_after(node: Node, size: int) -> Any:
    """Return the constant vector that the only consumer of a node adds to its output, or None."""
    add = only_reader(node)
    if add is None or not add.is_op("Add"):
        return None
    bias = add.const(1 if add.given(0) is node.output else 0)
    return bias if bias is not None and bias.shape == (size,) else None


def _vectors(parts: Sequence[Any], sizes: Sequence[int], like: Any) -> Any:
    """Return the concatenated vectors; an absent one is zeros."""
    zeros = (np.zeros(size, like.dtype) for size in sizes)
    return np.concatenate(
        [zero if part is None else part for part, zero in zip(parts, zeros, strict=True)]
    )


def _is_sparse(node: Node) -> bool:
    """Return whether an operand is a sparse constant."""
    tensors = (value.tensor for value in node.inputs[1:] if value is not None)
    return any(tensor is not None and tensor.is_sparse for tensor in tensors)
