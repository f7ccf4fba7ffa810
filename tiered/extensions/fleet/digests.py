"""What identifies a model: the sha256 of its file and of its files of external data."""

from __future__ import annotations

import hashlib
import os
from typing import Final

import onnx
from google.protobuf.message import DecodeError

from tiered.graph.core.tensor import Tensor
from tiered.graph.io.protobuf_scan import read_skeleton
from tiered.graph.io.save import tensors_of
from tiered.support.errors import ModelError, words_of

_LOCATION: Final = b"location"
"""The key of the file of a tensor with external data."""


def data_files(path: str) -> list[str]:
    """Return the locations of external data, relative to the folder of the model, sorted.

    A location outside of the folder is left out: loading the model reports it.
    """
    try:
        content = read_skeleton(path)
        if content is None:
            with open(path, "rb") as file:
                content = file.read()
            if _LOCATION not in content:
                return []  # no tensor names a file
        proto = onnx.ModelProto.FromString(content)
    except DecodeError:
        return []
    external = (t for t in tensors_of(proto) if t.data_location == onnx.TensorProto.EXTERNAL)
    locations = (_location(tensor) for tensor in external)
    return sorted({location for location in locations if location is not None})


def _location(proto: onnx.TensorProto) -> str | None:
    location = next((entry.value for entry in proto.external_data if entry.key == "location"), "")
    parts = location.replace("\\", "/").split("/")
    is_inside = location and not os.path.isabs(location) and ".." not in parts
    return location if is_inside and Tensor(proto).is_external else None


def sha256_of(path: str) -> str:
    """Return the sha256 of a model file; with external data, that of the list of all its files.

    Raises:
        ModelError: a file cannot be read.
    """
    try:
        own = _file_digest(path)
        locations = data_files(path)
        if not locations:
            return own
        folder = os.path.dirname(path)
        digest = hashlib.sha256(own.encode())
        for location in locations:
            data = os.path.join(folder, location)
            found = _file_digest(data) if os.path.isfile(data) else "missing"
            digest.update(f"\n{found}  {location}".encode(errors="surrogateescape"))
        return digest.hexdigest()
    except OSError as error:
        raise ModelError(f"cannot read {path!r}: {words_of(error)}") from error


def _file_digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
