"""An initializer of a body of If, Loop or Scan  =>  one of the main graph"""

from typing import Final

from tiered import Graph, Model, PassContext, Skip, Value, module_pass

CAPTURING: Final = frozenset({"If", "Loop", "Scan"})
"""The operators whose bodies can capture values of the enclosing graphs."""


@module_pass(opt_level=1, matches=("body",))
def move_subgraph_initializer(model: Model, ctx: PassContext) -> None:
    """Move all constants to the main graph, where every body can capture them.

    Two branches may each have a `w`: a name that is not unique is replaced by a fresh one.
    """
    for graph in model.graphs():
        if graph.is_main or graph.is_function:
            continue
        for value in graph.initializers:
            if reason := _refusal(graph, value):
                ctx.skip(graph.parent_node, reason)
                continue
            with model.main.rewrite("an initializer of a body => one of the main graph", value):
                _move(value, graph, model.main)


def _refusal(graph: Graph, value: Value) -> Skip | None:
    """Return why an initializer of a body is not moved; None if it can be."""
    if graph.root.is_function:
        return Skip("a local function has no initializers")
    around: Graph | None = graph
    while around is not None and around.parent_node is not None:
        if around.parent_node.domain or around.parent_node.op_type not in CAPTURING:
            return Skip("a body of {} cannot capture values", around.parent_node.op_type)
        around = around.parent
    if graph.model.ir_version < 4:
        return Skip("before IR 4 each initializer would be an input")
    if value.tensor is not None and not value.tensor.size:
        # Where a body captures it, onnx's inference does not know that it is empty.
        return Skip("an empty tensor may be an absent operand")
    if value.is_graph_input:
        return Skip("it is an input default of the body")
    if value.is_graph_output:
        return Skip("it is an output of the body")
    if value.pins:
        return Skip("a quantization annotation refers to it")
    return None


def _move(value: Value, body: Graph, main: Graph) -> None:
    names = main.model.names
    if not names.is_unique(value.name):
        body.rename_value(value, names.fresh(value.name))
    body.move_constant(value, main)
