"""Cast(x) to a wider dtype, read by several nodes  =>  Cast(x) for each of them"""

from tiered import DataType, Graph, Node, PassContext, Skip, function_pass


@function_pass(
    opt_level=None, conflicts=("eliminate_common_subexpr",), looks_for=("Cast",)
)
def canonicalize_cast(graph: Graph, ctx: PassContext) -> None:
    """Give each reader of a Cast to a wider dtype one of its own.

    Opt-in: for targets that compile regions, where the narrower tensor is what crosses their
    borders. Common subexpressions would be merged again.
    """
    for node in graph.nodes_of("Cast"):
        users = node.output.users
        if len(users) < 2:
            continue
        if node.has_references:
            ctx.skip(node, Skip("{}", node.parameter_reason))
            continue
        if any(user.node.graph is not graph for user in users):
            ctx.skip(node, Skip("a body reads it"))
            continue
        refused = _refusal(node)
        if refused is not None:
            ctx.skip(node, refused)
            continue
        with graph.rewrite("Cast(x), read by several  =>  Cast(x) for each", node):
            for user in users[1:]:
                own = graph.op.Cast(node.inputs[0], **node.attributes)
                graph.set_input(user.node, user.slot, own)


def _refusal(node: Node) -> Skip | None:
    """Return why the tensor before the Cast is not known to be the narrower one; None if it is."""
    x = node.input(0)
    before, after = None if x is None else x.dtype, node.output.dtype
    if before is None or after is None:
        return Skip("a dtype of the Cast is not known")
    widths = DataType(before).bits, DataType(after).bits
    return None if 0 < widths[0] < widths[1] else Skip("the Cast does not widen its dtype")
