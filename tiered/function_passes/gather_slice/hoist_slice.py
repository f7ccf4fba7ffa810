"""Slice(f(x))  =>  f(Slice(x)), and so for Gather, if f is elementwise"""

from typing import Final

from tiered import DataType, Graph, Node, PassContext, Skip, Value, function_pass
from tiered.graph.queries.determinism import is_same_at_all_places
from tiered.graph.queries.formals import takes_dtype
from tiered.graph.queries.op_traits import PRODUCTS, SAME_AT_ALL_PLACES
from tiered.rewriter.idioms.selection import Selection, selection_of

_HOISTED: Final = SAME_AT_ALL_PLACES | {"Where"}  # it selects, as the Slice does


@function_pass(
    opt_level=2, required=("infer_shapes",), matches=("Gather", "Slice"), touches=("elementwise",)
)
def hoist_slice(graph: Graph, ctx: PassContext) -> None:
    """Select elements before an elementwise operator, which then computes no others.

    Operands that broadcast along the axes of the selection stay; constants are cut. An operator
    behind a product stays, as runtimes fuse the two.
    """
    if graph.opset() < _OLDEST:
        return
    for op_type in ("Gather", "Slice"):
        for node in graph.nodes_of(op_type):
            last: Node | None = node
            while last is not None:
                last = _hoisted(graph, ctx, last)


_OLDEST: Final = 7
"""Before this opset, operands broadcast only if an attribute is set."""


def _hoisted(graph: Graph, ctx: PassContext, node: Node) -> Node | None:
    """Hoist a selection past one operator; return the new selection."""
    f = node.producer(0) if node.is_live else None
    if f is None or f.domain or f.op_type not in _HOISTED or f.graph is not graph:
        return None
    found = _why_not(node, f)
    if isinstance(found, Skip):
        ctx.skip(node, found)
        return None
    selection, cut = found
    with graph.rewrite(f"{node.op_type}({f.op_type}(x)) => {f.op_type}({node.op_type}(x))", node):
        made: dict[Value | None, Value] = {x: selection.applied(graph, x) for x in cut}
        operands = [made.get(value, value) for value in f.inputs]
        copy = graph.add_node(f.op_type, operands, attributes=f.attributes, name=f.name)
        graph.replace(node, copy.outputs)
    (moved,) = [value for value in cut if not value.is_constant]
    return made[moved].producer


def _width(value: Value) -> int:
    """Return the bytes of an element; those of a float if the dtype is not known."""
    return 4 if value.dtype is None else DataType(value.dtype).numpy.itemsize


def _why_not(node: Node, f: Node) -> tuple[Selection, list[Value]] | Skip:
    """Return the selection with the operands that it cuts, or why it cannot be hoisted."""
    wide = f.output
    if not wide.is_only_read_by(node) or f.is_pinned:
        return Skip("the operator has other consumers")
    if f.has_references:
        return Skip("{}", f.parameter_reason)
    if f.op_type != "Where" and not is_same_at_all_places(f):
        return Skip("a number that fits no integer differs by its place")
    selection = selection_of(node)
    if isinstance(selection, Skip):
        return selection
    cut: list[Value] = []
    for value in f.reads:
        if value in cut:
            continue
        is_cut = selection.cuts(value)
        if is_cut is None:
            return Skip("an operand has some of the selected dims only")
        if is_cut:
            cut.append(value)
    moved = [value for value in cut if not value.is_constant]
    if len(moved) != 1:
        return Skip("several operands would be cut")
    if moved[0].dtype != wide.dtype and not takes_dtype(f.owner, node.op_type, moved[0].dtype):
        return Skip("{} does not take the dtype of the operand", node.op_type)
    before, after = (_width(value) for value in (moved[0], wide))
    if selection.share * (3 * before - after) >= before + after:
        return Skip("it would move more bytes")
    producer = moved[0].producer
    if producer is not None and producer.op_type in PRODUCTS and not producer.domain:
        return Skip("runtimes fuse the operator with a product")
    return selection, cut
