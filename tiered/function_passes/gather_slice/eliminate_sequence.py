"""SequenceAt(SplitToSequence(x), i)  =>  a part of x, and Concat for ConcatFromSequence"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass, same_axes

_MOST: Final = 64
"""Sequences of more parts are not split into all of them."""

_LAW: Final = "a sequence that is read at known places => its tensors"


@function_pass(opt_level=1, matches=("SequenceAt", "ConcatFromSequence"))
def eliminate_sequence(graph: Graph, ctx: PassContext) -> None:
    """Read tensors from where a sequence has them: runtimes copy them in and out of it.

    A tensor that is split for several readers is split at once, for one reader it is sliced.
    """
    for node in graph.nodes_of("ConcatFromSequence"):
        _replace(graph, ctx, node, _joined)
    for maker in graph.nodes_of("SplitToSequence"):
        reads = _known_reads(maker)
        if reads is not None:
            with graph.rewrite(_LAW, maker):
                _split(graph, maker, reads)
    for node in graph.nodes_of("SequenceAt"):
        _replace(graph, ctx, node, _element)


def _replace(
    graph: Graph, ctx: PassContext, node: Node, find: Callable[[Node, Node], _Tensor | Skip]
) -> None:
    """Replace a node that reads a sequence by the tensor that it gives."""
    maker = node.producer(0)
    if maker is None or maker.domain:
        return
    found = find(node, maker)
    if isinstance(found, Skip):
        ctx.skip(node, found)
        return
    with graph.rewrite(_LAW, node):
        first_new = graph.model.peek_serial()
        graph.replace(node, [found.build(graph)], first_new)


class _Parts(NamedTuple):
    """How a SplitToSequence splits x along an axis."""

    x: Value
    axis: int
    sizes: tuple[int, ...]


class _Tensor(NamedTuple):
    """A value, or the operator that computes it."""

    operands: tuple[Value | np.ndarray, ...]
    op_type: str = ""
    axis: int | None = None
    # What the result is reshaped to.
    shape: tuple[int, ...] | None = None

    def build(self, graph: Graph) -> Value:
        if not self.op_type:
            (value,) = self.operands
            assert isinstance(value, Value)
            return value
        attributes: dict[str, Any] = {} if self.axis is None else {"axis": self.axis}
        result: Value = graph.op.named(self.op_type)(*self.operands, **attributes)
        if self.shape is None:
            return result
        return graph.op.Reshape(result, np.array(self.shape, np.int64))


def _parts(maker: Node) -> _Parts | None:
    """Return what a SplitToSequence gives, None if it is not known or the parts lose the axis."""
    x, split, axis = maker.given(0), maker.input(1), maker.attr("axis")
    if maker.has_references or (split is None and not maker.attr("keepdims")):
        return None
    dim = x.dim(axis)
    if split is not None and split.rank == 1:
        sizes = None if split.const is None else split.const.tolist()
        if sizes is None or (isinstance(dim, int) and sum(sizes) != dim):
            return None
        return _Parts(x, axis, tuple(sizes))
    size = 1 if split is None else _integer(split)
    if not isinstance(dim, int) or size is None or size <= 0:
        return None
    count = math.ceil(dim / size)
    return _Parts(x, axis, tuple(min(size, dim - at * size) for at in range(count)))


def _integer(value: Value) -> int | None:
    return None if value.number is None else int(value.number)


def _place(node: Node, count: int) -> int | None:
    """Return which of a number of tensors a SequenceAt reads, None if it is not known or none."""
    at = _integer(node.given(1))
    if at is None or not -count <= at < count:
        return None
    return at % count


def _known_reads(maker: Node) -> list[Node] | None:
    """Return the SequenceAts that read a sequence, if these are several and all that do."""
    sequence, parts = maker.output, _parts(maker)
    readers = [use.node for use in sequence.users]
    if parts is None or len(parts.sizes) > _MOST or len(readers) < 2:
        return None
    if sequence.is_graph_output or sequence.pins:
        return None
    is_known = all(
        node.graph is maker.graph
        and node.is_op("SequenceAt")
        and _place(node, len(parts.sizes)) is not None
        for node in readers
    )
    return readers if is_known else None


def _split(graph: Graph, maker: Node, reads: list[Node]) -> None:
    parts = _parts(maker)
    assert parts is not None
    count, first_new = len(parts.sizes), graph.model.peek_serial()
    tensors: tuple[Value, ...] = (parts.x,)
    if count > 1:
        sizes = np.array(parts.sizes, np.int64)
        tensors = graph.op.Split(parts.x, sizes, axis=parts.axis, outputs=count)
    for node in reads:
        at = _place(node, count)
        assert at is not None
        graph.replace(node, [tensors[at]], first_new)


def _contents(maker: Node) -> list[Value] | None:
    """Return the tensors of a sequence that is built one by one, None if they are not known."""
    inserted: list[tuple[Value, Value | None]] = []
    while maker.op_type == "SequenceInsert" and not maker.domain and len(inserted) < _MOST:
        sequence = maker.producer(0)
        if sequence is None:
            return None
        inserted.append((maker.given(1), maker.input(2)))
        maker = sequence
    if maker.domain or maker.op_type not in ("SequenceConstruct", "SequenceEmpty"):
        return None
    found = maker.reads
    for tensor, position in reversed(inserted):
        at = len(found) if position is None else _integer(position)
        if at is None or not -len(found) <= at <= len(found):
            return None
        found.insert(at, tensor)
    return found


def _element(node: Node, maker: Node) -> _Tensor | Skip:
    """Return the tensor that a SequenceAt reads."""
    position, tensors = node.given(1), _contents(maker)
    if tensors is not None:
        at = _place(node, len(tensors))
        return Skip("the position is not known") if at is None else _Tensor((tensors[at],))
    if maker.op_type != "SplitToSequence" or maker.has_references:
        return Skip("the tensors of the sequence are not known")
    x, axis = maker.given(0), maker.attr("axis")
    if maker.input(1) is None and not maker.attr("keepdims"):
        if position.rank != 0:
            return Skip("the position may be no scalar")
        return _Tensor((x, position), "Gather", axis)
    parts = _parts(maker)
    at = None if parts is None else _place(node, len(parts.sizes))
    if parts is None or at is None:
        return Skip("the bounds of the slice are not known")
    start = sum(parts.sizes[:at])
    bounds = ([start], [start + parts.sizes[at]], [axis])
    return _Tensor((parts.x, *(np.array(bound, np.int64) for bound in bounds)), "Slice")


def _joined(node: Node, maker: Node) -> _Tensor | Skip:
    """Return what a ConcatFromSequence makes of a sequence."""
    unknown = node.parameter_reason or maker.parameter_reason
    if unknown is not None:
        return Skip("{}", unknown)
    axis, is_stacked = node.attr("axis"), bool(node.attr("new_axis"))
    if maker.op_type == "SplitToSequence":
        x = maker.given(0)
        loses_axis = maker.input(1) is None and not maker.attr("keepdims")
        if loses_axis != is_stacked:
            return Skip("the parts are concatenated at another rank")
        if not same_axes([axis], [maker.attr("axis")], x.rank):
            return Skip("the parts are concatenated along another axis")
        return _Tensor((x,))
    tensors = tuple(_contents(maker) or ())
    if not tensors:
        return Skip("the concatenated tensors are not known")
    if not is_stacked:
        return _Tensor(tensors, "Concat", axis)
    if len(tensors) == 1:
        return _Tensor((*tensors, np.array([axis], np.int64)), "Unsqueeze")
    rank = tensors[0].rank
    at = axis if axis >= 0 or rank is None else axis + rank + 1
    behind = tensors[0].shape[at:] if tensors[0].shape is not None else ()
    sizes = tuple(dim for dim in behind if isinstance(dim, int) and dim > 0)
    if not behind or len(sizes) < len(behind):
        return Skip("the dims after the axis are not known")
    return _Tensor(tensors, "Concat", at, (*[0] * at, len(tensors), *sizes))
