"""Reduction of a model that fails to a smaller one that still fails.

A reduction removes nodes, outputs and weights as long as a check fails on the rest: in halves, then
in smaller parts. The outputs of a removed node become inputs. Dims get smaller, with the weights
that have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from tiered.extensions.debug.rewrite_search import fewest
from tiered.graph import Model
from tiered.support.amounts import counted
from tiered.support.errors import TieredError, UsageError
from tiered.verify.part_extraction import GraphPart, Types, cut, tapped

IsFailing = Callable[[onnx.ModelProto], bool]
Say = Callable[[str], object]

NO_TYPES: Types = {}
SMALL = 64
"""Elements up to which a weight may stay as it is."""
_FEW = 16
"""Elements up to which an integer tensor may be a shape, or sizes to split by."""
_INTEGERS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


def reduce_model(
    model: onnx.ModelProto, is_failing: IsFailing, say: Say | None = None
) -> onnx.ModelProto:
    """Return a minimal model that still fails: no node can be removed, tensors are smaller.

    Args:
        model: the model, with its weights inside.
        is_failing: asked about smaller and smaller models; some of them may be no valid models.
        say: called with each step.

    Raises:
        UsageError: the model itself does not fail.
    """
    if not is_failing(model):
        raise UsageError("the model does not fail to begin with, so there is nothing to reduce to")
    found = _Reduction(is_failing, say or (lambda _: None), _typed(model))
    found.outputs()
    found.nodes()
    found.outputs()
    found.dims()
    found.weights()
    return found.model


class _Reduction:
    def __init__(self, is_failing: IsFailing, say: Say, model: onnx.ModelProto) -> None:
        self._is_failing = is_failing
        self._say = say
        self.model = model
        self.tried = 0

    def _accepts(self, model: onnx.ModelProto) -> bool:
        self.tried += 1
        failing = self._is_failing(model)
        if failing:
            self._say(f"model {self.tried} still fails: {counted(len(model.graph.node), 'node')}")
        return failing

    def outputs(self) -> None:
        """Remove outputs, with the nodes that only they need."""
        names = [info.name for info in self.model.graph.output]
        if len(names) < 2:
            return
        kept = fewest(
            names, lambda some: bool(some) and self._accepts(tapped(self.model, some, NO_TYPES))
        )
        if 0 < len(kept) < len(names):
            self.model = tapped(self.model, kept, NO_TYPES)

    def nodes(self) -> None:
        """Remove nodes."""
        part = GraphPart.of(self.model)
        kept = fewest(
            range(len(part.reads)),
            lambda some: bool(some) and self._accepts(_cut(part, some)),
        )
        if 0 < len(kept) < len(part.reads):
            self.model = _cut(part, kept)

    def dims(self) -> None:
        """Make dims smaller, all of one size at a time."""
        tried: set[int] = set()
        while sizes := [size for size in _sizes_of(self.model) if size not in tried]:
            tried.add(sizes[0])
            accepted = (model for model in _smaller(self.model, sizes[0]) if self._accepts(model))
            self.model = next(accepted, self.model)

    def weights(self) -> None:
        """Make the numbers of large weights ones, which take no room when they are compressed."""
        for at, tensor in enumerate(self.model.graph.initializer):
            if math.prod(tensor.dims) <= SMALL or tensor.data_type != tensor.FLOAT:
                continue
            smaller = onnx.ModelProto()
            smaller.CopyFrom(self.model)
            ones = np.ones(tuple(tensor.dims), np.float32)
            smaller.graph.initializer[at].CopyFrom(numpy_helper.from_array(ones, tensor.name))
            if self._accepts(smaller):
                self.model = smaller


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the type of every tensor that can be known."""
    return Model.from_proto(model).to_proto(annotate=True)


def _cut(part: GraphPart, nodes: Sequence[int]) -> onnx.ModelProto:
    return cut(part, set(nodes), NO_TYPES)


def _sizes_of(model: onnx.ModelProto) -> list[int]:
    """Return the sizes that dims of inputs and weights have, the largest first; 1 is small."""
    found = {dim.dim_value for info in model.graph.input for dim in _dims(info)}
    weights = (tensor for tensor in model.graph.initializer if not _is_shape(tensor))
    found.update(size for tensor in weights for size in tensor.dims)
    return sorted((size for size in found if size > 1), reverse=True)


def _smaller(model: onnx.ModelProto, size: int) -> Iterator[onnx.ModelProto]:
    """Yield models in which dims of a size are smaller, the smallest first.

    All dims of that size go together, as they may have to be equal, and so do numbers of that size
    in shapes. Multiples of it may depend on it, and are tried with and without.
    """
    graph = model.graph
    infos = (*graph.input, *graph.value_info, *graph.output)
    others = {dim.dim_value for info in infos for dim in _dims(info)} | {*_sizes_of(model)}
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
    del graph.value_info[:]  # it is inferred again
    try:
        yield Model.from_proto(made).to_proto(annotate=True)
    except TieredError:
        return


def _dims(info: onnx.ValueInfoProto) -> Iterable[onnx.TensorShapeProto.Dimension]:
    return info.type.tensor_type.shape.dim


def _is_shape(tensor: onnx.TensorProto) -> bool:
    """Return whether the numbers of a tensor may be sizes."""
    is_small = len(tensor.dims) <= 1 and math.prod(tensor.dims) <= _FEW
    return is_small and tensor.data_type in _INTEGERS


def _resize(tensor: onnx.TensorProto, sizes: Mapping[int, int]) -> None:
    """Cut a tensor down along its axes, and change the numbers of possible shapes."""
    if tensor.data_type == tensor.STRING or tensor.data_location == tensor.EXTERNAL:
        return
    array = numpy_helper.to_array(tensor)
    if _is_shape(tensor):
        new = [sizes.get(number, number) for number in array.ravel().tolist()]
        cut = np.array(new, array.dtype).reshape(array.shape)
    else:
        cut = array[tuple(slice(sizes.get(size, size)) for size in array.shape)]
    if cut.shape != array.shape or not np.array_equal(cut, array):
        tensor.CopyFrom(numpy_helper.from_array(cut.copy(), tensor.name))
