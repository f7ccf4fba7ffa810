"""What mixes samples, or bakes their number otherwise, is named with the reason."""

import pytest

from tests.analysis.batching.by_sample import changed
from tiered import Model, ShapeError, get_pass
from tiered.testing import parse

MIXED = {
    "Gather of one row": (
        "(float[1,3] x) => (float[3] y) <int64 i = {0}> { y = Gather(x, i) }",
        "places in 'i'",
    ),
    "Gather of a list": (
        "(float[1,3] x) => (float[1,3] y) <int64[1] i = {0}> { y = Gather(x, i) }",
        "places in 'i'",
    ),
    "Slice": (
        "(float[1,3] x) => (float[1,3] y) <int64[1] s = {0}, int64[1] e = {1}> { y = Slice(x, s, e) }",
        "some of the samples: elements 0 to 1 of a batch of 1",
    ),
    "Softmax": (
        "(float[1,3] x) => (float[1,3] y) { y = Softmax<axis = 0>(x) }",
        "axis 0 of 'x' is the batch",
    ),
    "sum": (
        "(float[1,3] x) => (float[3] y) <int64[1] a = {0}> { y = ReduceSum<keepdims = 0>(x, a) }",
        "axis 0 of 'x' is the batch",
    ),
    "sum of all": (
        "(float[1,3] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
        "axis 0 of 'x' is the batch",
    ),
    "ArgMax": (
        "(float[1,3] x) => (int64[1,3] y) { y = ArgMax<axis = 0>(x) }",
        "axis 0 of 'x' is the batch",
    ),
    "TopK": (
        "(float[1,3] x) => (float[1,3] y, int64[1,3] i) <int64[1] k = {1}> { y, i = TopK<axis = 0>(x, k) }",
        "axis 0 of 'x' is the batch",
    ),
    "CumSum": (
        "(float[1,3] x) => (float[1,3] y) <int64 a = {0}> { y = CumSum(x, a) }",
        "axis 0 of 'x'",
    ),
    "BatchNormalization in training": (
        """(float[1,2,3] x) => (float[1,2,3] y, float[2] m, float[2] v)
        <float[2] a = {1,1}, float[2] b = {0,0}> { y, m, v = BatchNormalization<training_mode = 1>(x, a, b, b, a) }""",
        "its output 'm' has no rule",
    ),
    "features": (
        "(float[1,3] x) => (float[2] y) <int64[1] s = {3}, float[3,2] w = {1,2,3,4,5,6}> { r = Reshape(x, s)  y = MatMul(r, w) }",
        "axis 0 of 'r' is the batch",
    ),
    "Concat along the batch": (
        "(float[1,3] x) => (float[2,3] y) { y = Concat<axis = 0>(x, x) }",
        "axis 0 of 'x'",
    ),
    "Split of the batch": (
        "(float[2,3] x) => (float[1,3] y, float[1,3] z) { y, z = Split<axis = 0, num_outputs = 2>(x) }",
        "splits the axis of a batch of 2",
    ),
    "one sample that is broadcast": (
        "(float[1,3] x) => (float[2,3] y) <float[2,1] w = {1,2}> { y = Mul(x, w) }",
        "axis 0 of 'x' is the batch",
    ),
    "a product of samples": (
        "(float[1,3] x) => (float[1,1] y) { t = Transpose(x)  y = MatMul(x, t) }",
        "axis 0 of 'x' is the batch",
    ),
    "a product of samples by onnxruntime": (
        "(float[1,3] x) => (float[1,1] y) { y = com.microsoft.FusedMatMul<transB = 1>(x, x) }",
        "axis 0 of 'x' is the batch",
    ),
    "a sum over samples by onnxruntime": (
        """(float[1,3] x) => (float[3,2] y) <float[1,2] w = {1,2}> {
        y = com.microsoft.FusedMatMul<transA = 1>(x, w) }""",
        "axis 0 of 'x' is the batch",
    ),
    "a batch of matrices that moves": (
        """(float[1,2,2,3] x) => (float[2,2,1,3] y) {
        y = com.microsoft.FusedMatMul<transBatchA = 1, transBatchB = 1, transB = 1>(x, x) }""",
        "it transposes its batch",
    ),
    "a mask of lengths and starts": (
        f"""(float[1,3,4] x, int32[2] m) => (float[1,3,4] y)
        <float[4,12] w = {{{",".join(["1"] * 48)}}}, float[12] b = {{{",".join(["1"] * 12)}}}> {{
        y = com.microsoft.Attention<num_heads = 2>(x, w, b, m) }}""",
        "its mask 'm' has more than a number for each sample",
    ),
    "a sequence of what samples share": (
        """(float[1,3] x) => (float[1,6] y) <float[1,3] w = {1,2,3}> {
        s = SequenceConstruct(w)  t = SequenceInsert(s, x)  y = ConcatFromSequence<axis = 1>(t) }""",
        "its sequence has tensors that all samples share",
    ),
    "a sequence of samples": (
        """(float[2,3] x) => (float[1,3] y) <int64 i = {0}> {
        s = SplitToSequence<axis = 0>(x)  y = SequenceAt(s, i) }""",
        "splits the axis of a batch of 2",
    ),
    "a place of each of two samples for all": (
        """(float[2,3] x, int64[2] t) => (float[2,2] y) <int64[1] a = {1}> {
        m = ArgMax<axis = 1, keepdims = 0>(x)  y = Gather<axis = 1>(x, m) }""",
        "it takes other places for each sample",
    ),
    "places of maxima in two samples": (
        """(float[2,1,2,2] x) => (float[2,1,1,1] y, int64[2,1,1,1] i) { y, i = MaxPool<kernel_shape = [2,2]>(x) }""",
        "its output 'i' counts through a batch of 2",
    ),
    "places in two samples of another size": (
        """(float[2,1,2,2] x) => (float[2,1,3,2] z) <int64[4] s = {2,1,3,2}> {
        y, i = MaxPool<kernel_shape = [2,2]>(x)  z = MaxUnpool<kernel_shape = [2,2]>(y, i, s) }""",
        "its places count through samples of another size",
    ),
    "two images compared with each of two kernels": (
        "(float[2,2,3,3] x) => (float[2,2,1,1] y) { y = Conv(x, x) }",
        "Conv 'y': it computes a result from several",
    ),
    "an operator of another domain": (
        "(float[1,3] x) => (float[1,3] y) { y = com.microsoft.Inverse(x) }",
        "it has no rule",
    ),
    "a repeated batch": (
        "(float[1,3] x) => (float[4,3] y) <int64[2] s = {4,3}> { y = Expand(x, s) }",
        "repeats the axis of a batch of 1",
    ),
    "a padded batch": (
        "(float[1,3] x) => (float[2,3] y) <int64[4] p = {1,0,0,0}> { y = Pad(x, p) }",
        "pads the axis of a batch of 1",
    ),
    "a resized batch": (
        "(float[1,1,2] x) => (float[2,1,2] y) <float[3] s = {2,1,1}> { y = Resize(x, , s) }",
        "resizes the axis",
    ),
    "the size of the batch": (
        """(float[2,3] x) => (float[2,3] y) <int64 zero = {0}> {
        s = Shape(x)  n = Gather(s, zero)  f = Cast<to = 1>(n)  y = Div(x, f) }""",
        "computes with the size of the batch",
    ),
    "the number of a sample": (
        """(float[1,3] x) => (float[1,3] y) <int64 zero = {0}, int64 one = {1}, int64[1] a = {1}> {
        s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)  u = Unsqueeze(r, a)  f = Cast<to = 1>(u)
        y = Add(x, f) }""",
        "differs from sample to sample|numbers of samples|counts the samples",
    ),
    "random numbers": (
        "(float[1,3] x) => (float[1,3] y) { r = RandomNormal<shape = [1,3]>()  y = Add(x, r) }",
        "RandomNormal 'r': it draws random numbers for a batch of 1",
    ),
    "a bound that depends on their number": (
        """(float[1,3] x) => (float[1,c] y) <int64 zero = {0}, int64[1] two = {2}, int64[1] one = {1}, int64[1] a = {0}> {
        s = Shape(x)  n = Gather(s, zero)  u = Unsqueeze(n, a)  p = Add(u, two)  h = Div(p, two)
        y = Slice(x, a, h, one) }""",
        "bounds depend on the size|how 'h' depends on the size of the batch is not known",
    ),
    "ranges of all samples": (
        "(float[1,3] x) => (uint8[1,3] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }",
        "its scale follows from the elements of all samples",
    ),
    "a condition": (
        """(float[1,3] x) => (float[1,3] y) { m = ReduceMax<keepdims = 0>(x)  c = Cast<to = 9>(m)
        y = If(c) <then_branch = t () => (float[1,3] a) { a = Relu(x) }, else_branch = e () => (float[1,3] b) { b = Neg(x) }> }""",
        "ReduceMax 'm': it computes a result from several samples",
    ),
    "a Scan over samples": (
        """(float[1,3] x) => (float[3] y, float[1,3] z) <float[3] k = {0,0,0}> {
        y, z = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] o, float[3] p) {
            o = Add(s, e)  p = Tanh(o) }>(k, x) }""",
        "goes from sample to sample",
    ),
    "other numbers for each sample": (
        "(float[2,3] x) => (float[2,3] y) <float[2,1] w = {1,2}> { y = Add(x, w) }",
        "its constant 'w' bakes the batch of 2",
    ),
    "other positions for each sample": (
        "(float[2,2] x) => (float[2,2] y) <int64[2,2] p = {0,1,1,0}, float[2] t = {1,2}> { g = Gather(t, p)  y = Add(x, g) }",
        "its value 'g' bakes the batch of 2: it may have other numbers",
    ),
    "rows that are other ones": (
        "(float[2,2] x) => (float[2,2] y) <int64[2] p = {1,0}, float[2,2] t = {1,2,3,4}> { g = Gather<axis = 1>(t, p)  y = Add(x, g) }",
        "its value 'g' bakes the batch of 2: it may have other numbers",
    ),
    "no whole samples": (
        "(float[4,6] x) => (float[3,8] y) <int64[2] s = {3,8}> { [view] y = Reshape(x, s) }",
        r"Reshape 'view': it makes \[3, 8\] of \[4, 6\], which is baked into its constant 's'",
    ),
    "an index that is no constant": (
        "(float[1,3] x, int64[1] i) => (float[1,3] y) { y = Gather(x, i) }",
        "places in 'i'|other places",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_samples_is_named(name: str) -> None:
    text, reason = MIXED[name]
    model = Model.from_proto(parse(text))
    before = model.to_proto().SerializeToString(deterministic=True)
    with pytest.raises(ShapeError, match=reason):
        get_pass("change_batch", size=8, axes={"x": 0}).apply(model)
    assert model.to_proto().SerializeToString(deterministic=True) == before


def test_a_choice_that_leads_nowhere_is_named_with_the_refusal() -> None:
    text = """(float[1,1,3] x) => (float[1,1,3] y) <int64[3] s = {1,1,3}, float[1,1,3] w = {1,2,3}> {
        [view] r = Reshape(x, s)  a = Softmax<axis = 0>(r)  y = Softmax<axis = 1>(a) }"""
    with pytest.raises(
        ShapeError, match=r"Softmax .*; before it, Reshape 'view' makes .* constant 's'"
    ):
        changed(text, 4)


def test_what_no_output_needs_may_mix_samples() -> None:
    text = """(float[1,3] x) => (float[1,3] y) { dead = Softmax<axis = 0>(x)  y = Relu(x) }"""
    made, *_ = changed(text, 4)
    assert made.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 4
