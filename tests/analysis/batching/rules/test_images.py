"""Convolutions with kernels of each sample, and the places of the maxima of a pool."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tests.analysis.batching.facts_of import fact_or_why_not
from tiered import ShapeError
from tiered.analysis.batching.sample_facts import BatchRows

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


MIXES = "it computes a result from several samples: axis {} of {!r} is the batch"
X, K, R = {"x": 0}, {"x": 0, "k": 0}, {"x": 0, "r": 0}


def conv(
    nodes: str,
    batch: int = 1,
    channels: int = 2,
    of_kernel: int = 2,
    *,
    more: str = "",
    bias: int = 3,
) -> str:
    """Return a model with images x and kernels k of each sample: w has the kernels of all of them,
    i their images as channels."""
    return f"""(float[{batch},{channels},4,4] x, float[{batch},3,{of_kernel},2,2] k{more}) => (y)
        <int64[4] s = {{-1,{of_kernel},2,2}}, int64[4] one = {{1,{batch * channels},4,4}},
         int64[1] all = {{-1}}, float[{bias}] f = {{{",".join("1" * bias)}}}> {{
        w = Reshape(k, s)  i = Reshape(x, one)  {nodes} }}"""


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    [
        (conv("y = Conv(x, w)"), K, BatchRows(0)),
        (conv("y = Conv(i, w)"), K, BatchRows(0)),
        (conv("y = Conv(x, w)"), X, BatchRows(0)),
        (conv("y = Conv(x, w)"), {"k": 0}, BatchRows(1, 1, 3)),
        (conv("y = Conv<group=2>(i, w)", 2), K, BatchRows(1, 1, 3)),
        (conv("y = Conv(i, w)", 2), K, MIXES.format(1, "i")),
        (conv("y = Conv<group=3>(i, w)", 2), K, MIXES.format(1, "i")),
        (conv("y = Conv<group=4>(i, w)", 2, 2, 1), K, MIXES.format(1, "i")),
        (conv("y = Conv<group=3>(i, w)", 1, 3, 1), K, BatchRows(0)),
        (conv("y = Conv<group=2>(i, w)", 1, 2, 1), K, MIXES.format(1, "w")),
        (conv("y = Conv(x, w)", 2), K, MIXES.format(0, "x")),
        (conv("t = Transpose<perm=[1,0,2,3]>(w)  y = Conv(x, t)"), K, MIXES.format(1, "t")),
        (conv("y = Conv(x, w)").replace("2,2] k", "H,2] k").replace("{-1,2,2,2}", "{3,2,-1,2}"),
         K, MIXES.format(0, "w")),
        (conv('y = Conv<auto_pad="SAME_UPPER">(x, w)').replace("4,4] x", "H,4] x"),
         K, "sizes of image and result are not known"),
        # Biases.
        (conv("y = Conv(x, w, f)"), K, BatchRows(0)),
        (conv("y = Conv<group=2>(i, w, f)", 2, bias=6), K,
         "its bias has other samples than its kernels"),
        (conv("g = Reshape(h, all)  y = Conv<group=2>(i, w, g)", 2, more=", float[2,3] h"),
         {**K, "h": 0}, BatchRows(1, 1, 3)),
        (conv("g = Reshape(h, all)  y = Conv<group=2>(i, w, g)", 2, more=", float[3,2] h"),
         {**K, "h": 1}, "its bias has other samples than its kernels"),
        (conv("y = Conv(i, w, h)", more=", float[1] h"), {**K, "h": 0},
         "its bias has other samples than its kernels"),
    ],
)  # fmt: skip
def test_kernels_of_each_sample_are_for_the_channels_of_its_image(
    text: str, places: dict[str, int], expected: BatchRows | str
) -> None:
    assert fact_or_why_not(text, places)[0] == expected


UNPOOL = "MaxUnpool<kernel_shape = [2,2], strides = [2,2]>"
OTHERS = "its operands have the samples in different orders"
LARGER = "its places count through samples of another size than those of its result"


def pool(outputs: str, nodes: str = "", batch: int = 1, *, height: int = 4, more: str = "") -> str:
    return f"""(float[{batch},2,4,4] x{more}) => ({outputs})
        <int64[4] size = {{{batch},2,{height},4}}> {{
        y, p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x)  {nodes} }}"""


@pytest.mark.parametrize(
    ("text", "places", "of", "expected"),
    [
        (pool("y", batch=2), X, "y", BatchRows(0)),
        (pool("y"), {"x": 1}, "y", BatchRows(1)),
        (pool("y, p"), X, "p", BatchRows(0)),
        (pool("y, p"), {"x": 1}, "p",
         "the places of its maxima count along several axes of the batch"),
        (pool("y, p").replace("4,4] x", "H,4] x"), X, "p",
         "the places of its maxima depend on dynamic dims"),
        (pool("z", f"z = {UNPOOL}(y, p)", 2), X, "p", BatchRows(0, step=32)),
        (pool("z", f"z = {UNPOOL}(y, p)", 2), X, "z", BatchRows(0)),
        (pool("z, p", f"z = {UNPOOL}(y, p)", 2), X, "p", "its output 'p' counts through a batch of 2"),
        (pool("z, p", f"z = {UNPOOL}(y, p)"), X, "p", BatchRows(0)),
        (pool("z, q", f"z = {UNPOOL}(y, p)  q = Neg(p)", 2), X, "p",
         "its output 'p' counts through a batch of 2"),
        (pool("z", f"z = {UNPOOL}(y, p, size)", 2), X, "z", BatchRows(0)),
        (pool("z", f"z = {UNPOOL}(y, p, size)", 2, height=6), X, "z", LARGER),
        (pool("z", f"z = {UNPOOL}(y, p, size)", 1, height=6), X, "z", BatchRows(0)),
        (pool("z", f"z = {UNPOOL}(w, p)", 2, more=", float[2,2,2,2] w"), X, "z", OTHERS),
        (pool("z", f"z = {UNPOOL}(w, p)", 2, more=", float[2,2,2,2] w"), {"x": 0, "w": 0}, "z",
         BatchRows(0)),
        (pool("z", f"z = {UNPOOL}(w, p)", 2, more=", float[2,2,2,2] w"), {"x": 0, "w": 1}, "z",
         OTHERS),
        (f"(float[1,2,2,2] x, int64[1,2,2,2] q) => (z) {{ z = {UNPOOL}(x, q) }}",
         {"x": 0, "q": 0}, "z", BatchRows(0)),
        (f"(float[2,2,2,2] x, int64[2,2,2,2] q) => (z) {{ z = {UNPOOL}(x, q) }}",
         {"x": 0, "q": 0}, "z", LARGER),
    ],
)  # fmt: skip
def test_places_count_through_the_samples_of_a_batch(
    text: str, places: dict[str, int], of: str, expected: BatchRows | str
) -> None:
    assert fact_or_why_not(text, places, of=of)[0] == expected


ROI = "RoiAlign<output_height = 2, output_width = 2>"
IMAGES = "the images of its regions, {!r}, are not those of the samples"


def regions(
    nodes: str = f"y = {ROI}(x, a, i)", images: str = "0,0,0,1,1,1", *, more: str = ""
) -> str:
    count, batch = len(images.split(",")), 1 + int(images[-1])
    return f"""(float[{batch},2,8,8] x, float[{batch},3,4] r{more}) => (y)
        <int64[{count}] i = {{{images}}}, int64[2] s = {{-1,4}}, int64[1] all = {{-1}},
         float[{count},4] q = {{{",".join("1" * 4 * count)}}}> {{ a = Reshape(r, s)  {nodes} }}"""


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    [
        (regions(), R, BatchRows(0, 1, 3)),
        (regions(images="0,0,0"), R, BatchRows(0, 1, 3)),
        (regions(images="0,0,1,1,1,1"), R, IMAGES.format("i")),
        (regions(), {"r": 0}, "the regions of each sample are of images that all share"),
        (regions(f"y = {ROI}(x, q, i)"), X, BatchRows(0, 1, 3)),
        (regions(f"y = {ROI}(x, q, i)", "0,0,1"), X, IMAGES.format("i")),
        (regions(f"t = Transpose<perm=[1,0,2,3]>(x)  y = {ROI}(t, a, i)"), R, MIXES.format(1, "t")),
        (regions(f"y = {ROI}(x, a, j)", more=", int64[6] j"), R, IMAGES.format("j")),
        (regions(f"e = Reshape(j, all)  y = {ROI}(x, a, e)", more=", int64[2,3] j"),
         {**R, "j": 0}, IMAGES.format("e")),
        (regions(f"t = Transpose<perm=[1,0,2]>(r)  b = Reshape(t, s)  y = {ROI}(x, b, i)"), R,
         "the regions of a sample are not next to each other"),
        (regions().replace("3,4] r", "R,4] r"), R, "how many regions a sample has is not known"),
    ],
)  # fmt: skip
def test_regions_are_those_of_the_image_of_their_sample(
    text: str, places: dict[str, int], expected: BatchRows | str
) -> None:
    assert fact_or_why_not(text, places)[0] == expected
