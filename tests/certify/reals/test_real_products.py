"""MatMul, Gemm and Conv over the reals: what numbers in operands add, and where it goes."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import FLOAT, INT64, call, only
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.forms import SumsToOne
from tiered.certify.evaluation.values import CheckedTensor, Misfit, Unproved
from tiered.certify.reals.lifting import lifted
from tiered.certify.reals.real_arithmetic import Summands
from tiered.certify.reals.real_products import conv, gemm, matmul
from tiered.certify.rules.product_terms import PRODUCTS


def scaled(given: CheckedTensor, factor: float) -> CheckedTensor:
    return ran("Mul", given, number(factor))


def plus(given: CheckedTensor, other: CheckedTensor | float) -> CheckedTensor:
    return ran("Add", given, number(other) if isinstance(other, int | float) else other)


W = number([[1, 2], [3, 4], [5, 6]])


# --- MatMul ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        ((2, 3), (3, 4), (2, 4)), ((3,), (3, 4), (4,)), ((2, 3), (3,), (2,)), ((3,), (3,), ()),
        ((5, 1, 2, 3), (6, 3, 4), (5, 6, 2, 4)), ((3,), (6, 3, 4), (6, 4)),
        ((6, 2, 3), (3,), (6, 2)),
        ((2, 0), (0, 4), (2, 4)),
    ],
)  # fmt: skip
def test_products_have_the_shape_of_matrices(
    a: tuple[int, ...], b: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    made = ran("MatMul", unknown("a", *a), unknown("b", *b))
    assert (made.shape, made.dtype) == (shape, FLOAT)
    assert made.terms.shape == shape
    numbers = ran("MatMul", unknown("a", *a), number(np.ones(b)))
    assert numbers.terms.shape == shape
    if 0 in a:
        assert are_same(made, scaled(made, 2))
    else:
        assert len(np.unique(made.terms)) == made.size


def test_sizes_that_do_not_meet_are_named() -> None:
    with pytest.raises(Misfit, match="MatMul of shapes that do not fit") as refused:
        matmul(call("MatMul", unknown("a", 2, 3), unknown("b", 4, 5), domain=DOMAIN))
    assert refused.value.repairs == [(3, 4), (4, 3)]
    for inputs in ((unknown("a"), unknown("b", 3)), (unknown("a", 3), unknown("b")),
                   (unknown("a", 2, 3, dtype=INT64), unknown("b", 3, 4, dtype=INT64))):  # fmt: skip
        with pytest.raises(NoRule):
            matmul(call("MatMul", *inputs, domain=DOMAIN))


def test_factors_go_through_products() -> None:
    a, b = unknown("a", 2, 3), unknown("b", 3, 2)
    made = scaled(ran("MatMul", a, b), 6)
    assert are_same(ran("MatMul", scaled(a, 2), scaled(b, 3)), made)
    assert are_same(ran("MatMul", a, scaled(b, 6)), made)
    assert not are_same(ran("MatMul", a, b), made)
    rows = scaled(ran("MatMul", a, W), 2)
    assert are_same(ran("MatMul", a, number(2 * np.array(W.known))), rows)
    assert are_same(ran("MatMul", scaled(a, 2), W), rows)


def test_numbers_may_be_on_the_left() -> None:
    b = unknown("b", 3, 2)
    left = number([[1, 2, 3], [4, 5, 6]])
    made = ran("MatMul", left, b)
    assert made.shape == (2, 2)
    assert are_same(ran("MatMul", left, scaled(b, 2)), scaled(made, 2))
    assert not are_same(ran("MatMul", number([[1, 2, 3], [4, 5, 7]]), b), made)


def test_offsets_of_rows_are_numbers_of_columns() -> None:
    """(a + 1) w is a w + the sums of the columns of w, which are 9 and 12."""
    a = unknown("a", 2, 3)
    made = ran("MatMul", plus(a, 1), W)
    assert are_same(made, plus(ran("MatMul", a, W), number([9, 12])))


def test_equal_columns_of_numbers_are_a_summand_of_their_own() -> None:
    a, b = unknown("a", 2, 3), unknown("b", 3, 4)
    column = number([[1], [2], [3]])
    made = ran("MatMul", a, plus(b, column))
    assert isinstance(made.form, Summands)
    assert [part.shape for part in made.form.parts] == [(2, 4), (2, 1)]
    assert are_same(made, plus(ran("MatMul", a, b), ran("MatMul", a, column)))
    uneven = ran("MatMul", a, plus(b, number(np.arange(12).reshape(3, 4))))
    assert not are_same(uneven, ran("MatMul", a, b))


def test_rows_that_sum_to_one_take_numbers_out() -> None:
    a, b, row = unknown("a", 2, 3), unknown("b", 3, 4), number([[1, 2, 3, 4]])
    probabilities = CheckedTensor(FLOAT, (2, 3), lambda: a.terms)
    probabilities.form = SumsToOne()
    made = ran("MatMul", probabilities, plus(b, row))
    assert are_same(made, plus(ran("MatMul", probabilities, b), row))
    assert not are_same(ran("MatMul", a, plus(b, row)), plus(ran("MatMul", a, b), row))
    uneven = number(np.arange(12).reshape(3, 4))
    assert not are_same(ran("MatMul", probabilities, plus(b, uneven)), ran("MatMul", a, b))


# --- Gemm -----------------------------------------------------------------------------------------


def test_a_gemm_is_a_product_with_factors_and_a_bias() -> None:
    a, c = unknown("a", 2, 3), unknown("c", 2)
    product = ran("MatMul", a, W)
    assert are_same(ran("Gemm", a, W), product)
    assert are_same(ran("Gemm", a, W, c), plus(product, c))
    made = ran("Gemm", a, W, c, alpha=2.0, beta=3.0)
    assert are_same(made, plus(scaled(product, 2), scaled(c, 3)))
    assert made.shape == (2, 2)


def test_a_gemm_turns_its_operands() -> None:
    a = unknown("a", 2, 3)
    turned = CheckedTensor(FLOAT, (3, 2), lambda: a.terms.T)
    weights = number(np.array(W.known).T)
    assert are_same(ran("Gemm", turned, W, transA=1), ran("Gemm", a, W))
    assert are_same(ran("Gemm", a, weights, transB=1), ran("Gemm", a, W))
    assert ran("Gemm", turned, weights, transA=1, transB=1).shape == (2, 2)


def test_gemms_without_a_rule() -> None:
    with pytest.raises(Unproved, match="Gemm of operands that are no matrices"):
        ran("Gemm", unknown("a", 2, 3, 1), W)
    with pytest.raises(Unproved, match="Gemm of operands that are no matrices"):
        ran("Gemm", unknown("a", 2, 3), unknown("b", 3))
    with pytest.raises(NoRule):
        gemm(call("Gemm", unknown("a", 2, 3, dtype=INT64), W, domain=DOMAIN))


# --- Conv -----------------------------------------------------------------------------------------

IMAGE = unknown("image", 1, 2, 4)
KERNEL = number(np.arange(1, 9).reshape(2, 2, 2))


def test_a_convolution_of_kernel_one_is_a_product() -> None:
    weights = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    made = ran("Conv", IMAGE, number(weights[..., None]))
    assert made.shape == (1, 3, 4)
    rows = CheckedTensor(FLOAT, (1, 4, 2), lambda: IMAGE.terms.swapaxes(1, 2))
    product = ran("MatMul", rows, number(weights.T))
    assert are_same(CheckedTensor(FLOAT, (1, 3, 4), lambda: product.terms.swapaxes(1, 2)), made)


@pytest.mark.parametrize(
    ("held", "size"),
    [({}, 3), ({"strides": [2]}, 2), ({"pads": [1, 1]}, 5), ({"dilations": [3]}, 1)],
)
def test_windows_say_the_shape(held: dict[str, Any], size: int) -> None:
    made = ran("Conv", IMAGE, KERNEL, **held)
    assert (made.shape, made.terms.shape) == ((1, 2, size), (1, 2, size))
    assert len(np.unique(made.terms)) == made.size


def test_factors_and_offsets_of_channels_go_into_weights() -> None:
    """With scales [2, 3] and offsets [1, 5] of the channels."""
    scale, offset = np.array([2, 3], np.float32), np.array([1, 5], np.float32)
    inside = ran("Add", ran("Mul", IMAGE, number(scale[:, None])), number(offset[:, None]))
    weights = np.array(KERNEL.known)
    folded = ran("Conv", IMAGE, number(weights * scale[:, None]))
    added = (weights.sum(-1) * offset).sum(-1)
    assert are_same(ran("Conv", inside, KERNEL), plus(folded, number(added[:, None])))


def test_with_pads_an_offset_is_no_constant() -> None:
    inside = plus(IMAGE, 1)
    made = ran("Conv", inside, KERNEL, pads=[1, 0])
    plain = ran("Conv", IMAGE, KERNEL, pads=[1, 0])
    sums = number(np.array(KERNEL.known).sum((1, 2))[:, None])
    assert not are_same(made, plus(plain, sums))
    scaled_up = ran("Conv", scaled(IMAGE, 2), KERNEL, pads=[1, 0])
    assert are_same(scaled_up, scaled(plain, 2))


def test_a_bias_is_added_to_its_channel() -> None:
    bias = unknown("bias", 2)
    column = CheckedTensor(FLOAT, (2, 1), lambda: bias.terms[:, None])
    assert are_same(ran("Conv", IMAGE, KERNEL, bias), plus(ran("Conv", IMAGE, KERNEL), column))
    weights = unknown("w", 2, 2, 2)
    made = ran("Conv", IMAGE, weights, bias)
    assert are_same(made, plus(ran("Conv", IMAGE, weights), column))


def test_groups_read_their_own_channels() -> None:
    weights = number(np.arange(1, 5).reshape(2, 1, 2))
    made = ran("Conv", IMAGE, weights, group=2)
    assert made.shape == (1, 2, 3)
    one = CheckedTensor(FLOAT, (1, 1, 4), lambda: IMAGE.terms[:, 1:])
    alone = ran("Conv", one, number([[[3, 4]]]))
    assert are_same(CheckedTensor(FLOAT, (1, 1, 3), lambda: made.terms[:, 1:]), alone)


def test_without_channels_all_are_zero_plus_the_bias() -> None:
    none, weights = unknown("none", 1, 0, 4), number(np.zeros((2, 0, 2)))
    made = ran("Conv", none, weights)
    assert made.known is not None
    assert made.known.shape == (1, 2, 3)
    assert not made.known.any()
    bias = unknown("bias", 2)
    biased = ran("Conv", none, weights, bias)
    assert are_same(biased, plus(made, CheckedTensor(FLOAT, (2, 1), lambda: bias.terms[:, None])))


@pytest.mark.parametrize(
    ("image", "weights"), [((2, 0), (3, 0)), ((2, 3), (4, 3, 1)), ((2,), (3,)), ((0,), (0,))]
)
def test_without_sizes_there_are_no_windows(
    image: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    with pytest.raises(Unproved, match="Conv of an empty tensor, or of another rank"):
        ran("Conv", unknown("image", *image), number(np.zeros(weights)))


def test_a_convolution_of_integers_is_that_of_bits() -> None:
    image, bias = unknown("image", 1, 2, 4, dtype=INT64), unknown("bias", 2, dtype=INT64)
    for weights in (number(np.ones((2, 2, 2)), np.int64), unknown("w", 2, 2, 2, dtype=INT64)):
        for inputs in ((image, weights), (image, weights, bias)):
            node = call("Conv", *inputs, domain=DOMAIN)
            assert are_same(only(conv(node)), only(lifted(PRODUCTS["Conv"])(node)))


def test_weights_that_are_not_finite_are_refused() -> None:
    weights = np.array(KERNEL.known)
    weights[0, 0, 0] = np.inf
    with pytest.raises(Unproved, match="a factor that is not finite"):
        conv(call("Conv", IMAGE, number(weights), domain=DOMAIN))
    with pytest.raises(Unproved, match="a factor that is not finite"):
        _ = ran("MatMul", unknown("a", 2, 3), number([[np.nan], [1], [1]])).terms
