"""Shape arithmetic that the shapes determine  =>  constants, or one computation of each size"""

from collections import ChainMap
from collections.abc import Hashable, MutableMapping
from typing import Final

import numpy as np

from tiered import (
    DataType,
    Graph,
    Node,
    PassContext,
    Skip,
    Tensor,
    Value,
    freed_bytes,
    function_pass,
)
from tiered.idioms.target_shape import expand_target, reshape_target

Known = MutableMapping[Hashable, Value]

_KEPT: Final = frozenset({"Constant", "If", "Loop", "Scan"})

# More elements than any shape.
_MANY: Final = 16

_TRACED: Final = frozenset({DataType.INT64, DataType.INT32, DataType.BOOL})


@function_pass(
    opt_level=2,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    acts_on=("*",),
)
def trace_folding(graph: Graph, ctx: PassContext) -> None:
    """Fold traced shape arithmetic as far as the declared input shapes determine it.

    There are three laws. An integer tensor with only known elements becomes a constant. Two tensors
    with equal symbolic elements are computed once. The target of a Reshape or Expand becomes a
    constant if each size is a number or a dim of the operand.
    """
    if graph.owner is None:
        _visit(graph, ctx, {})


def _visit(graph: Graph, ctx: PassContext, known: Known) -> None:
    traced = {node: values for node in graph.nodes if (values := _traced(node))}
    sized = {
        node
        for op_type in ("Expand", "Reshape")
        for node in graph.nodes_of(op_type)
        if _has_open_sizes(node)
    }
    visited = {*traced, *sized, *graph.owners}
    if not visited:
        return  # In most models all is known after the first round; nothing is sorted then.
    # Consumers first: the operands of a new constant need no folding.
    for node in reversed([node for node in graph.topological_order() if node in traced]):
        if node.graph is graph:
            for value in traced[node]:
                _fold_value(graph, ctx, node, value)
    for node in [node for node in graph.topological_order() if node in visited]:
        for body in node.bodies:
            _visit(body, ctx, ChainMap({}, known))
        if node in sized:
            _fold_sizes(graph, node)
        for value in traced.get(node, ()):
            _share_value(graph, node, value, known)


def _traced(node: Node) -> list[Value]:
    """Return the outputs of a node whose elements are known, all or some."""
    if node.op_type in _KEPT or node.domain:
        return []
    return [
        value
        for value in node.outputs
        if value is not None and value.dtype in _TRACED and value.elements is not None
    ]


def _has_open_sizes(node: Node) -> bool:
    """Return whether the sizes of a Reshape or Expand may become a constant, or lose allowzero."""
    sizes = node.input(1)
    return sizes is not None and not (sizes.is_constant and not node.attr("allowzero", 0))


def _fold_value(graph: Graph, ctx: PassContext, node: Node, value: Value) -> None:
    elements = value.elements
    if elements is None or value.pins or not value.is_used:
        return
    if not all(isinstance(element, int) for element in elements.ravel().tolist()):
        return
    if value.is_graph_output and node.op_type == "Identity":
        # The Identity only renames the output.
        return
    assert value.dtype is not None
    array = elements.astype(DataType(value.dtype).numpy)
    if array.size > _MANY and array.nbytes > freed_bytes(value):
        # The growth budget is fold_constant's, once the operands are constants.
        ctx.skip(node, Skip("the constant would make the model grow"))
        return
    with graph.rewrite("a tensor whose elements are all known => a constant", node):
        graph.become_constant(value, Tensor.of(array))


def _share_value(graph: Graph, node: Node, value: Value, known: Known) -> None:
    elements = value.elements
    if elements is None or value.pins or not value.is_used or value.is_graph_output:
        return
    flat = tuple(elements.ravel().tolist())
    if None in flat or all(isinstance(element, int) for element in flat):
        return
    key = (value.dtype, elements.shape, flat)
    first = known.get(key)
    if first is None or first.graph is None:
        known[key] = value
    else:
        with graph.rewrite("two tensors with the same elements for all dims => one", node):
            graph.replace_uses(value, first)
            graph.prune([node])


def _fold_sizes(graph: Graph, node: Node) -> None:
    """Replace the target of a Reshape or Expand by a constant, if it can be one."""
    data, sizes = node.inputs[0], node.input(1)
    if data is None or sizes is None or data.shape is None or node.has_references:
        return
    is_strict = bool(node.attributes.get("allowzero"))
    if sizes.is_constant and not is_strict:
        return
    elements = sizes.elements
    if elements is None or elements.ndim != 1:
        return
    if sizes.is_constant:
        if 0 not in elements.tolist():
            with graph.rewrite("allowzero where no size is 0 => the default", node):
                graph.set_attribute(node, "allowzero", None)
        return
    constant = reshape_target if node.op_type == "Reshape" else expand_target
    target = constant(node, data, elements)
    if target is None:
        return
    with graph.rewrite("sizes that are numbers or dims of the operand => a constant", node):
        graph.set_input(node, 1, graph.constant(np.array(target, np.int64), f"{sizes.name}_folded"))
        if is_strict:
            graph.set_attribute(node, "allowzero", None)
        if sizes.producer is not None:
            graph.prune([sizes.producer])
