"""The nodes that came from one module, layer or function of the source program.

Three sources: the metadata of torch's exporter (`pkg.torch.onnx.class_hierarchy`, `name_scopes`),
calls of local functions, and the scopes in names of nodes (`/layer1/conv/Conv`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tiered.graph import Graph, Model, Node, Value
from tiered.partition.boundary import boundary_of

CLASSES: Final = "pkg.torch.onnx.class_hierarchy"
SCOPES: Final = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True, eq=False)
class SourcePartition:
    """The nodes of one instance of a source.

    Attributes:
        nodes: the nodes, producers first.
        source: the wanted source: a class, a function, or a scope.
        scope: the name of the instance: `encoder.layer.0`, `/layer1/conv`.
    """

    nodes: tuple[Node, ...]
    source: str
    scope: str

    @property
    def module_type(self) -> str:
        """The source, under the name that older versions of torch use."""
        return self.source

    @property
    def input_nodes(self) -> tuple[Value, ...]:
        """The values from outside that are no constants."""
        return boundary_of(self.nodes).variables

    @property
    def output_nodes(self) -> tuple[Value, ...]:
        """The values that are used outside."""
        return boundary_of(self.nodes).outputs

    @property
    def params(self) -> tuple[Value, ...]:
        """The constants from outside: weights."""
        return boundary_of(self.nodes).constants


def get_source_partitions(
    graph: Graph | Model, wanted_sources: Iterable[str]
) -> dict[str, list[SourcePartition]]:
    """Return the partitions by source, each in the order of its first node.

    A source is a class by its full or last name (`torch.nn.modules.linear.Linear`, `Linear`), an
    operator of torch (`aten.linear.default`), a local function (`pkg::Linear` or `Linear`), or a
    scope in the names of nodes (`layer1`, `layer1/conv`). A source without nodes is left out.

    Args:
        graph: a graph, or a model for its main graph.
        wanted_sources: the sources.
    """
    graph = graph.main if isinstance(graph, Model) else graph
    wanted = list(dict.fromkeys(wanted_sources))
    found: dict[str, dict[str, list[Node]]] = {}
    for node in graph.topological_order():
        origins = list(_origins(node))
        for source in wanted:
            scope = next((scope for name, scope in origins if _is(source, name)), None)
            if scope is not None:
                found.setdefault(source, {}).setdefault(scope, []).append(node)
    return {
        source: [
            SourcePartition(tuple(nodes), source, scope) for scope, nodes in found[source].items()
        ]
        for source in wanted
        if source in found
    }


def _is(source: str, name: str) -> bool:
    return name == source or name.endswith((f".{source}", f"::{source}", f"/{source}"))


def _origins(node: Node) -> Iterator[tuple[str, str]]:
    """Yield (source, instance) of everything that a node came from, outermost first."""
    metadata = node.metadata
    classes, scopes = _listed(metadata.get(CLASSES)), _listed(metadata.get(SCOPES))
    yield from zip(classes, scopes, strict=False)
    if len(classes) > len(scopes):
        # The last one is the operator of torch: it has the name of the node.
        yield classes[-1], node.label
    if node.owner.model.function(*node.callee) is not None:
        yield f"{node.domain}::{node.op_type}", node.label
    parts = node.name.strip("/").split("/")[:-1]
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        yield f"/{path}", f"/{path}"


def _listed(text: str | None) -> list[str]:
    """Return the strings of a list that the exporter wrote; empty if it is none."""
    if not text:
        return []
    try:
        read = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return []
    return [str(part) for part in read] if isinstance(read, list | tuple) else []
