from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_unused_initializer"


def test_what_nobody_reads_goes() -> None:
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


def test_what_a_body_captures_is_read() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { y = If(c) <"
        "then_branch = t () => (float[2] p) { p = Add(x, w) },"
        "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
    )


def test_what_is_an_output_is_used() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] w) <float[2] w = {1,2}> { y = Relu(x) }")


def test_one_that_is_an_input_too_stays_or_callers_would_have_to_feed_it() -> None:
    assert_unchanged(PASS, "(float[2] x, float[2] w = {1,2}) => (float[2] y) { y = Relu(x) }")
