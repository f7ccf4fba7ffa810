"""Tensors: dtype, shape and size without the bytes; the elements are read on demand."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper

from tiered.graph.core.dtypes import DataType, bits_of
from tiered.graph.core.lazy_bytes import (
    SPILLED,
    Place,
    blocks_of_file,
    is_stored,
    location_of,
    place_of,
    set_place,
    span_of_stored,
    spill,
)
from tiered.support.amounts import counted
from tiered.support.errors import ModelError
from tiered.support.memory_limit import check_memory

# Decoded arrays up to this many bytes are kept: shapes, axes and scalars are read again and again.
_KEEP_BYTES = 1 << 14

# The enum of a message is slow.
_EXTERNAL = onnx.TensorProto.EXTERNAL
_CHECKED: Final = 1 << 20
"""Arrays of this many bytes are checked against the limit of memory before they are made."""

_STRING = onnx.TensorProto.STRING

# `raw_data` stores the dtypes of numpy in little-endian order.
_STORED = {dtype.value: dtype.numpy.newbyteorder("<") for dtype in DataType if dtype.is_native}
_KNOWN = frozenset(DataType)

# The field that holds the elements of a tensor that tools write by hand, and its dtype.
_LISTED: dict[int, tuple[str, Any]] = {
    DataType.FLOAT: ("float_data", np.float32),
    DataType.INT8: ("int32_data", np.int32),
    DataType.UINT8: ("int32_data", np.int32),
    DataType.INT32: ("int32_data", np.int32),
    DataType.INT64: ("int64_data", np.int64),
}


class Tensor:
    """The contents of a constant: a TensorProto, a SparseTensorProto or an array.

    Tensors are immutable and may be shared between values. The proto is never written to.
    """

    __slots__ = (
        *("_array", "_folder", "_key", "_outline", "dtype", "is_sparse", "proto", "shape"),
    )

    def __init__(
        self,
        proto: onnx.TensorProto | onnx.SparseTensorProto | None,
        array: np.ndarray[Any, Any] | None = None,
        folder: str = "",
    ) -> None:
        self.proto = proto
        self._array = array
        self._folder = folder
        self._key: tuple[Any, ...] | None = None
        self._outline: int | None = None
        self.is_sparse = False
        if array is not None:
            self.dtype = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
            self.shape: tuple[int, ...] = array.shape
        elif type(proto) is onnx.TensorProto:
            self.dtype = proto.data_type
            self.shape = tuple(proto.dims)
        else:
            assert isinstance(proto, onnx.SparseTensorProto)
            self.is_sparse = True
            self.dtype = proto.values.data_type
            self.shape = tuple(proto.dims)

    def check(self, name: str) -> None:
        """Raise if dtype and dims are not those of a valid tensor; the data is not read.

        Raises:
            ModelError: an unknown dtype, a negative dim, or too many elements.
        """
        if self.dtype not in _KNOWN:
            raise ModelError(f"tensor {name!r} has an unknown data_type: {self.dtype}")
        if min(self.shape, default=0) < 0:
            raise ModelError(f"tensor {name!r} has negative dims: {list(self.shape)}")
        if self.size >= 1 << 63:
            raise ModelError(f"tensor {name!r} has impossible dims: {list(self.shape)}")
        if self.is_stored:
            self.external_span()

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], *, in_memory: int | None = None) -> Tensor:
        """Return the tensor of an array; the array must not be changed afterwards.

        A large array is written to a temporary file, and mapped when its elements are read.

        Args:
            array: the elements.
            in_memory: fewer bytes stay in memory; None for the usual limit.
        """
        array = np.asarray(array)
        limit = SPILLED if in_memory is None else in_memory
        if array.nbytes >= limit and array.dtype.kind not in "OSU":
            return cls(spill(array))
        return cls(None, array)

    @property
    def is_external(self) -> bool:
        """Return whether the bytes are in a separate file: external data."""
        return self.is_on_disk and not self.is_stored

    @property
    def is_stored(self) -> bool:
        """Return whether the bytes are part of the model file, but were not read."""
        return type(self.proto) is onnx.TensorProto and is_stored(self.proto)

    @property
    def is_on_disk(self) -> bool:
        """Return whether the bytes are in a file: external data, or the model file."""
        proto = self.proto
        return type(proto) is onnx.TensorProto and proto.data_location == _EXTERNAL

    @property
    def can_be_external(self) -> bool:
        """Return whether ONNX can have the elements in a separate file."""
        return not self.is_sparse and self.dtype != _STRING

    @property
    def place(self) -> Place | None:
        """Return where a saved model has the bytes; None if the options of saving decide."""
        return place_of(self.proto) if isinstance(self.proto, onnx.TensorProto) else None

    def placed(self, place: Place) -> Tensor:
        """Return the same elements, which a saved model has at a place; no byte of a file is read.

        Raises:
            ModelError: the bytes are external data, and the file is missing or too short.
        """
        assert not self.is_sparse, "a sparse tensor is always in the model file"
        proto = onnx.TensorProto()
        proto.CopyFrom(self.to_proto(""))
        if self.is_external:
            path, offset, length = self.external_span()
            del proto.external_data[:]
            entries = (("location", location_of(path, os.stat(path))), ("offset", offset))
            for key, value in (*entries, ("length", length)):
                proto.external_data.add(key=key, value=str(value))
        set_place(proto, place)
        return Tensor(proto, folder=self._folder)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the size of the elements in a file, in bytes; strings count their characters."""
        if self.dtype == _STRING:
            return sum(len(text) for text in self._string_data())
        if self.is_sparse:
            assert self.proto is not None
            return self.proto.ByteSize()
        return (math.prod(self.shape) * bits_of(self.dtype) + 7) // 8

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the elements as a read-only array; large external data is mapped, not read.

        Raises:
            ModelError: the bytes do not fit the declared dtype and dims, or the external file is
                missing, too short or outside the folder of the model.
        """
        if self._array is not None:
            return self._array
        assert not self.is_sparse, "a sparse tensor has no dense array"
        if not self.is_on_disk and self.nbytes >= _CHECKED:
            check_memory(self.nbytes)
        array = self._map_external() if self.is_on_disk else self._decode()
        array.setflags(write=False)
        if array.nbytes <= _KEEP_BYTES:
            self._array = array
        return array

    def dense(self) -> np.ndarray[Any, Any]:
        """Return the elements as an array, those of a sparse tensor too.

        Raises:
            ModelError: as `numpy`.
        """
        if not isinstance(self.proto, onnx.SparseTensorProto):
            return self.numpy()
        values, places = map(numpy_helper.to_array, (self.proto.values, self.proto.indices))
        check_memory(math.prod(self.shape) * values.itemsize)
        array = np.zeros(self.shape, values.dtype)
        at = places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), self.shape)
        array.reshape(-1)[at] = values
        return array

    def converted(self, dtype: int) -> Tensor | None:
        """Return the same numbers in another dtype; None if it cannot represent one of them."""
        if onnx.TensorProto.STRING in (dtype, self.dtype) or self.is_sparse:
            return None
        array = self.numpy()
        with np.errstate(all="ignore"):
            result = array.astype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
            back = result.astype(array.dtype)
        # A round trip is not enough: 200 is -56 as an int8, and 200 again as a uint8.
        same = back.tobytes() == array.tobytes() and np.array_equal(
            array.astype(np.float64), result.astype(np.float64), equal_nan=True
        )
        return Tensor.of(result) if same else None

    def key(self) -> tuple[Any, ...]:
        """Return a key, equal for two tensors exactly if their bits are; large ones are hashed."""
        if self._key is not None:
            return self._key
        if self.dtype == _STRING:
            return (self.dtype, self.shape, *self._string_data())
        if isinstance(self.proto, onnx.SparseTensorProto):
            return (self.dtype, self.shape, self.proto.SerializeToString(deterministic=True))
        if self.is_on_disk and self.nbytes > _KEEP_BYTES and bits_of(self.dtype) >= 8:
            self._key = (self.dtype, self.shape, self._hash_of_file())
            return self._key
        numbers = self.numpy()
        if numbers.nbytes <= _KEEP_BYTES:
            bits = numbers.tobytes()
        else:
            flat = np.ascontiguousarray(numbers).ravel()
            import hashlib  # with OpenSSL, which few models need

            bits = hashlib.blake2b(flat.view(np.uint8).data).digest()
        self._key = (self.dtype, self.shape, bits)
        return self._key

    def outline(self) -> Hashable:
        """Return a cheap key that is equal for equal tensors of one dtype, and seldom for others.

        It depends on the first elements only.
        """
        if self._outline is None:
            if self.is_sparse or self.dtype == _STRING:
                return self.key()
            self._outline = hash(self.numpy().ravel()[:64].tobytes())
        return self._outline

    def _hash_of_file(self) -> bytes:
        """Return the hash of bytes on disk, which pass through memory a few at a time."""
        import hashlib

        digest = hashlib.blake2b()
        for block in blocks_of_file(*self.external_span()):
            digest.update(block)
        return digest.digest()

    def embedded(self, name: str) -> onnx.TensorProto:
        """Return a TensorProto of this name that holds its bytes, except those of external data."""
        proto = self.to_proto(name)
        if not is_stored(proto) and place_of(proto) is None:
            return proto
        whole = onnx.TensorProto()
        whole.CopyFrom(proto)
        whole.ClearField("external_data")
        if not is_stored(proto):
            return whole
        path, offset, length = self.external_span()
        whole.ClearField("data_location")
        with open(path, "rb") as file:
            file.seek(offset)
            whole.raw_data = file.read(length)
        return whole

    def to_proto(self, name: str) -> onnx.TensorProto:
        """Return a TensorProto of this name; the stored form of a loaded tensor is kept."""
        if self.proto is None:
            assert self._array is not None
            return numpy_helper.from_array(self._array, name)
        assert isinstance(self.proto, onnx.TensorProto)
        if self.proto.name == name:
            return self.proto
        proto = onnx.TensorProto()
        proto.CopyFrom(self.proto)
        proto.name = name
        return proto

    def external_span(self) -> tuple[str, int, int]:
        """Return the checked (file, offset, length in bytes) of a tensor on disk.

        Raises:
            ModelError: the file is missing, too short, or no plain file in the model's folder.
        """
        assert isinstance(self.proto, onnx.TensorProto)
        found = span_of_stored(self.proto)
        if found is not None:
            if found[2] != self.nbytes:
                raise ModelError(
                    f"tensor {self.proto.name!r} has {counted(found[2], 'byte')} of data, its "
                    f"dtype and dims {list(self.shape)} need {self.nbytes:,}"
                )
            return found
        entries = {entry.key: entry.value for entry in self.proto.external_data}
        what = f"tensor {self.proto.name!r}: external data"
        path = _inside(self._folder, entries.get("location", ""), what)
        expected = self.nbytes
        try:
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", expected))
        except ValueError as error:
            raise ModelError(f"{what} has an offset or length that is not an integer") from error
        if length != expected:
            raise ModelError(
                f"{what} has {counted(length, 'byte')}, dtype and dims need {expected:,}"
            )
        size = os.path.getsize(path)
        if offset < 0 or offset + length > size:
            raise ModelError(
                f"{what} is bytes {offset} to {offset + length} of {path}, which has {size}"
            )
        return path, offset, length

    def _map_external(self) -> np.ndarray[Any, Any]:
        path, offset, length = self.external_span()
        if bits_of(self.dtype) < 8:
            proto = onnx.TensorProto(data_type=self.dtype, dims=self.shape)
            with open(path, "rb") as file:
                file.seek(offset)
                proto.raw_data = file.read(length)
            return numpy_helper.to_array(proto)
        dtype = DataType(self.dtype).numpy
        if not length:
            return np.empty(self.shape, dtype)
        mapped = np.memmap(path, dtype, "r", offset, self.shape)
        # A cached map would hold a file descriptor, and a process has few.
        return np.array(mapped) if mapped.nbytes <= _KEEP_BYTES else mapped

    def _decode(self) -> np.ndarray[Any, Any]:
        proto = self.proto
        assert type(proto) is onnx.TensorProto
        try:
            if self.dtype in _STORED and (raw := proto.raw_data):
                # The same as to_array in a tenth of its time: most tensors are small.
                return np.frombuffer(raw, _STORED[self.dtype]).reshape(self.shape)
            if self.dtype in _LISTED:
                field, dtype = _LISTED[self.dtype]
                listed = np.array(getattr(proto, field), dtype).reshape(self.shape)
                return listed.astype(_STORED[self.dtype], copy=False)
            return numpy_helper.to_array(proto)
        except (ValueError, TypeError, KeyError) as error:
            raise ModelError(
                f"tensor {proto.name!r}: its data does not fit dtype "
                f"{onnx.TensorProto.DataType.Name(self.dtype)} and dims {list(self.shape)}"
            ) from error

    def _string_data(self) -> list[bytes]:
        if isinstance(self.proto, onnx.TensorProto):
            return list(self.proto.string_data)
        assert self._array is not None
        return [
            text if isinstance(text, bytes) else str(text).encode()
            for text in self._array.ravel().tolist()
        ]


def _inside(folder: str, location: str, what: str) -> str:
    """Return the path of an external file, which must be a plain file inside the folder.

    A model is untrusted data: it must not make us copy /etc/passwd into its output.
    """
    parts = location.replace("\\", "/").split("/")
    if not location or os.path.isabs(location) or ".." in parts or ":" in parts[0]:
        raise ModelError(
            f"{what} is at {location!r}; expected a file inside the folder of the model"
        )
    path = os.path.join(folder, *parts)
    below = folder
    for part in parts:
        below = os.path.join(below, part)
        if os.path.islink(below):
            raise ModelError(f"{what} is at {location!r}, a symbolic link; expected a plain file")
    if not os.path.isfile(path):
        raise ModelError(f"{what} is missing: no file {path!r}")
    return path
