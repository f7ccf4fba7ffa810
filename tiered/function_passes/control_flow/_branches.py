"""Edits of an If with both branches: its outputs, and the outputs of the branches, in step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value


def drop_unused_outputs(graph: Graph, node: Node) -> None:
    """Remove the outputs of an If without users, from its branches too; the others keep order."""
    used = list(node.used_outputs)
    _keep_returned(node, used)
    _keep_outputs(graph, node, used)


def replace_outputs(graph: Graph, node: Node, values: Mapping[int, Value]) -> None:
    """Replace outputs of an If, by index, by values of its graph; its branches return the rest."""
    kept = [at for at in range(len(node.outputs)) if at not in values]
    # A value that a branch returns could not take over the name of an output.
    _keep_returned(node, kept)
    for at, value in values.items():
        output = node.outputs[at]
        if output is not None:
            graph.replace_uses(output, value)
    _keep_outputs(graph, node, kept)


def _keep_returned(node: Node, kept: Sequence[int]) -> None:
    for body in node.bodies:
        outputs, infos = body.outputs, body.output_infos
        if len(kept) < len(outputs):
            body.set_graph_outputs([outputs[at] for at in kept], [infos[at] for at in kept])


def _keep_outputs(graph: Graph, node: Node, kept: Sequence[int]) -> None:
    """Remove all outputs of an If but some; the removed ones have no users."""
    for target, source in enumerate(kept):
        if target == source:
            continue
        if node.outputs[target] is None:
            # An exchange needs values on both sides.
            outputs = list(node.outputs)
            outputs[target] = graph.new_value(node.label)
            graph.set_outputs(node, outputs)
        graph.exchange_outputs(node, target, node, source)
    graph.set_outputs(node, node.outputs[: len(kept)])
