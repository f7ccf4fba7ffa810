from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_unused_initializer"


def test_an_initializer_without_users_is_removed() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[1] u = {3}> { y = Relu(x) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_bodies_have_initializers_of_their_own() -> None:
    body = "else_branch = e () => (float[2] q) { q = Neg(x) }> }"
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { y = If(c) <"
        f"then_branch = t () => (float[2] p) <float[1] u = {{3}}> {{ p = Relu(x) }}, {body}",
        "(float[2] x, bool c) => (float[2] y) { y = If(c) <"
        f"then_branch = t () => (float[2] p) {{ p = Relu(x) }}, {body}",
    )


def test_captured_values_are_operands() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { y = If(c) <"
        "then_branch = t () => (float[2] p) { p = Add(x, w) },"
        "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
    )


def test_an_existing_output_is_used() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] w) <float[2] w = {1,2}> { y = Relu(x) }")


def test_an_initializer_that_is_also_an_input_stays() -> None:
    assert_unchanged(PASS, "(float[2] x, float[2] w = {1,2}) => (float[2] y) { y = Relu(x) }")
