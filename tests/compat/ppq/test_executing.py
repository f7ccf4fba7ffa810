"""TorchExecutor: a run of a graph by onnxruntime."""

from typing import Any

import numpy as np
import pytest

from tests.compat.ppq.small_graphs import graph
from tests.recorded import assert_values
from tests.small import model
from tiered import Model, UsageError
from tiered.compat.ppq import (
    BaseGraph,
    DataType,
    TorchExecutor,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 3


@pytest.mark.parametrize("inputs", [X, [X], {"x": X}])
def test_an_executor_returns_outputs_and_named_values(inputs: Any) -> None:
    executor = TorchExecutor(graph(), device="cuda")
    after = np.maximum(X, 0) + np.arange(1, 4, dtype=np.float32)
    (y,) = executor.forward(inputs)
    np.testing.assert_array_equal(y, after)
    x, b = executor.forward(inputs, output_names=["x", "b"])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(b, after)


def test_tracing_types_what_inference_does_not() -> None:
    on = graph("""g (float[2,3] x, int64[k] s) => (y) { r = Reshape(x, s)  y = Relu(r) }""")
    model_ = on.graph.model
    assert isinstance(model_, Model)
    before = model_.to_proto()
    assert [on.variables["r"].shape] == [None]
    TorchExecutor(on).tracing_operation_meta({"x": X, "s": np.array([3, 2])})
    shape = on.variables["r"].shape
    assert shape is not None
    assert len(shape) == 2
    assert 3 not in shape
    assert on.variables["r"].dtype == DataType.FLOAT
    assert model_.to_proto() == before


def test_what_an_executor_cannot_run_is_an_error() -> None:
    executor = TorchExecutor(graph())
    with pytest.raises(UsageError, match="2 arrays for 1 input: x"):
        executor.forward([X, X])
    with pytest.raises(UsageError, match="the main graph has no value 'w2'"):
        executor.forward(X, ["w2"])
    inner = model("""g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
                   else_branch = e () => (float[2] q) { q = Abs(x) }> }""")
    body = next(each for each in inner.graphs() if not each.is_main)
    with pytest.raises(UsageError, match="is no main graph"):
        TorchExecutor(BaseGraph(body))


def test_named_values_are_those_of_the_graph() -> None:
    executor = TorchExecutor(graph())
    w, x, y = executor.forward(X, ["w", "x", "y"])
    np.testing.assert_array_equal(w, [1, 2, 3])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, np.maximum(X, 0) + w)
    assert executor.forward(X, []) == []


def test_a_fed_default_counts_more_than_the_default() -> None:
    text = "g (float[3] x, float[3] d) => (float[3] y) <float[3] d = {4,5,6}> { y = Add(x, d) }"
    executor = TorchExecutor(graph(text))
    x = np.zeros(3, np.float32)
    for feeds, expected in (({"x": x}, [4, 5, 6]), ({"x": x, "d": x + 1}, [1, 1, 1])):
        d, y = executor.forward(feeds, ["d", "y"])
        assert (d.tolist(), y.tolist()) == (expected, expected)
    (y,) = executor.forward(x)  # by place: those that have no default
    assert y.tolist() == [4, 5, 6]


def test_inputs_by_place_are_in_the_order_of_the_graph() -> None:
    text = "g (float[3] x, float[3] z) => (float[3] y) { y = Sub(x, z) }"
    executor = TorchExecutor(graph(text))
    pair = [np.full(3, 5, np.float32), np.full(3, 2, np.float32)]
    for given in (pair, tuple(pair)):
        assert executor.forward(given)[0].tolist() == [3, 3, 3]
    with pytest.raises(UsageError, match="1 array for 2 inputs: x, z"):
        executor.forward(pair[0])


def test_tracing_leaves_known_types_and_declared_outputs() -> None:
    on = graph("g (float[2,3] x, int64[k] s) => (float[p,q] y) { r = Reshape(x, s)  y = Relu(r) }")
    TorchExecutor(on).tracing_operation_mata([X, np.array([3, 2])])
    assert on.variables["r"].shape == (None, None)
    assert on.variables["y"].shape == ("p", "q")


def test_runs_are_recorded() -> None:
    def ran(inputs: Any, names: Any = None, text: str = TWO) -> object:
        found = TorchExecutor(graph(text)).forward(inputs, names)
        return [each.tolist() for each in found]

    names = {"ran": ran, "a": np.array([3, 4], np.float32), "b": np.ones(2, np.float32),
             "graph": graph, "TorchExecutor": TorchExecutor, "BODY": BODY}  # fmt: skip
    assert_values(__file__, names)


TWO = """g (float[2] x, float[2] z, float[2] d) => (float[2] y, float[2] u)
    <float[2] w = {1,2}, float[2] d = {5,6}> { a = Sub(x, z)  y = Add(a, w)  u = Mul(a, d) }"""
BODY = """g (float[2] x, bool k) => (float[2] y) { y = If(k) <
    then_branch = t () => (float[2] p) { p = Neg(x) },
    else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
