import pytest

from tiered import Model, is_shape_of
from tiered.graph.queries.shape_sources import shape_source
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


def test_which_operands_are_the_shape_of_a_value() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2,3] x) => (float y) {
        a = Relu(x) b, m = LayerNormalization(a, x) t = Transpose(a) i = Identity(x)
        s1 = Shape(x) s2 = Shape(a) s3 = Shape(b) s4 = Shape(m) s5 = Shape<start=1>(x)
        s6 = Shape(t) s7 = Size(x) s8 = Shape<start=0>(x) s9 = own.Shape(x) s0 = Shape(i)
        y = own.F() }"""
    graph = Model.from_proto(parse(text)).main
    x, b = graph.inputs[0], graph.values["b"]
    for value in (x, b):
        found = [is_shape_of(graph.values[f"s{at}"], value) for at in range(10)]
        assert found == [False, True, True, True, False, False, False, False, True, False]
    assert not is_shape_of(x, x)
    assert shape_source(b) is x
    assert shape_source(graph.values["m"]) is graph.values["m"]


def test_a_shape_that_a_call_decides_is_not_known() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2,3] x) => (int64[2] y) {
        y = own.f<at=0>(x) } <domain: "own", opset_import: ["": 17]> f <at> (v) => (w, z) {
        w = Shape<start: int = @at>(v) z = Shape(v) }"""
    (function,) = Model.from_proto(parse(text)).functions
    (v,), (w, z) = function.inputs, function.outputs
    assert [is_shape_of(each, v) for each in (w, z)] == [False, True]
    w.owner.set_input(function.nodes[1], 0, None)
    assert not is_shape_of(z, v)
