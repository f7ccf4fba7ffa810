"""Gradients of products: vectors, stacks, empty and named dims, factors, and refused labels."""

import pytest

from tests.extensions.gradients.differences import check
from tiered import get_pass
from tiered.support.errors import TieredError
from tiered.testing import parse


@pytest.mark.parametrize(
    ("a", "b", "y"),
    [
        ("2,3", "3,4", "2,4"),
        ("3", "3,4", "4"),
        ("2,3", "3", "2"),
        ("3", "3", ""),
        ("3", "5,3,4", "5,4"),
        ("5,2,3", "3", "5,2"),
        ("5,2,3", "3,4", "5,2,4"),
        ("5,1,2,3", "6,3,4", "5,6,2,4"),
        ("1,2,3", "6,3,4", "6,2,4"),
        ("2,3,4", "2,4,5", "2,3,5"),
        ("B,S,4", "4,5", "B,S,5"),
    ],
)
def test_matrix_products_of_vectors_and_stacks(a: str, b: str, y: str) -> None:
    result = f"double[{y}]" if y else "double"
    check(f"(double[{a}] a, double[{b}] b) => ({result} y) {{ y = MatMul(a, b) }}")


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("c", "beta"), [("4", "1.0"), ("2,1", "0.5"), ("2,4", "2.0")])
def test_a_gemm_in_all_its_forms(trans_a: int, trans_b: int, c: str, beta: str) -> None:
    a, b = ("3,2" if trans_a else "2,3"), ("4,3" if trans_b else "3,4")
    attributes = f"alpha = 0.5, beta = {beta}, transA = {trans_a}, transB = {trans_b}"
    check(
        f"(double[{a}] a, double[{b}] b, double[{c}] c) => (double[2,4] y)"
        f" {{ y = Gemm<{attributes}>(a, b, c) }}"
    )


@pytest.mark.parametrize(
    ("equation", "a", "b", "y"),
    [
        ("ij,jk->ik", "2,3", "3,4", "2,4"),
        ("ij,jk", "2,3", "3,4", "2,4"),
        ("ij,jk->k", "2,3", "3,4", "4"),  # a label that is summed and only one operand has
        ("bij,bjk->bik", "5,2,3", "5,3,4", "5,2,4"),
        ("...ij,...jk->...ik", "5,2,3", "5,3,4", "5,2,4"),
        ("ij,j", "3,4", "4", "3"),
        ("ij,k->i", "3,4", "5", "3"),
        ("i,j->ij", "3", "4", "3,4"),
        ("ii,ij->ij", "3,3", "3,4", "3,4"),  # a diagonal
    ],
)
def test_sums_of_products_by_labels(equation: str, a: str, b: str, y: str) -> None:
    check(
        f"(double[{a}] a, double[{b}] b) => (double[{y}] y)"
        f' {{ y = Einsum<equation = "{equation}">(a, b) }}'
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            """(float[1,3] a, float[4,3] b) => (float[N,M] y) {
            y = Einsum<equation = "ij,ij->ij">(a, b) }""",
            "label 'i' is broadcast",
        ),
        ("(float[N,N] a) => (float y) { y = Det(a) }", "the size of its matrix is unknown"),
    ],
)
def test_what_has_no_gradient_is_named(text: str, because: str) -> None:
    with pytest.raises(TieredError, match=because):
        get_pass("gradient", seed="input")(parse(text))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_determinant_is_by_cofactors(size: int) -> None:
    check(f"(double[2,{size},{size}] a) => (double[2] y) {{ y = Det(a) }}")
