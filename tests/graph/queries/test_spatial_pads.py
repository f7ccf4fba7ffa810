"""The pads of the spatial axes of a Pad: known, not negative, and none on other axes."""

import pytest

from tests.small import made_by, parsed
from tiered.graph.queries.spatial_pads import spatial_pads

TEXT = """(float[1,2,5,5] x, float[2,5] flat, float[1,2,5] line, int64[4] p, int64[2] q, int64[K] t)
    => (float[?] y) <int64[8] all = {0,0,1,2,0,0,3,4}, int64[4] two = {1,2,3,4},
    int64[4] crops = {1,-2,3,4}, int64[8] batch = {1,0,0,0,0,0,0,0},
    int64[8] channels = {0,0,0,0,0,1,0,0}, int64[2] axes = {2,3}, int64[2] turned = {-1,-2},
    int64[2] outer = {1,2}, int64[6] less = {0,0,1,0,0,2}, int64[4] none = {0,0,0,0}>"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("x, all", [1, 2, 3, 4]),
        ("x, two, , axes", [1, 2, 3, 4]),
        ("x, two, , turned", [2, 1, 4, 3]),
        ("x, none, , outer", [0, 0, 0, 0]),
        ("line, less", [1, 2]),
        ("x, two, , outer", None),
        ("x, crops, , axes", None),
        ("x, batch", None),
        ("x, channels", None),
        ("x, p, , axes", None),
        ("x, two, , q", None),
        ("x, less", None),
        ("flat, two", None),
        ("h, two, , turned", None),
    ],
)
def test_pads_of_spatial_axes(call: str, expected: list[int] | None) -> None:
    model = parsed(f"{TEXT} {{ h = Reshape(x, t) r = Pad({call}) y = Neg(r) }}")
    node = made_by(model, "r")
    found = spatial_pads(node.given(0), node.given(1), node.input(3))
    assert found == expected
