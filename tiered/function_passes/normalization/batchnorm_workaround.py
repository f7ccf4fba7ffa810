"""BatchNormalization(x, ..., training_mode=0)  =>  BatchNormalization(x, ...), one output"""

from tiered import Graph, Node, PassContext, Skip, function_pass


@function_pass(opt_level=0, matches=("BatchNormalization",))
def batchnorm_workaround(graph: Graph, ctx: PassContext) -> None:
    """Remove outputs and attributes that only training needs.

    Outputs without users are removed, and attributes with their default value. Before opset 14 the
    outputs select training mode, so they stay.
    """
    law = "BatchNormalization(x, ..., training_mode=0) => BatchNormalization(x, ...), one output"
    for node in graph.nodes_of("BatchNormalization"):
        if reason := _refusal(node):
            ctx.skip(node, reason)
            continue
        with graph.rewrite(law, node):
            if len(node.outputs) > 1:
                graph.drop_outputs(node, range(1, len(node.outputs)))
            for name in ("training_mode", "spatial"):
                if node.has_attr(name):
                    graph.set_attribute(node, name, None)


def _refusal(node: Node) -> Skip | None:
    """Return why a node is not changed."""
    if node.version < 7:
        return Skip("before opset 7 is_test selects training mode")
    if node.has_references:
        return Skip("{}", node.parameter_reason)
    if node.attr("training_mode", 0):
        return Skip("it is in training mode")
    if not node.attr("spatial", True):
        return Skip("its statistics are not per channel")
    if node.version < 14 and len(node.outputs) > 1:
        return Skip("before opset 14 its outputs put it in training mode")
    if node.used_outputs.keys() - {0}:
        return Skip("a secondary output is used")
    return None
