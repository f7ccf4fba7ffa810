"""Writing model files: whole or not at all, weights copied span by span."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, Final

import onnx
from google.protobuf.message import EncodeError
from onnx import numpy_helper

from tiered.graph.core.lazy_bytes import blocks_of_file, location_of, place_of, set_place
from tiered.graph.core.node import domain_of
from tiered.graph.core.schema import schema_of
from tiered.graph.core.tensor import Tensor
from tiered.graph.io import safetensors
from tiered.graph.io.export import export_model
from tiered.graph.io.protobuf_scan import ByteSpan, size_of, splice
from tiered.support.errors import ModelError, words_of
from tiered.support.memory_limit import check_memory
from tiered.support.records import Record
from tiered.support.whole_files import unfinished

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState

DATA: Final = ".data"
"""The suffix of the file of weights, after that of the model."""
_ALIGNMENT: Final = 4096
_PROTO_LIMIT: Final = (1 << 31) - (1 << 20)
"""The 2 GiB limit of a protobuf message, minus some space for data other than weights."""

_NEW_EXTERNAL: Final = 1 << 20
"""New tensors of this many bytes are external in a model that has external weights."""


class Storage(Record):
    """The storage of the weights of a saved model.

    Attributes:
        external: weights of this many bytes or more are written to a separate file; None keeps
            the storage of each.
        single: all weights are in the model file.
        share: external weights in the target folder stay in their files.
        safetensors: the separate file is one that safetensors reads.
    """

    external: int | None = None
    single: bool = False
    share: bool = False
    safetensors: bool = False

    @property
    def suffix(self) -> str:
        """The suffix of the file of weights, after that of the model."""
        return safetensors.SUFFIX if self.safetensors else DATA


class PlacedWeights(Record):
    """Where the external weights of a saved model are: (tensors, bytes) of each.

    Attributes:
        shared: those that stay where they were.
        copied: those that were external, and are now in the weight file of the saved model.
        made: those that were not external before.
    """

    shared: tuple[int, int]
    copied: tuple[int, int]
    made: tuple[int, int]


def check_storage(model: ModelState, storage: Storage) -> None:
    """Raise if the model cannot be saved this way after any pass.

    Raises:
        ModelError: the model file would be larger than protobuf allows.
    """
    tensors = [value.default for graph in model.graphs() for value in graph.initializers]
    if storage.single or model.has_stored_constants:
        constants = (node for graph in model.graphs() for node in graph.nodes_of("Constant"))
        tensors += [node.constant_tensor() for node in constants]
    kept = [tensor for tensor in tensors if tensor is not None and not tensor.is_sparse]
    inline = sum(t.nbytes for t in kept if not _goes_out(t, storage, has_external=False))
    if inline > _PROTO_LIMIT:
        raise ModelError(
            f"{model.label} has {inline:,} bytes of weights, and a model file holds at most 2 GiB; "
            "save them as external data"
        )


def save_model(
    model: ModelState, path: str, *, annotate: bool = False, storage: Storage | None = None
) -> PlacedWeights:
    """Write a model to `path` and return where its external weights are.

    They are in `<path>.data`, or in `<path>.safetensors`. If the replaced model uses that name, the
    file is `<path>.1.data`, so that the model and its weights match at every moment.

    Raises:
        ModelError: the folder or file cannot be written, or the model needs external data.
    """
    storage = storage or Storage()
    proto = export_model(model, annotate=annotate, is_bare=True)
    folder = os.path.dirname(path) or "."
    tensors = [*tensors_of(proto)]
    on_disk = [tensor for tensor in tensors if tensor.data_location == tensor.EXTERNAL]
    # Where all of them were rewritten, the new ones are outside as they were.
    has_external = model.has_external or any(map(_is_external, on_disk))
    placed_tensors = [tensor for tensor in tensors if place_of(tensor) is not None]
    is_mixed = has_external or storage.external is not None
    outside = [
        tensor
        for tensor in (tensors if is_mixed else placed_tensors)
        if _goes_out(Tensor(tensor, folder=model.folder), storage, has_external=has_external)
        and not (storage.share and _stays(tensor, model.folder, folder))
    ]
    placed = _placed(model, outside, [] if storage.single else on_disk)
    for tensor in placed_tensors:
        set_place(tensor, None)
    if storage.single:
        _take_in(on_disk, model.folder)
    try:
        _check_apart(on_disk, model.folder, path, has_data=bool(outside))
        if not outside:
            _write_whole(path, proto)
            return placed
        with unfinished(path, storage.suffix) as data:
            if storage.safetensors:
                outside = safetensors.in_order(outside)
                data.file.write(safetensors.header_of(outside, proto.graph.initializer))
            _write_data(outside, model.folder, data.file, gaps=not storage.safetensors)
            check_memory()
            with _alone_in(folder):
                target, stale = _data_names(path, storage.suffix)
                for tensor in outside:
                    tensor.external_data[0].value = os.path.basename(target)
                data.place(target)
                _write_whole(path, proto)
                for old in stale:
                    with contextlib.suppress(OSError):
                        os.unlink(old)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {words_of(error)}") from error
    return placed


def _placed(
    model: ModelState, outside: list[onnx.TensorProto], on_disk: list[onnx.TensorProto]
) -> PlacedWeights:
    """Return where external weights will be, of those that go to a new file and all on disk."""
    going = {id(tensor) for tensor in outside}

    def count(tensors: Iterable[onnx.TensorProto]) -> tuple[int, int]:
        sizes = [Tensor(tensor, folder=model.folder).nbytes for tensor in tensors]
        return len(sizes), sum(sizes)

    external = [tensor for tensor in on_disk if _is_external(tensor)]
    return PlacedWeights(
        count(tensor for tensor in external if id(tensor) not in going),
        count(tensor for tensor in outside if _is_external(tensor)),
        count(tensor for tensor in outside if not _is_external(tensor)),
    )


def _goes_out(tensor: Tensor, storage: Storage, *, has_external: bool) -> bool:
    """Return whether a tensor is written to the weights file."""
    if storage.single or not tensor.can_be_external:
        return False
    if tensor.is_external:
        return True
    if tensor.place is not None:
        return tensor.place == "data"
    if storage.external is not None:
        return tensor.nbytes >= max(storage.external, 1)
    return has_external and tensor.nbytes >= _NEW_EXTERNAL


def _stays(tensor: onnx.TensorProto, folder: str, target: str) -> bool:
    """Return whether external weights are found from the folder that is written to."""
    return _is_external(tensor) and os.path.realpath(folder or ".") == os.path.realpath(target)


# --- the model file -------------------------------------------------------------------------------


def _write_whole(path: str, proto: onnx.ModelProto) -> None:
    try:
        pieces = list(splice(proto.SerializeToString(deterministic=True)))
    except (EncodeError, ValueError) as error:
        raise _too_large(path) from error
    if size_of(pieces) > _PROTO_LIMIT:
        raise _too_large(path)
    with unfinished(path) as model:
        for piece in pieces:
            if isinstance(piece, ByteSpan):
                _copy(piece, model.file)
            else:
                model.file.write(piece)
        check_memory()  # what exceeds it leaves no file
        model.place(path)


def _too_large(path: str) -> ModelError:
    return ModelError(
        f"{path} would be larger than the 2 GiB of a protobuf file; keep weights external"
    )


# --- the file of weights --------------------------------------------------------------------------


def _write_data(
    tensors: list[onnx.TensorProto], folder: str, data: BinaryIO, *, gaps: bool
) -> None:
    """Append the bytes of tensors to one file, and record the location in each tensor.

    Args:
        tensors: edited: they are external afterwards.
        folder: of the model.
        data: the file.
        gaps: whether each starts at a page of memory.
    """
    for proto in tensors:
        tensor = Tensor(proto, folder=folder)
        if gaps:
            data.write(b"\0" * (-data.tell() % _ALIGNMENT))
        start = data.tell()
        if tensor.is_on_disk:
            _copy(ByteSpan(*tensor.external_span()), data)
        else:
            data.write(_raw(proto))
        for field in ("raw_data", *_TYPED):
            proto.ClearField(field)
        del proto.external_data[:]
        proto.data_location = onnx.TensorProto.EXTERNAL
        entries = (("location", ""), ("offset", start), ("length", data.tell() - start))
        for key, value in entries:
            proto.external_data.add(key=key, value=str(value))


_TYPED: Final = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def _raw(proto: onnx.TensorProto) -> bytes:
    if proto.HasField("raw_data"):
        return proto.raw_data
    return numpy_helper.from_array(numpy_helper.to_array(proto)).raw_data


def _take_in(tensors: list[onnx.TensorProto], folder: str) -> None:
    """Make the model's external weights refer to their present files."""
    for tensor in tensors:
        if _is_external(tensor):
            path, offset, length = Tensor(tensor, folder=folder).external_span()
            del tensor.external_data[:]
            entries = (
                ("location", location_of(path, os.stat(path))),
                ("offset", offset),
                ("length", length),
            )
            for key, value in entries:
                tensor.external_data.add(key=key, value=str(value))


def _copy(span: ByteSpan, target: BinaryIO) -> None:
    """Append bytes of a file, by the kernel where it can."""
    target.flush()
    with open(span.path, "rb") as source:
        offset, remaining = span.offset, span.length
        while remaining and hasattr(os, "copy_file_range"):
            try:
                copied = os.copy_file_range(
                    source.fileno(), target.fileno(), min(remaining, 1 << 30), offset
                )
            except OSError:  # another file system, or one without this call: copy by hand
                break
            if not copied:
                break
            offset, remaining = offset + copied, remaining - copied
    target.seek(0, os.SEEK_END)
    for block in blocks_of_file(span.path, offset, remaining):
        target.write(block)


def data_files(path: str) -> list[str]:
    """Return the names that the file of weights of a model may have, as tiered writes it."""
    return [name for suffix in (DATA, safetensors.SUFFIX) for name in _names(path, suffix)]


def _names(path: str, suffix: str) -> tuple[str, str]:
    return f"{path}{suffix}", f"{path}.1{suffix}"


def _data_names(path: str, suffix: str) -> tuple[str, list[str]]:
    """Return the new weights file, and those of the replaced model, to be removed."""
    usual, other = _names(path, suffix)
    used = _referenced(path)
    target = other if usual in used else usual
    return target, sorted(used - {target})


def _referenced(path: str) -> set[str]:
    """Return the weights files written by tiered that the model at `path` reads."""
    names = data_files(path)
    if not any(map(os.path.exists, names)):
        return set()
    import mmap

    try:
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return {
                name
                for name in names
                if any(content.find(entry) >= 0 for entry in _locations(os.path.basename(name)))
            }
    except (OSError, ValueError):  # no file, or an empty one
        return set()


def _locations(name: str) -> list[bytes]:
    """Return the entries by which a tensor names a file of the folder of its model."""
    return [
        onnx.StringStringEntryProto(key="location", value=value).SerializeToString()
        for value in (name, f"./{name}")
    ]


@contextlib.contextmanager
def _alone_in(folder: str) -> Iterator[None]:
    """Lock the folder against other processes that save a model with weights."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


# --- tensors --------------------------------------------------------------------------------------


def _check_apart(
    on_disk: list[onnx.TensorProto], folder: str, path: str, *, has_data: bool
) -> None:
    """Raise if a file to be written is one that weights are read from.

    Raises:
        ModelError: a target is a file of the model.
    """
    read = {Tensor(tensor, folder=folder).external_span()[0] for tensor in on_disk}
    targets = (path, *data_files(path)) if has_data else (path,)
    for target in targets:
        if os.path.exists(target) and any(os.path.samefile(source, target) for source in read):
            raise ModelError(
                f"{target} has weights of the model itself; save it under another name"
            )


def _is_external(tensor: onnx.TensorProto) -> bool:
    return Tensor(tensor).is_external


def tensors_of(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield the tensors of a model at any depth."""
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [proto.graph, *proto.functions]
    while pending:
        graph = pending.pop()
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
        for node in graph.node:
            if not _may_hold_more(node.op_type, node.domain):
                continue
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                pending.extend(attribute.graphs)


@lru_cache(maxsize=1024)
def _may_hold_more(op_type: str | bytes, domain: str | bytes) -> bool:
    """Return whether an attribute may be a tensor or a graph by the schema of its operator."""
    if isinstance(op_type, bytes) or isinstance(domain, bytes):
        return True  # not UTF-8: opening the model reports it
    schema = schema_of(op_type, domain_of(domain))
    if schema is None:
        return True
    kind = onnx.defs.OpSchema.AttrType
    kinds = (kind.TENSOR, kind.TENSORS, kind.GRAPH, kind.GRAPHS)
    return any(attribute.type in kinds for attribute in schema.attributes.values())
