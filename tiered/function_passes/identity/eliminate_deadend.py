"""A node whose outputs nobody reads  =>  nothing"""

from onnx.defs import OpSchema

from tiered import Graph, Node, PassContext, function_pass


@function_pass(opt_level=0)
def eliminate_deadend(graph: Graph, ctx: PassContext) -> None:
    """Remove what reaches no output, and the optional outputs that nobody reads."""
    law = "a node whose outputs nobody reads => nothing"
    for node in reversed(graph.topological_order()):
        if not node.is_used:
            with graph.rewrite(law, node):
                graph.remove_node(node)
        elif unread := _unread_optional_outputs(node):
            with graph.rewrite("an optional output that nobody reads => absent", node):
                graph.drop_outputs(node, unread)


def _unread_optional_outputs(node: Node) -> list[int]:
    if len(node.outputs) < 2:
        return []
    schema = node.schema
    if schema is None or node.op_type == "BatchNormalization":
        # In training mode the running statistics are what makes it a training node.
        return []
    return [
        index
        for index, value in enumerate(node.outputs)
        if value is not None
        and not value.is_used
        and index < len(schema.outputs)
        and schema.outputs[index].option == OpSchema.FormalParameterOption.Optional
    ]
