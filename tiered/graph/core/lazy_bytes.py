"""Weights on disk that belong to the model: spans of the model's file, or spilled arrays.

The external-data fields of the TensorProto hold a location that no file can forge. Such a tensor is
read and written as if it held its bytes.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np
import onnx

from tiered.graph.core.dtypes import bits_of
from tiered.support.errors import ModelError

SPILLED: Final = 1 << 24
"""Results of this many bytes or more go to disk."""

_BLOCK: Final = 1 << 20

_SECRET: Final = f"stored:{os.urandom(16).hex()}:"
"""Random in each process, so that a model cannot name a file to be read into its output."""

Place = Literal["model", "data"]
"""Where a saved model has the bytes of a tensor: in the model file, or in the file of weights."""

_PLACE: Final = "tiered.place"


def place_of(proto: onnx.TensorProto) -> Place | None:
    """Return where a saved model has the bytes; None if nothing says so.

    External data of a model that was read says nothing: it stays where it is.
    """
    if proto.data_location == onnx.TensorProto.EXTERNAL and not is_stored(proto):
        return None
    found = {entry.value for entry in proto.external_data if entry.key == _PLACE}
    return "model" if "model" in found else "data" if "data" in found else None


def set_place(proto: onnx.TensorProto, place: Place | None) -> None:
    """Set where a saved model has the bytes of a tensor that is not external data."""
    for at in reversed(range(len(proto.external_data))):
        if proto.external_data[at].key == _PLACE:
            del proto.external_data[at]
    if place is not None:
        proto.external_data.add(key=_PLACE, value=place)


def stored_prefix() -> bytes:
    return _SECRET.encode()


def location_of(path: str, status: os.stat_result) -> str:
    """Return the location that identifies the present content of a file."""
    return f"{_SECRET}{status.st_mtime_ns}:{status.st_size}:{os.path.abspath(path)}"


def blocks_of_file(path: str, offset: int, length: int) -> Iterator[bytes]:
    """Yield bytes of a file, a few at a time.

    Raises:
        ModelError: the file is shorter.
    """
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        while length:
            block = file.read(min(length, _BLOCK))
            if not block:
                raise ModelError(f"{path} became shorter while it was read")
            yield block
            length -= len(block)


def is_stored(proto: onnx.TensorProto) -> bool:
    """Return whether a tensor's bytes are on disk, but belong to the model file."""
    if proto.data_location != onnx.TensorProto.EXTERNAL or not proto.external_data:
        return False
    location: str | bytes = proto.external_data[0].value  # bytes where it is no UTF-8
    return isinstance(location, str) and location.startswith(_SECRET)


def span_of_stored(proto: onnx.TensorProto) -> tuple[str, int, int] | None:
    """Return (file, offset, length) of a stored tensor; None for any other tensor.

    Raises:
        ModelError: the file was changed or removed.
    """
    if not is_stored(proto):
        return None
    entries = {entry.key: entry.value for entry in proto.external_data}
    changed, size, path = entries["location"].removeprefix(_SECRET).split(":", 2)
    try:
        status = os.stat(path)
    except OSError as error:
        raise ModelError(f"cannot read {path} any more: {error.strerror}") from error
    if (str(status.st_mtime_ns), str(status.st_size)) != (changed, size):
        raise ModelError(f"{path} was changed while its weights were in use")
    return path, int(entries["offset"]), int(entries["length"])


def note_size(proto: onnx.TensorProto) -> int:
    """Return the size in bytes of the location fields of a stored tensor."""
    note = onnx.TensorProto(data_location=proto.data_location, external_data=proto.external_data)
    return note.ByteSize()


def spill(array: np.ndarray[Any, Any]) -> onnx.TensorProto:
    """Write an array to a temporary file, and return it as a stored tensor.

    Elements of fewer than eight bits are packed, as ONNX stores them.
    """
    dtype = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    is_packed = bits_of(dtype) < 8
    handle, path = tempfile.mkstemp(dir=_folder(), suffix=".bin")
    with os.fdopen(handle, "wb") as file:
        for block in _packed(array) if is_packed else _blocks(array):
            file.write(block)
    length = os.stat(path).st_size
    proto = onnx.TensorProto(data_type=dtype, dims=array.shape)
    proto.data_location = onnx.TensorProto.EXTERNAL
    location = location_of(path, os.stat(path))
    for key, value in (("location", location), ("offset", 0), ("length", length)):
        proto.external_data.add(key=key, value=str(value))
    return proto


def _packed(array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    """Yield the elements as ONNX stores them, several in a byte, a part at a time."""
    flat = array.ravel()
    # A multiple of what a byte holds.
    for start in range(0, flat.size, _BLOCK):
        yield onnx.numpy_helper.from_array(flat[start : start + _BLOCK]).raw_data


def _blocks(array: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Yield the bytes of an array in order, a part at a time."""
    if array.flags.c_contiguous or array.ndim == 0 or array.nbytes <= SPILLED:
        yield np.ascontiguousarray(array).ravel().view(np.uint8).data
        return
    for row in array:
        yield from _blocks(row)


@functools.cache
def _folder() -> str:
    """Return the folder for spilled arrays, which is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="tiered-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
