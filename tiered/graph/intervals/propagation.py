"""The propagation of intervals through a model, and through what edits of it change."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tiered.graph import Model
from tiered.graph.core.dtypes import DataType
from tiered.graph.core.edit import Edit, Entry
from tiered.graph.core.graph import Graph
from tiered.graph.core.journal import dirty_nodes
from tiered.graph.core.node import Node
from tiered.graph.core.types import Dim
from tiered.graph.core.value import Value
from tiered.graph.intervals.interval import (
    ANY,
    Interval,
    fit,
    hull,
    is_integer,
    meet,
    of_tensor,
    whole,
)
from tiered.graph.intervals.rules import RANGES, Counts, RangeCall
from tiered.graph.queries.op_traits import VIEWS
from tiered.graph.shape_inference.symbolic_dims import Poly

_ROUNDS: Final = 3
"""Iterations of a body after which bounds that still move become those of the dtype."""

_SAME_ELEMENTS: Final = frozenset({*VIEWS, "Transpose"})

_INDEXED: Final = ("Gather", "GatherElements", "ScatterElements")

_OF_CONSTANTS: Final = frozenset(
    {Edit.ADD_CONSTANT, Edit.REMOVE_CONSTANT, Edit.SET_CONSTANT, Edit.MOVE_CONSTANT}
)

_OF_OUTPUTS: Final = frozenset({Edit.SET_GRAPH_OUTPUTS, Edit.EXCHANGE_GRAPH_OUTPUT})

_FOLLOWED: Final = (
    _OF_CONSTANTS
    | _OF_OUTPUTS
    | {Edit.ADD_NODE, Edit.REMOVE_NODE, Edit.SET_INPUT, Edit.SET_INPUTS, Edit.SET_OUTPUTS}
    | {Edit.SET_PROTO, Edit.EXCHANGE_OUTPUTS, Edit.FOLD_TO_INITIALIZER}
)
"""The edits that change intervals only from the nodes on that they touch."""


class Propagation:
    """The intervals of the values of a model, as far as they are known.

    Attributes:
        known: the intervals found.
        required: what the values that are indices must be inside of.
        indexed: the nodes that require it.
    """

    def __init__(
        self,
        model: Model,
        dims: Counts,
        inputs: Mapping[str, Interval],
        observed: Mapping[str, Interval],
    ) -> None:
        self.model = model
        self.dims = dims
        self.inputs = inputs
        self.observed = observed
        self.known: dict[Value, Interval] = {}
        self.required: dict[Value, Interval] = {}
        self.indexed: tuple[Node, ...] = ()

    def run(self, *, trusts_indices: bool) -> None:
        """Find the intervals of all values."""
        main = self.model.main
        if trusts_indices:
            self.indexed = tuple(node for node in _nodes(main) if _is_indexed(node))
        for node in self.indexed:
            self._require_indices(node)
        for value in main.inputs:
            declared = self.inputs.get(value.name)
            self._set(value, whole(value.dtype) if declared is None else declared)
        self._visit(main)

    def follow(self, edits: Sequence[Entry]) -> bool:
        """Bring the intervals of the model before edits up to date.

        Returns:
            Whether that is done; False if it takes a new run.
        """
        touched = self._touched_by(edits)
        if touched is None or not all(node.is_live for node in self.indexed):
            return False
        # Where an interval stays, so does what is computed from it.
        pending = deque(node.id for node in touched)
        waiting = {node.id: node for node in touched}
        steps = 0
        while pending:
            node = waiting.pop(pending.popleft())
            outputs = [value for value in node.outputs if value is not None]
            before = [self.known.pop(value, None) for value in outputs]
            self._forget(node.bodies)
            self._visit_node(node)
            steps += 1
            if steps > len(self.model.main):
                return False  # a run visits each node once
            for value, old in zip(outputs, before, strict=True):
                if self.of(value) == old:
                    continue
                for reader in value.readers:
                    if reader.id not in waiting:
                        waiting[reader.id] = reader
                        pending.append(reader.id)
        return True

    def _touched_by(self, edits: Sequence[Entry]) -> list[Node] | None:
        """Return the nodes of the main graph whose results edits may change; None for any."""
        added, found = set[Node](), dict[Node, None]()
        for edit, subject, *rest in edits:
            if edit is Edit.SET_TYPE and subject.producer in added:
                continue
            if edit not in _FOLLOWED:
                return None
            if edit in _OF_CONSTANTS:
                self.known.pop(subject, None)
                continue
            if edit in _OF_OUTPUTS:
                continue
            if self._decides_indices(subject) or (edit is Edit.REMOVE_NODE and subject.bodies):
                return None
            if edit is Edit.ADD_NODE:
                added.add(subject)
            elif edit is Edit.FOLD_TO_INITIALIZER:
                self.known.pop(rest[1], None)
            if edit in (Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER):
                around = _outermost(rest[0], None)
                found.update(() if around is None else ((around, None),))
        for node in dirty_nodes(edits):
            if self._decides_indices(node):
                return None
            outer = _outermost(node.graph, node)
            if outer is not None:
                found[outer] = None
            if outer is None or node.is_op("Constant"):
                self._forget_results(node)
        return sorted(found)

    def _forget(self, bodies: Iterable[Graph]) -> None:
        for body in bodies:
            for node in body.nodes:
                self._forget_results(node)
                self._forget(node.bodies)

    def _forget_results(self, node: Node) -> None:
        for value in node.outputs:
            if value is not None:
                self.known.pop(value, None)

    def _decides_indices(self, node: Node) -> bool:
        return _is_indexed(node) or any(
            value in self.required for value in node.outputs if value is not None
        )

    def of(self, value: Value) -> Interval:
        """Return the interval of a value; that of its dtype if nothing is known."""
        found = self.known.get(value)
        if found is None:
            found = whole(value.dtype)
            if value.tensor is not None:
                found = self.known[value] = of_tensor(value.tensor)
        return found

    def _set(self, value: Value, found: Interval) -> None:
        dtype = value.dtype
        found = fit(found, dtype)
        if is_integer(dtype):
            found = meet(found, self._of_elements(value))
        limit = self.required.get(value)
        found = found if limit is None else meet(found, limit)
        if value.owner.is_main and value.name in self.observed:
            found = meet(found, self.observed[value.name])
        self.known[value] = found

    def _of_elements(self, value: Value) -> Interval:
        """Return the interval of elements that data propagation knows, all of them."""
        elements = value.elements
        if elements is None or not elements.size:
            return whole(value.dtype)
        found = []
        for element in elements.ravel().tolist():
            if element is None:
                return whole(value.dtype)
            found.append(self._of_element(element))
        return hull(found)

    def _of_element(self, element: int | Poly) -> Interval:
        if not isinstance(element, Poly):
            return Interval(int(element), int(element))
        least = most = 0
        for names, coefficient in element.terms:
            ends = [coefficient * end ** len(names) for end in self.dims]
            least, most = least + min(ends), most + max(ends)
        return Interval(least, most)

    def _require_indices(self, node: Node) -> None:
        """Note the range of indices: other ones are an error, so that no output is computed."""
        data, found = node.given(0), node.given(1)
        dim: Dim = data.dim(node.attr("axis"))
        size = dim if isinstance(dim, int) else self.dims.most
        limit = Interval(-size, max(size - 1, 0))
        while found.owner is node.owner:
            known = self.required.get(found)
            self.required[found] = limit if known is None else meet(known, limit)
            producer = found.producer
            if producer is None or producer.domain or producer.op_type not in _SAME_ELEMENTS:
                return
            found = producer.given(0)

    # --- nodes ------------------------------------------------------------------------------------

    def _visit(self, graph: Graph) -> None:
        for node in graph.topological_order():
            self._visit_node(node)

    def _visit_node(self, node: Node) -> None:
        if node.is_op("Constant"):
            return
        if node.is_op("If"):
            self._visit_if(node)
        elif node.is_op("Loop"):
            self._visit_loop(node)
        elif node.is_op("Scan") and node.version > _SCAN_OF_BATCHES:
            self._visit_scan(node)
        else:
            self._visit_operator(node)

    def _visit_operator(self, node: Node) -> None:
        for body in node.bodies:
            for parameter in body.inputs:
                self._set(parameter, whole(parameter.dtype))
            self._visit(body)
        rule = None if node.bodies else RANGES.of(node)
        found: Sequence[Interval | None] = ()
        if rule is not None and node.parameter_reason is None and self._is_defined(node):
            operands = [None if value is None else self.of(value) for value in node.inputs]
            result = rule(RangeCall(node, operands, self.dims))
            found = [result] if isinstance(result, Interval) else result
        for place, value in enumerate(node.outputs):
            if value is not None:
                interval = found[place] if place < len(found) else None
                self._set(value, whole(value.dtype) if interval is None else interval)

    def _is_defined(self, node: Node) -> bool:
        """Return whether a node means what the rule of its operator says."""
        if node.domain:
            return self.model.function(node.domain, node.op_type) is None
        return node.schema is not None

    def _visit_if(self, node: Node) -> None:
        for body in node.bodies:
            self._visit(body)
        for place, value in enumerate(node.outputs):
            if value is not None:
                self._set(value, hull(self.of(body.outputs[place]) for body in node.bodies))

    def _iterate(self, body: Graph, states: Sequence[Value], starts: Sequence[Interval]) -> None:
        """Visit a body until the intervals of its states hold those of the next iteration.

        Args:
            body: the body of a Loop or Scan.
            states: its inputs that an iteration passes on to the next.
            starts: their intervals before the first iteration.
        """
        outputs = body.outputs[1:] if _is_loop(body) else body.outputs
        found = [fit(start, value.dtype) for start, value in zip(starts, states, strict=True)]
        for turn in range(_ROUNDS + 3 * len(states) + 1):
            for value, interval in zip(states, found, strict=True):
                self.known[value] = interval
            self._visit(body)
            results = [self.of(value) for value in outputs[: len(states)]]
            joined = [hull(pair) for pair in zip(found, results, strict=True)]
            if joined == found:
                return
            if turn >= _ROUNDS:
                joined = [
                    _beyond(old, new, value.dtype)
                    for old, new, value in zip(found, joined, states, strict=True)
                ]
            found = joined
        raise AssertionError("each bound is widened at most once")

    def _visit_loop(self, node: Node) -> None:
        (body,) = node.bodies
        limit = node.inputs[0]
        most = whole(DataType.INT64).high if limit is None else self.of(limit).high
        self._set(body.inputs[0], Interval(0, max(int(most) - 1, 0)))
        self._set(body.inputs[1], Interval(0, 1))
        states = body.inputs[2:]
        starts = [self._start(value) for value in node.inputs[2 : 2 + len(states)]]
        self._iterate(body, states, starts)
        self._set_results(node, states, body.outputs[1 + len(states) :])

    def _visit_scan(self, node: Node) -> None:
        (body,) = node.bodies
        count = len(node.inputs) - node.attr("num_scan_inputs")
        for value, source in zip(body.inputs[count:], node.inputs[count:], strict=True):
            self._set(value, self._start(source))
        states = body.inputs[:count]
        self._iterate(body, states, [self._start(value) for value in node.inputs[:count]])
        self._set_results(node, states, body.outputs[count:])

    def _start(self, value: Value | None) -> Interval:
        return ANY if value is None else self.of(value)

    def _set_results(self, node: Node, states: Sequence[Value], scanned: Iterable[Value]) -> None:
        found = [self.of(value) for value in (*states, *scanned)]
        for value, interval in zip(node.outputs, found, strict=False):
            if value is not None:
                self._set(value, interval)


_SCAN_OF_BATCHES: Final = 8


def _is_loop(body: Graph) -> bool:
    return body.parent_node is not None and body.parent_node.op_type == "Loop"


def _beyond(old: Interval, new: Interval, dtype: int | None) -> Interval:
    """Return an interval whose bounds that have moved are those of the dtype."""
    every = whole(dtype)
    low = old.low if new.low >= old.low else every.low
    high = old.high if new.high <= old.high else every.high
    return Interval(low, high, new.may_be_nan)


def _nodes(graph: Graph) -> Iterable[Node]:
    for node in graph.topological_order():
        yield node
        for body in node.bodies:
            yield from _nodes(body)


def _is_indexed(node: Node) -> bool:
    return not node.domain and node.op_type in _INDEXED


def _outermost(graph: Graph | None, node: Node | None) -> Node | None:
    """Return the node of the main graph that is a node, or around a graph; None if neither is."""
    while graph is not None and graph.parent_node is not None:
        node, graph = graph.parent_node, graph.parent_node.graph
    return node if graph is not None and graph.is_main else None
