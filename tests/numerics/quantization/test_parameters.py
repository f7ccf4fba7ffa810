"""The scales of values that share one, where the target prescribes some."""

import pytest

from tiered import DataType, Model
from tiered.numerics.quantization.parameters import parameters_of_plan
from tiered.numerics.quantization.quantization_plan import QuantizationPlan
from tiered.numerics.quantization.scales import Parameters
from tiered.numerics.quantization.scheme import Scheme
from tiered.targets.quantized import FixedScale
from tiered.testing import parse

SOFTMAX = Parameters(1 / 256, -128, DataType.INT8)
TANH = Parameters(1 / 128, 0, DataType.INT8)
SCHEME = Scheme(
    activations=DataType.INT8,
    fixed_results={"Softmax": FixedScale(1 / 256, -128), "Tanh": FixedScale(1 / 128, 0)},
)
TEXT = """
(float[2,4] x) => (float[2,12] y)
{ p = Softmax(x) q = Tanh(x) r = Relu(x) y = Concat<axis = 1>(p, q, r) }
"""


def scales(**ranges: tuple[float, float]) -> dict[str, Parameters]:
    """Return the scales of values that share one, by name."""
    model = Model.from_proto(parse(TEXT))
    known = {node.output.name: node.output for node in model.main.nodes}
    values = {known[name]: pair for name, pair in ranges.items()}
    first = next(iter(values))
    plan = QuantizationPlan([], [], {value: {} for value in values}, dict.fromkeys(values, first))
    found = parameters_of_plan(plan, values, SCHEME)
    return {value.name: each for value, each in found.items()}


def test_values_share_a_prescribed_scale_that_represents_them() -> None:
    assert scales(p=(0.0, 1.0), y=(0.0, 1.0)) == {"p": SOFTMAX, "y": SOFTMAX}


def test_a_prescribed_scale_that_is_too_narrow_is_not_shared() -> None:
    found = scales(p=(0.0, 1.0), r=(0.0, 3.0), y=(0.0, 3.0))
    assert found["p"] == SOFTMAX
    assert found["r"] == found["y"]
    assert found["y"].scale == pytest.approx(3 / 255)


def test_two_prescribed_scales_stay_apart() -> None:
    found = scales(p=(0.0, 1.0), q=(-1.0, 1.0), y=(-1.0, 1.0))
    assert (found["p"], found["q"]) == (SOFTMAX, TANH)
    assert found["y"].scale == pytest.approx(2 / 255)
