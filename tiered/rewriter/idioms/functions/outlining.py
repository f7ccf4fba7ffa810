"""Regions that become local functions: what every pass that outlines shares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.edits.outline import operands_of_region
from tiered.rewriter.skip import Skip
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.graph import Graph, Model, Node

MARKS: Final = ("tiered.compiler", "tiered.device")
"""Metadata keys; all nodes of a function have the same entries."""

KEPT: Final = "tiered.skip_optimization"

LONGEST: Final = 80
"""The most characters of the name of a function."""


class FunctionNames:
    """Names of new local functions of one domain, each unlike all others of the model.

    Raises:
        UsageError: the domain is that of ONNX, which can have no local functions.
    """

    def __init__(self, model: Model, domain: str) -> None:
        if domain in ("", "ai.onnx"):
            raise UsageError(f"local functions need a domain of their own, not {domain!r}")
        self.domain = domain
        self.ids = {function.id for function in model.functions}
        self._called = {
            node.callee for graph in model.graphs() for node in graph.nodes if node.domain == domain
        }
        self._next: dict[str, int] = {}

    def outline(self, graph: Graph, nodes: Sequence[Node], name: str) -> Node:
        """Outline nodes that are known to be convex; return the call."""
        key = self.fresh(name)
        call = graph.outline(nodes, key[1], self.domain, is_convex=True, taken=self.ids)
        self.ids.add(key)
        return call

    def fresh(self, name: str) -> tuple[str, str, str]:
        """Return a free id: the name, or name_1, name_2, ...; letters, digits and _ only."""
        base = re.sub(r"\W+", "_", name)[:LONGEST].strip("_") or "function"
        number = self._next.get(base, 0)
        while True:
            key = (self.domain, f"{base}_{number}" if number else base, "")
            number += 1
            if key not in self.ids and key not in self._called:
                self._next[base] = number
                return key


def why_not_outlined(graph: Graph, nodes: Sequence[Node]) -> Skip | None:
    """Return why nodes of a graph cannot be one function; None if they can, where convex."""
    if graph.model.ir_version < 8:
        return Skip("local functions need IR 8, not {}", graph.model.ir_version)
    marks = [marks_of(node) for node in nodes]
    if any(found != marks[0] for found in marks):
        return Skip("the nodes have different marks")
    if any(KEPT in node.metadata for node in nodes):
        return Skip("a node is marked to stay as it is")
    if not operands_of_region(graph, nodes)[1]:
        return Skip("no output of the nodes is used")
    return None


def marks_of(node: Node) -> tuple[str | None, ...]:
    """Return the compiler and the device that a node is marked for."""
    if not node.proto.metadata_props:
        return (None,) * len(MARKS)
    metadata = node.metadata
    return tuple(metadata.get(key) for key in MARKS)
