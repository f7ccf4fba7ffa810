"""Transpose(f(Transpose(x))), with its axes as x has them  =>  f(x), f being element by element"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass

Permutation = tuple[int, ...]

# What gives the same bits wherever in a tensor an element stands: nothing that a kernel computes in
# another way at its end, as onnxruntime's does exponentials, logarithms, and the sign that Max and
# Min give of two zeros.
_ANYWHERE: Final = frozenset(
    {
        "Abs", "Add", "And", "Ceil", "Clip", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual",
        "Identity", "LeakyRelu", "Less", "LessOrEqual", "Mul", "Neg", "Not", "Or", "Relu", "Round",
        "Sign", "Sqrt", "Sub", "Where", "Xor",
    }
)  # fmt: skip

# Before this opset, operands broadcast only where an attribute said so.
_OLDEST: Final = 7


@function_pass(
    opt_level=2, required=("infer_shapes",), looks_for=("Transpose",), acts_on=("elementwise",)
)
def eliminate_transpose_around_elementwise(graph: Graph, ctx: PassContext) -> None:
    """Compute with the axes as they were, where that takes fewer Transposes.

    f is all operators of one shape that hang together. Whatever else is read or gives away there
    gets a Transpose; those that lead in and out go.
    """
    if graph.opset() < _OLDEST:
        return
    seen: set[Node] = set()
    for transpose in graph.nodes_of("Transpose"):
        if not transpose.is_live:
            continue
        source = transpose.input(0)
        near = [source.producer if source is not None else None, *transpose.output.readers]
        for node in near:
            if node is None or node in seen or not node.is_live or not _fits(node, graph):
                continue
            region = _region(node, graph)
            seen.update(region.nodes)
            refused = region.refused or _turn(graph, region)
            if refused is not None:
                ctx.skip(transpose, refused)


@dataclass
class _Region:
    """Operators of one shape that hang together.

    Attributes:
        nodes: the operators.
        entries: what they read that none of them gives.
        refused: why they cannot be computed with other axes.
    """

    nodes: dict[Node, None] = field(default_factory=dict)
    entries: dict[Value, None] = field(default_factory=dict)
    refused: Skip | None = None


def _fits(node: Node, graph: Graph) -> bool:
    """Tell whether a node computes each element by itself, and in a shape that is known."""
    if node.graph is not graph or node.domain or node.op_type not in _ANYWHERE:
        return False
    if len(node.outputs) != 1 or node.has_references or node.is_pinned:
        return False
    shape = node.output.shape
    return shape is not None and len(shape) > 1 and None not in shape


def _region(start: Node, graph: Graph) -> _Region:
    """Return all operators that hang together with one, by values of its shape."""
    region, shape, pending = _Region(), start.output.shape, [start]
    assert shape is not None
    while pending:
        node = pending.pop()
        if node in region.nodes:
            continue
        region.nodes[node] = None
        for value in node.inputs:
            if value is None or _is_number(value, len(shape)):
                continue
            producer = value.producer
            if value.shape == shape and producer is not None and _fits(producer, graph):
                pending.append(producer)
            elif value.is_constant:
                region.entries[value] = None
                if not _is_own_constant(value, len(shape)):
                    region.refused = Skip("others read a constant too")
            elif value.shape == shape:
                region.entries[value] = None
            else:
                region.refused = Skip("an operand has another shape")
        readers = [user for user in node.output.readers if _fits(user, graph)]
        pending += [user for user in readers if user.output.shape == shape]
    if any(_source(value) in region.nodes for value in region.entries):
        region.refused = Skip("a Transpose leads from it to itself")
    return region


def _source(value: Value) -> Node | None:
    """Return what produces the operand of the Transpose that gives a value."""
    transpose = value.producer
    operand = transpose.input(0) if transpose is not None and _perm(transpose) else None
    return None if operand is None else operand.producer


def _is_number(value: Value, rank: int) -> bool:
    """Tell whether a value is one number that gives nothing more dims than it has."""
    shape = value.static_shape
    return shape is not None and len(shape) <= rank and all(size == 1 for size in shape)


def _is_own_constant(value: Value, rank: int) -> bool:
    tensor = value.tensor
    is_whole = tensor is not None and not tensor.is_sparse and len(tensor.shape) <= rank
    return is_whole and value.has_one_user


def _turn(graph: Graph, region: _Region) -> Skip | None:
    """Compute a region with the axes that take fewest Transposes, if those are fewer than now."""
    gains = {perm: _gain(region, perm) for perm in dict.fromkeys(_perms(region))}
    perm = max(gains, key=lambda perm: (gains[perm], perm), default=())
    if not perm or gains[perm] <= 0:
        return Skip("it would take as many Transposes")
    with graph.rewrite("Transpose(f(Transpose(x))) => f(x)", next(iter(region.nodes))):
        _compute(graph, region, perm)
    return None


def _perm(node: Node | None) -> Permutation | None:
    """Return the permutation of a Transpose, None for anything else."""
    return None if node is None else node.perm


def _inverse(perm: Permutation) -> Permutation:
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def _perms(region: _Region) -> Iterator[Permutation]:
    """Yield the permutations that lead in, also of those that lead out what undoes them."""
    for value in region.entries:
        if (perm := _perm(value.producer)) is not None:
            yield perm
    for node in region.nodes:
        for user in node.output.readers:
            if (perm := _perm(user)) is not None:
                yield _inverse(perm)


def _gain(region: _Region, perm: Permutation) -> int:
    """Return how many Transposes fewer there are without a permutation."""
    gain = 0
    for value in region.entries:
        if _perm(value.producer) == perm:
            gain += not value.output_of and all(u.node in region.nodes for u in value.users)
        elif not value.is_constant:
            gain -= 1
    for node in region.nodes:
        leaving = _leaving(node.output, perm)
        gain += len(leaving) - _is_read_besides(node.output, region, leaving)
    return gain


def _leaving(value: Value, perm: Permutation) -> list[Node]:
    """Return the Transposes of a value that undo a permutation."""
    return [user for user in value.readers if _perm(user) == _inverse(perm)]


def _is_read_besides(value: Value, region: _Region, leaving: list[Node]) -> bool:
    known = region.nodes.keys() | set(leaving)
    return bool(value.output_of) or any(user.node not in known for user in value.users)


def _ordered(region: _Region) -> list[Node]:
    """Return the operators of a region, each behind those that it reads."""
    found: dict[Node, None] = {}
    pending = sorted(region.nodes, key=lambda node: node.id, reverse=True)
    while pending:
        read = [value.producer for value in pending[-1].inputs if value is not None]
        before = [node for node in region.nodes.keys() & set(read) if node not in found]
        if before:
            pending += sorted(before, key=lambda node: node.id)
        else:
            found[pending.pop()] = None
    return list(found)


def _compute(graph: Graph, region: _Region, perm: Permutation) -> None:
    """Compute a region before a permutation instead of behind it."""
    turned: dict[Value, Value] = {}
    back, order = _inverse(perm), _ordered(region)
    for value in region.entries:
        producer = value.producer
        if _perm(producer) == perm and producer is not None and producer.inputs[0] is not None:
            turned[value] = producer.inputs[0]
        elif (numbers := value.const) is not None:
            whole = numbers.reshape((1,) * (len(perm) - numbers.ndim) + numbers.shape)
            turned[value] = graph.constant(np.ascontiguousarray(whole.transpose(back)), value.name)
        else:
            turned[value] = graph.op.Transpose(value, perm=back)
    for node in order:
        operands = [value and turned.get(value, value) for value in node.inputs]
        copy = graph.add_node(node.op_type, operands, attributes=node.attributes, name=node.name)
        turned[node.output] = copy.output
    for node in order:
        value, first_new = node.output, graph.model.peek_serial()
        leaving = _leaving(value, perm)
        if _is_read_besides(value, region, leaving):
            result = graph.op.Transpose(turned[value], perm=perm)
            graph.replace(node, [result], first_new)
        for end in leaving:
            graph.replace(end, [turned[value]])
    graph.prune(order)
