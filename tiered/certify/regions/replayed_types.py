"""The types of values while rewrites of a certificate are applied: inferred, never read from it."""

from __future__ import annotations

import onnx

from tiered.certify.problem import Border
from tiered.certify.regions.watched_rewrites import border_of
from tiered.graph import Model
from tiered.graph.core.types import tensor_type, write_type
from tiered.graph.shape_inference.symbolic_dims import Poly, is_invented, size_of_dim
from tiered.verify.changed_region import Inside
from tiered.verify.part_extraction import GraphPart, cut


class TypesOfValues:
    """The types of the values of a model, and of those that come.

    Args:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._new: dict[str, Border | None] = {}

    def __call__(self, name: str) -> Border | None:
        """Return the type of a value; None if it is not known."""
        return self._new[name] if name in self._new else border_of(self._model, name)

    def follow(self, sides: tuple[GraphPart, GraphPart], inside: Inside) -> None:
        """Infer the types of values that nodes compute, and that were not there before."""
        before, after = sides
        names = [
            name
            for at in sorted(inside[1])
            for name in after.nodes[at].output
            if name and name not in before.producer
        ]
        if not names:
            return
        found = self._inferred(after, inside[1], names)
        self._new.update((name, found.get(name)) for name in names)

    def _inferred(
        self, part: GraphPart, nodes: frozenset[int], names: list[str]
    ) -> dict[str, Border | None]:
        types = {}
        for name in part.border(nodes):
            border = self(name)
            if border is None:
                return {}
            types[name] = _proto_of(border)
        made = Model.from_proto(cut(part, nodes, types, names))
        return {name: _apart(border_of(made, name), name) for name in names}


def _proto_of(border: Border) -> onnx.TypeProto:
    if border.dims is None:
        return write_type(tensor_type(border.dtype, None))
    dims = [dim.symbol if isinstance(dim, Poly) else dim for dim in border.dims]
    return write_type(tensor_type(border.dtype, tuple(dims)))


def _apart(border: Border | None, name: str) -> Border | None:
    """Return a type whose dims without a name of their own are different from all others."""
    if border is None or border.dims is None:
        return border
    dims = tuple(
        size_of_dim(f"{name}[{axis}]")
        if isinstance(dim, Poly) and any(is_invented(n) for names, _ in dim.terms for n in names)
        else dim
        for axis, dim in enumerate(border.dims)
    )
    return Border(border.dtype, dims, border.name)
