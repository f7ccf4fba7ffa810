"""Numbers and arrays as operands: constants of the dtype that the operator demands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.schema import Schema, schema_of
from tiered.graph.core.value import Value
from tiered.graph.edits.operator_check import call_error
from tiered.graph.opset.adapter import detached
from tiered.graph.queries.formals import dtype_name, formal_of, known_dtype

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph

Array: TypeAlias = np.ndarray[Any, Any]


def as_operands(
    graph: Graph, op_type: str, domain: str, given: Sequence[Any]
) -> list[Value | None]:
    """Return the operands of a call as values: numbers and arrays become detached constants.

    A number gets the dtype that the schema requires: the only one of this operand, or that of
    another operand with the same type parameter. An array of another dtype is converted if this
    keeps its numbers, or if it was float64 (numpy's dtype for Python floats).

    Raises:
        OperatorError: the dtype of a number is unknown, the number does not fit into it, or the
            operand is of another type.
    """
    schema = schema_of(op_type, domain)
    operands: list[Value | None] = []
    for place, value in enumerate(given):
        if value is None or isinstance(value, Value):
            operands.append(value)
            continue
        where = f"operand {place}"
        if not isinstance(value, np.ndarray | np.generic | bool | int | float):
            found = f"{where} is {value!r}; pass a value, an array, a number or None"
            raise call_error(graph, op_type, domain, found)
        if schema is not None and schema.inputs:
            where = f"{where} ({formal_of(schema, place).name})"
        wanted = _wanted(schema, given, place)
        try:
            operands.append(detached(_as_array(value, wanted)))
        except ValueError as error:
            raise call_error(graph, op_type, domain, f"{where} is {error}") from None
    return operands


def _wanted(schema: Schema | None, given: Sequence[Any], place: int) -> int | None:
    """Return the dtype that an operand must have; None where the schema leaves it open."""
    if schema is None or place >= schema.max_input:
        return None
    formal = formal_of(schema, place)
    if len(formal.dtypes) == 1:
        return min(formal.dtypes)
    for index, other in enumerate(given):
        if isinstance(other, Value) and formal_of(schema, index).parameter == formal.parameter:
            dtype = known_dtype(other)
            if dtype is None and other.graph is not None:
                dtype = other.dtype
            if dtype in formal.dtypes:
                return dtype
    return None


def _as_array(value: Any, wanted: int | None) -> Array:
    """Return a number or an array in the wanted dtype.

    Raises:
        ValueError: the number does not fit, or its dtype is unknown.
    """
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return array if wanted is None else _converted(array, wanted)
    if wanted is None:
        raise ValueError(
            f"the number {value!r}, and no other operand determines its dtype; "
            f"pass an array: np.array({value!r}, np.float32)"
        )
    dtype = DataType(wanted).numpy
    is_bool = wanted == DataType.BOOL
    if isinstance(value, bool) != is_bool or wanted == DataType.STRING:
        raise ValueError(f"the number {value!r}, where {dtype_name(wanted)} is expected")
    with np.errstate(all="ignore"):
        try:
            array = np.array(value).astype(dtype)
        except (OverflowError, TypeError) as error:
            raise ValueError(f"{value!r}, which {dtype_name(wanted)} cannot hold") from error
    is_integer = "int" in dtype.name
    if is_integer and (isinstance(value, float) or int(array) != value):
        raise ValueError(f"{value!r}, which {dtype_name(wanted)} cannot hold")
    if np.isfinite(float(value)) and not np.isfinite(array.astype(np.float64)):
        raise ValueError(f"{value!r}, which is too large for {dtype_name(wanted)}")
    return array


def _converted(array: Array, wanted: int) -> Array:
    """Return an array in the wanted dtype, unchanged if that would change its numbers.

    A float64 is rounded, but not to infinity.
    """
    dtype = DataType(wanted).numpy
    if array.dtype == dtype or array.dtype.kind not in "iuf" or wanted == DataType.STRING:
        return array
    with np.errstate(all="ignore"):
        made = array.astype(dtype)
        back = made.astype(array.dtype)
    if array.dtype == np.float64 and DataType(wanted).is_float:
        return made if np.array_equal(np.isfinite(back), np.isfinite(array)) else array
    return made if back.tobytes() == array.tobytes() else array
