"""Multiply-adds of onnxruntime's fused operators: those of the operators that they stand for."""

import pytest

from tiered.graph import Model
from tiered.graph.queries.multiply_adds import multiply_adds
from tiered.testing import parse

MS = "com.microsoft"


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = MatMul(x, w) }", 2 * 3 * 4),
        (f"(float[3,2] x, float[3,4] w) => (float[2,4] y) {{ y = {MS}.FusedMatMul <transA = 1> (x, w) }}",
         2 * 3 * 4),
        (f"(float[2,3] x, float[4,3] w) => (float[2,4] y) {{ y = {MS}.FusedMatMul <transB = 1> (x, w) }}",
         2 * 3 * 4),
        (f"(float[3,2] x, float[4,3] w) => (float[2,4] y) "
         f"{{ y = {MS}.FusedGemm <transA = 1, transB = 1> (x, w) }}", 2 * 3 * 4),
        (f"(float[1,3,4,4] x, float[8,3,3,3] w) => (float[1,8,2,2] y) {{ y = {MS}.FusedConv(x, w) }}",
         8 * 2 * 2 * 27),
        (f"(float[2,5,8] x, float[8,24] w, float[24] b) => (float[2,5,8] y) "
         f"{{ y = {MS}.Attention <num_heads = 2> (x, w, b) }}", 10 * 8 * 24 + 2 * 10 * 5 * 8),
        (f"(float[2,5,8] q, float[2,7,8] k, float[2,7,8] v) => (float[2,5,8] y) "
         f"{{ y = {MS}.MultiHeadAttention <num_heads = 2> (q, k, v) }}", 2 * (2 * 5 * 8) * 7),
        (f"(int8[2,3] x, float s, int8 z, int8[4,3] w, float t, int8 u) => (float[2,4] y) "
         f"{{ y = {MS}.QGemm <transB = 1> (x, s, z, w, t, u) }}", 2 * 3 * 4),
        (f"(float[5,64] x, uint8[6,2,16] w, float[12] s) => (float[5,6] y) "
         f"{{ y = {MS}.MatMulNBits <K = 64, N = 6, bits = 4, block_size = 32> (x, w, s) }}",
         5 * 6 * 64),
        (f"(float[2,3] x) => (float[2,3] y) {{ y = {MS}.Gelu(x) }}", 0),
    ],
)  # fmt: skip
def test_products_are_counted(text: str, products: int) -> None:
    model = Model.from_proto(parse(text))
    (node,) = model.main.nodes
    assert multiply_adds(node, lambda value: value.static_shape) == products
