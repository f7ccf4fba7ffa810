import pytest

from tiered.testing import assert_rewrites


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
def test_a_hard_swish_is_a_product(dtype: str) -> None:
    head = f"({dtype}[N,3] x) => ({dtype}[N,3] y)"
    assert_rewrites(
        "replace_hardswish",
        f"{head} {{ y = HardSwish(x) }}",
        f"{head} {{ h = HardSigmoid<alpha=0.16666667, beta=0.5>(x) y = Mul(x, h) }}",
        # onnxruntime has no kernel for halves and doubles
        runtime="onnxruntime" if dtype == "float" else "reference",
    )
