"""A node without users  =>  nothing"""

from typing import Final

from onnx.defs import OpSchema

from tiered import Graph, Node, PassContext, Skip, function_pass

# A BatchNormalization trains by having its further outputs. onnxruntime refuses an Attention that
# reads past keys and gives no present ones, and its MaxPool takes NaN otherwise without indices.
_ALL_OR_NONE: Final = frozenset({"Attention", "BatchNormalization", "MaxPool"})


@function_pass(opt_level=0, touches=("*",))
def eliminate_deadend(graph: Graph, ctx: PassContext) -> None:
    """Remove what reaches no output, and optional outputs without users.

    Bodies go before what they capture, so that one run finds all.
    """
    if graph.parent_node is None:
        _visit(graph, ctx)


def _visit(graph: Graph, ctx: PassContext) -> None:
    for node in reversed(graph.topological_order()):
        if node.is_used:
            for body in node.bodies:
                _visit(body, ctx)
            if unread := _unread_optional_outputs(node):
                with graph.rewrite("an optional output without users => absent", node):
                    graph.drop_outputs(node, unread)
        elif not any(node.outputs) and node.schema is None:
            ctx.skip(node, Skip("a node without outputs has side effects"))
        else:
            with graph.rewrite("a node without users => nothing", node):
                graph.remove_node(node)


def _unread_optional_outputs(node: Node) -> list[int]:
    if len(node.outputs) < 2:
        return []
    schema = node.schema
    if schema is None or node.op_type in _ALL_OR_NONE:
        return []
    return [
        index
        for index, value in enumerate(node.outputs)
        if value is not None
        and not value.is_used
        and index < len(schema.outputs)
        and schema.outputs[index].option == OpSchema.FormalParameterOption.Optional
    ]
