"""An imported domain that nothing uses  =>  nothing"""

from collections.abc import Iterable

from tiered import Graph, Model, PassContext, module_pass


@module_pass(opt_level=1)
def remove_unused_opsets(model: Model, ctx: PassContext) -> None:
    """Remove unused opset imports of the model and of each local function.

    The default domain stays. The model also keeps the domains of its functions, those that they
    use, and those that its metadata mention.
    """
    used: dict[Graph, set[str]] = {graph: {""} for graph in (model.main, *model.functions)}
    for graph in model.graphs():
        used[graph.root].update(node.domain for node in graph.nodes)
    for function in model.functions:
        used[model.main] |= {function.domain, *used[function]}
    used[model.main].update(node.domain for node in model.training_nodes())
    for root, domains in used.items():
        for domain in [domain for domain in root.opset_imports if domain not in domains]:
            if not any(domain in text for text in _metadata(model)):
                model.set_opset(domain, None, root)


def _metadata(model: Model) -> Iterable[str]:
    """Yield the keys and the values of all metadata."""
    graphs = list(model.graphs())
    protos = (node.proto for graph in graphs for node in graph.nodes)
    for holder in (model.skeleton, *(graph.skeleton for graph in graphs), *protos):
        for entry in holder.metadata_props:
            yield entry.key
            yield entry.value
