import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "combine_parallel_conv2d"
IO = "(float[1,2,3,3] x) => (float[1,1,3,3] a, float[1,2,3,3] b, float[1,1,3,3] c)"
WEIGHTS = "float[1,2,1,1] u = {1,2}, float[2,2,1,1] v = {3,4,5,6}, float[1,2,1,1] w = {7,8}"
JOINED = "float[4,2,1,1] w = {1,2,3,4,5,6,7,8}, int64[3] s = {1,2,1}"


def test_kernels_are_concatenated() -> None:
    assert_rewrites(
        PASS,
        f"{IO} <{WEIGHTS}> {{ a = Conv(x, u) b = Conv(x, v) c = Conv(x, w) }}",
        f"{IO} <{JOINED}> {{ t = Conv(x, w) a, b, c = Split<axis=1>(t, s) }}",
        min_depth=1,
    )


def test_a_missing_bias_is_zeros() -> None:
    assert_rewrites(
        PASS,
        f"{IO} <{WEIGHTS}, float[2] d = {{9,8}}>"
        " { a = Conv(x, u) b = Conv(x, v, d) c = Conv(x, w) }",
        f"{IO} <{JOINED}, float[4] d = {{0,9,8,0}}>"
        " { t = Conv(x, w, d) a, b, c = Split<axis=1>(t, s) }",
        min_depth=1,
    )


def test_consumers_of_all_branches_are_combined() -> None:
    assert_rewrites(
        PASS,
        f"{IO} <{WEIGHTS}> {{ d = Conv(x, u) e = Conv(x, v) f = Conv(x, w)"
        " a = LeakyRelu<alpha=0.5>(d) b = LeakyRelu<alpha=0.5>(e) c = LeakyRelu<alpha=0.5>(f) }",
        f"{IO} <{JOINED}> {{ t = Conv(x, w) r = LeakyRelu<alpha=0.5>(t)"
        " a, b, c = Split<axis=1>(r, s) }",
        min_depth=1,
    )


def test_different_consumers_stay() -> None:
    assert_rewrites(
        PASS,
        f"{IO} <{WEIGHTS}> {{ d = Conv(x, u) b = Conv(x, v) c = Conv(x, w) a = Relu(d) }}",
        f"{IO} <{JOINED}> {{ t = Conv(x, w) d, b, c = Split<axis=1>(t, s) a = Relu(d) }}",
        min_depth=1,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[1,2,3,3] x) => (float[1,1,3,3] a, float[1,2,3,3] b)"
            f" <{WEIGHTS}> {{ a = Conv(x, u) b = Conv(x, v) }}",
            "there are 2 parallel branches",
        ),
        (
            "(float[1,2,3,3] x) => (float[1,1,3,3] a, float[1,2,3,3] b, float[1,1,3,3] c)"
            f" <{WEIGHTS}> {{ a = Conv(x, u) b = Conv(x, v) c = Conv(x, u) }}",
            "a weight has other consumers",
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because, min_depth=1)


def test_short_sums_do_not_pay() -> None:
    text = f"{IO} <{WEIGHTS}> {{ a = Conv(x, u) b = Conv(x, v) c = Conv(x, w) }}"
    assert_unchanged(PASS, text, because="sums of length 2 are too short")


@pytest.mark.parametrize(
    "branch",
    ["Conv<strides=[2,2], pads=[2,2,1,1]>(x, w)", "Conv(y, w)", "Conv(x, k)"],
)
def test_different_convolutions_are_not_branches(branch: str) -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x, float[1,2,3,3] y, float[1,2,1,1] k)"
        " => (float[1,1,3,3] a, float[1,2,3,3] b, float[1,1,3,3] c)"
        f" <{WEIGHTS}> {{ a = Conv(x, u) b = Conv(x, v) c = {branch} }}",
        because="there are 2 parallel branches",
        min_depth=1,
    )


def test_groups_are_left_alone() -> None:
    weights = ", ".join(f"float[2,1,1,1] {name} = {{1,2}}" for name in "uvw")
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x) => (float[1,2,3,3] a, float[1,2,3,3] b, float[1,2,3,3] c)"
        f" <{weights}> {{ a = Conv<group=2>(x, u) b = Conv<group=2>(x, v)"
        " c = Conv<group=2>(x, w) }",
        min_depth=1,
    )
