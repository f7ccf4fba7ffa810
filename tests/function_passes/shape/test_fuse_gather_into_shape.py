from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_gather_into_shape"


def test_consecutive_dims_are_a_part_of_the_shape() -> None:
    for indices in ("1,2", "-2,-1", "1,-1"):
        assert_rewrites(
            PASS,
            f"(float[A,B,C] x) => (int64[2] y) <int64[2] i = {{{indices}}}>"
            " { s = Shape(x)  y = Gather(s, i) }",
            "(float[A,B,C] x) => (int64[2] y) { y = Shape<start=1>(x) }",
        )


def test_one_dim_of_several_needs_an_end() -> None:
    assert_rewrites(
        PASS,
        "(float[A,B,C] x) => (int64[1] y) <int64[1] i = {-2}> { s = Shape(x)  y = Gather(s, i) }",
        "(float[A,B,C] x) => (int64[1] y) { y = Shape<start=1, end=2>(x) }",
    )


def test_an_unsqueezed_dim_is_a_list_of_one() -> None:
    for axis in (0, -1):
        assert_rewrites(
            PASS,
            f"(float[A,B] x) => (int64[1] y, int64[2] z) <int64 i = {{-2}}, int64[1] a = {{{axis}}}>"
            " { z = Shape(x)  g = Gather(z, i)  y = Unsqueeze(g, a) }",
            "(float[A,B] x) => (int64[1] y, int64[2] z)"
            " { z = Shape(x)  y = Shape<start=0, end=1>(x) }",
        )


def test_a_slice_is_a_part_too() -> None:
    for more, constants in (
        ("", ""),
        (", a", ", int64[1] a = {0}"),
        (", a, o", ", int64[1] a = {0}, int64[1] o = {1}"),
    ):
        assert_rewrites(
            PASS,
            "(float[A,B,C] x) => (int64[1] y)"
            f" <int64[1] b = {{-2}}, int64[1] e = {{2}}{constants}>"
            f" {{ s = Shape(x)  y = Slice(s, b, e{more}) }}",
            "(float[A,B,C] x) => (int64[1] y) { y = Shape<start=1, end=2>(x) }",
        )


def test_a_part_of_a_part_counts_from_where_that_begins() -> None:
    assert_rewrites(
        PASS,
        "(float[A,B,C,D] x) => (int64[2] y) <int64[2] i = {0,1}>"
        " { s = Shape<start=-3>(x)  y = Gather(s, i) }",
        "(float[A,B,C,D] x) => (int64[2] y) { y = Shape<start=1, end=3>(x) }",
    )


def test_several_parts_of_one_shape_need_it_no_more() -> None:
    assert_rewrites(
        PASS,
        "(float[A,B,C] x) => (int64[1] y, int64[2] z) <int64[1] i = {0}, int64[2] j = {1,2}>"
        " { s = Shape(x)  y = Gather(s, i)  z = Gather(s, j) }",
        "(float[A,B,C] x) => (int64[1] y, int64[2] z)"
        " { y = Shape<start=0, end=1>(x)  z = Shape<start=1>(x) }",
    )


def test_a_shape_with_other_consumers_stays() -> None:
    for other in ("z = Neg(s)", "z = Gather(s, k)", "z = Gather(s, j)", "z = Gather(s, m)"):
        assert_unchanged(
            PASS,
            "(float[A,B,C] x) => (int64[2] y, int64[R] z)"
            " <int64[2] i = {0,1}, int64 k = {0}, int64[2] j = {2,0}, int64[1,1] m = {0}>"
            f" {{ s = Shape(x)  y = Gather(s, i)  {other} }}",
            because="the shape has other consumers",
        )
    assert_unchanged(
        PASS,
        "(float[A,B] x) => (int64[1] y, int64[2] s) <int64[1] i = {0}>"
        " { s = Shape(x)  y = Gather(s, i) }",
        because="the shape has other consumers",
    )


def test_dims_that_are_not_side_by_side_are_left_alone() -> None:
    for operator in (
        "Gather(s, back)", "Gather(s, gap)", "Gather(s, none)", "Gather(s, far)", "Gather(s, low)",
        "Slice(s, b, e, a, o)", "Slice(s, e, b)", "Slice(s, k, e)",
    ):  # fmt: skip
        assert_unchanged(
            PASS,
            "(float[A,B,C] x, int64[1] k) => (int64[R] y) <int64[2] back = {1,0},"
            " int64[2] gap = {0,2}, int64[0] none = {}, int64[2] far = {2,3}, int64[2] low = {-4,-3},"
            " int64[1] b = {0}, int64[1] e = {3}, int64[1] a = {0}, int64[1] o = {2}>"
            f" {{ s = Shape(x)  y = {operator} }}",
            because="the dims are not consecutive",
        )


def test_an_index_may_be_out_of_an_unknown_rank() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] t) => (int64[2] y) <int64[2] i = {0,1}>"
        " { r = Reshape(x, t)  s = Shape(r)  y = Gather(s, i) }",
        because="the rank of x is not known",
    )


def test_old_opsets_have_the_whole_shape_only() -> None:
    assert_unchanged(
        PASS,
        "(float[A,B] x) => (int64[1] y) <int64[1] i = {0}> { s = Shape(x)  y = Gather(s, i) }",
        because="Shape",
        opset=14,
    )


def test_indices_from_elsewhere_are_left_alone() -> None:
    assert_unchanged(
        PASS, "(float[A,B] x, int64[1] i) => (int64[1] y) { s = Shape(x)  y = Gather(s, i) }"
    )


def test_a_scalar_stays_a_scalar() -> None:
    assert_unchanged(
        PASS, "(float[A,B] x) => (int64 y) <int64 i = {0}> { s = Shape(x)  y = Gather(s, i) }"
    )
