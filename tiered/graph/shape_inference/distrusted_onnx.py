"""Nodes of which onnx infers more than is true: its shapes are not believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

# The version from which onnx infers what both branches of an If give: before, what either does.
_UNITED_IF: Final = 11


def is_misjudged(node: Node) -> bool:
    """Tell whether onnx infers more of a node than is true."""
    test = _TESTS.get(node.op_type)
    return test is not None and not node.domain and test(node)


def _is_early_if(node: Node) -> bool:
    return node.owner.opset() < _UNITED_IF


def _rounds_up(node: Node) -> bool:
    """Of a pool: it counts windows that start in the padding on the right, which are ignored."""
    return bool(node.attr("ceil_mode", 0))


def _may_be_of_scalar(_: Node) -> bool:
    """Of NonZero: a scalar has no places, and onnxruntime gives one all the same.

    Which operand is a scalar is known no sooner than its type is.
    """
    return True


def _has_no_axes(node: Node) -> bool:
    """Of Squeeze: no axes at all may be all, as for onnxruntime, or none of them, as for onnx."""
    given = node.attribute_protos().get("axes")
    if given is not None:
        return not given.ints
    axes = node.input(1)
    return axes is not None and axes.tensor is not None and axes.tensor.size == 0


def _may_copy(node: Node) -> bool:
    """Of Reshape: what is computed may be 0, which copies a dim."""
    shape = node.input(1)
    return not node.attr("allowzero", 0) and shape is not None and shape.tensor is None


_TESTS: Final[dict[str, Callable[[Node], bool]]] = {
    "AveragePool": _rounds_up,
    "If": _is_early_if,
    "LpPool": _rounds_up,
    "MaxPool": _rounds_up,
    "NonZero": _may_be_of_scalar,
    "Reshape": _may_copy,
    "Squeeze": _has_no_axes,
}
