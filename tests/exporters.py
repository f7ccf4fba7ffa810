"""Small models in the handwriting of exporters: what each spells out, and how."""

from typing import Final

import onnx

from tiered.testing import parse

TORCHSCRIPT: Final = """
<ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
main_graph (float[batch,seq,8] input) => (float[batch,seq,8] output)
<float[8] norm_weight = {1,2,1,2,1,2,1,2}, float[8] norm_bias = {0,1,0,1,0,1,0,1},
 float[8,8] fc = {1,0,0,0,0,0,0,0, 0,1,0,0,0,0,0,0, 0,0,1,0,0,0,0,0, 0,0,0,1,0,0,0,0,
                  0,0,0,0,1,0,0,0, 0,0,0,0,0,1,0,0, 0,0,0,0,0,0,1,0, 0,0,0,0,0,0,0,1},
 float[8] fc_bias = {1,1,1,1,1,1,1,1}>
{
    mean = ReduceMean<axes=[-1]>(input)
    centred = Sub(input, mean)
    two = Constant<value = float {2}>()
    squared = Pow(centred, two)
    variance = ReduceMean<axes=[-1]>(squared)
    epsilon = Constant<value = float {0.00001}>()
    shifted = Add(variance, epsilon)
    deviation = Sqrt(shifted)
    normed = Div(centred, deviation)
    scaled = Mul(normed, norm_weight)
    biased = Add(scaled, norm_bias)
    product = MatMul(biased, fc)
    hidden = Add(fc_bias, product)
    root = Constant<value = float {1.41421356}>()
    divided = Div(hidden, root)
    erf = Erf(divided)
    one = Constant<value = float {1}>()
    gate = Add(erf, one)
    gated = Mul(hidden, gate)
    half = Constant<value = float {0.5}>()
    active = Mul(gated, half)
    shape = Shape(active)
    zero = Constant<value = int64 {0}>()
    batch = Gather(shape, zero)
    axis = Constant<value = int64[1] {0}>()
    batches = Unsqueeze(batch, axis)
    rest = Constant<value = int64[2] {-1, 8}>()
    target = Concat<axis=0>(batches, rest)
    output = Reshape(active, target)
}
"""

DYNAMO: Final = """
<ir_version: 10, producer_name: "pytorch", opset_import: ["" : 20]>
main_graph (float[s0,6,8] x) => (float[s0,6,8] gelu, float[s0,6,8] silu)
<float[8] weight = {1,2,1,2,1,2,1,2}, int64[1] dim = {-1}>
{
    val_0 = Constant<value = float {2}>()
    pow_1 = Pow(x, val_0)
    mean = ReduceMean<keepdims=1>(pow_1, dim)
    val_1 = Constant<value = float {0.000001}>()
    add = Add(mean, val_1)
    val_2 = Sqrt(add)
    rsqrt = Reciprocal(val_2)
    mul = Mul(x, rsqrt)
    mul_1 = Mul(weight, mul)
    val_3 = Constant<value = float {3}>()
    pow_2 = Pow(mul_1, val_3)
    val_4 = Constant<value = float {0.044715}>()
    mul_2 = Mul(pow_2, val_4)
    add_1 = Add(mul_1, mul_2)
    val_5 = Constant<value = float {0.7978846}>()
    mul_3 = Mul(add_1, val_5)
    tanh = Tanh(mul_3)
    val_6 = Constant<value = float {1}>()
    add_2 = Add(tanh, val_6)
    val_7 = Constant<value = float {0.5}>()
    mul_4 = Mul(mul_1, val_7)
    gelu = Mul(mul_4, add_2)
    sigmoid = Sigmoid(mul_1)
    silu = Mul(mul_1, sigmoid)
}
"""

NHWC: Final = """
<ir_version: 8, producer_name: "tf2onnx", opset_import: ["" : 17]>
tf2onnx (float[unk,6,6,2] image) => (float[unk,3,3,2] relu6)
<int64[8] paddings = {0,0,0,0,0,1,1,0}, float[2,2,2,2] kernel = {1,2,3,4,5,6,7,8,8,7,6,5,4,3,2,1},
 float[2] scale = {2,4}, float[2] offset = {1,-1}, float low = {0}, float high = {6}>
{
    padded = Pad(image, paddings)
    nchw = Transpose<perm=[0,3,1,2]>(padded)
    conv = Conv<auto_pad="VALID", kernel_shape=[2,2], strides=[2,2]>(nchw, kernel)
    nhwc = Transpose<perm=[0,2,3,1]>(conv)
    scaled = Mul(nhwc, scale)
    shifted = Add(scaled, offset)
    at_least = Max(shifted, low)
    relu6 = Min(at_least, high)
}
"""

OLD: Final = """
<ir_version: 4, opset_import: ["" : 9]>
graph (float[1,2,4,4] data) => (float[1,2,3,3] out)
<float[2,2,2,2] w = {1,2,3,4,5,6,7,8,8,7,6,5,4,3,2,1}, float[2] gamma = {1,2},
 float[2] beta = {0,1}, float[2] mean = {1,1}, float[2] var = {4,1}, float[2,1,1] shift = {1,2}>
{
    padded = Pad<pads=[0,0,1,1,0,0,0,0], mode="constant">(data)
    conv = Conv<kernel_shape=[2,2]>(padded, w)
    normed = BatchNormalization<epsilon=0.001, momentum=0.9>(conv, gamma, beta, mean, var)
    summed = Sum(normed, shift)
    active = Relu(summed)
    clipped = Clip<min=0.0, max=6.0>(active)
    pooled = MaxPool<kernel_shape=[2,2], pads=[0,0,0,0]>(clipped)
    out = Dropout(pooled)
}
"""

ATTENTION: Final = """
<ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
main_graph (float[1,seq,4] hidden, float[1,seq,1] angle) => (float[1,seq,4] output)
<float[4,4] q_proj = {1,2,0,0, 0,1,2,0, 0,0,1,2, 2,0,0,1},
 float[4,4] k_proj = {1,0,0,2, 2,1,0,0, 0,2,1,0, 0,0,2,1},
 float[4,4] v_proj = {0,1,0,0, 1,0,0,0, 0,0,0,1, 0,0,1,0},
 int64[4] heads = {0,0,2,2}, int64[3] whole = {0,0,4}, int64[1] start = {0}, int64[1] half = {1},
 int64[1] most = {9223372036854775807}, int64[1] last = {3}, int64[1] step = {1}>
{
    query = MatMul(hidden, q_proj)
    key = MatMul(hidden, k_proj)
    value = MatMul(hidden, v_proj)
    query_heads = Reshape(query, heads)
    key_heads = Reshape(key, heads)
    value_heads = Reshape(value, heads)
    query_states = Transpose<perm=[0,2,1,3]>(query_heads)
    key_states = Transpose<perm=[0,2,1,3]>(key_heads)
    value_states = Transpose<perm=[0,2,1,3]>(value_heads)
    angles = Concat<axis=-1>(angle, angle)
    cosines = Cos(angles)
    sines = Sin(angles)
    cos = Unsqueeze(cosines, half)
    sin = Unsqueeze(sines, half)
    straight = Mul(key_states, cos)
    front = Slice(key_states, start, half, last, step)
    back = Slice(key_states, half, most, last, step)
    negative = Neg(back)
    turned = Concat<axis=-1>(negative, front)
    across = Mul(turned, sin)
    rotated = Add(straight, across)
    transposed = Transpose<perm=[0,1,3,2]>(rotated)
    scores = MatMul(query_states, transposed)
    size = Constant<value = float {1.41421356}>()
    scaled = Div(scores, size)
    weights = Softmax<axis=-1>(scaled)
    context = MatMul(weights, value_states)
    joined = Transpose<perm=[0,2,1,3]>(context)
    output = Reshape(joined, whole)
}
"""

_PLACES: Final = 64

ENCODER: Final = f"""
<ir_version: 10, producer_name: "pytorch", opset_import: ["" : 18]>
main_graph (int64[s0,s1] input_ids) => (float[s0,s1,4] view_3)
<float[3,4] words = {{1,0,2,1, 0,3,1,0, 2,1,0,2}},
 float[{_PLACES},4] places = {{{",".join(str(at % 5) for at in range(4 * _PLACES))}}},
 int64[1,{_PLACES}] position_ids = {{{",".join(map(str, range(_PLACES)))}}},
 float[4] weight = {{1,2,1,2}}, float[4] bias = {{0,1,0,1}}, float zeros = {{0}},
 float[4,4] q_proj = {{1,2,0,0, 0,1,2,0, 0,0,1,2, 2,0,0,1}}, float[4] q_bias = {{1,0,5,0}},
 float[4,4] k_proj = {{1,0,0,2, 2,1,0,0, 0,2,1,0, 0,0,2,1}}, float[4] k_bias = {{0,1,0,3}},
 float[4,4] v_proj = {{0,1,0,0, 1,0,0,0, 0,0,0,1, 0,0,1,0}}, float[4] v_bias = {{1,1,0,0}},
 float root = {{0.84}}, int64[1] start = {{0}}, int64[1] one = {{1}}, int64[1] rest = {{-1}},
 int64[1] two = {{2}}>
{{
    val_0 = Shape<start=0, end=1>(input_ids)
    val_1 = Shape<start=1, end=2>(input_ids)
    slice_1 = Slice(position_ids, start, val_1, one, one)
    embedding = Gather(words, input_ids)
    embedding_1 = Gather(places, slice_1)
    add = Add(embedding, embedding_1)
    layer_norm = LayerNormalization<axis=-1>(add, weight, bias)
    val_2 = MatMul(layer_norm, q_proj)
    linear = Add(val_2, q_bias)
    val_3 = Concat<axis=0>(val_0, val_1, rest, two)
    view = Reshape<allowzero=1>(linear, val_3)
    transpose = Transpose<perm=[0,2,1,3]>(view)
    val_4 = MatMul(layer_norm, k_proj)
    linear_1 = Add(val_4, k_bias)
    view_1 = Reshape<allowzero=1>(linear_1, val_3)
    transpose_1 = Transpose<perm=[0,2,1,3]>(view_1)
    val_5 = MatMul(layer_norm, v_proj)
    linear_2 = Add(val_5, v_bias)
    view_2 = Reshape<allowzero=1>(linear_2, val_3)
    transpose_2 = Transpose<perm=[0,2,1,3]>(view_2)
    val_6 = Transpose<perm=[0,1,3,2]>(transpose_1)
    val_7 = Mul(transpose, root)
    val_8 = Mul(val_6, root)
    val_9 = MatMul(val_7, val_8)
    val_10 = Softmax<axis=-1>(val_9)
    val_11 = IsNaN(val_10)
    val_12 = Where(val_11, zeros, val_10)
    attended = MatMul(val_12, transpose_2)
    transpose_3 = Transpose<perm=[0,2,1,3]>(attended)
    val_13 = Concat<axis=0>(val_0, val_1, rest)
    view_3 = Reshape<allowzero=1>(transpose_3, val_13)
}}
"""

QDQ: Final = """
<ir_version: 8, producer_name: "onnx.quantize", opset_import: ["" : 17]>
graph (float[N,1,4,4] image) => (float[N,2] logits)
<float in_scale = {0.05}, uint8 in_zero = {128}, float c_scale = {0.1}, uint8 c_zero = {0},
 int8[2,1,1,1] w_quantized = {64,-32}, float[2] w_scale = {0.02,0.01}, int8[2] w_zero = {0,0},
 int32[2] b_quantized = {100,-50}, float[2] b_scale = {0.001,0.0005}, int32[2] b_zero = {0,0},
 float p_scale = {0.08}, uint8 p_zero = {3}, int8[2,2] f_quantized = {10,20,-30,40},
 float f_scale = {0.01}, int8 f_zero = {0}, float l_scale = {0.02}, uint8 l_zero = {100}>
{
    image_quantized = QuantizeLinear(image, in_scale, in_zero)
    image_dequantized = DequantizeLinear(image_quantized, in_scale, in_zero)
    w = DequantizeLinear<axis=0>(w_quantized, w_scale, w_zero)
    b = DequantizeLinear<axis=0>(b_quantized, b_scale, b_zero)
    conv = Conv<kernel_shape=[1,1]>(image_dequantized, w, b)
    active = Relu(conv)
    active_quantized = QuantizeLinear(active, c_scale, c_zero)
    active_dequantized = DequantizeLinear(active_quantized, c_scale, c_zero)
    residual = Add(active_dequantized, active_dequantized)
    residual_quantized = QuantizeLinear(residual, c_scale, c_zero)
    residual_dequantized = DequantizeLinear(residual_quantized, c_scale, c_zero)
    pooled = GlobalAveragePool(residual_dequantized)
    pooled_quantized = QuantizeLinear(pooled, p_scale, p_zero)
    pooled_dequantized = DequantizeLinear(pooled_quantized, p_scale, p_zero)
    flat = Flatten(pooled_dequantized)
    flat_quantized = QuantizeLinear(flat, p_scale, p_zero)
    flat_dequantized = DequantizeLinear(flat_quantized, p_scale, p_zero)
    f = DequantizeLinear(f_quantized, f_scale, f_zero)
    product = Gemm(flat_dequantized, f)
    product_quantized = QuantizeLinear(product, l_scale, l_zero)
    logits = DequantizeLinear(product_quantized, l_scale, l_zero)
}
"""

EXPORTERS: Final = {
    "torchscript": TORCHSCRIPT,
    "dynamo": DYNAMO,
    "nhwc": NHWC,
    "old": OLD,
    "attention": ATTENTION,
    "encoder": ENCODER,
    "qdq": QDQ,
}


def exported(name: str) -> onnx.ModelProto:
    """Return the model of an exporter."""
    return parse(EXPORTERS[name])
