"""Transpose(f(Transpose(x)))  =>  f(x), where f is elementwise and the permutations cancel"""

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.analysis.layout.permutation import Permutation, inverse
from tiered.graph.queries.op_traits import ARITHMETIC, COMPARISONS, LOGIC, ROUNDINGS
from tiered.rewriter.idioms.main_tensors import is_one_element

# Elementwise operators whose results do not depend on an element's position, bit for bit: level 2
# is exact. onnxruntime's kernels compute the last elements of a tensor by another method for
# exponentials and logarithms, and for the sign of zero in Max and Min; those are left to level 3.
_POSITION_INDEPENDENT: Final = frozenset(
    {*ARITHMETIC, *COMPARISONS, *LOGIC, *ROUNDINGS, "Identity", "Not", "Where"}
    | {"Abs", "Neg", "Sign", "Sqrt"}
    | {"Clip", "LeakyRelu", "Relu"}
)

# Before this opset, operands broadcast only where an attribute said so.
_OLDEST: Final = 7


@function_pass(
    opt_level=2, required=("infer_shapes",), matches=("Transpose",), touches=("elementwise",)
)
def eliminate_transpose_around_elementwise(graph: Graph, ctx: PassContext) -> None:
    """Permute a region of elementwise operators if that leaves fewer Transposes.

    f is a connected region of operators of one shape. Transposes into and out of it are removed;
    its other operands and results get one. This is the local, bitwise exact case, at level 2.
    `convert_layout` (tiered/analysis/layout/solve.py) finds the global optimum at level 3:
    through all operators with a propagation rule, counting bytes, with reductions and products in
    other orders.
    """
    if graph.opset() < _OLDEST:
        return
    seen: set[Node] = set()
    for transpose in graph.nodes_of("Transpose"):
        if not transpose.is_live:
            continue
        near = [transpose.producer(0), *transpose.output.readers]
        for node in near:
            if node is None or node in seen or not _fits(node, graph):
                continue
            region = _region(node, graph)
            seen.update(region.nodes)
            refused = _permute(graph, region) if region.refused is None else region.refused
            if refused is not None:
                ctx.skip(transpose, refused)


class _ElementwiseRegion:
    """Connected operators of one shape.

    Attributes:
        nodes: the operators.
        entries: their operands from outside of the region.
        refused: why the region cannot be permuted; None if it can.
    """

    def __init__(self) -> None:
        self.nodes: dict[Node, None] = {}
        self.entries: dict[Value, None] = {}
        self.refused: Skip | None = None


def _fits(node: Node, graph: Graph) -> bool:
    """Return whether a node is position-independent and its output shape is static."""
    if node.graph is not graph or node.domain or node.op_type not in _POSITION_INDEPENDENT:
        return False
    if node.has_references or node.is_pinned:
        return False
    shape = node.output.shape
    return shape is not None and len(shape) > 1 and None not in shape


def _region(start: Node, graph: Graph) -> _ElementwiseRegion:
    """Return the operators that are connected to one by values of its shape."""
    region, shape, pending = _ElementwiseRegion(), start.output.shape, [start]
    assert shape is not None
    while pending:
        node = pending.pop()
        if node in region.nodes:
            continue
        region.nodes[node] = None
        for value in node.inputs:
            if value is None or is_one_element(value, len(shape)):
                continue
            producer = value.producer
            if value.shape == shape and producer is not None and _fits(producer, graph):
                pending.append(producer)
            elif value.is_constant or value.shape == shape:
                region.entries[value] = None
            else:
                region.refused = Skip("an operand has another shape")
        readers = [user for user in node.output.readers if _fits(user, graph)]
        pending += [user for user in readers if user.output.shape == shape]
    constants = [value for value in region.entries if value.is_constant]
    if not all(_is_own(value, region) for value in constants):
        region.refused = region.refused or Skip("a constant has other consumers")
    if any(_source(value) in region.nodes for value in region.entries):
        region.refused = Skip("a Transpose connects it to itself")
    return region


def _source(value: Value) -> Node | None:
    """Return the producer of the operand of the Transpose that makes a value."""
    transpose = value.producer
    return transpose.producer(0) if transpose is not None and _perm(transpose) else None


def _is_own(value: Value, region: _ElementwiseRegion) -> bool:
    """Return whether only the region reads a constant, so that the permuted one replaces it."""
    tensor = value.tensor
    if tensor is None or tensor.is_sparse or value.output_of or value.pins:
        return False
    return all(node in region.nodes for node in value.user_nodes)


def _permute(graph: Graph, region: _ElementwiseRegion) -> Skip | None:
    """Permute a region so that the fewest Transposes remain, if these are fewer than now."""
    gains = {perm: _gain(region, perm) for perm in dict.fromkeys(_perms(region))}
    perm = max(gains, key=lambda perm: (gains[perm], perm), default=())
    if not perm or gains[perm] <= 0:
        return Skip("it would not remove a Transpose")
    with graph.rewrite("Transpose(f(Transpose(x))) => f(x)", next(iter(region.nodes))):
        _compute(graph, region, perm)
    return None


def _perm(node: Node | None) -> Permutation | None:
    """Return the permutation of a Transpose, None for anything else."""
    return None if node is None else node.perm


def _perms(region: _ElementwiseRegion) -> Iterator[Permutation]:
    """Yield the permutations into the region, and the inverses of those out of it."""
    for value in region.entries:
        if (perm := _perm(value.producer)) is not None:
            yield perm
    for node in region.nodes:
        for user in node.output.readers:
            if (perm := _perm(user)) is not None:
                yield inverse(perm)


def _gain(region: _ElementwiseRegion, perm: Permutation) -> int:
    """Return how many Transposes are saved if a permutation is undone in the region."""
    gain = 0
    for value in region.entries:
        if _perm(value.producer) == perm:
            gain += not value.output_of and all(user in region.nodes for user in value.user_nodes)
        elif not value.is_constant:
            gain -= 1
    for node in region.nodes:
        leaving = _leaving(node.output, perm)
        gain += len(leaving) - _has_other_users(node.output, region, leaving)
    return gain


def _leaving(value: Value, perm: Permutation) -> dict[Node, None]:
    """Return the consumers of a value that are Transposes and undo a permutation."""
    back = inverse(perm)
    return dict.fromkeys(user for user in value.readers if _perm(user) == back)


def _has_other_users(value: Value, region: _ElementwiseRegion, leaving: Collection[Node]) -> bool:
    return bool(value.output_of) or any(
        user not in region.nodes and user not in leaving for user in value.user_nodes
    )


def _compute(graph: Graph, region: _ElementwiseRegion, perm: Permutation) -> None:
    """Rebuild a region so that it computes before the permutation instead of after it."""
    permuted: dict[Value | None, Value] = {}
    back = inverse(perm)
    order = graph.topological_order(region.nodes)
    for value in region.entries:
        producer = value.producer
        if producer is not None and _perm(producer) == perm:
            permuted[value] = producer.given(0)
        elif (numbers := value.const) is not None:
            whole = numbers.reshape((1,) * (len(perm) - numbers.ndim) + numbers.shape)
            permuted[value] = graph.constant(
                np.ascontiguousarray(whole.transpose(back)), value.name
            )
        else:
            permuted[value] = graph.op.Transpose(value, perm=back)
    for node in order:
        operands = [permuted.get(value, value) for value in node.inputs]
        copy = graph.add_node(node.op_type, operands, attributes=node.attributes, name=node.name)
        permuted[node.output] = copy.output
    for node in order:
        value, first_new = node.output, graph.model.peek_serial()
        leaving = _leaving(value, perm)
        if _has_other_users(value, region, leaving):
            result = graph.op.Transpose(permuted[value], perm=perm)
            graph.replace(node, [result], first_new)
        for end in leaving:
            graph.replace(end, [permuted[value]])
    graph.prune(order)
