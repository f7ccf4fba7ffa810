"""Random models: quantised, they are valid, run, and are the same after a second run."""

import random
from collections.abc import Iterator

import numpy as np
import onnx
import pytest

from tests.conformance.random_graphs import random_model
from tests.conformance.random_networks import random_network
from tiered import Model, PassContext, get_pass, optimize_model
from tiered.runtime import run
from tiered.runtime.compare.outputs import compare
from tiered.runtime.inputs.make import feasible_inputs
from tiered.support.errors import TieredError
from tiered.support.numerics import FEW_BITS
from tiered.testing import parse

SEEDS = range(6)


def _models(seed: int) -> Iterator[tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
    """Yield random models that run and that onnx takes, with inputs."""
    source = random.Random(seed)
    for proto in (random_model(source), random_network(seed)):
        try:
            feeds = feasible_inputs(proto, seed=seed).feeds
            onnx.checker.check_model(proto, full_check=True)
        except (TieredError, onnx.shape_inference.InferenceError):
            continue
        yield proto, feeds


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["quantize", "quantize_dynamic"])
def test_a_quantised_model_is_valid_and_at_rest(name: str, seed: int) -> None:
    pass_ = get_pass(name)
    if name == "quantize":
        pass_ = pass_.with_options(samples=2)
    for proto, feeds in _models(seed):
        model = Model.from_proto(proto)
        pass_.apply(model, PassContext.isolated())
        model.check_view(types=True)
        made = model.to_proto()
        onnx.checker.check_model(made, full_check=True)
        expected, found = run(proto, feeds), run(made, feeds)
        assert {each: np.shape(value) for each, value in found.items()} == {
            each: np.shape(value) for each, value in expected.items()
        }
        again = Model.from_proto(made)
        pass_.apply(again, PassContext.isolated())
        assert again.to_proto() == made


@pytest.mark.parametrize("name", ["quantize", "quantize_dynamic"])
def test_verification_holds_a_pipeline_to_the_promise_of_quantisation(name: str) -> None:
    weights = ", ".join(str(at % 7 / 7) for at in range(64))
    proto = parse(
        f"""(float[4,8] x) => (float[4,8] y) <float[8,8] w = {{{weights}}}> {{
            a = MatMul(x, w)  b = Relu(a)  y = MatMul(b, w) }}"""
    )
    made = optimize_model(proto, required=[name], verify=True)
    assert made.verify is not None
    assert made.verify.verdict.is_proved
    assert "sqnr in [20, inf]" in made.verify.limits


def test_what_is_further_off_than_a_tenth_is_an_error() -> None:
    one, other = np.array([1, -2, 3], np.float32), np.array([1.9, -2, 3], np.float32)
    found = compare({"y": one}, {"y": other}, FEW_BITS)
    assert not found.ok
    assert "sqnr is" in str(found)
    assert compare({"y": one}, {"y": one + np.float32(0.1)}, FEW_BITS).ok
