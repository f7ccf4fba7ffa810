"""A copy of a model with its types and without its weights, for shape inference."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from tiered.errors import ModelError
from tiered.runtime.inputs.dims import weight_dims
from tiered.runtime.inputs.graph_facts import Scope

if TYPE_CHECKING:
    import onnx

_KEPT = 1024  # elements of an initializer that shape inference may read
_MAX_INLINED = 20_000  # nodes; a nest of functions can be exponentially larger than its text


Shapes = Mapping[str, tuple[int, ...]]


class Skeletons:
    """A model without its weights, for inputs of any shapes; shared parts are computed once.

    Initializers above 1,024 elements become typed inputs. Functions stay calls where inlining would
    take more than 20,000 nodes.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._known: dict[tuple[tuple[str, tuple[int, ...]], ...], onnx.ModelProto] = {}

    def scope(self, shapes: Shapes) -> Scope:
        """Return the graph with inputs of the given shapes; other shapes are inferred on demand."""
        infer = partial(self.inferred_graph, shapes)
        if self._scope.children:  # their parent is this scope
            return Scope.build(self._graph, bound=shapes, infer=infer)
        return replace(self._scope, shapes={**self._scope.shapes, **shapes}, infer=infer)

    @cached_property
    def _scope(self) -> Scope:
        return Scope.build(self._graph)

    @property
    def _graph(self) -> onnx.GraphProto:
        """The graph to search: with functions inlined, as calls hide the uses of a value."""
        return self.flat.graph if self.model.functions else self.model.graph

    def inferred_graph(self, shapes: Shapes) -> onnx.GraphProto:
        """Return the graph with inputs of the given shapes, and all shapes inferred from them.

        Shapes stay unknown where inference fails: the callers then know less about the inputs.
        """
        key = tuple(sorted(shapes.items()))
        if key not in self._known:
            self._known[key] = self._inferred(shapes)
        return self._known[key].graph

    def _inferred(self, shapes: Shapes) -> onnx.ModelProto:
        import onnx

        skeleton = onnx.ModelProto()
        skeleton.CopyFrom(self.flat)
        for value in skeleton.graph.input:
            if value.name in shapes:
                shape = value.type.tensor_type.shape
                shape.ClearField("dim")
                for size in shapes[value.name]:
                    shape.dim.add().dim_value = size
        with contextlib.suppress(*_refusals()):
            return onnx.shape_inference.infer_shapes(skeleton, data_prop=self._is_bounded)
        return skeleton

    @cached_property
    def weight_dims(self) -> dict[str, int]:
        """The sizes of input dims that weights decide; see `dims.weight_dims`."""
        return weight_dims(self.model.graph)

    @cached_property
    def flat(self) -> onnx.ModelProto:
        """The model without weights and, if that is possible, without functions."""
        from onnx import inliner

        skeleton = _without_weights(self.model)
        if skeleton.functions and _inlined_size(skeleton) <= _MAX_INLINED:
            with contextlib.suppress(*_refusals()):
                return inliner.inline_local_functions(skeleton)
        # Inference would follow each call too, and take as long as the nest is large.
        skeleton.ClearField("functions")
        return skeleton

    @cached_property
    def _is_bounded(self) -> bool:
        return _propagates_little(self.flat)


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors that onnx raises on models that it cannot handle."""
    from onnx import checker, shape_inference

    return (
        shape_inference.InferenceError,
        checker.ValidationError,
        protobuf_error(),
        RuntimeError,
        ValueError,
    )


def _propagates_little(skeleton: onnx.ModelProto) -> bool:
    """Return whether data propagation of onnx keeps values small; False for an invalid graph."""
    from tiered.graph import Model
    from tiered.graph.shape_inference.onnx_inference import propagation_is_bounded

    try:
        return propagation_is_bounded(Model.from_proto(skeleton))
    except ModelError:
        return False


def protobuf_error() -> type[Exception]:
    """Return the base of protobuf's errors; its modules have no annotations."""
    error: type[Exception] = importlib.import_module("google.protobuf.message").Error
    return error


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnx

    skeleton = onnx.ModelProto(ir_version=model.ir_version)
    skeleton.opset_import.extend(model.opset_import)
    skeleton.functions.extend(model.functions)
    graph = skeleton.graph
    graph.name = model.graph.name
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    inputs = {i.name for i in model.graph.input}
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= _KEPT and tensor.data_location != tensor.EXTERNAL:
            graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return skeleton


def _inlined_size(model: onnx.ModelProto) -> float:
    """Return how many nodes the model has with all functions inlined; infinite if recursive."""
    bodies = {(f.domain, f.name, f.overload): f for f in model.functions}
    sizes: dict[tuple[str, str, str], float] = {}

    def size(nodes: Iterable[onnx.NodeProto]) -> float:
        total = 0.0
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            if key in bodies:
                if key not in sizes:
                    sizes[key] = float("inf")  # until known: recursion never ends
                    sizes[key] = size(bodies[key].node)
                total += sizes[key]
            total += 1
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    total += size(attribute.g.node)
        return total

    return size(model.graph.node)
