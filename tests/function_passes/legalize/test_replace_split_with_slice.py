from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_split_with_slice"
HEAD = "(float[2,5] x) => (float[2,3] y, float[2,2] z)"
MADE = (
    "<int64[1] a = {%d}, int64[1] o = {0}, int64[1] m = {3}, int64[1] n = {3}, int64[1] e = {5}> "
    "{ y = Slice(x, o, m, a)  z = Slice(x, n, e, a) }"
)


def test_each_part_is_a_slice() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <int64[2] s = {{3, 2}}> {{ y, z = Split<axis = 1>(x, s) }}",
        f"{HEAD} {MADE % 1}",
    )


def test_the_last_part_may_be_smaller() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} {{ y, z = Split<axis = -1, num_outputs = 2>(x) }}",
        f"{HEAD} {MADE % -1}",
    )


def test_sizes_of_an_attribute() -> None:
    header = '<ir_version: 8, opset_import: ["" : 11]> g'
    assert_rewrites(
        PASS,
        f"{header} {HEAD} {{ y, z = Split<axis = 1, split = [3, 2]>(x) }}",
        f"{header} {HEAD} {MADE % 1}",
    )


def test_computed_sizes_stay() -> None:
    text = "(float[2,5] x, int64[2] s) => (float[2,a] y, float[2,b] z) { y, z = Split<axis = 1>(x, s) }"
    assert_unchanged(PASS, text, because="split is not a constant")


def test_equal_parts_of_an_unknown_size_stay() -> None:
    text = "(float[2,n] x) => (float[2,a] y, float[2,a] z) { y, z = Split<axis = 1, num_outputs = 2>(x) }"
    assert_unchanged(PASS, text, because="the dim of the axis is not a number")
