import pytest

from tiered import Model, is_shape_of
from tiered.testing import parse


@pytest.mark.parametrize("domain", ["", "com.microsoft."])
def test_quantised_data_has_the_shape_of_the_data(domain: str) -> None:
    text = (
        "(float[N,M] x) => (int64[2] y) <float s = {0.5}, uint8 z = {3}>"
        f" {{ q = {domain}QuantizeLinear(x, s, z) d = {domain}DequantizeLinear(q, s, z) y = Shape(d) }}"
    )
    model = Model.from_proto(parse(text, opset=17))
    x, y = model.main.inputs[0], model.main.outputs[0]
    assert is_shape_of(y, x)


def test_an_unknown_operator_may_change_the_shape() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17, "other": 1]> g (float[N,M] x) => (int64[2] y)'
        " { d = other.DequantizeLinear(x) y = Shape(d) }"
    )
    model = Model.from_proto(parse(text))
    assert not is_shape_of(model.main.outputs[0], model.main.inputs[0])
