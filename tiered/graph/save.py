"""Writing model files: whole or not at all, external data copied span by span."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, Final

import onnx
from google.protobuf.message import EncodeError

from tiered.errors import ModelError
from tiered.graph.schema import schema_of

if TYPE_CHECKING:
    from tiered.graph.model import Model

_CHUNK: Final = 1 << 24
_ALIGNMENT: Final = 4096
_PROTO_LIMIT: Final = (1 << 31) - (1 << 20)
"""A protobuf message cannot be larger than 2 GiB; some room for what is not weights."""


def save_model(model: Model, path: str, *, annotate: bool = False) -> None:
    """Write a model to `path`; weights that were external go to `<path>.data`.

    Raises:
        ModelError: the folder or file cannot be written, or the model needs external data.
    """
    proto = model.to_proto(annotate=annotate)
    external: list[onnx.TensorProto] = []
    if _may_be_external(model):
        external = [tensor for tensor in _tensors(proto) if _is_external(tensor)]
    try:
        if not external:
            _write_whole(path, proto)
            return
        location = os.path.basename(path) + ".data"
        _check_apart(external, model.folder, path + ".data")
        with _replacing(path + ".data") as data:
            _copy_external(external, model.folder, location, data)
        _write_whole(path, proto)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror or error}") from error


def _write_whole(path: str, proto: onnx.ModelProto) -> None:
    try:
        content = proto.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise _too_large(path) from error
    if len(content) > _PROTO_LIMIT:
        raise _too_large(path)
    with _replacing(path) as file:
        file.write(content)


def _too_large(path: str) -> ModelError:
    return ModelError(
        f"{path} would be larger than the 2 GiB of a protobuf file; keep weights external"
    )


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """Write a temporary file beside `path`, which takes its place only if all went well."""
    folder = os.path.dirname(path) or "."
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        # mkstemp makes private files; a model is as readable as any new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _check_apart(tensors: list[onnx.TensorProto], folder: str, target: str) -> None:
    """Refuse to write weights over the file that they are read from.

    Raises:
        ModelError: the target is a data file of the model.
    """
    from tiered.graph.tensor import Tensor

    for path in {Tensor(proto, folder=folder).external_span()[0] for proto in tensors}:
        if os.path.exists(target) and os.path.samefile(path, target):
            raise ModelError(
                f"{target} holds weights of the model itself; save it under another name"
            )


def _may_be_external(model: Model) -> bool:
    """Tell whether a tensor may be external, without a look at the nodes that can hold none."""
    for graph in model.graphs():
        if any(value.default and value.default.is_external for value in graph.initializers):
            return True
        for node in graph._nodes.values():
            if _may_hold_tensor(node.op_type, node.domain) and any(
                _is_external(attribute.t) for attribute in node.proto.attribute
            ):
                return True
    return False


@lru_cache(maxsize=1024)
def _may_hold_tensor(op_type: str, domain: str) -> bool:
    """Tell whether an operator may have a tensor as an attribute: those onnx knows say so."""
    schema = schema_of(op_type, domain)
    if schema is None:
        return True
    kinds = onnx.defs.OpSchema.AttrType
    return any(
        attribute.type in (kinds.TENSOR, kinds.TENSORS) for attribute in schema.attributes.values()
    )


def _is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [proto.graph, *proto.functions]
    while pending:
        graph = pending.pop()
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                pending.extend(attribute.graphs)


def _copy_external(
    tensors: list[onnx.TensorProto], folder: str, location: str, data: BinaryIO
) -> None:
    """Copy the bytes of external tensors into one file and point the tensors there."""
    from tiered.graph.tensor import Tensor

    for proto in tensors:
        path, offset, length = Tensor(proto, folder=folder).external_span()
        data.write(b"\0" * (-data.tell() % _ALIGNMENT))
        start = data.tell()
        with open(path, "rb") as source:
            source.seek(offset)
            remaining = length
            while remaining:
                chunk = source.read(min(remaining, _CHUNK))
                if not chunk:
                    raise ModelError(f"{path} became shorter while it was copied")
                data.write(chunk)
                remaining -= len(chunk)
        del proto.external_data[:]
        for key, text in (("location", location), ("offset", start), ("length", length)):
            proto.external_data.add(key=key, value=str(text))
