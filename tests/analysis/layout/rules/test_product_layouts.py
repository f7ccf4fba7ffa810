"""Products: swapped operands, flags, equations, and constants that cost nothing to transpose."""

from tests.analysis.layout.rules.writing import known, node_of, order_of, orders_of_operand, written
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
    text = "(float[4] v, float[2,4,5] x) => (y) { y = MatMul(v, x) }"
    assert (known(node_of(text)).inputs, known(node_of(text)).outputs) == (
        (None, (0, 2, 3)), ((0, 3),),
    )  # fmt: skip
    assert shapes(written(text, (1, 0), of_result=True)) == [(5, 2, 4), (4,)]


def test_a_constant_on_either_side_is_transposed_with_its_batch() -> None:
    text = f"(float[2,5,4] x) => (y) {WEIGHT} {{ y = MatMul(w, x) }}"
    assert known(node_of(text)).inputs == (None, (0, 2, 3))
    made = written(text, (0, 2, 1), of_result=True)
    assert shapes(made) == [(2, 4, 5), (5, 4)]
    numbers = ",".join(map(str, range(30)))
    text = f"(float[2,3,4,5] x) => (y) <float[3,5,2] w = {{{numbers}}}> {{ y = MatMul(x, w) }}"
    for perm, expected in (
        ((0, 1, 3, 2), [(3, 2, 5), (2, 3, 5, 4)]),
        ((1, 0, 2, 3), [(3, 2, 4, 5), (3, 1, 5, 2)]),
        ((1, 0, 3, 2), [(3, 1, 2, 5), (3, 2, 5, 4)]),
    ):
        made = written(text, perm, of_result=True)
        assert shapes(made) == expected, perm
        constants = [array for at in range(2) if (array := made.const(at)) is not None]
        first = constants[0].ravel()[:3].tolist()
        assert first == ([0, 1, 2] if perm[2] == 2 else [0, 2, 4]), perm


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


def test_the_orders_of_the_operand_and_what_is_written_in_each() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x, float[2,4,5] w) => (y) { y = MatMul(x, w) }", 21, {}),
        ("(float[2,3,4] x, float[4,5] w) => (y) { y = MatMul(x, w) }", 21, {}),
        ("(float[3,4] x, float[2,4,5] w) => (y) { y = MatMul(x, w) }", 21, {}),
        ("(float[4] x, float[4] w) => (y) { y = MatMul(x, w) }", 21,
         "both operands are vectors"),
        ("(float[2,3,4] x, float[4] w) => (y) { y = MatMul(x, w) }", 21,
         {"021": "", "102": "", "120": ""}),
        ("(float[2,3,4] x) => (y) <float[4,2] w = {1,2,3,4,5,6,7,8}> { y = MatMul(x, w) }", 21,
         {"021": ""}),
        ("(float[2,3,2] x) => (y) <float[2,2,2] w = {1,2,3,4,5,6,7,8}> { y = MatMul(x, w) }", 21,
         {"021": ""}),
        ("(float[3,4] x, float[4,5] w, float[5] b) => (y) { y = Gemm(x, w, b) }", 21,
         {"10": "transA=1"}),
        ("(float[4,3] x, float[4,5] w) => (y) { y = Gemm<transA=1>(x, w) }", 21, {"10": ""}),
        ("(float[3,3] x) => (y) { y = Gemm<transB=1>(x, x) }", 21, {"10": "transA=1"}),
        ('(float[2,3,4] x, float[4,5] w) => (y) { y = Einsum<equation="bij,jk->bik">(x, w) }', 21,
         {"021": "equation=bji,jk->bki", "102": "equation=ibj,jk->ibk",
          "120": "equation=ijb,jk->ikb", "201": "equation=jbi,jk->kbi",
          "210": "equation=jib,jk->kib"}),
        ('(float[3,3] x) => (y) { y = Einsum<equation="ii->i">(x) }', 21,
         "its equation reads an operand along a diagonal"),
        ('(float[2,3,4] x, float[4,5] w) => (y) { y = Einsum<equation="bij,jk">(x, w) }', 21,
         {"021": "equation=bji,jk->bki", "102": "equation=ibj,jk->ibk",
          "120": "equation=ijb,jk->ikb", "201": "equation=jbi,jk->kbi",
          "210": "equation=jib,jk->kib"}),
    ):  # fmt: skip
        assert orders_of_operand(text, opset) == expected, text
