"""Operators one by one, with the samples in each of their operands that may carry them."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself
from tiered.testing import parse


def numbers(count: int) -> str:
    return "{" + ",".join(str(at % 5 - 2) for at in range(count)) + "}"


CASES = {
    "Attention, shared keys": (
        f"""(float[1,2,3,4] x) => (float[1,2,3,4] y) <float[1,2,5,4] k = {numbers(40)}> {{ y = Attention(x, k, k) }}""",
        23,
    ),
    "Attention, mask of samples": (
        """(float[1,2,3,4] x, float[1,1,3,3] m) => (float[1,2,3,4] y) { y = Attention(x, x, x, m) }""",
        23,
    ),
    "RotaryEmbedding": (
        f"""(float[1,2,3,4] x) => (float[1,2,3,4] y) <float[1,3,2] c = {numbers(6)}> {{ y = RotaryEmbedding(x, c, c) }}""",
        23,
    ),
    "GridSample, shared grid": (
        """(float[1,1,2,2] x) => (float[1,1,1,2] y) <float[1,1,2,2] g = {0,0.5,-0.5,1}> { y = GridSample(x, g) }""",
        21,
    ),
    "AffineGrid": (
        """(float[1,2,3] x) => (float[1,2,2,2] y) <int64[4] s = {1,1,2,2}> { y = AffineGrid(x, s) }""",
        21,
    ),
    "GatherElements, shared index": (
        """(float[1,3] x) => (float[1,2] y) <int64[1,2] i = {2,0}> { y = GatherElements<axis = 1>(x, i) }""",
        21,
    ),
    "ScatterElements": (
        """(float[1,3] x) => (float[1,3] y) <int64[1,2] i = {2,0}, float[1,2] u = {7,8}> { y = ScatterElements<axis = 1>(x, i, u) }""",
        21,
    ),
    "ScatterND of another axis": (
        """(float[3,1,2] t) => (float[3,1,2] y) <int64[1,1] i = {2}, float[1,1,2] u = {7,8}> { y = ScatterND(t, i, u) }""",
        21,
    ),
    "GatherND with batch_dims": (
        """(float[1,3,2] x, int64[1,1] i) => (float[1,2] y) { y = GatherND<batch_dims = 1>(x, i) }""",
        21,
    ),
    "OneHot": (
        """(int64[1,2] x) => (float[1,3,2] y) <int64 d = {3}, float[2] v = {0,1}> { y = OneHot<axis = 1>(x, d, v) }""",
        21,
    ),
    "ReverseSequence": (
        """(float[3,1] t) => (float[3,1] y) <int64[1] n = {2}> { y = ReverseSequence(t, n) }""",
        21,
    ),
    "Einsum": (
        f"""(float[1,3] x) => (float[2,1] y) <float[2,3] w = {numbers(6)}> {{ y = Einsum<equation = "bi,oi->ob">(x, w) }}""",
        21,
    ),
    "MatMul with a vector": (
        """(float[1,2,3] x) => (float[1,2] y) <float[3] w = {1,2,3}> { y = MatMul(x, w) }""",
        21,
    ),
    "MatMulInteger": (
        """(uint8[1,3] x) => (int32[1,2] y) <uint8[3,2] w = {1,2,3,4,5,6}> { y = MatMulInteger(x, w) }""",
        21,
    ),
    "ConvTranspose": (
        f"""(float[1,2,3] x) => (float[1,1,4] y) <float[2,1,2] w = {numbers(4)}> {{ y = ConvTranspose(x, w) }}""",
        21,
    ),
    "Tile": ("""(float[1,2] x) => (float[3,4] y) <int64[2] r = {3,2}> { y = Tile(x, r) }""", 21),
    "Compress": (
        """(float[1,3] x) => (float[1,2] y) <bool[3] c = {1,0,1}> { y = Compress<axis = 1>(x, c) }""",
        21,
    ),
    "Trilu and CumSum": (
        """(float[1,2,2] x) => (float[1,2,2] y) <int64 a = {1}> { t = Trilu(x)  y = CumSum(t, a) }""",
        21,
    ),
    "ArgMax and TopK": (
        """(float[1,3] x) => (int64[1] y, float[1,2] v, int64[1,2] i) <int64[1] k = {2}> {
        y = ArgMax<axis = 1, keepdims = 0>(x)  v, i = TopK(x, k) }""",
        21,
    ),
    "Softmax before opset 13": (
        """(float[1,2,3] x) => (float[1,2,3] y) { y = Softmax<axis = 1>(x) }""",
        11,
    ),
    "Squeeze without axes": ("""(float[1,2,1,3] x) => (float[2,3] y) { y = Squeeze(x) }""", 21),
    "Flatten": ("""(float[1,2,3] x) => (float[1,6] y) { y = Flatten(x) }""", 21),
    "Flatten to one row": (
        """(float[1,2,3] x) => (float[1,6] y) { f = Flatten<axis = 0>(x)  y = Softmax<axis = 1>(f) }""",
        21,
    ),
    "Flatten of two to one row": (
        """(float[2,3] x) => (float[1,6] y) { f = Flatten<axis = 0>(x)  y = Relu(f) }""",
        21,
    ),
    "Where with a shared branch": (
        """(float[1,3] x, bool[1,3] c) => (float[1,3] y) <float[1,3] w = {1,2,3}> { y = Where(c, x, w) }""",
        21,
    ),
    "a fill of the batch": (
        """(float[1,3] x) => (float[1,5] y) <int64 zero = {0}, int64[1] two = {2}, int64[1] a = {0}> {
        s = Shape(x)  n = Gather(s, zero)  u = Unsqueeze(n, a)  t = Concat<axis = 0>(u, two)
        f = ConstantOfShape(t)  y = Concat<axis = 1>(f, x) }""",
        21,
    ),
    "BiasGelu, QuickGelu, FastGelu": (
        """(float[1,2,3] x) => (float[1,2,3] y) <float[3] b = {1,2,3}> {
        t = com.microsoft.BiasGelu(x, b)  u = com.microsoft.QuickGelu(t)  v = com.microsoft.FastGelu(u, b)
        y = com.microsoft.Gelu(v) }""",
        17,
    ),
    "a bias along the batch": (
        """(float[1,3] x) => (float[3,1] y) <float[1] b = {1}> {
        t = Transpose(x)  y = com.microsoft.BiasGelu(t, b) }""",
        17,
    ),
    "FusedConv with an addend": (
        f"""(float[1,2,3,3] x) => (float[1,2,3,3] y) <float[2,2,1,1] w = {numbers(4)}, float[2] b = {{1,2}}> {{
        y = com.microsoft.FusedConv<activation = "Relu">(x, w, b, x) }}""",
        17,
    ),
    "FusedGemm": (
        """(float[1,3] x) => (float[1,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] c = {1,2}> {
        y = com.microsoft.FusedGemm<activation = "Relu">(x, w, c) }""",
        17,
    ),
    "FusedMatMul with a weight": (
        """(float[1,2,3] x) => (float[1,2,2] y) <float[2,3] w = {1,2,3,4,5,6}> {
        y = com.microsoft.FusedMatMul<transB = 1, alpha = 0.5>(x, w) }""",
        17,
    ),
    "FusedMatMul of samples": (
        """(float[1,2,3] x, float[1,2,3] z) => (float[1,3,3] y) { y = com.microsoft.FusedMatMul<transA = 1>(x, z) }""",
        17,
    ),
    "FusedMatMul of rows": (
        """(float[1,3] x) => (float[1,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = com.microsoft.FusedMatMul(x, w) }""",
        17,
    ),
    "SkipLayerNormalization": (
        """(float[1,2,4] x) => (float[1,2,4] y) <float[1,2,4] k = {1,2,3,4,5,6,7,8}, float[4] g = {1,2,1,2}> {
        y = com.microsoft.SkipLayerNormalization(x, k, g) }""",
        17,
    ),
    "SkipLayerNormalization of samples": (
        """(float[1,2,4] x, float[1,2,4] k) => (float[1,2,4] y, float[1,2,4] s) <float[4] g = {1,2,1,2}> {
        y, m, v, s = com.microsoft.SkipSimplifiedLayerNormalization(x, k, g) }""",
        17,
    ),
    "Attention of onnxruntime": (
        f"""(float[1,3,4] x, int32[1,3] m) => (float[1,3,4] y) <float[4,12] w = {numbers(48)}, float[12] b = {numbers(12)}> {{
        y = com.microsoft.Attention<num_heads = 2>(x, w, b, m) }}""",
        17,
    ),
    "MultiHeadAttention": (
        f"""(float[1,3,4] x) => (float[1,3,4] y) <float[1,2,4] k = {numbers(8)}> {{
        y = com.microsoft.MultiHeadAttention<num_heads = 2>(x, k, k) }}""",
        17,
    ),
    "MeanVarianceNormalization": (
        """(float[1,2,3] x) => (float[1,2,3] y) { y = MeanVarianceNormalization<axes = [2]>(x) }""",
        21,
    ),
}

EMBEDDED = f"""<float[9,4] t = {numbers(36)}, float[5,4] p = {numbers(20)}, float[3,4] k = {numbers(12)},
    float[4] g = {{1,2,1,2}}, float[4] b = {{0,1,0,1}}, float[4,12] w = {numbers(48)}, float[12] a = {numbers(12)},
    int32[1,3] l = {{2,0,1}}>"""

CASES |= {
    "EmbedLayerNormalization": (
        f"""(int32[1,3] i, int32[1,3] s, int32[1,3] f) => (float[1,3,4] y, int32[1] m) {EMBEDDED} {{
        y, m = com.microsoft.EmbedLayerNormalization(i, s, t, p, k, g, b, f) }}""",
        17,
    ),
    "EmbedLayerNormalization with positions": (
        f"""(int32[1,3] i, int32[1,3] s) => (float[1,3,4] y) {EMBEDDED} {{
        y, m = com.microsoft.EmbedLayerNormalization(i, s, t, p, k, g, b, , l) }}""",
        17,
    ),
    "EmbedLayerNormalization before Attention": (
        f"""(int32[1,3] i, int32[1,3] s, int32[1,3] f) => (float[1,3,4] y) {EMBEDDED} {{
        e, m = com.microsoft.EmbedLayerNormalization(i, s, t, p, k, g, b, f)
        y = com.microsoft.Attention<num_heads = 2>(e, w, a, m) }}""",
        17,
    ),
    "an addend of each sample, of a Gemm": (
        f"""(float[1,2] x) => (float[1,2] y) <float[1,3] a = {{1,2,3}}, float[3,2] w = {numbers(6)}> {{ y = Gemm(a, w, x) }}""",
        21,
    ),
    "a slope of each sample": (
        """(float[1,2,3] x) => (float[1,2,3] y) <float[1,2,3] a = {-1,2,-3,-4,5,-6}> { y = PRelu(a, x) }""",
        21,
    ),
    "the scale of a norm of each sample": (
        """(float[1,2,4] x) => (float[1,2,4] y) <float[1,2,4] a = {1,2,3,4,5,6,7,9}> { y = LayerNormalization(a, x) }""",
        21,
    ),
    "a Sum before it broadcasts": (
        """(float[1,3] x) => (float[1,3] y) { t = Tanh(x)  y = Sum(x, t) }""",
        7,
    ),
    "a scale for each sample": (
        """(uint8[2,3] x) => (float[2,3] y) <float[2] s = {0.5,0.5}> { y = DequantizeLinear<axis = 0>(x, s) }""",
        21,
    ),
    "the scale of a norm, for each sample": (
        """(float[2,3,4] x) => (float[2,3,4] y) <float[2,1,4] s = {1,2,3,4,1,2,3,4}> { y = LayerNormalization(x, s) }""",
        21,
    ),
    "a zero point for each column": (
        """(uint8[2,3] x) => (int32[2,2] y) <uint8[3,2] w = {1,2,3,4,5,6}, uint8 z = {3}, uint8[2] q = {1,2}> {
        y = MatMulInteger(x, w, z, q) }""",
        21,
    ),
    "kernels of each sample": (
        """(float[3,2,4] x) => (float[1,3,3] y) <float[1,2,6] i = {1,2,3,4,5,6,1,2,3,4,5,6}> { y = Conv(i, x) }""",
        21,
    ),
    "the mean of a norm": (
        """(float[1,2,4] x) => (float[1,2,4] y, float[1,2,1] m) <float[4] s = {1,2,3,4}> {
        y, m = LayerNormalization(x, s) }""",
        21,
    ),
    "Trilu of each sample": (
        "(float[1,2,2] x) => (float[1,2,2] y) { y = Trilu(x) }", 21,
    ),
    "an Einsum that takes diagonals": (
        """(float[1,2,2] x) => (float[2,1] y) { y = Einsum<equation = "bii->ib">(x) }""", 21,
    ),
    "a sequence": (
        """(float[1,2,3] x) => (float[1,2,6] y, float[1,2,3] z) <int64 i = {1}, float[1,2,3] w = {1,2,3,4,5,6}> {
        r = Relu(x)  s = SequenceConstruct(x, w, r)  t = SequenceErase(s, i)  y = ConcatFromSequence<axis = -1>(t)
        z = SequenceAt(s, i) }""",
        17,
    ),
    "a sequence of parts": (
        """(float[1,2,3] x) => (float[1,2,3] y, float[1,3] z, int64 n) <int64 i = {1}> {
        s = SplitToSequence<axis = 1, keepdims = 0>(x)  y = ConcatFromSequence<axis = 1, new_axis = 1>(s)
        z = SequenceAt(s, i)  n = SequenceLength(s) }""",
        17,
    ),
    "a sequence that a Loop fills": (
        """(float[1,2,3] x) => (float[1,2,6] y) <int64 n = {2}, bool t = {1}> {
        e = SequenceEmpty()
        s = Loop(n, t, e) <body = b (int64 i, bool c, seq(float[1,2,3]) a) => (bool d, seq(float[1,2,3]) f) {
            d = Identity(c)  f = SequenceInsert(a, x) }>
        y = ConcatFromSequence<axis = 2>(s) }""",
        17,
    ),
    "a sequence as output": (
        "(float[1,2,3] x) => (seq(float[1,2,3]) y) { r = Relu(x)  y = SequenceConstruct(x, r) }", 17,
    ),
    "an optional": (
        """(float[1,2,3] x) => (float[1,2,3] y, bool z) {
        o = Optional(x)  y = OptionalGetElement(o)  z = OptionalHasElement(o) }""",
        17,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_sample_is_computed_by_itself(name: str) -> None:
    text, opset = CASES[name]
    axes = {"t": 1} if "[3,1" in text.split("=>")[0] else None
    assert_each_by_itself(parse(text, opset=opset), 4, axes)
