"""Products with Hessian matrices of whole models, against differences of the gradient, in double.

python -m tests.conformance.hessians MODEL...: for each model the weight of two or more axes that is
in the middle of its list.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from tests.conformance.gradients import (
    FLOATS,
    _moved,
    _normal,
    _runtime_of_double,
    _widened,
    _with_fed_weights,
)
from tests.conformance.inputs import feeds_for
from tests.extensions.gradients.differences import in_double
from tiered import get_pass
from tiered.runtime.session import Session

STEPS = (1e-4, 1e-5, 1e-6)
LIMIT = 1e-6


def judge(path: Path) -> tuple[str, float]:
    """Return a row on a model, and the largest error relative to the largest element."""
    proto = onnx.load(path)
    wide = in_double(proto)
    output = next(
        info.name for info in wide.graph.output if info.type.tensor_type.elem_type in FLOATS
    )
    names = [
        tensor.name
        for tensor in wide.graph.initializer
        if tensor.data_type == TensorProto.DOUBLE and len(tensor.dims) > 1
    ]
    name = names[len(names) // 2]
    first = get_pass(
        "gradient", of=[output], with_respect_to=[name], seed="input", higher_order=True
    )(wide)
    second = get_pass("gradient", of=[f"grad/{name}"], with_respect_to=[name], seed="input")(first)
    assert isinstance(first, ModelProto)
    assert isinstance(second, ModelProto)
    gradient, weights = _with_fed_weights(first, [name])
    random = np.random.default_rng(0)
    feeds = {
        key: _widened(each)
        for key, each in feeds_for(path, proto, Session(path), binding=0).items()
    }
    shape = _runtime_of_double(wide)(feeds)[output]
    feeds[f"seed/{output}"] = _normal(random, shape)
    weight = weights[name]
    v = np.asarray(random.standard_normal(weight.shape) * np.abs(weight).mean())
    found = _runtime_of_double(second)({**feeds, f"seed/grad/{name}": v})[f"grad/grad/{name}"]

    def at(step: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return gradient(_moved({**feeds, **weights}, {name: v}, step))[f"grad/{name}"]

    errors, largest = [], 0.0
    for step in STEPS:
        expected = (at(step) - at(-step)) / (2 * step)
        largest = float(np.abs(expected).max())
        errors.append(float(np.abs(found - expected).max() / (largest + 1e-12)))
    counts = [len(each.graph.node) for each in (proto, first, second)]
    return f"{name} | {' | '.join(map(str, counts))} | {largest:.1e}", min(errors)


def main() -> bool:
    print("| model | weight | nodes | with gradient | with product | largest element | error |")
    print("|---|---|---|---|---|---|---|")
    is_right = True
    for each in sys.argv[1:]:
        row, error = judge(Path(each))
        is_right &= error <= LIMIT
        print(f"| {Path(each).stem} | {row} | {error:.1e} |", flush=True)
    return is_right


if __name__ == "__main__":
    raise SystemExit(not main())
