"""What edits did to nodes: each node that they touched, as it was before and as it is after.

Both come from the journal, so nothing is copied before a pass runs. A `NodeState` is plain data and
stays true when the node is edited, renamed or removed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx

from tiered.graph.journal import NODE_EDITS, Edit, Entry
from tiered.instruments.text import node_text, proto_text

if TYPE_CHECKING:
    from tiered.graph import Node, Value


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node at one moment; `id` is its serial number in the model, which it keeps for life."""

    id: int
    op_type: str
    label: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        inputs = ", ".join(name or '""' for name in self.inputs)
        outputs = ", ".join(name or '""' for name in self.outputs)
        return f"[{self.label}] {outputs} = {self.op_type} ({inputs})"


@dataclass(frozen=True, slots=True)
class Change:
    """A node before and after edits; None where it was not there."""

    before: NodeState | None
    after: NodeState | None


class _Past:
    """A node, wound back edit by edit."""

    __slots__ = ("inputs", "is_there", "node", "outputs", "proto")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.is_there = node.graph is not None
        self.inputs = list(node._inputs)
        self.outputs = list(node._outputs)
        self.proto = node.proto


class Rewind:
    """Edits that are just made, wound back: the nodes that they touched, and their values' names.

    Args:
        entries: the newest entries of the journal.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.nodes: dict[Node, _Past] = {}
        self._names: dict[Value, str] = {}
        for entry in reversed(entries):
            edit, subject = entry[0], entry[1]
            if edit in NODE_EDITS:
                self._rewind_node(edit, subject, entry)
            elif edit is Edit.RENAME_VALUE:
                self._names[subject] = entry[2]
                if subject.producer is not None:
                    self._past(subject.producer)
                for user in subject._users.values():
                    self._past(user)

    def _past(self, node: Node) -> _Past:
        past = self.nodes.get(node)
        if past is None:
            past = self.nodes[node] = _Past(node)
        return past

    def _rewind_node(self, edit: Edit, node: Node, entry: Entry) -> None:
        past = self._past(node)
        match edit:
            case Edit.ADD_NODE:
                past.is_there = False
            case Edit.REMOVE_NODE:
                past.is_there = True
            case Edit.SET_INPUT:
                past.inputs[entry[2]] = entry[3]
            case Edit.SET_INPUTS:
                past.inputs, past.proto = list(entry[2]), entry[3]
            case Edit.SET_OUTPUTS:
                past.outputs, past.proto = list(entry[2]), entry[3]
            case Edit.SET_PROTO | Edit.RENAME_NODE:
                past.proto = entry[2]
            case Edit.EXCHANGE_OUTPUTS:
                other, index, place = self._past(entry[3]), entry[2], entry[4]
                swapped = past.outputs[index], other.outputs[place]
                other.outputs[place], past.outputs[index] = swapped
            case _:
                pass  # MOVE_NODE: the graph of a node is no part of its state

    def changes(self) -> Iterable[Change]:
        """Yield what became of each node, in the order of their serial numbers."""
        for node in sorted(self.nodes, key=lambda node: node.id):
            past = self.nodes[node]
            before = self._state(past) if past.is_there else None
            after = state_of(node) if node.graph is not None else None
            if before != after or (before is not None and past.proto is not node.proto):
                yield Change(before, after)

    def _name(self, value: Value | None) -> str:
        return "" if value is None else self._names.get(value, value.name)

    def _state(self, past: _Past) -> NodeState:
        return NodeState(
            past.node.id,
            _operator(past.node),
            _label(past.proto.name, outputs := tuple(map(self._name, past.outputs))),
            tuple(map(self._name, past.inputs)),
            outputs,
        )

    def texts(self) -> Iterable[tuple[Node, str, str]]:
        """Yield each changed node with its text before and after; "" where it was not there."""
        for node, past in self.nodes.items():
            before = proto_text(self._proto(past)) if past.is_there else ""
            after = node_text(node) if node.graph is not None else ""
            if before != after:
                yield node, before, after

    def _proto(self, past: _Past) -> onnx.NodeProto:
        proto = onnx.NodeProto()
        proto.CopyFrom(past.proto)
        del proto.input[:]
        proto.input.extend(map(self._name, past.inputs))
        del proto.output[:]
        proto.output.extend(map(self._name, past.outputs))
        return proto


def changes_of(entries: Sequence[Entry]) -> tuple[Change, ...]:
    """Return what the newest entries of a journal did to nodes."""
    return tuple(Rewind(entries).changes())


def state_of(node: Node) -> NodeState:
    """Return a node as it is now."""
    proto: Any = node.proto
    outputs = tuple(proto.output)
    return NodeState(
        node.id, _operator(node), _label(proto.name, outputs), tuple(proto.input), outputs
    )


def _operator(node: Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _label(name: str, outputs: tuple[str, ...]) -> str:
    return name or next(filter(None, outputs), "")
