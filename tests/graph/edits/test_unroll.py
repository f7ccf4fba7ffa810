"""Unrolled loops compute what the loops computed."""

from typing import Any

import numpy as np
import pytest

from tests.small import content, made_by, ops, parsed
from tiered.graph.edits.unroll import unroll, unroll_scan
from tiered.runtime import run
from tiered.testing import parse

LOOP = """(float[2] x) => (float[2] s, float[?,2] r) <int64 n = {{3}}, bool t = {{1}}, float two = {{2}}> {{
    s, r = Loop(n, {condition}, x) <body = b (int64 at, bool on, float[2] v) =>
        (bool goes_on, float[2] w, float[2] row) <float k = {{3}}> {{
        goes_on = {next}
        f = Cast<to = 1>({step})  u = Mul(v, k)  w = Add(u, f)  row = Sub(w, two) }}> }}"""


def results(text: Any) -> dict[str, Any]:
    return run(text, {"x": np.array([1, -2], np.float32)})


@pytest.mark.parametrize("condition", ["", "t"])
@pytest.mark.parametrize(("next_", "step"), [("Identity(on)", "at"), ("Identity(on)", "on")])
def test_a_loop_becomes_copies_of_its_body(condition: str, next_: str, step: str) -> None:
    text = LOOP.format(condition=condition, next=next_, step=step)
    model = parsed(text)
    copies = unroll(model.main, made_by(model, "s"), 3)
    assert "Loop" not in ops(model)
    assert ops(model).count("Mul") == 3
    assert {copy.op_type for copy in copies} >= {"Mul", "Add", "Cast"}
    made, expected = results(model.to_proto()), results(parse(text))
    for name, array in expected.items():
        np.testing.assert_array_equal(made[name], array)


def test_a_condition_that_no_iteration_reads_becomes_no_constant() -> None:
    body = """(float[2] x) => (float[2] s) <int64 n = {2}, float k = {3}> {
        s = Loop(n, , x) <body = b (int64 at, bool on, float[2] v) => (bool go, float[2] w) {
            go = Constant<value = bool {1}>()  w = Mul(v, k) }> }"""
    model = parsed(body)
    before = len(model.main.initializers)
    unroll(model.main, made_by(model, "s"), 2)
    assert ops(model) == ["Mul", "Mul"]
    assert len(model.main.initializers) <= before


def test_one_iteration_has_rows_without_a_concat() -> None:
    text = LOOP.format(condition="", next="Identity(on)", step="at").replace("n = {3}", "n = {1}")
    model = parsed(text)
    unroll(model.main, made_by(model, "s"), 1)
    assert ops(model).count("Unsqueeze") == 1
    assert "Concat" not in ops(model)
    made, expected = results(model.to_proto()), results(parse(text))
    for name, array in expected.items():
        np.testing.assert_array_equal(made[name], array)


def test_rows_that_nothing_reads_are_not_made() -> None:
    text = LOOP.format(condition="", next="Identity(on)", step="at")
    model = parsed(text.replace("(float[2] s, float[?,2] r) <int64", "(float[2] s) <int64"))
    unroll(model.main, made_by(model, "s"), 3)
    assert "Sub" not in ops(model)
    assert "Concat" not in ops(model)


def test_a_loop_without_iterations_is_its_start() -> None:
    text = LOOP.format(condition="", next="Identity(on)", step="at")
    model = parsed(text.replace("(float[2] s, float[?,2] r) <int64", "(float[2] s) <int64"))
    assert unroll(model.main, made_by(model, "s"), 0) == []
    np.testing.assert_array_equal(results(model.to_proto())["s"], [1, -2])


SCAN = """(float[2] x, float[3,2] z) => (float[2] s, float[3,2] r) {
    s, r = Scan<num_scan_inputs = 1, body = b (float[2] v, float[2] e) =>
        (float[2] w, float[2] row) <float k = {3}> { m = Mul(v, k)  w = Add(m, e)  row = Neg(w) }>(x, z) }"""


def test_a_scan_becomes_copies_that_each_read_a_row() -> None:
    model = parsed(SCAN)
    feeds = {
        "x": np.array([1, -2], np.float32),
        "z": np.arange(6, dtype=np.float32).reshape(3, 2),
    }
    expected = run(model.to_proto(), feeds)
    copies = unroll_scan(model.main, made_by(model, "s"), 3)
    assert ops(model).count("Gather") == 3
    assert sum(copy.op_type == "Gather" for copy in copies) == 3
    for name, array in run(model.to_proto(), feeds).items():
        np.testing.assert_array_equal(array, expected[name])


def test_undo_brings_the_loop_back() -> None:
    model = parsed(LOOP.format(condition="", next="Identity(on)", step="at"))
    before, mark = content(model), model.mark()
    unroll(model.main, made_by(model, "s"), 3)
    model.undo_to(mark)
    assert content(model) == before
