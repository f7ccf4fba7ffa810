"""A narrowing: from which dtype to which, where it is allowed, and how constants are converted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np

from tiered.graph import DataType, Model, Node, Value
from tiered.graph.core.dtypes import float_info
from tiered.graph.queries.op_traits import RANDOM
from tiered.support.errors import UsageError, did_you_mean
from tiered.targets.shared_rules import check_operator

Array = np.ndarray[Any, Any]


def has_operator(node: Node, op_types: Collection[str]) -> bool:
    """Return whether a node has one of the operators: Gelu of any domain, com.microsoft::Gelu."""
    return node.op_type in op_types or f"{node.domain}::{node.op_type}" in op_types


def is_chosen(node: Node, op_types: Collection[str], patterns: Iterable[str]) -> bool:
    """Return whether a node has one of the operators, or a name that a glob matches."""
    return has_operator(node, op_types) or any(fnmatchcase(node.label, each) for each in patterns)


def why_skipped(node: Node, op_types: Collection[str], patterns: Iterable[str]) -> str:
    """Return why the user's options keep a node as it is; empty if they do not."""
    if has_operator(node, op_types):
        return f"{node.op_type} is skipped"
    if any(fnmatchcase(node.label, pattern) for pattern in patterns):
        return "the node is skipped"
    return ""


def unmatched(model: Model, op_types: Iterable[str], patterns: Iterable[str]) -> Iterator[str]:
    """Check the names of the user's options, and yield in words which operators no node has.

    Raises:
        UsageError: a name or glob fits no node, or an operator exists neither in the model nor in
            the standard.
    """
    nodes = [node for graph in model.graphs() for node in graph.nodes]
    there = {(node.domain, node.op_type) for node in nodes}
    present = {name for domain, op in there for name in (op, f"{domain}::{op}")}
    missing = [each for each in dict.fromkeys(op_types) if each not in present]
    for each in missing:
        check_operator(each, {*there, *(("", op_type) for _, op_type in there)})
    if missing:
        yield f"no node has the operator {' or '.join(missing)}"
    for pattern in dict.fromkeys(patterns):
        if not any(fnmatchcase(node.label, pattern) for node in nodes):
            hint = did_you_mean(pattern, {node.label for node in nodes})
            raise UsageError(f"no node of {model.label} has the name {pattern!r}{hint}")


def why_no_weight(value: Value | None) -> str:
    """Return why a value that has a default is no constant weight; empty if it has none."""
    if value is None or value.default is None:
        return ""
    is_old = value.owner.model.ir_version < IR_OF_DEFAULTS
    why = "as all are before IR 4" if is_old else "which callers may feed"
    hint = "`tiered optimize --require remove_initializer_from_input` makes a constant of it"
    return f"the weight is an input, {why}: {hint}"


IR_OF_DEFAULTS: Final = 4
"""The first version in which an initializer need not be an input."""


class Narrowing(ABC):
    """Where a wide dtype may become a narrow one.

    Attributes:
        wide: the dtype that is there.
        low: the narrower one.
    """

    wide: DataType
    low: DataType

    @abstractmethod
    def keep(self, node: Node) -> str:
        """Return why a node keeps its type; empty if its schema and its values decide."""

    def refuse(self, value: Value, node: Node | None = None, place: int = 0) -> str:
        """Return why a value must stay wide, as an operand of a node or as it is; empty if not."""
        return ""

    @abstractmethod
    def converted(self, array: Array) -> tuple[Array, bool]:
        """Return numbers in the narrower dtype, and whether finite ones were beyond its range."""


class FloatNarrowing(Narrowing):
    """From float to a narrower type of float: numbers are rounded.

    Args:
        low: the narrower type.
    """

    wide = DataType.FLOAT

    def __init__(self, low: DataType) -> None:
        self.low = low

    def keep(self, node: Node) -> str:
        """Return why a node stays float."""
        if is_in_unit(node):
            return "inside a Q/DQ unit"
        if not node.domain and node.op_type in _DRAWS:
            return "other numbers would be drawn, and onnxruntime has no kernel"
        constants = (value for value in node.inputs if value is not None and value.is_constant)
        wide = (value.tensor for value in constants if value.dtype == self.wide)
        is_sparse = any(tensor is None or tensor.is_sparse for tensor in wide)
        return "a sparse constant" if is_sparse else ""

    def converted(self, array: Array) -> tuple[Array, bool]:
        """Return rounded numbers, and whether some were clamped."""
        return narrow(array, self.low)


_DRAWS: Final = RANDOM - {"Dropout"}
_QUANTIZES: Final = frozenset({"DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"})


def is_in_unit(node: Node) -> bool:
    """Return whether a node quantises, or reads what is dequantised."""
    return node.op_type in _QUANTIZES or any(map(_is_quantized, node.inputs))


def _is_quantized(value: Value | None) -> bool:
    """Return whether a value is the output of a DequantizeLinear."""
    producer = None if value is None else value.producer
    return producer is not None and producer.op_type == "DequantizeLinear"


def narrow(array: Array, low: DataType) -> tuple[Array, bool]:
    """Return numbers in a narrower type, and whether finite ones were beyond its range.

    These become the largest number of their sign, as Inf would make NaN of a masked row. Numbers
    are rounded to the nearest, ties to even; Inf and NaN stay.
    """
    narrowed, is_clamped = np.empty(array.shape, low.numpy), False
    source, target = array.ravel(), narrowed.ravel()
    for start in range(0, source.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        target[part], is_beyond = _narrow(source[part], low)
        is_clamped |= is_beyond
    return narrowed, is_clamped


_AT_ONCE: Final = 1 << 20
"""So many numbers of a weight are converted together: beside them only the result is in memory."""


def _narrow(array: Array, low: DataType) -> tuple[Array, bool]:
    limit = np.float32(float_info(low.numpy).max)
    is_beyond = np.isfinite(array) & (np.abs(array) > limit)
    with np.errstate(over="ignore", invalid="ignore"):
        narrowed = np.where(is_beyond, np.copysign(limit, array), array).astype(low.numpy)
    return narrowed, bool(is_beyond.any())
