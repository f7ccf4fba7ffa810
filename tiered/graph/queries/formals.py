"""The dtypes that schemas allow, and the dtypes of values that need no inference."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import onnx
from onnx.defs import OpSchema

from tiered.graph.core.schema import Schema, schema_in_use
from tiered.graph.core.types import TensorType
from tiered.graph.core.value import NotInferred

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.value import Value

_STEPS: Final = 32
"""How far up the producers a dtype is looked for."""


class Formal(NamedTuple):
    """The schema of one operand; `parameter` names the type that it shares with others."""

    name: str
    parameter: str
    dtypes: frozenset[int]
    """Of dense tensors."""
    is_optional: bool


@lru_cache(maxsize=4096)
def formal_of(schema: Schema, place: int) -> Formal:
    """Return the schema of an operand; the last one of a variadic operator has all further."""
    return _formal(schema.inputs[min(place, len(schema.inputs) - 1)], place)


@lru_cache(maxsize=4096)
def output_formal_of(schema: Schema, place: int) -> Formal:
    """Return the schema of an output."""
    return _formal(schema.outputs[min(place, len(schema.outputs) - 1)], place)


def _formal(formal: OpSchema.FormalParameter, place: int) -> Formal:
    variadic = formal.option == OpSchema.FormalParameterOption.Variadic
    parameter = formal.type_str
    if variadic and not formal.is_homogeneous:
        parameter = f"{parameter} of operand {place}"
    optional = formal.option == OpSchema.FormalParameterOption.Optional
    return Formal(formal.name, parameter, _dtypes(formal.types), optional)


def _dtypes(types: set[str]) -> frozenset[int]:
    """Return the DataTypes of the dense tensors among `tensor(float)`, `seq(tensor(float))`."""
    names = (text[7:-1].upper() for text in types if text.startswith("tensor("))
    return frozenset(onnx.TensorProto.DataType.Value(name) for name in names)


def takes_dtype(graph: Graph, op_type: str, dtype: int | None) -> bool:
    """Return whether the first operand of an ONNX operator may have a dtype in a graph's opset.

    Few operators take floats of 8 bits and integers of 4 bits, for most of them only in new opsets.
    """
    schema = schema_in_use(op_type, "", graph.opset())
    return schema is not None and dtype in formal_of(schema, 0).dtypes


def dtype_name(dtype: int) -> str:
    return onnx.TensorProto.DataType.Name(dtype).lower()


def dtype_names(formal: Formal) -> str:
    return ", ".join(dtype_name(dtype) for dtype in sorted(formal.dtypes)) or "no dense tensor"


def known_dtype(value: Value) -> int | None:
    """Return the dtype of a value if it is known without inference, None otherwise."""
    for _ in range(_STEPS):
        kind = value._type
        if type(kind) is TensorType:
            return kind.dtype
        if value._tensor is not None:
            return value._tensor.dtype
        node = value.producer
        if not isinstance(kind, NotInferred) or node is None:
            return None
        if node.op_type == "Constant" and not node.domain:
            tensor = value.tensor
            return None if tensor is None else tensor.dtype
        schema = node.schema
        if schema is None or node.has_references:
            return None
        if node.op_type == "Cast" and not node.domain:
            to: int = node.attr("to")
            return to
        source = _source(schema, value.index)
        if source is None or source.dtype is not None:
            return None if source is None else source.dtype
        operand = node._inputs[source.place] if source.place < len(node._inputs) else None
        if operand is None:
            return None
        value = operand
    return None


class _Source(NamedTuple):
    """The source of the dtype of an output: always `dtype`, or the dtype of an operand."""

    dtype: int | None
    place: int = 0


@lru_cache(maxsize=4096)
def _source(schema: Schema, index: int) -> _Source | None:
    formal = schema.outputs[min(index, len(schema.outputs) - 1)]
    if len(formal.types) == 1:
        dtypes = _dtypes(formal.types)
        return _Source(min(dtypes)) if dtypes else None
    if formal.option == OpSchema.FormalParameterOption.Variadic and not formal.is_homogeneous:
        return None
    for place, given in enumerate(schema.inputs):
        if given.type_str == formal.type_str:
            return _Source(None, place)
    return None
