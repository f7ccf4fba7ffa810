import pytest

from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "truncate_on_var"
CHAIN = "(float[2] x, float[2] z) => (float[2] y) <float[2] w = {1, 2}> { h = Neg(x)  k = Add(h, w)  y = Mul(k, z) }"


def test_dependent_nodes_are_removed_and_it_becomes_an_output() -> None:
    assert_rewrites(
        PASS,
        CHAIN,
        "(float[2] x, float[2] z) => (float[2] h) { h = Neg(x) }",
        runtime="none",
        var="h",
    )


def test_an_output_that_does_not_depend_on_it_stays() -> None:
    text = "(float[2] x) => (float[2] y, float[2] u) { h = Neg(x)  y = Relu(h)  u = Abs(x) }"
    made = assert_undone(PASS, text, var="h")
    assert [info.name for info in made.graph.output] == ["u", "h"]
    made = assert_undone(PASS, text, var="h", mark_as_output=False)
    assert [info.name for info in made.graph.output] == ["u"]
    assert [node.op_type for node in made.graph.node] == ["Abs"]


def test_a_body_that_captures_it_is_removed() -> None:
    made = assert_undone(
        PASS,
        """(float[2] x, bool c) => (float[2] y) {
            h = Neg(x)
            y = If(c) <then_branch = t () => (float[2] a) { a = Abs(h) },
                       else_branch = e () => (float[2] b) { b = Identity(x) }>
        }""",
        var="h",
    )
    assert [node.op_type for node in made.graph.node] == ["Neg"]


def test_only_one_output_of_its_node_counts() -> None:
    text = "(float[4] x) => (float[2] y, float[2] z) { a, b = Split<num_outputs=2>(x)  y = Neg(a)  z = Abs(b) }"
    made = assert_undone(PASS, text, var="a")
    assert [info.name for info in made.graph.output] == ["z", "a"]


def test_without_a_name_nothing_is_cut() -> None:
    assert_unchanged(PASS, CHAIN, because="no var is given")


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="has no value 'q'"):
        get_pass(PASS, var="q").apply(Model.from_proto(parse(CHAIN)))


def test_a_model_without_outputs_is_an_error() -> None:
    with pytest.raises(UsageError, match="the model has none"):
        get_pass(PASS, var="h", mark_as_output=False).apply(Model.from_proto(parse(CHAIN)))
