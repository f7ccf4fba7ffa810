"""Unrolling of a Loop or Scan: one copy of the body for each iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiered.graph.core.value import Value
from tiered.graph.edits.transactions import undone_on_error

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node


@undone_on_error
def unroll(graph: Graph, node: Node, iterations: int) -> list[Node]:
    """Replace a Loop with this trip count by copies of its body; return them.

    The caller has checked the trip count, and that the operands fit the body; a loop without
    iterations has no scan outputs.
    """
    (body,) = node.bodies
    at, goes_on, *carried = body.inputs
    states: list[Value | None] = list(node.inputs[2:])
    condition = node.inputs[1]
    if condition is None and goes_on.is_used and iterations:
        condition = graph.constant(np.array(True), f"{node.label}/{goes_on.name}")
    stands = _constants(graph, node) if iterations else {}
    collected: list[list[Value | None]] = [[] for _ in body.outputs[1 + len(carried) :]]
    copies: list[Node] = []
    for number in range(iterations):
        prefix = f"{node.label}/{number}" if iterations > 1 else node.label
        stands |= {goes_on: condition, **dict(zip(carried, states, strict=True))}
        if at.is_used:
            stands[at] = graph.constant(np.array(number, np.int64), f"{prefix}/{at.name}")
        copies += graph.copy_nodes(body.topological_order(), stands, prefix=prefix)
        condition, *results = (stands.get(value, value) for value in body.outputs)
        states = results[: len(carried)]
        for parts, row in zip(collected, results[len(carried) :], strict=True):
            parts.append(row)
    _finish(graph, node, states, collected, copies)
    return copies


@undone_on_error
def unroll_scan(graph: Graph, node: Node, iterations: int) -> list[Node]:
    """Replace a Scan with this trip count, at least 1, by copies of its body.

    The caller has checked the trip count, that the operands fit the body, and that each is scanned
    forward along its first axis.
    """
    (body,) = node.bodies
    count = len(body.inputs) - node.attr("num_scan_inputs")
    states, scanned = list(node.inputs[:count]), node.inputs[count:]
    stands = _constants(graph, node)
    collected: list[list[Value | None]] = [[] for _ in body.outputs[count:]]
    copies: list[Node] = []
    for number in range(iterations):
        prefix = f"{node.label}/{number}" if iterations > 1 else node.label
        rows = [graph.op.Gather(value, np.array(number, np.int64), axis=0) for value in scanned]
        copies += [row.producer for row in rows if row.producer is not None]
        stands |= dict(zip(body.inputs, (*states, *rows), strict=True))
        copies += graph.copy_nodes(body.topological_order(), stands, prefix=prefix)
        results = [stands.get(value, value) for value in body.outputs]
        states = results[:count]
        for parts, row in zip(collected, results[count:], strict=True):
            parts.append(row)
    _finish(graph, node, states, collected, copies)
    return copies


def _constants(graph: Graph, node: Node) -> dict[Value, Value | None]:
    """Return a constant in the node's graph for each initializer of its body."""
    return {
        value: graph.constant(value.default, f"{node.label}/{value.name}")
        for value in node.bodies[0].initializers
        if not value.is_graph_input and value.default is not None
    }


def _finish(
    graph: Graph,
    node: Node,
    states: list[Value | None],
    collected: list[list[Value | None]],
    copies: list[Node],
) -> None:
    """Replace the outputs of the node by the last states and the collected scan outputs."""
    results = list(states)
    for output, parts in zip(node.outputs[len(states) :], collected, strict=False):
        is_read = output is not None and output.is_used
        results.append(_stacked(graph, parts) if is_read and parts else None)
    own = [output for copy in copies for output in copy.outputs]
    graph.splice(node, results, [*own, *results[len(states) :]])
    graph.prune(reversed(copies))


def _stacked(graph: Graph, parts: list[Value | None]) -> Value:
    """Return the values of all iterations along a new first axis."""
    axes = np.array([0], np.int64)
    rows = [graph.op.Unsqueeze(part, axes) for part in parts]
    stacked: Value = graph.op.Concat(*rows, axis=0) if len(rows) > 1 else rows[0]
    return stacked
