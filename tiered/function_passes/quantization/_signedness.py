"""Integers of 8 bits between QuantizeLinear and DequantizeLinear, in the other signedness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import TensorType
from tiered.graph.queries.op_traits import BLOCKS, REARRANGES
from tiered.rewriter import Skip

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

_MOVES: Final = REARRANGES | BLOCKS | {"MaxPool", "Split"}
"""Operators that only select or move elements of their first operand, and respect their order."""

Array = np.ndarray[Any, Any]
IsConvertible = Callable[["Node"], bool]
"""Returns whether a DequantizeLinear of a constant may take the other dtype."""


@dataclass(frozen=True)
class Signedness:
    """A change of the dtype of quantised numbers, by which no number changes.

    Each integer and its zero point move by 128, so that their difference stays the same.

    Attributes:
        source: int8 or uint8.
        target: the other one.
    """

    source: DataType
    target: DataType

    def __str__(self) -> str:
        return "z + 128" if self.shift > 0 else "z - 128"

    @property
    def shift(self) -> int:
        """What is added to each integer."""
        return 128 if self.target == DataType.UINT8 else -128

    def moved(self, integers: Array) -> Array:
        """Return integers in the other dtype."""
        moved: Array = (integers.astype(np.int16) + self.shift).astype(self.target.numpy)
        return moved

    def is_source(self, q: Value) -> bool:
        """Return whether a value, or the zero point of its producer, has the dtype to change."""
        node = q.producer
        zero = None if node is None else node.input(2)
        return self.source in (q.dtype, None if zero is None else zero.dtype)


TO_UNSIGNED: Final = Signedness(DataType.INT8, DataType.UINT8)
TO_SIGNED: Final = Signedness(DataType.UINT8, DataType.INT8)


class _IntegerRegion(NamedTuple):
    """A connected set of integer values that change their dtype together.

    Attributes:
        values: the integers.
        units: the nodes that quantise and dequantise them.
    """

    values: list[Value]
    units: list[Node]


def quantized_values(
    graph: Graph, change: Signedness, is_convertible: IsConvertible
) -> Iterator[tuple[Node, Value]]:
    """Yield the integers of a graph that may change, each with its QuantizeLinear.

    Constants come with one of their DequantizeLinear. Integers that changed are not yielded.
    """
    for node in graph.nodes_of("QuantizeLinear"):
        if change.is_source(node.output):
            yield node, node.output
    for node in graph.nodes_of("DequantizeLinear"):
        q = node.given(0)
        if q.graph is graph and q.const is not None and is_convertible(node):
            yield node, q


def change_signedness(
    graph: Graph, q: Value, node: Node, change: Signedness, is_convertible: IsConvertible
) -> Skip | None:
    """Change the dtype of integers, with those that movement of elements makes of them.

    Args:
        graph: of the integers.
        q: the integers: a result of a QuantizeLinear, or a constant.
        node: the node that the rewrite is about.
        change: from which dtype to which one.
        is_convertible: whether a DequantizeLinear of a constant may take the other dtype.

    Returns:
        Why they stay; None if they changed.
    """
    region = _region(q, change, is_convertible)
    if isinstance(region, Skip):
        return region
    with graph.rewrite(f"QuantizeLinear(x, s, z) => QuantizeLinear(x, s, {change})", node):
        zeros = _Zeros(graph, change)
        for unit in region.units:
            old = unit.input(2)
            graph.set_inputs(unit, (*unit.inputs[:2], zeros.of(unit)))
            if old is not None:
                graph.discard(old)
            if unit.op_type == "QuantizeLinear" and unit.attr("output_dtype", 0):
                graph.set_attribute(unit, "output_dtype", None)
        for value in region.values:
            if value.const is None:
                graph.set_type(value, TensorType(change.target, value.shape))
            else:
                graph.replace_uses(value, graph.constant(change.moved(value.const), value.name))
                graph.discard(value)
    return None


def _region(q: Value, change: Signedness, is_convertible: IsConvertible) -> _IntegerRegion | Skip:
    """Return the values with the same integers as a value, or why they cannot change."""
    source = q.producer if q.const is None else None
    values, units = [q], [] if source is None else [source]
    x = q if source is None else source.given(0)
    if x.is_constant and not all(map(is_convertible, q.readers)):
        return Skip("a constant is quantised")
    for value in values:
        if value.is_graph_output:
            return Skip("the integers are a graph output")
        for reader in value.readers:
            is_data = value not in reader.inputs[1:]
            is_move = not reader.domain and reader.op_type in _MOVES
            if is_data and reader.is_op("DequantizeLinear"):
                units.append(reader)
            elif is_data and is_move and value.const is None:
                # The second output of a MaxPool has indices.
                moved = reader.outputs[:1] if reader.op_type == "MaxPool" else reader.outputs
                values += [output for output in moved if output is not None]
            else:
                return Skip("the integers are used as integers")
    for unit in units:
        if unit.has_references:
            return Skip("{}", unit.parameter_reason)
        if _zeros(unit, change) is None:
            return Skip("a zero point is not constant")
    return _IntegerRegion(values, units)


def _zeros(node: Node, change: Signedness) -> Array | None:
    """Return the zero points; if absent, one 0 for each scale."""
    dims, zero = node.given(1).shape, node.input(2)
    if zero is not None:
        return zero.const
    if dims is None:
        return None
    sizes = [dim for dim in dims if isinstance(dim, int)]
    return np.zeros(sizes, change.source.numpy) if len(sizes) == len(dims) else None


class _Zeros:
    """The new zero points of one rewrite; a shared zero point stays shared."""

    def __init__(self, graph: Graph, change: Signedness) -> None:
        self._graph = graph
        self._change = change
        self._made: dict[tuple[Value | None, tuple[int, ...]], Value] = {}

    def of(self, node: Node) -> Value:
        """Return the zero points of a QuantizeLinear or DequantizeLinear, moved."""
        zero, numbers = node.input(2), _zeros(node, self._change)
        assert numbers is not None
        key = (zero, numbers.shape)
        if key not in self._made:
            name = "zero_point" if zero is None else zero.name
            self._made[key] = self._graph.constant(self._change.moved(numbers), name)
        return self._made[key]
