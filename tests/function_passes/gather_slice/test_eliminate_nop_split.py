from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_split"


def test_one_part_is_all() -> None:
    assert_rewrites(
        PASS,
        "(float[N,4] x) => (float[N,4] y) <int64[1] s = {4}> { h = Split<axis=1>(x, s)  y = Relu(h) }",
        "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }",
    )


def test_one_part_by_number_is_all() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) { h = Split<num_outputs=1>(x)  y = Relu(h) }",
        "(float[N] x) => (float[N] y) { y = Relu(x) }",
    )


def test_old_opsets_have_the_sizes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[4] x) => (float[4] y) { h = Split<split=[4]>(x)  y = Relu(h) }",
        "(float[4] x) => (float[4] y) { y = Relu(x) }",
        opset=11,
    )


def test_several_parts_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x) => (float[2] y, float[2] z) { y, z = Split<num_outputs=2>(x) }",
        because="it has several parts",
    )
