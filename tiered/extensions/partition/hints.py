"""Hints for compilers as metadata: transfers that overlap computation, and tile layouts.

No runtime here reads them; a compiler for a chip may.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal

import onnx

from tiered.extensions.partition.versions import check_metadata
from tiered.graph import Graph, Model, Node, Value
from tiered.support.errors import UsageError, did_you_mean

OVERLAP: Final = "tiered.overlap_io"
"""Metadata of a graph input, `host_load`, or of a graph output, `host_store`."""
REMAP: Final = "tiered.remap"
"""Metadata of a node: `outputs` or `inputs`, which a compiler may lay out again."""

RemapMode = Literal["after_matmul", "after_slice", "before_add"]


def mark_overlap(model: Model, names: Sequence[str] = ()) -> int:
    """Mark inputs and outputs that are transferred while others are computed.

    Args:
        model: the model, edited in place.
        names: inputs and outputs; all by default, but inputs with a default.

    Returns:
        how many marks are new.

    Raises:
        UsageError: the model has no such input or output.
        ModelError: the IR version has no metadata.
    """
    check_metadata(model, instead="")
    graph = model.main
    loaded = [value for value in graph.inputs if names or not value.is_overridable]
    known = {value.name for value in (*loaded, *graph.outputs)}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"overlap_io: the model has no input or output {name!r}{hint}")
    chosen = set(names) or known
    before = (*graph.input_infos, *graph.output_infos)
    sources = chosen & {value.name for value in loaded}
    loads = _marked(graph.inputs, graph.input_infos, sources, "host_load")
    stores = _marked(graph.outputs, graph.output_infos, chosen, "host_store")
    count = sum(one is not other for one, other in zip(before, (*loads, *stores), strict=True))
    if count:
        graph.set_graph_inputs(graph.inputs, loads)
        graph.set_graph_outputs(graph.outputs, stores)
    return count


def _marked(
    values: Sequence[Value],
    infos: Sequence[onnx.ValueInfoProto],
    names: Collection[str],
    text: str,
) -> list[onnx.ValueInfoProto]:
    """Return the declarations, those of the named values with a mark."""
    made = []
    for value, info in zip(values, infos, strict=True):
        before = {entry.key: entry.value for entry in info.metadata_props}
        if value.name not in names or before.get(OVERLAP) == text:
            made.append(info)
            continue
        changed = onnx.ValueInfoProto()
        changed.CopyFrom(info)
        del changed.metadata_props[:]
        for key, said in {**before, OVERLAP: text}.items():
            changed.metadata_props.add(key=key, value=said)
        made.append(changed)
    return made


def mark_remaps(model: Model, modes: Sequence[RemapMode]) -> int:
    """Mark where a compiler may lay out a tensor again; return how many marks are new.

    Args:
        model: the model, edited in place; nodes of bodies and local functions are marked too.
        modes: `after_matmul` and `after_slice`, the output of each such node; `before_add`, the
            operands of an Add whose sum goes to Softmax, as the mask of an attention.

    Raises:
        ModelError: the IR version has no metadata.
    """
    check_metadata(model, instead="")
    count = 0
    for graph in model.graphs():
        for mode in modes:
            count += sum(_mark(graph, node, mode) for node in graph.nodes if _MODES[mode](node))
    return count


def _mark(graph: Graph, node: Node, mode: RemapMode) -> bool:
    text = "inputs" if mode == "before_add" else "outputs"
    before = node.metadata
    if before.get(REMAP) == text:
        return False
    with graph.rewrite("a node  =>  the node, marked for another tile layout", node):
        graph.set_metadata(node, {**before, REMAP: text})
    return True


def _adds_mask(node: Node) -> bool:
    """Return whether a sum goes to Softmax."""
    return node.is_op("Add") and any(user.is_op("Softmax") for user in node.output.readers)


_MODES: Final[Mapping[RemapMode, Callable[[Node], bool]]] = {
    "after_matmul": lambda node: node.is_op("MatMul"),
    "after_slice": lambda node: node.is_op("Slice"),
    "before_add": _adds_mask,
}
