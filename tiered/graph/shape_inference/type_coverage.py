"""Type coverage: how many values of a model have a type, a rank and a static shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tiered.graph.core.types import TensorType

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.value import Value


class TypeCoverage(NamedTuple):
    """How many values have known types: outputs of nodes, inputs and constants.

    Attributes:
        total: the number of values.
        typed: the number with a dtype, or a sequence, optional, map or sparse tensor type.
        ranked: the number of tensors with a known rank.
        static: the number of tensors with a static shape.
        untyped: the values without a type, in topological order; most others follow from the
            first one.
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
    """Return how many values have a type, and which ones have none."""
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
    """Return a share in percent; 100 only if it is complete."""
    if part == whole:
        return "100 %"
    return f"{min(round(100 * part / whole), 99)} %"
