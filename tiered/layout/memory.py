"""What a search for layouts found, so that the next one leaves out what no edit touched since.

The parts of a model in which Transposes may move often do not meet. A part that was solved is as
good as before if the journal has no edit of its values and of the nodes around them, and if no
shape there became known since. All others are searched and solved again, and with them each part
that their search reaches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, NamedTuple

from tiered.graph import Model, Node, Value
from tiered.graph.core.journal import NODE_EDITS, RENAMES, Edit, Stamp
from tiered.graph.core.types import Shape
from tiered.layout.equivalence import TensorClass
from tiered.layout.reach import Reach

_VALUE_EDITS: Final = frozenset(
    {
        Edit.SET_TYPE,
        Edit.SET_CONSTANT,
        Edit.ADD_CONSTANT,
        Edit.REMOVE_CONSTANT,
        Edit.MOVE_CONSTANT,
    }
)

Part = int
"""The number of a part of the model, whose tensors operators connect."""


class LayoutMemory:
    """The parts of one model that were solved, with one set of options.

    Attributes:
        parts: the part of each tensor, by each value that is a view of it.
        shapes: the shapes, by part, of the values around it when it was searched.
        moment: when that was; None if nothing is known.
    """

    def __init__(self) -> None:
        self.parts: dict[Value, Part] = {}
        self.shapes: dict[Part, dict[Value, Shape | None]] = {}
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
        for part, shapes in self.shapes.items():
            if part not in gone and any(value.shape != known for value, known in shapes.items()):
                gone.add(part)
        return {value: part for value, part in parts.items() if part not in gone}

    def note(self, moment: Stamp, kept: Mapping[Value, Part], searched: Sequence[Found]) -> None:
        """Remember the parts that were left out, and those that were searched at a moment."""
        left = set(kept.values())
        self.parts = dict(kept)
        self.shapes = {part: shapes for part, shapes in self.shapes.items() if part in left}
        for found in searched:
            number = next(self._numbers)
            self.parts.update(dict.fromkeys(found.views, number))
            self.shapes[number] = found.shapes
        self.moment = moment


class Found(NamedTuple):
    """A part that was searched: its values, and the shapes of all values around them."""

    views: list[Value]
    shapes: dict[Value, Shape | None]


def found_in(reach: Reach) -> list[Found]:
    """Return the parts of a search, as the model is before any is written."""
    found = []
    for tensors in _connected(reach):
        views = [view for tensor in tensors for view in tensor.views]
        nodes = dict.fromkeys(node for view in views for node in _around(view))
        shapes = {value: value.shape for node in nodes for value in _values_of(node)}
        found.append(Found(views, shapes))
    return found


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


def _values_of(node: Node) -> Iterator[Value]:
    yield from (value for value in (*node.inputs, *node.outputs) if value is not None)


def _connected(reach: Reach) -> Iterator[list[TensorClass]]:
    """Yield the tensors of each part: those that operators connect."""
    operators: dict[TensorClass, list[tuple[TensorClass, ...]]] = {}
    for operator in reach.operators.values():
        tensors = tuple(dict.fromkeys(port.tensor for port in operator.ports))
        for tensor in tensors:
            operators.setdefault(tensor, []).append(tensors)
    seen: set[TensorClass] = set()
    for start in dict.fromkeys(reach.tensors.values()):
        if start in seen:
            continue
        seen.add(start)
        found, pending = [], [start]
        while pending:
            tensor = pending.pop()
            found.append(tensor)
            for tensors in operators.pop(tensor, ()):
                fresh = [each for each in tensors if each not in seen]
                seen.update(fresh)
                pending += fresh
        yield found


def _touched(entries: Iterable[tuple[object, ...]]) -> set[Value] | None:
    """Return the values of all nodes that edits concern; None if they concern the whole model."""
    nodes: dict[Node, None] = {}
    values: set[Value] = set()
    for edit, subject, *rest in entries:
        if edit in RENAMES:
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
        else:
            return None
    for value in list(values):
        nodes.update(dict.fromkeys(_around(value)))
    for node in nodes:
        values.update(_values_of(node))
    return values


def _flat(items: Iterable[object]) -> Iterator[object]:
    for item in items:
        if isinstance(item, list | tuple):
            yield from item
        else:
            yield item
