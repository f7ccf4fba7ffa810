from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_transpose"


def test_axes_move_once() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3,4] x) => (float[4,2,3] y)"
        " { a = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[1,2,0]>(a) }",
        "(float[2,3,4] x) => (float[4,2,3] y) { y = Transpose<perm=[2,0,1]>(x) }",
    )


def test_two_that_cancel_are_nothing() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3,4] x) => (float[2,3,4] y)"
        " { a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[2,0,1]>(a) y = Relu(b) }",
        "(float[2,3,4] x) => (float[2,3,4] y) { y = Relu(x) }",
    )


def test_an_absent_perm_reverses() -> None:
    for inner, outer, perm in (
        ("", "<perm=[1,0,2]>", "[1,2,0]"),
        ("<perm=[1,0,2]>", "", "[2,0,1]"),
    ):
        assert_rewrites(
            PASS,
            "(float[2,3,4] x) => (float[A,B,C] y)"
            f" {{ a = Transpose{inner}(x) y = Transpose{outer}(a) }}",
            f"(float[2,3,4] x) => (float[A,B,C] y) {{ y = Transpose<perm={perm}>(x) }}",
        )


def test_two_reversals_cancel_whatever_the_rank() -> None:
    assert_rewrites(
        PASS,
        "(float[6] x, int64[N] s) => (float[6] y)"
        " { r = Reshape(x, s) a = Transpose(r) b = Transpose(a) y = Relu(b) }",
        "(float[6] x, int64[N] s) => (float[6] y) { r = Reshape(x, s) y = Relu(r) }",
        runtime="none",
    )


def test_the_first_one_stays_for_its_other_users() -> None:
    interface = "(float[2,3,4] x) => (float[A,B,C] y, float[D,E,F] z)"
    assert_rewrites(
        PASS,
        f"{interface} {{ a = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[1,2,0]>(a) z = Relu(a) }}",
        f"{interface} {{ a = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[2,0,1]>(x) z = Relu(a) }}",
    )


def test_a_chain_becomes_one() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3,4] x) => (float[2,4,3] y) { a = Transpose<perm=[1,2,0]>(x)"
        " b = Transpose<perm=[1,2,0]>(a) c = Transpose<perm=[1,2,0]>(b) y = Transpose<perm=[0,2,1]>(c) }",
        "(float[2,3,4] x) => (float[2,4,3] y) { y = Transpose<perm=[0,2,1]>(x) }",
    )


def test_what_permutes_nothing_is_left_to_the_checker() -> None:
    for inner, outer in (("[0,1]", "[0,1,2]"), ("[0,0,1]", "[0,0,1]"), ("[2,1,0]", "[3,1,2]")):
        assert_unchanged(
            PASS,
            "(float[2,3,4] x) => (float[A,B,C] y)"
            f" {{ a = Transpose<perm={inner}>(x) y = Transpose<perm={outer}>(a) }}",
            because="a perm is not a permutation",
        )
