import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_close, floats
from tiered import Model, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

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
    ("equation", "a", "b", "operators"),
    [
        ("ijk,ijk->i", "2,3,4", "2,3,4", "Reshape Reshape MatMul Reshape"),
        ("bthd,hdm->btm", "2,5,3,4", "3,4,6", "Reshape Reshape MatMul Reshape"),
        ("bqd,dhk->bhqk", "2,5,3", "3,4,6", "Reshape Reshape MatMul Reshape Transpose"),
        ("bhqk,bkhd->bqhd", "2,3,4,5", "2,5,3,6", "Transpose MatMul Transpose"),
        ("jki,kjl->il", "3,4,2", "4,3,5", "Transpose Reshape Transpose Reshape MatMul Reshape"),
        ("ij,j->i", "2,3", "3", "Reshape Reshape MatMul Reshape"),
        ("j,jk->k", "3", "3,2", "Reshape Reshape MatMul Reshape"),
        ("ij,ij->i", "2,3", "2,3", "Reshape Reshape MatMul Reshape"),
        ("ij,ji->j", "2,3", "3,2", "Transpose Reshape Reshape MatMul Reshape"),
    ],
)
def test_several_labels_are_one_dim(equation: str, a: str, b: str, operators: str) -> None:
    shapes = [[int(size) for size in each.split(",")] for each in (a, b)]
    x, y = (floats(*shape, seed=at) for at, shape in enumerate(shapes))
    out = ",".join("1" * np.einsum(equation, x, y).ndim).replace("1", "N")
    head = f"(float[{a}] a, float[{b}] b) => (float{f'[{out}]' if out else ''} y)"
    text = f'{head} {{ y = Einsum<equation="{equation}">(a, b) }}'
    found = assert_close(PASS, text, {"a": x, "b": y})
    assert sorted(found) == sorted(operators.split())


@pytest.mark.parametrize(
    ("equation", "a", "b", "targets"),
    [
        # The dynamic batch of all three tensors stays a dim, another dynamic dim is the -1.
        ("bqhd,hdm->bqm", "N,5,3,4", "3,4,6", [[-1, 12], [12, 6], [-1, 5, 6]]),
        ("bhdq,bhdk->bqk", "N,2,3,4", "N,2,3,5", [[0, 4, 6], [0, 6, 5], [0, 4, 5]]),
    ],
)
def test_a_dynamic_dim(equation: str, a: str, b: str, targets: list[list[int]]) -> None:
    feeds = {
        name: floats(*(int(size.replace("N", "7")) for size in shape.split(",")), seed=len(name))
        for name, shape in (("a", a), ("b", b))
    }
    out = ",".join("XYZW"[: len(equation.split("->")[1])])
    head = f"(float[{a}] a, float[{b}] b) => (float[{out}] y)"
    text = f'{head} {{ y = Einsum<equation="{equation}">(a, b) }}'
    assert "Einsum" not in assert_close(PASS, text, feeds)
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    made = [node.inputs[1] for node in model.main.nodes_of("Reshape")]
    found = [value.const.tolist() for value in made if value and value.const is not None]
    assert sorted(found) == sorted(targets)


@pytest.mark.parametrize(
    ("equation", "a", "b", "because"),
    [
        ("ij,jk", "2,3", "3,4", "the equation is implicit"),
        ("...ij,jk->...ik", "2,3", "3,4", "the equation is implicit"),
        ("ii,ij->ij", "3,3", "3,4", "a label occurs twice in one operand"),
        ("ij,jk->i", "2,3", "3,4", "a label occurs in one term only"),
        ("i,j->ij", "2", "3", "no label is summed over"),
        ("ijk,jkl->il", "N,2,M", "2,M,4", "several dims are not known"),
        ("ijk,jkl->il", "2,0,3", "0,3,4", "a dim is 0"),
        ("bij,bj->bi", "N,M,3", "N,3", "several dims are not known"),
        ("ij,jk->ik", "2,N", "M,4", "sizes of label 'j' may differ"),
        ("bij,bjk->bik", "1,2,3", "N,3,4", "sizes of label 'b' may differ"),
    ],
)
def test_other_equations_stay(equation: str, a: str, b: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f'(float[{a}] a, float[{b}] b) => (y) {{ y = Einsum<equation="{equation}">(a, b) }}',
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
