"""Special values through every legalization that is not exact: the same kind of number comes out.

Where it does not, the case is a row of its own, with the kinds before and after.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.analysis.legalization.compared import run_both
from tiered import Numerics
from tiered.passes.interface.registry import registry

SPECIAL = {
    "nan": np.nan, "inf": np.inf, "-inf": -np.inf, "-0": -0.0, "0": 0.0,
    "denormal": 1e-40, "large": 3e38,
}  # fmt: skip

IMAGE = "(float[1,2,3,3] x) => (float[1,2,3,3] y)"
VECTOR = "(float[9] x) => (float[9] y)"
ROWS = "(float[4,3] x) => (float[4,3] y)"
AFFINE = "<float[2] s = {1,2}, float[2] b = {0,1}>"


class Case(NamedTuple):
    """A model, and the values that come out as another kind of number."""

    text: str
    one: dict[str, tuple[str, str]]
    """By the special value of one element: the kinds of a result before and after."""
    every: dict[str, tuple[str, str]]
    """The same if each element has that value."""
    opset: int = 21


CASES = {
    "conv_to_matmul": Case(
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}> {{ y = Conv(x, w) }}", {}, {}
    ),
    "decompose_gemm": Case(
        f"{ROWS} <float[3,3] w = {{1,2,3,4,5,6,7,8,9}}, float[3] b = {{1,2,3}}> "
        "{ y = Gemm(x, w, b) }",
        {},
        {},
    ),
    "explicit_global_pool": Case(
        "(float[1,2,3,3] x) => (float[1,2,1,1] y) { y = GlobalAveragePool(x) }", {}, {}
    ),
    "fast_exp": Case(f"{VECTOR} {{ y = Exp(x) }}", {}, {}),
    "fast_tanh": Case(f"{VECTOR} {{ y = Tanh(x) }}", {}, {}),
    "replace_mean_with_add": Case(f"{ROWS} {{ y = Mean(x, x, x) }}", {}, {}),
    "lower_conv": Case(
        "(float[1,1,5,5] x) => (float[1,1,5,5] y) <float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}> "
        "{ y = Conv<pads = [1,1,1,1]>(x, w) }",
        {},
        {},
    ),
    # onnxruntime's maximum of a window passes over NaN, and starts at the lowest finite number.
    "lower_global_pool": Case(
        "(float[1,2,3,3] x) => (float[1,2,1,1] y) { y = GlobalMaxPool(x) }",
        {"nan": ("finite", "nan")},
        {"-inf": ("finite", "-inf")},
    ),
    "lower_pooling": Case(
        "(float[1,2,4,4] x) => (float[1,2,2,2] y) "
        "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }",
        {"nan": ("finite", "nan")},
        {},
    ),
    "lower_groupnorm": Case(
        f"(float[1,2,3] x) => (float[1,2,3] y) {AFFINE} "
        "{ y = GroupNormalization<num_groups = 2>(x, s, b) }",
        {"large": ("nan", "0")},
        {},
    ),
    "replace_groupnorm_with_fast_norm": Case(
        "(float[1,2,3] x) => (float[1,2,3] y) <float[2] s = {1,2}, float[2] b = {0,0}> "
        "{ y = GroupNormalization<num_groups = 1>(x, s, b) }",
        {"large": ("nan", "0")},
        {"large": ("nan", "0")},
    ),
    # onnxruntime's Where returns 0.0 for a -0.0.
    "replace_if_with_where": Case(
        "(float[3,3] x) => (float[3,3] y) <bool c = {1}> { a = Neg(x) "
        "d = Identity(c) y = If(d) <then_branch = t () => (float[3,3] u) { u = Sqrt(x) }, "
        "else_branch = e () => (float[3,3] v) { v = Mul(a, x) }> }",
        {"-0": ("-0", "0")},
        {"-0": ("-0", "0")},
    ),
    "lower_instancenorm": Case(
        f"(float[1,2,3] x) => (float[1,2,3] y) {AFFINE} {{ y = InstanceNormalization(x, s, b) }}",
        {},
        {},
    ),
    # Sums of large numbers overflow, and those of -0.0 are 0.0.
    "lower_layernorm": Case(
        f"{ROWS} <float[3] s = {{1,2,3}}> {{ y = LayerNormalization(x, s) }}",
        {},
        {"large": ("0", "nan"), "-0": ("-0", "0")},
    ),
    "lower_rmsnorm": Case(
        f"{ROWS} <float[3] s = {{1,2,3}}> {{ y = RMSNormalization(x, s) }}", {}, {}, opset=24
    ),
    "lower_logsumexp": Case(
        "(float[4,3] x) => (float[4,1] y) <int64[1] a = {1}> { y = ReduceLogSumExp(x, a) }", {}, {}
    ),
    # A row without a length is divided by 1.
    "lower_lpnormalization": Case(
        f"{ROWS} {{ y = LpNormalization(x) }}",
        {},
        {"-0": ("0", "-0"), "denormal": ("0", "finite")},
    ),
    # The variance of onnxruntime's body is a difference, which may be less than 0.
    "lower_mean_variance": Case(
        f"{IMAGE} {{ y = MeanVarianceNormalization(x) }}",
        {},
        {"0": ("nan", "0"), "-0": ("nan", "-0"), "denormal": ("nan", "0")},
    ),
    "lower_sigmoid": Case(f"{VECTOR} {{ y = Sigmoid(x) }}", {}, {}),
    "lower_softplus": Case(f"{VECTOR} {{ y = Softplus(x) }}", {}, {}),
    "replace_bn_with_mul_add": Case(
        f"{IMAGE} {AFFINE[:-1]}, float[2] m = {{1,2}}, float[2] v = {{1,4}}> "
        "{ y = BatchNormalization(x, s, b, m, v) }",
        {},
        {},
    ),
    "replace_celu": Case(
        f"{VECTOR} {{ y = Celu<alpha = 2.0>(x) }}", {"-0": ("0", "-0")}, {"-0": ("0", "-0")}
    ),
    # 0 * Inf is NaN: sums of a row that ends before the Inf have it too.
    "replace_cumsum_with_matmul": Case(
        "(float[3,3] x) => (float[3,3] y) <int64 a = {1}> { y = CumSum(x, a) }",
        {"-0": ("-0", "0")},
        {"inf": ("inf", "nan"), "-inf": ("-inf", "nan"), "-0": ("-0", "0")},
    ),
    "replace_div_by_sqrt_with_pow": Case(
        f"{VECTOR} {{ a = Abs(x) e = Exp(a) r = Sqrt(e) y = Div(x, r) }}", {}, {}
    ),
    "replace_div_with_reciprocal": Case(f"{VECTOR} <float c = {{3}}> {{ y = Div(x, c) }}", {}, {}),
    "replace_erf_with_erfv2": Case(f"{VECTOR} {{ y = Erf(x) }}", {}, {}),
    "replace_interleaved_rotary": Case(
        "(float[1,1,2,4] x) => (float[1,1,2,4] y) <float[1,2,2] c = {0.5,0.8,0.5,0.8}, "
        "float[1,2,2] s = {0.8,0.6,0.8,0.6}> { y = RotaryEmbedding<interleaved=1>(x, c, s) }",
        {},
        {},
        opset=23,
    ),
    "replace_matmul_with_gemm": Case(
        f"{ROWS} <float[3,3] w = {{1,2,3,4,5,6,7,8,9}}> {{ y = MatMul(x, w) }}", {}, {}
    ),
}

# In their own tests: what they need is proven finite, or they compute in another dtype.
ELSEWHERE = {
    "replace_where_with_mul_add",
    "replace_where_with_gather",
    "matmul_rotary_embedding",
}


def kinds(array: NDArray[Any]) -> NDArray[np.str_]:
    """Return the kind of each number."""
    zero = np.where(np.signbit(array), "-0", "0")
    infinite = np.where(np.signbit(array), "-inf", "inf")
    finite = np.where(array == 0, zero, "finite")
    return np.where(np.isnan(array), "nan", np.where(np.isinf(array), infinite, finite))


def changes(name: str, case: Case, x: NDArray[np.float32]) -> set[tuple[str, str]]:
    before, after, _ = run_both(name, case.text, {"x": x}, opset=case.opset)
    old, new = kinds(before["y"]), kinds(after["y"])
    return {(str(a), str(b)) for a, b in zip(old.ravel(), new.ravel(), strict=True) if a != b}


def dims(text: str) -> list[int]:
    return [int(dim) for dim in text.partition("[")[2].partition("]")[0].split(",")]


@pytest.mark.parametrize("name", CASES)
def test_the_kind_of_number_stays(name: str) -> None:
    case = CASES[name]
    ordinary = np.resize(np.array([1, 2, -3, 0.5, 4, -1.5, 2.5, 0.25], np.float32), dims(case.text))
    for label, number in SPECIAL.items():
        one = ordinary.copy()
        one.flat[0] = number
        for x, known in ((one, case.one), (np.full_like(one, number), case.every)):
            expected = {known[label]} if label in known else set()
            assert changes(name, case, x) == expected, label


def test_every_legalization_that_is_not_exact_has_a_row() -> None:
    infos = (registry.named(name).info for name in registry.legalizations())
    inexact = {info.name for info in infos if info.numerics != Numerics.EXACT}
    assert inexact - ELSEWHERE == set(CASES)
