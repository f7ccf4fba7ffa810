"""An expanded body without its general parts: conversions that do nothing, known values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph import DataType, Node, Tensor, is_deterministic
from tiered.runtime import evaluate

if TYPE_CHECKING:
    from tiered.graph import Value

_MOST_ELEMENTS: Final = 1024
"""Larger results stay computed, so that no body makes a model grow."""


def simplify(nodes: Sequence[Node]) -> None:
    """Fold what shapes and constants determine, drop what copies, make constants initializers.

    ONNX's bodies hold for all dtypes and shapes; targets take a Reshape only with a constant shape.

    Args:
        nodes: the nodes of one expanded body, producers first.
    """
    for node in nodes:
        is_constant = node.is_live and node.is_op("Constant")
        # onnx's inference knows no initializer that is the output of a body.
        if is_constant and node.output.tensor is not None and not node.output.is_graph_output:
            node.owner.become_constant(node.output, node.output.tensor)
    for node in nodes:
        if node.is_live and _copies(node) and not node.output.is_graph_output:
            node.owner.replace(node, [node.inputs[0]])
    for node in reversed(nodes):  # a Concat before the Split that it reads
        if node.is_live:
            _drop_empty_parts(node)
    for node in nodes:
        for value in node.outputs if node.is_live else ():
            if value is not None and not node.is_op("Constant") and value.is_used:
                _fold_elements(node, value)
    constant: dict[Value, None] = {}
    for node in nodes:
        if node.is_live and _is_constant(node, constant):
            constant.update((value, None) for value in node.outputs if value is not None)
    wanted = [value for value in constant if _is_read_outside(value, constant)]
    for value, array in evaluate(wanted, lambda value, error: None).items():
        if array.size <= _MOST_ELEMENTS:
            value.owner.become_constant(value, Tensor.of(array))


def _copies(node: Node) -> bool:
    """Return whether the output of a node is its operand, bit for bit."""
    source = node.input(0)
    is_cast = node.is_op("Cast") or node.is_op("CastLike")
    is_same = source is not None and source.dtype is not None and source.dtype == node.output.dtype
    return node.is_op("Identity") or (is_cast and is_same)


def _drop_empty_parts(node: Node) -> None:
    """Concatenate what has elements, and read past a Split whose one used part is all there is."""
    if node.is_op("Concat") and not node.output.is_graph_output:
        axis = node.attr("axis")
        filled = [value for value in node.inputs if value is None or value.dim(axis) != 0]
        if len(filled) == 1 and filled[0] is not None and filled[0].dtype == node.output.dtype:
            node.owner.replace(node, [filled[0]])
        elif 1 < len(filled) < len(node.inputs):
            node.owner.set_inputs(node, filled)
    elif node.is_op("Split"):
        _read_past(node)


def _read_past(node: Node) -> None:
    x, axis = node.inputs[0], node.attr("axis", 0)
    used = [value for value in node.outputs if value is not None and value.is_used]
    if x is None or len(used) != 1 or used[0].is_graph_output:
        return
    size = x.dim(axis)
    if isinstance(size, int) and used[0].dim(axis) == size:
        node.owner.replace_uses(used[0], x)


def _fold_elements(node: Node, value: Value) -> None:
    elements = value.elements
    if value.is_graph_output or elements is None or value.dtype is None:
        return
    if elements.size > _MOST_ELEMENTS:
        return
    if all(isinstance(element, int) for element in elements.ravel().tolist()):
        array = elements.astype(DataType(value.dtype).numpy)
        node.owner.become_constant(value, Tensor.of(array))


def _is_constant(node: Node, constant: dict[Value, None]) -> bool:
    """Return whether a node computes from constants alone."""
    if node.is_op("Constant") or node.domain or node.bodies or not is_deterministic(node):
        return False
    operands = [value for value in node.inputs if value is not None]
    return bool(operands) and all(
        value in constant or (value.tensor is not None and value.tensor.size <= _MOST_ELEMENTS)
        for value in operands
    )


def _is_read_outside(value: Value, constant: dict[Value, None]) -> bool:
    """Return whether a node that is not constant reads a value, which is no output."""
    return not value.is_graph_output and any(
        output not in constant for reader in value.readers for output in reader.outputs
    )
