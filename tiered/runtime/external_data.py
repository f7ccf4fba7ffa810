"""Weights that stay in their files: a model that names them so that onnxruntime reads them itself.

onnxruntime takes the data of a model that is no file from one folder, by relative paths. Nothing is
copied: that folder is the nearest one above all the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import onnx

from tiered.graph.core.dtypes import bits_of
from tiered.graph.core.tensor import Tensor
from tiered.graph.io.save import tensors_of

MOST_READ: Final = 1 << 28
"""Bytes of weights on disk up to which onnx.reference runs a model: it reads all of them."""
_SMALL = 1 << 14
"""Bytes up to which a weight is read: onnxruntime wants to see shapes and axes as it loads."""


def with_files(proto: onnx.ModelProto, folder: str) -> str:
    """Let the weights of a model that are on disk be found from one folder, which is returned.

    Args:
        proto: the model, which is changed; weights of bodies and attributes are read into it.
        folder: where its external data is.

    Raises:
        ModelError: a file is missing, too short, or outside the folder.
    """
    spans = [
        (tensor, held.external_span())
        for tensor, held in _on_disk(proto.graph.initializer, folder)
        if held.nbytes > _SMALL and bits_of(held.dtype) >= 8
    ]
    root = _above([os.path.realpath(path) for _, (path, _, _) in spans])
    for tensor, (path, offset, length) in spans if root else ():
        del tensor.external_data[:]
        place = os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/")
        for key, value in (("location", place), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
    # The list holds them, so that no other object gets their numbers.
    named = {id(tensor) for tensor, _ in spans} if root else set()
    for tensor, held in _on_disk(tensors_of(proto), folder):
        if id(tensor) not in named:
            _take_in(tensor, held)
    return root


def take_in(proto: onnx.ModelProto, folder: str) -> onnx.ModelProto:
    """Return the model, which is changed, with the weights of all files inside.

    Raises:
        ModelError: a file is missing, too short, or outside the folder.
    """
    for tensor, held in _on_disk(tensors_of(proto), folder):
        _take_in(tensor, held)
    return proto


def bytes_on_disk(proto: onnx.ModelProto) -> int:
    """Return the bytes of the weights of a model that are in files."""
    return sum(held.nbytes for _, held in _on_disk(tensors_of(proto), ""))


def _on_disk(
    tensors: Iterable[onnx.TensorProto], folder: str
) -> Iterator[tuple[onnx.TensorProto, Tensor]]:
    for tensor in tensors:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            yield tensor, Tensor(tensor, folder=folder)


def _take_in(tensor: onnx.TensorProto, held: Tensor) -> None:
    path, offset, length = held.external_span()
    with open(path, "rb") as file:
        file.seek(offset)
        tensor.raw_data = file.read(length)
    del tensor.external_data[:]
    tensor.ClearField("data_location")


def _above(paths: Sequence[str]) -> str:
    """Return the nearest folder above some files; "" if there is none, as on two drives."""
    try:
        return os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else ""
    except ValueError:
        return ""
