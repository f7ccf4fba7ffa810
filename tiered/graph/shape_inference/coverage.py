"""How much is known of the types of a model, and where the first gap is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tiered.graph.core.types import TensorType

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.value import Value


class TypeCoverage(NamedTuple):
    """What is known of the types of all values, outputs of nodes, inputs and constants alike.

    Attributes:
        total: the number of values.
        typed: how many of them have a dtype, or are a sequence, optional, map or sparse tensor.
        ranked: how many of the tensors have a known rank too.
        static: how many of the tensors have a shape of numbers only.
        untyped: the values without a type, in topological order: the first one is the reason for
            most of the others.
    """

    total: int
    typed: int
    ranked: int
    static: int
    untyped: tuple[Value, ...]

    @property
    def share(self) -> float:
        """Return the typed share, from 0 to 1; 1 for a model without values."""
        return self.typed / self.total if self.total else 1.0

    def __str__(self) -> str:
        text = f"{_percent(self.typed, self.total)} of {self.total} values have a type"
        if self.untyped:
            first = self.untyped[0]
            source = first.producer
            where = "" if source is None else f" of {source.op_type} {source.label!r}"
            text += f"; the first without: {first.name!r}{where}"
        return text


def type_coverage(model: ModelState) -> TypeCoverage:
    """Return how many values have a type, and which have none."""
    values = [
        value
        for graph in model.graphs()
        for value in (
            *graph.inputs,
            *(value for value in graph.initializers if not value.is_graph_input),
            *(output for node in graph.topological_order() for output in node.outputs if output),
        )
    ]
    types = [value.type for value in values]
    shapes = [kind.shape for kind in types if isinstance(kind, TensorType)]
    ranked = [shape for shape in shapes if shape is not None]
    return TypeCoverage(
        total=len(values),
        typed=sum(kind is not None for kind in types),
        ranked=len(ranked),
        static=sum(all(isinstance(dim, int) for dim in shape) for shape in ranked),
        untyped=tuple(value for value, kind in zip(values, types, strict=True) if kind is None),
    )


def _percent(part: int, whole: int) -> str:
    """Return a share in percent, which is 100 only where nothing is missing."""
    if part == whole:
        return "100 %"
    return f"{min(round(100 * part / whole), 99)} %"
