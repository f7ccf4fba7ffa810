"""Operators with function bodies, quantized weights, and sums along an axis."""

import pytest

from tests.extensions.gradients.differences import check


@pytest.mark.parametrize(
    "text",
    [
        "(double[3,4] x) => (double[3,4] y) <int64 a = {1}> { y = CumSum <exclusive = 1> (x, a) }",
        "(double[3,4] x) => (double[3,4] y) <int64 a = {0}> { y = CumSum <reverse = 1> (x, a) }",
    ],
)
def test_along_an_axis(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,4,3,3] x) => (float[2,4,3,3] y) { y = LRN <size = 3, alpha = 0.5> (x) }",
        "(float[2,4,3] x, float[4] s, float[4] b) => (float[2,4,3] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, s, b) }",
        "(float[2,4,3,3] x) => (float[2,4,3,3] y) "
        "{ y = MeanVarianceNormalization <axes = [0,2,3]> (x) }",
    ],
)
def test_normalizations_in_float(text: str) -> None:
    check(text, in_float=True)


@pytest.mark.parametrize("opset", [23])
@pytest.mark.parametrize(
    "text",
    [
        "(double[2,4,4] x, double[4] s) => (double[2,4,4] y) { y = RMSNormalization(x, s) }",
        "(double[1,2,3,4] q, double[1,2,3,4] k, double[1,2,3,4] v) => (double[1,2,3,4] y) "
        "{ y = Attention(q, k, v) }",
    ],
)
def test_function_bodies_of_newer_opsets(text: str, opset: int) -> None:
    check(text, opset=opset)


@pytest.mark.parametrize("loss", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses(loss: str, reduction: str) -> None:
    check(
        f"(double[3,4] x, int64[3] t) => (double y) "
        f'{{ y = {loss} <reduction = "{reduction}"> (x, t) }}'
    )


@pytest.mark.parametrize("scale", ["", "[4]"])
def test_the_scale_of_quantized_weights(scale: str) -> None:
    check(
        f"(float{scale} s) => (float[3,4] y) <int8[3,4] q = {{1,-2,3,4,5,-6,7,8,9,10,-11,12}}> "
        "{ y = DequantizeLinear(q, s) }",
        in_float=True,
    )


@pytest.mark.parametrize(("scale", "axis"), [("", ""), ("[4]", "<axis = 1>")])
def test_the_scale_of_weights_of_16_bits(scale: str, axis: str) -> None:
    check(
        f"(float{scale} s) => (float[3,4] y) <int16[3,4] q = {{1,-2,3,4,5,-6,7,8,9,10,-11,12}}> "
        f"{{ y = com.microsoft.DequantizeLinear{axis}(q, s) }}",
        in_float=True,
    )


def test_the_scales_of_blocks() -> None:
    check(
        "(float[2,2] s) => (float[4,2] y) <int8[4,2] q = {1,-2,3,4,5,-6,7,8}> "
        "{ y = DequantizeLinear <axis = 0, block_size = 2> (q, s) }",
        in_float=True,
    )


def test_batches_in_training() -> None:
    check(
        "(double[3,2,4] x, double[2] s, double[2] b, double[2] m, double[2] v) => "
        "(double[3,2,4] y, double[2] n, double[2] w) "
        "{ y, n, w = BatchNormalization <training_mode = 1> (x, s, b, m, v) }",
        low=0.2, high=2,
    )  # fmt: skip


def test_a_body_that_imports_no_default_domain() -> None:
    text = """<ir_version: 13, opset_import: ["" : 26, "ai.onnx.preview" : 1]>
        g (double[1,2,3,4] q, double[1,2,5,4] k, double[1,2,5,4] v) => (double[1,2,3,4] y) {
            y = ai.onnx.preview.FlexAttention(q, k, v) }"""
    check(text)
