"""Cutting a part out of a model: a model of its own, with only the weights that it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import onnx

Types = Mapping[str, onnx.TypeProto]


class Part:
    """The nodes of a main graph, by their places, and what each of them reads and makes."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        graph = proto.graph
        self.reads = [tuple(dict.fromkeys(names_read(node))) for node in graph.node]
        self.maker = {
            name: at for at, node in enumerate(graph.node) for name in node.output if name
        }
        self.readers: dict[str, list[int]] = {}
        for at, names in enumerate(self.reads):
            for name in names:
                self.readers.setdefault(name, []).append(at)
        self.weights = {tensor.name for tensor in graph.initializer}
        self.weights.update(tensor.values.name for tensor in graph.sparse_initializer)
        self.outputs = [value.name for value in graph.output]

    def around(self, names: Iterable[str], steps: int) -> set[int]:
        """Return the nodes that make or read the named values, and those some steps away."""
        found = {self.maker[name] for name in names if name in self.maker}
        frontier = set(found)
        for _ in range(steps):
            frontier = {other for at in frontier for other in self._neighbours(at)} - found
            found |= frontier
        return found | self._constants(found)

    def everything(self) -> set[int]:
        return set(range(len(self.reads)))

    def _neighbours(self, at: int) -> Iterator[int]:
        yield from (self.maker[name] for name in self.reads[at] if name in self.maker)
        for name in self.proto.graph.node[at].output:
            yield from self.readers.get(name, ())

    def _constants(self, nodes: Collection[int]) -> set[int]:
        """Return the Constant nodes that others read, whose values belong to the law."""
        made = (self.maker[name] for at in nodes for name in self.reads[at] if name in self.maker)
        return {at for at in made if self.proto.graph.node[at].op_type == "Constant"}

    def needed(self, names: Iterable[str]) -> set[int]:
        """Return the nodes that it takes to compute the named values."""
        found: set[int] = set()
        pending = [self.maker[name] for name in names if name in self.maker]
        while pending:
            at = pending.pop()
            if at not in found:
                found.add(at)
                pending += (self.maker[name] for name in self.reads[at] if name in self.maker)
        return found

    def border(self, nodes: Collection[int]) -> list[str]:
        """Return the values that nodes read from outside, weights not among them."""
        read = dict.fromkeys(name for at in sorted(nodes) for name in self.reads[at])
        return [
            name
            for name in read
            if name not in self.weights and self.maker.get(name) not in nodes
        ]

    def results(self, nodes: Collection[int]) -> list[str]:
        """Return the values that nodes make and that are read outside, or are outputs."""
        outputs = set(self.outputs)
        return [
            name
            for at in sorted(nodes)
            for name in self.proto.graph.node[at].output
            if name and (name in outputs or any(r not in nodes for r in self.readers.get(name, ())))
        ]


def cut(
    part: Part, nodes: Collection[int], types: Types, results: Collection[str] = ()
) -> onnx.ModelProto:
    """Return a model of some nodes: what they read from outside is its inputs.

    Args:
        part: the model.
        nodes: the places of the nodes that stay.
        types: of the values that become inputs or outputs.
        results: the outputs; by default what is read outside.
    """
    source = part.proto
    made = onnx.ModelProto()
    made.CopyFrom(_without_graph(source))
    graph = made.graph
    graph.name = source.graph.name or "part"
    graph.node.extend(source.graph.node[at] for at in sorted(nodes))
    used = {name for at in nodes for name in part.reads[at]}
    results = list(results) or part.results(nodes)
    used.update(results)
    graph.initializer.extend(t for t in source.graph.initializer if t.name in used)
    graph.sparse_initializer.extend(
        t for t in source.graph.sparse_initializer if t.values.name in used
    )
    declared = {info.name: info for info in (*source.graph.input, *source.graph.output)}
    known = {info.name: info for info in source.graph.value_info}
    border = {*part.border(nodes), *(name for name in results if part.maker.get(name) not in nodes)}
    graph.input.extend(info for info in source.graph.input if info.name in used)
    given = {info.name for info in graph.input}
    for name in sorted(border - given - part.weights):
        graph.input.append(_info(name, declared, known, types))
    graph.output.extend(_info(name, declared, known, types) for name in results)
    shown = {info.name for info in (*graph.input, *graph.output)}
    inside = used | {name for at in nodes for name in source.graph.node[at].output}
    graph.value_info.extend(
        info for info in source.graph.value_info if info.name in inside - shown
    )
    made.functions.extend(_called(source, graph.node))
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


def _without_graph(source: onnx.ModelProto) -> onnx.ModelProto:
    """Return what a part of a model keeps beside its graph and functions."""
    made = onnx.ModelProto(ir_version=source.ir_version)
    made.opset_import.extend(source.opset_import)
    return made


def _info(
    name: str,
    declared: Mapping[str, onnx.ValueInfoProto],
    known: Mapping[str, onnx.ValueInfoProto],
    types: Types,
) -> onnx.ValueInfoProto:
    for infos in (declared, known):
        if name in infos:
            return infos[name]
    return onnx.ValueInfoProto(name=name, type=types.get(name))


def _called(
    source: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]
) -> list[onnx.FunctionProto]:
    """Return the local functions that nodes call, directly or not, in the order of the model."""
    by_id = {(f.domain, f.name, f.overload): f for f in source.functions}
    found: set[tuple[str, str, str]] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        called = (node.domain, node.op_type, node.overload)
        if called in by_id and called not in found:
            found.add(called)
            pending += by_id[called].node
        for attribute in node.attribute:
            for body in (*attribute.graphs, *((attribute.g,) if attribute.HasField("g") else ())):
                pending += body.node
    return [function for id_, function in by_id.items() if id_ in found]


def tapped(proto: onnx.ModelProto, names: Iterable[str], types: Types) -> onnx.ModelProto:
    """Return the model with more outputs, and without what only other outputs need."""
    part = Part(proto)
    wanted = list(dict.fromkeys(names))
    return cut(part, part.needed(wanted), types, wanted)
