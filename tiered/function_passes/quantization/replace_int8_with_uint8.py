"""DequantizeLinear(QuantizeLinear(x, s, z), s, z)  =>  the same of uint8, with z + 128, for int8"""

from typing import Final, NamedTuple

import numpy as np

from tiered import DataType, Graph, Node, PassContext, Skip, TensorType, Value, function_pass

_SHIFT: Final = 128
"""The difference between the unsigned and the signed integer of the same number."""

_PRODUCTS: Final = ("QLinearConv", "QLinearMatMul")

_MOVES: Final = frozenset((
    *("DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Slice"),
    *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
))
"""Operators that only select or move elements of their first operand, and respect their order."""

_WITH_CONSTANTS: Final = frozenset(("Add", "Concat", "Mul", "Where"))
"""Operators that require one integer dtype for all operands, constants included."""


@function_pass(
    opt_level=3,
    required=("infer_shapes",),
    quantization="operators",
    looks_for=("DequantizeLinear",),
)
def replace_int8_with_uint8(graph: Graph, ctx: PassContext) -> None:
    """Quantise data as uint8 for targets that multiply int8 slowly.

    Each integer and its zero point grow by 128, so that their difference, and each number, stays
    the same. Operators that only move integers stay; weights of products stay int8.
    """
    if not any(ctx.backend.is_slow(name, dtype=DataType.INT8) for name in _PRODUCTS):
        return
    for node in graph.nodes_of("QuantizeLinear"):
        if _is_signed(node.output):
            _convert(graph, ctx, node.output, node)
    for node in graph.nodes_of("DequantizeLinear"):
        q = node.inputs[0]
        if q is not None and q.graph is graph and q.const is not None and _is_operand(node):
            _convert(graph, ctx, q, node)


def _is_signed(q: Value) -> bool:
    node = q.producer
    zero = None if node is None else node.input(2)
    return DataType.INT8 in (q.dtype, None if zero is None else zero.dtype)


def _is_operand(node: Node) -> bool:
    """Return whether a constant is dequantised for an operator that requires one dtype."""
    q = node.inputs[0]
    if not node.is_op("DequantizeLinear") or q is None or q.dtype != DataType.INT8:
        return False
    users = node.output.readers
    return bool(users) and all(user.op_type in _WITH_CONSTANTS for user in users)


def _convert(graph: Graph, ctx: PassContext, q: Value, node: Node) -> None:
    region = _region(q)
    if isinstance(region, Skip):
        ctx.skip(node, region)
        return
    with graph.rewrite("QuantizeLinear(x, s, z) => QuantizeLinear(x, s, z + 128)", node):
        zeros = _Shifted(graph)
        for unit in region.units:
            signed = unit.input(2)
            graph.set_inputs(unit, (*unit.inputs[:2], zeros.of(unit)))
            if signed is not None:
                graph.discard(signed)
            if unit.op_type == "QuantizeLinear" and unit.attr("output_dtype", 0):
                graph.set_attribute(unit, "output_dtype", None)
        for value in region.values:
            if value.const is None:
                graph.set_type(value, TensorType(DataType.UINT8, value.shape))
            else:
                graph.replace_uses(value, graph.constant(_moved(value.const), value.name))
                graph.discard(value)


class _Region(NamedTuple):
    """A connected set of integer values that change their dtype together.

    Attributes:
        values: the integers.
        units: the nodes that quantise and dequantise them.
    """

    values: list[Value]
    units: list[Node]


def _region(q: Value) -> _Region | Skip:
    """Return the values with the same integers as a value, or why they cannot change."""
    source = q.producer if q.const is None else None
    values, units = [q], [] if source is None else [source]
    x = q if source is None else source.inputs[0]
    if x is not None and x.is_constant and not all(map(_is_operand, q.readers)):
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
        if _zeros(unit) is None:
            return Skip("a zero point is not constant")
    return _Region(values, units)


def _zeros(node: Node) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]] | None:
    """Return the zero points; if absent, one 0 for each scale."""
    scale, zero = node.inputs[1], node.input(2)
    if zero is not None:
        return zero.const
    dims = None if scale is None else scale.shape
    if dims is None:
        return None
    sizes = [dim for dim in dims if isinstance(dim, int)]
    return np.zeros(sizes, np.int8) if len(sizes) == len(dims) else None


def _moved(integers: np.ndarray[tuple[int, ...], np.dtype[np.int8]]) -> np.ndarray[
    tuple[int, ...], np.dtype[np.uint8]
]:
    return (integers.astype(np.int16) + _SHIFT).astype(np.uint8)


class _Shifted:
    """The unsigned zero points of one rewrite; a shared zero point stays shared."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._made: dict[tuple[Value | None, tuple[int, ...]], Value] = {}

    def of(self, node: Node) -> Value:
        """Return the zero points of a QuantizeLinear or DequantizeLinear, moved by 128."""
        zero, numbers = node.input(2), _zeros(node)
        assert numbers is not None
        key = (zero, numbers.shape)
        if key not in self._made:
            name = "zero_point" if zero is None else zero.name
            self._made[key] = self._graph.constant(_moved(numbers), name)
        return self._made[key]
