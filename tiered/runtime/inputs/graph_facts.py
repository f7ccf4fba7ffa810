"""What the search for constraints on inputs finds, and what it asks of values and constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.core.dtypes import DataType

if TYPE_CHECKING:
    import onnx

    from tiered.graph import Value
    from tiered.graph.core.types import Dim

Shape = tuple[int | None, ...]

_SMALL = 1024  # elements of a constant that is worth reading


@dataclass(frozen=True)
class Fact:
    """One thing that is known about an input's values.

    Attributes:
        kind: "index", "length", "values"; "mask", "conjunct", "chooser" (uses as a truth value);
            "size" (through other operators); "positive" (else it fails), "domain" (else it
            is NaN), "divisor", "dividend", "small", "zero_point", "condition"; "addend",
            "factor"; "corners" (x and y of two of a region, the lower ones first).
        why: the operator that restricts the values, for messages.
        low, high: values lie in low <= x < high (index, length, corners); None where unknown.
        values: the values to take, in order (kind "values"); the last one repeats.
        dims: the sizes of the axes that index tuples address (ScatterND and the like).
    """

    kind: str
    why: str
    low: int = 0
    high: int | None = None
    values: tuple[float, ...] = ()
    dims: tuple[int, ...] = ()


@dataclass(frozen=True)
class InputDependence:
    """A value that depends on an input: scale * x + offset for the input's x, if `exact`."""

    value: Value
    scale: float = 1
    offset: float = 0
    exact: bool = True  # False: something unknown was added or multiplied
    compared: bool = False  # True: only the outcome of a comparison
    counted: bool = False  # True: a running count of the values (CumSum)


def shape_of(value: Value | None) -> Shape | None:
    """Return the sizes of a value as they follow or are declared, None for each unknown one."""
    if value is None:
        return None
    shape = None if value.shape is None else tuple(map(_size, value.shape))
    declared = None if value.declared is None else value.declared.type.tensor_type
    if declared is None or not declared.HasField("shape"):
        return shape
    stated = tuple(_stated(dim) for dim in declared.shape.dim)
    if shape is None or len(shape) != len(stated):
        return stated if shape is None else shape
    return tuple(d if s is None else s for d, s in zip(stated, shape, strict=True))


def _stated(dim: onnx.TensorShapeProto.Dimension) -> int | None:
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def _size(dim: Dim) -> int | None:
    return dim if isinstance(dim, int) else None


def axis_size(value: Value | None, axis: int) -> int | None:
    """Return the size of one axis, None if it is unknown or not there."""
    shape = shape_of(value)
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def numbers_of(value: Value | None) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a small constant or default, else None."""
    if value is None:
        return None
    tensor = value.tensor if value.default is None else value.default
    if tensor is None or tensor.is_sparse or tensor.is_on_disk or tensor.size > _SMALL:
        return None
    return None if tensor.dtype == DataType.STRING else tensor.numpy()
