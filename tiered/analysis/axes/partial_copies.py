"""Copies of nodes that read parts of the operands, or the operands in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import defs

from tiered.graph import Graph, Node, Value


def copy_of(
    graph: Graph, node: Node, operands: Sequence[Any], outputs: int = 1, **attributes: Any
) -> list[Value]:
    """Make a node like another one, with other operands in the operator's newest form.

    Args:
        graph: where the node is made.
        node: the other one; it has the newest form.
        operands: values or arrays; a detached value is an attribute of an old opset.
        outputs: how many results the copy has.
        attributes: changed attributes.
    """
    given = [
        each.const if isinstance(each, Value) and each.graph is None else each for each in operands
    ]
    changed = {**dict.fromkeys(_operand_names(node)), **attributes}
    made: Any = graph.op.like(node, *given, outputs=outputs, **changed)
    return list(made) if outputs > 1 else [made]


def _operand_names(node: Node) -> list[str]:
    """Return the names of operands in the newest form that are attributes of the node."""
    if node.domain:
        return []
    newest = defs.get_schema(node.op_type)
    return [each.name for each in newest.inputs if node.has_attr(each.name)]
