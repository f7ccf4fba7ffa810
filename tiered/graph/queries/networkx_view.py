"""The view for users of networkx: plain copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tiered.graph.core.schema import AttributeReference
from tiered.graph.core.tensor import Tensor

if TYPE_CHECKING:
    import networkx as nx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


def unique_labels(nodes: Sequence[Node]) -> dict[Node, str]:
    """Return a label of its own for each node, in their order: the name where one has it.

    Of several nodes of one label the first with the name keeps it; others are `label#2`, `label#3`.
    """
    labels: dict[Node, str] = {}
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for node in sorted(nodes, key=lambda node: not node.name):
        base = label = node.label or node.op_type
        while label in taken:
            numbers[base] = numbers.get(base, 1) + 1
            label = f"{base}#{numbers[base]}"
        taken.add(label)
        labels[node] = label
    return {node: labels[node] for node in nodes}


def to_networkx(graph: Graph) -> nx.DiGraph[str]:
    """Return a plain named copy of a graph; see `Graph.to_networkx`."""
    import networkx as nx

    plain: nx.DiGraph[str] = nx.DiGraph(name=graph.name)
    order = graph.topological_order()
    labels = unique_labels(order)
    for node in order:
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
