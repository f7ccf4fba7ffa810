"""What is known of a model beyond its protos, so that it can be forgotten, and remembered again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.shape_inference.symbolic_dims import Dims

if TYPE_CHECKING:
    from tiered.graph.core.journal import Stamp
    from tiered.graph.core.model import Model


class Knowledge(NamedTuple):
    """What inference found out: the type and the elements of each value, and the names of dims."""

    values: tuple[tuple[Value, Any, Any], ...]
    dims: Dims
    is_inferred: bool
    types_stamp: Stamp | None

    @classmethod
    def of(cls, model: Model) -> Knowledge:
        """Return what is known of a model now, but for what its file says of inputs and tensors."""
        values = tuple(
            (value, value._type, value._elements)
            for graph in model.graphs()
            for value in graph._values.values()
            if value.producer is not None
        )
        return cls(values, model.dims, model.is_inferred, model.types_stamp)

    def forget(self, model: Model) -> None:
        """Make the model know nothing of it: it is inferred anew when somebody asks."""
        for value, _, _ in self.values:
            value._type = value._elements = NOT_INFERRED
        model.dims, model.is_inferred, model.types_stamp = Dims(), False, None

    def restore(self, model: Model) -> None:
        """Make the model know it again."""
        for value, value_type, elements in self.values:
            value._type, value._elements = value_type, elements
        model.dims, model.is_inferred = self.dims, self.is_inferred
        model.types_stamp = self.types_stamp
