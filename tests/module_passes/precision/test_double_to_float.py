import numpy as np
import onnx

from tiered import get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "double_to_float"


def test_a_reader_gets_the_float_as_a_double() -> None:
    assert_rewrites(
        PASS,
        "(double[2] x) => (double[2] y) <double[2] w = {1.5, -0.0}> { a = Add(x, w)  y = Mul(a, w) }",
        "(double[2] x) => (double[2] y) <float[2] w = {1.5, -0.0}> {"
        " c = Cast<to=11>(w)  a = Add(x, c)  y = Mul(a, c) }",
    )


def test_a_cast_to_float_reads_the_float() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <double[2] w = {1.1, 3}> { c = Cast<to=1>(w)  y = Add(x, c) }",
        "(float[2] x) => (float[2] y) <float[2] w = {1.1, 3}> { y = Add(x, w) }",
    )


def test_initializers_of_bodies_and_their_readers_in_bodies() -> None:
    text = """(double[2] x, bool k) => (double[2] y) <double[2] w = {1.1, 2}> { y = If(k) <
        then_branch = t () => (double[2] p) { p = Add(x, w) },
        else_branch = e () => (double[2] q) <double[2] v = {0.1, 3}> { a = Add(v, w) q = Mul(a, x) }> }"""
    made = get_pass(PASS).apply(parse(text))
    onnx.checker.check_model(made, full_check=True)
    (weight,) = made.graph.initializer
    assert weight.data_type == onnx.TensorProto.FLOAT
    for k in (True, False):
        feeds = {"x": np.array([1.0, 2.0]), "k": np.array(k)}
        (before,), (after,) = run(parse(text), feeds).values(), run(made, feeds).values()
        assert before.dtype == after.dtype == np.float64
        np.testing.assert_allclose(after, before, rtol=1e-7)
        assert (after != before).any()


def test_what_no_float_is_close_to_stays() -> None:
    for numbers in ("{1, 1e39}", "{1, 1e-60}"):
        text = f"(double[2] x) => (double[2] y) <double[2] w = {numbers}> {{ y = Add(x, w) }}"
        assert_unchanged(PASS, text, because="has a number that no float is close to")


def test_the_interface_keeps_its_types() -> None:
    text = "(double[2] x, double[2] w = {1, 2}) => (double[2] y) { y = Add(x, w) }"
    assert_unchanged(PASS, text, because="is a graph input, which has its type")
    text = "(double[2] x) => (double[2] y, double[2] w) <double[2] w = {1, 2}> { y = Add(x, w) }"
    assert_unchanged(PASS, text, because="is an output of its graph, which has its type")


def test_a_model_without_doubles_stays() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
    assert_unchanged(PASS, text, because="no initializer is of doubles")
