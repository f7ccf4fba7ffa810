"""The type engine of a model: it is `model.types`, which values and edits use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tiered.graph.core.value import NOT_INFERRED
from tiered.graph.edits.interface_edits import declared_type
from tiered.graph.shape_inference import data_propagation, infer
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph.core.edit import Stamp
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.types import ValueType
    from tiered.graph.core.value import Elements, Value
    from tiered.graph.shape_inference.symbolic_dims import Dims


class Known(Record):
    """All that was inferred of a model: types and elements of values, and names of dims."""

    values: tuple[tuple[Value, Any, Any], ...]
    dims: Dims
    is_inferred: bool
    stamp: Stamp | None


class ShapeInference:
    """Infers types and elements of the values of one model, each when it is first asked for."""

    def __init__(self) -> None:
        # Whether the whole model was inferred once: a second time would invent other dims.
        self._is_inferred = False
        # The moment of the last refresh.
        self._stamp: Stamp | None = None

    def infer(self, value: Value) -> None:
        """Infer the type of a value that a node of the model computes."""
        if not self._is_inferred:
            self._infer_model(value.owner.model)
        infer.infer_value(value)

    def _infer_model(self, model: ModelState) -> None:
        self._is_inferred = True
        infer.infer_model(model)

    def elements_of(self, value: Value) -> Elements | None:
        """Return the known elements of a small integer or boolean value."""
        return data_propagation.elements_of(value)

    def outputs_of(self, node: Node) -> Sequence[ValueType | None]:
        """Return the types of a node's outputs for its present operands, without storing them."""
        return infer.infer_outputs(node)

    def refresh(self, model: ModelState) -> None:
        """Infer missing types, and refine those of consumers of values with refined types."""
        if self._is_inferred:
            self._stamp = infer.refresh_types(model, self._stamp)
        else:
            self._infer_model(model)
            self._stamp = model.journal.stamp()

    def known(self, model: ModelState) -> Known:
        """Return everything that was inferred, for `restore`."""
        values = tuple((value, value._type, value._elements) for value in _computed(model))
        return Known(values, model.dims, self._is_inferred, self._stamp)

    def forget(self, model: ModelState) -> None:
        """Drop all inferred types and elements; they are inferred again on demand."""
        for value in _computed(model):
            value._type = value._elements = NOT_INFERRED
        for graph in model.graphs():
            if graph.parent_node is None:
                continue  # A function declares no types of its inputs.
            for value, info in zip(graph._inputs, graph._input_infos, strict=True):
                # Of the inputs of bodies, only what the file declares is known.
                if not value.is_initializer:
                    value._type = declared_type(graph, info)
        model.dims, self._is_inferred, self._stamp = model.dims.renewed(), False, None

    def restore(self, model: ModelState, known: Known) -> None:
        """Set everything inferred to an earlier state."""
        for value, value_type, elements in known.values:
            value._type, value._elements = value_type, elements
        model.dims, self._is_inferred, self._stamp = known.dims, known.is_inferred, known.stamp


def _computed(model: ModelState) -> Iterator[Value]:
    """Yield what nodes compute, and the inputs of bodies, which follow from operands."""
    for graph in model.graphs():
        yield from (value for value in graph._values.values() if value.producer is not None)
        if graph.parent_node is not None:
            yield from graph._inputs
