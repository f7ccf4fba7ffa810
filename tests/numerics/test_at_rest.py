"""Passes that lose precision are at rest: nodes that compute nothing decide nothing."""

import pytest

from tiered import Model, PassContext, get_pass
from tiered.testing import parse

PINNED = """(float[2,3] x, int64 n, bool k) => (float[?,?] y)
    <float[3,3] w = {1,-1,0.5,0.25,2,1,-0.5,1,1}, float scale = {0.25}, uint8 zero = {3}> {
    l = Loop(n, k, x) <body = b (int64 i, bool c, float[?,?] s) => (bool d, float[?,?] t) {
        q = QuantizeLinear(s, scale, zero)  dead = DequantizeLinear(q, scale, zero)
        d = Identity(c)  t = Identity(s) }>
    y = MatMul(l, w) }"""
"""What a body quantises stays float; nothing needs it."""

BRANCHES = """(float[2,3] x) => (float[2,3] y, float[1] z)
    <float[3,3] w = {1,-1,0.5,0.25,2,1,-0.5,1,1}, float[1] a = {1}, float[1] b = {2}> {
    m = MatMul(x, w)  y = Relu(m)
    p = Add(a, b)  c = Less(a, b)  one = Squeeze(c)
    z = If(one) <then_branch = t () => (float[1] u) { dead = Transpose(m)  u = Add(p, a) },
                 else_branch = e () => (float[1] v) { v = Identity(a) }> }"""
"""An If of constants that a node captures which nothing needs."""


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("float_to_half", {}),
        ("float_to_half", {"keep_io_types": False}),
        ("float_to_bfloat16", {}),
        ("float_to_mixed", {"budget": "cosine>=0.99", "samples": 1}),
        ("quantize", {"samples": 1}),
        ("quantize", {"samples": 1, "method": "percentile"}),
        ("quantize_dynamic", {}),
        ("int64_to_int32", {}),
    ],
)
@pytest.mark.parametrize("text", [PINNED, BRANCHES])
def test_a_second_run_changes_nothing(name: str, options: dict[str, object], text: str) -> None:
    model = Model.from_proto(parse(text, opset=17))
    with PassContext.isolated():
        get_pass(name, **options).apply(model)
        first = model.to_proto()
        get_pass(name, **options).apply(model)
    assert model.to_proto() == first
    assert "dead" not in {value for graph in model.graphs() for value in graph.values}
