"""The stored tensors of a model: initializers, overridable ones too, and those of Constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.tensor import Tensor


def stored_tensors(graphs: Iterable[Graph]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors with the names of their values, or the labels of their Constants."""
    for graph in graphs:
        for value in graph.initializers:
            if value.default is not None:
                yield value.name, value.default
        for node in graph.nodes_of("Constant"):
            tensor = node.constant_tensor()
            if tensor is not None:
                yield node.label, tensor
