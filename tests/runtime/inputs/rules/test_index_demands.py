"""Inputs that are indices or lengths have the bounds of what they count."""

import pytest

from tests.runtime.inputs.facts_of import facts_of, only

OUT = "=> (float y)"


@pytest.mark.parametrize(
    ("inputs", "call", "high"),
    [
        ("float[4,3] x", "Gather(x, i)", 4),
        ("float[4,3] x", "Gather<axis = 1>(x, i)", 3),
        ("float[4,3] x", "GatherElements<axis = -1>(x, i)", 3),
        ("float[N,3] x", "Gather(x, i)", None),
        ("float[4,3] x", "GatherND(x, i)", 3),
        ("float[4,3,9] x", "GatherND<batch_dims = 1>(x, i)", 3),
        ("float[4,N] x", "GatherND(x, i)", None),
        ("float[4,3] x, float[2] u", "ScatterND(x, i, u)", 3),
        ("float[4,3] x, float[2,2] u", "ScatterElements<axis = 1>(x, i, u)", 3),
        ("float[2,5] x", "NegativeLogLikelihoodLoss(x, i)", 5),
        ("float[1,1,2,2] x, int64[5] s", "MaxUnpool<kernel_shape = [2,2]>(x, i, s)", 4),
        ("float[] x, int64[5] s", "MaxUnpool<kernel_shape = [2,2]>(x, i, s)", None),
        ("float[] x", "GatherND(x, i)", None),
        ("float[4,3] x", "ai.onnx.ml.ArrayFeatureExtractor(x, i)", 3),
    ],
)
def test_an_index_is_below_the_size_of_its_axis(inputs: str, call: str, high: int | None) -> None:
    dims = "2,2" if "ND" in call or "Elements" in call else "2"
    found = only(f"({inputs}, int64[{dims}] i) {OUT} {{ y = {call} }}")
    assert (found.kind, found.low, found.high) == ("index", 0, high)
    assert call.partition("(")[0].partition("<")[0].rpartition(".")[2] in found.why


@pytest.mark.parametrize(
    ("call", "dims"),
    [
        *(("ScatterND(x, i, u)", (4, 3)), ("GatherND(x, i)", (4, 3)), ("Gather(x, i)", ())),
        *(("ScatterElements<axis = 1>(x, i, u)", (1,)), ("ScatterElements(n, i, u)", ())),
    ],
)
def test_tuples_address_several_axes(call: str, dims: tuple[int, ...]) -> None:
    inputs = "float[4,3] x, float[N,3] n, float[2] u, int64[2,2] i"
    found = only(f"({inputs}) {OUT} {{ y = {call} }}")
    assert found.dims == dims


@pytest.mark.parametrize(
    "call",
    [
        *("GatherND(i, e)", "RotaryEmbedding(i, e, e, e)", "MaxUnpool<kernel_shape = [2]>(i, e)"),
        *("ai.onnx.ml.ArrayFeatureExtractor(i, e)", "OneHot(e, e, i)", "Attention(i, e, e)"),
    ],
)
def test_data_is_no_index(call: str) -> None:
    assert facts_of(f"(float[1] i) {OUT} <int64[1] e = {{1}}> {{ y = {call} }}", opset=23) == []


def test_an_unknown_number_of_addressed_axes_has_no_bound() -> None:
    found = only(f"(float[4,3] x, int64[2,K] i) {OUT} {{ y = GatherND(x, i) }}")
    assert (found.high, found.dims) == (None, ())


@pytest.mark.parametrize(
    ("nodes", "low", "high"),
    [
        ("c = Add(i, one)  y = Gather(x, c)", -1, 9),
        ("c = Sub(i, one)  y = Gather(x, c)", 1, 11),
        ("c = Sub(one, i)  y = Gather(x, c)", -8, 2),
        ("c = Mul(i, three)  y = Gather(x, c)", 0, 4),
        ("m = Mul(i, three)  c = Add(m, one)  y = Gather(x, c)", 0, 3),
        ("n = Neg(i)  y = Gather(x, n)", -9, 1),
        ("c = Mul(i, none)  y = Gather(x, c)", 0, None),
    ],
)
def test_bounds_go_back_through_arithmetic(nodes: str, low: int, high: int | None) -> None:
    found = facts_of(
        f"""(float[10,3] x, int64[2] i) {OUT} <int64 one = {{1}}, int64 three = {{3}},
        int64 none = {{0}}> {{ {nodes} }}"""
    )
    index = next(each for each in found if each.kind == "index")
    assert (index.low, index.high) == (low, high)


def test_of_an_index_that_an_unknown_number_moves_the_first_two_are_taken() -> None:
    found = facts_of(
        f"(float[10,3] x, int64[2] i, int64 k) {OUT} {{ c = Add(i, k)  y = Gather(x, c) }}"
    )
    index = next(each for each in found if each.kind == "index")
    assert (index.low, index.high) == (0, 2)
    found = facts_of(
        f"(float[N,3] x, int64[2] i, int64 k) {OUT} {{ c = Add(i, k)  y = Gather(x, c) }}"
    )
    assert ("index", None) in [(each.kind, each.high) for each in found]


def test_a_count_that_is_an_index_is_a_mask() -> None:
    text = f"""(float[10,3] x, int64[2] i) {OUT} <int64 axis = {{0}}> {{
        c = CumSum(i, axis)  y = Gather(x, c) }}"""
    assert [each.kind for each in facts_of(text)] == ["mask"]


@pytest.mark.parametrize(
    ("depth", "high"), [("int64 d = {7}", 7), ("int64[1] d = {7}", 7), ("", None)]
)
def test_a_one_hot_index_is_below_the_depth(depth: str, high: int | None) -> None:
    inputs = "int64[2] i" if depth else "int64[2] i, int64 d"
    held = f"<float[2] v = {{0,1}}{', ' if depth else ''}{depth}>"
    found = only(f"({inputs}) {OUT} {held} {{ y = OneHot(i, d, v) }}")
    assert (found.kind, found.high) == ("index", high)


def test_the_depth_of_one_hot_is_a_value() -> None:
    found = only(f"(int64[2] x, int64 i) {OUT} <float[2] v = {{0,1}}> {{ y = OneHot(x, i, v) }}")
    assert (found.kind, found.values) == ("values", (5,))


@pytest.mark.parametrize(
    ("call", "high"),
    [
        ("ReverseSequence(x, i)", 5),
        ("ReverseSequence<time_axis = 1, batch_axis = 0>(x, i)", 3),
        ("GRU<hidden_size = 1>(x, w, r, , i)", 5),
        ("GRU<hidden_size = 1, layout = 1>(x, w, r, , i)", 3),
        ("ReverseSequence(n, i)", 2),
        ("Attention(x, x, x, , , , i)", 3),
        ("Attention(x, n, x, , , , i)", 2),
    ],
)
def test_a_length_is_at_least_1_and_the_axis_of_time_at_most(call: str, high: int) -> None:
    found = only(
        f"""(float[4,2,2] x, float[1,3,2] w, float[1,3,1] r, float[] n, int32[2] i) {OUT}
        {{ y = {call} }}""",
        opset=24,
    )
    assert (found.kind, found.low, found.high) == ("length", 1, high)


def test_regions_have_corners_within_the_image() -> None:
    text = f"""(float[3,1,8,6] x, float[2,4] c, int64[2] i) {OUT}
        {{ y = RoiAlign<spatial_scale = 0.5>(x, c, i) }}"""
    assert (only(text).kind, only(text).high) == ("index", 3)
    corners = only(text, "c")
    assert (corners.kind, corners.high) == ("corners", 12)
    moved = text.replace("{ y = RoiAlign<spatial_scale = 0.5>(x, c, i)",
                         "{ n = Neg(c)  y = RoiAlign(x, n, i)")  # fmt: skip
    assert facts_of(moved, "c") == []
    added = moved.replace("n = Neg(c)", "n = Add(c, k)").replace(
        "int64[2] i)", "int64[2] i, float k)"
    )
    assert [each.kind for each in facts_of(added, "c")] == ["addend"]


def test_positions_are_rows_of_the_caches() -> None:
    standard = f"""(float[1,2,3,4] x, float[5,2] c, float[5,2] s, int64[1,3] i) {OUT}
        {{ y = RotaryEmbedding(x, c, s, i) }}"""
    assert only(standard, opset=23).high == 5
    assert only(standard.replace("int64[1,3] i", "int64[] i"), opset=23).high == 5
    own = f"""(float[1,2,3,4] x, int64[1,3] i, float[6,2] c, float[6,2] s) {OUT}
        {{ y = com.microsoft.RotaryEmbedding(x, i, c, s) }}"""
    assert only(own).high == 6
    assert facts_of(own.replace("int64[1,3] i", "int64[1] i")) == []


def test_ids_of_an_embedding_are_rows_of_their_tables() -> None:
    text = f"""(int32[1,2] a, int32[1,2] b, float[5,4] w, float[6,4] p, float[7,4] t, float[4] g,
        float[4] h, int32[1,2] m, int32[1,2] o) {OUT}
        {{ y = com.microsoft.EmbedLayerNormalization(a, b, w, p, t, g, h, m, o) }}"""
    assert [only(text, name).high for name in "abo"] == [5, 7, 6]
    assert only(text, "m").kind == "mask"


def test_lengths_of_grouped_queries_are_whole() -> None:
    text = f"""(float[1,2,8] q, float[1,2,8] k, float[1,2,8] v, float[1,2,3,4] p, float[1,2,3,4] r,
        int32[1] a, int32 b) {OUT} {{ y = com.microsoft.GroupQueryAttention
        <num_heads = 2, kv_num_heads = 2>(q, k, v, p, r, a, b) }}"""
    assert (only(text, "a").values, only(text, "b").values) == ((4,), (5,))
    first = text.replace("v, p, r, a", "v, , , a")
    assert (only(first, "a").values, only(first, "b").values) == ((1,), (2,))
    free = text.replace("float[1,2,8] q", "float[1,N,8] q")
    assert (only(free, "a").values, only(free, "b").values) == ((3,), (4,))


def test_the_result_of_an_unpool_is_twice_as_large() -> None:
    text = f"""(float[3,1,2,4] x, int64[4] i) {OUT} <int64[1] e = {{0}}>
        {{ y = MaxUnpool<kernel_shape = [2,2]>(x, e, i) }}"""
    assert only(text).values == (3, 1, 4, 8)
    assert only(text.replace("float[3,1,2,4] x", "float[] x")).values == (2,)
    assert only(text.replace("float[3,1,2,4] x", "float[3] x")).values == (3,)


def test_a_mask_of_an_attention_is_one() -> None:
    text = f"(float[1,2,2] x, bool[2,2] i) {OUT} {{ y = Attention(x, x, x, i) }}"
    assert only(text, opset=23).kind == "mask"
