"""Reshape(f(Reshape(x)), shape of x)  =>  f(x), if f is elementwise, and so for other views"""

from collections.abc import Iterator
from typing import Final

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.graph.queries.op_traits import ELEMENTWISE, VIEWS
from tiered.rewriter.idioms.main_tensors import is_one_element

Shape = tuple[int | str | None, ...]

_MOST: Final = 64
"""The most operators that are visited for one Reshape."""

_OLDEST: Final = 7
"""Before this opset, operands broadcast only if an attribute is set."""


_VIEWS: Final = tuple(op_type for op_type in VIEWS if op_type != "Identity")


@function_pass(opt_level=2, required=("infer_shapes",), matches=_VIEWS, touches=("elementwise",))
def eliminate_reshape_around_elementwise(graph: Graph, ctx: PassContext) -> None:
    """Compute in the original shape instead of a temporary one.

    f is all nodes between such Reshapes: elementwise operators with no other operands than single
    numbers, and without other users of their results.
    """
    if graph.opset() < _OLDEST:
        return
    for op_type in _VIEWS:
        for end in graph.nodes_of(op_type):
            between = end.given(0)
            if end.graph is None or not _is_elementwise(between.producer):
                continue
            found = _region(end, between)
            if isinstance(found, Skip):
                ctx.skip(end, found)
                continue
            with graph.rewrite("Reshape(f(Reshape(x)), shape of x) => f(x)", end):
                _compute_before(graph, found, end.output.shape or ())


def _region(end: Node, between: Value) -> set[Node] | Skip:
    """Return the operators between the Reshapes, or why they cannot be rewritten."""
    inside, outside = between.shape, end.output.shape
    if inside is None or outside is None or None in (*inside, *outside):
        return Skip("a shape is not known")
    found, pending = set[Node](), [between]
    is_entered = False
    while pending:
        value = pending.pop()
        node = value.producer
        if node in found:
            continue
        if node is not None and _leads(node, outside, inside):
            is_entered = True
            continue
        if value is not between and is_one_element(value, min(len(inside), len(outside))):
            continue
        if node is None or node.graph is not end.graph or not _is_elementwise(node):
            return Skip("it is computed from another shape")
        if len(node.outputs) != 1 or node.has_references or value.shape != inside:
            return Skip("an intermediate operator changes the shape")
        if value.is_graph_output or value.pins:
            return Skip("an intermediate value is an output or pinned")
        if len(found) == _MOST or value.n_users > _MOST:
            return Skip("there are too many operators between")
        found.add(node)
        pending += node.reads
        for user in _users(value):
            if user.graph is not node.graph:
                return Skip("a body reads an intermediate value")
            if not _leads_out(user, value, outside):
                if not _is_elementwise(user):
                    return Skip("an intermediate value has other consumers")
                pending.append(user.output)
    return found if is_entered else Skip("no input comes from a Reshape")


def _is_elementwise(node: Node | None) -> bool:
    return node is not None and node.op_type in ELEMENTWISE and not node.domain


def _leads(node: Node, before: Shape, after: Shape) -> bool:
    """Return whether a node is a view of one shape as another."""
    if node.op_type not in _VIEWS or node.domain:
        return False
    return node.given(0).shape == before and node.output.shape == after


def _leads_out(node: Node, value: Value, after: Shape) -> bool:
    """Return whether a node reshapes a value, and does not only use it as a shape."""
    return node.input(1) is not value and _leads(node, value.shape or (), after)


def _users(value: Value) -> Iterator[Node]:
    for use in value.users:
        yield use.node


def _compute_before(graph: Graph, region: set[Node], outside: Shape) -> None:
    for node in graph.topological_order(region):
        first_new, inside = graph.model.peek_serial(), node.output.shape or ()
        operands = [value and _unshaped(value, outside, inside) for value in node.inputs]
        copy = graph.add_node(node.op_type, operands, attributes=node.attributes, name=node.name)
        ends = [user for user in _users(node.output) if user.op_type in _VIEWS]
        # The ends first: behind the copy, an Unsqueeze would add dims to the wrong shape.
        for end in ends:
            graph.replace(end, copy.outputs)
        if node.is_live:
            graph.replace(node, copy.outputs, first_new)


def _unshaped(value: Value, outside: Shape, inside: Shape) -> Value:
    """Return the operand of a view that leads inside; any other value unchanged."""
    node = value.producer
    return value if node is None or not _leads(node, outside, inside) else node.given(0)
