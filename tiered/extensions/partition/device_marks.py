"""Devices and pipeline stages of nodes, as marks: `tiered.device` and `tiered.stage`.

A cut assigns a node and everything that it needs, unless an earlier cut assigned it already.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

import onnx

from tiered.extensions.partition.contraction import grouped
from tiered.extensions.partition.partitioner import Partition, with_constants
from tiered.extensions.partition.versions import check_metadata
from tiered.graph import Graph, Model, Node
from tiered.graph.core.marks import DEVICE, STAGE
from tiered.support.errors import ModelError, UsageError

CONFIGURATION: Final = "tiered"
"""The name of the device configuration that `device_proto` writes."""
CONFIGURATIONS_SINCE: Final = 11
"""The IR version from which on models have device configurations."""

T = TypeVar("T")


def mark_devices(
    model: Model,
    sharding: Mapping[str, str] | None = None,
    pipelining: Mapping[str, int] | None = None,
    *,
    fallback_device: str = "",
    propagate: bool = False,
) -> int:
    """Mark the nodes of the main graph with devices and pipeline stages; return how many changed.

    Args:
        model: the model, edited in place.
        sharding: the device by name of a node: the node and its ancestors are on it, but those of
            earlier entries.
        pipelining: the stage by name of a node, likewise; nodes after the last cut are of the stage
            after the largest one.
        fallback_device: the device of nodes without one; "" leaves them without.
        propagate: nodes without a device, between nodes of one device, are on it too.

    Raises:
        UsageError: there is no such node.
        ModelError: an edge leads to an earlier stage, or the IR version has no metadata of nodes.
    """
    check_metadata(model)
    graph = model.main
    devices = _assigned(graph, sharding or {})
    stages = _assigned(graph, pipelining or {})
    rest = max(pipelining.values()) + 1 if pipelining else None
    count = 0
    if propagate:
        devices = _between(graph, devices)
    with model.transaction():
        for node in graph.topological_order():
            if node.is_op("Constant"):
                continue
            before = node.metadata
            marks = dict(before)
            device = devices.get(node) or before.get(DEVICE) or fallback_device
            if device:
                marks[DEVICE] = device
            stage = stages.get(node, rest)
            if stage is not None:
                marks[STAGE] = str(stage)
            if marks != before:
                with graph.rewrite("a node  =>  the node, marked with its device", node):
                    graph.set_metadata(node, marks)
                count += 1
        check_stages(graph)
    return count


def _assigned(graph: Graph, cuts: Mapping[str, T]) -> dict[Node, T]:
    """Return what each node gets from the cuts: the ancestors of a cut node get its value too."""
    named = {node.label: node for node in graph.nodes}
    found: dict[Node, T] = {}
    for name, said in cuts.items():
        if name not in named:
            close = get_close_matches(name, named, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UsageError(f"the main graph has no node {name!r}{hint}")
        pending = [named[name]]
        while pending:
            node = pending.pop()
            if node not in found:
                found[node] = said
                pending += node.predecessors
    return found


def _between(graph: Graph, assigned: Mapping[Node, str]) -> dict[Node, str]:
    """Return devices with those of nodes between nodes of one device: no transfer is needed.

    Connected nodes without a device get the one that all marked producers and consumers around
    them have, if there are both.
    """
    known = dict(assigned)
    for node in graph.nodes:
        if node not in known and DEVICE in node.metadata:
            known[node] = node.metadata[DEVICE]
    found, seen = dict(known), set(known)
    for start in graph.topological_order():
        if start in seen or start.is_op("Constant"):
            continue
        seen.add(start)
        group, pending, above, below = [start], [start], set[str](), set[str]()
        while pending:
            node = pending.pop()
            for near, devices in ((node.predecessors, above), (node.successors, below)):
                for other in near:
                    if other in known:
                        devices.add(known[other])
                    elif other not in seen and not other.is_op("Constant"):
                        seen.add(other)
                        group.append(other)
                        pending.append(other)
        if above == below and len(above) == 1:
            found.update(dict.fromkeys(group, *above))
    return found


def check_stages(graph: Graph) -> None:
    """Raise if a pipeline stage reads the result of a later one.

    Raises:
        ModelError: a mark is no number, or an edge leads from a stage to an earlier one.
    """
    stages: dict[Node, int] = {}
    # The latest stage, with its node, among all ancestors: nodes without a stage pass it on.
    latest: dict[Node, tuple[int, Node]] = {}
    for node in graph.topological_order():
        before = [latest[source] for source in node.predecessors if source in latest]
        most = max(before, key=lambda pair: pair[0], default=None)
        text = node.metadata.get(STAGE)
        if text is not None:
            if not text.removeprefix("-").isdecimal():
                raise ModelError(
                    f"node {node.label!r} has {STAGE} {text!r}; expected a whole number"
                )
            stages[node] = int(text)
            if most is not None and most[0] > stages[node]:
                raise ModelError(
                    f"node {node.label!r} of stage {text} needs {most[1].label!r} of stage "
                    f"{most[0]}; expected stages that never decrease along edges: move a cut"
                )
            most = (stages[node], node)
        if most is not None:
            latest[node] = most


def device_partitions(model: Model) -> list[Partition]:
    """Return the partitions of the main graph by device and stage; their target is both.

    Nodes without a mark belong to none. `split` makes separate models of them.
    """
    targets: dict[Node, str] = {}
    for node in model.main.nodes:
        metadata = node.metadata
        said = [metadata.get(DEVICE, ""), metadata.get(STAGE, "")]
        if any(said) and not node.is_op("Constant"):
            targets[node] = "_".join(part for part in said if part)
    groups = grouped(model.main, targets)
    return [
        Partition(at, with_constants(group.nodes), group.target) for at, group in enumerate(groups)
    ]


def device_proto(model: Model) -> onnx.ModelProto:
    """Return the model with the device configuration that ONNX defines for it.

    `configuration` of the model lists the devices. `device_configurations` of a node has its
    pipeline stage, and the device of each of its outputs.

    Raises:
        ModelError: the IR version is older than 11, or a stage is no number or reads a later one.
    """
    if model.ir_version < CONFIGURATIONS_SINCE:
        raise ModelError(
            f"{model.label} has IR version {model.ir_version}, and device configurations need "
            f"{CONFIGURATIONS_SINCE}: `model.set_ir_version({CONFIGURATIONS_SINCE})` or "
            f"`tiered convert --ir {CONFIGURATIONS_SINCE}`"
        )
    check_stages(model.main)
    proto = model.to_proto()
    marks = [{entry.key: entry.value for entry in n.metadata_props} for n in proto.graph.node]
    names = list(dict.fromkeys(mark[DEVICE] for mark in marks if mark.get(DEVICE)))
    kept = [entry for entry in proto.configuration if entry.name != CONFIGURATION]
    del proto.configuration[:]
    proto.configuration.extend(kept)
    proto.configuration.add(name=CONFIGURATION, num_devices=max(len(names), 1), device=names)
    for node, mark in zip(proto.graph.node, marks, strict=True):
        if DEVICE not in mark and STAGE not in mark:
            continue
        entry = node.device_configurations.add(configuration_id=CONFIGURATION)
        if STAGE in mark:
            entry.pipeline_stage = int(mark[STAGE])
        for output in node.output if mark.get(DEVICE) else ():
            if output:
                entry.sharding_spec.add(tensor_name=output, device=[names.index(mark[DEVICE])])
    return proto
