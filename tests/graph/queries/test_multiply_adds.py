"""Multiply-adds of onnxruntime's fused operators: those of the operators that they stand for."""

from collections.abc import Mapping

import pytest

from tiered.graph import Model, Value
from tiered.graph.queries.multiply_adds import Dims, is_product, multiply_adds
from tiered.testing import parse

MS = "com.microsoft"


def of_table(known: Mapping[str, tuple[int, ...]], other: Dims = lambda value: None) -> Dims:
    """Return the sizes of values by their names."""
    return lambda value: known.get(value.name) or other(value)


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
        ("(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = vendor.MatMul(x, w) }", 0),
        ("(float[3,2] x, float[3,4] w) => (float[2,4] y) { y = Gemm <transA = 1> (x, w) }", 24),
        ("(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = Gemm(x, w) }", 24),
        ("(float[2,3] x, float[4,3] w) => (float[2,4] y) { y = Gemm <transB = 1> (x, w) }", 24),
        ("(int8[2,3] x, int8[3,4] w) => (int32[2,4] y) { y = MatMulInteger(x, w) }", 24),
        ("(int8[2,3] x, float s, int8 z, int8[3,4] w) => (int8[2,4] y)"
         " { y = QLinearMatMul(x, s, z, w, s, z, s, z) }", 24),
        ("(float[3] x, float[3,4] w) => (float[4] y) { y = MatMul(x, w) }", 12),
        ("(float[2,3] x, float[3] w) => (float[2] y) { y = MatMul(x, w) }", 6),
        # One factor of unknown sizes is enough to know nothing, but for the axis that both have.
        ("(float[N,3] x, float[3,4] w) => (float[N,4] y) { y = MatMul(x, w) }", 0),
        ("(float[2,3] x, float[K,4] w) => (float[2,4] y) { y = MatMul(x, w) }", 24),
        ("(float[2,3] x, float[3,K] w) => (float[2,K] y) { y = MatMul(x, w) }", 0),
        ("(float[1,3,4,4] x, float[8,3,3,3] w) => (float[1,8,2,2] y) { y = Conv(x, w) }", 864),
        ("(float[1,3,4,4] x, float[8,3,K,K] w) => (float[1,8,2,2] y) { y = Conv(x, w) }", 0),
        ("(uint8[1,3,4,4] x, uint8[8,3,3,3] w) => (int32[1,8,2,2] y) { y = ConvInteger(x, w) }", 864),
        ("(uint8[1,3,4,4] x, float s, uint8 z, uint8[8,3,3,3] w) => (uint8[1,8,2,2] y)"
         " { y = QLinearConv(x, s, z, w, s, z, s, z) }", 864),
        ("(float[1,3,4,4] x, float[3,8,3,3] w) => (float[1,8,6,6] y) { y = ConvTranspose(x, w) }",
         48 * 72),
        ("(float[5,2,8] x, float[1,16,8] w, float[1,16,16] r) => (float[5,1,2,16] y)"
         " { y = RNN <hidden_size = 16> (x, w, r) }", 10 * (16 * 8 + 16 * 16)),
        ("(float[N,2,8] x, float[1,16,8] w, float[1,16,16] r) => (float[N,1,2,16] y)"
         " { y = RNN <hidden_size = 16> (x, w, r) }", 0),
        ("(float[5,2,8] x, float[1,16,8] w, float[1,H,H] r) => (float[5,1,2,16] y)"
         " { y = RNN <hidden_size = 16> (x, w, r) }", 0),
        ("(float[2,5,8] q, float[2,7,8] k, float[2,7,8] v) => (float[2,5,8] y)"
         " { y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v) }", 160 * 7),
        ("(float[2,5,8] q, float[2,7,8] k, float[2,7,8] v, float[2,2,3,4] p) => (float[2,5,8] y)"
         " { y, a, b = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v, , p, p) }", 160 * 10),
        (f"(float[2,5,8] q, float[2,7,8] k, float[2,7,8] v, int32[2,7] m) => (float[2,5,8] y) "
         f"{{ y = {MS}.MultiHeadAttention <num_heads = 2> (q, k, v, , m) }}", 160 * 7),
        (f"(float[2,B,8] x, float[8,24] w, float[24] b) => (float[2,B,8] y) "
         f"{{ y = {MS}.Attention <num_heads = 2> (x, w, b) }}", 0),
        (f"(float[10,8] x, float[8,24] w, float[24] b) => (float[10,8] y) "
         f"{{ y = {MS}.Attention <num_heads = 2> (x, w, b) }}", 0),
        (f"(float[2,5,8] x, float[1,8,24] w, float[24] b) => (float[2,5,8] y) "
         f"{{ y = {MS}.Attention <num_heads = 2> (x, w, b) }}", 0),
        ('(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = Einsum <equation = "i j, j k -> i k"> (x, w) }',
         24),
        ('(float[2,3] x) => (float[3,2] y) { y = Einsum <equation = "ij->ji"> (x) }', 0),
        ('(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = Einsum <equation = "ij->ij"> (x, w) }', 0),
        ('(float[2,3] x, float[N,4] w) => (float[2,4] y) { y = Einsum <equation = "ij,jk->ik"> (x, w) }', 0),
        ('(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = Einsum <equation = "ijk,jk->ik"> (x, w) }', 0),
        ('(float[9,1,2,3] x, float[5,3,4] w) => (float[9,5,2,4] y)'
         ' { y = Einsum <equation = "...ij,...jk->...ik"> (x, w) }', 9 * 5 * 24),
        ('(float[2,1] x, float[3,4] w) => (float[2,4] y) { y = Einsum <equation = "ij,jk->ik"> (x, w) }', 24),
        ("(float[2,3] x, float[3,4] w, bool c) => (float[2,4] y) { y = If(c) <"
         "then_branch = t () => (float[2,4] p) { p = MatMul(x, w) },"
         "else_branch = e () => (float[2,4] q) { r = MatMul(x, w) q = Neg(r) }> }", 48),
    ],
)  # fmt: skip
def test_products_are_counted(text: str, products: int) -> None:
    model = Model.from_proto(parse(text))
    node = model.main.nodes[-1]
    assert multiply_adds(node, lambda value: value.static_shape) == products


def test_the_size_of_an_axis_of_two_factors_is_that_of_the_static_one() -> None:
    def sizes(value: Value) -> tuple[int, ...]:
        assert value.shape is not None
        return tuple(dim if isinstance(dim, int) else 7 for dim in value.shape)

    for call, x, w, products in (
        ("MatMul(x, w)", "2,K", "3,4", 24), ("MatMul(x, w)", "2,3", "K,4", 24),
        ("MatMul(x, w)", "2,K", "K,4", 56), ("MatMul(x, w)", "2,K", "3", 24),
        ("MatMul(x, w)", "5,2,K", "5,3,4", 24), ("Gemm(x, w)", "2,K", "3,4", 24),
        ("Gemm<transA=1>(x, w)", "K,2", "3,4", 24), ("Gemm<transA=1>(x, w)", "3,M", "K,4", 24),
        ("Gemm<transB=1>(x, w)", "2,K", "4,3", 24), ("Gemm<transB=1>(x, w)", "2,3", "4,K", 24),
        (f"{MS}.FusedMatMul<transA=1>(x, w)", "9,3,2", "K,4", 24),
        (f"{MS}.FusedMatMul<transB=1>(x, w)", "2,K", "9,4,3", 24),
        ("QLinearMatMul(x, x, x, w, x, x, x, x)", "2,K", "3,4", 24),
        (f"{MS}.QGemm<transB=1>(x, x, x, w, x, x)", "2,K", "4,3", 24),
    ):  # fmt: skip
        text = f"(float[{x}] x, float[{w}] w) => (float[2,4] y) {{ y = {call} }}"
        (node,) = Model.from_proto(parse(text)).main.nodes
        assert multiply_adds(node, of_table({"y": (2, 4)}, sizes)) == products, call


def test_operands_whose_sizes_are_not_known_or_that_are_absent_cost_nothing() -> None:
    sizes = {"x": (2, 3, 4), "w": (3, 4, 5), "y": (2, 3, 5)}
    for call, unknown, products in (
        ("MatMul(x, w)", "", 120), ("MatMul(x, w)", "x", 0), ("MatMul(x, w)", "y", 0),
        ("MatMul(x, w)", "w", 120), ("Conv(x, w)", "", 600), ("Conv(x, w)", "x", 0), ("Conv(x, w)", "w", 0),
        ("Conv(x, w)", "y", 0), ("RNN(x, w, w)", "w", 0), ("RNN(x, w, w)", "x", 0),
        ("RNN<hidden_size=4>(x, w, w)", "", 6 * 120), ("Attention(x, w, w)", "", (24 + 30) * 4),
        ("Attention(x, w, w)", "y", 0), ("Attention(x, w, w, w)", "", (24 + 30) * 4),
        (f"{MS}.MultiHeadAttention<num_heads=1>(x)", "", 0),
        (f"{MS}.MultiHeadAttention<num_heads=1>(x, w)", "", 0),
        (f"{MS}.MultiHeadAttention<num_heads=1>(x, w, , w)", "", 0),
        (f"{MS}.Attention<num_heads=1>(x, v)", "", 6 * 20 + 2 * 6 * 3 * 5 // 3),
    ):  # fmt: skip
        text = (
            f"(float[a,b,c] x, float[d,e,f] w, float[g,h] v) => (float[i,j,k] y) {{ y = {call} }}"
        )
        (node,) = Model.from_proto(parse(text)).main.nodes
        known = {name: size for name, size in (sizes | {"v": (4, 5)}).items() if name != unknown}
        assert multiply_adds(node, of_table(known)) == products, call
    graph = Model.from_proto(parse("(float[2,3] x) => (float y) { y = Conv(x, x) }")).main
    (node,), (x,) = graph.nodes, graph.inputs
    assert multiply_adds(graph.add_node("MatMul", (x, x), 0), lambda value: (2, 3)) == 0
    for index, products in ((1, 0), (0, 0)):
        graph.set_input(node, index, None)
        assert multiply_adds(node, lambda value: (2, 3)) == products


def test_both_directions_of_a_sequence_are_counted() -> None:
    text = """(float[5,2,8] x, float[2,3,8] w, float[2,3,3] r) => (float[5,2,2,3] y)
        { y = RNN<hidden_size = 3, direction = "bidirectional">(x, w, r) }"""
    (node,) = Model.from_proto(parse(text)).main.nodes
    assert multiply_adds(node, lambda value: value.static_shape) == 10 * 2 * (3 * 8 + 3 * 3)


def test_products_are_matrix_products_and_convolutions() -> None:
    for call, expected in (
        ("MatMul(x, x)", True),
        ("Conv(x, x)", True),
        ("ConvTranspose(x, x)", True),
        (f"{MS}.FusedConv(x, x)", True),
        (f"{MS}.MultiHeadAttention(x, x, x)", False),
        ("com.ms.internal.nhwc.Conv(x, x)", True),
        ("vendor.MatMul(x, x)", False),
        ("Relu(x)", False),
    ):
        model = Model.from_proto(parse(f"(float[1,1,1,1] x) => (float y) {{ y = {call} }}"))
        assert is_product(model.main.nodes[0]) is expected, call
