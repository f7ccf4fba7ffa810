"""A budget that needs many Casts inside of a model leaves one end of it in float."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, get_pass
from tiered.numerics.precision import float_search
from tiered.runtime import run
from tiered.testing import parse

LAYERS, BUDGET = 10, 3e-4


def residual_model() -> onnx.ModelProto:
    """Return layers whose sums need float, and whose products do not."""
    random = np.random.default_rng(0)
    nodes = [
        f"t{at} = Tanh(x{at}) p{at} = MatMul(t{at}, w{at}) x{at + 1} = Add(x{at}, p{at})"
        for at in range(LAYERS)
    ]
    text = f"(float[8,32] x0) => (float[8,32] y) {{ {' '.join(nodes)} y = Tanh(x{LAYERS}) }}"
    proto = parse(text)
    for at in range(LAYERS):
        weight = (random.standard_normal((32, 32)) / 40).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(weight, f"w{at}"))
    return proto


def mixed(proto: onnx.ModelProto) -> tuple[int, float, float]:
    """Return the Casts, the share of weights in float, and the error on other inputs."""
    model = Model.from_proto(proto)
    lower = get_pass("float_to_mixed").with_options(budget=f"relative<={BUDGET}")
    lower.apply(model, PassContext.isolated())
    made = model.to_proto()
    kinds = [each.data_type for each in made.graph.initializer]
    feeds: dict[str, Any] = {
        "x0": np.random.default_rng(1).standard_normal((8, 32)).astype(np.float32)
    }
    exact, found = (run(each, feeds)["y"] for each in (proto, made))
    error = float(np.linalg.norm(exact - found) / np.linalg.norm(exact))
    casts = sum(node.op_type == "Cast" for node in made.graph.node)
    return casts, kinds.count(onnx.TensorProto.FLOAT) / len(kinds), error


def test_one_end_is_float_where_that_saves_casts(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = residual_model()
    many, share, error = mixed(proto)
    assert many > 8, "as few as are not worth it"
    assert share < 0.1
    monkeypatch.setattr(float_search, "_MANY", 4)
    monkeypatch.setattr(float_search, "_PART_WEIGHTS", 1)
    few, share, error = mixed(proto)
    assert few < many
    assert 0.1 <= share <= 0.45
    assert error < 2 * BUDGET
