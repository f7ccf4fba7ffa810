"""An initializer without users  =>  nothing"""

from tiered import Graph, PassContext, function_pass


@function_pass(opt_level=0)
def eliminate_unused_initializer(graph: Graph, ctx: PassContext) -> None:
    """Drop unused initializers, but not one that is an input: callers would have to feed it."""
    for value in graph.initializers:
        if not value.is_used and not value.is_graph_input:
            with graph.rewrite("an initializer without users => nothing", value):
                graph.remove_constant(value)
