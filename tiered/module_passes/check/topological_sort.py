"""Nodes in any order  =>  producers first, or an error that names the cycle"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0, analysis=True)
def topological_sort(model: Model, ctx: PassContext) -> None:
    """Check that every graph has a topological order.

    The view is a graph, not a list: a model is always saved in a stable topological order. So this
    pass edits nothing; it reports how many nodes move.

    Raises:
        ModelError: a graph has a cycle.
    """
    for graph in model.graphs():
        order = graph.topological_order()
        moved = sum(a is not b for a, b in zip(order, graph.nodes, strict=True))
        if moved:
            ctx.remark(f"{graph.name}: {moved} of {len(order)} nodes get another place")
