"""Mixed precision: the nodes that stay float are found by ranges, local errors and a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tiered.calibration.calibrate import calibrate
from tiered.errors import RuntimeFailure
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.core.dtypes import float_info
from tiered.graph.queries.op_traits import MOVES
from tiered.intervals.analysis import ranges
from tiered.intervals.interval import is_integer
from tiered.precision.budget import Budget, budget_of, meet
from tiered.precision.convert import Conversion
from tiered.precision.effects import Order, output_effects
from tiered.precision.local_errors import LocalError, local_errors
from tiered.precision.lower import OnFound, OnSkip, PrecisionRules, RuledNarrowing, narrowed, report
from tiered.precision.plan import Plan, plan_of
from tiered.precision.trials import Outputs, Trials
from tiered.precision.variables import variables_of
from tiered.rewriter import Skip
from tiered.roles.analysis import roles_of
from tiered.roles.masks import mask_limits
from tiered.verify.samples import Source

_MARGIN: Final = 4
"""Measured numbers may be so many times as large for other inputs."""

_AMPLIFIED: Final = 4
"""A local error of so many eps is no longer that of rounding the outputs."""

_SUSPECTS: Final = frozenset(
    {"CumSum", "Div", "Exp", "GroupNormalization", "InstanceNormalization", "LayerNormalization",
     "Log", "LogSoftmax", "Pow", "RMSNormalization", "Reciprocal", "ReduceL1", "ReduceL2",
     "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare",
     "Softmax", "Softplus", "Sqrt"}
)  # fmt: skip
"""Operators that stay float where nothing can be measured and no range is proven."""


def mixed_precision(
    model: Model,
    low: DataType,
    on_found: OnFound,
    on_skip: OnSkip,
    *,
    rules: PrecisionRules,
    budget: str = "",
    order: Order = "error",
    inputs: Iterable[Source] = (),
    max_error: float = 0.05,
    keep_io_types: bool = True,
    seed: int = 0,
    samples: int = 2,
) -> Conversion:
    """Compute in a narrower type where the outputs allow it, and note what stayed and why.

    A node stays float by the first that holds: the user's rules, the kernels of the target, a
    value that is not proven to fit and was measured too large, a local error; and, from the
    largest local error or effect on, for the budget.

    Args:
        model: the model, edited in place.
        low: the narrower type.
        on_found: called with each finding.
        on_skip: called with each node that stays float, and the reason.
        rules: the user's.
        budget: the limit of the outputs, as `cosine>=0.999`; "" for none.
        order: the nodes that return to float for it first: those with the largest error of their
            own, or with the largest effect of it on the outputs, by gradients.
        inputs: files or arrays to measure on; made without any.
        max_error: the largest local error, L2 error / L2 norm.
        keep_io_types: inputs and outputs of the model stay float.
        seed: of generated inputs.
        samples: how many are made.

    Raises:
        UsageError: the budget is not readable, a file belongs to no input, or nodes are ordered by
            sensitivity and an operator has no gradient.
        RuntimeFailure: there is a budget, and onnxruntime does not run the model.
        VerificationError: the budget does not hold with all nodes in float.
    """
    wanted = budget_of(budget) if budget else None
    model.refresh_types()
    if wanted is not None and _computes_in(model, low):
        on_skip(None, Skip("nodes compute in {} already", low.name.lower()))
        return Conversion(Plan((), ()), 0, ())
    for text in rules.findings(model):
        on_found(text)
    search = _Search(model, low, rules, keep_io_types)
    try:
        trials = Trials.of(model, inputs, seed=seed, made=samples)
        search.measure(trials, max_error)
    except RuntimeFailure as error:
        if wanted is not None:
            raise
        search.suspect()
        on_found(f"nothing was measured: {str(error).partition(chr(10))[0]}")
        trials = None
    if trials is not None and wanted is not None:
        search.meet(wanted, trials, order)
    if trials is not None:
        for judge, measured in search.measured(trials, wanted):
            on_found(f"measured on {trials} by {judge}: {measured}")
    found = narrowed(model, search.narrowing(), keeps_io=keep_io_types)
    report(model, found, low, on_found, on_skip)
    return found


def _computes_in(model: Model, low: DataType) -> bool:
    """Return whether a node computes in a type: then a budget was not measured against floats."""
    nodes = (node for graph in model.graphs() if not graph.is_function for node in graph.nodes)
    return any(
        value is not None and value.dtype == low
        for node in nodes
        if not node.is_op("Cast") and not node.is_op("Constant")
        for value in node.outputs
    )


class _Search:
    """What is known of the nodes and values of a model so far."""

    def __init__(self, model: Model, low: DataType, rules: PrecisionRules, keeps_io: bool) -> None:
        self.model = model
        self.low = low
        self.rules = rules
        self.keeps_io = keeps_io
        self.limit = float(float_info(low.numpy).max)
        self.amplified = _AMPLIFIED * float(float_info(low.numpy).eps)
        self.kept: dict[Node, str] = {}
        self.beyond: dict[Value, str] = {}
        self.errors: Mapping[Node, LocalError] = {}
        self.by_reference = [False]
        self.roles = roles_of(model, low, rules.forces)

    def narrowing(self, returned: dict[Node, str] | None = None) -> RuledNarrowing:
        """Return the narrowing of all reasons, and of some that are only tried.

        What a node reads stays float with it, if rounding that is what makes its error.
        """
        kept = self.kept | (returned or {})
        beyond = {
            value: f"read by {node.label!r}, which amplifies its rounding"
            for node in kept
            if node in self.errors and self.errors[node].error > self.amplified
            for value in _sources(node)
        }
        return RuledNarrowing(self.low, self.rules, self.roles, kept, beyond | self.beyond)

    def computing(self) -> list[Node]:
        """Return the nodes that compute in the narrower type, as far as is known."""
        variables = variables_of(self.model, self.narrowing(), keeps_io=self.keeps_io)
        low = (each.node for each in plan_of(variables).low if not each.is_free)
        return list(dict.fromkeys(node for node in low if node is not None))

    def measure(self, trials: Trials, max_error: float) -> None:
        """Keep values that are measured too large, and nodes of a large local error."""
        nodes = self.computing()
        masks = mask_limits(self.model)
        casts = self._integer_casts(nodes)
        probed = (*nodes, *casts)
        self.errors = local_errors(self.model, probed, self.low, trials.feeds, masks)
        if self.low == DataType.FLOAT16:  # bfloat16 has the range of float
            self._measure_ranges(nodes, trials)
        for node, found in self.errors.items():
            if found.error > max_error and node in casts:
                self.beyond[casts[node]] = f"{found.error:.2g} of its integers differ"
            elif found.error > max_error:
                self.kept.setdefault(node, f"a local error of {found.error:.2g}")

    def _integer_casts(self, nodes: Iterable[Node]) -> dict[Node, Value]:
        """Return the Casts to integers of what nodes compute, and what they read."""
        outputs = (value for node in nodes for value in node.outputs if value is not None)
        floats = (value for value in outputs if value.dtype == DataType.FLOAT)
        return {
            use.node: value
            for value in floats
            for use in value.users
            if use.node.is_op("Cast") and is_integer(use.node.output.dtype)
        }

    def _measure_ranges(self, nodes: Sequence[Node], trials: Trials) -> None:
        planned = {
            value: None
            for node in nodes
            for value in (*node.inputs, *node.outputs)
            if value is not None and value.dtype == DataType.FLOAT and not value.is_constant
        }
        found = calibrate(self.model, planned, trials.feeds, method="minmax")
        for value in planned:
            seen, proof = found.ranges.get(value.name), found.proven.get(value.name)
            if seen is None:
                continue
            largest = max(-seen.least, seen.most)
            is_proven = proof is not None and proof.magnitude <= self.limit
            if largest * _MARGIN > self.limit and not is_proven:
                self.beyond[value] = f"measured up to {largest:.3g}"
            self._keep_sum(value, largest)

    def _keep_sum(self, value: Value, mean: float) -> None:
        """Keep the node of a mean whose sum does not fit."""
        node = value.producer
        terms = self.errors[node].terms if node is not None and node in self.errors else 1.0
        if node is not None and terms > 1 and mean * terms * _MARGIN > self.limit:
            self.kept[node] = f"a sum up to {mean * terms:.3g} inside"

    def suspect(self) -> None:
        """Keep operators that may leave the range, where no range is proven."""
        proven = self.model.analysis(ranges)
        for node in self.computing():
            is_proven = all(
                proven[value].magnitude <= self.limit
                for value in (*node.inputs, *node.outputs)
                if value is not None and value.dtype == DataType.FLOAT
            )
            if node.op_type in _SUSPECTS and not is_proven:
                self.kept[node] = "its range is neither measured nor proven"

    def meet(self, budget: Budget, trials: Trials, order: Order = "error") -> None:
        """Return nodes to float, from the worst on, until the budget holds.

        A small model is then run on onnx.reference, too, if both agree on the model of floats: the
        budget holds on both.

        Raises:
            VerificationError: it does not hold with all of them in float, or nothing is measured.
        """
        unknown, nodes = LocalError(0.0), self.computing()
        effects = None
        if order == "sensitivity":
            effects = output_effects(self.model, nodes, trials.feeds)

        def weight(node: Node) -> float:
            error = self.errors.get(node, unknown).error
            return error if effects is None else error * effects.get(node, 0.0)

        ranked = sorted(nodes, key=weight, reverse=True)

        def returned(nodes: Iterable[Node]) -> dict[Node, str]:
            return dict.fromkeys(nodes, f"returned for {budget}")

        def measure(nodes: Sequence[Node]) -> float | None:
            runs = self._outputs(trials, self.narrowing(returned(nodes)))
            return budget.worst_of([trials.measure(budget, found) for found in runs.values()])

        what = "nodes that may return to it"
        found = meet(ranked, measure, budget, what)
        if trials.is_small(self.model) and trials.trusts_reference(self.model):
            self.by_reference.append(True)
            final = measure(found.items)
            if final is None or not budget.holds(final):
                found = meet(ranked, measure, budget, what)
        self.kept.update(returned(found.items))

    def measured(self, trials: Trials, budget: Budget | None) -> list[tuple[str, str]]:
        """Return each judge, and the metrics of the outputs on it, in words."""
        runs = self._outputs(trials, self.narrowing())
        return [(judge, trials.describe(found, budget)) for judge, found in runs.items()]

    def _outputs(self, trials: Trials, narrowing: RuledNarrowing) -> dict[str, list[Outputs]]:
        """Return the outputs on each judge; without onnx.reference if that does not run them."""
        found = dict[str, list[Outputs]]()
        for by_reference in tuple(self.by_reference):
            try:
                found["onnx.reference" if by_reference else "onnxruntime"] = (
                    trials.narrowed_outputs(
                        self.model, narrowing, keeps_io=self.keeps_io, by_reference=by_reference
                    )
                )
            except RuntimeFailure:
                if not by_reference:
                    raise
                self.by_reference.remove(True)
        return found


def _sources(node: Node) -> list[Value]:
    """Return the values of floats that a node reads, and those that were moved there."""
    found = dict[Value, None]()
    pending = [node]
    while pending:
        for value in pending.pop().inputs:
            if value is None or value.dtype != DataType.FLOAT or value in found:
                continue
            found[value] = None
            producer = value.producer
            if producer is not None and not producer.domain and producer.op_type in MOVES:
                pending.append(producer)
    return list(found)
