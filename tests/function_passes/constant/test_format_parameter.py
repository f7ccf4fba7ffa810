from tests.rollback import assert_undone
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "format_parameter"


def test_each_use_gets_its_own_initializer() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { h = Add(x, w)  y = Mul(h, w) }",
        "(float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {1, 2}> { h = Add(x, w)  y = Mul(h, v) }",
    )


def test_a_node_that_reads_it_twice_reads_two() -> None:
    made = assert_undone(
        PASS, "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Sum(x, w, w) }"
    )
    assert made.graph.node[0].input[1:] == ["w", "w_1"]
    assert len(made.graph.initializer) == 2


def test_a_use_in_a_body_counts() -> None:
    made = assert_undone(
        PASS,
        """(float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
            h = Add(x, w)
            y = If(c) <then_branch = t () => (float[2] a) { a = Mul(h, w) },
                       else_branch = e () => (float[2] b) { b = Identity(h) }>
        }""",
    )
    assert len(made.graph.initializer) == 2


def test_a_value_that_is_also_an_output_stays_an_output() -> None:
    made = assert_undone(
        PASS, "(float[2] x) => (float[2] y, float[2] w) <float[2] w = {1, 2}> { y = Add(x, w) }"
    )
    assert [info.name for info in made.graph.output] == ["y", "w"]
    assert made.graph.node[0].input[1] == "w_1"


def test_one_use_is_left_alone() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")


def test_an_overridable_initializer_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] w = {1, 2}) => (float[2] y) { h = Add(x, w)  y = Mul(h, w) }",
        because="is a graph input: callers may feed it",
    )
