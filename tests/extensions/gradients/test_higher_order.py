"""Products with Hessian matrices of small networks, and what has no second derivative."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import Reference, check, random_feeds
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse

NETWORKS = {
    "perceptron": """(double[2,3] x, double[3,4] w, double[4] s, double[4] b, double[4,2] v)
        => (double loss) {
            h = MatMul(x, w)  k = Mul(h, s)  n = Add(k, b)  t = Tanh(n)  o = MatMul(t, v)
            p = Softmax(o)  q = ReduceSumSquare <keepdims = 0> (p)  loss = Identity(q) }""",
    "convolutions": """(double[1,2,5,5] x, double[3,2,3,3] w) => (double loss) {
            c = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w)  s = Sigmoid(c)
            a = GlobalAveragePool(s)  m = Mul(a, a)  loss = ReduceSum <keepdims = 0> (m) }""",
    "attention": """(double[2,3,4] x, double[4,4] q, double[4,4] k) => (double loss) {
            a = MatMul(x, q)  b = MatMul(x, k)  t = Transpose <perm = [0,2,1]> (b)
            s = MatMul(a, t)  p = Softmax <axis = -1> (s)  o = MatMul(p, x)
            loss = ReduceSumSquare <keepdims = 0> (o) }""",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_hessian_vector_product_is_the_change_of_the_gradient(name: str) -> None:
    target, step = {"perceptron": "w", "convolutions": "w", "attention": "q"}[name], 1e-5
    proto = parse(NETWORKS[name], opset=21)
    first = get_pass("gradient", with_respect_to=[target], higher_order=True)(proto)
    second = get_pass(
        "gradient", of=[f"grad/{target}"], with_respect_to=[target], seed="input"
    )(first)  # fmt: skip
    gradient, product = Reference(first), Reference(second)
    feeds = random_feeds(proto)
    v = np.asarray(np.random.default_rng(2).standard_normal(feeds[target].shape))
    found = product({**feeds, f"seed/grad/{target}": v})[f"grad/grad/{target}"]
    sides = [
        gradient({**feeds, target: np.asarray(feeds[target] + sign * step * v)})[f"grad/{target}"]
        for sign in (1, -1)
    ]
    expected = (sides[0] - sides[1]) / (2 * step)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


DECLINED = {
    "its axes are not constant":
        "(float[2,3] x, int64 a) => (float[2,3] y) { y = CumProd(x, a) }",
    "the size of its matrix is unknown": "(float[N,N] x) => (float y) { y = Det(x) }",
    "keep_aspect_ratio_policy with align_corners has no rule":
        "(float[1,1,3,4] x) => (float[1,1,P,Q] y) <int64[2] s = {7,5}> { y = Resize <axes = [2,3], "
        'keep_aspect_ratio_policy = "not_larger", mode = "linear", '
        'coordinate_transformation_mode = "align_corners"> (x, "", "", s) }',
}  # fmt: skip


@pytest.mark.parametrize("reason", DECLINED)
def test_forms_that_have_no_rule(reason: str) -> None:
    with pytest.raises(NoGradient, match=reason):
        get_pass("gradient", with_respect_to=["x"], seed="input")(parse(DECLINED[reason], opset=26))


def test_a_scan_with_a_batch_has_no_gradient() -> None:
    proto = parse(
        """(float[1,2] s, float[1,3,2] x) => (float[1,2] y, float[1,3,2] z) {
            y, z = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] r) =>
                (float[2] c, float[2] d) { c = Add(a, r)  d = Identity(c) }> ("", s, x) }""",
        opset=8,
    )
    with pytest.raises(NoGradient, match="Scan-8 has no rule; convert_opset"):
        get_pass("gradient", of=["y"], seed="input")(proto)


@pytest.mark.parametrize(
    "settings",
    ["is_causal = 1", "softcap = 2.0", "scale = 0.3", "qk_matmul_output_mode = 1"],
)
def test_options_of_attention(settings: str) -> None:
    check(
        "(double[1,4,3,4] q, double[1,2,3,4] k, double[1,2,3,4] v) => (double[1,4,3,4] y) "
        f"{{ y = Attention <{settings}> (q, k, v) }}",
        opset=23,
    )
