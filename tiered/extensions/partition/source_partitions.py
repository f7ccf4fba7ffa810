"""The nodes that came from one module, layer or function of the source program.

Three sources: the metadata of torch's exporter (`pkg.torch.onnx.class_hierarchy`, `name_scopes`),
calls of local functions, and the scopes in names of nodes (`/layer1/conv/Conv`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import onnx

from tiered.extensions.partition.boundary import boundary_of
from tiered.graph import Graph, Model, Node, Value
from tiered.support.errors import UsageError

CLASSES: Final = "pkg.torch.onnx.class_hierarchy"
SCOPES: Final = "pkg.torch.onnx.name_scopes"

Source: TypeAlias = "str | type | Callable[..., Any]"
"""A name, a class, or a function."""


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
    graph: Graph | Model | onnx.ModelProto, wanted_sources: Iterable[Source]
) -> dict[Source, list[SourcePartition]]:
    """Return the partitions by source, each in the order of its first node.

    A source is a class, or its full or last name (`torch.nn.modules.linear.Linear`, `Linear`), a
    function (`torch.nn.functional.relu`), an operator of torch (`aten.linear.default`), a local
    function (`pkg::Linear` or `Linear`), or a scope in the names of nodes (`layer1`,
    `layer1/conv`). A source without nodes is left out. Each call of a layer of torch that is one
    operator is a partition, also where the layer is called twice.

    Args:
        graph: a graph, or a model for its main graph.
        wanted_sources: the sources, which are the keys of the result.

    Raises:
        UsageError: a source is neither a string, a class nor a function.
    """
    if isinstance(graph, onnx.ModelProto):
        graph = Model.from_proto(graph)
    graph = graph.main if isinstance(graph, Model) else graph
    wanted = {source: _name_of(source) for source in wanted_sources}
    found: dict[Source, dict[tuple[str, str], list[Node]]] = {}
    for node in graph.topological_order():
        origins = list(_origins(node))
        for source, text in wanted.items():
            match = next((each for each in origins if _is(text, each[0])), None)
            if match is not None:
                key = match[1], _call_of(node, match[0])
                found.setdefault(source, {}).setdefault(key, []).append(node)
    return {
        source: [
            SourcePartition(tuple(nodes), text, scope)
            for (scope, _), nodes in found[source].items()
        ]
        for source, text in wanted.items()
        if source in found
    }


def _name_of(source: Source) -> str:
    """Return the name of a source: of a function that of torch's operator.

    Raises:
        UsageError: it is neither a string, a class nor a function.
    """
    if isinstance(source, str):
        return source
    name: str | None = getattr(source, "__qualname__", None)
    if name is None:
        raise UsageError(f"a source is a name, a class or a function, not {source!r}")
    if isinstance(source, type):
        return f"{source.__module__}.{name}"
    return f"aten.{name.rpartition('.')[2]}"


def _is(source: str, name: str) -> bool:
    if name == source or name.endswith((f".{source}", f"::{source}", f"/{source}")):
        return True
    # An operator of torch without its overload, as `aten.relu` of `aten.relu.default`.
    return source.startswith("aten.") and name.rpartition(".")[0] == source


def _call_of(node: Node, source: str) -> str:
    """Return which call of its layer a node is of; "" where that is not known.

    The exporter names each operator of torch. A layer of torch that is no other layers, and no
    other operators, has one for each call.
    """
    metadata = node.metadata
    classes, scopes = _listed(metadata.get(CLASSES)), _listed(metadata.get(SCOPES))
    is_last = len(classes) > 1 and classes[-2] == source and len(scopes) == len(classes)
    if not is_last or not source.startswith("torch.nn.modules."):
        return ""
    layer = source.rpartition(".")[2].lower()
    operator = classes[-1].split(".")
    is_one = len(operator) > 1 and operator[1].replace("_", "") == layer
    return scopes[-1] if is_one else ""


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
