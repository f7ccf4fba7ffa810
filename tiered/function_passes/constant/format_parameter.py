"""An initializer that is read n times  =>  n initializers, each read once"""

from tiered import Graph, PassContext, Skip, function_pass


@function_pass(opt_level=None, conflicts=("eliminate_duplicate_initializer",))
def format_parameter(graph: Graph, ctx: PassContext) -> None:
    """Make a separate initializer for each use of one: PPQ's format_parameter.

    A node that reads it twice reads two. The copies share the contents in memory until an edit,
    such as quantization, replaces them.
    """
    for value in graph.initializers:
        if value.n_users + value.is_graph_output < 2:
            continue
        if value.is_overridable:
            reason = Skip("{!r} is a graph input: callers may feed it", value.name)
            ctx.skip(value.users[0].node, reason)
            continue
        assert value.tensor is not None
        first = 0 if value.is_graph_output or value.pins else 1
        with graph.rewrite("an initializer that is read n times => n initializers", value):
            for node, slot in value.users[first:]:
                node.owner.set_input(node, slot, graph.constant(value.tensor, value.name))
