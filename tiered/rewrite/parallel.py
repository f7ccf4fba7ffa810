"""Parallel branches: nodes that do the same to one value with weights of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tiered.graph import Graph, Node, Value

# Of one operand, element by element: what is done to each part may as well be done to the whole.
_UNARY: Final = frozenset(
    {
        *("Abs", "Ceil", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
        *("LeakyRelu", "Mish", "Neg", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign"),
        *("Sqrt", "Swish", "Tanh"),
    }
)


def parallel_branches(
    graph: Graph, key: Callable[[Node], Hashable | None]
) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes of a graph that read one first input and have one key, two or more at a time.

    Args:
        graph: the graph; what its bodies hold is not looked at.
        key: what nodes must have in common; None for a node that is no branch.
    """
    groups: dict[tuple[int, Hashable], list[Node]] = {}
    for node in graph.topological_order():
        x = node.input(0)
        common = None if x is None or x.is_constant else key(node)
        if x is not None and common is not None:
            groups.setdefault((x.id, common), []).append(node)
    yield from (tuple(nodes) for nodes in groups.values() if len(nodes) > 1)


def join_branches(
    graph: Graph, branches: Sequence[Node], joined: Value, sizes: Sequence[int], axis: int
) -> None:
    """Let the parts of a value stand for the outputs of branches.

    What is done alike to every part, element by element, is done to the whole before.

    Args:
        graph: their graph.
        branches: nodes of one output.
        joined: their outputs, side by side.
        sizes: the size of each, on `axis`.
        axis: where they stand side by side.
    """
    while (followers := _followers(branches)) is not None:
        first = followers[0]
        joined = getattr(graph.op, first.op_type)(joined, **first.attributes)
        branches = followers
    if axis < 0 and joined.rank is not None:
        axis += joined.rank
    parts = graph.op.Split(
        joined, graph.constant(np.array(sizes, np.int64)), axis=axis, outputs=len(sizes)
    )
    for node, part in zip(branches, parts, strict=True):
        graph.replace(node, (part,))


def only_reader(node: Node) -> Node | None:
    """Return the node of the same graph that alone reads the node's only output."""
    users = node.output.users if node.output.has_one_user else ()
    return users[0].node if users and users[0].node.graph is node.graph else None


def _followers(branches: Sequence[Node]) -> list[Node] | None:
    followers = [only_reader(node) for node in branches]
    found = [node for node in followers if node is not None and not node.domain]
    if len(found) != len(branches) or len({*found}) != len(found):
        return None
    kinds: set[Any] = {(node.op_type, repr(sorted(node.settings.items()))) for node in found}
    is_alike = len(kinds) == 1 and not any(node.has_references for node in found)
    return found if is_alike and found[0].op_type in _UNARY else None


def join_matmuls(graph: Graph, branches: Sequence[Node]) -> None:
    """Multiply once with the matrices of all branches, side by side, and split the product.

    Biases that are added right after each product come along.

    Args:
        graph: their graph.
        branches: nodes MatMul, or nodes Gemm with equal attributes, which read one first input and
            a constant second one each, of one dtype, that differ in the number of columns at most.
    """
    first = branches[0]
    x = first.inputs[0]
    axis = -2 if first.op_type == "Gemm" and first.attr("transB") else -1
    weights = [array for node in branches if (array := _const(node, 1)) is not None]
    sizes = [weight.shape[axis] for weight in weights]
    operands = [graph.constant(np.concatenate(weights, axis), _name(first, 1))]
    biases = [_const(node, 2) for node in branches]
    if any(bias is not None for bias in biases):
        operands.append(graph.constant(_vectors(biases, sizes, weights[0])))
    joined: Value = getattr(graph.op, first.op_type)(x, *operands, **first.attributes)
    added = [_bias_after(node, size) for node, size in zip(branches, sizes, strict=True)]
    adds = [only_reader(node) for node in branches]
    if first.op_type == "MatMul" and all(bias is not None for bias in added):
        joined = graph.op.Add(joined, graph.constant(_vectors(added, sizes, weights[0])))
        branches = [node for node in adds if node is not None]
    join_branches(graph, branches, joined, sizes, axis=-1)


def _bias_after(node: Node, size: int) -> Any:
    """Return the constant vector that is added to the node's output and to nothing else."""
    add = only_reader(node)
    if add is None or (add.op_type, add.domain) != ("Add", ""):
        return None
    other = add.inputs[1] if add.inputs[0] is node.output else add.inputs[0]
    bias = None if other is None else other.const
    return bias if bias is not None and bias.shape == (size,) else None


def _vectors(parts: Sequence[Any], sizes: Sequence[int], like: Any) -> Any:
    """Return vectors end to end; an absent one is zeros."""
    zeros = (np.zeros(size, like.dtype) for size in sizes)
    return np.concatenate(
        [zero if part is None else part for part, zero in zip(parts, zeros, strict=True)]
    )


def _const(node: Node, slot: int) -> Any:
    value = node.input(slot)
    return None if value is None else value.const


def _name(node: Node, slot: int) -> str:
    value = node.input(slot)
    return "" if value is None else value.name
