"""Products: an element is a function of its row and its column, in whatever form they stand."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import call as called, known
from tests.certify.test_checker import proof
from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.evaluation.call import EvaluatedCall, NoRule
from tiered.certify.evaluation.evaluate import NameScope, ProofSetting
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.rules.product_terms import PRODUCTS

FLOAT = int(onnx.TensorProto.FLOAT)


def _unknown(at: int, shape: tuple[int, ...]) -> CheckedTensor:
    return CheckedTensor(FLOAT, shape, lambda: Bits().free((at,), shape))


def call(op: str, *shapes: tuple[int, ...], trusts: bool = True, **held: Any) -> EvaluatedCall:
    names = [f"x{at}" for at in range(len(shapes))]
    node = onnx.helper.make_node(op, names, ["y"], **held)
    scope = NameScope(ProofSetting(Bits(), RULES, {"": 21}, {}, trusts_runtime=trusts))
    inputs = [_unknown(at, shape) for at, shape in enumerate(shapes)]
    return EvaluatedCall(node, inputs, 21, Bits(), scope)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((2, 3), (3, 4)), (2, 4)),
        (((5, 1, 2, 3), (6, 3, 4)), (5, 6, 2, 4)),
        (((3,), (3, 4)), (4,)),
        (((2, 3), (3,)), (2,)),
        (((3,), (3,)), ()),
        (((3,), (7, 3, 4)), (7, 4)),
        (((7, 2, 3), (3,)), (7, 2)),
    ],
)
def test_vectors_are_rows_and_columns_that_leave_no_axis(
    shapes: tuple[tuple[int, ...], ...], expected: tuple[int, ...]
) -> None:
    (found,) = PRODUCTS["MatMul"](call("MatMul", *shapes))
    assert found is not None
    assert tuple(found.shape) == found.terms.shape == expected
    assert len(np.unique(found.terms)) == found.terms.size


@pytest.mark.parametrize(
    ("op", "shapes", "held", "because"),
    [
        ("MatMul", ((), (3,)), {}, "MatMul of a scalar"),
        ("MatMul", ((3,), ()), {}, "MatMul of a scalar"),
        ("MatMul", ((2, 3), (4, 2)), {}, "MatMul of shapes that do not fit"),
        ("Gemm", ((2, 3), (4, 2)), {}, "Gemm of shapes that do not fit"),
        ("Gemm", ((2, 3), (3, 4)), {"transA": 1}, "Gemm of shapes that do not fit"),
        ("Gemm", ((3,), (3, 4)), {}, "Gemm of shapes that do not fit"),
        ("Gemm", ((2, 3), (3, 4, 5)), {}, "Gemm of shapes that do not fit"),
        ("Conv", ((1, 4, 3, 3), (2, 3, 1, 1)), {}, "Conv of shapes that do not fit"),
        ("Conv", ((1, 4, 3, 3), (3, 2, 1, 1)), {"group": 2}, "Conv of shapes that do not fit"),
    ],
)
def test_shapes_that_do_not_fit_are_not_proved(
    op: str, shapes: tuple[tuple[int, ...], ...], held: dict[str, Any], because: str
) -> None:
    with pytest.raises(Unproved, match=because):
        PRODUCTS[op](call(op, *shapes, **held))


@pytest.mark.parametrize("op", PRODUCTS)
def test_without_trust_in_the_runtime_there_is_no_rule(op: str) -> None:
    shapes = ((1, 2, 3, 3), (2, 2, 1, 1)) if op == "Conv" else ((2, 2), (2, 2))
    with pytest.raises(NoRule):
        PRODUCTS[op](call(op, *shapes, trusts=False))
    trusted = call(op, *shapes)
    PRODUCTS[op](trusted)
    assert trusted.axioms == {"one-product-for-each-element"}


def test_a_conv_reads_its_window_its_kernel_and_its_bias() -> None:
    shapes = (1, 4, 3), (6, 2, 2), (6,)

    def terms(changed: int | None = None, at: tuple[int, ...] = ()) -> Any:
        node = call("Conv", *shapes, group=2)
        if changed is not None:
            numbers = node.operand(changed).terms.copy()
            numbers[at] = _unknown(9, ()).terms
            given = CheckedTensor(FLOAT, shapes[changed], lambda: numbers)
            node.inputs = [given if i == changed else x for i, x in enumerate(node.inputs)]
        (found,) = PRODUCTS["Conv"](node)
        assert found is not None
        assert found.shape == (1, 6, 2)
        return found.terms

    base = terms()
    assert len(np.unique(base)) == base.size
    (plain,) = PRODUCTS["Conv"](call("Conv", *shapes[:2], group=2))
    assert plain is not None
    assert (plain.terms != base).all()
    for changed, at, expected in (
        (0, (0, 1, 0), [(c, 0) for c in range(3)]),  # the first group, the first place
        (0, (0, 2, 1), [(c, p) for c in range(3, 6) for p in range(2)]),
        (1, (4, 0, 1), [(4, 0), (4, 1)]),
        (2, (5,), [(5, 0), (5, 1)]),
    ):
        differ = (terms(changed, at) != base)[0]
        assert [*zip(*map(list, np.nonzero(differ)), strict=True)] == expected, (changed, at)


def test_known_operands_and_absent_ones_have_no_rule() -> None:
    numbers = known(np.ones((2, 2)), np.float32)
    for op in ("Gemm", "Conv"):
        with pytest.raises(NoRule):
            PRODUCTS[op](called(op, numbers, numbers, None))


XW = "(float[2,3] x, float[3,4] w, float[4] b) => (float[2,4] y)"


@pytest.mark.parametrize(
    ("before", "after", "is_equal"),
    [
        ("t = Transpose(w)  y = Gemm<transB = 1>(x, t)", "y = MatMul(x, w)", True),
        ("y = Gemm(x, w, b)", "y = Gemm(x, w, b)", True),
        ("y = Gemm<alpha = 2.0>(x, w)", "y = MatMul(x, w)", False),
        ("y = Gemm<beta = 2.0>(x, w, b)", "y = Gemm(x, w, b)", False),
        ("t = Transpose(x)  y = Gemm<transA = 1>(t, w)", "y = MatMul(x, w)", True),
    ],
)
def test_a_gemm_is_its_product_only_with_factors_of_1(
    before: str, after: str, is_equal: bool
) -> None:
    found = proof(f"{XW} {{ {before} }}", f"{XW} {{ {after} }}")
    assert (found.domain == "bits") is is_equal


def test_a_product_of_constants_is_computed_by_the_runtime() -> None:
    found = proof(
        "(float[2] x) => (float[2] y) <float[2,2] a = {1,2,3,4}, float[2] b = {5,6}>"
        " { c = MatMul(a, b)  y = Add(x, c) }",
        "(float[2] x) => (float[2] y) <float[2] c = {17,39}> { y = Add(x, c) }",
    )
    assert found.domain == "bits", found.reason
    assert "constants-by-runtime" in found.axioms
