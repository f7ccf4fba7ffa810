import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_gemm_activation"
ORT = "onnxruntime_cpu"
HEAD = "(float[N,2] x, float[3,2] w, float[3] b) => (float[N,3] y)"
GEMM = "g = Gemm<transB=1>(x, w, b)"


@pytest.mark.parametrize(
    ("activation", "written"),
    [
        ("Relu(g)", 'activation="Relu"'),
        ("Sigmoid(g)", 'activation="Sigmoid"'),
        ("Tanh(g)", 'activation="Tanh"'),
        ("LeakyRelu<alpha=0.2>(g)", 'activation="LeakyRelu", activation_alpha=0.2'),
    ],
)
def test_an_activation_goes_into_the_product(activation: str, written: str) -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} {{ {GEMM} y = {activation} }}",
        f"{HEAD} {{ y = com.microsoft.FusedGemm<transB=1, {written}>(x, w, b) }}",
        backend=ORT,
    )


def test_no_bias_is_needed() -> None:
    head = "(float[N,2] x, float[2,3] w) => (float[N,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ g = Gemm<alpha=0.5>(x, w) y = Relu(g) }}",
        f'{head} {{ y = com.microsoft.FusedGemm<alpha=0.5, activation="Relu">(x, w) }}',
        backend=ORT,
        opset=13,
    )


def test_a_result_with_other_consumers_stays() -> None:
    text = f"{HEAD} {{ {GEMM} y = Relu(g) }}".replace(
        "(float[N,3] y)", "(float[N,3] y, float[N,3] g)"
    )
    assert_unchanged(PASS, text, backend=ORT)


def test_other_targets_and_dtypes_keep_the_activation() -> None:
    text = f"{HEAD} {{ {GEMM} y = Relu(g) }}"
    assert_unchanged(PASS, text)
    assert_unchanged(PASS, text.replace("float", "double"), backend=ORT)
