import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_contrib_quantize"


def quantize(
    dtype: str = "uint8",
    attributes: str = "",
    domain: str = "com.microsoft.",
    scale: str = "float s",
) -> str:
    return (
        f"(float[2,3] x, {scale}) => ({dtype}[2,3] y) <{dtype} z = {{3}}> "
        f"{{ y = {domain}QuantizeLinear{attributes}(x, s, z) }}"
    )


def dequantize(dtype: str = "uint8", domain: str = "com.microsoft.") -> str:
    return (
        f"({dtype}[2,3] x, float s) => (float[2,3] y) <{dtype} z = {{3}}> "
        f"{{ y = {domain}DequantizeLinear(x, s, z) }}"
    )


@pytest.mark.parametrize(
    ("dtype", "opset"),
    [("uint8", 13), ("int8", 17), ("uint8", 21), ("uint16", 21), ("int16", 23)],
)
def test_the_standard_operator_takes_its_place(dtype: str, opset: int) -> None:
    assert_rewrites(PASS, quantize(dtype), quantize(dtype, domain=""), opset=opset)
    assert_rewrites(PASS, dequantize(dtype), dequantize(dtype, domain=""), opset=opset)


def test_a_scale_for_each_index() -> None:
    text = (
        "(float[2,3] x) => (int8[2,3] y) <float[3] s = {1,0.5,2}, int8[3] z = {0,1,2}> "
        "{ y = %sQuantizeLinear<axis=1>(x, s, z) }"
    )
    assert_rewrites(PASS, text % "com.microsoft.", text % "")


@pytest.mark.parametrize(
    ("text", "opset", "because"),
    [
        (quantize("uint16"), 17, "the opset has no such dtype or axis"),
        (dequantize("int16"), 20, "the opset has no such dtype or axis"),
        (
            quantize(attributes="<axis=1>", scale="float[3] s"),
            12,
            "the opset has no such dtype or axis",
        ),
        (quantize(scale="float[N] s"), 17, "the scale is not known to be one number"),
        (quantize(attributes="<axis=1>"), 17, "the scale is not known to be a vector"),
        (quantize(attributes="<axis=1, block_size=3>"), 21, "a scale is for a block of numbers"),
        (
            quantize(attributes="<saturate=1>"),
            21,
            "an attribute that the standard operator lacks",
        ),
    ],
)
def test_what_stays(text: str, opset: int, because: str) -> None:
    assert_unchanged(PASS, text, opset=opset, because=because)
