"""The effect of edits on nodes: each touched node, before and after.

Both come from the journal, so nothing is copied before a pass runs. A `NodeState` is plain data and
stays true when the node is edited, renamed or removed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import onnx

from tiered.graph.core.edit import NODE_EDITS, Edit, Entry
from tiered.graph.core.node import domain_of
from tiered.pipeline.instruments.onnx_text import node_text, proto_text

if TYPE_CHECKING:
    from tiered.graph import Node, Value


# A look-up of a member costs more than the comparison with it.
_ADD_NODE, _REMOVE_NODE, _SET_INPUT = Edit.ADD_NODE, Edit.REMOVE_NODE, Edit.SET_INPUT
_ADD_CONSTANT, _REMOVE_CONSTANT = Edit.ADD_CONSTANT, Edit.REMOVE_CONSTANT
_RENAME_VALUE, _FOLD = Edit.RENAME_VALUE, Edit.FOLD_TO_INITIALIZER


class NodeState(NamedTuple):
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


class Change(NamedTuple):
    """A node before and after edits; None if it did not exist."""

    before: NodeState | None
    after: NodeState | None


class _Past:
    """A node, undone edit by edit on a copy."""

    __slots__ = ("inputs", "is_there", "node", "outputs", "proto")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.is_there = node.graph is not None
        # Replaced, never written to, when an edit is wound back.
        self.inputs: Sequence[Value | None] = node._inputs
        self.outputs: Sequence[Value | None] = node._outputs
        self.proto = node.proto


class Rewind:
    """Edits that are just made, wound back: the nodes that they touched, and their values' names.

    Every rewrite of a traced run comes through here, so it does no more than it must.

    Args:
        entries: the newest entries of the journal.

    Attributes:
        added, removed: the names of the initializers that came and went.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        # By serial number.
        self.nodes: dict[int, _Past] = {}
        self._names: dict[int, str] = {}
        self.added: list[str] = []
        self.removed: list[str] = []
        nodes = self.nodes
        for entry in reversed(entries):
            edit, subject = entry[0], entry[1]
            if edit is _SET_INPUT:
                past = nodes.get(subject.id)
                if past is None:
                    past = nodes[subject.id] = _Past(subject)
                inputs = list(past.inputs)
                inputs[entry[2]] = entry[3]
                past.inputs = inputs
            elif edit is _ADD_NODE:
                self._past(subject).is_there = False
            elif edit is _REMOVE_NODE:
                self._past(subject).is_there = True
            elif edit is _RENAME_VALUE:
                self._names[subject.id] = entry[2]
                if subject.producer is not None:
                    self._past(subject.producer)
                for user in subject._users.values():
                    self._past(user)
            elif edit is _FOLD:
                self._past(subject).is_there = True
                self.added.append(entry[3].name)
            elif edit is _ADD_CONSTANT:
                self.added.append(subject.name)
            elif edit is _REMOVE_CONSTANT:
                self.removed.append(subject.name)
            elif edit in NODE_EDITS:
                self._rewind_node(edit, self._past(subject), entry)

    def _past(self, node: Node) -> _Past:
        past = self.nodes.get(node.id)
        if past is None:
            past = self.nodes[node.id] = _Past(node)
        return past

    def _rewind_node(self, edit: Edit, past: _Past, entry: Entry) -> None:
        if edit is Edit.SET_INPUTS:
            past.inputs, past.proto = entry[2], entry[3]
        elif edit is Edit.SET_OUTPUTS:
            past.outputs, past.proto = entry[2], entry[3]
        elif edit in (Edit.SET_PROTO, Edit.RENAME_NODE):
            past.proto = entry[2]
        elif edit is Edit.EXCHANGE_OUTPUTS:
            other, index, place = self._past(entry[3]), entry[2], entry[4]
            mine = list(past.outputs)
            theirs = mine if other is past else list(other.outputs)
            mine[index], theirs[place] = theirs[place], mine[index]
            past.outputs, other.outputs = mine, theirs
        # MOVE_NODE: the graph of a node is no part of its state.

    def changes(self) -> Iterator[Change]:
        """Yield the change of each node, in the order of serial numbers."""
        nodes, names = self.nodes, self._names
        for serial in sorted(nodes) if len(nodes) > 1 else nodes:
            past = nodes[serial]
            node = past.node
            if node.graph is None:
                if past.is_there:
                    inputs = _names_of(past.inputs, names)
                    outputs = _names_of(past.outputs, names)
                    yield _new_change((_state(node, past.proto, inputs, outputs), None))
                continue
            now, made, proto = node._inputs, node._outputs, node.proto
            inputs, outputs = _names_of(now, _NO_NAMES), _names_of(made, _NO_NAMES)
            if not past.is_there:
                yield _new_change((None, _state(node, proto, inputs, outputs)))
                continue
            is_same = past.inputs is now and not names
            before = inputs if is_same else _names_of(past.inputs, names)
            is_same = past.outputs is made and not names
            wrote = outputs if is_same else _names_of(past.outputs, names)
            if before == inputs and wrote == outputs and past.proto is proto:
                continue
            was = _state(node, past.proto, before, wrote)
            yield _new_change((was, _state(node, proto, inputs, outputs)))

    def name_before(self, value: Value) -> str:
        """Return the name that a value had before the edits."""
        return self._names.get(value.id) or value.name

    def texts(self) -> Iterable[tuple[Node, str, str]]:
        """Yield each changed node with its text before and after; "" if it did not exist."""
        for past in self.nodes.values():
            node = past.node
            before = proto_text(self._proto(past)) if past.is_there else ""
            after = node_text(node) if node.graph is not None else ""
            if before != after:
                yield node, before, after

    def _proto(self, past: _Past) -> onnx.NodeProto:
        proto = onnx.NodeProto()
        proto.CopyFrom(past.proto)
        del proto.input[:]
        proto.input.extend(_names_of(past.inputs, self._names))
        del proto.output[:]
        proto.output.extend(_names_of(past.outputs, self._names))
        return proto


_new_state, _new_change = NodeState._make, Change._make
_NO_NAMES: Mapping[int, str] = {}


def _names_of(values: Sequence[Value | None], names: Mapping[int, str]) -> tuple[str, ...]:
    """Return the names of values, those in `names` as they were."""
    if names:
        get = names.get
        return tuple(["" if v is None else get(v.id) or v.name for v in values])
    if len(values) == 1 and (value := values[0]) is not None:
        return (value.name,)
    return tuple(["" if v is None else v.name for v in values])


def state_of(node: Node) -> NodeState:
    """Return the present state of a node."""
    inputs, outputs = _names_of(node._inputs, _NO_NAMES), _names_of(node._outputs, _NO_NAMES)
    return _state(node, node.proto, inputs, outputs)


def _state(
    node: Node, proto: onnx.NodeProto, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> NodeState:
    """Return the state of a node, or its state with an earlier proto."""
    domain, operator = node.domain, node.op_type
    if proto is not node.proto:
        domain, operator = domain_of(proto.domain), proto.op_type
    name = proto.name or next(filter(None, outputs), "")
    if domain:
        operator = f"{domain}::{operator}"
    return _new_state((node.id, operator, name, inputs, outputs))
