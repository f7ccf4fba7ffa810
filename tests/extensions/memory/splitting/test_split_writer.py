"""Regions in parts: each operator along each axis, and what their kernels share."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.extensions.memory.graphs import ATTENTION
from tests.written import Writer
from tiered import Model
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory import memory_plan, split_model
from tiered.extensions.memory.splitting.split_region import region_around
from tiered.extensions.memory.splitting.split_writer import shortest_axis, write_parts
from tiered.rewriter import Skip
from tiered.runtime import Session, make_inputs
from tiered.testing import parse

SIZES = LayoutSizes()


def in_parts(text: str, tensor: str, axis: int, parts: int) -> Model | Skip:
    """Return a model with the region around a tensor in parts; hold it against the model."""
    source = parse(text)
    model = Model.from_proto(source)
    region = region_around(model.main.values[tensor], axis, SIZES)
    if isinstance(region, Skip):
        return region
    reason = write_parts(model.main, region, min(parts, shortest_axis(region)))
    if reason is not None:
        return reason
    model.check_view()
    feeds = make_inputs(source).feeds
    before, after = (Session(each).run(feeds) for each in (source, model.to_proto()))
    for name, wanted in before.items():
        np.testing.assert_allclose(after[name], wanted, rtol=1e-5, atol=1e-5)
    return model


@pytest.mark.parametrize(
    ("shape", "line", "made", "axes"),
    [
        ("4,6", "a = Add(t, row)", "4,6", (0, 1)),
        ("4,6", "a = Add(t, t)", "4,6", (0, 1)),
        ("4,6", "a = Clip(t, low)", "4,6", (0, 1)),
        ("4,6", "a = MatMul(t, w)", "4,5", (0,)),
        ("2,4,6", "a = MatMul(t, w)", "2,4,5", (0, 1)),
        ("5,4", "a = MatMul(w, t)", "6,4", (1,)),
        ("4,6", "a = Gemm(t, w, b)", "4,5", (0,)),
        ("6,4", "a = Gemm<transA=1>(t, w, b)", "4,5", (1,)),
        ("4,6", "a = Softmax<axis=1>(t)", "4,6", (0,)),
        ("4,6", "a = Softmax<axis=0>(t)", "4,6", (1,)),
        ("4,6", "a = LayerNormalization<axis=-1>(t, row)", "4,6", (0,)),
        ("4,6", "a = Transpose(t)", "6,4", (0, 1)),
        ("2,4,6", "a = Transpose<perm=[2,0,1]>(t)", "6,2,4", (0, 1, 2)),
        ("4,6", "a = Reshape(t, threes)", "4,2,3", (0,)),
        ("2,2,6", "a = Flatten<axis=2>(t)", "4,6", (2,)),
        ("4,1,6", "a = Squeeze(t, one)", "4,6", (0, 2)),
        ("4,6", "a = Unsqueeze(t, one)", "4,1,6", (0, 1)),
        ("4,6", "a = Expand(t, wide)", "2,4,6", (0, 1)),
        ("4,6", "a = Concat<axis=1>(t, t)", "4,12", (0,)),
        ("4,6", "a = Slice(t, one, three, one)", "4,2", (0,)),
        ("4,6", "a = Pad(t, pads)", "4,8", (0,)),
        ("4,6", "a = Gather<axis=1>(t, some)", "4,2,3", (0,)),
        ("4,6", "a = ReduceMean(t, one)", "4,1", (0,)),
        ("4,6", "a = ReduceMax<keepdims=0>(t, one)", "4", (0,)),
        ("2,4,7,6", "a = Conv(t, k)", "2,3,5,4", (0, 2, 3)),
        ("2,4,7,6", "a = MaxPool<kernel_shape=[2,2], strides=[1,2]>(t)", "2,4,6,3", (0, 1, 2, 3)),
        (
            "2,4,7,6", "a = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(t)", "2,4,7,6",
            (0, 1, 2, 3),
        ),
        ("2,4,7,6", "a = GlobalAveragePool(t)", "2,4,1,1", (0, 1)),
        ("2,4,7,6", "a = BatchNormalization(t, four, four, four, four)", "2,4,7,6", (0, 1, 2, 3)),
    ],
)  # fmt: skip
def test_a_cut_passes_through(shape: str, line: str, made: str, axes: tuple[int, ...]) -> None:
    """`t` is cut along each of the axes, and along no other one."""
    text = f"""(float[{shape}] x) => (float[{made}] y) <float[6] row = {{1,2,3,4,5,6}},
        float low = {{0.1}}, float[5] b = {{1,2,3,4,5}}, float[4] four = {{1,2,3,4}},
        int64[1] one = {{1}}, int64[1] three = {{3}}, int64[3] threes = {{-1,2,3}},
        int64[3] wide = {{2,4,6}}, int64[4] pads = {{0,1,0,1}},
        int64[2,3] some = {{0,5,1,2,2,4}}, int64[2] of_w = {{6,5}}, int64[4] of_k = {{3,4,3,3}}> {{
        w = ConstantOfShape<value = float[1] {{0.5}}>(of_w)
        k = ConstantOfShape<value = float[1] {{0.25}}>(of_k)
        t = Tanh(x) {line} y = Sin(a) }}"""
    found = []
    for axis in range(len(shape.split(","))):
        model = in_parts(text, "t", axis, 3)
        if not isinstance(model, Skip):
            found.append(axis)
            assert len(model.main.nodes_of("Tanh")) > 1
    assert tuple(found) == axes


@pytest.mark.parametrize(
    ("shape", "line", "made", "axis"),
    [
        ("2,4,7,6", "a = Conv(x, k, three)", "2,3,5,4", 1),
        ("4,6", "a = MatMul(x, w)", "4,5", 1),
        ("4,6", "a = Gemm(x, w, b)", "4,5", 1),
        ("4,6", "a = Gather(x, some)", "2,3,6", 0),
        ("4,6", "q = QuantizeLinear(x, six, zero) a = DequantizeLinear(q, six, zero)", "4,6", 1),
    ],
)  # fmt: skip
def test_weights_and_indices_are_cut_too(shape: str, line: str, made: str, axis: int) -> None:
    text = f"""(float[{shape}] x) => (float[{made}] y) <float[3] three = {{1,2,3}},
        float[6] six = {{1,2,3,4,5,6}}, float[5] b = {{1,2,3,4,5}},
        int64[2,3] some = {{0,3,1,2,2,1}}, int64[2] of_w = {{6,5}},
        int64[4] of_k = {{3,4,3,3}}, uint8[6] zero = {{0,1,2,3,4,5}}> {{
        w = ConstantOfShape<value = float[1] {{0.5}}>(of_w)
        k = ConstantOfShape<value = float[1] {{0.25}}>(of_k)
        {line} y = Sin(a) }}"""
    made_in_parts = in_parts(text, "a", axis, 3)
    assert isinstance(made_in_parts, Model)
    assert len(made_in_parts.main.nodes_of("Sin")) > 1


LAYERS = st.tuples(
    st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(0, 1), st.integers(0, 1)
)
"""Kernel, stride, dilation, pads before and after of a convolution over rows."""


@given(st.integers(9, 16), st.lists(LAYERS, min_size=1, max_size=3), st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_rows_of_images_have_what_their_kernels_share(
    height: int, layers: list[tuple[int, int, int, int, int]], parts: int
) -> None:
    constants, lines, last, rows = [], [], "x", height
    for at, (kernel, stride, dilation, before, after) in enumerate(layers):
        constants.append(f"k{at} = ConstantOfShape<value = float[1] {{0.3}}>(s{at})")
        constants.insert(0, f"s{at} = Constant<value_ints=[2,2,{kernel},1]>()")
        lines.append(
            f"c{at} = Conv<strides=[{stride},1], dilations=[{dilation},1], "
            f"pads=[{before},0,{after},0]>({last}, k{at}) r{at} = Tanh(c{at})"
        )
        last, reach = f"r{at}", (kernel - 1) * dilation + 1
        if rows + before + after < reach:
            return
        rows = (rows + before + after - reach) // stride + 1
    text = (
        f"(float[1,2,{height},3] x) => (float[1,2,{rows},3] y) "
        f"{{ {' '.join(constants)} {' '.join(lines)} y = Sin({last}) }}"
    )
    if rows > 1:
        made = in_parts(text, "c0", 2, parts)
        assert isinstance(made, Model) or str(made) == "a part would be empty"


def test_attention_is_computed_by_blocks_of_queries() -> None:
    model = Model.from_proto(parse(ATTENTION))
    before = memory_plan(model).peak
    done = split_model(model, before - 2048)
    # The scores of four blocks of two queries instead of all.
    assert done.peak == memory_plan(model).peak <= before - 2048
    assert done.regions == 1
    kinds = [node.op_type for node in model.main.topological_order()]
    assert kinds[:4] == ["Slice", "MatMul", "Softmax", "MatMul"]
    assert kinds[-1] == "Concat"
    assert isinstance(in_parts(ATTENTION, "s", 0, 4), Model)


@pytest.mark.parametrize(
    "line",
    [
        "a = ReduceMean<axes=[1]>(t)",
        "a = Clip<min=0.1, max=0.5>(t)",
        "a = Slice<axes=[1], starts=[1], ends=[3]>(t)",
        "c = Unsqueeze<axes=[1]>(t) a = Squeeze<axes=[1]>(c)",
    ],
)
def test_operands_that_are_attributes_of_an_old_opset_stay_attributes(line: str) -> None:
    header = '<ir_version: 6, opset_import: ["" : 9]> g '
    text = f"{header}(float[6,4] x) => (float[6,M] y) {{ t = Tanh(x) {line} y = Sin(a) }}"
    assert isinstance(in_parts(text, "t", 0, 3), Model)


def test_what_the_parts_are() -> None:
    image = """(float[1,1,4,2] x) => (float[1,1,4,2] y) <float[1,1,3,1] k = {1,2,3},
        float[1,1,5,1] l = {1,2,3,4,5}, float hi = {1}> { """
    for text, axis, expected in (
        (image + "a = Tanh(x) c = Conv<pads=[1,0,1,0]>(a, k) y = Add(a, c) }", 2,
         "Concat<axis=2>(Add(Slice(#0=Tanh(Slice(x, [0], [3], [2])), [0], [2], [2]), "
         "Conv<pads=(1,0,0,0)>(#0, k)), Add(Slice(#1=Tanh(Slice(x, [1], [4], [2])), [1],"
         " [3], [2]), Conv<pads=(0,0,1,0)>(#1, k)))"),
        (image + "a = Tanh(x) y = Conv<pads=[2,0,2,0]>(a, l) }", 2,
         "Concat<axis=2>(Conv<pads=(2,0,0,0)>(Tanh(x), l), Conv<pads=(0,0,2,0)>(Tanh(x),"
         " l))"),
        (image + 'a = Tanh(x) y = Clip(a, "", hi) }', 3,
         "Concat<axis=3>(Clip(Tanh(Slice(x, [0], [1], [3])), -, 1.0), Clip(Tanh(Slice(x,"
         " [1], [2], [3])), -, 1.0))"),
    ):  # fmt: skip
        model = in_parts(text, "a", axis, 2)
        assert isinstance(model, Model)
        made = Writer()(model.main.outputs[0])
        for name in "kl":
            made = made.replace(Writer()(model.main.values[name]), name)
        assert made == expected, text


def test_a_part_that_reads_padding_alone_is_refused() -> None:
    text = """(float[1,1,4,2] x) => (float[1,1,5,2] y) <float[1,1,3,1] k = {1,2,3}> {
        a = Tanh(x)  y = Conv<pads=[3,0,0,0]>(a, k) }"""
    assert str(in_parts(text, "a", 2, 5)) == "a part would be empty"
    assert isinstance(in_parts(text, "a", 2, 2), Model)
