from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_transpose"


def test_every_axis_in_its_place_is_nothing() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N,4] x) => (float[2,N,4] y) { h = Transpose<perm=[0,1,2]>(x) y = Relu(h) }",
        "(float[2,N,4] x) => (float[2,N,4] y) { y = Relu(x) }",
    )


def test_one_axis_or_none_cannot_be_reversed() -> None:
    for shape in ("[N]", ""):
        assert_rewrites(
            PASS,
            f"(float{shape} x) => (float{shape} y) {{ h = Transpose(x) y = Relu(h) }}",
            f"(float{shape} x) => (float{shape} y) {{ y = Relu(x) }}",
        )


def test_without_perm_the_axes_are_reversed() -> None:
    assert_unchanged(
        PASS, "(float[2,2] x) => (float[2,2] y) { y = Transpose(x) }", because="it moves an axis"
    )


def test_an_axis_of_size_1_is_moved_as_well() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2] x) => (float[2,1] y) { y = Transpose<perm=[1,0]>(x) }",
        because="it moves an axis",
    )


def test_an_unknown_rank_may_be_reversed() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, int64[N] s) => (float[M] y) { h = Reshape(x, s) y = Transpose(h) }",
        because="perm is absent and the rank of x is not known",
    )


def test_an_output_of_4_bits_needs_a_node_that_runtimes_have() -> None:
    assert_unchanged(
        PASS,
        "(int4[2,3] x) => (int4[2,3] y) { y = Transpose<perm=[0,1]>(x) }",
        because="a graph output needs a node of its own",
    )


def test_a_perm_of_another_rank_fails_when_the_model_runs() -> None:
    assert_unchanged(
        PASS,
        "(float[2,2,3] x) => (float[A,B] y) { y = Transpose<perm=[0,1]>(x) }",
        because="perm does not have the rank of x",
    )


def test_axes_of_size_1_may_trade_places() -> None:
    assert_rewrites(
        "eliminate_nop_transpose",
        "(float[1,3,1] x) => (float[1,3,1] y) { h = Transpose<perm=[2,1,0]>(x)  y = Relu(h) }",
        "(float[1,3,1] x) => (float[1,3,1] y) { y = Relu(x) }",
    )
