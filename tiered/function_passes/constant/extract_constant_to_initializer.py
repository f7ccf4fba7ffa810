"""Constant()  =>  an initializer of the same name"""

from tiered import Graph, PassContext, Skip, function_pass


@function_pass(opt_level=1)
def extract_constant_to_initializer(graph: Graph, ctx: PassContext) -> None:
    """Turn Constant nodes into initializers, the one form that all tools treat as constant."""
    for node in graph.nodes_of("Constant"):
        tensor = node.constant_tensor()
        if graph.root.is_function:
            ctx.skip(node, Skip("a local function has no initializers"))
        elif graph.model.ir_version < 4:
            ctx.skip(node, Skip("before IR 4 each initializer would be an input"))
        elif tensor is None:
            ctx.skip(node, Skip("the call of the function decides the value"))
        elif tensor.is_sparse:
            ctx.skip(node, Skip("it is sparse"))
        elif node.output.is_graph_output:
            ctx.skip(node, Skip("a graph output needs a node of its own"))
        else:
            with graph.rewrite("Constant() => an initializer of the same name", node):
                graph.become_constant(node.output, tensor)
