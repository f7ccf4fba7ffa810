"""Weights in a file of the safetensors format, which is a file of external data of ONNX, too.

A file is the length of its header, the header in JSON with dtype, shape and offsets of each tensor,
and the bytes of all tensors without gaps. ONNX names such bytes by file, offset and length.

Source: https://github.com/huggingface/safetensors, "Format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import onnx

from tiered.graph.core.tensor import Tensor

SUFFIX: Final = ".safetensors"

_TYPES: Final[Mapping[int, tuple[str, int]]] = {
    onnx.TensorProto.BOOL: ("BOOL", 1),
    onnx.TensorProto.UINT8: ("U8", 1),
    onnx.TensorProto.INT8: ("I8", 1),
    onnx.TensorProto.FLOAT8E4M3FN: ("F8_E4M3", 1),
    onnx.TensorProto.FLOAT8E5M2: ("F8_E5M2", 1),
    onnx.TensorProto.UINT16: ("U16", 2),
    onnx.TensorProto.INT16: ("I16", 2),
    onnx.TensorProto.FLOAT16: ("F16", 2),
    onnx.TensorProto.BFLOAT16: ("BF16", 2),
    onnx.TensorProto.UINT32: ("U32", 4),
    onnx.TensorProto.INT32: ("I32", 4),
    onnx.TensorProto.FLOAT: ("F32", 4),
    onnx.TensorProto.UINT64: ("U64", 8),
    onnx.TensorProto.INT64: ("I64", 8),
    onnx.TensorProto.DOUBLE: ("F64", 8),
}
"""The dtype of safetensors and its bytes, by that of ONNX; others are U8, a row of bytes."""

_ALIGNMENT: Final = 8
"""Tensors are in the order of their dtypes' sizes, so that each is aligned to its own."""

_RESERVED: Final = "__metadata__"


def in_order(tensors: Iterable[onnx.TensorProto]) -> list[onnx.TensorProto]:
    """Return tensors in the order in which they are written: the widest dtypes first."""
    return sorted(tensors, key=lambda tensor: -_type_of(tensor)[1])


def header_of(tensors: Sequence[onnx.TensorProto], own: Iterable[onnx.TensorProto]) -> bytes:
    """Return what stands before the bytes of tensors: the length of the header, and the header.

    Args:
        tensors: in the order of their bytes.
        own: the initializers of the main graph. They keep their names; tensors of bodies and of
            Constants get others where theirs are taken, or empty.
    """
    written = {id(tensor) for tensor in tensors}
    names: dict[int, str] = {}
    taken = {_RESERVED}
    for tensor in (*own, *tensors):
        if id(tensor) in written and id(tensor) not in names:
            name = names[id(tensor)] = _free(tensor.name or "constant", taken)
            taken.add(name)
    entries: dict[str, dict[str, object]] = {}
    start = 0
    for tensor in tensors:
        kind, size = _type_of(tensor)[0], Tensor(tensor).nbytes
        shape = list(tensor.dims) if tensor.data_type in _TYPES else [size]
        offsets = [start, start + size]
        entries[names[id(tensor)]] = {"dtype": kind, "shape": shape, "data_offsets": offsets}
        start += size
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _type_of(tensor: onnx.TensorProto) -> tuple[str, int]:
    return _TYPES.get(tensor.data_type, ("U8", 1))


def _free(name: str, taken: set[str]) -> str:
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
