"""Axis maps of matrix products and of Einsum."""

import pytest

from tests.analysis.axes.rules.maps import map_of, why_not, written
from tiered.analysis.axes.axis_map import Axes, AxisMap, IteratorKind

OPAQUE, SUM = IteratorKind.OPAQUE, IteratorKind.REDUCTION


@pytest.mark.parametrize(
    ("left", "right", "one", "other", "made", "inner"),
    [
        ("[2,3]", "[3,4]", (0, 1), (1, 2), (0, 2), 1),
        ("[5,2,3]", "[3,4]", (0, 1, 2), (2, 3), (0, 1, 3), 2),
        ("[2,3]", "[5,3,4]", (1, 2), (0, 2, 3), (0, 1, 3), 2),
        ("[6,5,2,3]", "[5,3,4]", (0, 1, 2, 3), (1, 3, 4), (0, 1, 2, 4), 3),
        ("[3]", "[3,4]", (1,), (1, 2), (2,), 1),
        ("[2,3]", "[3]", (0, 1), (1,), (0,), 1),
        ("[3]", "[3]", (1,), (1,), (), 1),
        ("[3]", "[5,3,4]", (2,), (0, 2, 3), (0, 3), 2),
        ("[5,2,3]", "[3]", (0, 1, 2), (2,), (0, 1), 2),
    ],
)
def test_a_product_sums_over_the_inner_axis(
    left: str, right: str, one: Axes, other: Axes, made: Axes, inner: int
) -> None:
    axes = map_of(f"(float{left} x, float{right} w) => (y) {{ y = MatMul(x, w) }}")
    assert axes == AxisMap((one, other), (made,), {inner: SUM}, broadcasts=(0, 1))


@pytest.mark.parametrize(("left", "right"), [("", "[3]"), ("[3]", "")])
def test_a_product_of_a_scalar_has_no_map(left: str, right: str) -> None:
    text = f"(float{left} x, float{right} w) => (float y) {{ y = MatMul(x, w) }}"
    assert why_not(text) == "an operand is a scalar"


@pytest.mark.parametrize(
    ("row", "column", "inputs"),
    [
        ("uint8", "uint8", (None, None)),
        ("uint8[1]", "uint8[1]", (None, None)),
        ("uint8[2]", "uint8[4]", ((1,), (3,))),
    ],
)
def test_zero_points_are_for_rows_and_columns(
    row: str, column: str, inputs: tuple[Axes | None, ...]
) -> None:
    axes = map_of(
        f"(uint8[5,2,3] x, uint8[3,4] w, {row} p, {column} q) => (y)"
        "{ y = MatMulInteger(x, w, p, q) }"
    )
    expected = ((0, 1, 2), (2, 3), *inputs)
    assert axes == AxisMap(expected, ((0, 1, 3),), {2: SUM}, broadcasts=(0, 1, 2, 3))


def test_an_absent_zero_point_has_no_axes() -> None:
    axes = map_of(
        "(uint8[2,3] x, uint8[3,4] w, uint8[4] q) => (y) { y = MatMulInteger(x, w, , q) }"
    )
    assert axes.inputs == ((0, 1), (1, 2), None, (2,))


QUANTIZED = """(uint8[2,3] x, {s} s, {z} z, uint8[3,4] w, {t} t, {q} q, {u} u, uint8 v) => (y)
    {{ y = QLinearMatMul(x, s, z, w, t, q, u, v) }}"""


def test_scales_are_for_rows_and_columns() -> None:
    axes = map_of(QUANTIZED.format(s="float[2]", z="uint8[2]", t="float[4]", q="uint8", u="float"))
    inputs = ((0, 1), (0,), (0,), (1, 2), (2,), None, None, None)
    assert axes == AxisMap(inputs, ((0, 2),), {1: SUM}, broadcasts=(0, 3, 1, 2, 4, 5))


@pytest.mark.parametrize("changed", [{"u": "float[4]"}, {"t": "float[1,4]"}, {"s": "float[2,1]"}])
def test_a_scale_of_two_axes_or_of_the_result_is_not_known(changed: dict[str, str]) -> None:
    types = {"s": "float", "z": "uint8", "t": "float", "q": "uint8", "u": "float", **changed}
    assert why_not(QUANTIZED.format(**types)) == "a scale or zero point is neither a scalar nor 1-D"


@pytest.mark.parametrize(
    ("attributes", "left", "right", "inputs"),
    [
        ("", "[3,4]", "[4,5]", ((0, 2), (2, 1))),
        ("<transA=1>", "[4,3]", "[4,5]", ((2, 0), (2, 1))),
        ("<transB=1>", "[3,4]", "[5,4]", ((0, 2), (1, 2))),
    ],
)
def test_matrices_of_a_gemm_may_be_transposed(
    attributes: str, left: str, right: str, inputs: tuple[Axes, ...]
) -> None:
    text = f"(float{left} x, float{right} w) => (y) {{ y = Gemm{attributes}(x, w) }}"
    assert map_of(text) == AxisMap(inputs, ((0, 1),), {2: SUM}, broadcasts=(2,))


@pytest.mark.parametrize(("bias", "axes"), [("", ()), ("[5]", (1,)), ("[3,1]", (0, 1))])
def test_the_bias_of_a_gemm_broadcasts(bias: str, axes: Axes) -> None:
    text = f"(float[3,4] x, float[4,5] w, float{bias} b) => (y) {{ y = Gemm(x, w, b) }}"
    assert map_of(text).inputs == ((0, 2), (2, 1), axes)


def test_before_opset_7_the_bias_of_a_gemm_broadcasts_in_another_way() -> None:
    text = "(float[3,4] x, float[4,5] w, float[5] b) => (y) { y = Gemm<broadcast=1>(x, w, b) }"
    assert why_not(text, 6) == "its opset broadcasts in another way"


@pytest.mark.parametrize(
    ("equation", "operands", "terms", "result", "kinds"),
    [
        ("bij,bjk->bik", "float[2,3,4] x, float[2,4,5] w", ("bij", "bjk"), "bik", {"j": SUM}),
        ("ij, jk", "float[3,4] x, float[4,5] w", ("ij", "jk"), "ik", {"j": SUM}),
        ("bii->bi", "float[2,3,3] x", ("bii",), "bi", {"i": OPAQUE}),
        ("ii->", "float[3,3] x", ("ii",), "", {"i": OPAQUE}),
        ("ba", "float[2,3] x", ("ba",), "ab", {}),
    ],
)
def test_letters_of_an_einsum_are_its_iterators(
    equation: str,
    operands: str,
    terms: tuple[str, ...],
    result: str,
    kinds: dict[str, IteratorKind],
) -> None:
    names = ", ".join(each.split()[-1] for each in operands.split(", "))
    text = f'({operands}) => (y) {{ y = Einsum<equation="{equation}">({names}) }}'
    labels = {ord(letter): kind for letter, kind in kinds.items()}
    inputs = tuple(tuple(map(ord, term)) for term in terms)
    assert map_of(text) == AxisMap(inputs, (tuple(map(ord, result)),), labels)


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("...i->i", "its equation has an ellipsis, or a letter twice in its result"),
        ("ij->ii", "its equation has an ellipsis, or a letter twice in its result"),
        ("i->i", "its equation is for operands of other ranks"),
        ("ij,j->i", "its equation is for operands of other ranks"),
    ],
)
def test_an_equation_that_is_not_read_has_no_map(equation: str, reason: str) -> None:
    text = f'(float[3,3] x) => (float[3] y) {{ y = Einsum<equation="{equation}">(x) }}'
    assert why_not(text) == reason


def test_the_iterators_of_the_operands_and_results() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x, float[4,5] w) => (y) { y = MatMul(x, w) }", 21,
         "0 1 2, 2 3 -> 0 1 3 | reduction 2 | broadcasts 0 1"),
        ("(float[4] x, float[2,4,5] w) => (y) { y = MatMul(x, w) }", 21,
         "2, 0 2 3 -> 0 3 | reduction 2 | broadcasts 0 1"),
        ("(float[2,3,4] x, float[4] w) => (y) { y = MatMul(x, w) }", 21,
         "0 1 2, 2 -> 0 1 | reduction 2 | broadcasts 0 1"),
        ("(float[4] x, float[4] w) => (y) { y = MatMul(x, w) }", 21,
         "1, 1 -> () | reduction 1 | broadcasts 0 1"),
        ("(float[7,2,3,4] x, float[2,4,5] w) => (y) { y = MatMul(x, w) }", 21,
         "0 1 2 3, 1 3 4 -> 0 1 2 4 | reduction 3 | broadcasts 0 1"),
        ("(uint8[3,4] x, uint8[4,5] w, uint8[3] p, uint8[5] q) => (y) { y = MatMulInteger(x, w, "
         "p, q) }", 21, "0 1, 1 2, 0, 2 -> 0 2 | reduction 1 | broadcasts 0 1 2 3"),
        ("(uint8[3,4] x, uint8[4,5] w, uint8 p) => (y) { y = MatMulInteger(x, w, p) }", 21,
         "0 1, 1 2, - -> 0 2 | reduction 1 | broadcasts 0 1 2 3"),
        ("(uint8[3,4] x, uint8[4,5] w, uint8[3,1] p) => (y) { y = MatMulInteger(x, w, p) }", 21,
         "no: a scale or zero point is neither a scalar nor 1-D"),
        ("(uint8[3,4] x, float[3] s, uint8 p, uint8[4,5] w, float[5] t, uint8[5] q, float o) => "
         "(y) { y = QLinearMatMul(x, s, p, w, t, q, o, p) }", 21,
          "0 1, 0, -, 1 2, 2, 2, -, - -> 0 2 | reduction 1 | broadcasts 0 3 1 2 4 5"),
        ("(uint8[3,4] x, float s, uint8 p, uint8[4,5] w, float t, uint8 q, float[3] o) => (y) { "
         "y = QLinearMatMul(x, s, p, w, t, q, o, p) }", 21,
          "no: a scale or zero point is neither a scalar nor 1-D"),
        ("(float[3,4] x, float[4,5] w) => (y) { y = Gemm(x, w) }", 21,
         "0 2, 2 1 -> 0 1 | reduction 2 | broadcasts 2"),
        ("(float[4,3] x, float[5,4] w, float[5] b) => (y) { y = Gemm<transA=1, transB=1>(x, w, "
         "b) }", 21, "2 0, 1 2, 1 -> 0 1 | reduction 2 | broadcasts 2"),
        ("(float[3,4] x, float[4,5] w, float[3,1] b) => (y) { y = Gemm(x, w, b) }", 21,
         "0 2, 2 1, 0 1 -> 0 1 | reduction 2 | broadcasts 2"),
        ("(float[3,4] x, float[4,5] w, float[5] b) => (y) { y = Gemm(x, w, b) }", 7,
         "0 2, 2 1, 1 -> 0 1 | reduction 2 | broadcasts 2"),
        ("(float[3,4] x, float[4,5] w, float[5] b) => (y) { y = Gemm(x, w, b) }", 6,
         "no: its opset broadcasts in another way"),
        ('(float[3,4] x, float[4,5] w) => (y) { y = Einsum<equation="ij,jk->ik">(x, w) }', 21,
         "105 106, 106 107 -> 105 107 | reduction 106"),
        ('(float[3,3] x) => (y) { y = Einsum<equation="ii->i">(x) }', 21,
         "105 105 -> 105 | opaque 105"),
        ('(float[3,3] x) => (y) { y = Einsum<equation="...j->j">(x) }', 21,
         "no: its equation has an ellipsis, or a letter twice in its result"),
        ('(float[3,3] x) => (y) { y = Einsum<equation="ijk->i">(x) }', 21,
         "no: its equation is for operands of other ranks"),
    ):  # fmt: skip
        assert written(text, opset) == expected, text
