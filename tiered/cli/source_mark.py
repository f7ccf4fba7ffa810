"""The mark of a result: the metadata entry `tiered.source`, a digest of the model it came from.

A file with the digest of the model that is read is an earlier result of it and may be replaced.
Every other ONNX model is replaced only with --force. The result of a marked model keeps the mark of
that model, so that a second run changes no byte; it is never taken for an earlier result, since all
results of one model have the same mark.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final

from tiered.cli.output.terminal import printable
from tiered.errors import UsageError

if TYPE_CHECKING:
    import onnx

    from tiered.graph import Model
    from tiered.pipeline.result import OptimizeResult

KEY: Final = "tiered.source"

_WHOLE: Final = 1 << 22
"""Files up to this many bytes are hashed whole."""
_SAMPLES: Final = 1024
"""Larger files are hashed at so many evenly spaced places, ..."""
_SAMPLE: Final = 4096
"""... so many bytes at each."""


def check_replaced(source: str, target: str, hint: str = "") -> None:
    """Raise if the target holds an ONNX model that is not an earlier result of the source.

    Args:
        source: the file that is read.
        target: the file to write.
        hint: what else to do, for the error.

    Raises:
        UsageError: it does.
    """
    found = _read(target)
    if found is None:
        return
    mark = mark_of(found)
    read = _read(source) if mark is not None else None
    if read is not None and mark_of(read) is None and mark == _digest(source, read):
        return
    raise UsageError(
        f"{printable(target)!r} is an ONNX model and not an earlier result of "
        f"{printable(source)!r}; use --force to replace it{hint}"
    )


def mark_of(proto: onnx.ModelProto) -> str | None:
    """Return the mark of a model; None if it has none."""
    return next((entry.value for entry in proto.metadata_props if entry.key == KEY), None)


def source_mark(model: Model, source: str) -> str:
    """Return the mark for results of a model that was just read: its own, or a digest of its files.

    Raises:
        OSError: the file cannot be read.
        ModelError: a file of external data cannot be read.
    """
    assert model.origin is not None, "the model was read from a file"
    return mark_of(model.skeleton) or _digest(source, model.origin)


def write_mark(model: Model, mark: str) -> None:
    """Write a mark into a model, unless it has this one."""
    if mark_of(model.skeleton) != mark:
        model.skeleton.metadata_props.add(key=KEY, value=mark)


def marked(result: OptimizeResult, mark: str) -> OptimizeResult:
    """Write the mark into the model of a result, and count its bytes."""
    skeleton = result.model.skeleton
    before = skeleton.ByteSize()
    write_mark(result.model, mark)
    grown = skeleton.ByteSize() - before
    if not grown:
        return result
    after = result.after
    return result._replace(after=after._replace(nbytes=after.nbytes + grown))


def _read(path: str) -> onnx.ModelProto | None:
    """Return the ONNX model of a file without its large weights; None if it holds none."""
    if not os.path.exists(path):
        return None
    import onnx
    from google.protobuf.message import DecodeError

    from tiered.graph.io.protobuf_scan import read_skeleton

    try:
        content = read_skeleton(path)
        if content is None:
            with open(path, "rb") as file:
                content = file.read()
        proto = onnx.ModelProto.FromString(content)
    except DecodeError:
        return None
    return proto if proto.HasField("graph") else None


def _digest(path: str, proto: onnx.ModelProto) -> str:
    """Return a digest of a model file and of its files of external data."""
    from tiered.graph.core.tensor import Tensor
    from tiered.graph.io.save import tensors_of

    folder = os.path.dirname(path)
    tensors = (Tensor(tensor, folder=folder) for tensor in tensors_of(proto))
    data = {tensor.external_span()[0] for tensor in tensors if tensor.is_external}
    digest = hashlib.sha256()
    for file in (path, *sorted(data)):
        _hash_file(digest, file)
    return digest.hexdigest()[:32]


def _hash_file(digest: hashlib._Hash, path: str) -> None:
    """Add the content of a file to a digest, a sample of it if it is large."""
    size = os.path.getsize(path)
    digest.update(f"{size}:".encode())
    with open(path, "rb", buffering=0) as file:
        if size <= _WHOLE:
            digest.update(file.read())
            return
        for at in range(_SAMPLES):
            file.seek(at * (size - _SAMPLE) // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE))
