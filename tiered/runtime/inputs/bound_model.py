"""The view of a model in which inputs have given shapes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cached_property

import onnx
from onnx import inliner

from tiered.graph import Graph, Model
from tiered.graph.io.export import export_model
from tiered.runtime.inputs.dims import weight_dims
from tiered.support.errors import ModelError

_KEPT = 1024  # elements of an initializer that shape inference may read
_MAX_INLINED = 20_000  # nodes; a nest of functions can be exponentially larger than its text


class BoundModel:
    """The view of a model, with inputs of one set of shapes after another.

    Functions are inlined, as calls hide the uses of a value; they stay calls where that would take
    more than 20,000 nodes. Of a model that is not valid, only the inputs are known.
    """

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto

    def main(self, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
        """Return the main graph with inputs of the given shapes; other shapes follow from them."""
        main = self._flat.main
        infos = []
        for info in main.input_infos:
            bound = onnx.ValueInfoProto()
            bound.CopyFrom(info)
            if info.name in shapes:
                shape = bound.type.tensor_type.shape
                shape.ClearField("dim")
                shape.dim.extend(
                    onnx.TensorShapeProto.Dimension(dim_value=size) for size in shapes[info.name]
                )
            infos.append(bound)
        if infos != list(main.input_infos):
            main.set_graph_inputs(main.inputs, infos)
            self._flat.forget_types()
        return main

    @cached_property
    def weight_dims(self) -> dict[str, int]:
        """The sizes of input dims that weights decide; see `dims.weight_dims`."""
        return weight_dims(self._view.main)

    @cached_property
    def _view(self) -> Model:
        try:
            return Model.from_proto(self.proto)
        except ModelError:
            bare = onnx.ModelProto(opset_import=self.proto.opset_import)
            bare.graph.input.extend(self.proto.graph.input)
            return Model.from_proto(bare)

    @cached_property
    def _flat(self) -> Model:
        """The view without functions, if that is possible."""
        view = self._view
        if not view.functions or view.recursive_functions():
            return view
        if view.expanded_size(()) > _MAX_INLINED:
            return view
        with contextlib.suppress(ModelError, RuntimeError, ValueError):
            bare = export_model(view, max_elements=_KEPT)
            return Model.from_proto(inliner.inline_local_functions(bare))
        return view
