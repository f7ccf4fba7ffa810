"""Static quantisation: plan, calibrate, place, and return the worst products to float."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import onnx

from tiered.analysis.legalization.search import legalize_nodes
from tiered.analysis.roles.masks import LARGEST, MASKED, mask_limits
from tiered.graph import Model, Node, Value
from tiered.graph.intervals.analysis import ranges
from tiered.graph.io.export import export_model
from tiered.numerics.calibration.calibrate import MADE, Calibration, SampledModel, calibrate
from tiered.numerics.calibration.observers import Method
from tiered.numerics.precision.budget import Budget, meet
from tiered.numerics.precision.effects import Order, effects_for
from tiered.numerics.precision.narrowing import unmatched, why_skipped
from tiered.numerics.precision.noise import Feeds, Reference
from tiered.numerics.precision.widening import widen_products
from tiered.numerics.quantization.choice import Choice, Chosen, candidates, chosen
from tiered.numerics.quantization.deployed import (
    SATURATION,
    Processor,
    deployed_ratio,
    deviation,
    runs_deployed,
    saturates,
    scheme_for,
)
from tiered.numerics.quantization.parameters import parameters_of_plan
from tiered.numerics.quantization.placement import Placed, channel_axis, place
from tiered.numerics.quantization.plan import (
    Keep,
    Plan,
    Unit,
    is_quantized,
    plan_of,
    range_of_constant,
    without,
)
from tiered.numerics.quantization.rounding import Rounding, readers_of
from tiered.numerics.quantization.scales import Parameters
from tiered.numerics.quantization.scheme import PRODUCTS, Scheme, scheme_of
from tiered.numerics.quantization.untied import tie_again, untie
from tiered.rewriter import Skip
from tiered.runtime.byte_products import byte_products
from tiered.runtime.inputs.samples import Source, check_given, read_samples
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.targets import Backend

RoundingMode = Literal["samples", "nearest"]

OnFound = Callable[[str], None]
OnSkip = Callable[["Node | None", Skip], None]

_UNSEEN: Final = 4
"""Of so many samples of the user, one is kept for measuring; of made ones, as many more are made.
"""


@dataclass(frozen=True)
class QuantizationSettings:
    """How a model is quantised.

    Attributes:
        inputs: the user's samples; without any, inputs are made.
        method: of the calibration; auto for the best on samples that are held back.
        percentile: of the method of that name.
        seed: of generated inputs.
        samples: how many are made.
        budget: how far the outputs may move; None for any distance.
        order: which products return to float first: those with the largest error of their own, or
            with the largest effect of it on the outputs, by gradients; by default the latter, if
            all operators have gradients.
        measures: whether the ratios are measured without a budget too.
        skip_op_types, skip_nodes: what stays float: operators, and globs of names of nodes.
        reduce_range: 7 bits for weights; None as the backend needs.
        processor: on which the result runs; None for the one at hand.
        rounding: of weights: for the data of samples, or to nearest.
    """

    inputs: Sequence[Source] = ()
    method: Choice = "mse"
    percentile: float = 99.999
    seed: int = 0
    samples: int = MADE
    budget: Budget | None = None
    order: Order = "auto"
    measures: bool = False
    skip_op_types: Sequence[str] = ()
    skip_nodes: Sequence[str] = ()
    reduce_range: bool | None = None
    processor: Processor | None = None
    rounding: RoundingMode = "samples"

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            UsageError: one is out of its range.
        """
        if not 0 < self.percentile <= 100:
            raise UsageError(f"percentile is {self.percentile:g}; expected above 0, at most 100")
        if self.samples < 1:
            raise UsageError(f"samples is {self.samples}; expected at least 1")

    def keep(self, node: Node) -> str:
        """Return why the user keeps a node in float; empty if not."""
        return why_skipped(node, self.skip_op_types, self.skip_nodes)


@dataclass(frozen=True)
class QuantizationResult:
    """What quantisation did.

    Attributes:
        plan: what is quantised; the nodes are those of the edited model.
        stored: the weight of each product, by the name of its output.
        parameters: of each quantised value, by name.
        sqnr: of the model, in dB; None if it was not measured, or no output is of floats.
        differing: the share of the elements of the outputs that differ, if none is of floats.
        deployed: the same with onnxruntime's own optimisations; None if it does not run so.
        is_saturated: whether onnxruntime's sums of 8-bit products saturate on this processor.
        alone: that of each product when it alone is quantised, by the name of its output.
        returned: the products that the budget returned to float, each with its ratio.
        calibration: what was measured; None if nothing is quantised.
        shapes: of the operands and results of products for a sample, where ratios were measured.
        outputs: the name of the result that each quantised product had before.
        unseen: the samples that ratios were measured on.
        method: of the calibration, where it was chosen; None if it was given.
    """

    plan: Plan
    stored: Mapping[str, Placed] = field(default_factory=dict)
    parameters: Mapping[str, Parameters] = field(default_factory=dict)
    sqnr: float | None = None
    differing: float | None = None
    deployed: float | None = None
    is_saturated: bool = False
    alone: Mapping[str, float] = field(default_factory=dict)
    returned: Sequence[tuple[Node, float]] = ()
    calibration: Calibration | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    outputs: Mapping[Node, str] = field(default_factory=dict)
    unseen: Sequence[Feeds] = ()
    method: Chosen | None = None

    @property
    def warning(self) -> str:
        """What onnxruntime's own optimisations do to the ratio, and why; empty if little."""
        if self.sqnr is None:
            return SATURATION if self.is_saturated else ""
        return deviation(
            self.sqnr,
            self.deployed,
            is_saturated=self.is_saturated,
            has_returned=bool(self.returned),
        )


def quantize_model(
    model: Model,
    settings: QuantizationSettings,
    on_found: OnFound = lambda text: None,
    on_skip: OnSkip = lambda node, reason: None,
    *,
    backend: Backend | None = None,
    on_step: OnFound = lambda text: None,
) -> QuantizationResult:
    """Quantise the products of a model, as QDQ.

    A model that has quantised data already stays as it is.

    Args:
        model: edited in place.
        settings: how.
        on_found: called with each finding.
        on_skip: called with each product that stays float, and the reason.
        backend: the target; its table decides dtypes, symmetry and operators.
        on_step: called with what is done next, for progress.

    Raises:
        UsageError: a file of inputs belongs to no input of the model, a name of `skip_nodes` or
            `skip_op_types` fits nothing, a processor is named that makes no difference, or products
            are ordered by sensitivity and an operator has no gradient.
        ModelError: a file of inputs cannot be read.
        RuntimeFailure: onnxruntime does not run the model.
        VerificationError: the budget does not hold with all products in float, or no output has an
            element that can be compared.
    """
    for text in unmatched(model, settings.skip_op_types, settings.skip_nodes):
        on_found(text)
    scheme = scheme_of(backend)
    if backend is not None and scheme.in_integers is not None and not is_quantized(model):
        model.refresh_types()
        floating = backend.before_quantization
        legalize_nodes(model, floating, on_skip, numerics=Numerics.APPROXIMATE)
    model.refresh_types()
    if not is_quantized(model):
        for text in widen_products(model, PRODUCTS):
            on_found(text)
    is_here = backend is None
    tied = {} if is_quantized(model) else untie(model)
    try:
        found = _Quantization(model, settings, scheme, on_found, on_step, is_here=is_here).run()
    finally:
        tie_again(tied)
    for node, reason in (*found.plan.kept, *found.plan.floating):
        on_skip(node, Skip(reason))
    for node, ratio in found.returned:
        on_found(f"returned to float: {node.label}, {ratio:.1f} dB alone")
    units, kept = len(found.plan.units), len(found.plan.kept)
    why_nothing = None if found.returned else found.plan.why_nothing(settings.keep)
    if why_nothing is not None:
        on_skip(None, why_nothing)
    if units:
        on_found(f"{units} of {units + kept} products are quantised")
    if found.plan.others:
        on_found(f"{len(found.plan.others)} other operators are quantised")
    if found.plan.floating:
        on_found(f"{len(found.plan.floating)} other operators stay float")
    if found.method is not None:
        on_found(str(found.method))
    if found.sqnr is not None:
        on_found(f"signal to noise of the outputs: {found.sqnr:.1f} dB")
    if found.differing is not None:
        on_found(f"no output is of floats; {found.differing:.2%} of the elements differ")
    if warning := found.warning:
        on_found(warning)
    return found


class _Samples(NamedTuple):
    """Samples: those of the ranges, the part of them for trials, and those that trials run on."""

    whole: Sequence[Feeds]
    part: Sequence[Feeds]
    unseen: Sequence[Feeds]


class _Quantization:
    def __init__(
        self,
        model: Model,
        settings: QuantizationSettings,
        scheme: Scheme,
        on_found: OnFound,
        on_step: OnFound,
        *,
        is_here: bool,
    ) -> None:
        self.is_here = is_here
        self.model = model
        self.settings = settings
        self.scheme = scheme
        self.on_found = on_found
        self.on_step = on_step
        self.method: Method = candidates(settings.method)[0]

    def run(self) -> QuantizationResult:
        """Edit the model."""
        self.given = read_samples(self.settings.inputs)
        check_given(self.model, self.given)
        keep: Keep = self.settings.keep
        plan = plan_of(self.model, self.scheme, keep)
        if not plan.units and not plan.others:
            return QuantizationResult(plan)
        self.scheme = scheme_for(
            self.scheme,
            self.settings.processor,
            reduce_range=self.settings.reduce_range,
            is_here=self.is_here,
        )
        samples = self._samples()
        plan = without(plan, self._masked(plan, samples.whole), self.scheme)
        if not plan.units and not plan.others:
            return QuantizationResult(plan)
        self.measured = self._calibrated(plan, samples.whole)
        plan = self._with_ranges(plan)
        with self._rounding(plan, samples.part) as self.rounding:
            return self._finished(plan, samples)

    def _rounding(
        self, plan: Plan, feeds: Sequence[Feeds]
    ) -> AbstractContextManager[Rounding | None]:
        """Return what rounds weights for samples, if that is wanted."""
        if self.settings.rounding == "nearest":
            return nullcontext()
        self.on_step("rounding weights")
        axes = (
            (unit.node, channel_axis(unit.node, 1, value.rank or 0))
            for unit in plan.units
            if unit.roles.get(1) == "weight" and (value := unit.node.input(1)) is not None
        )
        known = [(node, axis) for node, axis in axes if axis is not None]
        return Rounding(self.model, readers_of(known), feeds)

    def _finished(self, plan: Plan, samples: _Samples) -> QuantizationResult:
        """Edit the model, and measure that if it is wanted."""
        if not self._measures:
            return self._placed(plan)
        self.on_step("running the model of floats")
        proto = export_model(self.model, is_bare=True)
        reference = Reference(proto, self.model.folder, samples.unseen)
        if self.settings.method == "auto":
            method = self._choose(plan, reference, samples)
            return replace(self._measured(plan, reference, samples), method=method)
        return self._measured(plan, reference, samples)

    def _choose(self, plan: Plan, reference: Reference, samples: _Samples) -> Chosen:
        """Take the method of the calibration that is best on the samples that are held back."""

        def ratio(method: Method) -> float | None:
            self.on_step(f"trying {method}")
            self.method = method
            found = self._calibrated(plan, samples.part)
            self.measured = replace(found, ranges={**whole.ranges, **found.ranges})
            return reference.decibels(self._tried(plan))

        whole = self.measured
        found = chosen(self.settings.method, ratio)
        self.method = found.method
        self.measured = self._calibrated(plan, samples.whole)
        return found

    def _measured(self, plan: Plan, reference: Reference, samples: _Samples) -> QuantizationResult:
        """Edit the model, so that a budget holds on samples that ranges are not of."""
        whole = self.measured
        if len(samples.part) < len(samples.whole):
            part = self._calibrated(plan, samples.part)
            self.measured = replace(part, ranges={**whole.ranges, **part.ranges})
        return self._within_budget(plan, reference, whole)

    @property
    def _measures(self) -> bool:
        settings = self.settings
        return settings.measures or settings.budget is not None or settings.method == "auto"

    def _calibrated(self, plan: Plan, samples: Sequence[Feeds]) -> Calibration:
        """Return the ranges of the values of a plan."""
        measured = calibrate(
            self.model,
            [value for value in plan.pairs if not value.is_constant],
            samples,
            method=self.method,
            percentile=self.settings.percentile,
            levels=self.scheme.levels,
            on_sample=self.on_step,
        )
        return replace(measured, is_made=not self.settings.inputs)

    def _samples(self) -> _Samples:
        """Return the samples: measuring changes none of those that ranges are of."""
        given, count = self.given, self.settings.samples
        if not given:
            self.on_found("no samples are given: ranges are those of generated inputs")
        with SampledModel.of(self.model) as running:
            more = max(1, count // 2) if self._measures else 0
            feeds = running.samples(given, seed=self.settings.seed, count=count + more)
        if not given:
            return _Samples(feeds[:count], feeds[:count], feeds[count:])
        if not self._measures or len(feeds) < _UNSEEN:
            return _Samples(feeds, feeds, feeds)
        part = [each for at, each in enumerate(feeds) if at % _UNSEEN]
        return _Samples(feeds, part, feeds[::_UNSEEN])

    def _masked(self, plan: Plan, samples: Sequence[Feeds]) -> dict[Node, str]:
        """Return the products that must not be quantised for their numbers."""
        limits = mask_limits(self.model, samples)
        reason = str(MASKED)
        return {
            **{each.node: reason for each in plan.units if limits.keys() & each.data},
            **{node: reason for node, values in plan.others.items() if limits.keys() & values},
        }

    # --- ranges -----------------------------------------------------------------------------------

    def _with_ranges(self, plan: Plan) -> Plan:
        """Return the plan without the products that have a value without a range."""
        while True:
            unknown = {value for value in plan.pairs if self._range(value) is None}
            removed = {
                unit.node: self._reason(unknown.intersection(_touched(unit)))
                for unit in plan.units
                if unknown.intersection(_touched(unit))
            }
            for node, values in plan.others.items():
                if found := unknown.intersection(_around(node, values)):
                    removed[node] = self._reason(found)
            if not removed:
                return plan
            plan = without(plan, removed, self.scheme)

    @staticmethod
    def _reason(values: Iterable[Value]) -> str:
        is_inner = any(not value.owner.is_main for value in values)
        return "a value inside a body is not measured" if is_inner else "no finite number was seen"

    def _range(self, value: Value) -> tuple[float, float] | None:
        """Return the measured range of a value, or the proven one of a value inside a body."""
        if value.is_constant:
            return range_of_constant(value)
        if value.owner.is_main:
            return self.measured.interval(value.name)
        proof = self.model.analysis(ranges)[value]
        is_usable = proof.is_finite and proof.magnitude < LARGEST
        return (float(proof.low), float(proof.high)) if is_usable else None

    def _parameters(self, plan: Plan) -> dict[Value, Parameters]:
        known = {value: self._range(value) for value in plan.pairs}
        found = {value: pair for value, pair in known.items() if pair is not None}
        return parameters_of_plan(plan, found, self.scheme)

    # --- the edit and the budget ------------------------------------------------------------------

    def _placed(self, plan: Plan) -> QuantizationResult:
        parameters = self._parameters(plan)
        names = {value.name: found for value, found in parameters.items()}
        # A product whose result is an output of the model gives its name to the DequantizeLinear.
        outputs = {unit.node: unit.node.output.name for unit in plan.units}
        stored = place(self.model, plan, self.scheme, parameters, self.rounding)
        return QuantizationResult(
            plan,
            stored,
            names,
            is_saturated=self._saturates(plan),
            outputs=outputs,
            calibration=self.measured,
        )

    def _saturates(self, plan: Plan) -> bool:
        return saturates(self.scheme, (unit.node.op_type for unit in plan.units))

    def _runs_here(self) -> bool:
        """Return whether onnxruntime computes here what it computes where the result runs."""
        is_exact = self.settings.processor != "vnni" or byte_products() == "exact"
        return is_exact and self.scheme.in_integers is None

    def _tried(self, plan: Plan) -> onnx.ModelProto:
        """Return the model with a plan, and undo it."""
        mark = self.model.mark()
        place(self.model, plan, self.scheme, self._parameters(plan), self.rounding)
        proto = export_model(self.model, is_bare=True)
        self.model.undo_to(mark)
        return proto

    def _within_budget(
        self, plan: Plan, reference: Reference, whole: Calibration
    ) -> QuantizationResult:
        """Quantise; the worst products stay float until the budget holds.

        It holds with the ranges of a part of the samples, on the others, and with those of all.
        """
        self.on_step("measuring each product")
        first, shapes = self._tried(plan), reference.shapes(_names(plan))
        names = [unit.node.output.name for unit in plan.units if unit.node.owner.is_main]
        alone = reference.alone(first, names)
        worst = self._ranked(plan, alone, reference)
        budget, returned = self.settings.budget, tuple[Unit, ...]()
        is_saturated, part = self._saturates(plan), self.measured
        if budget is not None:
            is_deployed = self._runs_here() and runs_deployed(first, reference)

            def measure(units: Sequence[Unit]) -> float | None:
                self.on_step(f"budget: {len(units)} of {len(worst)} products in float")
                rest, found = self._less(plan, units, budget), list[float | None]()
                for self.measured in [part] if part is whole else [part, whole]:
                    tried = self._tried(rest)
                    found.append(reference.metric(tried, budget, is_deployed=is_deployed))
                return budget.worst_of(found)

            returned = meet(worst, measure, budget, "products").items
            plan = self._less(plan, returned, budget)
            self.measured = part
        final = self._tried(plan) if returned else first
        self.measured = whole
        done = self._placed(plan) if plan.units or plan.others else QuantizationResult(plan)
        pairs = [(unit.node, alone.get(unit.node.output.name, math.inf)) for unit in returned]
        sqnr = reference.decibels(final)
        return replace(
            done,
            sqnr=sqnr,
            differing=reference.differing(final) if sqnr is None else None,
            deployed=deployed_ratio(final, reference),
            is_saturated=is_saturated,
            alone=alone,
            returned=pairs,
            shapes=shapes,
            unseen=reference.feeds,
        )

    def _ranked(
        self, plan: Plan, alone: Mapping[str, float], reference: Reference
    ) -> list[Unit]:
        """Return the products, those that are the first to return to float first."""
        effects: Mapping[Node, float] | None = None
        if self.settings.budget is not None:
            self.on_step("differentiating")
            nodes = [unit.node for unit in plan.units]
            effects = effects_for(self.settings.order, self.model, nodes, reference.feeds)

        def weight(unit: Unit) -> float:
            relative = float(10 ** (-alone.get(unit.node.output.name, math.inf) / 20))
            return relative if effects is None else relative * effects.get(unit.node, 0.0)

        return sorted(plan.units, key=weight, reverse=True)

    def _less(self, plan: Plan, units: Sequence[Unit], budget: Budget) -> Plan:
        return without(plan, {unit.node: f"the budget {budget}" for unit in units}, self.scheme)


def _names(plan: Plan) -> list[str]:
    """Return the operands and results of all products of the main graph."""
    nodes = [*(unit.node for unit in plan.units), *(node for node, _ in plan.kept)]
    values = (value for node in nodes for value in (*node.inputs, *node.outputs[:1]))
    return [value.name for value in values if value is not None and value.owner.is_main]


def _around(node: Node, values: Sequence[Value]) -> set[Value]:
    """Return the values whose ranges an operator needs that is no product."""
    readers = node.outputs[0].readers if node.outputs[0] is not None else ()
    return {*values, *(reader.output for reader in readers if len(reader.outputs) == 1)}


def _touched(unit: Unit) -> set[Value]:
    """Return the values whose ranges a product needs."""
    readers = unit.node.output.readers
    after = {reader.output for reader in readers if len(reader.outputs) == 1}
    return {*unit.data, unit.node.output, *after}
