from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_concat"


def test_one_tensor_is_itself() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { a = Concat<axis=0>(x)  y = Relu(a) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_what_is_empty_is_left_out() -> None:
    for axis in (1, -1):
        assert_rewrites(
            PASS,
            f"(float[N,2] x, float[N,0] e, float[N,M] z) => (float[N,K] y) {{ y = Concat<axis={axis}>(e, x, e, z) }}",
            f"(float[N,2] x, float[N,0] e, float[N,M] z) => (float[N,K] y) {{ y = Concat<axis={axis}>(x, z) }}",
        )


def test_one_that_is_not_empty_is_the_result() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, float[0] e) => (float[N] y) { a = Concat<axis=0>(x, e)  y = Relu(a) }",
        "(float[N] x, float[0] e) => (float[N] y) { y = Relu(x) }",
    )


def test_of_empty_ones_the_first_is_the_result() -> None:
    assert_rewrites(
        PASS,
        "(float[0] x, float[0] z) => (float[0] y) { a = Concat<axis=0>(x, z)  y = Relu(a) }",
        "(float[0] x, float[0] z) => (float[0] y) { y = Relu(x) }",
    )


def test_an_output_that_is_an_input_needs_a_node() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { y = Concat<axis=0>(x) }",
        "(float[2] x) => (float[2] y) { y = Identity(x) }",
    )


def test_what_may_hold_something_is_left_alone() -> None:
    for shape in ("N,2", "2,0"):
        assert_unchanged(
            PASS,
            f"(float[{shape}] x, float[{shape}] z) => (float[A,B] y) {{ y = Concat<axis=0>(x, z) }}",
            because="it has several inputs, and none is surely empty",
        )
