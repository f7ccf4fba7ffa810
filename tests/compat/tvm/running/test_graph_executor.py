"""`graph_executor`: inputs are set, and a built model runs."""

from typing import Any

import numpy as np
import pytest

from tests.recorded import assert_values
from tests.small import parsed
from tiered.compat.tvm.running.built import Built
from tiered.compat.tvm.running.graph_executor import GraphModule, create
from tiered.support.errors import RuntimeFailure, UsageError
from tiered.testing import parse

TEXT = """(float[2] x, float[2] z) => (float[2] y, float[2] w2) <float[2] w = {1,2}> {
    a = Sub(x, z)  y = Mul(a, w)  w2 = Neg(y) }"""
X, Z = np.array([5, 7], np.float32), np.array([1, 2], np.float32)


def test_inputs_are_set_by_name_or_number() -> None:
    ways: list[Any] = [
        lambda module: (module.set_input("x", X), module.set_input(1, Z)),
        lambda module: module.set_input(0, X, z=Z),
        lambda module: module.set_input(x=X, z=Z),
    ]
    for way in ways:
        module = GraphModule(Built(parse(TEXT)))
        way(module)
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), [4, 10])
        np.testing.assert_array_equal(module.get_output(1).numpy(), [-4, -10])
        np.testing.assert_array_equal(module.get_input("z").numpy(), Z)
        np.testing.assert_array_equal(module.get_input(0).numpy(), X)
        assert module.get_num_outputs() == 2


def test_a_run_may_set_inputs_and_others_stay() -> None:
    module = GraphModule(Built(parsed(TEXT)))
    module.run(x=X, z=Z)
    module.run(z=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), [0, 0])


@pytest.mark.parametrize("index", [-1, 2])
def test_inputs_and_outputs_have_numbers(index: int) -> None:
    module = GraphModule(Built(parse(TEXT)))
    with pytest.raises(UsageError, match=f"the model has 2 inputs, so no input {index}"):
        module.set_input(index, X)
    with pytest.raises(UsageError, match="the last run has 0 outputs, so no output 0"):
        module.get_output(0)
    module.run(x=X, z=Z)
    with pytest.raises(UsageError, match=f"the last run has 2 outputs, so no output {index}"):
        module.get_output(index)


def test_an_input_that_is_not_there_is_named() -> None:
    module = GraphModule(Built(parse(TEXT)))
    with pytest.raises(UsageError, match="the model has no input 'xx'; did you mean 'x'"):
        module.set_input("xx", X)
    with pytest.raises(UsageError, match="the input 'x' is not set"):
        module.get_input("x")
    with pytest.raises(RuntimeFailure):
        module.run(x=X)


def test_weights_are_those_of_the_build() -> None:
    module = create("{}", Built(parse(TEXT)), "cpu")
    module.set_input("w", np.array([1, 2], np.float32))
    with pytest.raises(
        UsageError, match=r"'w' is a weight of the built model: give it to relay.build"
    ):
        module.set_input(w=np.array([1, 3], np.float32))
    module.run(x=X, z=Z)
    np.testing.assert_array_equal(module.get_output(0).numpy(), [4, 10])


def test_runs_are_recorded() -> None:
    text = "(float[2] x, float[2] z) => (float[2] y, float[2] u) <float[2] w = {1,2}> {"
    built = Built(parsed(f"{text} y = Sub(x, z) u = Add(x, w) }}"))

    def done(*steps: Any) -> object:
        runs = GraphModule(built)
        return [step(runs) for step in steps][-1]

    names = {"done": done, "a": np.array([3, 4], np.float32), "b": np.ones(2, np.float32)}
    assert_values(__file__, names)
