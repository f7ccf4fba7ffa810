"""Products: swapped operands, flags, equations, and constants that cost nothing to transpose."""

from tests.analysis.layout.rules.writing import known, node_of, order_of, written
from tiered import Node

WEIGHT = "<float[4,5] w = {" + ",".join(map(str, range(20))) + "}>"


def shapes(node: Node) -> list[object]:
    return [None if value is None else value.shape for value in node.inputs]


def test_the_transpose_of_a_product_has_its_operands_swapped() -> None:
    text = f"(float[2,3,4] x) => (float[2,3,5] y) {WEIGHT} {{ y = MatMul(x, w) }}"
    made = written(text, (0, 2, 1), of_result=True)
    assert shapes(made) == [(5, 4), (2, 4, 3)]
    assert made.inputs[0] is not None
    assert made.inputs[0].const is not None
    assert made.inputs[0].const[0].tolist() == [0, 5, 10, 15]


def test_a_constant_has_no_labels_and_its_sum_is_where_the_result_is() -> None:
    text = f"(float[2,3,4] x) => (float[2,3,5] y) {WEIGHT} {{ y = MatMul(x, w) }}"
    found = known(node_of(text))
    assert found.inputs == ((0, 1, 2), None)
    assert found.outputs == ((0, 1, 2),)


def test_the_batch_stays_before_the_matrices() -> None:
    text = "(float[2,3,4,5] x, float[2,3,5,6] w) => (y) { y = MatMul(x, w) }"
    assert order_of(node_of(text), (1, 0, 2, 3)) is not None
    assert order_of(node_of(text), (0, 2, 1, 3)) is None


def test_a_vector_is_the_second_operand_or_the_first() -> None:
    text = "(float[2,3,4] x, float[4] v) => (y) { y = MatMul(x, v) }"
    assert shapes(written(text, (1, 0, 2))) == [(3, 2, 4), (4,)]
    assert shapes(written(text, (0, 2, 1))) == [(4,), (2, 4, 3)]


def test_flags_transpose_each_operand_of_a_gemm_alone() -> None:
    text = "(float[3,4] x, float[4,5] w, float[5] b) => (y) { y = Gemm(x, w, b) }"
    made = written(text, (1, 0))
    assert (made.attr("transA"), made.attr("transB")) == (1, 0)
    made = written(text, (1, 0), of_result=True)
    assert (made.attr("transA"), made.attr("transB")) == (1, 1)
    assert shapes(made)[2] == (5, 1)


def test_an_equation_is_written_anew() -> None:
    text = '(float[2,3,4] x, float[4,5] w) => (y) { y = Einsum<equation="bij,jk->bik">(x, w) }'
    assert written(text, (2, 0, 1)).attr("equation") == "jbi,jk->kbi"
