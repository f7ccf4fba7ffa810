"""A node without a name, or with that of another  =>  a name of its own"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0)
def unique_name_for_nodes(model: Model, ctx: PassContext, *, unnamed: bool = True) -> None:
    """Name every node, in bodies and local functions too: onnxruntime refuses duplicates.

    The first bearer keeps a name that several have. Values keep theirs: those of inputs and outputs
    are the interface.

    Args:
        unnamed: also name nodes without a name; every runtime takes them, and a name is bytes.
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
