"""The range analysis of a model: bodies are iterated to a fixed point, and widened before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tiered.graph import Model, Tensor
from tiered.graph.core.dtypes import DataType
from tiered.graph.core.graph import Graph
from tiered.graph.core.node import Node
from tiered.graph.core.types import Dim
from tiered.graph.core.value import Value
from tiered.graph.intervals.interval import (
    ANY,
    ZERO,
    Interval,
    fit,
    hull,
    is_integer,
    meet,
    of_tensor,
    whole,
)
from tiered.graph.intervals.rules import RANGES, Call, Counts
from tiered.graph.queries.op_traits import VIEWS
from tiered.graph.shape_inference.symbolic_dims import Poly

LARGEST_DIM: Final = (1 << 31) - 1
"""The largest size of a dim that is not declared: kernels index with 32 bits."""

UNKNOWN_DIMS: Final = Counts(0, LARGEST_DIM)
"""The bounds of a dim that is not declared."""

_ROUNDS: Final = 3
"""After so many iterations of a body, bounds that still move become those of the dtype."""

_SAME_ELEMENTS: Final = frozenset({*VIEWS, "Transpose"})

_INDEXED: Final = ("Gather", "GatherElements", "ScatterElements")


class Ranges:
    """The intervals of the values of a model."""

    def __init__(self, known: Mapping[Value, Interval]) -> None:
        self._known = known

    def __getitem__(self, value: Value) -> Interval:
        """Return the interval of all elements of a value; that of its dtype if nothing is known."""
        found = self._known.get(value)
        return whole(value.dtype) if found is None else found

    def has_proof(self, value: Value) -> bool:
        """Return whether more is known of a value than its dtype."""
        return self[value] != whole(value.dtype)


@dataclass(frozen=True)
class RangeAnalysis:
    """What ranges are computed from: `model.analysis(ranges)`, or `ranges.with_inputs(...)`.

    Every element of a value is inside its interval, whatever is fed, as long as the model runs
    without an error: an index is inside of the axis that it selects from. Nothing is assumed of
    unknown operators, nor inside of local functions.

    Attributes:
        inputs: what the user declares of graph inputs, by name.
        observed: what calibration measured of values, by name; not a proof.
        dims: the bounds of each dim that is not a number.
        trusts_indices: whether an index counts as being inside of its axis.
    """

    inputs: tuple[tuple[str, Interval], ...] = ()
    observed: tuple[tuple[str, Interval], ...] = ()
    dims: Counts = UNKNOWN_DIMS
    trusts_indices: bool = True

    def with_inputs(self, inputs: Mapping[str, Interval]) -> RangeAnalysis:
        """Return the analysis with declared ranges of inputs; all finite numbers there."""
        return replace(self, inputs=tuple(sorted(inputs.items())))

    def with_observed(self, observed: Mapping[str, Interval]) -> RangeAnalysis:
        """Return the analysis with measured ranges of values."""
        return replace(self, observed=tuple(sorted(observed.items())))

    def with_dims(self, least: int, most: int) -> RangeAnalysis:
        """Return the analysis with other bounds of unknown dims."""
        return replace(self, dims=Counts(least, most))

    def without_trust(self) -> RangeAnalysis:
        """Return the analysis for edits after which an index that is an error may be none."""
        return replace(self, trusts_indices=False)

    def __call__(self, model: Model) -> Ranges:
        """Compute the ranges; `model.analysis` keeps them until the next edit."""
        return _Propagation(model, self).run()


ranges: Final = RangeAnalysis()


class _Propagation:
    def __init__(self, model: Model, given: RangeAnalysis) -> None:
        self.model = model
        self.dims = given.dims
        self.trusts_indices = given.trusts_indices
        self.inputs = dict(given.inputs)
        self.observed = dict(given.observed)
        self.known: dict[Value, Interval] = {}
        self.required: dict[Value, Interval] = {}

    def run(self) -> Ranges:
        main = self.model.main
        for node in _nodes(main) if self.trusts_indices else ():
            self._require_indices(node)
        for value in main.inputs:
            declared = self.inputs.get(value.name)
            self._set(value, whole(value.dtype) if declared is None else declared)
        self._visit(main)
        return Ranges(self.known)

    def _of(self, value: Value) -> Interval:
        found = self.known.get(value)
        if found is None:
            found = whole(value.dtype)
            if value.is_constant and value.tensor is not None:
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
        if node.domain or node.op_type not in _INDEXED or not node.is_live:
            return
        data, found = node.input(0), node.input(1)
        if data is None or found is None:
            return
        dim: Dim = data.dim(node.attr("axis")) if data.shape is not None else None
        size = dim if isinstance(dim, int) else self.dims.most
        limit = Interval(-size, max(size - 1, 0))
        while found.owner is node.owner:
            known = self.required.get(found)
            self.required[found] = limit if known is None else meet(known, limit)
            producer = found.producer
            if producer is None or producer.domain or producer.op_type not in _SAME_ELEMENTS:
                return
            source = producer.input(0)
            assert source is not None
            found = source

    # --- nodes ------------------------------------------------------------------------------------

    def _visit(self, graph: Graph) -> None:
        for node in graph.topological_order():
            if node.is_op("Constant"):
                continue
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
            operands = [None if value is None else self._of(value) for value in node.inputs]
            result = rule(Call(node, operands, self.dims))
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
                self._set(value, hull(self._of(body.outputs[place]) for body in node.bodies))

    def _iterate(self, body: Graph, states: Sequence[Value], starts: Sequence[Interval]) -> None:
        """Visit a body until the intervals of its states hold those of the next iteration.

        Args:
            body: the body of a Loop or Scan.
            states: its inputs that an iteration passes on to the next.
            starts: their intervals before the first iteration.
        """
        outputs = body.outputs[1:] if len(body.outputs) and _is_loop(body) else body.outputs
        found = [fit(start, value.dtype) for start, value in zip(starts, states, strict=True)]
        for turn in range(_ROUNDS + 3 * len(states) + 1):
            for value, interval in zip(states, found, strict=True):
                self.known[value] = interval
            self._visit(body)
            results = [self._of(value) for value in outputs[: len(states)]]
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
        most = whole(DataType.INT64).high if limit is None else self._of(limit).high
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
        return ANY if value is None else self._of(value)

    def _set_results(self, node: Node, states: Sequence[Value], scanned: Iterable[Value]) -> None:
        found = [self._of(value) for value in (*states, *scanned)]
        for value, interval in zip(node.outputs, found, strict=False):
            if value is not None:
                self._set(value, interval)


_SCAN_OF_BATCHES: Final = 8


def _is_loop(body: Graph) -> bool:
    return body.owner is not None and body.owner.op_type == "Loop"


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


def measured(array: np.ndarray[Any, Any]) -> Interval:
    """Return the interval of the elements of an array, which calibration has run."""
    return of_tensor(Tensor(None, array)) if array.size else ZERO
