"""Axis maps of operators of images, and how their windows walk."""

import pytest

from tests.analysis.axes.rules.maps import map_of, why_not, written
from tiered.analysis.axes.axis_map import Axes, AxisMap, IteratorKind, Labels, WindowSteps

OPAQUE, SUM = IteratorKind.OPAQUE, IteratorKind.REDUCTION
OTHER_RANKS = "its operands are not of the ranks of an image and kernels"


def test_a_convolution_sums_over_channels_and_taps() -> None:
    axes = map_of(
        "(float[2,3,9,8] x, float[4,3,3,2] w, float[4] b) => (y)"
        "{ y = Conv<strides=[2,1], pads=[1,0,2,3], dilations=[1,4]>(x, w, b) }"
    )
    kernels = (1, 4, 5, 6)
    windows = {2: WindowSteps(2, 1, 3), 3: WindowSteps(1, 0, 5)}
    assert axes == AxisMap(
        ((0, 4, 2, 3), kernels, (1,)), ((0, 1, 2, 3),), {4: SUM, 5: SUM, 6: SUM, 7: SUM}, windows
    )


@pytest.mark.parametrize(
    "attributes", ["", "pads=[0,0], strides=[1], dilations=[1]", 'auto_pad="NOTSET"']
)
def test_a_window_walks_by_one_without_pads_by_default(attributes: str) -> None:
    text = f"(float[1,2,5] x, float[3,2,2] w) => (y) {{ y = Conv<group=1, {attributes}>(x, w) }}"
    text = text.replace("=1, >", "=1>")
    assert map_of(text).windows == {2: WindowSteps(1, 0, 2)}


def test_channels_of_groups_are_not_parallel() -> None:
    axes = map_of("(float[2,4,5] x, float[6,2,2] w) => (y) { y = Conv<group=2>(x, w) }")
    # The channels of a kernel are fewer than those of the image.
    assert axes == AxisMap(
        ((0, 3, 2), (1, 5, 4)),
        ((0, 1, 2),),
        {4: SUM, 5: SUM, 1: OPAQUE, 3: OPAQUE},
        {2: WindowSteps(1, 0, 2)},
    )


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_pads_are_not_read(auto_pad: str) -> None:
    axes = map_of(
        f'(float[2,3,5] x, float[4,3,3] w) => (y) {{ y = Conv<auto_pad="{auto_pad}">(x, w) }}'
    )
    assert not axes.windows
    assert axes.kind(2) is OPAQUE


def test_a_kernel_of_unknown_size_has_an_unknown_window() -> None:
    axes = map_of("(float[2,3,5,5] x, float[4,3,N,3] w) => (float[A,B,C,D] y) { y = Conv(x, w) }")
    assert axes.windows == {3: WindowSteps(1, 0, 3)}
    assert axes.kind(2) is OPAQUE


@pytest.mark.parametrize(
    ("operands", "line"),
    [
        ("float[2,3] x, float[4,3] w", "Conv(x, w)"),
        ("float[2,3,5] x, float[4,3,3,3] w", "Conv(x, w)"),
        ("float[2,3,5] x, float[4,3,3] w, float[4,1] b", "Conv(x, w, b)"),
        ("float[2,3] x, float[3,4] w", "ConvTranspose(x, w)"),
        ("float[2,3,5] x, float[3,4,3,3] w", "ConvTranspose(x, w)"),
        ("float[2,3,5] x", "MaxPool<kernel_shape=[2,2]>(x)"),
    ],
)
def test_operands_of_other_ranks_have_no_map(operands: str, line: str) -> None:
    assert why_not(f"({operands}) => (float[A,B,C] y) {{ y = {line} }}") == OTHER_RANKS


def test_a_pool_without_a_kernel_has_no_map() -> None:
    assert why_not("(float[2,3,5] x) => (float[A,B,C] y) { y = LpPool(x) }", 1) == OTHER_RANKS


@pytest.mark.parametrize(
    ("point", "axes"), [("uint8", None), ("uint8[1]", None), ("uint8[4]", (1,))]
)
def test_a_zero_point_is_one_or_one_for_each_kernel(point: str, axes: Axes | None) -> None:
    found = map_of(
        f"(uint8[2,3,5] x, uint8[4,3,3] w, uint8 p, {point} q) => (y)"
        "{ y = ConvInteger(x, w, p, q) }"
    )
    assert found.inputs == ((0, 3, 2), (1, 3, 4), None, axes)


def test_an_absent_zero_point_has_no_axes() -> None:
    text = "(uint8[2,3,5] x, uint8[4,3,3] w, uint8 q) => (y) { y = ConvInteger(x, w, , q) }"
    assert map_of(text).inputs == ((0, 3, 2), (1, 3, 4), None, None)


def test_the_kernels_of_a_quantised_convolution_are_its_fourth_operand() -> None:
    found = map_of(
        "(uint8[1,2,4] x, float s, uint8 z, uint8[3,2,2] w, float[3] t, uint8[3] q, int32[3] b)"
        "=> (y) { y = QLinearConv(x, s, z, w, t, q, s, z, b) }"
    )
    assert found.inputs == ((0, 3, 2), None, None, (1, 3, 4), (1,), (1,), None, None, (1,))


@pytest.mark.parametrize(
    ("attributes", "windows", "kinds"),
    [
        ("", {2: WindowSteps(1, 0, 3), 3: WindowSteps(1, 0, 2)}, {}),
        ("strides=[2,3], pads=[1,0,0,1], ", {2: WindowSteps(2, 1, 3), 3: WindowSteps(3, 0, 2)}, {}),
        ("ceil_mode=1, ", {}, {2: OPAQUE, 3: OPAQUE}),
        ('auto_pad="VALID", ', {}, {2: OPAQUE, 3: OPAQUE}),
    ],
)
def test_a_pool_keeps_channels_apart(
    attributes: str, windows: dict[int, WindowSteps], kinds: dict[int, IteratorKind]
) -> None:
    text = f"(float[1,2,9,9] x) => (y) {{ y = AveragePool<{attributes}kernel_shape=[3,2]>(x) }}"
    assert map_of(text) == AxisMap(((0, 1, 2, 3),), ((0, 1, 2, 3),), kinds, windows)


def test_the_places_of_the_largest_elements_have_no_axes() -> None:
    axes = map_of("(float[1,2,9] x) => (y, i) { y, i = MaxPool<kernel_shape=[2]>(x) }")
    assert axes.outputs == ((0, 1, 2), None)


@pytest.mark.parametrize("op_type", ["MaxPool<kernel_shape=[2]>", "DepthToSpace<blocksize=1>"])
def test_an_image_has_samples_and_channels(op_type: str) -> None:
    assert why_not(f"(float[4] x) => (float[4] y) {{ y = {op_type}(x) }}") == "its rank is 1"


@pytest.mark.parametrize(
    ("group", "inputs", "opaque"),
    [
        (1, ((0, 4, 12, 13), (4, 1, 5, 6), (1,)), (2, 3, 12, 13)),
        (2, ((0, 4, 12, 13), (4, 7, 5, 6), (1,)), (1, 2, 3, 7, 12, 13)),
    ],
)  # fmt: skip
def test_a_transposed_convolution_has_other_spatial_axes_before_it(
    group: int, inputs: tuple[Axes, ...], opaque: Labels
) -> None:
    text = f"""(float[2,4,5,5] x, float[4,3,2,2] w, float[{3 * group}] b) => (y)
        {{ y = ConvTranspose<group={group}>(x, w, b) }}"""
    kinds = {**dict.fromkeys((4, 5, 6), SUM), **dict.fromkeys(opaque, OPAQUE)}
    assert map_of(text) == AxisMap(inputs, ((0, 1, 2, 3),), kinds)


def test_a_signal_of_one_axis_is_convolved_too() -> None:
    text = "(float[2,4,5] x, float[4,3,2] w) => (y) { y = ConvTranspose(x, w) }"
    assert map_of(text).inputs == ((0, 3, 9), (3, 1, 4))


@pytest.mark.parametrize("op_type", ["DepthToSpace", "SpaceToDepth"])
def test_blocks_move_between_channels_and_the_image(op_type: str) -> None:
    axes = map_of(f"(float[2,4,2,2] x) => (y) {{ y = {op_type}<blocksize=2>(x) }}")
    kinds = dict.fromkeys((1, 2, 3, 4, 5, 6), OPAQUE)
    assert axes == AxisMap(((0, 1, 2, 3),), ((0, 4, 5, 6),), kinds)


def test_an_image_is_sampled_where_the_grid_says() -> None:
    axes = map_of("(float[2,3,4,4] x, float[2,5,6,2] g) => (y) { y = GridSample(x, g) }")
    kinds = {4: OPAQUE, 5: OPAQUE, 12: SUM}
    assert axes == AxisMap(((0, 1, 4, 5), (0, 2, 3, 12)), ((0, 1, 2, 3),), kinds)
    axes = map_of("(float[2,3,4] x, float[2,5,1] g) => (float[2,3,5] y) { y = GridSample(x, g) }")
    assert axes.inputs == ((0, 1, 3), (0, 2, 9))


@pytest.mark.parametrize(("image", "grid"), [("[2,3,4]", "[2,5,6,2]"), ("[2,3]", "[2,0]")])
def test_a_grid_has_the_rank_of_its_image(image: str, grid: str) -> None:
    text = f"(float{image} x, float{grid} g) => (float[2,3,5] y) {{ y = GridSample(x, g) }}"
    assert why_not(text) == "its operands are not of the ranks of an image and a grid"


def test_samples_alone_are_parallel_where_offsets_deform_a_kernel() -> None:
    axes = map_of(
        "(float[2,2,3,3] x, float[3,2,2,2] w, float[2,8,2,2] o, float[3] b, float[2,4,2,2] m)"
        "=> (y) { y = DeformConv<kernel_shape=[2,2]>(x, w, o, b, m) }",
        22,
    )
    inputs = ((0, 1, 2, 3), (4, 5, 6, 7), (0, 8, 9, 10), (11,), (0, 12, 13, 14))
    assert axes == AxisMap(inputs, ((0, 15, 16, 17),), dict.fromkeys(range(1, 18), OPAQUE))


def test_absent_operands_of_a_deformed_convolution_have_no_axes() -> None:
    axes = map_of(
        "(float[2,2,3,3] x, float[3,2,2,2] w, float[2,8,2,2] o, float[2,4,2,2] m) => (y)"
        "{ y = DeformConv<kernel_shape=[2,2]>(x, w, o, , m) }",
        22,
    )
    assert axes.inputs[3:] == (None, (0, 11, 12, 13))
    assert axes.outputs == ((0, 14, 15, 16),)


@pytest.mark.parametrize(
    ("line", "opset", "scaled"),
    [
        ("Resize(x, , s)", 21, (2,)),
        ("Resize(x, , t)", 21, (0, 1, 2)),
        ("Resize(x, , , n)", 21, (0, 1, 2)),
        ("Resize<axes=[-1,0]>(x, , two)", 21, (2,)),
        ("Resize<axes=[-1]>(x, , , one)", 21, (2,)),
        ('Resize<coordinate_transformation_mode="tf_crop_and_resize">(x, r, s)', 21, (0, 1, 2)),
        ("Resize<axes=[1], coordinate_transformation_mode=\"tf_crop_and_resize\">(x, r, u)", 21,
         (1,)),
        ("Upsample(x, s)", 9, (2,)),
        ("Upsample(x, t)", 9, (0, 1, 2)),
    ],
)  # fmt: skip
def test_an_axis_of_scale_1_is_kept(line: str, opset: int, scaled: Labels) -> None:
    text = f"""(float[2,3,4] x, float[3] t, float[6] r) => (float[A,B,C] y)
        <float[3] s = {{1,1,2}}, float[2] two = {{2,1}}, float[1] u = {{1}},
         int64[3] n = {{2,3,8}}, int64[1] one = {{8}}> {{ y = {line} }}"""
    axes = map_of(text, opset)
    assert (axes.inputs[0], axes.outputs) == ((0, 1, 2), ((0, 1, 2),))
    assert dict(axes.kinds) == dict.fromkeys(scaled, OPAQUE)


def test_scales_of_other_axes_are_for_all() -> None:
    text = "(float[2,3] x) => (float[A,B] y) <float[1] s = {1}> { y = Resize(x, , s) }"
    assert dict(map_of(text).kinds) == {0: OPAQUE, 1: OPAQUE}


def test_the_iterators_of_the_operands_and_results() -> None:
    for text, opset, expected in (
        ("(float[2,3,9,8] x, float[4,3,3,2] w) => (y) { y = Conv(x, w) }", 21,
         "0 4 2 3, 1 4 5 6 -> 0 1 2 3 | reduction 4 5 6 7 | window 2: 1 0 3 | window 3: 1 0 2"),
        ("(float[2,3,9,8] x, float[6,1,3,2] w, float[6] b) => (y) { y = Conv<group=3>(x, w, b) }",
         21, "0 4 2 3, 1 7 5 6, 1 -> 0 1 2 3 | reduction 5 6 7 | opaque 1 4 | "
         "window 2: 1 0 3 | window 3: 1 0 2"),
        ("(float[2,3,9,8] x, float[4,3,3,2] w) => (y) { y = Conv<strides=[2,3], pads=[1,2,3,4], "
         "dilations=[2,1]>(x, w) }", 21, "0 4 2 3, 1 4 5 6 -> 0 1 2 3 | reduction 4 5 6 7 | "
         "window 2: 2 1 5 | window 3: 3 2 2"),
        ("(uint8[2,3,5] x, uint8[4,3,3] w, uint8 p, uint8[4] q) => (y) { y = ConvInteger(x, w, "
         "p, q) }", 21, "0 3 2, 1 3 4, -, 1 -> 0 1 2 | reduction 3 4 5 | window 2: 1 0 3"),
        ("(uint8[2,3,5] x, float s, uint8 p, uint8[4,3,3] w, float[4] v, uint8[4] q, int32[4] "
         "b) => (y) { y = QLinearConv(x, s, p, w, v, q, s, p, b) }", 21,
          "0 3 2, -, -, 1 3 4, 1, 1, -, -, 1 -> 0 1 2 | reduction 3 4 5 | window 2: 1 0 3"),
        ("(uint8[2,3,5] x, float s, uint8 p, uint8[4,3,3] w, float[1] v, uint8 q) => (y) { y = "
         "QLinearConv(x, s, p, w, v, q, s, p) }", 21,
          "0 3 2, -, -, 1 3 4, -, -, -, - -> 0 1 2 | reduction 3 4 5 | window 2: 1 0 3"),
        ("(float[2,3,9,8] x) => (y) { y = MaxPool<kernel_shape=[2,3], strides=[2,1]>(x) }", 21,
         "0 1 2 3 -> 0 1 2 3 | window 2: 2 0 2 | window 3: 1 0 3"),
        ("(float[2,3,9] x) => (y) { y = MaxPool<kernel_shape=[2], ceil_mode=1>(x) }", 21,
         "0 1 2 -> 0 1 2 | opaque 2"),
        ("(float[2,3,9] x) => (y) { y = AveragePool<kernel_shape=[2], pads=[1,0], "
         "dilations=[2]>(x) }", 21, "0 1 2 -> 0 1 2 | window 2: 1 1 3"),
        ('(float[2,3,9] x) => (y) { y = LpPool<kernel_shape=[2], auto_pad="SAME_UPPER">(x) }', 21,
         "0 1 2 -> 0 1 2 | opaque 2"),
        ("(float[2,3,9] x) => (y) { y = MaxPool<kernel_shape=[2,2]>(x) }", 21,
         "no: its operands are not of the ranks of an image and kernels"),
        ("(float[2,3,5] x, float[3,4,2] w, float[4] b) => (y) { y = ConvTranspose(x, w, b) }", 21,
         "0 3 9, 3 1 4, 1 -> 0 1 2 | reduction 3 4 | opaque 2 9"),
        ("(float[2,3,5,5] x, float[3,1,2,2] w) => (y) { y = ConvTranspose<group=3>(x, w) }", 21,
         "0 4 12 13, 4 7 5 6 -> 0 1 2 3 | reduction 4 5 6 | opaque 1 2 3 7 12 13"),
        ("(float[2,3] x, float[3,4] w) => (y) { y = ConvTranspose(x, w) }", 21,
         "no: its operands are not of the ranks of an image and kernels"),
        ("(float[2,4,3,3] x) => (y) { y = DepthToSpace<blocksize=2>(x) }", 21,
         "0 1 2 3 -> 0 4 5 6 | opaque 1 2 3 4 5 6"),
        ("(float[2,4,3,3] x) => (y) { y = SpaceToDepth<blocksize=1>(x) }", 21,
         "0 1 2 3 -> 0 4 5 6 | opaque 1 2 3 4 5 6"),
        ("(float[2,3,4,5] x, float[2,6,7,2] g) => (y) { y = GridSample(x, g) }", 21,
         "0 1 4 5, 0 2 3 12 -> 0 1 2 3 | reduction 12 | opaque 4 5"),
        ("(float[2,3,4] x, float[2,6,1] g) => (y) { y = GridSample(x, g) }", 21,
         "0 1 3, 0 2 9 -> 0 1 2 | reduction 9 | opaque 3"),
        ("(float[2,3,4,5] x, float[2,6,2] g) => (y) { y = GridSample(x, g) }", 21,
         "no: its operands are not of the ranks of an image and a grid"),
        ("(float[2,3] x, float[2,3] g) => (y) { y = GridSample(x, g) }", 21,
         "no: its operands are not of the ranks of an image and a grid"),
        ("(float[1,2,3,4] x, float[2,2,2,2] w, float[1,8,2,3] o) => (y) { y = "
         "DeformConv<kernel_shape=[2,2]>(x, w, o) }", 21,
          "0 1 2 3, 4 5 6 7, 0 8 9 10 -> 0 11 12 13 | opaque 1 2 3 4 5 6 7 8 9 10 11 12 13"),
        ("(float[1,2,3,4] x, float[2,2,2,2] w, float[1,8,2,3] o, float[2] b, float[1,4,2,3] m) "
         "=> (y) { y = DeformConv<kernel_shape=[2,2]>(x, w, o, b, m) }", 21,
          "0 1 2 3, 4 5 6 7, 0 8 9 10, 11, 0 12 13 14 -> 0 15 16 17 | opaque 1 2 3 4 5 6 7 8 9 "
          "10 11 12 13 14 15 16 17"),
        ("(float[2,3,4] x) => (y) <float[3] s = {1,2,1}> { y = Resize(x, , s) }", 21,
         "0 1 2, -, - -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x) => (y) <float[1] s = {2}> { y = Resize<axes=[2]>(x, , s) }", 21,
         "0 1 2, -, - -> 0 1 2 | opaque 2"),
        ("(float[2,3,4] x) => (y) <float[2] s = {1,2}> { y = Resize<axes=[-1,0]>(x, , s) }", 21,
         "0 1 2, -, - -> 0 1 2 | opaque 0"),
        ("(float[2,3,4] x) => (y) <int64[3] s = {2,3,8}> { y = Resize(x, , , s) }", 21,
         "0 1 2, -, -, - -> 0 1 2 | opaque 0 1 2"),
        ('(float[2,3,4] x) => (y) <float[6] r={0,0,0,1,1,1}, float[3] s={1,1,2}> { y = '
         'Resize<coordinate_transformation_mode="tf_crop_and_resize">(x, r, s) }', 21,
          "0 1 2, -, - -> 0 1 2 | opaque 0 1 2"),
        ("(float[2,3,4] x) => (y) <float[3] s={1,1,2}> { y = Upsample(x, s) }", 9,
         "0 1 2, - -> 0 1 2 | opaque 2"),
    ):  # fmt: skip
        assert written(text, opset) == expected, text
