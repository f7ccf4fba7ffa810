"""Weights that training info updates: no pass takes them for constants."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, optimize
from tiered.runtime import run
from tiered.testing import parse

UPDATED = {"z": np.array([3, 4], np.float32), "k": np.array(2, np.float32)}


def trained() -> onnx.ModelProto:
    """Return x + 0, times 1, minus 0, of which training updates the first two constants."""
    proto = parse(
        "(float[2] x) => (float[2] y) <float[2] z = {0,0}, float k = {1}, float[2] w = {0,0}>"
        " { a = Add(x, z) b = Mul(a, k) y = Sub(b, w) }"
    )
    training = proto.training_info.add()
    step = parse("(float[2] z, float k) => (float[2] n, float m) { n = Neg(z) m = Neg(k) }")
    training.algorithm.CopyFrom(step.graph)
    for key, value in (("z", "n"), ("k", "m")):
        training.update_binding.add(key=key, value=value)
    return proto


@pytest.mark.parametrize("level", range(5))
def test_issue_40_what_training_updates_is_no_constant(level: int) -> None:
    proto = trained()
    made = optimize(proto, opt_level=level)
    assert made.training_info == proto.training_info
    for tensor in made.graph.initializer:
        if tensor.name in UPDATED:
            tensor.CopyFrom(numpy_helper.from_array(UPDATED[tensor.name], tensor.name))
    made.ClearField("training_info")
    feeds = {"x": np.array([1, 2], np.float32)}
    assert run(made, feeds)["y"].tolist() == [8, 12]


def test_a_value_knows_that_it_is_trained() -> None:
    model = Model.from_proto(trained())
    values = [model.main.value(name) for name in "zkw"]
    assert [value is not None and value.is_trained for value in values] == [True, True, False]
    assert [value is not None and value.is_constant for value in values] == [False, False, True]
    assert [value is not None and value.default is not None for value in values] == [True] * 3
