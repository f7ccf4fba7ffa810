"""Whether a node of constants can be computed, and in how much memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tiered.graph.core.dtypes import DataType
from tiered.graph.queries.op_traits import is_deterministic
from tiered.rewriter.skip import Skip
from tiered.runtime.fold.evaluate import divides_safely
from tiered.runtime.fold.work import work_of

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

# A file of a few bytes must not exhaust the memory: what a node makes out of less, in bytes.
_LARGEST_GROWN: Final = 1 << 28

# How many elements these give depends on the numbers: at most the operand's, times its rank.
_SELECTING: Final = frozenset({"Compress", "NonZero", "Unique"})

_FLOATS16: Final = frozenset({DataType.BFLOAT16, DataType.FLOAT16})
_FLOATS: Final = _FLOATS16 | {DataType.DOUBLE, DataType.FLOAT}
_EVALUATED: Final = _FLOATS | {
    DataType.BOOL, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
}  # fmt: skip


def waits_for_operands(node: Node) -> bool:
    """Tell whether the operands of a node must be constants before it can be computed.

    onnxruntime computes 16 bits in 32 and rounds where it likes; between sessions it must. What has
    a body is computed alone, in a process of its own.
    """
    return bool(node.bodies) or _divides(node) or not _FLOATS16.isdisjoint(_dtypes(node))


def _divides(node: Node) -> bool:
    return node.op_type in ("Div", "Mod") and _FLOATS.isdisjoint(_dtypes(node))


def _dtypes(node: Node) -> set[int | None]:
    values = (*node.inputs, *node.captured, *node.outputs)
    return {value.dtype for value in values if value is not None}


def needs_of(
    node: Node, sizes: Mapping[Value, int], most: int, *, ahead: bool = False
) -> dict[Value, int] | Skip | None:
    """Return the bytes of what a node reads and makes beyond `sizes`.

    Args:
        node: it reads constants, and what is about to be one.
        sizes: the bytes of values that are known already.
        most: how many bytes may be in memory for it.
        ahead: do not mind that its operands must be constants before it.

    Returns:
        A Skip that says why it cannot be computed; None where it must wait for its operands.
    """
    inner = (each.parameter_reason for body in node.bodies for each in body.walk())
    unknown = node.parameter_reason or next(filter(None, inner), None)
    if unknown is not None:
        return Skip("{}", unknown)
    if not is_deterministic(node):
        return Skip("it is random, or nothing is known of it")
    if node.is_pinned:
        return Skip("training info or an annotation names the result")
    inputs = [value for value in (*node.inputs, *node.captured) if value is not None]
    outputs = [value for value in node.outputs if value is not None]
    if not _dtypes(node) <= _EVALUATED:
        return Skip("a dtype cannot be computed")
    is_ready = all(value.tensor is not None for value in inputs)
    if not is_ready and not ahead and waits_for_operands(node):
        return None
    if is_ready and _divides(node) and not divides_safely(node):
        return Skip("an integer division by zero, or one that overflows")
    needs = {value: sizes[value] if value in sizes else _bytes(value) for value in inputs}
    largest = max(_LARGEST_GROWN, *needs.values())
    for value in outputs:
        elements = _elements(node, value)
        if elements is None:
            return Skip("the size of the result is not known beforehand") if is_ready else None
        assert value.dtype is not None
        needs[value] = elements * DataType(value.dtype).numpy.itemsize
        if needs[value] > largest:
            return Skip("the result is too large to compute")
    if sum(held_bytes(value, size) for value, size in needs.items()) > most:
        return Skip("computing it takes too much memory")
    if node.bodies and work_of(node) is None:
        return Skip("how often it runs is not known beforehand") if is_ready else None
    return {value: size for value, size in needs.items() if value not in sizes}


def _elements(node: Node, value: Value) -> int | None:
    """Return how many elements an output has, or at most has; None if that is not known."""
    if value.static_shape is not None:
        return math.prod(value.static_shape)
    operand = node.inputs[0]
    if node.op_type in _SELECTING and operand is not None and operand.static_shape is not None:
        return max(1, len(operand.static_shape)) * math.prod(operand.static_shape)
    return None


def _bytes(value: Value) -> int:
    return 0 if value.tensor is None else value.tensor.nbytes


def held_bytes(value: Value, size: int) -> int:
    """Return how many of the bytes of a value are in memory: what is on disk is mapped."""
    return 0 if value.tensor is not None and value.tensor.is_on_disk else size
