"""The quotient of a QuantizeLinear in float: which ones are computed, and between which limits."""

import pytest

from tests.small import made_by, parsed
from tiered.function_passes.lower._quotients import Quotient, quotient
from tiered.rewriter.skip import Skip

INPUTS = """(float[2,4] x, float16[2,4] h, float scale, float16 half, int8 z8, int64[K] t,
    float[2,2] blocks) => (float[?] y) <int16 zero16 = {0}, uint8 three = {3}>"""


def of(call: str, opset: int = 21) -> Quotient | Skip:
    model = parsed(f"{INPUTS} {{ r = Reshape(x, t) q = {call} y = Neg(x) }}", opset=opset)
    node = made_by(model, "q")
    return quotient(model.main, node, node.given(0), node.given(1), node.input(2))


@pytest.mark.parametrize(
    ("call", "opset", "because"),
    [
        ("QuantizeLinear<output_dtype=22>(x, scale)", 21, "the quantised dtype is not 8 or 16"),
        ("QuantizeLinear(h, half)", 21, "x or scale is not float"),
        ("QuantizeLinear<precision=10>(x, scale)", 23, "the quotient has another dtype"),
        ("QuantizeLinear<axis=1, block_size=2>(x, blocks)", 21, "the scales are those of blocks"),
        ("QuantizeLinear(r, scale)", 21, "the rank of x or scale is not known"),
    ],
)
def test_quotients_that_are_not_computed(call: str, opset: int, because: str) -> None:
    found = of(call, opset)
    assert isinstance(found, Skip)
    assert because in found.reason


@pytest.mark.parametrize(
    ("call", "limits"),
    [
        ("QuantizeLinear(x, scale)", (0, 255)),
        ("QuantizeLinear(x, scale, zero16)", (-32768, 32767)),
        ("QuantizeLinear<output_dtype=4>(x, scale)", (0, 65535)),
    ],
)
def test_the_limits_are_those_of_the_dtype(call: str, limits: tuple[int, int]) -> None:
    found = of(call)
    assert isinstance(found, Quotient)
    assert found.zero is None
    assert [str(bound.type) for bound in (found.least, found.most)] == ["float[]"] * 2
    assert [bound.number for bound in (found.least, found.most)] == list(limits)


def test_the_limits_are_less_a_zero_point() -> None:
    for call in ("QuantizeLinear(x, scale, three)", "QuantizeLinear(x, scale, z8)"):
        found = of(call)
        assert isinstance(found, Quotient)
        assert found.zero is not None
        producer = found.least.producer
        assert producer is not None
        assert producer.op_type == "Sub"


def test_a_precision_of_float_is_what_it_is_computed_in() -> None:
    found = of("QuantizeLinear<precision=1>(x, scale)", 23)
    assert isinstance(found, Quotient)
