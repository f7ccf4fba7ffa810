"""The view for users of networkx: plain copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tiered.graph.core.schema import AttributeReference
from tiered.graph.core.tensor import Tensor

if TYPE_CHECKING:
    import networkx as nx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


def to_networkx(graph: Graph) -> nx.DiGraph[str]:
    """Return a plain named copy of a graph; see `Graph.to_networkx`."""
    import networkx as nx

    plain: nx.DiGraph[str] = nx.DiGraph(name=graph.name)
    labels: dict[Node, str] = {}
    taken: dict[str, int] = {}
    for node in graph.topological_order():
        label = node.label or node.op_type
        taken[label] = taken.get(label, 0) + 1
        labels[node] = label if taken[label] == 1 else f"{label}#{taken[label]}"
        plain.add_node(
            labels[node],
            op_type=node.op_type,
            domain=node.domain,
            inputs=_joined(node.inputs),
            outputs=_joined(node.outputs),
            attributes=", ".join(f"{name}={_shown(raw)}" for name, raw in node.attributes.items()),
            bodies=len(node.bodies),
        )
    for tail, head, slots in graph.dag.edges(data="slots"):
        values = [tail._outputs[slot.output] for slot in slots]
        plain.add_edge(
            labels[tail],
            labels[head],
            slots=" ".join(
                f"{slot.output}:{'' if slot.input is None else slot.input}" for slot in slots
            ),
            values=_joined(values),
            types=" ".join(str(value.type or "?") for value in values if value is not None),
        )
    return plain


def _shown(raw: Any) -> str:
    if isinstance(raw, Tensor):
        return f"tensor{list(raw.shape)}"
    if isinstance(raw, AttributeReference | int | float | str | bytes):
        return str(raw)
    if isinstance(raw, tuple):
        return f"[{' '.join(_shown(element) for element in raw)}]"
    return type(raw).__name__


def _joined(values: Iterable[Value | None]) -> str:
    return " ".join("-" if value is None else value.name for value in values)
