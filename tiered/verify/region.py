"""What passes changed, cut out of the models before and after: its nodes, with their borders.

Nodes are compared by what they say, not by what made them, so that any two models will do. A border
is a value that nodes inside read and nodes outside compute, or the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import onnx

from tiered.runtime.deviations import nodes_of


@dataclass(frozen=True)
class Region:
    """The changed nodes before and after.

    Attributes:
        before, after: models of the changed nodes alone, whose inputs are the borders that they
            read, without types: what is fed says.
        reads: the borders that either reads.
        writes: the borders that both compute, in order.
    """

    before: onnx.ModelProto
    after: onnx.ModelProto
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def changed_region(before: onnx.ModelProto, after: onnx.ModelProto) -> Region | None:
    """Return what differs between two models of one interface, None if nothing can be cut out."""
    sides = _Side(before), _Side(after)
    stale = _changed_constants(*sides) | _changed_functions(before, after)
    kept = {_key(node) for node in before.graph.node} & {_key(node) for node in after.graph.node}
    inside = [
        [n for n in side.nodes if _key(n) not in kept or stale & {*_reads(n), *_calls(n)}]
        for side in sides
    ]
    writes = _crossing(sides, inside)
    if not writes:
        return None
    reads: dict[str, None] = {}
    models = []
    for side, nodes in zip(sides, inside, strict=True):
        needed = side.borders(nodes, writes)
        reads.update(dict.fromkeys(needed))
        models.append(side.cut(nodes, needed, writes))
    return Region(models[0], models[1], tuple(reads), tuple(writes))


def with_types(model: onnx.ModelProto, feeds: dict[str, object]) -> onnx.ModelProto:
    """Return a cut model whose inputs have the types of what is fed to them."""
    from tiered.runtime.dtypes import type_proto_of

    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for info in typed.graph.input:
        info.type.CopyFrom(type_proto_of(feeds[info.name]))
    return typed


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return a model that gives inner values as well; those that it gives already stay as they are.

    The weights are shared with the model that was given.
    """
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    known = {value.name for value in probe.graph.output}
    for name in names:
        if name not in known:
            probe.graph.output.add(name=name)
    return probe


class _Side:
    """One of the two models."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.nodes = list(model.graph.node)
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.inputs = [info.name for info in model.graph.input]
        self.outputs = [info.name for info in model.graph.output]

    def borders(self, nodes: Sequence[onnx.NodeProto], writes: Iterable[str]) -> list[str]:
        """Return what nodes, and the borders themselves, take from outside, but for constants."""
        made = {name for node in nodes for name in node.output}
        read = [*(name for node in nodes for name in _reads(node)), *writes]
        outside = (name for name in dict.fromkeys(read) if name and name not in made)
        return [name for name in outside if name not in self.constants or name in self.inputs]

    def cut(
        self, nodes: Sequence[onnx.NodeProto], needed: Sequence[str], writes: Sequence[str]
    ) -> onnx.ModelProto:
        """Return a model of the nodes."""
        cut = onnx.ModelProto(ir_version=self.model.ir_version)
        cut.opset_import.extend(self.model.opset_import)
        cut.functions.extend(_callees_first(self.model))
        cut.graph.name = "region"
        cut.graph.node.extend(nodes)
        for name in needed:
            cut.graph.input.add(name=name)
        used = dict.fromkeys([*(name for node in nodes for name in _reads(node)), *writes])
        kept = (name for name in used if name in self.constants and name not in needed)
        cut.graph.initializer.extend(self.constants[name] for name in kept)
        for name in writes:
            # What is no node's output is passed on, so that any runtime takes it for an output.
            cut.graph.output.add(name=f"border {name}")
            cut.graph.node.add(op_type="Identity", input=[name], output=[f"border {name}"])
        return cut


def _crossing(
    sides: Sequence[_Side], inside: Sequence[Sequence[onnx.NodeProto]]
) -> list[str]:
    """Return what changed nodes compute on either side and the rest reads on both."""
    made: dict[str, None] = {}
    for nodes in inside:
        made.update((name, None) for node in nodes for name in node.output if name)
    outside: set[str] = set()
    for side, nodes in zip(sides, inside, strict=True):
        changed = {id(node) for node in nodes}
        outside.update(side.outputs)
        outside.update(
            name for node in side.nodes if id(node) not in changed for name in _reads(node)
        )
    known = [
        {*side.inputs, *side.constants, *(n for node in side.nodes for n in node.output)}
        for side in sides
    ]
    return [name for name in made if name in outside and name in known[0] and name in known[1]]


def _key(node: onnx.NodeProto) -> bytes:
    """Return what a node says, but for its name and remarks."""
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    for field in ("name", "doc_string", "metadata_props"):
        bare.ClearField(field)
    return bytes(bare.SerializeToString(deterministic=True))


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the names that a node reads, in its bodies too."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        bodies = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
        for body in bodies:
            own = {info.name for info in body.input}
            own.update(tensor.name for tensor in body.initializer)
            own.update(name for inner in body.node for name in inner.output)
            yield from (n for inner in body.node for n in _reads(inner) if n not in own)
            yield from (info.name for info in body.output if info.name not in own)


def _calls(node: onnx.NodeProto) -> Iterator[str]:
    """Yield a word for each function that a node may call, in its bodies too."""
    holder = onnx.ModelProto()
    holder.graph.node.append(node)
    for inner in nodes_of(holder):
        if inner.domain:
            yield f"{inner.domain}:{inner.op_type}:{inner.overload}"


def _callees_first(model: onnx.ModelProto) -> list[onnx.FunctionProto]:
    """Return the functions so that each stands after those it calls: onnx.reference needs that."""
    functions = {_word(function): function for function in model.functions}
    ordered: dict[str, onnx.FunctionProto] = {}
    pending, seen = [(word, False) for word in reversed(functions)], set[str]()
    while pending:
        word, is_ready = pending.pop()
        if is_ready:
            ordered[word] = functions[word]
        if is_ready or word in seen or word not in functions:
            continue
        seen.add(word)
        pending.append((word, True))
        calls = {call for node in functions[word].node for call in _calls(node)}
        pending += [(call, False) for call in sorted(calls - {word})]
    return list(ordered.values())


def _word(function: onnx.FunctionProto) -> str:
    return f"{function.domain}:{function.name}:{function.overload}"


def _changed_constants(before: _Side, after: _Side) -> set[str]:
    """Return the constants that are there on both sides, with other contents."""
    return {
        name
        for name, tensor in before.constants.items()
        if name in after.constants and tensor != after.constants[name]
    }


def _changed_functions(before: onnx.ModelProto, after: onnx.ModelProto) -> set[str]:
    """Return the functions that differ, and those that call them, as words."""
    sides = [{_word(f): f for f in model.functions} for model in (before, after)]
    changed = {word for word in sides[0].keys() | sides[1].keys()
               if sides[0].get(word) != sides[1].get(word)}  # fmt: skip
    grew = bool(changed)
    while grew:
        size = len(changed)
        for side in sides:
            changed.update(
                word
                for word, function in side.items()
                if any(changed.intersection(_calls(node)) for node in function.node)
            )
        grew = len(changed) > size
    return changed
