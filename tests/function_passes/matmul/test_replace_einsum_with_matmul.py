import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_einsum_with_matmul"


# Sizes are known: onnxruntime's Einsum ends the process where one is 0.
@pytest.mark.parametrize(
    ("equation", "a", "b", "y", "nodes"),
    [
        ("ij,jk->ik", "2,3", "3,4", "2,4", "y = MatMul(a, b)"),
        ("bhij,bhjd->bhid", "2,2,3,4", "2,2,4,5", "2,2,3,5", "y = MatMul(a, b)"),
        (
            "bhid,bhjd->bhij",
            *("2,2,3,4", "2,2,5,4", "2,2,3,5"),
            "t = Transpose<perm=[0,1,3,2]>(b) y = MatMul(a, t)",
        ),
        ("bsh, hd -> bsd", "2,3,4", "4,5", "2,3,5", "y = MatMul(a, b)"),
        (
            "ij,kj->ki",
            *("2,3", "4,3", "4,2"),
            "y = Gemm<transB=1>(b, a)",
        ),
        ("ji,jk->ik", "3,2", "3,4", "2,4", "y = Gemm<transA=1>(a, b)"),
        ("ij,jk->ki", "2,3", "3,4", "4,2", "y = Gemm<transA=1, transB=1>(b, a)"),
        ("ij,kj->ik", "2,3", "4,3", "2,4", "y = Gemm<transB=1>(a, b)"),
        ("ji,kj->ik", "3,2", "4,3", "2,4", "y = Gemm<transA=1, transB=1>(a, b)"),
        ("ji,kj->ki", "3,2", "4,3", "4,2", "y = Gemm(b, a)"),
    ],
)
def test_one_summed_label_is_a_product_of_matrices(
    equation: str, a: str, b: str, y: str, nodes: str
) -> None:
    interface = f"(float[{a}] a, float[{b}] b) => (float[{y}] y)"
    assert_rewrites(
        PASS,
        f'{interface} {{ y = Einsum<equation="{equation}">(a, b) }}',
        f"{interface} {{ {nodes} }}",
    )


@pytest.mark.parametrize(
    ("equation", "a", "b", "because"),
    [
        ("ij,jk", "2,3", "3,4", "the equation is implicit"),
        ("...ij,jk->...ik", "2,3", "3,4", "the equation is implicit"),
        ("ii,ij->ij", "3,3", "3,4", "a label occurs twice in one operand"),
        ("ij,jk->i", "2,3", "3,4", "a label occurs in one term only"),
        ("ijk,ijk->i", "2,3,4", "2,3,4", "a single matrix product needs a Reshape"),
        ("i,j->ij", "2", "3", "a single matrix product needs a Reshape"),
        ("ij,jk->ik", "2,N", "M,4", "sizes of label 'j' may differ"),
        ("bij,bjk->bik", "1,2,3", "N,3,4", "sizes of label 'b' may differ"),
    ],
)
def test_other_equations_stay(equation: str, a: str, b: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[{a}] a, float[{b}] b) => (y)"
        f' {{ y = Einsum<equation="{equation}">(a, b) }}',
        because=because,
    )


def test_small_integers_stay() -> None:
    assert_unchanged(
        PASS,
        '(int8[2,3] a, int8[3,4] b) => (int8[2,4] y) { y = Einsum<equation="ij,jk->ik">(a, b) }',
        because="MatMul has no kernel for the dtype",
    )


def test_integers_in_another_order_are_transposed() -> None:
    head = "(int32[2,3] a, int32[4,3] b) => (int32[4,2] y)"
    assert_rewrites(
        PASS,
        f'{head} {{ y = Einsum<equation="ij,kj->ki">(a, b) }}',
        f"{head} {{ t = Transpose<perm=[1,0]>(b) m = MatMul(a, t) y = Transpose<perm=[1,0]>(m) }}",
    )
