"""Local errors: how far each node is off if only its own operands and outputs are rounded.

The model runs in float. Beside each node is a copy of it that reads rounded operands, and the
squared difference of the two is an output: no tensor leaves the runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import DataType, Graph, Model, Node, Value
from tiered.graph.core.dtypes import float_info
from tiered.graph.io.export import export_model
from tiered.graph.queries.determinism import is_deterministic
from tiered.runtime import shared_worker
from tiered.verify.changed_region import with_outputs
from tiered.verify.sliced_session import open_model

_COUNTS: Final = frozenset({"NonZero", "Range", "Unique"})
"""Operators whose results have as many elements as the operands say."""

IsRounded = Callable[[Node, int], bool]
"""Whether an operand of a node is rounded: some stay float in a narrower node too."""


class _NodeProbe(NamedTuple):
    """The outputs of a node's copy: scalars of squares."""

    node: Node
    errors: tuple[Value, ...]
    norms: tuple[Value, ...]


def local_errors(
    model: Model,
    nodes: Iterable[Node],
    low: DataType,
    samples: Iterable[Mapping[str, Any]],
    masks: Mapping[Value, float],
    is_rounded: IsRounded,
) -> dict[Node, float]:
    """Return the local error of nodes of the main graph, the largest of all samples.

    That is L2 error / L2 norm of outputs of floats, and the share of the other elements that
    differ; 1 if there are more or fewer of them. Nodes with bodies and random ones have none.

    Args:
        model: the model of floats; all edits are undone.
        nodes: those to look at.
        low: the narrower type.
        samples: the inputs of each run.
        masks: for values with masked elements, below which number an element is masked.
        is_rounded: whether an operand of a node is rounded.

    Raises:
        RuntimeFailure: onnxruntime does not run the model.
    """
    mark = model.mark()
    try:
        model.refresh_types()
        prober = _Prober(model.main, low, masks, is_rounded)
        probes = [
            prober.probe(node)
            for node in list(nodes)
            if node.owner.is_main and not node.bodies and is_deterministic(node)
        ]
        names = dict.fromkeys(value.name for probe in probes for value in _scalars(probe))
        proto = with_outputs(export_model(model, is_bare=True), list(names))
    finally:
        model.undo_to(mark)
    found = {probe.node: 0.0 for probe in probes}
    with open_model(shared_worker(), proto, folder=model.folder) as session:
        for feeds in samples:
            scalars = session.run(feeds, list(names))
            for probe in probes:
                found[probe.node] = max(found[probe.node], _read(probe, scalars))
    return found


def _scalars(probe: _NodeProbe) -> Iterator[Value]:
    yield from (*probe.errors, *probe.norms)


def _read(probe: _NodeProbe, scalars: Mapping[str, Any]) -> float:
    """Return what a run has measured; an output without finite numbers has no error."""
    worst = 0.0
    for error, norm in zip(probe.errors, probe.norms, strict=True):
        ratio = _ratio(float(scalars[error.name]), float(scalars[norm.name]))
        worst = max(worst, math.sqrt(ratio))
    return worst


def _ratio(error: float, norm: float) -> float:
    if math.isnan(error) or not error:
        return 0.0
    return error / norm if norm else math.inf


class _Prober:
    """Adds the copies, with one rounded version of each operand.

    Args:
        graph: the main graph.
        low: the narrower type.
        masks, is_rounded: see `local_errors`.
    """

    def __init__(
        self,
        graph: Graph,
        low: DataType,
        masks: Mapping[Value, float],
        is_rounded: IsRounded,
    ) -> None:
        self._graph = graph
        self._low = low
        self._masks = masks
        self._is_rounded = is_rounded
        self._limit = float(float_info(low.numpy).max)
        self._rounded: dict[Value, Value] = {}

    def probe(self, node: Node) -> _NodeProbe:
        """Add a copy of a node with rounded operands, and its distance from the node."""
        graph = self._graph
        operands = [
            self._operand(value) if self._is_rounded(node, place) else value
            for place, value in enumerate(node.inputs)
        ]
        outputs = [value for value in node.outputs if value is not None]
        made = graph.clone(node)
        graph.set_inputs(made, operands)
        names = ["" if value is None else f"{value.name}_probe" for value in node.outputs]
        graph.set_outputs(made, [None if not name else graph.new_value(name) for name in names])
        copies = [value for value in made.outputs if value is not None]
        pairs = [
            self._distance(*self._counted(node, value, copy))
            for value, copy in zip(outputs, copies, strict=True)
            if value.dtype != DataType.STRING
        ]
        errors, norms = zip(*pairs, strict=True) if pairs else ((), ())
        return _NodeProbe(node, errors, norms)

    def _counted(self, node: Node, value: Value, copy: Value) -> tuple[Value, Value]:
        """Return outputs, or how many elements they have, if rounding may change that."""
        if node.op_type not in _COUNTS:
            return value, copy
        op = self._graph.op
        return op.Size(value), op.Size(copy)

    def _operand(self, value: Value | None) -> Value | None:
        if value is None or value.dtype != DataType.FLOAT:
            return value
        if value not in self._rounded:
            self._rounded[value] = self._round(value)
        return self._rounded[value]

    def _round(self, value: Value) -> Value:
        """Return a value in float with the numbers that the narrower type has."""
        op = self._graph.op
        return op.Cast(op.Cast(self._clip(value), to=int(self._low)), to=int(DataType.FLOAT))

    def _clip(self, value: Value) -> Value:
        """Return a value whose infinities are the largest numbers of the narrower type."""
        limits = (np.array(end, np.float32) for end in (-self._limit, self._limit))
        return self._graph.op.Clip(value, *map(self._graph.constant, limits))

    def _distance(self, value: Value, copy: Value) -> tuple[Value, Value]:
        """Return the squared error and the squared norm of an output, without masked elements."""
        op, constant = self._graph.op, self._graph.constant
        double = int(DataType.DOUBLE)
        if value.dtype != DataType.FLOAT:
            same = op.Equal(*(op.Cast(each, to=int(DataType.INT64)) for each in (value, copy)))
            differs = op.Cast(op.Not(same), to=double)
            return op.ReduceMean(differs, keepdims=0), constant(np.array(1.0), "one")
        limit = min(self._limit, -self._masks.get(value, -math.inf))
        is_number = op.Less(op.Abs(value), constant(np.array(limit, np.float32)))
        # A product instead of a Where, which old opsets lack: nothing that is clipped is infinite.
        share = op.Cast(is_number, to=int(DataType.FLOAT))
        number, found = (op.Mul(each, share) for each in (self._clip(value), self._round(copy)))
        return (
            op.ReduceSumSquare(op.Cast(op.Sub(found, number), to=double), keepdims=0),
            op.ReduceSumSquare(op.Cast(number, to=double), keepdims=0),
        )
