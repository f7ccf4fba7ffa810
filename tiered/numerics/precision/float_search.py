"""The search for the nodes that stay float: ranges, local errors, and what a budget needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Final

from tiered.analysis.roles.masks import mask_limits
from tiered.analysis.roles.model_roles import roles_of
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.core.dtypes import float_info
from tiered.graph.intervals.interval import is_integer
from tiered.graph.intervals.range_analysis import ranges
from tiered.graph.queries.op_traits import MOVES_ELEMENTS, NORMALIZATIONS, REDUCTIONS
from tiered.numerics.calibration.calibrate import Feeds
from tiered.numerics.precision.budget import Budget, meet
from tiered.numerics.precision.cast_plan import plan_of
from tiered.numerics.precision.local_errors import local_errors
from tiered.numerics.precision.lower import (
    PrecisionRules,
    RuledNarrowing,
    share_of_weights,
)
from tiered.numerics.precision.measured_ranges import beyond_range
from tiered.numerics.precision.narrowed_runs import ITSELF, NarrowedRuns, Outputs
from tiered.numerics.precision.node_effects import Order, effects_for
from tiered.numerics.precision.plan_rewrite import convert_precision
from tiered.numerics.precision.return_groups import Groups, rankings_of, weight_bytes
from tiered.numerics.precision.variables import TypeVariable, variables_of
from tiered.support.errors import RuntimeFailure

_ROUNDED: Final = "onnxruntime"
_REFERENCE: Final = "onnx.reference"

_MARGIN: Final = 4
"""The factor by which measured numbers may be larger for other inputs."""

_ALL_WEIGHTS: Final = 100
"""What it costs that all bytes of weights are float, in Casts."""

_ALL_NODES: Final = 50
"""What it costs that all nodes compute in float."""

_MANY: Final = 30
"""More Casts inside of a model are worth that one end of it is float."""

_PARTS: Final = (0.1, 0.2, 0.3, 0.4)
"""The parts of the weights that may be such an end."""

_PART_WEIGHTS: Final = 25
"""What it costs that all bytes of weights are float, in Casts, where there are many."""

_AMPLIFIED: Final = 4
"""A larger local error, in eps, is no longer that of rounding the outputs."""

_SUSPECTS: Final = (
    (frozenset(REDUCTIONS) - {"ReduceMax", "ReduceMin"})  # they select
    # BatchNormalization only scales; the other two have no kernels of 16 bits.
    | (NORMALIZATIONS - {"BatchNormalization", "LpNormalization", "MeanVarianceNormalization"})
    | {"CumSum", "Exp", "LogSoftmax", "Softmax"}
    | {"Div", "Log", "Softplus", "Sqrt"}
    | {"Pow", "Reciprocal"}
)
"""Operators that stay float where nothing can be measured and no range is proven."""


class FloatSearch:
    """What is known of the nodes and values of a model so far.

    Args:
        model: the model of floats.
        low: the narrower type.
        rules: the user's.
        keeps_io: whether inputs and outputs of the model stay float.
    """

    def __init__(self, model: Model, low: DataType, rules: PrecisionRules, keeps_io: bool) -> None:
        self.model = model
        self.low = low
        self.rules = rules
        self.keeps_io = keeps_io
        self.limit = float(float_info(low.numpy).max)
        self.amplified = _AMPLIFIED * float(float_info(low.numpy).eps)
        self.kept: dict[Node, str] = {}
        self.beyond: dict[Value, str] = {}
        self.errors: Mapping[Node, float] = {}
        self.judges = [_ROUNDED]
        self.roles = roles_of(model, low, rules.forces)

    def narrowing(self, returned: dict[Node, str] | None = None) -> RuledNarrowing:
        """Return the narrowing of all reasons, and of some that are only tried.

        What a node reads stays float with it, if rounding that is what makes its error.
        """
        kept = self.kept | (returned or {})
        beyond = {
            value: f"read by {node.label!r}, which amplifies its rounding"
            for node in kept
            if node in self.errors and self.errors[node] > self.amplified
            for value in _sources(node)
        }
        return RuledNarrowing(self.low, self.rules, self.roles, kept, beyond | self.beyond)

    def computing(self) -> list[Node]:
        """Return the nodes that compute in the narrower type, as far as is known."""
        low = (each.node for each in plan_of(self._variables()).low if not each.is_free)
        return list(dict.fromkeys(node for node in low if node is not None))

    def _variables(self) -> list[TypeVariable]:
        """Return the type variables, as far as is known."""
        return variables_of(self.model, self.narrowing(), keeps_io=self.keeps_io)

    def measure(self, trials: NarrowedRuns, max_error: float) -> None:
        """Keep values that are measured too large, and nodes of a large local error."""
        low = plan_of(self._variables()).low
        nodes, masks = self.computing(), mask_limits(self.model)
        casts = self._integer_casts(nodes)
        rounded = {(use.reader, use.place) for variable in low for use in variable.uses}
        self.errors = local_errors(
            self.model,
            (*nodes, *casts),
            self.low,
            trials.feeds,
            masks,
            lambda node, place: node in casts or (node, place) in rounded,
        )
        self.keep_beyond(trials.feeds, _MARGIN)
        for node, error in self.errors.items():
            if error > max_error and node in casts:
                self.beyond[casts[node]] = f"{error:.2g} of its integers differ"
            elif error > max_error:
                self.kept.setdefault(node, f"a local error of {error:.2g}")

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

    def keep_beyond(self, feeds: Sequence[Feeds], margin: float) -> None:
        """Keep what leaves the range of the type on inputs, with a margin for others."""
        if self.low != DataType.FLOAT16:
            return  # bfloat16 has the range of float
        found = beyond_range(self.model, self.computing(), feeds, self.low, margin=margin)
        self.beyond.update(found.values)
        for node, reason in found.nodes.items():
            self.kept.setdefault(node, reason)

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

    def meet(self, budget: Budget, trials: NarrowedRuns, order: Order) -> None:
        """Return nodes to float, from the worst on, until the budget holds.

        A small model is then run on onnx.reference, too, if both agree on the model of floats, and
        any model on onnxruntime itself, if that has kernels: the budget holds on all of these.

        Raises:
            VerificationError: it does not hold with all of them in float, or nothing is measured.
        """
        kept = self._least(budget, trials, order)
        self.judges.append(ITSELF)
        if self._holds(budget, trials, kept):
            self.judges = [judge for judge in self.judges if judge != ITSELF]
        else:
            kept = self._least(budget, trials, order)
        self.kept.update(kept)

    def _holds(self, budget: Budget, trials: NarrowedRuns, kept: dict[Node, str]) -> bool:
        """Return whether a budget holds on all judges while some nodes are float."""
        runs = self._outputs(trials, self.narrowing(kept))
        measured = budget.worst_of([trials.measure(budget, found) for found in runs.values()])
        return measured is not None and budget.holds(measured)

    def _least(self, budget: Budget, trials: NarrowedRuns, order: Order) -> dict[Node, str]:
        """Return the least that has to be float for a budget, by its price."""
        nodes = self.computing()
        effects = effects_for(order, self.model, nodes, trials.feeds)

        def weight(node: Node) -> float:
            error = self.errors.get(node, 0.0)
            return error if effects is None else error * effects.get(node, 0.0)

        variables = self._variables()
        noise = {node: weight(node) for node in nodes}
        found = list[dict[Node, str]]()
        for ranked in rankings_of(variables, nodes, noise):
            found += self._within(budget, trials, ranked)
            if not found[0]:
                break  # none has to be float
        prices = [self._price(each) for each in found]
        best = found[prices.index(min(prices))]
        return self._with_part(best, budget, trials)

    def _with_part(
        self, kept: dict[Node, str], budget: Budget, trials: NarrowedRuns
    ) -> dict[Node, str]:
        """Return nodes that have to be float, with an end of a model that has many Casts inside.

        That is the first or the last part of it, of at most two fifths of the weights: a cut of
        least cost keeps each of many equal layers, or none.
        """
        values = (*self.model.main.inputs, *self.model.main.outputs)
        outside = sum(value.dtype == DataType.FLOAT for value in values)
        casts = self._casts(kept)
        if casts - outside <= _MANY:
            return kept
        low = set(self.computing())
        ordered = self.model.main.topological_order()
        nodes = [node for node in ordered if node in low and node not in kept]
        found = list[tuple[float, dict[Node, str]]]()
        for share in _PARTS:
            for part in (nodes, nodes[::-1]):
                why = f"returned for {budget}, with one end of the model"
                more = kept | dict.fromkeys(_first(part, share), why)
                found.append((self._casts(more) + _PART_WEIGHTS * share, more))
        for price, more in sorted(found, key=itemgetter(0)):
            if price >= casts:
                break
            if self._holds(budget, trials, more):
                return more
        return kept

    def _casts(self, kept: dict[Node, str]) -> int:
        """Return the Casts of a model while some nodes are float."""
        mark = self.model.mark()
        try:
            narrowing = self.narrowing(kept)
            return convert_precision(self.model, narrowing, keeps_io=self.keeps_io).casts
        finally:
            self.model.undo_to(mark)

    def _within(
        self, budget: Budget, trials: NarrowedRuns, ranked: Groups
    ) -> list[dict[Node, str]]:
        """Return the first nodes of a ranking that have to be float for a budget.

        They are returned twice, if there are any: the groups as a whole, and a part of the last.
        """

        def returned(groups: Iterable[Sequence[Node]]) -> dict[Node, str]:
            nodes = (node for group in groups for node in group)
            return dict.fromkeys(nodes, f"returned for {budget}")

        def measure(groups: Sequence[Sequence[Node]]) -> float | None:
            runs = self._outputs(trials, self.narrowing(returned(groups)))
            return budget.worst_of([trials.measure(budget, found) for found in runs.values()])

        what = "groups of nodes that may return to it"
        found = meet(ranked, measure, budget, what).items
        is_asked = _REFERENCE in self.judges or not trials.is_small(self.model)
        if not is_asked and trials.trusts_reference(self.model):
            self.judges.append(_REFERENCE)
            if not self._holds(budget, trials, returned(found)):
                found = meet(ranked, measure, budget, what).items
        if not found or len(found[-1]) == 1:
            return [returned(found)]
        # Neighbours follow each other, so that a part of a group needs few Casts too.
        *certain, last = found
        parts = [(node,) for node in last]
        rest = meet(parts, lambda some: measure([*certain, *some]), budget, "nodes")
        return [returned(found), returned([*certain, *rest.items])]

    def _price(self, kept: dict[Node, str]) -> float:
        """Return what it costs that some nodes are float: Casts, bytes of weights, and nodes."""
        mark = self.model.mark()
        try:
            casts = convert_precision(
                self.model, self.narrowing(kept), keeps_io=self.keeps_io
            ).casts
            share = share_of_weights(self.model, DataType.FLOAT)
        finally:
            self.model.undo_to(mark)
        return casts + _ALL_WEIGHTS * share + _ALL_NODES * len(kept) / (len(self.errors) or 1)

    def measured(self, trials: NarrowedRuns, budget: Budget | None) -> list[tuple[str, str]]:
        """Return each judge, and the metrics of the outputs on it, in words.

        Of onnxruntime without the Casts that round each value, if that differs.
        """
        narrowing = self.narrowing()
        runs = self._outputs(trials, narrowing)
        if ITSELF not in runs:
            with suppress(RuntimeFailure):  # it has no kernels of the type
                run = self._run(trials, narrowing, ITSELF)
                if trials.is_worse_deployed(run, map(trials.relative_error, runs.values())):
                    runs[ITSELF] = run
        return [(judge, trials.describe(found, budget)) for judge, found in runs.items()]

    def _outputs(self, trials: NarrowedRuns, narrowing: RuledNarrowing) -> dict[str, list[Outputs]]:
        """Return the outputs on each judge; without those that do not run them."""
        found = dict[str, list[Outputs]]()
        for judge in tuple(self.judges):
            try:
                found[judge] = self._run(trials, narrowing, judge)
            except RuntimeFailure:
                if judge == _ROUNDED:
                    raise
                self.judges.remove(judge)
        return found

    def _run(self, trials: NarrowedRuns, narrowing: RuledNarrowing, judge: str) -> list[Outputs]:
        """Return the outputs on a judge.

        Raises:
            RuntimeFailure: it does not run the model.
        """
        return trials.narrowed_outputs(
            self.model,
            narrowing,
            keeps_io=self.keeps_io,
            by_reference=judge == _REFERENCE,
            is_emulated=judge == _ROUNDED,
        )


def _first(nodes: Sequence[Node], share: float) -> list[Node]:
    """Return the first nodes that have so large a part of the bytes of weights."""
    found, left = list[Node](), share * sum(map(weight_bytes, nodes))
    for node in nodes:
        left -= weight_bytes(node)
        if left < 0:
            break
        found.append(node)
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
            if producer is not None and not producer.domain and producer.op_type in MOVES_ELEMENTS:
                pending.append(producer)
    return list(found)
