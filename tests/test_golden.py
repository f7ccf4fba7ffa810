"""An example of what passes make of a model, and of what they leave alone.

Each pass has tests of its own beside this; these are the ones to read first.
"""

from typing import Any

import pytest

from tiered.testing import assert_rewrites, assert_unchanged

LOCAL = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'
FUNCTION = '<domain: "local", opset_import: ["" : 21]>'
QONNX = (
    '<ir_version: 8, opset_import: ["" : 17, "qonnx.custom_op.general" : 1]> '
    "g (float[2] x) => (float[2] y)"
)
AS_QUANT = (
    f"{QONNX} <float s = {{0.5}}, float z = {{0}}, float b = {{4}}> {{ y = qonnx.custom_op.general."
    'Quant<signed = 1, narrow = 0, rounding_mode = "ROUND">(x, s, z, b) }'
)
AS_QDQ = (
    f"{QONNX} <float s = {{0.5}}, int8 z = {{0}}, int8 l = {{-8}}, int8 h = {{7}}> "
    "{ q = QuantizeLinear(x, s, z) c = Clip(q, l, h) y = DequantizeLinear(c, s, z) }"
)

EXAMPLES = {
    "replace_bn_with_mul_add": (
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2] s = {2,0.5}, float[2] b = "
        "{1,-1}, float[2] m = {0.5,0.25}, float[2] v = {4,1}> { y = "
        "BatchNormalization<epsilon=0.0>(x, s, b, m, v) }",
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,1,1] a = {1,0.5}, float[2,1,1] c "
        "= {0.5,-1.125}> { t = Mul(x, a) y = Add(t, c) }",
    ),
    "fuse_consecutive_cast": (
        "g (int32[2] x) => (float[2] y) { a = Cast<to=7>(x) y = Cast<to=1>(a) }",
        "g (int32[2] x) => (float[2] y) { y = Cast<to=1>(x) }",
    ),
    "eliminate_nop_reshape": (
        "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {2,-1}> { a = Reshape(x, s) y = "
        "Relu(a) }",
        "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }",
    ),
    "eliminate_nop_expand": (
        "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {1,3}> { a = Expand(x, s) y = Relu(a) }",
        "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }",
    ),
    "inline": (
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] '
        'y) { y = local.f(x) } <domain: "local", opset_import: ["" : 21]> f (a) => (b) { c = '
        "Add(a, a) b = Relu(c) }",
        "g (float[2] x) => (float[2] y) { c = Add(x, x) y = Relu(c) }",
    ),
    "replace_div_with_mul": (
        "g (float[3] x) => (float[3] y) <float d = {8}> { y = Div(x, d) }",
        "g (float[3] x) => (float[3] y) <float d = {0.125}> { y = Mul(x, d) }",
    ),
    "replace_einsum_with_matmul": (
        "g (float[2,3] a, float[3,4] b) => (float[2,4] y) { y = "
        'Einsum<equation="ij,jk->ik">(a, b) }',
        "g (float[2,3] a, float[3,4] b) => (float[2,4] y) { y = MatMul(a, b) }",
    ),
    "decompose_gemm": (
        "g (float[2,3] x, float[4,3] w, float[4] b) => (float[2,4] y) { y = Gemm<transB=1, "
        "alpha=0.5, beta=2.0>(x, w, b) }",
        "g (float[2,3] x, float[4,3] w, float[4] b) => (float[2,4] y) <float a = {0.5}, float"
        " e = {2}> { t = Transpose<perm=[1,0]>(w) m = MatMul(x, t) n = Mul(m, a) c = Mul(b, "
        "e) y = Add(n, c) }",
    ),
    "fuse_bn_into_gemm": (
        "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}, float[2] c = {0,1}, "
        "float[2] s = {2,0.5}, float[2] b = {1,-1}, float[2] m = {0.5,0.25}, float[2] v = "
        "{4,1}> { t = Gemm(x, w, c) y = BatchNormalization<epsilon=0.0>(t, s, b, m, v) }",
        "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,1,3,2}, float[2] c = "
        "{0.5,-0.625}> { y = Gemm(x, w, c) }",
    ),
    "partial_evaluate": (
        "g (float[2] x) => (float[2] y) <int64 n = {2}, bool c = {1}> { y = Loop(n, c, x) "
        "<body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) { co = "
        "Identity(ci) xo = Add(xi, xi) }> }",
        "g (float[2] x) => (float[2] y) { a = Add(x, x) y = Add(a, a) }",
    ),
    "fuse_gelu": (
        "g (float[2,4] x) => (float[2,4] y) <float k = {0.044715}, float s = {0.7978845608}, "
        "float o = {1}, float h = {0.5}, float p = {3}> { a = Pow(x, p) b = Mul(a, k) c = "
        "Add(x, b) d = Mul(c, s) e = Tanh(d) f = Add(e, o) i = Mul(x, f) y = Mul(i, h) }",
        'g (float[2,4] x) => (float[2,4] y) { y = Gelu<approximate="tanh">(x) }',
    ),
    "fuse_layernorm": (
        "g (float[2,4] x) => (float[2,4] y) <int64[1] ax = {-1}, float p = {2}, float e = "
        "{0.00001}, float[4] s = {1,2,3,4}, float[4] b = {1,1,1,1}> { m = ReduceMean(x, ax) d "
        "= Sub(x, m) q = Pow(d, p) v = ReduceMean(q, ax) w = Add(v, e) r = Sqrt(w) n = Div(d, "
        "r) t = Mul(n, s) y = Add(t, b) }",
        "g (float[2,4] x) => (float[2,4] y) <float[4] s = {1,2,3,4}, float[4] b = {1,1,1,1}> "
        "{ y = LayerNormalization<axis=-1, epsilon=0.00001>(x, s, b) }",
    ),
    "fuse_skip_layernorm": (
        "g (float[2,4,8] x, float[2,4,8] z, float[8] s, float[8] b) => (float[2,4,8] y) { t ="
        " Add(x, z) y = LayerNormalization<axis=-1, epsilon=0.00001>(t, s, b) }",
        "g (float[2,4,8] x, float[2,4,8] z, float[8] s, float[8] b) => (float[2,4,8] y) { y ="
        " com.microsoft.SkipLayerNormalization<epsilon=0.00001>(x, z, s, b) }",
    ),
    "fuse_silu": (
        "g (float[2,4] x) => (float[2,4] y) { s = Sigmoid(x) y = Mul(x, s) }",
        "g (float[2,4] x) => (float[2,4] y) { y = Swish(x) }",
    ),
    "canonicalize_cast": (
        "g (int8[2] x) => (float[2] y, float[2] z) { c = Cast<to=1>(x) y = Exp(c) z = Neg(c) }",
        "g (int8[2] x) => (float[2] y, float[2] z) { c0 = Cast<to=1>(x) c1 = Cast<to=1>(x) y "
        "= Exp(c0) z = Neg(c1) }",
    ),
    "forward_fold_scale_axis": (
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,1,1] s = {2,4}, float[2,2,1,1] w "
        "= {1,2,3,4}> { a = Mul(x, s) y = Conv<kernel_shape=[1,1]>(a, w) }",
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,2,1,1] w = {2,8,6,16}> { y = "
        "Conv<kernel_shape=[1,1]>(x, w) }",
    ),
    "backward_fold_scale_axis": (
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,1,1] s = {2,4}, float[2,2,1,1] w "
        "= {1,2,3,4}, float[2] b = {1,1}> { a = Conv<kernel_shape=[1,1]>(x, w, b) y = Mul(a, "
        "s) }",
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,2,1,1] w = {2,4,12,16}, float[2] "
        "b = {2,4}> { y = Conv<kernel_shape=[1,1]>(x, w, b) }",
    ),
    "fold_constant": (
        "g (float[2,3] x) => (float[2,4] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}> { t = "
        "Transpose<perm=[1,0]>(w) y = MatMul(x, t) }",
        "g (float[2,3] x) => (float[2,4] y) <float[3,4] wt = {1,4,7,1,2,5,8,2,3,6,9,3}> { y = "
        "MatMul(x, wt) }",
    ),
    "fuse_attention": (
        "g (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y) "
        "<float d = {2}> { t = Transpose<perm=[0,1,3,2]>(k) m = MatMul(q, t) s = Div(m, d) p "
        "= Softmax<axis=-1>(s) y = MatMul(p, v) }",
        "g (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y) { y ="
        " Attention<scale=0.5>(q, k, v) }",
    ),
    "truncate_on_var": (
        "g (float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }",
        "g (float[2] x) => (float[2] a) { a = Neg(x) }",
    ),
    "fuse_matmul_scale": (
        "g (float[2,3] a, float[4,3] b) => (float[2,4] y) <float s = {0.5}> { t = "
        "Transpose<perm=[1,0]>(b) m = MatMul(a, t) y = Mul(m, s) }",
        "g (float[2,3] a, float[4,3] b) => (float[2,4] y) { y = "
        "com.microsoft.FusedMatMul<transB=1, alpha=0.5>(a, b) }",
    ),
    "fuse_qkv": (
        "g (float[1,2,4] x, float[4,4] wq, float[4,4] wk, float[4,4] wv, float[4] bq, "
        "float[4] bk, float[4] bv) => (float[1,2,2,2] q, float[1,2,2,2] k, float[1,2,2,2] v) "
        "<int64[4] sh = {1,2,2,2}> { a = MatMul(x, wq) b = MatMul(x, wk) c = MatMul(x, wv) d "
        "= Add(a, bq) e = Add(b, bk) f = Add(c, bv) q = Reshape(d, sh) k = Reshape(e, sh) v = "
        "Reshape(f, sh) }",
        "g (float[1,2,4] x, float[4,4] wq, float[4,4] wk, float[4,4] wv, float[4] bq, "
        "float[4] bk, float[4] bv) => (float[1,2,2,2] q, float[1,2,2,2] k, float[1,2,2,2] v) "
        "<int64[5] sh = {1,2,3,2,2}, int64[1] ax = {0}, int64[3] sp = {1,1,1}> { w = "
        "Concat<axis=1>(wq, wk, wv) bb = Concat<axis=0>(bq, bk, bv) m = MatMul(x, w) n = "
        "Add(m, bb) r = Reshape(n, sh) t = Transpose<perm=[2,0,1,3,4]>(r) q1, k1, v1 = "
        "Split<axis=0>(t, sp) q = Squeeze(q1, ax) k = Squeeze(k1, ax) v = Squeeze(v1, ax) }",
    ),
    "fuse_log_softmax": (
        "g (float[2,4] x) => (float[2,4] y) { t = Tanh(x) s = Softmax<axis=-1>(t) y = Log(s) }",
        "g (float[2,4] x) => (float[2,4] y) { t = Tanh(x) y = LogSoftmax<axis=-1>(t) }",
    ),
    "post_expand": (
        "g (float[1,3] x) => (float[2,3] y) <int64[2] s = {2,3}> { a = Expand(x, s) y = Relu(a) }",
        "g (float[1,3] x) => (float[2,3] y) <int64[2] s = {2,3}> { a = Relu(x) y = Expand(a, s) }",
    ),
    "replace_bn_with_conv": (
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2] s = {2,0.5}, float[2] b = "
        "{1,-1}, float[2] m = {0.5,0.25}, float[2] v = {4,1}> { y = "
        "BatchNormalization<epsilon=0.0>(x, s, b, m, v) }",
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,1,1,1] w = {1,0.5}, float[2] c ="
        " {0.5,-1.125}> { y = Conv<kernel_shape=[1,1], group=2>(x, w, c) }",
    ),
    "fold_quantize": (
        "g (float[2] x) => (float[2] y) <float s = {0.5}, uint8 z = {3}, float[2] c = {1,300}> "
        "{ q = QuantizeLinear(c, s, z) d = DequantizeLinear(q, s, z) y = Add(x, d) }",
        "g (float[2] x) => (float[2] y) <float s = {0.5}, uint8 z = {3}, uint8[2] q = {5,255}> "
        "{ d = DequantizeLinear(q, s, z) y = Add(x, d) }",
    ),
    "convert_qonnx_to_qdq": (AS_QUANT, AS_QDQ),
    "convert_qdq_to_qonnx": (AS_QDQ, AS_QUANT),
    "quantize_dynamic": (
        "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {127,-127,1,63.5}> "
        "{ y = MatMul(x, w) }",
        "g (float[2,2] x) => (float[2,2] y) <int8[2,2] w = {127,-127,1,64}, float[2] s = {1,1}> "
        "{ q, k, z = DynamicQuantizeLinear(x) m = MatMulInteger(q, w, z) c = Cast<to=1>(m) "
        "t = Mul(k, s) y = Mul(c, t) }",
    ),
    "specialize_functions": (
        f"{LOCAL} g (float[2] x) => (float[2] y) {{ a = local.f<to = 1>(x) y = Neg(a) }} "
        f"{FUNCTION} f <to> (v) => (u) {{ c = Cast<to: int = @to>(v) u = Exp(c) }}",
        f"{LOCAL} g (float[2] x) => (float[2] y) {{ a = local.f_1(x) y = Neg(a) }} "
        f"{FUNCTION} f_1 (v) => (u) {{ c = Cast<to = 1>(v) u = Exp(c) }}",
    ),
}


OPTIONS: dict[str, dict[str, Any]] = {
    "partial_evaluate": {"max_iterations": 2},
    "fuse_skip_layernorm": {"opset": 17, "backend": "onnxruntime_cpu"},
    "fuse_silu": {"opset": 24},
    "fuse_attention": {"opset": 23},
    # What it computes has another name.
    "truncate_on_var": {"var": "a", "runtime": "none"},
    "fuse_matmul_scale": {"backend": "onnxruntime_cpu"},
    "quantize_dynamic": {"processor": "vnni"},  # otherwise that of the machine
    # No runtime has the operators of QONNX.
    "convert_qonnx_to_qdq": {"runtime": "none"},
    "convert_qdq_to_qonnx": {"runtime": "none"},
}


@pytest.mark.parametrize("pass_", EXAMPLES)
def test_a_pass_rewrites(pass_: str) -> None:
    before, after = EXAMPLES[pass_]
    assert_rewrites(pass_, before, after, **OPTIONS.get(pass_, {}))


def test_what_callers_may_feed_is_no_constant() -> None:
    assert_unchanged(
        "fold_constant",
        "g (float[2] x, float[2] a = {1,2}) => (float[2] y) { c = Add(a, a) y = Mul(x, c) }",
    )


def test_a_vector_that_goes_along_the_width_is_no_bias_of_channels() -> None:
    assert_unchanged(
        "fuse_bias_add",
        "g (float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,2,1,1] w = {1,2,3,4}, float[2] b"
        " = {1,2}> { t = Conv<kernel_shape=[1,1]>(x, w) y = Add(t, b) }",
        because="the addend is not per channel",
    )


def test_a_rotation_has_the_angles_that_it_was_given_and_no_positions() -> None:
    image = "g (float[1,1,2,4] x, float[2,2] c, float[2,2] s, int64[1,2] pos) => (float[1,1,2,4] y)"
    assert_rewrites(
        "fuse_rotary_embedding",
        f"{image} <int64[2] sp = {{2,2}}> {{ a, b = Split<axis=-1>(x, sp) ac = Mul(a, c) bs ="
        " Mul(b, s) bc = Mul(b, c) as = Mul(a, s) l = Sub(ac, bs) h = Add(bc, as) y ="
        " Concat<axis=-1>(l, h) }",
        f"{image} <int64[1] i = {{0}}, int64[1] j = {{0}}> {{ k = Unsqueeze(c, i)"
        " l = Unsqueeze(s, j) y = RotaryEmbedding(x, k, l) }",
        opset=23,
    )


PARALLEL = (
    "g (float[2,3] x) => (float[2,2] a, float[2,2] b) <float[3,2] u = {1,2,3,4,5,6},"
    " float[3,2] v = {6,5,4,3,2,1}> { a = MatMul(x, u) b = MatMul(x, v) }"
)


def test_two_products_are_fewer_than_the_three_that_combining_takes_by_default() -> None:
    assert_unchanged("combine_parallel_dense", PARALLEL, because="there are 2 parallel branches")


def test_sums_of_three_are_shorter_than_the_sixteen_that_pay_for_a_split() -> None:
    assert_unchanged(
        "combine_parallel_dense",
        PARALLEL,
        because="sums of length 3 are too short",
        min_num_branches=2,
    )
