"""Constant()  =>  an initializer of the same name"""

from tiered import Graph, Node, PassContext, Skip, Tensor, function_pass


@function_pass(opt_level=1, matches=("Constant",))
def extract_constant_to_initializer(graph: Graph, ctx: PassContext) -> None:
    """Replace Constant nodes by initializers, the form that all tools treat as constant."""
    refusal = _refusal(graph)
    for node in graph.nodes_of("Constant"):
        tensor = refusal or _contents(node)
        if isinstance(tensor, Skip):
            ctx.skip(node, tensor)
        elif node.is_used:
            with graph.rewrite("Constant() => an initializer of the same name", node):
                graph.become_constant(node.output, tensor)


def _refusal(graph: Graph) -> Skip | None:
    if graph.root.is_function:
        return Skip("a local function has no initializers")
    if graph.model.ir_version < 4:
        return Skip("before IR 4 each initializer would be an input")
    return None


def _contents(node: Node) -> Tensor | Skip:
    tensor = node.constant_tensor()
    if tensor is None:
        return Skip("it has no single known value")
    if tensor.is_sparse:
        return Skip("it is sparse")
    if node.is_pinned:
        return Skip("training info or an annotation names it")
    return tensor
