"""Nodes in any order  =>  producers first, or an error that names the cycle"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0, analysis=True)
def topological_sort(model: Model, ctx: PassContext) -> None:
    """Make sure that every graph has an order in which each value is there before it is read.

    The view holds a graph, not a list: a model is always written in its topological order, stable
    where that leaves a choice. So there is nothing to edit, only to find out.

    Raises:
        ModelError: a graph has a cycle.
    """
    for graph in model.graphs():
        order = graph.topological_order()
        moved = sum(a is not b for a, b in zip(order, graph.nodes, strict=True))
        if moved:
            ctx.remark(f"{graph.name}: {moved} of {len(order)} nodes get another place")
