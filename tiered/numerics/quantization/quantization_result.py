"""What a quantisation did, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tiered.graph import Node
from tiered.numerics.calibration.calibrate import Calibration
from tiered.numerics.precision.noise import Feeds
from tiered.numerics.quantization.choice import Chosen
from tiered.numerics.quantization.deployed import SATURATION, deviation
from tiered.numerics.quantization.placement import PlacedUnit
from tiered.numerics.quantization.quantization_plan import QuantizationPlan
from tiered.numerics.quantization.scales import Parameters


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

    plan: QuantizationPlan
    stored: Mapping[str, PlacedUnit] = field(default_factory=dict)
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
