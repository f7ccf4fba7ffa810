"""Cast(x), read by several nodes  =>  Cast(x) for each of them"""

from tiered import Graph, PassContext, Skip, function_pass


@function_pass(
    opt_level=None, conflicts=("eliminate_common_subexpr",), looks_for=("Cast",)
)
def canonicalize_cast(graph: Graph, ctx: PassContext) -> None:
    """Give each reader of a Cast one of its own.

    Opt-in: for targets that compile regions, where the narrower tensor is what crosses their
    borders. Common subexpressions would be merged again.
    """
    for node in graph.nodes_of("Cast"):
        users = node.output.users
        if len(users) < 2:
            continue
        if node.has_references:
            ctx.skip(node, Skip("the call of the function decides an attribute"))
            continue
        if any(user.node.graph is not graph for user in users):
            ctx.skip(node, Skip("a body reads it"))
            continue
        with graph.rewrite("Cast(x), read by several  =>  Cast(x) for each", node):
            for user in users[1:]:
                own = graph.op.Cast(node.inputs[0], **node.attributes)
                graph.set_input(user.node, user.slot, own)
