"""A budget for weights and products in few bits: which of them return to float."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from tiered.graph import DataType, Model, Node
from tiered.graph.io.export import export_model
from tiered.numerics.calibration.calibrate import SampledModel
from tiered.numerics.precision.budget import Budget, budget_of, meet
from tiered.numerics.precision.lower import OnFound, OnSkip
from tiered.numerics.precision.narrowed_runs import input_count
from tiered.numerics.precision.node_effects import effects_for
from tiered.numerics.precision.noise import FloatReference
from tiered.numerics.precision.nothing import nothing_converted
from tiered.rewriter import Skip, Unable
from tiered.runtime.inputs.samples import Source
from tiered.support.errors import UsageError

Convert = Callable[[Mapping[Node, str], OnFound, OnSkip], Collection[Node]]
"""Edits a model but for some nodes, each with a reason, and returns the nodes it has converted."""


@dataclass(frozen=True, kw_only=True)
class OutputBudget:
    """A limit of the outputs, and the inputs that it is measured on.

    Attributes:
        limit: as `cosine>=0.999`; empty for none.
        inputs: files or arrays; made without any.
        seed: of generated inputs.
        samples: how many are made.
    """

    limit: str = ""
    inputs: Sequence[Source] = ()
    seed: int = 0
    samples: int = 2

    def check_read(self) -> None:
        """Raise if inputs are given that nothing is measured on.

        Raises:
            UsageError: there are inputs, and no limit.
        """
        if self.inputs and not self.limit:
            raise UsageError("inputs have no effect without a budget: nothing is measured on them")


def convert_within(
    model: Model,
    convert: Convert,
    budget: OutputBudget,
    on_found: OnFound,
    on_skip: OnSkip,
    *,
    what: str,
    low: DataType | None = None,
    was_converted: bool = False,
) -> None:
    """Convert a model; without its worst nodes, if a budget needs it.

    The nodes of the main graph are ranked by their error when each alone is converted, times its
    effect on the outputs, by gradients, if all operators have these. onnxruntime runs the model.
    With a budget, a model that has been converted stays as it is: its outputs are no longer those
    that the budget is about.

    Args:
        model: edited in place.
        convert: edits it. It is called several times if there is a budget.
        budget: the limit of the outputs.
        on_found: called with each finding.
        on_skip: called with each node that stays as it is, and the reason.
        what: what is converted, in words, as "product".
        low: the dtype of the codes that a converted model dequantises.
        was_converted: whether the model has been converted in another way.

    Raises:
        UsageError: the budget is not readable, or a file of inputs belongs to no input.
        ModelError: a file of inputs cannot be read.
        RuntimeFailure: there is a budget, and onnxruntime does not run the model.
        VerificationError: the budget does not hold with all nodes of the main graph in float.
    """
    codes = low.name.lower() if low is not None and _is_converted(model, low) else ""
    was_converted = was_converted or bool(codes)
    kept: Mapping[Node, str] = {}
    if budget.limit:
        limit = budget_of(budget.limit)
        if codes:
            on_skip(None, Skip("the model has {} already", codes))
            return
        kept = _ReturnSearch(model, convert, limit, budget).returned(on_found)
    skipped = list[tuple[Node | None, Skip]]()

    def skip(node: Node | None, reason: Skip) -> None:
        skipped.append((node, reason))
        # A second run has nothing left to do.
        on_skip(node, Skip("{}", reason) if was_converted else reason)

    is_idle = not convert(kept, on_found, skip)
    is_said = any(isinstance(reason, Unable) for _, reason in skipped)
    if is_idle and skipped and not is_said and not was_converted:
        reasons = ((node, str(reason)) for node, reason in skipped if node is not None)
        on_skip(None, nothing_converted(f"no {what} is quantised", reasons))


def _is_converted(model: Model, low: DataType) -> bool:
    """Return whether codes of a dtype are dequantised anywhere."""
    nodes = (node for graph in model.graphs() for node in graph.nodes_of("DequantizeLinear"))
    return any(node.given(0).dtype == low for node in nodes)


class _ReturnSearch:
    def __init__(
        self, model: Model, convert: Convert, limit: Budget, settings: OutputBudget
    ) -> None:
        self.model = model
        self.convert = convert
        self.limit = limit
        self.is_made = not settings.inputs
        with SampledModel.of(model) as running:
            given, count = settings.inputs, settings.samples
            self.feeds = running.samples(given, seed=settings.seed, count=count)
        proto = export_model(model, is_bare=True)
        self.reference = FloatReference(proto, model.folder, self.feeds)

    def returned(self, on_found: OnFound) -> dict[Node, str]:
        """Return the nodes that stay float, and why."""
        whole, nodes = self._tried(())
        main = [node for node in nodes if node.owner.is_main]
        alone = self.reference.alone(whole, [node.output.name for node in main])
        effects = effects_for("auto", self.model, main, self.feeds)

        def weight(node: Node) -> float:
            error = float(10 ** (-alone.get(node.output.name, math.inf) / 20))
            return error if effects is None else error * effects.get(node, 0.0)

        ranked = sorted(main, key=weight, reverse=True)
        found = meet(ranked, self._measured, self.limit, "nodes of the main graph")
        inputs = input_count(len(self.feeds), is_made=self.is_made)
        measured = f"{self.limit.metric} {found.measured:.6g}"
        on_found(f"measured on {inputs} by onnxruntime: {measured}")
        return self._kept(found.items)

    def _kept(self, nodes: Iterable[Node]) -> dict[Node, str]:
        return dict.fromkeys(nodes, f"returned for {self.limit}")

    def _measured(self, nodes: Sequence[Node]) -> float | None:
        return self.reference.metric(self._tried(nodes)[0], self.limit)

    def _tried(self, nodes: Iterable[Node]) -> tuple[onnx.ModelProto, Collection[Node]]:
        """Return the model without some nodes converted, and the others; all edits are undone."""
        mark = self.model.mark()
        try:
            converted = self.convert(self._kept(nodes), _ignore_finding, _ignore_skip)
            return export_model(self.model, is_bare=True), converted
        finally:
            self.model.undo_to(mark)


def _ignore_finding(text: str) -> None:
    """A trial reports nothing: the last conversion does."""


def _ignore_skip(node: Node | None, reason: Skip) -> None:
    """A trial reports nothing: the last conversion does."""
