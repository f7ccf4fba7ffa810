"""Gradients of If, Loop and Scan."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import (
    OnnxRuntime,
    check,
    gradients_of,
    with_gradients,
)
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse

BRANCHES = """(double[3] x, double[3] w, bool c) => (double[3] y) {
    y = If(c) <then_branch = t () => (double[3] a) { b = Mul(x, w)  a = Exp(b) },
               else_branch = e () => (double[3] d) { d = Sin(x) }> }"""


@pytest.mark.parametrize("chosen", [True, False])
def test_if(chosen: bool) -> None:
    check(BRANCHES, feeds={"c": np.array(chosen)})


LOOP = """(double[3] x, double[3] w) => (double[3] y, double[K,3] z) <int64 n = {3}, bool t = {1}> {
    y, z = Loop(n, t, x) <body = b (int64 i, bool c, double[3] h) =>
        (bool d, double[3] next, double[3] row) {
            d = Identity(c)  p = Mul(h, w)  next = Sin(p)  row = Mul(p, p) }> }"""


COUNTED = """(double[3] x) => (double[3] y) <int64 n = {3}, bool t = {1}> {
    y = Loop(n, t, x) <body = b (int64 i, bool c, double[3] h) => (bool d, double[3] next) {
        d = Identity(c)  j = Cast <to = 11> (i)  p = Mul(h, j)  next = Add(p, h) }> }"""


SCAN = """(double[3] h0, double[%s] xs) => (double[3] y, double[%s] z) {
    y, z = Scan <num_scan_inputs = 1 %s, body = b (double[3] h, double[3] x) =>
        (double[3] next, double[3] row) {
            p = Mul(h, x)  next = Tanh(p)  row = Add(p, next) }> (h0, xs) }"""


BACKWARDS = """, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1],
    scan_output_directions = [1]"""


UNTYPED = (SCAN % ("5,3", "5,3", "")).replace(
    "(double[3] h, double[3] x) =>\n        (double[3] next, double[3] row)",
    "(h, x) =>\n        (next, row)",
)


@pytest.mark.parametrize(
    "text",
    [LOOP, COUNTED.replace("to = 11", "to = 1").replace("double", "float"),
     SCAN % ("5,3", "5,3", ""), SCAN % ("3,5", "3,5", BACKWARDS), UNTYPED],
    ids=["loop", "counted", "scan", "scan backwards", "scan without types"],
)  # fmt: skip
def test_loops(text: str) -> None:
    check(text, in_float=True)


def test_slices_had_no_steps_before_opset_10() -> None:
    check(
        """(double[3] h0, double[5,3] xs) => (double[3] y, double[5,3] z) {
        y, z = Scan <num_scan_inputs = 1, body = b (double[3] h, double[3] x) =>
            (double[3] next, double[3] row) {
                p = Mul(h, x)  next = Tanh(p)  row = Add(p, next) }> (h0, xs) }""",
        in_float=True, opset=9,
    )  # fmt: skip


POWER = """(float[2] x, float w, int64 n, bool t) => (float[2] y) {
    y = Loop(n, t, x) <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] next) {
        d = Identity(c)  next = Mul(h, w) }> }"""


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("goes", [True, False])
def test_a_loop_is_differentiated_as_often_as_it_ran(count: int, *, goes: bool) -> None:
    found = gradients_of(POWER, x=[1, 2], w=3, n=count, t=goes, seed=[1, 10], in_float=True)
    ran = count if goes else 0
    np.testing.assert_allclose(found["x"], [3**ran, 10 * 3**ran])
    np.testing.assert_allclose(found["w"], 21 * ran * 3.0 ** (ran - 1))


def test_a_loop_that_ends_by_its_condition() -> None:
    text = """(float x, float w) => (float y) <int64 n = {9}, bool t = {1}, float most = {10}> {
        y = Loop(n, t, x) <body = b (int64 i, bool c, float h) => (bool d, float next) {
            next = Mul(h, w)  d = Less(next, most) }> }"""
    found = gradients_of(text, x=1, w=3, in_float=True)  # 3, 9, 27: three iterations
    np.testing.assert_allclose([found["x"], found["w"]], [27, 27])


def test_the_rows_of_a_loop_and_states_that_are_no_floats() -> None:
    text = """(float x) => (float[K] z) <int64 n = {3}, bool t = {1}, int64 one = {1}> {
        y, k, z = Loop(n, t, x, one) <body = b (int64 i, bool c, float h, int64 j) =>
            (bool d, float next, int64 l, float row) {
                d = Identity(c)  l = Add(j, j)  f = Cast <to = 1> (j)
                next = Identity(h)  row = Mul(h, f) }> }"""
    # The rows are x, 2 x and 4 x.
    assert gradients_of(text, x=1, seed=[1, 10, 100], in_float=True)["x"] == 421


def test_a_loop_in_a_loop() -> None:
    text = """(float x, float w) => (float y) <int64 n = {2}, int64 m = {3}, bool t = {1}> {
        y = Loop(n, t, x) <body = b (int64 i, bool c, float h) => (bool d, float next) {
            d = Identity(c)  next = Loop(m, c, h) <body = e (int64 j, bool f, float k) =>
                (bool g, float last) { g = Identity(f)  last = Mul(k, w) }> }> }"""
    found = gradients_of(text, x=5, w=2, in_float=True)
    assert (found["x"], found["w"]) == (64, 5 * 6 * 32)


def test_a_state_that_changes_its_shape_has_no_gradient() -> None:
    text = """(float[2] x) => (float[M] y) <int64 n = {3}, bool t = {1}> {
        y = Loop(n, t, x) <body = b (int64 i, bool c, h) => (bool d, next) {
            d = Identity(c)  next = Concat <axis = 0> (h, h) }> }"""
    because = r"an iteration may change the shape of state 'h': \[2\] before it, \[4\] after it"
    with pytest.raises(NoGradient, match=because):
        get_pass("gradient", seed="input")(parse(text))


def test_a_state_that_is_a_sequence_has_no_gradient() -> None:
    text = """(float[2] x) => (float[2] y) <int64 n = {3}, bool t = {1}, int64 zero = {0}> {
        s = SequenceConstruct(x)
        r, y = Loop(n, t, s, x) <body = b (int64 i, bool c, seq(float[2]) q, float[2] h) =>
            (bool d, seq(float[2]) p, float[2] next) {
                d = Identity(c)  p = Identity(q)  a = SequenceAt(q, zero)  next = Add(h, a) }> }"""
    with pytest.raises(NoGradient, match="state 'q' is no tensor"):
        get_pass("gradient", of=["y"], seed="input")(parse(text))


def test_the_branch_that_does_not_run_gives_zeros() -> None:
    text = """(float[2] x, float[2] w, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] a) { a = Mul(x, w) },
                   else_branch = e () => (float[2] b) { b = Neg(x) }> }"""
    for is_then, of_x, of_w in ((True, [3, 40], [1, 20]), (False, [-1, -10], [0, 0])):
        found = gradients_of(text, x=[1, 2], w=[3, 4], c=is_then, seed=[1, 10], in_float=True)
        np.testing.assert_array_equal(found["x"], of_x)
        np.testing.assert_array_equal(found["w"], of_w)


def test_an_output_of_a_branch_that_is_there_twice_gets_both_gradients() -> None:
    text = """(float x, bool c) => (float y) <float ten = {10}> {
        p, q = If(c) <then_branch = t () => (float a, float a) { a = Exp(x) },
                      else_branch = e () => (float b, float d) { b = Exp(x)  d = Neg(x) }>
        r = Mul(q, ten)  y = Add(p, r) }"""
    assert gradients_of(text, x=0, c=True, in_float=True)["x"] == 11
    assert gradients_of(text, x=0, c=False, in_float=True)["x"] == -9


SLICES = """(float[2] s, float[{dims}] x) => (float[2] y, float[{rows}] z) {{
    y, z = Scan <num_scan_inputs = 1 {settings}, body = b (float[2] h, float[2] r) =>
        (float[2] next, float[2] row) {{ next = Mul(h, r)  row = Identity(r) }}> (s, x) }}"""


@pytest.mark.parametrize(
    ("settings", "is_turned", "is_backwards"),
    [
        ("", False, False),
        (", scan_input_axes = [1]", True, False),
        (", scan_input_axes = [-1]", True, False),
        (", scan_input_directions = [1]", False, True),
        (", scan_input_axes = [-1], scan_input_directions = [1]", True, True),
    ],
)
@pytest.mark.parametrize("rows", ["", ", scan_output_axes = [1], scan_output_directions = [1]",
                                  ", scan_output_axes = [-1]"])  # fmt: skip
def test_the_slices_of_a_scan_in_all_orders(
    settings: str, rows: str, *, is_turned: bool, is_backwards: bool
) -> None:
    text = SLICES.format(
        dims="2,3" if is_turned else "3,2", rows="2,3" if rows else "3,2", settings=settings + rows
    )
    proto = parse(text)
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    row_seed = np.array([[1, 2], [4, 8], [16, 32]], np.float32)
    run = x[::-1] if is_backwards else x  # in the order of the iterations
    written = row_seed[::-1] if "output_directions" in rows else row_seed
    feeds = {
        "s": np.array([1, 1], np.float32),
        "x": x.T if is_turned else x,
        "seed/y": np.array([1, 10], np.float32),
        "seed/z": row_seed.T if rows else row_seed,
    }
    found = OnnxRuntime(with_gradients(proto))(
        {name: np.ascontiguousarray(each) for name, each in feeds.items()}
    )
    product = np.prod(x, axis=0)
    expected = [1, 10] * product / run + written
    expected = expected[::-1] if is_backwards else expected
    np.testing.assert_allclose(found["grad/x"], expected.T if is_turned else expected, rtol=1e-6)
    np.testing.assert_allclose(found["grad/s"], [1, 10] * product, rtol=1e-6)
