"""Budgets on random models: a result holds its budget, measured anew, or there is an error."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, get_pass
from tiered.numerics.precision.budget import METRICS, Budget
from tiered.runtime import run, run_reference
from tiered.support.errors import VerificationError
from tiered.testing import parse

Array = np.ndarray[Any, Any]

PASSES: dict[str, dict[str, object]] = {
    "float_to_mixed": {},
    "weights_to_int8": {"min_elements": 64},
    "weights_to_int4": {"min_elements": 64},
    "float_to_fp8": {"min_elements": 64},
    "quantize": {},
    "quantize_dynamic": {},
}
LIMITS = {
    "sqnr": (10, 80),
    "cosine": (0.9, 1),
    "relative": (1e-4, 0.3),
    "max_abs": (1e-3, 1),
    "mean_abs": (1e-4, 0.3),
}
ENDS = {
    "floats": "(float[N,16] y) { [] y = Neg({}) }",
    "integers": "(int64[N] y) { [] y = ArgMax<axis = 1, keepdims = 0>({}) }",
    "both": "(float[N,16] y, int64[N] z) "
    "{ [] y = Tanh({}) z = ArgMax<axis = 1, keepdims = 0>({}) }",
    "few": "(float[N,3] y, int64[N,3] z) { [] y, z = TopK<axis = 1>({}, k) }",
}


def model_of(source: np.random.Generator) -> onnx.ModelProto:
    """Return products with something between, and outputs of floats, integers or both."""
    steps, value = list[str](), "x"
    weights = {}
    for at in range(int(source.integers(2, 5))):
        weights[f"w{at}"] = source.standard_normal((16, 16)) * 10 ** source.uniform(-2, 1)
        steps.append(f"m{at} = MatMul({value}, w{at})")
        step = source.choice(["Tanh({})", "Relu({})", "Softmax({})", "Abs({})", "Sigmoid({})"])
        steps.append(f"v{at} = {step.format(f'm{at}')}")
        value = f"v{at}"
    end = str(source.choice(list(ENDS.values())))
    body = end.replace("[]", " ".join(steps), 1).replace("{}", value)
    proto = parse(f"(float[N,16] x) => {body}", opset=21)
    tensors = {name: array.astype(np.float32) for name, array in weights.items()}
    extra = {"k": np.array([3])} if "TopK" in end else {}
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in {**tensors, **extra}.items()
    )
    return proto


def budget_of(source: np.random.Generator) -> Budget:
    metric = str(source.choice(list(METRICS)))
    low, high = LIMITS[metric]
    if metric == "sqnr":
        return Budget(metric, round(source.uniform(low, high), 1))
    if metric == "cosine":
        return Budget(metric, round(1 - 10 ** source.uniform(-7, -1), 8))
    return Budget(metric, float(f"{10 ** source.uniform(np.log10(low), np.log10(high)):.3g}"))


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("seed", [*range(6), 18])
def test_what_is_returned_holds_its_budget(name: str, seed: int, tmp_path: Any) -> None:
    source = np.random.default_rng([seed, *name.encode()])
    proto, budget = model_of(source), budget_of(source)
    feeds: dict[str, Any] = {"x": source.standard_normal((32, 16)).astype(np.float32)}
    np.savez(tmp_path / "x.npz", **feeds)
    options = {**PASSES[name], "budget": str(budget), "inputs": (str(tmp_path / "x.npz"),)}
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    try:
        get_pass(name).with_options(**options).apply(model, ctx)
    except VerificationError:
        assert model.to_proto() == proto
        return
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    expected = run(proto, feeds)
    agreement = Budget("relative", 1e-3).measure(expected, run_reference(proto, feeds))
    is_judge = name == "float_to_mixed" and agreement is not None and agreement <= 1e-3
    for runtime in (run, run_reference) if is_judge else (run,):
        measured = budget.measure(expected, runtime(made, feeds))
        assert measured is not None
        assert budget.holds(measured), (budget, measured, [str(each) for each in ctx.remarks])
