"""The graph that onnxruntime executes, beside that of the file.

A node that onnxruntime made keeps the name of an output: by it its place in the file is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import onnx

from tiered.extensions.measurement.profile.layers import layer_of
from tiered.graph.core.provenance import ORIGINS

INSERTED: Final = frozenset(
    {"Cast", "MemcpyFromHost", "MemcpyToHost", "ReorderInput", "ReorderOutput", "Transpose"}
)
"""Operators that onnxruntime inserts for its kernels: nodes of these that no file has."""

_BLOCKED: Final = re.compile(r"(.+)_nchwc(?:_\d+)?")
"""The name of a node in onnxruntime's blocked layout: that of the tensor which it computes."""
_INLINED: Final = "_inlfunc_"
"""How names of nodes begin that onnxruntime took out of a local function."""


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph, and those of its bodies."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from all_nodes(body)


def named(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with a name of its own for each node; the same if all have one."""
    names = [node.name for node in all_nodes(proto.graph)]
    if "" not in names and len(set(names)) == len(names):
        return proto
    own = onnx.ModelProto()
    own.CopyFrom(proto)
    taken, used = set(names), set[str]()
    for place, node in enumerate(all_nodes(own.graph)):
        if node.name and node.name not in used:
            used.add(node.name)
            continue
        base = node.name or next(filter(None, node.output), f"{node.op_type}_{place}")
        free = (f"{base}{end}" for end in ("", *(f"_{number}" for number in range(1, place + 3))))
        node.name = next((name for name in free if name not in taken), f"{base}_node_{place}")
        taken.add(node.name)
        used.add(node.name)
    return own


@dataclass(frozen=True)
class ExecutedPlace:
    """Where a node that was executed is from.

    Attributes:
        layer: the path of the module that it is part of, outermost first.
        outputs, inputs: the names of its tensors.
        origins: the names of the nodes of the original that it was made from, as far as written.
        is_inserted: whether onnxruntime inserted it for its kernels.
    """

    layer: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    is_inserted: bool = False


class ExecutedPlaces:
    """Finds nodes that were executed in the graph of onnxruntime, and in that of the file.

    Args:
        file: the model of the file, its nodes named.
        executed: the model after onnxruntime's own optimisations, None if unknown.
    """

    def __init__(self, file: onnx.ModelProto, executed: onnx.ModelProto | None) -> None:
        nodes = [*all_nodes(file.graph)]
        functions = [node for function in file.functions for node in function.node]
        self._kinds = {(node.name, node.op_type) for node in (*nodes, *functions)}
        self._by_name = {node.name: node for node in nodes if node.name}
        self._by_output = {name: node for node in nodes for name in node.output if name}
        self._executed: Mapping[str, onnx.NodeProto] = (
            self._by_name
            if executed is None
            else {node.name: node for node in all_nodes(executed.graph) if node.name}
        )

    def of(self, name: str, op_type: str) -> ExecutedPlace:
        """Return the place of a node that was executed."""
        node = self._executed.get(name)
        if node is None or node.op_type != op_type:
            node = self._by_name.get(name)
        outputs = () if node is None else tuple(filter(None, node.output))
        inputs = () if node is None else tuple(filter(None, node.input))
        source = self._by_name.get(name)
        blocked = _BLOCKED.fullmatch(name)
        for output in (*outputs, *([] if blocked is None else [blocked[1]])):
            source = source or self._by_output.get(output)
        return ExecutedPlace(
            layer_of(source if source is not None else node, outputs),
            outputs,
            inputs,
            () if source is None else _origins(source),
            self._is_inserted(name, op_type),
        )

    def _is_inserted(self, name: str, op_type: str) -> bool:
        is_known = (name, op_type) in self._kinds or name.startswith(_INLINED)
        return op_type in INSERTED and not is_known


def _origins(node: onnx.NodeProto) -> tuple[str, ...]:
    texts = [entry.value for entry in node.metadata_props if entry.key == ORIGINS]
    return tuple(name for text in texts for name in text.split("; ") if name)
