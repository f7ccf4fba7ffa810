"""Operators on tensors of a high rank  =>  the same on tensors with fewer axes"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Tensor, Value, function_pass
from tiered.idioms.low_rank import Dims, around, merged_broadcast, transposes

_ALIASES: Final = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators whose result has the elements of their operand in the same order."""

_ELEMENTWISE: Final = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor",
    "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu",
    "Less", "LessOrEqual", "Log", "Max", "Min", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal",
    "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Sub", "Sum", "Tanh", "Where",
    "Xor",
})  # fmt: skip

_LOWEST: Final = 4
"""Two blocks of axes are exchanged in a tensor of four axes."""

_LAW: Final = "operators of a high rank => operators of a lower rank"


@function_pass(opt_level=1, required=("infer_shapes",), acts_on=("*",))
def legalize_rank(graph: Graph, ctx: PassContext, *, max_rank: int = 0) -> None:
    """Merge neighbouring axes, and split Transposes into several, where the target needs it.

    All operators that share tensors of a high rank are rewritten together, or none of them. No
    element changes.

    Args:
        max_rank: the highest rank; 0 is that of the backend.
    """
    most = max_rank or (ctx.backend.max_rank if ctx.names_backend else None)
    if most is None:
        return
    for region in _regions(graph, most):
        first = region[0]
        if most < _LOWEST:
            ctx.skip(first, Skip("the highest rank is {}, under 4", most))
            continue
        mark = graph.model.mark()
        with graph.rewrite(_LAW, first):
            reason = _Lowering(graph, most).run(region)
            if reason is not None:
                graph.model.undo_to(mark)
        if reason is not None:
            ctx.skip(first, reason)


def _rank(value: Value | None) -> int:
    return 0 if value is None else value.rank or 0


def _named(node: Node) -> list[Value]:
    return [value for value in node.outputs if value is not None]


def _regions(graph: Graph, most: int) -> list[list[Node]]:
    """Return the nodes that share tensors of a high rank, each group in topological order."""
    regions: dict[Value, list[Node]] = {}
    found: list[list[Node]] = []
    for node in graph.topological_order():
        high = [value for value in (*node.inputs, *node.outputs) if _rank(value) > most]
        if not high:
            continue
        joined = [node]
        for value in dict.fromkeys(high):
            known = regions.get(value) if value is not None else None
            if known is not None and known in found:
                found.remove(known)
                joined = known + joined
        found.append(joined)
        for each in joined:
            for value in (*each.inputs, *each.outputs):
                if value is not None and _rank(value) > most:
                    regions[value] = joined
    return found


class _Lowering:
    """Rewrites one region; `low` has, for each tensor, one with the same elements in order."""

    def __init__(self, graph: Graph, most: int) -> None:
        self.graph = graph
        self.most = most
        self.low: dict[Value, Value] = {}
        self.made: dict[tuple[Value, Dims], Value] = {}

    def run(self, region: Sequence[Node]) -> Skip | None:
        for node in region:
            reason = self.refusal(node)
            if reason is not None:
                return reason
            results = _RULES[node.op_type](self, node)
            if isinstance(results, Skip):
                return results
            self.low.update(zip(_named(node), results, strict=True))
        for node in region:
            outputs = _named(node)
            if any(_rank(value) <= self.most for value in outputs) and node.is_live:
                self.graph.replace(node, [self.shaped(value, _dims(value)) for value in outputs])
        return None

    def refusal(self, node: Node) -> Skip | None:
        """Return why a node has no form of a lower rank that is the same; None if it may have."""
        if node.domain or node.has_references or node.op_type not in _RULES:
            return Skip("{} has no rule for lower ranks", node.op_type)
        for value in (*node.inputs, *node.outputs):
            if value is None:
                continue
            if value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
                return Skip("the dims are not numbers")
            if 0 in value.shape:
                return Skip("a tensor is empty")
            if _rank(value) <= self.most:
                continue
            if value.is_graph_output:
                return Skip("a result of the graph has rank {}", value.rank)
            if value.producer is None and not value.is_constant:
                return Skip("an input of the graph has rank {}", value.rank)
            if any(reader.owner is not self.graph for reader in value.readers):
                return Skip("a body reads a tensor of rank {}", value.rank)
        return Skip("a result is not named") if None in node.outputs else None

    def shaped(self, value: Value, dims: Dims) -> Value:
        """Return the elements of a tensor in another shape."""
        source = self.low.get(value, value)
        if source.shape == dims:
            return source
        if (source, dims) not in self.made:
            if source.tensor is not None and source.is_constant:
                array = source.tensor.numpy().reshape(dims)
                new = self.graph.constant(Tensor.of(array), source.name)
            else:
                new = self.graph.op.Reshape(source, np.array(dims, np.int64))
            self.made[source, dims] = new
        return self.made[source, dims]


Rule = Callable[[_Lowering, Node], "Sequence[Value] | Skip"]


def _dims(value: Value | None) -> Dims:
    assert value is not None
    assert value.shape is not None
    return tuple(dim for dim in value.shape if isinstance(dim, int))


def _alias(to: _Lowering, node: Node) -> list[Value]:
    (x, *_) = node.operands
    assert x is not None
    return [to.low.get(x, x)]


def _transpose(to: _Lowering, node: Node) -> list[Value]:
    (x,) = node.operands
    dims = _dims(x)
    assert x is not None
    given = node.attr("perm")
    perm = tuple(reversed(range(len(dims)))) if given is None else given
    found = to.low.get(x, x)
    for read, order in transposes(dims, perm, to.most):
        found = to.graph.op.Transpose(to.shaped(found, read), perm=order)
    return [found]


def _broadcast(
    to: _Lowering, values: Sequence[Value], result: Dims
) -> tuple[list[Value], Dims] | Skip:
    """Return operands of a broadcast, and its result, with as few axes as possible."""
    shapes, merged = merged_broadcast([_dims(value) for value in values], result)
    if len(merged) > to.most:
        return Skip("the axes do not merge to rank {}", to.most)
    return [to.shaped(value, dims) for value, dims in zip(values, shapes, strict=True)], merged


def _elementwise(to: _Lowering, node: Node) -> list[Value] | Skip:
    values = [value for value in node.inputs if value is not None]
    found = _broadcast(to, values, _dims(node.output))
    return found if isinstance(found, Skip) else [to.graph.op.like(node, *found[0])]


def _expand(to: _Lowering, node: Node) -> list[Value] | Skip:
    x = node.inputs[0]
    assert x is not None
    found = _broadcast(to, [x], _dims(node.output))
    if isinstance(found, Skip):
        return found
    (merged,), result = found
    return [to.graph.op.Expand(merged, np.array(result, np.int64))]


def _gather(to: _Lowering, node: Node) -> list[Value]:
    x, indices = node.inputs[:2]
    assert x is not None
    assert indices is not None
    dims, count = _dims(x), int(np.prod(_dims(indices)))
    rows = to.shaped(indices, (count,))
    axis = node.attr("axis", 0) % len(dims)
    return [to.graph.op.Gather(to.shaped(x, around(dims, axis)), rows, axis=1)]


def _gather_nd(to: _Lowering, node: Node) -> list[Value] | Skip:
    x, indices = node.inputs[:2]
    assert x is not None
    assert indices is not None
    if node.attr("batch_dims", 0) or _rank(x) > to.most:
        return Skip("GatherND has batch_dims, or data of rank {}", x.rank)
    *outer, inner = _dims(indices)
    return [to.graph.op.GatherND(x, to.shaped(indices, (int(np.prod(outer)), inner)))]


def _concat(to: _Lowering, node: Node) -> list[Value]:
    values = [value for value in node.inputs if value is not None]
    axis = node.attr("axis") % len(_dims(values[0]))
    parts = [to.shaped(value, around(_dims(value), axis)) for value in values]
    return [to.graph.op.Concat(*parts, axis=1)]


def _split(to: _Lowering, node: Node) -> list[Value]:
    x = node.inputs[0]
    assert x is not None
    axis = node.attr("axis", 0) % len(_dims(x))
    sizes = np.array([_dims(value)[axis] for value in node.outputs], np.int64)
    whole = to.shaped(x, around(_dims(x), axis))
    return list(to.graph.op.Split(whole, sizes, axis=1, outputs=len(sizes)))


_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(_ALIASES, _alias),
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "Concat": _concat, "Expand": _expand, "Gather": _gather, "GatherND": _gather_nd,
    "Split": _split, "Transpose": _transpose,
}  # fmt: skip
