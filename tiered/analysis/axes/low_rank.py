"""Tensors with fewer axes and the same elements in the same order: neighbouring axes as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tiered.analysis.axes.partial_copies import copy_of
from tiered.analysis.axes.rules import axis_map
from tiered.graph import Graph, Node, Tensor, Value
from tiered.graph.opset.aspect import Aspect
from tiered.graph.opset.newest_form import has_newest_form
from tiered.graph.queries.op_traits import (
    ARG_REDUCTIONS,
    ELEMENTWISE,
    REDUCTIONS,
    SOFTMAXES,
    VIEWS,
)
from tiered.rewriter.skip import Skip

Dims = tuple[int, ...]

Step = tuple[Dims, tuple[int, ...]]
"""The shape to read a tensor in, and the permutation of its axes."""

_LOWEST: Final = 4
"""Two blocks of axes are exchanged in a tensor of four axes."""

_LAW: Final = "operators of a high rank => operators of a lower rank"


def transposes(dims: Sequence[int], perm: Sequence[int], most: int) -> list[Step]:
    """Return Transposes of tensors of rank `most` or less that do what one Transpose does.

    One, if enough axes stay neighbours in the same order. Otherwise the axes are brought to their
    places from the first to the last, by exchanges of two neighbouring blocks.

    Args:
        dims: the shape, without zeros.
        perm: the permutation.
        most: the highest rank, 4 or more.
    """
    order = [axis for axis in perm if dims[axis] != 1]
    blocks: list[list[int]] = []
    for axis in order:
        last = blocks[-1][-1] if blocks else None
        if last is not None and last < axis and all(dims[at] == 1 for at in range(last + 1, axis)):
            blocks[-1].append(axis)
        else:
            blocks.append([axis])
    sorted_blocks = sorted(blocks)
    if blocks == sorted_blocks:
        return []
    sizes = tuple(prod(dims[axis] for axis in block) for block in sorted_blocks)
    wanted = tuple(sorted_blocks.index(block) for block in blocks)
    if len(sizes) <= most:
        return [(sizes, wanted)]
    return _exchanges(sizes, wanted)


def _exchanges(sizes: Dims, wanted: tuple[int, ...]) -> list[Step]:
    """Return exchanges of two neighbouring blocks, each a Transpose of rank 4 or less."""
    present, steps = list(range(len(sizes))), list[Step]()
    for place in range(len(wanted)):
        at = present.index(wanted[place])
        if at == place:
            continue
        end = at + 1
        while end < len(present) and present[end] == wanted[place + end - at]:
            end += 1
        parts = (present[:place], present[place:at], present[at:end], present[end:])
        size = [prod(sizes[axis] for axis in part) for part in parts]
        perm = [axis for axis in (0, 2, 1, 3) if parts[axis]]
        kept = sorted(perm)
        read = tuple(size[axis] for axis in kept)
        steps.append((read, tuple(kept.index(axis) for axis in perm)))
        present = [*parts[0], *parts[2], *parts[1], *parts[3]]
    return steps


def merged_broadcast(shapes: Sequence[Dims], result: Dims) -> tuple[list[Dims], Dims]:
    """Return operands and result of a broadcast with as few axes as possible.

    Neighbouring axes become one where each operand has all of them or repeats along all of them.
    A scalar stays one.

    Args:
        shapes: those of the operands.
        result: that of the result, without zeros.
    """
    rank = len(result)
    padded = [(*(1,) * (rank - len(shape)), *shape) for shape in shapes]
    groups: list[tuple[tuple[bool, ...], list[int]]] = []
    for axis, size in enumerate(result):
        if size == 1:
            continue
        has = tuple(shape[axis] == size for shape in padded)
        if groups and groups[-1][0] == has:
            groups[-1][1].append(axis)
        else:
            groups.append((has, [axis]))
    if not groups:
        groups = [((True,) * len(shapes), list(range(rank)))]
    merged = [
        tuple(prod(shape[axis] for axis in axes) for _, axes in groups) if shapes[at] else ()
        for at, shape in enumerate(padded)
    ]
    return merged, tuple(prod(result[axis] for axis in axes) for _, axes in groups)


def around(dims: Sequence[int], axis: int, count: int = 1) -> tuple[int, int, int]:
    """Return the elements before an axis, along it and its next neighbours, and after these."""
    return prod(dims[:axis]), prod(dims[axis : axis + count]), prod(dims[axis + count :])


def lower_ranks(graph: Graph, on_skip: Callable[[Node, Skip], None], most: int) -> None:
    """Rewrite the operators of a graph that read or make tensors of a higher rank than `most`.

    Those that share such tensors are rewritten together, or none of them.

    Args:
        graph: edited in place.
        on_skip: called with the first operator of those that stay, and why.
        most: the highest rank.
    """
    for region in _regions(graph, most):
        first = region[0]
        if most < _LOWEST:
            on_skip(first, Skip("the highest rank is {}, under 4", most))
            continue
        mark = graph.model.mark()
        with graph.rewrite(_LAW, first):
            reason = Lowering(graph, most).run(region)
            if reason is not None:
                graph.model.undo_to(mark)
        if reason is not None:
            on_skip(first, reason)


def _rank(value: Value) -> int:
    return value.rank or 0


def _named(node: Node) -> list[Value]:
    return [value for value in node.outputs if value is not None]


def _regions(graph: Graph, most: int) -> list[list[Node]]:
    """Return the nodes that share tensors of a high rank, each group in topological order."""
    regions: dict[Value, list[Node]] = {}
    found: list[list[Node]] = []
    for node in graph.topological_order():
        high = _high(node, most)
        if not high:
            continue
        joined = [node]
        for value in high:
            known = regions.get(value)
            if known in found:
                found.remove(known)
                joined = known + joined
        found.append(joined)
        for each in joined:
            regions.update(dict.fromkeys(_high(each, most), joined))
    return found


def _high(node: Node, most: int) -> dict[Value, None]:
    """Return the tensors of a high rank that a node reads or makes."""
    values = (value for value in (*node.inputs, *node.outputs) if value is not None)
    return dict.fromkeys(value for value in values if _rank(value) > most)


Rule = Callable[["Lowering", Node], "Sequence[Value] | Skip"]
"""Writes a node in a lower rank and returns its outputs; a Skip says why it has no such form."""

RANKS: Final[Aspect[Rule]] = Aspect("rank")

rank_rule = RANKS.rule
"""Registers a function as the rule of how operators are written in a lower rank."""


class Lowering:
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
            rule = RANKS.of(node)
            assert rule is not None
            results = rule(self, node)
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
        if node.has_references or RANKS.of(node) is None or not has_newest_form(node):
            # A Softmax of an old opset over several axes has no newest form.
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
            if any(reader.owner is not self.graph for reader in value.user_nodes):
                return Skip("a body reads a tensor of rank {}", value.rank)
        return Skip("a result is not named") if None in node.outputs else None

    def unshaped(self, value: Value | None) -> Value | None:
        """Return a tensor in a lower rank, in whatever shape it has there."""
        return None if value is None else self.low.get(value, value)

    def shaped(self, value: Value, dims: Dims) -> Value:
        """Return the elements of a tensor in another shape."""
        source = self.low.get(value, value)
        if source.shape == dims:
            return source
        if (source, dims) not in self.made:
            if source.tensor is not None:
                array = source.tensor.numpy().reshape(dims)
                new = self.graph.constant(Tensor.of(array), source.name)
            else:
                new = self.graph.op.Reshape(source, np.array(dims, np.int64))
            self.made[source, dims] = new
        return self.made[source, dims]


def _dims(value: Value | None) -> Dims:
    assert value is not None
    assert value.shape is not None
    return tuple(dim for dim in value.shape if isinstance(dim, int))


@RANKS.rule(*VIEWS)
def _alias(to: Lowering, node: Node) -> list[Value]:
    (x, *_) = node.operands
    assert x is not None
    return [to.low.get(x, x)]


@RANKS.rule("Transpose")
def _transpose(to: Lowering, node: Node) -> list[Value]:
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
    to: Lowering, values: Sequence[Value], result: Dims
) -> tuple[list[Value], Dims] | Skip:
    """Return operands of a broadcast, and its result, with as few axes as possible."""
    shapes, merged = merged_broadcast([_dims(value) for value in values], result)
    if len(merged) > to.most:
        return Skip("the axes do not merge to rank {}", to.most)
    return [to.shaped(value, dims) for value, dims in zip(values, shapes, strict=True)], merged


@RANKS.rule(*(ELEMENTWISE - {"Identity"}))
def _elementwise(to: Lowering, node: Node) -> list[Value] | Skip:
    axes = axis_map(node)
    if isinstance(axes, Skip):
        return axes
    has_axes = [own is not None for own in axes.inputs]
    values = [value for value, has in zip(node.operands, has_axes, strict=True) if has and value]
    found = _broadcast(to, values, _dims(node.output))
    if isinstance(found, Skip):
        return found
    merged = iter(found[0])
    operands = [
        next(merged) if has and value else to.unshaped(value)
        for value, has in zip(node.operands, has_axes, strict=True)
    ]
    return copy_of(to.graph, node, operands, len(_named(node)))


@RANKS.rule("ReduceMax", "ReduceMin", *ARG_REDUCTIONS, *SOFTMAXES)
@RANKS.rule("Concat", "CumSum", "GatherElements", "Scatter", "ScatterElements", "TopK")
def _along_one(to: Lowering, node: Node) -> list[Value] | Skip:
    """Operators of one axis, or of neighbours that they combine: those before and after merge.

    Sums of floats are not among them: kernels may add up in another order.
    """
    axes = axis_map(node)
    if isinstance(axes, Skip):
        return axes
    labels, is_reduction = axes.inputs[0], node.op_type in REDUCTIONS
    assert labels is not None
    mixed = [at for at, label in enumerate(labels) if not axes.is_parallel(label)]
    if not mixed or mixed != list(range(mixed[0], mixed[0] + len(mixed))):
        return Skip("the axes that it combines are no neighbours")
    if len(mixed) > 1 and not is_reduction:
        return Skip("it combines several axes")
    operands: list[Any] = [
        to.unshaped(value) if own != labels or value is None else to.shaped(
            value, around(_dims(value), mixed[0], len(mixed))
        )
        for value, own in zip(node.operands, axes.inputs, strict=True)
    ]  # fmt: skip
    attributes: dict[str, Any] = {}
    if is_reduction:
        operands[1:] = [np.array([1], np.int64)]
        attributes["noop_with_empty_axes"] = None
    elif node.is_op("CumSum"):
        operands[1] = np.array(1, np.int64)
    else:
        attributes["axis"] = 1
    return copy_of(to.graph, node, operands, len(_named(node)), **attributes)


@RANKS.rule("Expand")
def _expand(to: Lowering, node: Node) -> list[Value] | Skip:
    x = node.given(0)
    found = _broadcast(to, [x], _dims(node.output))
    if isinstance(found, Skip):
        return found
    (merged,), result = found
    return [to.graph.op.Expand(merged, np.array(result, np.int64))]


@RANKS.rule("Gather")
def _gather(to: Lowering, node: Node) -> list[Value]:
    x, indices = node.inputs[:2]
    assert x is not None
    assert indices is not None
    dims, count = _dims(x), int(np.prod(_dims(indices)))
    rows = to.shaped(indices, (count,))
    axis = node.attr("axis") % len(dims)
    return [to.graph.op.Gather(to.shaped(x, around(dims, axis)), rows, axis=1)]


@RANKS.rule("GatherND")
def _gather_nd(to: Lowering, node: Node) -> list[Value] | Skip:
    x, indices = node.inputs[:2]
    assert x is not None
    assert indices is not None
    if node.attr("batch_dims") or _rank(x) > to.most:
        return Skip("GatherND has batch_dims, or data of rank {}", x.rank)
    *outer, inner = _dims(indices)
    return [to.graph.op.GatherND(x, to.shaped(indices, (int(np.prod(outer)), inner)))]


@RANKS.rule("Split")
def _split(to: Lowering, node: Node) -> list[Value]:
    x = node.given(0)
    axis = node.attr("axis") % len(_dims(x))
    sizes = np.array([_dims(value)[axis] for value in node.outputs], np.int64)
    whole = to.shaped(x, around(_dims(x), axis))
    return list(to.graph.op.Split(whole, sizes, axis=1, outputs=len(sizes)))
