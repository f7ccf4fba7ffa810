"""The wire format of ONNX files, read and written around the weights, which stay on disk.

A file of many megabytes is a skeleton of a few hundred kilobytes and the bytes of its weights. Only
the skeleton is parsed; each large `raw_data` is a span of the file, recorded in the fields of
external data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import onnx

from tiered.graph.core.lazy_bytes import location_of, span_of_stored, stored_prefix

if TYPE_CHECKING:
    from mmap import mmap

    from google.protobuf.message import Message

    Buffer = bytes | mmap

SCANNED: Final = 1 << 22
"""Files from this many bytes on are scanned; smaller ones are parsed, which is as fast."""

_LARGE: Final = 1 << 16
"""The least bytes of a `raw_data` that stays on disk, and so of a message that may hold one."""

_DEPTH: Final = 90
"""How deep messages may be nested; protobuf itself stops at 100."""


def _numbers(message: type[Message], **kinds: str) -> dict[int, str]:
    """Return fields of a message by their numbers: what each of them is."""
    fields = message.DESCRIPTOR.fields_by_name
    return {fields[name].number: kind for name, kind in kinds.items()}


def _number(message: type[Message], name: str) -> int:
    return int(message.DESCRIPTOR.fields_by_name[name].number)


_RAW_DATA: Final = _number(onnx.TensorProto, "raw_data")
_EXTERNAL: Final = tuple(
    _number(onnx.TensorProto, name) for name in ("external_data", "data_location")
)
_STRING: Final = onnx.TensorProto.STRING

# For each message, the fields that may hold weights, and their kind. Tensors in attributes count
# only in Constants: elsewhere their meaning is unknown.
_FIELDS: Final[dict[str, dict[int, str]]] = {
    "model": _numbers(
        onnx.ModelProto, graph="graph", training_info="training", functions="function"
    ),
    "training": _numbers(onnx.TrainingInfoProto, initialization="graph", algorithm="graph"),
    "function": _numbers(onnx.FunctionProto, node="node"),
    "graph": _numbers(onnx.GraphProto, node="node", initializer="tensor"),
    "node": _numbers(onnx.NodeProto, attribute="attribute"),
    "attribute": _numbers(onnx.AttributeProto, g="graph", graphs="graph"),
    "constant": _numbers(onnx.NodeProto, attribute="value"),
    "value": _numbers(onnx.AttributeProto, t="tensor"),
}
_OP_TYPE: Final = _number(onnx.NodeProto, "op_type")

# Lists of numbers and strings, with one field for each element. An attribute or tensor with such a
# list is parsed whole, so that the scan need not visit its many fields.
_OF_ATTRIBUTES: Final = frozenset(
    _number(onnx.AttributeProto, name) for name in ("floats", "ints", "strings")
)
_LISTS: Final[dict[str, frozenset[int]]] = {
    "attribute": _OF_ATTRIBUTES,
    "value": _OF_ATTRIBUTES,
    "tensor": frozenset(
        _number(onnx.TensorProto, f"{kind}_data")
        for kind in ("float", "int32", "string", "int64", "double", "uint64")
    ),
}

_MOST_FIELDS: Final = 1 << 20
"""The most fields of a scan: a file with more is parsed whole, which is faster then."""


class ByteSpan(NamedTuple):
    """Bytes of a file."""

    path: str
    offset: int
    length: int


class _IrregularError(Exception):
    """The file has a form that only protobuf itself can parse."""


def read_skeleton(path: str) -> bytes | None:
    """Return the bytes of a model file with its large weights left out, each noted as a span.

    None if the file is small, has no large weight, or is irregular: it is to be parsed whole then.
    """
    if os.path.getsize(path) < SCANNED:
        return None
    import mmap  # most models are small

    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        location = location_of(path, os.fstat(file.fileno()))
        try:
            return _Reader(data, location).message(0, len(data), "model", 0)
        except (_IrregularError, IndexError):
            return None


def read_model_bytes(path: str) -> bytes:
    """Return the bytes of a model file, its large weights left out where they can be.

    Raises:
        OSError: the file cannot be read.
    """
    content = read_skeleton(path)
    if content is None:
        with open(path, "rb") as file:
            content = file.read()
    return content


class _Reader:
    def __init__(self, data: mmap, location: str) -> None:
        self.data = data
        self.location = location
        self.count = 0

    def message(self, start: int, end: int, kind: str, depth: int) -> bytes | None:
        """Return a message without its large weights; None if it has none."""
        if depth > _DEPTH:
            raise _IrregularError
        if kind == "tensor":
            return self._tensor(start, end)
        inner, made, done = _FIELDS[kind], list[bytes](), start
        lists = _LISTS.get(kind, frozenset())
        for number, begin, content, stop in self._fields(start, end):
            if number in lists:
                break
            if kind == "node" and number == _OP_TYPE and self.data[content:stop] == b"Constant":
                inner = _FIELDS["constant"]
            if stop - content < _LARGE or number not in inner:
                continue
            changed = self.message(content, stop, inner[number], depth + 1)
            if changed is not None:
                made += (self.data[done:begin], _header(number, len(changed)), changed)
                done = stop
        if not made:
            return None
        made.append(self.data[done:end])
        return b"".join(made)

    def _fields(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        for field in _fields(self.data, start, end):
            self.count += 1
            if self.count > _MOST_FIELDS:
                raise _IrregularError
            yield field

    def _tensor(self, start: int, end: int) -> bytes | None:
        raw: tuple[int, int, int] | None = None
        for number, begin, content, stop in self._fields(start, end):
            if number in _EXTERNAL or number in _LISTS["tensor"]:
                return None
            if number == _RAW_DATA and raw is not None:
                return None
            if number == _RAW_DATA:
                raw = begin, content, stop
        if raw is None or raw[2] - raw[1] < _LARGE:
            return None
        begin, content, stop = raw
        rest = self.data[start:begin] + self.data[stop:end]
        noted = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
        entries = (("location", self.location), ("offset", content), ("length", stop - content))
        for key, value in entries:
            noted.external_data.add(key=key, value=str(value))
        return rest + bytes(noted.SerializeToString(deterministic=True))


def splice(data: bytes) -> Iterator[bytes | ByteSpan]:
    """Yield a serialised model with the weights that were left out."""
    if data.find(stored_prefix()) < 0:
        yield data
        return
    pieces, _ = _spliced(data, 0, len(data), "model")
    yield from pieces


def _spliced(data: bytes, start: int, end: int, kind: str) -> tuple[list[bytes | ByteSpan], int]:
    """Return the pieces of a message with its weights, and how many bytes they are."""
    if kind == "tensor":
        return _spliced_tensor(data[start:end])
    kinds = _FIELDS[kind] | (_FIELDS["value"] if kind == "attribute" else {})
    pieces, total, done, prefix = list[bytes | ByteSpan](), 0, start, stored_prefix()
    for number, begin, content, stop in _fields(data, start, end):
        if number not in kinds or data.find(prefix, content, stop) < 0:
            continue
        inner, size = _spliced(data, content, stop, kinds[number])
        before = data[done:begin] + _header(number, size)
        pieces += (before, *inner)
        total += len(before) + size
        done = stop
    pieces.append(data[done:end])
    return pieces, total + end - done


def _spliced_tensor(data: bytes) -> tuple[list[bytes | ByteSpan], int]:
    proto = onnx.TensorProto.FromString(data)
    found = span_of_stored(proto)
    if found is None:
        return [data], len(data)
    span = ByteSpan(*found)
    proto.ClearField("external_data")
    proto.ClearField("data_location")
    after = onnx.TensorProto()
    after.CopyFrom(proto)
    for field, _ in proto.ListFields():
        (proto if field.number > _RAW_DATA else after).ClearField(field.name)
    proto.DiscardUnknownFields()  # they are in `after`
    before = proto.SerializeToString(deterministic=True) + _header(_RAW_DATA, span.length)
    behind = after.SerializeToString(deterministic=True)
    return [before, span, behind], len(before) + span.length + len(behind)


def size_of(pieces: list[bytes | ByteSpan]) -> int:
    """Return how many bytes pieces are together."""
    return sum(piece.length if isinstance(piece, ByteSpan) else len(piece) for piece in pieces)


# --- the format -----------------------------------------------------------------------------------


def _fields(data: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, start of the field, start and end of its content) of a message's fields."""
    at = start
    while at < end:
        begin = at
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 2:
            length, content = _varint(data, at)
            at = content + length
        else:
            content = at
            if kind == 0:
                at = _varint(data, at)[1]
            elif kind == 1:
                at += 8
            elif kind == 5:
                at += 4
            else:
                raise _IrregularError
        if at > end or number == 0:
            raise _IrregularError
        yield number, begin, content, at


def _varint(data: Buffer, at: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _IrregularError


def _header(number: int, length: int) -> bytes:
    """Return the tag and length that precede a content of this many bytes."""
    return _encoded(number << 3 | 2) + _encoded(length)


def _encoded(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
