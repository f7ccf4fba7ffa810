"""How values cross to the worker process and back: JSON, and the bytes of arrays beside it.

Nothing that is read is executed, as it would be with pickle.

A frame is the length of its JSON in 8 bytes, the JSON `[body, sizes]`, and as many blobs as there
are sizes. Values are written as

    null                        None: an absent optional
    {"a": [dtype, shape, n]}    an array; blob n has its bytes
    {"s": [shape, texts]}       an array of strings
    {"l": [...]}                a sequence
    {"m": [[key, value], ...]}  a map
    {"v": number or text}       a plain number or text, as maps hold them
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

# numpy knows these dtypes by name once they are loaded.
import ml_dtypes  # noqa: F401 - see above
import numpy as np

from tiered.support.errors import RuntimeFailure

Blob = bytes | bytearray | memoryview
_LENGTH = struct.Struct("<Q")


def send(stream: BinaryIO, body: Any, blobs: Sequence[Blob] = ()) -> None:
    """Write one frame."""
    text = json.dumps([body, [len(blob) for blob in blobs]]).encode()
    stream.write(_LENGTH.pack(len(text)))
    stream.write(text)
    for blob in blobs:
        stream.write(blob)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[Any, list[bytearray]]:
    """Read one frame.

    Raises:
        EOFError: the other side is gone.
    """
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    body, sizes = json.loads(_read(stream, length))
    return body, [_read(stream, size) for size in sizes]


def _read(stream: BinaryIO, size: int) -> bytearray:
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        # Every stream that is opened with a buffer has `readinto`; the type does not say so.
        count = stream.readinto(view[done:])  # type: ignore[attr-defined]  # see above
        if not count:
            raise EOFError
        done += count
    return data


def pack(value: Any, blobs: list[Blob]) -> Any:
    """Return a value in JSON types; the bytes of its arrays are appended to the blobs.

    Raises:
        RuntimeFailure: it is of a kind that no model takes.
    """
    match value:
        case None:
            return None
        case bool() | int() | float() | str():
            return {"v": value}
        case np.ndarray() | np.generic():
            return _pack_array(np.asarray(value), blobs)
        case list() | tuple():
            return {"l": [pack(item, blobs) for item in value]}
        case Mapping():
            return {"m": [[_key(key), pack(item, blobs)] for key, item in value.items()]}
    raise RuntimeFailure(f"no model takes a {type(value).__name__}")


def _key(key: Any) -> str | int | float:
    plain = key.item() if isinstance(key, np.generic) else key
    if not isinstance(plain, str | int | float):
        raise RuntimeFailure(f"no model takes a map with a key of type {type(key).__name__}")
    return plain


def _pack_array(array: np.ndarray[Any, Any], blobs: list[Blob]) -> Any:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind in "OU":
        texts = array.ravel().tolist()
        if not all(isinstance(text, str) for text in texts):
            raise RuntimeFailure("an array of objects must hold texts")
        return {"s": [list(array.shape), texts]}
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    blobs.append(np.ascontiguousarray(array).ravel().view(np.uint8).data)
    return {"a": [array.dtype.name, list(array.shape), len(blobs) - 1]}


def unpack(packed: Any, blobs: Sequence[bytearray]) -> Any:
    """Return the value that was packed; arrays own their memory and can be written."""
    match packed:
        case None:
            return None
        case {"v": value}:
            return value
        case {"a": [dtype, shape, blob]}:
            return np.frombuffer(blobs[blob], np.dtype(dtype)).reshape(shape)
        case {"s": [shape, texts]}:
            array = np.empty(len(texts), object)
            array[:] = texts
            return array.reshape(shape)
        case {"l": items}:
            return [unpack(item, blobs) for item in items]
        case {"m": items}:
            return {key: unpack(item, blobs) for key, item in items}
    raise AssertionError(f"unknown frame tag: {packed!r}")
