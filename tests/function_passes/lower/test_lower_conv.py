import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_close, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_conv"


def test_windows_are_columns() -> None:
    assert_rewrites(
        PASS,
        "(float[2,1,3] x, float[1,1,2] w) => (float[2,1,2] y) { y = Conv(x, w) }",
        "(float[2,1,3] x, float[1,1,2] w) => (float[2,1,2] y) <int64[3] f = {0,1,3}, "
        "int64[4] i = {0,1,1,2}, int64[3] c = {0,2,2}, int64[2] m = {1,2}, int64[3] o = {0,1,2}> "
        "{ v = Reshape(x, f) g = Gather<axis=2>(v, i) h = Reshape(g, c) k = Reshape(w, m) "
        "p = MatMul(k, h) y = Reshape(p, o) }",
    )


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("attributes", "kernel"),
    [
        ("", "6,4,3,2"),
        ("group=2", "6,2,3,2"),
        ("group=4,strides=[2,3]", "4,1,2,2"),
        ("strides=[2,1],dilations=[1,2],pads=[1,0,2,1]", "6,4,3,2"),
        ("strides=[4,4]", "6,4,1,1"),
        ("group=2,pads=[1,1,1,1]", "2,2,1,1"),
        ("group=2", "2,2,1,1"),
        ('auto_pad="SAME_UPPER",strides=[2,3]', "6,4,2,3"),
        ('auto_pad="SAME_LOWER",strides=[2,3]', "6,4,2,3"),
        ('auto_pad="VALID"', "6,4,2,3"),
        ("strides=[5,5]", "6,4,3,2"),
    ],
)
def test_attributes(batch: int, attributes: str, kernel: str) -> None:
    shape = [int(size) for size in kernel.split(",")]
    feeds = {"x": floats(batch, 4, 9, 8), "w": floats(*shape, seed=1), "b": floats(shape[0])}
    assert_close(
        PASS,
        f"(float[N,4,9,8] x, float[{kernel}] w, float[{shape[0]}] b) => (float[N,{shape[0]},H,W] y) "
        f"{{ y = Conv<{attributes}>(x, w, b) }}".replace("<>", ""),
        feeds,
    )


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(rank: int) -> None:
    sizes = [5, 4, 6][:rank]
    image = ",".join(map(str, (2, 3, *sizes)))
    kernel = ",".join(map(str, (2, 3, *[2] * rank)))
    free = ",".join("ABC"[:rank])
    assert_close(
        PASS,
        f"(float[{image}] x, float[{kernel}] w) => (float[2,2,{free}] y) {{ y = Conv(x, w) }}",
        {"x": floats(2, 3, *sizes), "w": floats(2, 3, *[2] * rank, seed=1)},
    )


def test_an_inf_of_another_window_stays_there() -> None:
    x = floats(1, 1, 6)
    x[0, 0, 5] = np.inf
    assert_close(
        PASS,
        "(float[1,1,6] x, float[1,1,2] w) => (float[1,1,5] y) { y = Conv(x, w) }",
        {"x": x, "w": np.ones((1, 1, 2), np.float32)},
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[1,2,3] x, float[2,2,1] w) => (float[1,2,3] y) { y = Conv(x, w) }",
            "the kernel is one pixel",
        ),
        (
            "(float[1,2,L] x, float[2,2,2] w) => (float[1,2,M] y) { y = Conv(x, w) }",
            "sizes of image and result are not known",
        ),
        (
            "(float[1,2,5] x, float[2,2,K] w) => (float[1,2,M] y) { y = Conv(x, w) }",
            "the kernel size is not known",
        ),
        (
            "(float[1,C,5] x, float[2,2,2] w) => (float[1,2,4] y) { y = Conv(x, w) }",
            "the channels do not fit the groups",
        ),
        (
            "(bfloat16[1,2,5] x, bfloat16[2,2,2] w) => (bfloat16[1,2,4] y) { y = Conv(x, w) }",
            "the dtype of x has no product",
        ),
        (
            "(float[1,2,9] x, float[2,2,2] w) => (float[1,2,5] y) "
            '{ y = Conv<auto_pad="SAME_UPPER",dilations=[2],strides=[2]>(x, w) }',
            "runtimes differ on auto_pad with dilations",
        ),
        (
            "(float[1,2,9] x, float[2,2,2] w) => (float[1,2,7] y) { y = Conv<pads=[-1,0]>(x, w) }",
            "the image is cropped by negative pads",
        ),
        (
            "(float[1,2,2000,2000] x, float[2,2,2,2] w) => (float[1,2,1999,1999] y) "
            "{ y = Conv(x, w) }",
            "the windows have 15984004 elements",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because, opset=22)
