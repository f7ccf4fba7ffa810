"""Types of values: dtype and shape, read from TypeProto once and compared by value."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import onnx

from tiered.graph.core.dtypes import DataType

Dim = int | str | None
"""One dim: a size, the name of a symbolic size, or None if unknown."""

Shape = tuple[Dim, ...]


class TensorType(NamedTuple):
    """A dense tensor: `dtype` is a TensorProto.DataType, `shape` is None for an unknown rank."""

    dtype: int
    shape: Shape | None

    def __str__(self) -> str:
        name: str = onnx.TensorProto.DataType.Name(self.dtype).lower()
        if self.shape is None:
            return name
        return f"{name}[{','.join('?' if dim is None else str(dim) for dim in self.shape)}]"


class OpaqueType(NamedTuple):
    """A sequence, optional, map or sparse tensor: kept as the bytes of its TypeProto."""

    serialized: bytes

    def __str__(self) -> str:
        kind = onnx.TypeProto.FromString(self.serialized).WhichOneof("value") or "unknown"
        return kind.removesuffix("_type")


ValueType = TensorType | OpaqueType


@lru_cache(maxsize=4096)
def tensor_type(dtype: int, shape: Shape | None) -> TensorType:
    """Return the shared TensorType, so that equal types are one object."""
    return TensorType(dtype, shape)


_DTYPES = frozenset(DataType)


def read_type(proto: onnx.TypeProto) -> ValueType | None:
    """Return the type of a TypeProto; None if it has no dtype."""
    # Many values of a model have the same type, and the bytes are found sooner than read.
    return _read_serialized(proto.SerializeToString(deterministic=True))


@lru_cache(maxsize=4096)
def _read_serialized(serialized: bytes) -> ValueType | None:
    proto = onnx.TypeProto.FromString(serialized)
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    if kind != "tensor_type":
        return OpaqueType(serialized)
    tensor = proto.tensor_type
    if tensor.elem_type not in _DTYPES:
        return None
    if not tensor.HasField("shape"):
        return tensor_type(tensor.elem_type, None)
    return tensor_type(tensor.elem_type, tuple(_read_dim(dim) for dim in tensor.shape.dim))


# Some exporters write it for each unknown dim: two of these are not the same size.
_NO_NAMES = frozenset({"", "*", "-1", "?", "None", "any", "none", "null", "unk", "unknown"})


def _read_dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        # Some exporters write -1 for "unknown": it is not a size.
        return dim.dim_value if dim.dim_value >= 0 else None
    if kind == "dim_param":
        # A name that is not UTF-8 is read as bytes, and cannot be written.
        name: object = dim.dim_param
        return name if isinstance(name, str) and name not in _NO_NAMES else None
    return None


def write_type(value_type: ValueType | None) -> onnx.TypeProto:
    """Return the TypeProto of a type; an empty one for None."""
    proto = onnx.TypeProto()
    if isinstance(value_type, OpaqueType):
        proto.ParseFromString(value_type.serialized)
    elif value_type is not None:
        proto.tensor_type.elem_type = value_type.dtype
        if value_type.shape is not None:
            shape = proto.tensor_type.shape
            for dim in value_type.shape:
                entry = shape.dim.add()
                if isinstance(dim, int):
                    if dim < 1 << 63:  # ONNX has no larger one
                        entry.dim_value = dim
                elif dim is not None:
                    entry.dim_param = dim
            if not value_type.shape:
                shape.SetInParent()
    return proto


def says_no_more(stated: ValueType | None, known: ValueType | None) -> bool:
    """Return whether another type implies a type: the same dtype and dims, or fewer known dims."""
    if stated is None or stated == known:
        return True
    if not isinstance(stated, TensorType) or not isinstance(known, TensorType):
        return False
    if stated.dtype != known.dtype or stated.shape is None:
        return stated.dtype == known.dtype
    if known.shape is None or len(stated.shape) != len(known.shape):
        return False
    pairs = zip(stated.shape, known.shape, strict=True)
    return all(dim is None or dim == other for dim, other in pairs)


@lru_cache(maxsize=64)
def tensor_text(dtype: int) -> str:
    """Return the type of a tensor as schemas write it: tensor(float)."""
    return f"tensor({onnx.TensorProto.DataType.Name(dtype).lower()})"


def contradict(one: object, other: object) -> bool:
    """Return whether both are types of tensors, and no tensor has both."""
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return False
    return not is_compatible(one, other)


def is_compatible(one: ValueType | None, other: ValueType | None) -> bool:
    """Return whether a value can be of both types: no dtype, rank or size differs."""
    if one is None or other is None or one == other:
        return True
    if isinstance(one, OpaqueType) and isinstance(other, OpaqueType):
        return _have_compatible_elements(
            onnx.TypeProto.FromString(one.serialized), onnx.TypeProto.FromString(other.serialized)
        )
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return False
    if one.dtype != other.dtype or one.shape is None or other.shape is None:
        return one.dtype == other.dtype
    return len(one.shape) == len(other.shape) and not any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(one.shape, other.shape, strict=True)
    )


def _have_compatible_elements(one: onnx.TypeProto, other: onnx.TypeProto) -> bool:
    kind = one.WhichOneof("value")
    if kind != other.WhichOneof("value"):
        return False
    if kind == "map_type":
        return one.map_type.key_type == other.map_type.key_type and is_compatible(
            read_type(one.map_type.value_type), read_type(other.map_type.value_type)
        )
    if kind in ("sequence_type", "optional_type"):
        return is_compatible(
            read_type(getattr(one, kind).elem_type), read_type(getattr(other, kind).elem_type)
        )
    return False


def non_negative_axes(axes: Iterable[int], rank: int | None) -> tuple[int, ...] | None:
    """Return axes counted from the front; None where one counts from the end of an unknown rank."""
    # A file may hold axes as an array of any rank; runtimes reject those that are no vector.
    found = tuple(int(axis) for axis in np.asarray(axes).ravel())
    if rank is None:
        return None if any(axis < 0 for axis in found) else found
    return tuple(axis + rank if axis < 0 else axis for axis in found)


def same_axes(one: Iterable[int], other: Iterable[int], rank: int | None) -> bool:
    """Return whether two lists surely name the same axes of a tensor, in whatever order."""
    from_end = 0 if rank is None else rank
    first, second = (
        sorted(int(axis) + (from_end if axis < 0 else 0) for axis in axes) for axes in (one, other)
    )
    return first == second


def broadcasts_into(shape: Shape | None, target: Shape | None) -> bool:
    """Return whether a tensor surely broadcasts into another without changing its shape."""
    if shape is None or target is None or len(shape) > len(target):
        return shape == ()
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return all(dim == 1 or (dim is not None and dim == size) for dim, size in pairs)


def without_symbols(info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """Return a declaration without the names of dims, which are valid only in its graph."""
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    pending = [copy.type]
    while pending:
        proto = pending.pop()
        kind = proto.WhichOneof("value")
        if kind in ("sequence_type", "optional_type"):
            pending.append(getattr(proto, kind).elem_type)
        elif kind == "map_type":
            pending.append(proto.map_type.value_type)
        elif kind in ("tensor_type", "sparse_tensor_type"):
            for dim in getattr(proto, kind).shape.dim:
                dim.ClearField("dim_param")
    return copy


def type_proto_of(value: Any) -> onnx.TypeProto:
    """Return the TypeProto of an array, or of a sequence of arrays.

    Raises:
        TypeError: a value of another kind, or an empty sequence, which has no element type.
    """
    if isinstance(value, list) and value:
        kind = onnx.TypeProto()
        kind.sequence_type.elem_type.CopyFrom(type_proto_of(value[0]))
        kind.sequence_type.elem_type.tensor_type.ClearField("shape")
        return kind
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"a {type(value).__name__} has no ONNX type; give an array")
    is_string = value.dtype.kind in "OUS"
    element = 8 if is_string else onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return onnx.helper.make_tensor_type_proto(element, value.shape)
