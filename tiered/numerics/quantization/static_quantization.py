"""Static quantisation: plan, calibrate, place, and return the worst products to float."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import onnx

from tiered.analysis.legalization.legalization_search import legalize_nodes
from tiered.graph import Model, Node
from tiered.graph.io.export import export_model
from tiered.numerics.calibration.calibrate import Calibration, SampledModel, calibrate
from tiered.numerics.calibration.observers import Method
from tiered.numerics.precision.budget import Budget, meet
from tiered.numerics.precision.narrowing import unmatched
from tiered.numerics.precision.node_effects import effects_for
from tiered.numerics.precision.noise import Feeds, FloatReference
from tiered.numerics.precision.widening import widen_products
from tiered.numerics.quantization.choice import Chosen, candidates, chosen
from tiered.numerics.quantization.deployed import (
    deployed_ratio,
    runs_deployed,
    saturates,
    scheme_for,
)
from tiered.numerics.quantization.placement import channel_axis, place
from tiered.numerics.quantization.plan_ranges import PlanRanges, masked
from tiered.numerics.quantization.quantization_plan import (
    Keep,
    QuantizationPlan,
    Unit,
    is_quantized,
    plan_of,
    without,
)
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.numerics.quantization.rounding import Rounding, readers_of
from tiered.numerics.quantization.scheme import PRODUCTS, Scheme, scheme_of
from tiered.numerics.quantization.settings import QuantizationSettings
from tiered.numerics.quantization.untied import tie_again, untie
from tiered.rewriter import Skip
from tiered.runtime.byte_products import byte_products
from tiered.runtime.inputs.samples import check_given, read_samples
from tiered.support.amounts import counted
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.targets import Backend

OnFound = Callable[[str], None]
OnSkip = Callable[["Node | None", Skip], None]

_UNSEEN: Final = 4
"""One of four samples of the user is kept for measuring; made ones are half as many more."""


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
    nothing = found.plan.why_nothing()
    if nothing is not None:
        on_skip(None, nothing)
    if units:
        on_found(f"{units} of {units + kept} products are quantised")
    if found.plan.others:
        one, many = "other operator is quantised", "other operators are quantised"
        on_found(counted(len(found.plan.others), one, many))
    if found.plan.floating:
        one, many = "other operator stays float", "other operators stay float"
        on_found(counted(len(found.plan.floating), one, many))
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
        plan = without(plan, masked(self.model, plan, samples.whole), self.scheme)
        if not plan.units and not plan.others:
            return QuantizationResult(plan)
        self.measured = self._calibrated(plan, samples.whole)
        plan = self.ranges.without_lost(self.ranges.known(plan))
        with ExitStack() as stack:
            self.rounding = stack.enter_context(self._rounding(plan, samples.part))
            self.last_rounding = self.rounding
            if len(samples.part) < len(samples.whole):
                self.last_rounding = stack.enter_context(self._rounding(plan, samples.whole))
            return self._finished(plan, samples)

    def _rounding(
        self, plan: QuantizationPlan, feeds: Sequence[Feeds]
    ) -> AbstractContextManager[Rounding | None]:
        """Return what rounds weights for samples, if that is wanted."""
        if self.settings.rounding == "nearest":
            return nullcontext()
        self.on_step("rounding weights")
        axes = (
            (unit.node, channel_axis(unit.node, 1, unit.node.given(1).rank or 0))
            for unit in plan.units
            if unit.roles.get(1) == "weight"
        )
        known = [(node, axis) for node, axis in axes if axis is not None]
        return Rounding(self.model, readers_of(known), feeds)

    def _finished(self, plan: QuantizationPlan, samples: _Samples) -> QuantizationResult:
        """Edit the model, and measure that if it is wanted."""
        if not self._measures:
            return self._placed(plan)
        self.on_step("running the model of floats")
        proto = export_model(self.model, is_bare=True)
        reference = FloatReference(proto, self.model.folder, samples.unseen)
        if self.settings.method == "auto":
            method = self._choose(plan, reference, samples)
            return replace(self._measured(plan, reference, samples), method=method)
        return self._measured(plan, reference, samples)

    def _choose(
        self, plan: QuantizationPlan, reference: FloatReference, samples: _Samples
    ) -> Chosen:
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

    def _measured(
        self, plan: QuantizationPlan, reference: FloatReference, samples: _Samples
    ) -> QuantizationResult:
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

    def _calibrated(self, plan: QuantizationPlan, samples: Sequence[Feeds]) -> Calibration:
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

    @property
    def ranges(self) -> PlanRanges:
        """The ranges that are measured now."""
        return PlanRanges(self.model, self.measured, self.scheme)

    # --- the edit and the budget ------------------------------------------------------------------

    def _placed(self, plan: QuantizationPlan) -> QuantizationResult:
        parameters = self.ranges.parameters(plan)
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

    def _saturates(self, plan: QuantizationPlan) -> bool:
        return saturates(self.scheme, (unit.node.op_type for unit in plan.units))

    def _runs_here(self) -> bool:
        """Return whether onnxruntime computes here what it computes where the result runs."""
        is_exact = self.settings.processor != "vnni" or byte_products() == "exact"
        return is_exact and self.scheme.in_integers is None

    def _tried(self, plan: QuantizationPlan) -> onnx.ModelProto:
        """Return the model with a plan, and undo it."""
        mark = self.model.mark()
        place(self.model, plan, self.scheme, self.ranges.parameters(plan), self.rounding)
        proto = export_model(self.model, is_bare=True)
        self.model.undo_to(mark)
        return proto

    def _within_budget(
        self, plan: QuantizationPlan, reference: FloatReference, whole: Calibration
    ) -> QuantizationResult:
        """Quantise; the worst products stay float until the budget holds.

        It holds with ranges and weights for a part of the samples, on the others, and for all.
        """
        self.on_step("measuring each product")
        first, shapes = self._tried(plan), reference.shapes(_names(plan))
        names = [unit.node.output.name for unit in plan.units if unit.node.owner.is_main]
        alone = reference.alone(first, names)
        worst = self._ranked(plan, alone, reference)
        budget, returned = self.settings.budget, tuple[Unit, ...]()
        is_saturated, part = self._saturates(plan), (self.measured, self.rounding)
        last = whole, self.last_rounding
        if budget is not None:
            is_deployed = self._runs_here() and runs_deployed(first, reference)

            def measure(units: Sequence[Unit]) -> float | None:
                self.on_step(f"budget: {len(units)} of {len(worst)} products in float")
                rest, found = self._less(plan, units, budget), list[float | None]()
                for self.measured, self.rounding in [part] if part[0] is whole else [part, last]:
                    tried = self._tried(rest)
                    found.append(reference.metric(tried, budget, is_deployed=is_deployed))
                return budget.worst_of(found)

            returned = meet(worst, measure, budget, "products").items
            plan = self._less(plan, returned, budget)
            self.measured, self.rounding = part
        final = self._tried(plan) if returned else first
        self.measured, self.rounding = last
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
        self, plan: QuantizationPlan, alone: Mapping[str, float], reference: FloatReference
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

    def _less(
        self, plan: QuantizationPlan, units: Sequence[Unit], budget: Budget
    ) -> QuantizationPlan:
        return without(plan, {unit.node: f"the budget {budget}" for unit in units}, self.scheme)


def _names(plan: QuantizationPlan) -> list[str]:
    """Return the operands and results of all products of the main graph."""
    nodes = [*(unit.node for unit in plan.units), *(node for node, _ in plan.kept)]
    values = (value for node in nodes for value in (*node.inputs, *node.outputs[:1]))
    return [value.name for value in values if value is not None and value.owner.is_main]
