"""Convolutions with kernels of each sample, and the places of the maxima of a pool."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tiered import ShapeError

KERNELS = """(float[1,2,4,4] x, float[1,3,2,2,2] k{more}) => (float[1,A,3,3] y)
    <int64[4] s = {{-1,2,2,2}}, int64[1] all = {{-1}}> {{
    w = Reshape(k, s) {nodes} }}"""
ONE_IMAGE = f"""(float[1,3,2,2,2] k) => (float[1,A,3,3] y)
    <float[1,2,4,4] x = {{{", ".join(map(str, range(32)))}}}, int64[4] s = {{-1,2,2,2}}> {{
    w = Reshape(k, s)  y = Conv(x, w) }}"""
POOL = """(float[1,2,4,4] x) => ({outputs}) <int64[4] size = {{1,2,{height},4}}> {{
    y, p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x)  {nodes} }}"""
FILLED = "z = MaxUnpool<kernel_shape = [2,2], strides = [2,2]>(y, p, size)"

FOLLOWED = {
    "kernels of each sample": KERNELS.format(more="", nodes="y = Conv(x, w)"),
    "kernels of each sample with their bias": KERNELS.format(
        more=", float[1,3] b", nodes="c = Reshape(b, all)  y = Conv(x, w, c)"
    ),
    "kernels of each sample of one image": ONE_IMAGE,
    "a pool without places": POOL.format(outputs="float[A,B,C,D] y", height=4, nodes=""),
    "places that are returned": POOL.format(
        outputs="float[A,B,C,D] y, int64[A,B,C,D] p", height=4, nodes=""
    ),
    "an image that is filled": POOL.format(outputs="float[A,B,C,D] z", height=4, nodes=FILLED),
    "a larger image that is filled": POOL.format(
        outputs="float[A,B,C,D] z", height=6, nodes=FILLED
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("size", [3, "N"])
def test_each_sample_is_computed_as_by_itself(name: str, size: int | str) -> None:
    assert_each_by_itself(FOLLOWED[name], size)


PLACED = """({x} x) => (float[A,B,C,D] y, int64[A,B,C,D] p) {{
    y, p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }}"""


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (PLACED.format(x="float[2,2,4,4]"), "counts through a batch of 2"),
        (PLACED.format(x="float[1,2,H,4]"), "depend on dynamic dims"),
    ],
)
def test_what_cannot_follow_is_refused(text: str, because: str) -> None:
    with pytest.raises(ShapeError, match=because):
        changed(text, 4, {"x": 0})
