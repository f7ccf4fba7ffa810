"""tiered.run: outputs, and all values with their statistics."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import tiered
from tests.small import loaded_apart
from tiered import Model, UsageError
from tiered.extensions.debug.all_values import AllValues, ValueStatistics, _described
from tiered.runtime import Session
from tiered.testing import parse
from tiered.verify.part_extraction import GraphPart, tapped

TEXT = """(float[N,4] x, bool c) => (float[N,4] y) <float[4] w = {1,2,3,4}> {
    a = Mul(x, w)
    b = If(c) <then_branch = t () => (float[n,4] p) { p = Log(a) },
               else_branch = e () => (float[n,4] q) { q = Identity(a) }>
    d = Relu(b)  y = Add(d, a) }"""
FEEDS = {"x": np.array([[1, 0, -3, 4]], np.float32), "c": np.array(True)}
BERT = Path(__file__).parents[3] / "examples" / "models" / "bert.ts.onnx"


def test_the_outputs_are_those_of_a_session(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(parse(TEXT), path)
    expected = Session(parse(TEXT)).run(FEEDS)["y"]
    for model in (parse(TEXT), path, Model.load(path), loaded_apart(parse(TEXT), tmp_path)):
        np.testing.assert_array_equal(tiered.run(model, FEEDS)["y"], expected)


def test_all_values_come_in_order_with_the_same_bits() -> None:
    values = tiered.run(parse(TEXT), FEEDS, all_values=True)
    found = dict(values)
    assert list(found) == ["a", "b", "d", "y"]
    whole = Session(tapped(parse(TEXT), ["a", "b", "d", "y"], {})).run(FEEDS)
    for name, array in whole.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_statistics_count_what_is_not_finite() -> None:
    values = tiered.run(parse(TEXT), FEEDS, all_values=True)
    a, b, *_ = values.statistics()
    assert (a.node, a.op_type, a.dtype, a.shape) == ("a", "Mul", "float32", (1, 4))
    assert (a.minimum, a.maximum, a.nans, a.infs, a.zeros) == (-9, 16, 0, 0, 1)
    assert (b.minimum, b.nans, b.infs, b.zeros) == (-np.inf, 1, 1, 1)


def test_values_that_are_no_floats() -> None:
    text = """(float[0] x) => (bfloat16[2] b, int64 n)
        <float[2] w = {-0.0, 3}, string[1] s = {"a"}> {
        b = Cast<to = 16>(w)  t = Identity(s)  q = SequenceConstruct(w, w)  n = SequenceLength(q)
        e = Neg(x) }"""
    values = tiered.run(parse(text), {"x": np.zeros(0, np.float32)}, all_values=True)
    found = {each.name: each for each in values.statistics()}
    assert (found["b"].dtype, found["b"].maximum, found["b"].zeros) == ("bfloat16", 3, 1)
    assert (found["t"].dtype, found["t"].minimum) == ("string", None)
    assert (found["q"].dtype, found["q"].shape) == ("sequence", None)
    assert (found["e"].shape, found["e"].maximum) == ((0,), None)
    assert found["n"].maximum == 2


def test_it_is_lazy_and_runs_again_for_each_iteration() -> None:
    values = tiered.run(BERT, all_values=True)
    first = next(iter(values))[0]
    assert next(iter(values))[0] == first
    assert set(values.feeds) == {"input_ids", "attention_mask", "token_type_ids"}


def test_an_input_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="the model has no input 'z'; it has x, c"):
        tiered.run(parse(TEXT), {"z": np.zeros(1)})
    with pytest.raises(UsageError, match="not bytes"):
        tiered.run(parse(TEXT).SerializeToString())  # type: ignore[call-overload]  # the point


def test_statistics_of_arrays() -> None:
    nan, inf = float("nan"), float("inf")
    for value, dtype, shape, low, high, counts in (
        (np.array([[1.5, -2]]), "float64", (1, 2), -2, 1.5, (0, 0, 0)),
        (np.array([nan, inf, 0, -0.0]), "float64", (4,), 0, inf, (1, 1, 2)),
        (np.array([nan, nan]), "float64", (2,), None, None, (2, 0, 0)),
        (np.array([3 + 4j, nan]), "complex128", (2,), 5, 5, (1, 0, 0)),
        (np.array([0, 7, -1], np.int8), "int8", (3,), -1, 7, (0, 0, 1)),
        (np.array([True, False]), "bool", (2,), False, True, (0, 0, 1)),
        (np.array(4, np.uint8), "uint8", (), 4, 4, (0, 0, 0)),
        (np.float32(2), "float32", (), 2, 2, (0, 0, 0)),
        (np.array([nan, inf, 3], ml_dtypes.bfloat16), "bfloat16", (3,), 3, inf, (1, 1, 0)),
        (np.array([2, 0], ml_dtypes.int4), "int4", (2,), 0, 2, (0, 0, 1)),
        (np.zeros((0, 3), np.float32), "float32", (0, 3), None, None, (0, 0, 0)),
        (np.array(["a"], object), "string", (1,), None, None, (0, 0, 0)),
        (np.array(["a"]), "string", (1,), None, None, (0, 0, 0)),
        (None, "optional", None, None, None, (0, 0, 0)),
        ([np.zeros(1)], "sequence", None, None, None, (0, 0, 0)),
    ):
        assert _described("v", "n", "Op", value) == ValueStatistics(
            "v", "n", "Op", dtype, shape, low, high, *counts
        )


def test_a_value_has_the_name_of_its_node_or_of_the_first_output() -> None:
    proto = parse("(float[2] x) => (float[2] y) { [named] a = Neg(x)  b, y = own.F(a) }")
    proto.graph.node[1].name = ""
    session: Any = None
    values = AllValues(session, GraphPart.of(proto), {})
    for name, node, op_type in (
        ("x", "", ""), ("a", "named", "Neg"), ("b", "b", "F"), ("y", "b", "F"), ("none", "", ""),
    ):  # fmt: skip
        found = values.describe(name, np.ones(2, np.float32))
        assert (found.name, found.node, found.op_type) == (name, node, op_type)
