from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_minmax"


def test_the_first_operand_is_spelled_out() -> None:
    for op in ("Max", "Min"):
        for opset, dim in ((7, "4"), (21, "N")):
            inputs = ", ".join(f"float[{dim}] {name}" for name in "abcd")
            assert_rewrites(
                PASS,
                f"({inputs}) => (float[{dim}] y) {{ h = {op}(a, b)  i = {op}(h, c)  y = {op}(i, d) }}",
                f"({inputs}) => (float[{dim}] y) {{ y = {op}(a, b, c, d) }}",
                opset=opset,
            )


def test_shapes_broadcast_step_by_step_as_before() -> None:
    assert_rewrites(
        PASS,
        "(float a, float[1] b, float[N,1] c) => (float[N,1] y) { h = Max(a, b)  y = Max(h, c) }",
        "(float a, float[1] b, float[N,1] c) => (float[N,1] y) { y = Max(a, b, c) }",
    )


def test_integers_have_no_order() -> None:
    assert_rewrites(
        PASS,
        "(int64[N] a, int64[N] b, int64[N] c) => (int64[N] y) { h = Max(b, c)  y = Max(a, h) }",
        "(int64[N] a, int64[N] b, int64[N] c) => (int64[N] y) { y = Max(a, b, c) }",
    )


def test_zeros_of_two_signs_have_an_order() -> None:
    assert_unchanged(
        PASS,
        "(float[N] a, float[N] b, float[N] c) => (float[N] y) { h = Max(b, c)  y = Max(a, h) }",
        because="zeros of two signs would be compared in another order",
    )


def test_what_others_read_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] a, float[N] b) => (float[N] y, float[N] h) { h = Max(a, b)  y = Max(h, a) }",
        because="the inner one is read elsewhere too",
    )


def test_a_max_of_a_min_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] a, float[N] b) => (float[N] y) { h = Min(a, b)  y = Max(h, a) }",
        because="no operand is of the same kind",
    )
