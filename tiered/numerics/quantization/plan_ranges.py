"""The ranges of what a plan quantises, and what must stay float for its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tiered.analysis.roles.masks import LARGEST, MASKED, mask_limits
from tiered.analysis.roles.probabilities import probability_roles
from tiered.analysis.roles.role import Narrow
from tiered.analysis.roles.zeros import lost_numbers, zero_roles
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.intervals.interval import Interval
from tiered.graph.intervals.range_analysis import ranges
from tiered.numerics.calibration.calibrate import Calibration
from tiered.numerics.precision.noise import Feeds
from tiered.numerics.quantization.parameters import parameters_of_plan
from tiered.numerics.quantization.quantization_plan import (
    QuantizationPlan,
    Unit,
    activated,
    range_of_constant,
    without,
)
from tiered.numerics.quantization.scales import Parameters
from tiered.numerics.quantization.scheme import Scheme

_MOST_ELEMENTS: Final = 1 << 16
"""Constants with more elements are weights, not epsilons."""

_EIGHT_BITS: Final = Narrow.of(DataType.FLOAT8E4M3FN)
"""Floats of 8 bits, which have no small probabilities either."""

_BEYOND: Final = f"numbers of {LARGEST:g} or more were seen"
"""Why a product stays float: numbers of no size decide no range, and are multiplied here."""

_FED: Final = Interval(-1e4, 1e4)
"""What is assumed of inputs where it is asked whether a value may be 0."""


def masked(model: Model, plan: QuantizationPlan, samples: Sequence[Feeds]) -> dict[Node, str]:
    """Return what must not be quantised as it reads or computes masks, each with the reason.

    Args:
        model: the model.
        plan: of it.
        samples: inputs, which may be masks.
    """
    limits = mask_limits(model, samples)
    reason = str(MASKED)
    return {
        **{each.node: reason for each in plan.units if limits.keys() & each.data},
        **{node: reason for node, values in plan.others.items() if limits.keys() & values},
    }


class PlanRanges:
    """The ranges of the values of a plan.

    Args:
        model: the model.
        measured: what was measured.
        scheme: of the target.
    """

    def __init__(self, model: Model, measured: Calibration, scheme: Scheme) -> None:
        self._model = model
        self._measured = measured
        self._scheme = scheme
        # NaN and infinities are no numbers that a range has room for.
        floats = (value for value in model.main.inputs if value.dtype == DataType.FLOAT)
        fed = dict.fromkeys((value.name for value in floats), _FED)
        self._proven = model.analysis(ranges.with_inputs(fed))

    def of(self, value: Value) -> tuple[float, float] | None:
        """Return the measured range of a value, or the proven one of a value inside a body.

        A tensor without elements has that of 0, which every range holds.
        """
        if 0 in (value.static_shape or ()):
            return 0.0, 0.0
        if value.is_constant:
            return range_of_constant(value)
        if value.owner.is_main:
            return self._measured.interval(value.name)
        proof = self._model.analysis(ranges)[value]
        is_usable = proof.is_finite and proof.magnitude < LARGEST
        return (float(proof.low), float(proof.high)) if is_usable else None

    def parameters(self, plan: QuantizationPlan) -> dict[Value, Parameters]:
        """Return the scale and the zero point of each value of a plan."""
        known = {value: self.of(value) for value in plan.pairs}
        found = {value: pair for value, pair in known.items() if pair is not None}
        return parameters_of_plan(plan, found, self._scheme)

    def known(self, plan: QuantizationPlan) -> QuantizationPlan:
        """Return the plan without the operators that have a value without a range, or beyond it."""
        beyond = {unit.node: _BEYOND for unit in plan.units if any(map(self._is_beyond, unit.data))}
        plan = without(plan, beyond, self._scheme)
        while True:
            unknown = {value for value in plan.pairs if self.of(value) is None}
            removed = {
                unit.node: _reason(unknown.intersection(_touched(unit)))
                for unit in plan.units
                if unknown.intersection(_touched(unit))
            }
            for node, values in plan.others.items():
                if found := unknown.intersection(_around(node, values)):
                    removed[node] = _reason(found)
            if not removed:
                return plan
            plan = without(plan, removed, self._scheme)

    def _is_beyond(self, value: Value) -> bool:
        """Return whether numbers were seen that no range has room for, and that are no masks."""
        found = self._measured.ranges.get(value.name)
        return found is not None and found.oversized > 0

    def without_lost(self, plan: QuantizationPlan) -> QuantizationPlan:
        """Return the plan without the operators whose small numbers would become 0.

        These are what a divisor, a logarithm or a negative power is computed by, as far as a number
        that is not 0 would be. Of a target without floats only numbers that were seen count: where
        range analysis merely does not exclude them, as those near an epsilon, the least number of
        the value is one step of its scale.
        """
        parameters = self.parameters(plan)

        def lost(value: Value, node: Node) -> float:
            is_read = value in parameters and node in plan.pairs[value]
            return self._lost(parameters[value], self._least(value)) if is_read else 0.0

        found = list(lost_numbers(self._model, lost))
        is_needed = {
            each.value: self._scheme.in_integers is None
            or _is_bound(each.value)
            or bool(self._lost(parameters[each.value], self._least_seen(each.value)))
            for each in found
        }
        needed = [each for each in found if is_needed[each.value]]
        roles = zero_roles(needed)
        if any(each.way[0].op_type == "Log" for each in needed):
            roles = probability_roles(self._model, _EIGHT_BITS) | roles
        removed = {node: str(roles[node]) for node in plan.others if node in roles}
        for unit in plan.units:
            value = activated(unit.node.output)
            if value.producer in roles and value in plan.pairs:
                removed[unit.node] = str(roles[value.producer])
        plan = without(plan, removed, self._scheme) if removed else plan
        bounds = (value for value, needed in is_needed.items() if not needed)
        plan.floors = {value: 1 if self._proven[value].low >= 0 else -1 for value in bounds}
        return plan

    @staticmethod
    def _lost(parameters: Parameters, least: float) -> float:
        """Return the least magnitude of a value if it becomes 0; else 0."""
        # A range of one sign has no code beside that of 0 for numbers of the other sign.
        codes = parameters.codes(np.array([least, -least]))
        return least if (codes == parameters.zero).all() else 0.0

    def _least(self, value: Value) -> float:
        """Return the least magnitude of a value that is never 0; 0 for others."""
        if value.tensor is not None:
            return _least_of(value.tensor.numpy()) if value.tensor.size <= _MOST_ELEMENTS else 0.0
        proof = self._proven[value]
        proven = _away_from_zero(float(proof.low), float(proof.high))
        return min(filter(None, (proven, self._least_seen(value))), default=0.0)

    def _least_seen(self, value: Value) -> float:
        """Return the least magnitude of a value that was seen, if 0 was not; else 0."""
        seen = self._measured.ranges.get(value.name) if value.owner.is_main else None
        return 0.0 if seen is None else _away_from_zero(seen.least, seen.most)


def _is_bound(value: Value) -> bool:
    """Return whether a value is a constant, an input or an output, whose numbers cannot change."""
    return value.producer is None or value.is_graph_output or not value.owner.is_main


def _away_from_zero(low: float, high: float) -> float:
    """Return the least magnitude of a range; 0 if it has 0."""
    return max(low, -high, 0.0)


def _least_of(array: np.ndarray[Any, Any]) -> float:
    """Return the least magnitude of the numbers that are not 0."""
    found = np.abs(array[(array != 0) & np.isfinite(array)])
    return float(found.min()) if found.size else 0.0


def _reason(values: Iterable[Value]) -> str:
    is_inner = any(not value.owner.is_main for value in values)
    return "a value inside a body is not measured" if is_inner else "no finite number was seen"


def _around(node: Node, values: Sequence[Value]) -> set[Value]:
    """Return the values whose ranges an operator needs that is no product."""
    readers = node.outputs[0].readers if node.outputs[0] is not None else ()
    return {*values, *(reader.output for reader in readers if len(reader.outputs) == 1)}


def _touched(unit: Unit) -> set[Value]:
    """Return the values whose ranges a product needs."""
    readers = unit.node.output.readers
    after = {reader.output for reader in readers if len(reader.outputs) == 1}
    return {*unit.data, unit.node.output, *after}
