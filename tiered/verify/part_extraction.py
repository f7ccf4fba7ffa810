"""Extraction of a part of a model: a model of its own, with only the weights that it needs.

Verification, the reference check, comparison by layers and bundles all use it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import onnx

from tiered.graph.core.tensor import Tensor
from tiered.graph.io.protos import nodes_of

Types = Mapping[str, onnx.TypeProto]
Weight = onnx.TensorProto | onnx.SparseTensorProto | Tensor
FunctionKey = tuple[str, str, str]


@dataclass
class GraphPart:
    """The nodes of a main graph by number, with use lists by name.

    Attributes:
        frame: the model without its main graph: versions and local functions.
        nodes: by number; of a file, that is their place.
        inputs, outputs: of the graph.
        known: other declared types.
        weights: by name; weights on disk stay there.
        reads: the values that each node reads, in its bodies too.
        producer: the node that produces a value.
        consumers: the nodes that read a value.
    """

    frame: onnx.ModelProto
    nodes: dict[int, onnx.NodeProto]
    inputs: Mapping[str, onnx.ValueInfoProto]
    outputs: Mapping[str, onnx.ValueInfoProto]
    weights: dict[str, Weight]
    known: Mapping[str, onnx.ValueInfoProto] = field(default_factory=dict)
    name: str = "part"
    reads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    producer: dict[str, int] = field(default_factory=dict)
    consumers: dict[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, proto: onnx.ModelProto) -> GraphPart:
        """Return a whole model as a part."""
        graph = proto.graph
        weights: dict[str, Weight] = {tensor.name: tensor for tensor in graph.initializer}
        weights.update((tensor.values.name, tensor) for tensor in graph.sparse_initializer)
        frame = onnx.ModelProto(ir_version=proto.ir_version)
        frame.opset_import.extend(proto.opset_import)
        frame.functions.extend(proto.functions)
        made = cls(
            frame,
            {},
            {info.name: info for info in graph.input},
            {info.name: info for info in graph.output},
            weights,
            {info.name: info for info in graph.value_info},
            graph.name or "part",
        )
        made.exchange((), dict(enumerate(graph.node)))
        return made

    def copy(self) -> GraphPart:
        """Return a copy that shares the nodes."""
        return replace(
            self,
            nodes=dict(self.nodes),
            weights=dict(self.weights),
            reads=dict(self.reads),
            producer=dict(self.producer),
            consumers=dict(self.consumers),
        )

    def exchange(self, removed: Iterable[int], added: Mapping[int, onnx.NodeProto]) -> None:
        """Remove nodes and add others."""
        readers: dict[str, set[int]] = {}
        for number in removed:
            for name in self.reads.pop(number):
                readers.setdefault(name, {*self.consumers.get(name, ())}).discard(number)
            for name in self.nodes.pop(number).output:
                if self.producer.get(name) == number:
                    del self.producer[name]
        for number, node in added.items():
            self.nodes[number] = node
            self.reads[number] = names = tuple(dict.fromkeys(names_read(node)))
            for name in names:
                if name not in readers:
                    readers[name] = {*self.consumers.get(name, ())}
                readers[name].add(number)
            self.producer.update((name, number) for name in node.output if name)
        for name, numbers in readers.items():
            self.consumers[name] = frozenset(numbers)

    def only(self, nodes: Collection[int]) -> GraphPart:
        """Return the part of some of the nodes."""
        made = replace(self, nodes={}, reads={}, producer={}, consumers={})
        made.exchange((), {at: self.nodes[at] for at in nodes})
        return made

    def around(self, names: Iterable[str], steps: int) -> set[int]:
        """Return the nodes that produce or read the named values, and nodes some steps away."""
        return self.grown({self.producer[name] for name in names if name in self.producer}, steps)

    def grown(self, nodes: Collection[int], steps: int) -> set[int]:
        """Return nodes, those up to some steps away, and the Constants that they read."""
        found = set(nodes)
        frontier = set(found)
        for _ in range(steps):
            frontier = {other for at in frontier for other in self._neighbours(at)} - found
            found |= frontier
        return found | self._constants(found)

    def everything(self) -> set[int]:
        return set(self.nodes)

    def _neighbours(self, at: int) -> Iterator[int]:
        yield from (self.producer[name] for name in self.reads[at] if name in self.producer)
        for name in self.nodes[at].output:
            yield from self.consumers.get(name, ())

    def _constants(self, nodes: Collection[int]) -> set[int]:
        """Return the Constant nodes that others read."""
        read = {name for at in nodes for name in self.reads[at]}
        producers = {self.producer[name] for name in read if name in self.producer}
        return {at for at in producers if self.nodes[at].op_type == "Constant"}

    def needed(self, names: Iterable[str], known: Collection[str] = ()) -> set[int]:
        """Return the nodes that compute the named values from the known ones."""
        found: set[int] = set()
        pending = [name for name in names if name in self.producer and name not in known]
        while pending:
            at = self.producer[pending.pop()]
            if at not in found:
                found.add(at)
                pending += (n for n in self.reads[at] if n in self.producer and n not in known)
        return found

    def border(self, nodes: Collection[int], results: Iterable[str] = ()) -> list[str]:
        """Return the values that nodes or results read from outside, without the weights.

        A weight that is also a graph input is a default, and no constant.
        """
        read = dict.fromkeys(name for at in sorted(nodes) for name in self.reads[at])
        read.update(dict.fromkeys(results))
        outside = (name for name in read if self.producer.get(name) not in nodes)
        return [name for name in outside if name not in self.weights or name in self.inputs]

    def results(self, nodes: Collection[int]) -> list[str]:
        """Return the values that nodes produce and that are read outside, or are outputs."""
        return [
            name
            for at in sorted(nodes)
            for name in self.nodes[at].output
            if self.is_read_outside(name, nodes)
        ]

    def is_read_outside(self, name: str, nodes: Collection[int]) -> bool:
        """Return whether a value is an output, or a node outside of `nodes` reads it."""
        readers = self.consumers.get(name, ())
        return name in self.outputs or any(reader not in nodes for reader in readers)

    def has(self, name: str) -> bool:
        """Return whether there is a value of a name."""
        return name in self.producer or name in self.inputs or name in self.weights

    def array(self, name: str, folder: str = "") -> Any:
        """Return the numbers of a weight; `folder` is where the external data of a proto is."""
        weight = self.weights[name]
        held = weight if isinstance(weight, Tensor) else Tensor(weight, folder=folder)
        return held.numpy()

    def in_order(self, nodes: Collection[int]) -> list[int]:
        """Return nodes in topological order; by number where that leaves a choice."""
        ordered: dict[int, None] = {}
        opened: set[int] = set()
        pending = sorted(nodes, reverse=True)
        while pending:
            at = pending[-1]
            before = [self.producer[name] for name in self.reads[at] if name in self.producer]
            waiting = [b for b in before if b in nodes and b not in ordered]
            if at in opened or not waiting:
                ordered.setdefault(pending.pop())
            else:
                opened.add(at)
                pending += sorted(waiting, reverse=True)
        return list(ordered)

    @cached_property
    def callees(self) -> dict[FunctionKey, onnx.FunctionProto]:
        """The local functions, each after those that it calls: onnx.reference needs that."""
        functions = {(f.domain, f.name, f.overload): f for f in self.frame.functions}
        ordered: dict[FunctionKey, onnx.FunctionProto] = {}
        pending, seen = [(word, False) for word in reversed(functions)], set[FunctionKey]()
        while pending:
            word, is_ready = pending.pop()
            if is_ready:
                ordered[word] = functions[word]
            if word in seen or word not in functions:
                continue
            seen.add(word)
            pending.append((word, True))
            inner = {call for node in functions[word].node for call in calls(node)}
            pending += [(call, False) for call in sorted(inner - {word})]
        return ordered


def cut(
    part: GraphPart,
    nodes: Collection[int],
    types: Types,
    results: Collection[str] = (),
    reads: Sequence[str] | None = None,
) -> onnx.ModelProto:
    """Return a model of some nodes; the values that they read from outside are its inputs.

    Args:
        part: the model.
        nodes: the numbers of the nodes that stay.
        types: of the inputs and outputs that have no declaration.
        results: the outputs; by default the values read outside.
        reads: its inputs, in this order; by default the model's inputs, then the others.
    """
    made = onnx.ModelProto()
    made.CopyFrom(part.frame)
    del made.functions[:]
    made.functions.extend(_called(part, nodes))
    graph = made.graph
    graph.name = part.name
    graph.node.extend(part.nodes[at] for at in part.in_order(nodes))
    results = list(results) or part.results(nodes)
    used = {name for at in nodes for name in part.reads[at]}
    used.update(results)
    if reads is None:
        border = part.border(nodes, results)
        given = [name for name in part.inputs if name in used]
        reads = [*given, *sorted({*border} - {*given})]
    graph.input.extend(_info(part, name, types) for name in reads)
    graph.output.extend(_info(part, name, types) for name in results)
    for name, weight in part.weights.items():
        if name in used:
            _add_weight(graph, name, weight)
    shown = {info.name for info in (*graph.input, *graph.output)}
    inside = used | {name for at in nodes for name in part.nodes[at].output}
    graph.value_info.extend(
        info for name, info in part.known.items() if name in inside and name not in shown
    )
    return made


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the values that a node reads, and those that its bodies capture."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for body in (*attribute.graphs, *((attribute.g,) if attribute.HasField("g") else ())):
            own = {info.name for info in body.input}
            own.update(tensor.name for tensor in body.initializer)
            own.update(tensor.values.name for tensor in body.sparse_initializer)
            own.update(name for inner in body.node for name in inner.output)
            inner_reads = (name for inner in body.node for name in names_read(inner))
            outputs = (info.name for info in body.output)
            yield from (name for name in (*inner_reads, *outputs) if name not in own)


def calls(node: onnx.NodeProto) -> Iterator[FunctionKey]:
    """Yield the functions that a node may call, in its bodies too."""
    holder = onnx.ModelProto()
    holder.graph.node.append(node)
    for inner in nodes_of(holder):
        yield inner.domain, inner.op_type, inner.overload


def tapped(proto: onnx.ModelProto, names: Iterable[str], types: Types) -> onnx.ModelProto:
    """Return the model with other outputs, and only the nodes that they need."""
    part = GraphPart.of(proto)
    wanted = list(dict.fromkeys(names))
    return cut(part, part.needed(wanted), types, wanted)


def _info(part: GraphPart, name: str, types: Types) -> onnx.ValueInfoProto:
    for infos in (part.inputs, part.outputs, part.known):
        if name in infos and infos[name].HasField("type"):
            return onnx.ValueInfoProto(name=name, type=infos[name].type)
    return onnx.ValueInfoProto(name=name, type=types.get(name))


def _add_weight(graph: onnx.GraphProto, name: str, weight: Weight) -> None:
    stored = weight
    if isinstance(stored, Tensor):
        sparse = stored.proto if stored.is_sparse else None
        stored = stored.to_proto(name) if sparse is None else sparse
    if isinstance(stored, onnx.SparseTensorProto):
        graph.sparse_initializer.append(stored)
        graph.sparse_initializer[-1].values.name = name
    else:
        graph.initializer.append(stored)


def _called(part: GraphPart, nodes: Iterable[int]) -> list[onnx.FunctionProto]:
    """Return the local functions that nodes call, directly or not."""
    if not part.frame.functions:
        return []
    found: set[FunctionKey] = set()
    pending = [call for at in nodes for call in calls(part.nodes[at])]
    while pending:
        called = pending.pop()
        if called in part.callees and called not in found:
            found.add(called)
            pending += (call for node in part.callees[called].node for call in calls(node))
    return [function for word, function in part.callees.items() if word in found]
