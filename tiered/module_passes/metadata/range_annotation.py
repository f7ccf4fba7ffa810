"""A node whose result is of integers  =>  the node, with their type in its metadata"""

from typing import Final

from tiered import Model, Node, PassContext, Skip, integer_types, module_pass
from tiered.graph.core.marks import METADATA_SINCE

_KEY: Final = "tiered.dtype"


@module_pass(opt_level=None, required=("infer_shapes",), touches=("*",))
def range_annotation(model: Model, ctx: PassContext, *, remove: bool = False) -> None:
    """Write the integer type of each first result: `tiered.dtype` is "int3", "uint5", "bipolar".

    Results that are not proven to be integers lose an annotation of an earlier run.

    Args:
        remove: remove all annotations instead.
    """
    types = model.analysis(integer_types)
    for graph in model.graphs():
        for node in graph.topological_order():
            value = next(iter(node.outputs), None)
            found = None if value is None or remove else types[value]
            before = node.metadata
            entries = {key: text for key, text in before.items() if key != _KEY}
            if found is not None:
                entries[_KEY] = found.name
            if entries == before:
                continue
            if model.ir_version < METADATA_SINCE:
                ctx.skip(node, Skip("nodes have no metadata before IR {}", METADATA_SINCE))
                continue
            _write(node, entries)


def _write(node: Node, entries: dict[str, str]) -> None:
    graph = node.owner
    with graph.rewrite("a node => the node with the type of its integers", node):
        graph.set_metadata(node, entries)
