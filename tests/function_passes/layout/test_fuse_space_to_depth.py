import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_space_to_depth"
DCR, CRD = "0,3,5,1,2,4", "0,1,3,5,2,4"


def _model(
    x: str, split: str, joined: str, perm: str = DCR, y: str = "A,B,C,D", dtype: str = "float"
) -> str:
    counts = [text.count(",") + 1 for text in (split, joined)]
    return (
        f"({dtype}[{x}] x) => ({dtype}[{y}] y) <int64[{counts[0]}] s = {{{split}}},"
        f" int64[{counts[1]}] t = {{{joined}}}>"
        f" {{ a = Reshape(x, s)  b = Transpose<perm=[{perm}]>(a)  y = Reshape(b, t) }}"
    )


@pytest.mark.parametrize(
    ("x", "split", "joined", "y"),
    [
        ("2,3,4,6", "2,3,2,2,3,2", "2,12,2,3", "2,12,2,3"),
        ("N,3,4,6", "0,0,2,2,3,2", "0,12,2,3", "N,12,2,3"),
        ("N,3,4,6", "-1,3,2,2,3,2", "-1,12,2,3", "M,12,2,3"),
        ("2,3,H,6", "2,3,-1,2,3,2", "2,12,-1,3", "2,12,H2,3"),
        ("2,3,4,W", "2,3,2,2,-1,2", "2,12,2,-1", "2,12,2,W2"),
        ("2,3,4,6", "2,-1,2,2,3,2", "2,-1,2,3", "2,12,2,3"),
    ],
)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_blocks_become_channels(x: str, split: str, joined: str, y: str, dtype: str) -> None:
    assert_rewrites(
        PASS,
        _model(x, split, joined, y=y, dtype=dtype),
        f"({dtype}[{x}] x) => ({dtype}[{y}] y) {{ y = SpaceToDepth<blocksize=2>(x) }}",
    )


def test_the_order_of_one_channel_is_that_of_the_block() -> None:
    assert_rewrites(
        PASS,
        _model("N,1,6,3", "0,1,2,3,1,3", "0,9,2,1", CRD, "N,9,2,1"),
        "(float[N,1,6,3] x) => (float[N,9,2,1] y) { y = SpaceToDepth<blocksize=3>(x) }",
    )


def test_all_places_of_a_channel_together_need_the_mode() -> None:
    before = _model("2,3,4,6", "2,3,2,2,3,2", "2,12,2,3", CRD, "2,12,2,3")
    assert_rewrites(
        PASS,
        before,
        '(float[2,3,4,6] x) => (float[2,12,2,3] y) { y = SpaceToDepth<blocksize=2, mode="CRD">(x) }',
        opset=28,
        runtime="reference",
    )
    assert_unchanged(PASS, before, because="mode")


def test_images_have_four_dims() -> None:
    assert_unchanged(
        PASS,
        _model("2,3,24", "2,3,2,2,3,2", "2,12,2,3"),
        because="these are not blocks of images",
    )
    assert_unchanged(
        PASS,
        _model("2,3,4,6", "2,3,2,2,3,2", "2,12,6", y="A,B,C"),
        because="these are not blocks of images",
    )


@pytest.mark.parametrize("split", ["2,3,2,2,2,3", "2,3,4,1,6,1"])
def test_blocks_are_squares(split: str) -> None:
    assert_unchanged(
        PASS, _model("2,3,4,6", split, "2,-1,2,2"), because="the blocks are not squares"
    )


def test_halves_have_no_kernel() -> None:
    assert_unchanged(
        PASS,
        _model("2,3,4,6", "2,3,2,2,3,2", "2,12,2,3", dtype="float16"),
        because="SpaceToDepth has no kernel for the dtype",
    )


@pytest.mark.parametrize(
    ("x", "split"),
    [
        ("2,3,4,6", "2,3,1,2,6,2"),
        ("3,2,4,6", "2,3,2,2,3,2"),
        ("N,3,H,6", "0,3,2,2,-1,2"),
        ("N,3,4,6", "2,3,2,2,3,2"),
    ],
)
def test_other_dims_than_those_of_the_image_are_left_alone(x: str, split: str) -> None:
    assert_unchanged(PASS, _model(x, split, "2,12,-1,3"), because="a dim of the image may change")


def test_an_unknown_number_of_channels_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        _model("2,C,4,6", "2,0,2,2,3,2", "2,-1,2,3"),
        because="the number of channels is not known",
    )


@pytest.mark.parametrize("joined", ["2,3,2,12", "0,0,-1,3", "2,12,3,2"])
def test_channels_that_are_joined_differently_are_left_alone(joined: str) -> None:
    assert_unchanged(
        PASS,
        _model("2,3,4,6", "2,3,2,2,3,2", joined),
        because="the channels may be joined differently",
    )


def test_other_permutations_are_left_alone() -> None:
    assert_unchanged(PASS, _model("2,3,4,6", "2,3,2,2,3,2", "2,12,2,3", "0,5,3,1,2,4"))


def test_what_others_read_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3,4,6] x) => (float[2,12,2,3] y, float[2,3,2,2,3,2] a)"
        " <int64[6] s = {2,3,2,2,3,2}, int64[4] t = {2,12,2,3}>"
        f" {{ a = Reshape(x, s)  b = Transpose<perm=[{DCR}]>(a)  y = Reshape(b, t) }}",
    )
