"""Cast(x) to a wider dtype, read by several elementwise nodes  =>  Cast(x) for each of them"""

from tiered import DataType, Graph, Node, PassContext, Skip, function_pass
from tiered.rewriter.idioms.functions.fusion_groups import OpPatternKind, kind_of


@function_pass(opt_level=None, conflicts=("eliminate_common_subexpr",), matches=("Cast",))
def canonicalize_cast(graph: Graph, ctx: PassContext) -> None:
    """Give each elementwise reader of a Cast to a wider dtype one of its own.

    Opt-in: for targets that compile regions, where the narrower tensor is what crosses their
    borders. Broadcasting nodes count as elementwise ones. All other readers, such as a MatMul, and
    those in the body of a Loop or Scan share the Cast of the first. Common subexpressions would be
    merged again.
    """
    for node in graph.nodes_of("Cast"):
        readers = _elementwise_readers(graph, node)
        if len(readers) < 2:
            continue
        if node.has_references:
            ctx.skip(node, Skip("{}", node.parameter_reason))
            continue
        refused = _refusal(node)
        if refused is not None:
            ctx.skip(node, refused)
            continue
        with graph.rewrite("Cast(x), read by several  =>  Cast(x) for each", node):
            for reader in readers[1:]:
                own = reader.owner.op.Cast(node.inputs[0], **node.attributes)
                for slot, value in enumerate(reader.inputs):
                    if value is node.output:
                        reader.owner.set_input(reader, slot, own)


def _elementwise_readers(graph: Graph, node: Node) -> list[Node]:
    """Return the readers that a compiler fuses with a Cast, and that run at most once."""
    readers = dict.fromkeys(user.node for user in node.output.users)
    return [
        reader
        for reader in readers
        if kind_of(reader) <= OpPatternKind.BROADCAST and _runs_once(graph, reader.owner)
    ]


def _runs_once(graph: Graph, inner: Graph) -> bool:
    """Return whether a graph is this one, or a branch in it outside of all loops."""
    while inner is not graph:
        if inner.parent_node is None or not inner.parent_node.is_op("If"):
            return False
        inner = inner.parent_node.owner
    return True


def _refusal(node: Node) -> Skip | None:
    """Return why the tensor before the Cast is not known to be the narrower one; None if it is."""
    before, after = node.given(0).dtype, node.output.dtype
    if before is None or after is None:
        return Skip("a dtype of the Cast is not known")
    widths = DataType(before).bits, DataType(after).bits
    return None if 0 < widths[0] < widths[1] else Skip("the Cast does not widen its dtype")
