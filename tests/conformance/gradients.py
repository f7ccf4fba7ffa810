"""Gradients of the ONNX backend cases and of whole models, against central differences.

python -m tests.conformance.gradients [MODELS]: without a folder the node cases; with one its
models, with respect to all float weights of two and more axes.

A gradient is right if, along random directions, it agrees with the quotient of differences for one
of several steps: functions with kinks agree for small steps only, and rounding spoils the smallest.
Models are judged in double, and the gradients of onnxruntime in float by their distance from these.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as KernelLacking

from tests.conformance.backend import _cases, _load
from tests.conformance.inputs import feeds_for
from tests.conformance.models import model_paths
from tests.extensions.gradients.differences import OnnxRuntime, Reference, in_double
from tiered import Model, Sequential, UsageError, add_gradients, get_pass
from tiered.extensions.gradients.rule_registry import NoGradient
from tiered.runtime.session import Session
from tiered.support.errors import TieredError

Array = np.ndarray[Any, Any]
Run = Callable[[Mapping[str, Array]], dict[str, Array]]

STEPS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
LIMIT = 2e-2
"""The largest relative error: most cases are in float32."""

DOUBLE_STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
DOUBLE_LIMIT = 1e-6
"""The same for models, in double."""

FLOAT_LIMIT = 1e-3
"""The largest distance of gradients in float from those in double, relative to their norm."""

DIRECTIONS = 3
FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)

PARAMETERS = {
    ("Dropout", 1), ("OneHot", 1), ("Range", 0), ("Range", 1), ("Range", 2), ("Resize", 1),
    ("Resize", 2), ("Upsample", 1),
}  # fmt: skip
"""Float operands, by operator and place, that decide shapes, coordinates or probabilities."""

WITHOUT_DERIVATIVE = {
    "Adagrad", "Adam", "Bernoulli", "Gradient", "MelWeightMatrix", "Momentum", "Multinomial",
    "RandomNormalLike", "RandomUniformLike",
}  # fmt: skip
"""Operators of training, and random ones: no function of their inputs to differentiate."""

Verdict = tuple[str, str]
"""right, wrong, no rule, or unrun (no runtime runs it); and the detail."""


def judge_case(name: str) -> Verdict | None:
    """Return the verdict on a node case; None if it is not differentiable in floats."""
    case = _cases()[name]
    model, data_sets = _load(case)
    parameters = {
        value
        for node in model.graph.node
        for place, value in enumerate(node.input)
        if (node.op_type, place) in PARAMETERS
    }
    inputs = [
        info.name for info in model.graph.input if _is_float(info) and info.name not in parameters
    ]
    outputs = [info.name for info in model.graph.output if _is_float(info)]
    operators = {node.op_type for node in model.graph.node}
    if not inputs or not outputs or operators & WITHOUT_DERIVATIVE:
        return None
    feeds = _off_kinks({key: np.asarray(each) for key, each in data_sets[0].feeds.items()}, inputs)
    options = {"of": outputs, "with_respect_to": inputs, "seed": "input"}
    try:
        made = get_pass("gradient", **options)(model)
    except NoGradient as error:
        return "no rule", str(error)
    except TieredError as error:
        return "no rule", f"{type(error).__name__}: {error}"
    assert isinstance(made, ModelProto)
    worst: Verdict = ("unrun", "")
    for runtime in (OnnxRuntime, Reference):
        try:
            error_found = _error(runtime(model), runtime(made), feeds, inputs, outputs)
        except Exception as error:  # noqa: BLE001 - whatever a runtime does not support
            worst = worst if worst[0] == "wrong" else ("unrun", str(error)[:200])
            continue
        if error_found <= LIMIT:
            return "right", ""
        worst = ("wrong", f"relative error {error_found:.1e}")
    return worst


def _off_kinks(feeds: Mapping[str, Array], inputs: list[str]) -> dict[str, Array]:
    """Return feeds a little larger: many cases have zeros, integers and equal elements."""
    random = np.random.default_rng(3)
    return {
        name: np.asarray(each + random.uniform(0.01, 0.06, each.shape), each.dtype)
        if name in inputs
        else each
        for name, each in feeds.items()
    }


def _is_float(info: onnx.ValueInfoProto) -> bool:
    return info.type.tensor_type.elem_type in FLOATS


def _error(
    forward: Run, backward: Run, feeds: Mapping[str, Array], inputs: list[str], outputs: list[str]
) -> float:
    """Return the largest error along some directions, relative to the quotient."""
    random = np.random.default_rng(0)
    results = forward(feeds)
    seeds = {f"seed/{name}": _normal(random, results[name]) for name in outputs}
    found = backward({**feeds, **seeds})

    def loss(changed: Mapping[str, Array]) -> float:
        made = forward(changed)
        return sum(
            float(np.nansum(made[name].astype(np.float64) * seeds[f"seed/{name}"]))
            for name in outputs
        )

    worst = 0.0
    for _ in range(DIRECTIONS):
        toward = {name: np.asarray(random.standard_normal(feeds[name].shape)) for name in inputs}
        slope = sum(float((found[f"grad/{name}"] * toward[name]).sum()) for name in inputs)
        quotients = (
            (loss(_moved(feeds, toward, step)) - loss(_moved(feeds, toward, -step))) / (2 * step)
            for step in STEPS
        )
        worst = max(worst, min(_relative(slope, quotient) for quotient in quotients))
    return worst


def _normal(random: np.random.Generator, like: Array) -> Array:
    return np.asarray(random.standard_normal(like.shape), like.dtype)


def _relative(found: float, expected: float) -> float:
    return abs(found - expected) / (abs(expected) + 1e-2)


def _moved(
    feeds: Mapping[str, Array], toward: Mapping[str, Array], step: float
) -> dict[str, Array]:
    return {
        name: np.asarray(each + step * toward[name], each.dtype) if name in toward else each
        for name, each in feeds.items()
    }


def print_cases() -> bool:
    """Judge all node cases, and print a table by verdict and what is not right."""
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    verdicts: Counter[str] = Counter()
    for name in _cases():
        verdict = judge_case(name) if name.startswith("node/") else None
        if verdict is None:
            continue
        verdicts[verdict[0]] += 1
        if verdict[0] != "right":
            print(f"{name}: {verdict[0]} {verdict[1]}", flush=True)
    ran = verdicts.total() - verdicts["unrun"]
    print(f"| verdict | cases |\n|---|---|\n| all | {verdicts.total()} |")
    for verdict_name, count in verdicts.most_common():
        print(f"| {verdict_name} | {count} |")
    share = verdicts["right"] / ran if ran else 0.0
    print(f"right, of those that a runtime runs: {share:.1%}")
    return not verdicts["wrong"]


def print_models(folder: Path) -> bool:
    """Judge the models of a folder, and print a row for each."""
    print("| model | nodes | with gradients | weights | seconds | error | in float |")
    print("|---|---|---|---|---|---|---|")
    is_right = True
    for path in model_paths(folder):
        row, errors = _of_model(path)
        is_right &= errors.of_slopes <= DOUBLE_LIMIT and errors.of_float <= FLOAT_LIMIT
        found = " | ".join(f"{each:.1e}" for each in errors)
        print(f"| {path.stem} | {row} | {found} |", flush=True)
    return is_right


class _Errors(NamedTuple):
    """How far the gradients of a model are off.

    Attributes:
        of_slopes: in double, the error of a slope along a random direction, relative to the
            quotient of differences; the largest.
        of_float: the distance of the gradients of onnxruntime in float from those in double,
            relative to the norm of these.
    """

    of_slopes: float
    of_float: float


def _of_model(path: Path) -> tuple[str, _Errors]:
    model = Model.load(path)
    Sequential(["inline", "infer_shapes"])(model)
    main = model.main
    output = next(value for value in main.outputs if value.dtype in FLOATS)
    weights = [
        value for value in main.initializers if value.dtype in FLOATS and (value.rank or 0) > 1
    ]
    if not weights:
        return f"{len(main)} | no float weights of two axes", _Errors(0.0, 0.0)
    before, start = len(main), process_time()
    try:
        add_gradients(model, [output], weights, seed="input")
    except UsageError as error:
        return f"{before} | {error}", _Errors(0.0, 0.0)
    seconds = process_time() - start
    row = f"{before} | {len(main)} | {len(weights)} | {seconds:.2f}"
    proto, names = onnx.load(path), [value.name for value in weights]
    feeds = feeds_for(path, proto, Session(path), binding=0)
    return row, errors_of_weights(proto, model.to_proto(), feeds, names, output.name)


def errors_of_weights(
    proto: ModelProto, made: ModelProto, feeds: Mapping[str, Array], names: list[str], output: str
) -> _Errors:
    """Judge gradients of weights, in double: differences in float are too coarse at kinks."""
    random = np.random.default_rng(1)
    wide = {name: _widened(each) for name, each in feeds.items()}
    forward, weights = _with_fed_weights(in_double(proto), names)
    feeds_and_weights = {**wide, **weights}
    seed = _normal(random, forward(feeds_and_weights)[output])
    seeds = {f"seed/{output}": seed}
    found = _runtime_of_double(in_double(made))({**wide, **seeds})
    in_float = OnnxRuntime(made)({**feeds, f"seed/{output}": seed.astype(np.float32)})
    grads = {name: found[f"grad/{name}"] for name in names}
    assert all(np.isfinite(each).all() for each in grads.values())
    apart = sum(float(((in_float[f"grad/{name}"] - grads[name]) ** 2).sum()) for name in names)
    norm = sum(float((each**2).sum()) for each in grads.values())

    def loss(toward: Mapping[str, Array], step: float) -> float:
        return float((forward(_moved(feeds_and_weights, toward, step))[output] * seed).sum())

    errors = [0.0]
    for _ in range(DIRECTIONS):
        toward = {
            name: np.asarray(random.standard_normal(each.shape) * (np.abs(each).mean() + 1e-6))
            for name, each in weights.items()
        }
        slope = sum(float((grads[name] * each).sum()) for name, each in toward.items())
        quotients = (
            (loss(toward, step) - loss(toward, -step)) / (2 * step) for step in DOUBLE_STEPS
        )
        errors.append(_first_below(_relative(slope, each) for each in quotients))
    return _Errors(max(errors), float(np.sqrt(apart / (norm + 1e-12))))


def _widened(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _runtime_of_double(proto: ModelProto) -> Run:
    """Return what runs a model in double: onnxruntime has no kernels of some operators, as Conv."""
    try:
        return OnnxRuntime(proto)
    except KernelLacking:
        return Reference(proto)


def _first_below(errors: Iterator[float]) -> float:
    """Return the first error below the limit, else the smallest one."""
    smallest = np.inf
    for error in errors:
        smallest = min(smallest, error)
        if smallest <= DOUBLE_LIMIT:
            break
    return float(smallest)


def _with_fed_weights(proto: ModelProto, names: list[str]) -> tuple[Run, dict[str, Array]]:
    """Return what runs a model with some weights as inputs, and their values."""
    made = ModelProto()
    made.CopyFrom(proto)
    weights = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in made.graph.initializer
        if tensor.name in names
    }
    kept = [tensor for tensor in made.graph.initializer if tensor.name not in weights]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    for name, each in weights.items():
        info = helper.make_tensor_value_info(name, TensorProto.DOUBLE, each.shape)
        made.graph.input.append(info)
    return _runtime_of_double(made), weights


if __name__ == "__main__":
    ended = print_models(Path(sys.argv[1])) if len(sys.argv) > 1 else print_cases()
    raise SystemExit(not ended)
