"""How a model is quantised: what a caller may choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tiered.graph import Node
from tiered.numerics.calibration.calibrate import MADE
from tiered.numerics.precision.budget import Budget
from tiered.numerics.precision.narrowing import why_skipped
from tiered.numerics.precision.node_effects import Order
from tiered.numerics.quantization.choice import Choice
from tiered.numerics.quantization.deployed import Processor
from tiered.runtime.inputs.samples import Source
from tiered.support.errors import UsageError

RoundingMode = Literal["samples", "nearest"]


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
