"""Gradients against central differences of the model itself."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator

from tests.extensions.gradients.kernels import Erf, Gelu, Pad
from tiered import DataType, Model, Node, get_pass
from tiered.numerics.precision.narrowing import Narrowing
from tiered.numerics.precision.plan_rewrite import convert_precision
from tiered.testing import parse

Array = np.ndarray[Any, Any]


class Reference:
    """Runs a model on onnx.reference."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        # Before opset 11 the pads are an attribute.
        own = any(not each.domain and each.version >= 11 for each in proto.opset_import)
        self._run = ReferenceEvaluator(proto, new_ops=[Erf, Gelu, Pad] if own else None)
        self._outputs = [info.name for info in proto.graph.output]

    def __call__(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        made = self._run.run(None, dict(feeds))
        return dict(zip(self._outputs, map(np.asarray, made), strict=True))


class OnnxRuntime:
    """Runs a model on onnxruntime, without its optimisations."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        text = proto.SerializeToString()
        self._session = ort.InferenceSession(text, options, providers=["CPUExecutionProvider"])

    def __call__(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        names = [output.name for output in self._session.get_outputs()]
        made = self._session.run(names, {name: np.asarray(each) for name, each in feeds.items()})
        return dict(zip(names, map(np.asarray, made), strict=True))


class _Widening(Narrowing):
    """From float to double, in which each number of float has the same value."""

    wide, low = DataType.FLOAT, DataType.DOUBLE

    def keep(self, node: Node) -> str:
        """Let the schemas decide."""
        return ""

    def converted(self, array: Array) -> tuple[Array, bool]:
        """Return the same numbers."""
        return array.astype(np.float64), False


def in_double(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that computes in double where it computed in float; its inputs are double."""
    plain = get_pass("remove_initializer_from_input").apply(get_pass("inline")(proto))
    model = Model.from_proto(plain)
    convert_precision(model, _Widening(), keeps_io=False)
    return model.to_proto()


def with_gradients(proto: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """Return a valid model with the gradients of all outputs as outputs."""
    of = [info.name for info in proto.graph.output]
    made = get_pass("gradient", of=of, seed="input", **options)(proto)
    onnx.checker.check_model(made, full_check=True)
    assert isinstance(made, onnx.ModelProto)
    return made


def random_feeds(
    proto: onnx.ModelProto, *, low: float = -1.0, high: float = 1.0, dim: int = 3
) -> dict[str, Array]:
    """Return numbers in a range for all inputs; named dims get one size, integers are 0 or 1."""
    random = np.random.default_rng(7)
    feeds: dict[str, Array] = {}
    for info in proto.graph.input:
        kind = info.type.tensor_type
        shape = [entry.dim_value or dim for entry in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype.kind == "f":
            feeds[info.name] = random.uniform(low, high, shape).astype(dtype)
        else:
            feeds[info.name] = random.integers(0, 2, shape).astype(dtype)
    return feeds


def _seeds(outputs: Mapping[str, Array]) -> dict[str, Array]:
    random = np.random.default_rng(1)
    return {
        name: np.asarray(random.standard_normal(each.shape), each.dtype)
        for name, each in outputs.items()
    }


def largest_error(
    text: str,
    *,
    opset: int = 21,
    low: float = -1.0,
    high: float = 1.0,
    feeds: Mapping[str, Array] | None = None,
    in_float: bool = False,
) -> float:
    """Return the largest error of all gradients, relative to the largest difference quotient.

    Args:
        text: a model in ONNX's text form, with operands of type double.
        opset: its opset.
        low, high: the range of the operands.
        feeds: other operands.
        in_float: use float on onnxruntime, for operators that onnx.reference lacks or gets wrong.
    """
    if in_float:
        text = text.replace("double", "float")
    proto = parse(text, opset=opset)
    run = OnnxRuntime if in_float else Reference
    step = 1e-2 if in_float else 1e-5
    own = random_feeds(proto, low=low, high=high)
    own.update({name: np.asarray(each, own[name].dtype) for name, each in (feeds or {}).items()})
    made, model = with_gradients(proto), run(proto)
    outputs = model(own)
    seeds = _seeds(outputs)
    found = run(made)({**own, **{f"seed/{name}": each for name, each in seeds.items()}})
    for name, each in outputs.items():
        np.testing.assert_array_equal(found[name], each)

    def loss(changed: Mapping[str, Array]) -> float:
        results = model(changed)
        return sum(
            float((results[name].astype(np.float64) * seed).sum()) for name, seed in seeds.items()
        )

    errors = [0.0]
    for name, grad in found.items():
        if not name.startswith("grad/"):
            continue
        x = own[name.removeprefix("grad/")]
        assert grad.shape == x.shape
        quotients = np.zeros(x.shape)
        for place in np.ndindex(*x.shape):
            sides = []
            for sign in (1, -1):
                moved = np.array(x)
                moved[place] += sign * step
                sides.append(loss({**own, name.removeprefix("grad/"): moved}))
            quotients[place] = (sides[0] - sides[1]) / (2 * step)
        if x.size:
            error = np.abs(grad - quotients).max() / (np.abs(quotients).max() + 1e-3)
            errors.append(float(error))
    return max(errors)


LIMIT = 3e-5
"""The largest relative error of central differences in float64."""

FLOAT_LIMIT = 3e-2
"""The same in float32."""


def check(text: str, **options: Any) -> None:
    """Hold the gradients of a model against central differences.

    Args:
        text: a model in ONNX's text form, with operands of type double.
        options: what `largest_error` takes.
    """
    assert largest_error(text, **options) < (FLOAT_LIMIT if options.get("in_float") else LIMIT)


def gradients_of(
    text: str, *, seed: Any = None, opset: int = 21, in_float: bool = False, **feeds: Any
) -> dict[str, Any]:
    """Return the gradient of each float input of a model with one output, by name.

    Args:
        text: a model in ONNX's text form.
        seed: what the elements of the output are weighed by; ones by default.
        opset: its opset.
        in_float: use onnxruntime, for operators that onnx.reference lacks or gets wrong.
        feeds: the inputs, by name.
    """
    proto = parse(text, opset=opset)
    types = {info.name: info.type.tensor_type.elem_type for info in proto.graph.input}
    own = {
        name: np.asarray(each, onnx.helper.tensor_dtype_to_np_dtype(types[name]))
        for name, each in feeds.items()
    }
    run = OnnxRuntime if in_float else Reference
    output = proto.graph.output[0]
    y = run(proto)(own)[output.name]
    weights = np.ones_like(y) if seed is None else np.asarray(seed, y.dtype).reshape(y.shape)
    found = run(with_gradients(proto))({**own, f"seed/{output.name}": weights})
    return {
        name.removeprefix("grad/"): each for name, each in found.items() if name.startswith("grad/")
    }
