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
        because="it has several parts, whose sizes are not given",
    )
    assert_unchanged(
        PASS,
        "(float[4] x) => (float[2] y, float[2] z) <int64[2] s = {2, 2}> { y, z = Split(x, s) }",
        because="it has several parts",
    )


def test_beside_empty_parts_the_whole_is_x() -> None:
    assert_rewrites(
        PASS,
        """(float[N,4] x) => (float[N,4] y) <int64[3] s = {0, 4, 0}> {
            a, h, b = Split<axis=1>(x, s)  y = Relu(h) }""",
        "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }",
    )


def test_an_empty_part_is_a_constant() -> None:
    assert_rewrites(
        PASS,
        """(float[2,4] x) => (float[2,4] y, float[2,0] z) <int64[2] s = {4, 0}> {
            h, b = Split<axis=1>(x, s)  y = Relu(h)  z = Neg(b) }""",
        """(float[2,4] x) => (float[2,4] y, float[2,0] z) <float[2,0] b = {}> {
            y = Relu(x)  z = Neg(b) }""",
    )


def test_parts_that_are_outputs() -> None:
    assert_rewrites(
        PASS,
        """(float[2,4] x) => (float[2,4] y, float[2,0] z) <int64[2] s = {4, 0}> {
            y, z = Split<axis=1>(x, s) }""",
        "(float[2,4] x) => (float[2,4] y, float[2,0] z) <float[2,0] z = {}> { y = Identity(x) }",
    )


def test_an_empty_part_of_a_dynamic_batch_stays() -> None:
    assert_unchanged(
        PASS,
        """(float[N,4] x) => (float[N,4] y, float[N,0] z) <int64[2] s = {4, 0}> {
            h, b = Split<axis=1>(x, s)  y = Relu(h)  z = Neg(b) }""",
        because="an empty part has other dims that are not known",
    )
