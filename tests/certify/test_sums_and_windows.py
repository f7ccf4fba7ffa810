"""Sums in any order, products of sums with numbers, pools, resized and quantised tensors."""

import pytest

from tests.certify.test_checker import proof

ABC = "(float[2,3] a, float[3] b, float[2,1] c) => (float[2,3] y)"
IMAGE = "(float[1,2,4,4] x) => (float[1,2,5,5] y)"
STACK = "<float[3,2,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[2] s = {2,4}>"
TURNED = "(float[1,2,2,3] x) => (float[1,3,4,4] y)"
BYTES = (
    "(uint8[1,1,4,4] x) => (uint8[1,1,3,3] y) <float s = {0.5}, uint8 z = {3}, float t = {0.25}>"
)
PARTS = (
    "(uint8[2] a, uint8[2] b) => (uint8[4] y) <float s = {0.5}, uint8 z = {3}, float t = {0.25}>"
)
PADS = (
    "<int64[8] p = {0,0,1,1,0,0,1,1}, uint8 z = {3}, uint8 k = {2}, uint8[1,1,2,2] w = {1,2,3,4}>"
)
INTEGERS = "(uint8[1,1,4,4] x) => (int32[1,1,5,5] y)"
PAIR = "(int32[2,3] a, int32[4,3] b) => (int32[4,2] y)"
EQUAL = {
    "three summands": (
        f"{ABC} {{ s = Add(a, b)  y = Add(s, c) }}",
        f"{ABC} {{ s = Add(b, c)  y = Add(a, s) }}",
    ),
    "five summands of which two cancel": (
        f"{ABC} {{ s = Add(a, b)  t = Add(s, c)  y = Sub(t, b) }}",
        f"{ABC} <float two = {{2}}> {{ s = Mul(b, two)  t = Add(a, s)  u = Sub(t, b)  v = Sub(c, b)"
        "  y = Add(u, v) }",
    ),
    "a factor of a sum of three": (
        f"{ABC} <float k = {{3}}> {{ s = Add(a, b)  t = Mul(s, k)  u = Mul(c, k)  y = Add(t, u) }}",
        f"{ABC} <float k = {{3}}> {{ s = Add(c, b)  t = Sum(s, a)  y = Mul(t, k) }}",
    ),
    "a product with a sum of a number": (
        f"{ABC} <float k = {{3}}> {{ s = Add(b, k)  y = Mul(a, s) }}",
        f"{ABC} <float k = {{3}}> {{ s = Mul(a, b)  t = Mul(a, k)  y = Add(s, t) }}",
    ),
    "sums of no terms": (
        "(float[2,0] x, float[0,3] w) => (float[2,3] y) <float k = {3}> { p = MatMul(x, w)"
        "  y = Mul(p, k) }",
        "(float[2,0] x, float[0,3] w) => (float[2,3] y) { y = MatMul(x, w) }",
    ),
    "a product of zeros": (
        "(float[2,2] x, float[2,2] k) => (float[2,2] y) <float s = {2}, float[2,2] w = {0,0,0,0}> {"
        "  q = MatMul(x, w)  t = Mul(k, s)  y = MatMul(q, t) }",
        "(float[2,2] x, float[2,2] k) => (float[2,2] y) <float[2,2] w = {0,0,0,0}> {"
        "  q = MatMul(x, w)  y = MatMul(q, k) }",
    ),
    "a factor folded into a stack of weights": (
        f"(float[2] x) => (float[3,2] y) {STACK} {{ p = MatMul(x, w)  y = Mul(p, s) }}",
        "(float[2] x) => (float[3,2] y) <float[3,2,2] w = {2,8,6,16,10,24,14,32,18,40,22,48}> {"
        " y = MatMul(x, w) }",
    ),
    "zeros around a mean": (
        f"{IMAGE} <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{ t = Pad(x, p)"
        f"  y = AveragePool<kernel_shape=[2,2]>(t) }}",
        f"{IMAGE}"
        f" {{ y = AveragePool<kernel_shape=[2,2], pads=[1,1,1,1], count_include_pad=1>(x) }}",
    ),
    "zeros around what is not negative": (
        f"{IMAGE} <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{ r = Relu(x)  t = Pad(r, p)"
        f"  y = MaxPool<kernel_shape=[2,2]>(t) }}",
        f"{IMAGE} {{ r = Relu(x)  y = MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>(r) }}",
    ),
    "axes that are resized": (
        f'{TURNED} <float[4] s = {{1,2,2,1}}> {{ a = Resize<mode="linear">(x, "", s)'
        "  y = Transpose<perm=[0,3,1,2]>(a) }",
        f"{TURNED} <float[4] s = {{1,1,2,2}}> {{ a = Transpose<perm=[0,3,1,2]>(x)"
        f'  y = Resize<mode="linear">(a, "", s) }}',
    ),
    "a ConvInteger with zero points around it": (
        f"{INTEGERS} {PADS} {{ t = Pad(x, p, z)  y = ConvInteger(t, w, z) }}",
        f"{INTEGERS} {PADS} {{ y = ConvInteger<pads=[1,1,1,1]>(x, w, z) }}",
    ),
    "an Einsum of integers": (
        f'{PAIR} {{ y = Einsum<equation="ij,kj->ki">(a, b) }}',
        f"{PAIR} {{ t = Transpose<perm=[1,0]>(a)  y = MatMul(b, t) }}",
    ),
    "DynamicQuantizeMatMul": (
        """(float[4,2] x) => (float[4,3] y) <int8[2,3] w = {1,2,3,4,5,6},
            float[3] r = {0.25,0.5,1}> {
            q, s, z = DynamicQuantizeLinear(x)  m = MatMulInteger(q, w, z)  f = Cast<to=1>(m)
            k = Mul(s, r)  y = Mul(f, k) }""",
        """(float[4,2] x) => (float[4,3] y) <int8[2,3] w = {1,2,3,4,5,6},
            float[3] r = {0.25,0.5,1}> {
            y = com.microsoft.DynamicQuantizeMatMul(x, w, r) }""",
    ),
}
SCORES = "(float[2,3,4] q, float[2,5,4] k, float[2,5,6] v, float[1,1,5] m) => (float[2,3,6] y)"
BIASES = "<float[4] b = {1,-2,3,-4}, float[6] c = {1,2,3,4,5,6}, float h = {0.5}>"
TURNED_KEYS = "t = Transpose<perm=[0,2,1]>"
EQUAL["a bias of keys before a Softmax"] = (
    f"{SCORES} {BIASES} {{ n = Add(k, b)  {TURNED_KEYS}(n)  s = MatMul(q, t)  u = Mul(s, h)"
    "  r = Add(u, m)  p = Softmax(r)  y = MatMul(p, v) }",
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  u = Mul(s, h)"
    "  r = Add(u, m)  p = Softmax(r)  y = MatMul(p, v) }",
)
EQUAL["a bias of values behind a Softmax"] = (
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  p = Softmax(s)  n = Add(v, c)"
    "  y = MatMul(p, n) }",
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  p = Softmax(s)  n = MatMul(p, v)"
    "  y = Add(n, c) }",
)
SAME_BITS = {
    "an element at a place that is fed": (
        "(float[3] x, int64 i) => (float y) { g = Gather(x, i)  y = Identity(g) }",
        "(float[3] x, int64 i) => (float y) { y = Gather(x, i) }",
    ),
    "a negative factor of integers": (
        "(int32[2] x) => (int32[2] y) <int32[2] c = {3,-2147483648}> { n = Neg(x)  y = Mul(n, c) }",
        "(int32[2] x) => (int32[2] y) <int32[2] c = {-3,-2147483648}> { y = Mul(x, c) }",
    ),
    "quantised parts that are joined": (
        f"{PARTS} {{ d = DequantizeLinear(a, s, z)  e = DequantizeLinear(b, s, z)"
        "  c = Concat<axis=0>(d, e)"
        "  y = QuantizeLinear(c, s, z) }",
        f"{PARTS} {{ y = Concat<axis=0>(a, b) }}",
    ),
    "the largest of quantised windows": (
        f"{BYTES} {{ d = DequantizeLinear(x, s, z)  m = MaxPool<kernel_shape=[2,2]>(d)"
        f"  y = QuantizeLinear(m, s, z) }}",
        f"{BYTES} {{ y = MaxPool<kernel_shape=[2,2]>(x) }}",
    ),
    "nearest elements of turned axes": (
        f'{TURNED} <float[4] s = {{1,2,2,1}}> {{ a = Resize(x, "", s)'
        f"  y = Transpose<perm=[0,3,1,2]>(a) }}",
        f"{TURNED} <float[4] s = {{1,1,2,2}}> {{ a = Transpose<perm=[0,3,1,2]>(x)"
        f'  y = Resize(a, "", s) }}',
    ),
    "nearest elements as a Tile": (
        '(float[1,2] x) => (float[3,2] y) <float[2] s = {3,1}> { y = Resize(x, "", s) }',
        "(float[1,2] x) => (float[3,2] y) <int64[2] r = {3,1}> { y = Tile(x, r) }",
    ),
    "a bound that is never reached": (
        "(float[3] x) => (float[3] y) <float b = {0}, float c = {2}> { y = Min(x, b, c) }",
        "(float[3] x) => (float[3] y) <float b = {0}> { y = Min(x, b) }",
    ),
}
DIFFERENT = {
    "another sum of three": (
        f"{ABC} {{ s = Add(a, b)  y = Add(s, c) }}",
        f"{ABC} {{ s = Add(b, c)  t = Add(a, s)  y = Sub(t, c) }}",
    ),
    "a sum with one summand twice": (
        f"{ABC} {{ s = Add(a, b)  y = Add(s, c) }}",
        f"{ABC} {{ s = Add(a, b)  t = Add(s, c)  y = Add(t, c) }}",
    ),
    "a product with another sum": (
        f"{ABC} <float k = {{3}}> {{ s = Add(b, k)  y = Mul(a, s) }}",
        f"{ABC} <float k = {{3}}> {{ s = Mul(a, b)  y = Add(s, k) }}",
    ),
    "another stack": (
        f"(float[2] x) => (float[3,2] y) {STACK} {{ p = MatMul(x, w)  y = Mul(p, s) }}",
        "(float[2] x) => (float[3,2] y) <float[3,2,2] w = {2,8,6,16,10,24,14,32,18,40,48,22}> {"
        " y = MatMul(x, w) }",
    ),
    "a mean that leaves zeros out": (
        f"{IMAGE} <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{ t = Pad(x, p)"
        f"  y = AveragePool<kernel_shape=[2,2]>(t) }}",
        f"{IMAGE} {{ y = AveragePool<kernel_shape=[2,2], pads=[1,1,1,1]>(x) }}",
    ),
    "zeros around what may be negative": (
        f"{IMAGE} <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{ t = Pad(x, p)"
        f"  y = MaxPool<kernel_shape=[2,2]>(t) }}",
        f"{IMAGE} {{ y = MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>(x) }}",
    ),
    "ones around what is not negative": (
        f"{IMAGE} <int64[8] p = {{0,0,1,1,0,0,1,1}}, float o = {{1}}> {{ r = Relu(x)"
        "  t = Pad(r, p, o)"
        "  y = MaxPool<kernel_shape=[2,2]>(t) }",
        f"{IMAGE} {{ r = Relu(x)  y = MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>(r) }}",
    ),
    "other axes that are resized": (
        f'{TURNED} <float[4] s = {{1,2,2,1}}> {{ a = Resize(x, "", s)'
        f'  y = Transpose<perm=[0,3,1,2]>(a) }}',
        f'{TURNED} <float[4] s = {{1,1,2,2}}> {{ a = Transpose<perm=[0,3,2,1]>(x)'
        f'  y = Resize(a, "", s) }}',
    ),
    "a ConvInteger with other numbers around it": (
        f"{INTEGERS} {PADS} {{ t = Pad(x, p, k)  y = ConvInteger(t, w, z) }}",
        f"{INTEGERS} {PADS} {{ y = ConvInteger<pads=[1,1,1,1]>(x, w, z) }}",
    ),
    "an Einsum that is not turned": (
        '(int32[2,2] a, int32[2,2] b) => (int32[2,2] y) { y = Einsum<equation="ij,kj->ki">(a, b) }',
        "(int32[2,2] a, int32[2,2] b) => (int32[2,2] y) { y = MatMul(b, a) }",
    ),
    "quantised parts of other scales": (
        f"{PARTS} {{ d = DequantizeLinear(a, s, z)  e = DequantizeLinear(b, t, z)"
        "  c = Concat<axis=0>(d, e)"
        "  y = QuantizeLinear(c, s, z) }",
        f"{PARTS} {{ y = Concat<axis=0>(a, b) }}",
    ),
    "the largest of windows that are quantised otherwise": (
        f"{BYTES} {{ d = DequantizeLinear(x, s, z)  m = MaxPool<kernel_shape=[2,2]>(d)"
        f"  y = QuantizeLinear(m, t, z) }}",
        f"{BYTES} {{ y = MaxPool<kernel_shape=[2,2]>(x) }}",
    ),
    "a negative before a wider Cast": (
        "(int32[2] x) => (int64[2] y) <int32 c = {1}> { n = Neg(x)  m = Mul(n, c)"
        "  y = Cast<to=7>(m) }",
        "(int32[2] x) => (int64[2] y) { m = Cast<to=7>(x)  y = Neg(m) }",
    ),
    "a bound that is reached": (
        "(float[3] x) => (float[3] y) <float b = {0}, float c = {-2}> { y = Min(x, b, c) }",
        "(float[3] x) => (float[3] y) <float b = {0}> { y = Min(x, b) }",
    ),
}  # fmt: skip
DIFFERENT["a bias of keys behind no Softmax"] = (
    f"{SCORES} {BIASES} {{ n = Add(k, b)  {TURNED_KEYS}(n)  s = MatMul(q, t)  y = MatMul(s, v) }}",
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  y = MatMul(s, v) }}",
)
DIFFERENT["a Softmax over another axis"] = (
    f"{SCORES} {BIASES} {{ n = Add(k, b)  {TURNED_KEYS}(n)  s = MatMul(q, t)"
    "  p = Softmax<axis=1>(s)  y = MatMul(p, v) }",
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  p = Softmax<axis=1>(s)"
    "  y = MatMul(p, v) }",
)
DIFFERENT["a mask that a Softmax sees"] = (
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  r = Add(s, m)  p = Softmax(r)"
    "  y = MatMul(p, v) }",
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  p = Softmax(s)  y = MatMul(p, v) }}",
)
DIFFERENT["a bias of values behind rows of another sum"] = (
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  p = Softmax(s)  w = Mul(p, h)"
    "  n = Add(v, c)  y = MatMul(w, n) }",
    f"{SCORES} {BIASES} {{ {TURNED_KEYS}(k)  s = MatMul(q, t)  p = Softmax(s)  w = Mul(p, h)"
    "  n = MatMul(w, v)  y = Add(n, c) }",
)


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_over_the_reals_is_proved(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.domain == "reals", found.reason


@pytest.mark.parametrize("name", SAME_BITS)
def test_what_has_the_same_bits_is_proved(name: str) -> None:
    found = proof(*SAME_BITS[name])
    assert found.domain == "bits", found.reason


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not_proved(name: str) -> None:
    assert not proof(*DIFFERENT[name]).domain
