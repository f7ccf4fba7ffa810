"""Which values of a model are drawn at random, and so differ from run to run."""

import numpy as np
import onnx
import pytest

from tiered.runtime.session import Session
from tiered.testing import parse
from tiered.verify.random_values import is_all_random, random_outputs, random_values

FUNCTION = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[2] x) => (float[2] y, float[2] z) { y = local.Outer(x)  z = local.Other(x) }
    <domain: "local", opset_import: ["" : 21, "local" : 1]> Outer (a) => (b) { b = local.Inner(a) }
    <domain: "local", opset_import: ["" : 21]> Inner (a) => (b) { b = RandomNormalLike(a) }
    <domain: "local", opset_import: ["" : 21]> Other (a) => (b) { b = Neg(a) }"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[2] x) => (float[2] y) { y = Neg(x) }", set()),
        ("(float[2] x) => (float[2] y) { r = RandomNormalLike(x)  y = Add(x, r) }", {"r", "y"}),
        (
            """(float[2] x) => (int64[1] y, float[2] z) {
            r = RandomNormalLike(x)  y = Shape(r)  z = Neg(x) }""",
            {"r"},
        ),
        (
            """(float[2] x) => (float[2] y) <float p = {0.5}, bool t = {1}> {
            y = Dropout(x, p, t) }""",
            {"y"},
        ),
        ("(float[2] x) => (float[2] y) <float p = {0.5}> { y = Dropout(x, p) }", set()),
        (
            """(float[2] x, bool p) => (float[2] y) {
            y = If(p) <then_branch = t () => (float[2] u) { u = RandomNormalLike(x) },
                       else_branch = e () => (float[2] v) { v = Identity(x) }> }""",
            {"y"},
        ),
        (FUNCTION, {"y"}),
    ],
)
def test_what_is_drawn_and_what_is_computed_of_it_is_random(text: str, expected: set[str]) -> None:
    assert random_values(parse(text)) == expected


def test_an_operator_of_another_domain_draws_nothing_by_its_name() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]>
        g (float[2] x) => (float[2] y, float[2] z) {
        y = vendor.RandomNormalLike(x)  z = RandomNormalLike(x) }"""
    assert random_values(parse(text)) == {"z"}


def test_a_model_is_all_random_if_each_output_is() -> None:
    drawn = "(float[2] x) => (float[2] y{}) {{ y = RandomNormalLike(x)  z = Neg(x) }}"
    assert is_all_random(parse(drawn.format("")))
    assert not is_all_random(parse(drawn.format(", float[2] z")))
    assert not is_all_random(onnx.ModelProto())


def test_outputs_that_a_second_run_changes_are_random_too() -> None:
    proto = parse(
        "(float[2] x) => (float[2] y, float[2] z) { y = RandomNormalLike(x)  z = Neg(x) }"
    )
    feeds = {"x": np.array([1, 2], np.float32)}
    session = Session(proto)
    outputs = session.run(feeds)
    assert random_outputs(proto, session, [feeds], [outputs]) == {"y"}
    changed = {**outputs, "z": outputs["z"] + 1}
    assert random_outputs(proto, session, [feeds], [changed]) == {"y", "z"}
    plain = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert random_outputs(plain, session, [feeds], [outputs]) == frozenset()


def test_a_dropout_draws_where_it_is_told_that_it_trains() -> None:
    proto = parse(
        "(float[2] x) => (float[2] y) <float p = {0.5}, bool t = {1}> { y = Dropout(x, p, t) }"
    )
    assert random_values(proto) == {"y"}
    proto.graph.node[0].input[2] = ""
    assert random_values(proto) == frozenset()
