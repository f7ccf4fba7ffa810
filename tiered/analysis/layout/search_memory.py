"""What a search for layouts found, so that the next one leaves out what no edit touched since.

The parts of a model in which Transposes may move often do not meet. A part that was solved is as
good as before if the journal has no edit of its values and of the nodes around them; a shape that
becomes known later is an edit too. All others are searched and solved again, and with them each
part that their search reaches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from typing import Final

from tiered.analysis.layout.equivalence import TensorClass
from tiered.analysis.layout.reach import Reach
from tiered.graph import Model, Node, Value
from tiered.graph.core.edit import NODE_EDITS, RENAMES, Edit, Stamp

_VALUE_EDITS: Final = frozenset({Edit.SET_TYPE, Edit.SET_CONSTANT, Edit.MOVE_CONSTANT})

_OF_NO_PART: Final = RENAMES | {Edit.ADD_CONSTANT, Edit.REMOVE_CONSTANT}
"""Edits of what no operator reads; that one reads the constant is an edit of the operator."""

_SMALL: Final = 1024
"""Constants of more bytes are not compared: no weight is read for this."""

Part = int
"""The number of a part of the model, whose tensors operators connect."""


Solutions = dict[Hashable, tuple[int, ...]]
"""The assignments of solved regions by cache key: models repeat their layers."""


class LayoutMemory:
    """The parts of one model that were solved, with one set of options.

    Attributes:
        parts: the part of each tensor, by each value that is a view of it.
        moment: when they were searched; None if nothing is known.
        solutions: those of the regions that were solved, by their keys.
    """

    def __init__(self) -> None:
        self.parts: dict[Value, Part] = {}
        self.solutions: Solutions = {}
        self.moment: Stamp | None = None
        self._numbers = count()

    def untouched(self, model: Model) -> dict[Value, Part]:
        """Return the parts that are as they were."""
        journal, moment = model.journal, self.moment
        if moment is None or journal.kept_since(moment) < moment.length:
            return {}
        touched = _touched(journal.since(moment.length))
        if touched is None:
            return {}
        parts = self.parts
        gone = {parts[value] for value in touched if value in parts}
        return {value: part for value, part in parts.items() if part not in gone}

    def note(
        self, moment: Stamp, kept: Mapping[Value, Part], searched: Iterable[Sequence[Value]]
    ) -> None:
        """Remember the parts that were left out, and those that were searched at a moment."""
        self.parts = dict(kept)
        for views in searched:
            self.parts.update(dict.fromkeys(views, next(self._numbers)))
        self.moment = moment


def parts_of(reach: Reach) -> list[list[Value]]:
    """Return the values of each part of a search, as the model is before any is written."""
    return [[view for tensor in part for view in tensor.views] for part in _connected(reach)]


@contextmanager
def memory_of(model: Model, options: Hashable) -> Iterator[LayoutMemory]:
    """Yield what is remembered of a model for the same options, opsets and functions.

    If the block raises or a rewrite was refused in it, nothing is remembered any more: what it
    noted may not have been written.
    """
    functions = tuple([(*each.id, *sorted(each.opset_imports.items())) for each in model.functions])
    key = "layouts", options, tuple(sorted(model.opset_imports.items())), functions
    memory: LayoutMemory = model.remembered.pop(key, None) or LayoutMemory()
    refused = model.gate.refused
    yield memory
    if model.gate.refused == refused:
        model.remembered[key] = memory


def _around(value: Value) -> Iterator[Node]:
    if value.producer is not None:
        yield value.producer
    yield from (node for node, _ in value.users)


def _values_of(node: Node) -> list[Value]:
    return [value for value in (*node.inputs, *node.outputs) if value is not None]


def _connected(reach: Reach) -> Iterable[list[TensorClass]]:
    """Return the tensors of each part: those that operators connect."""
    parts = {tensor: [tensor] for tensor in reach.tensors.values()}
    for operator in reach.operators.values():
        for one, other in pairwise([port.tensor for port in operator.ports]):
            part, merged = parts[one], parts[other]
            if part is merged:
                continue
            if len(part) < len(merged):
                part, merged = merged, part
            part += merged
            parts.update(dict.fromkeys(merged, part))
    return {id(part): part for part in parts.values()}.values()


def _touched(entries: Iterable[tuple[object, ...]]) -> set[Value] | None:
    """Return the values of all nodes that edits concern; None if they concern the whole model."""
    nodes: dict[Node, None] = {}
    values: set[Value] = set()
    merged: list[tuple[Node, object]] = []
    for edit, subject, *rest in entries:
        if edit in _OF_NO_PART:
            continue
        if edit is Edit.SET_INPUT and _are_equal_constants(*rest[1:]):
            assert isinstance(subject, Node)
            merged.append((subject, rest[1]))
            continue
        if edit in NODE_EDITS:
            assert isinstance(subject, Node)
            nodes[subject] = None
            for each in _flat(rest):
                if isinstance(each, Value):
                    values.add(each)
                elif isinstance(each, Node):
                    nodes[each] = None
        elif edit in _VALUE_EDITS:
            assert isinstance(subject, Value)
            values.add(subject)
        elif edit is Edit.EXCHANGE_GRAPH_OUTPUT:
            values.update(each for each in rest if isinstance(each, Value))
        else:
            return None
    # Unless the constant was another one, or none, when the node read it.
    nodes.update((node, None) for node, before in merged if before in values)
    for value in values:
        nodes.update(dict.fromkeys(_around(value)))
    return values.union(*map(_values_of, nodes))


def _are_equal_constants(before: object, after: object) -> bool:
    """Return whether an operand became an equal constant; large ones are not compared."""
    if not (isinstance(before, Value) and isinstance(after, Value)):
        return False
    one, other = before.tensor, after.tensor
    if one is None or other is None or max(one.nbytes, other.nbytes) > _SMALL:
        return False
    return one.key() == other.key()


def _flat(items: Iterable[object]) -> Iterator[object]:
    for item in items:
        if isinstance(item, list | tuple):
            yield from item
        else:
            yield item
