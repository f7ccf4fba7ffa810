"""A node with a missing or duplicate name  =>  a unique name"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0)
def unique_name_for_nodes(model: Model, ctx: PassContext, *, unnamed: bool = True) -> None:
    """Make node names unique, also in bodies and local functions: onnxruntime rejects duplicates.

    The first node keeps a duplicate name. Names of values are not changed: some are the interface.

    Args:
        unnamed: also name unnamed nodes; runtimes accept these, and names take space.
    """
    taken: set[str] = set()
    for graph in model.graphs():
        for node in graph.nodes:
            name = node.name
            if not name and not unnamed:
                continue
            if not name or name in taken:
                graph.rename_node(node, model.node_names.fresh(name or node.op_type))
                name = node.name
            taken.add(name)
