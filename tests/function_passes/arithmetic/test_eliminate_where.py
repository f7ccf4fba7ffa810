from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_where"


def test_the_branch_that_is_always_taken_is_the_result() -> None:
    for constant, branch in (("{1}", "a"), ("{0}", "b")):
        assert_rewrites(
            PASS,
            f"(float[N] a, float[N] b) => (float[N] y) <bool c = {constant}> {{ h = Where(c, a, b)  y = Exp(h) }}",
            f"(float[N] a, float[N] b) => (float[N] y) {{ y = Exp({branch}) }}",
            runtime="reference",
        )


def test_onnxruntime_agrees_where_there_is_no_sign_of_zero() -> None:
    assert_rewrites(
        PASS,
        "(int64[2,3] a, int64[3] b) => (int64[2,3] y) <bool[2,1] c = {1,1}> { h = Where(c, a, b)  y = Neg(h) }",
        "(int64[2,3] a, int64[3] b) => (int64[2,3] y) { y = Neg(a) }",
    )


def test_the_branch_that_onnxruntime_keeps_whole_is_the_same_there() -> None:
    assert_rewrites(
        PASS,
        "(float[N] a, float[N] b) => (float[N] y) <bool c = {0}> { h = Where(c, a, b)  y = Exp(h) }",
        "(float[N] a, float[N] b) => (float[N] y) { y = Exp(b) }",
    )


def test_a_branch_that_grows_is_an_expand() -> None:
    assert_rewrites(
        PASS,
        "(int64[3] a, int64[2,1] b) => (int64[2,3] y) <bool[1] c = {1}> { y = Where(c, a, b) }",
        "(int64[3] a, int64[2,1] b) => (int64[2,3] y) <int64[2] s = {2,3}> { y = Expand(a, s) }",
    )


def test_a_mixed_condition_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2] a, float[2] b) => (float[2] y) <bool[2] c = {1,0}> { y = Where(c, a, b) }",
        because="the condition selects from both branches",
    )


def test_a_branch_that_may_grow_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] a, float[M] b) => (float[K] y) <bool c = {1}> { y = Where(c, a, b) }",
        because="the result may be larger than the branch",
    )


def test_a_condition_that_may_be_fed_is_left_alone() -> None:
    assert_unchanged(
        PASS, "(float[N] a, float[N] b, bool c = {1}) => (float[N] y) { y = Where(c, a, b) }"
    )
