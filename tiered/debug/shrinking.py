"""Smaller tensors: a model in which every dim of one size has another one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from tiered.errors import TieredError
from tiered.graph import Model

FEW = 16
"""Elements up to which an integer tensor may be a shape, or sizes to split by."""
_INTEGERS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


def sizes_of(model: onnx.ModelProto) -> list[int]:
    """Return the sizes that dims of inputs and weights have, the largest first; 1 is small."""
    found = {dim.dim_value for info in model.graph.input for dim in _dims(info)}
    weights = (tensor for tensor in model.graph.initializer if not _is_shape(tensor))
    found.update(size for tensor in weights for size in tensor.dims)
    return sorted((size for size in found if size > 1), reverse=True)


def smaller(model: onnx.ModelProto, size: int) -> Iterator[onnx.ModelProto]:
    """Yield models in which dims of a size are smaller, the smallest first.

    All dims of that size go together, as they may have to be equal, and so do numbers of that size
    in shapes. What is a multiple of it may be made of it, and is tried both ways.
    """
    graph = model.graph
    infos = (*graph.input, *graph.value_info, *graph.output)
    others = {dim.dim_value for info in infos for dim in _dims(info)} | {*sizes_of(model)}
    multiples = [other for other in sorted(others) if other > size and other % size == 0]
    for new in sorted({new for new in (1, 2, size // 2) if 0 < new < size}):
        yield from _resized(model, {size: new})
        if multiples:
            yield from _resized(model, {size: new, **{m: m // size * new for m in multiples}})


def _resized(model: onnx.ModelProto, sizes: Mapping[int, int]) -> Iterator[onnx.ModelProto]:
    """Yield a model with other sizes, if there is one."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    for info in (*graph.input, *graph.output):
        for dim in _dims(info):
            if dim.dim_value in sizes:
                dim.dim_value = sizes[dim.dim_value]
    for tensor in graph.initializer:
        _resize(tensor, sizes)
    for node in graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.HasField("t"):
                _resize(attribute.t, sizes)
    del graph.value_info[:]  # it is inferred anew
    try:
        yield Model.from_proto(made).to_proto(annotate=True)
    except TieredError:
        return


def _dims(info: onnx.ValueInfoProto) -> Iterable[onnx.TensorShapeProto.Dimension]:
    return info.type.tensor_type.shape.dim


def _is_shape(tensor: onnx.TensorProto) -> bool:
    """Tell whether the numbers of a tensor may be sizes."""
    is_small = len(tensor.dims) <= 1 and math.prod(tensor.dims) <= FEW
    return is_small and tensor.data_type in _INTEGERS


def _resize(tensor: onnx.TensorProto, sizes: Mapping[int, int]) -> None:
    """Cut a tensor down along its axes, and change the numbers of what may be a shape."""
    if tensor.data_type == tensor.STRING or tensor.data_location == tensor.EXTERNAL:
        return
    array = numpy_helper.to_array(tensor)
    if _is_shape(tensor):
        new = [sizes.get(number, number) for number in array.reshape(-1).tolist()]
        cut = np.array(new, array.dtype).reshape(array.shape)
    else:
        cut = array[tuple(slice(sizes.get(size, size)) for size in array.shape)]
    if cut.shape != array.shape or not np.array_equal(cut, array):
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(cut), tensor.name))
