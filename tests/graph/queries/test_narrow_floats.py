"""A float that is computed from narrower ones is known, and one that is only stored so is not."""

import pytest

from tiered.graph import DataType, Model
from tiered.graph.queries.narrow_floats import narrow_floats
from tiered.testing import parse


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("h = Cast <to = 10> (x) a = Exp(h) b = Cast <to = 1> (a) y = Mul(b, x)", {"b", "y"}),
        ("h = Cast <to = 10> (x) a = Cast <to = 1> (h) y = Add(a, a)", {"a", "y"}),
        ("h = Cast <to = 10> (x) a = Exp(h) y = Cast <to = 1> (a)", {"y"}),
        ("y = Exp(x)", set()),
        ("v = Cast <to = 1> (w) y = MatMul(x, v)", set()),
        ("h = Cast <to = 10> (i) a = Cast <to = 1> (h) y = Mul(x, a)", set()),
        ("h = Cast <to = 10> (i) k = Mul(h, h) a = Cast <to = 1> (k) y = Mul(x, a)", {"a", "y"}),
        ("t = Gather(w, i) r = Exp(t) a = Cast <to = 1> (r) y = Add(x, a)", {"a", "y"}),
        ("""y = If (c) <
                then_branch = one () => (float[2,2] o) { h = Cast <to = 10> (x) o = Cast <to = 1> (h) },
                else_branch = other () => (float[2,2] p) { p = Exp(x) }>""", {"y"}),
    ],
)  # fmt: skip
def test_what_is_computed_from_halves(nodes: str, found: set[str]) -> None:
    text = f"(float[2,2] x, int64[2] i, bool c) => (float[2,2] y) <float16[2,2] w = {{15360,1,2,3}}> {{ {nodes} }}"
    model = Model.from_proto(parse(text, opset=18))
    assert narrow_floats(model) == dict.fromkeys(found, DataType.FLOAT16)


def test_doubles_are_no_more_exact_than_the_floats_that_they_come_from() -> None:
    text = (
        "(double[2] x) => (double[2] y) { h = Cast <to = 1> (x) a = Cast <to = 11> (h) y = Exp(a) }"
    )
    model = Model.from_proto(parse(text, opset=18))
    assert narrow_floats(model) == {"a": DataType.FLOAT, "y": DataType.FLOAT}
    halves = text.replace("to = 1>", "to = 16>")
    model = Model.from_proto(parse(halves, opset=18))
    assert narrow_floats(model) == {"a": DataType.BFLOAT16, "y": DataType.BFLOAT16}


def test_functions_and_bodies_round_what_they_compute() -> None:
    text = """<ir_version: 9, opset_import: ["": 18, "own": 1]>
    g (float[2] x, bool c) => (float[2] y, float[2] z, float[2] w) {
        y = own.half(x)  z = own.whole(x)  k = own.Unknown(y)
        w = If(c) <then_branch = t () => (float[2] o) { o = If(c) <
                then_branch = tt () => (float[2] p) { h = Cast<to=10>(x) p = Cast<to=1>(h) },
                else_branch = te () => (float[2] q) { q = Neg(x) }> },
            else_branch = e () => (float[2] r) { r = Abs(x) }> }
    <domain: "own", opset_import: ["": 18]> half (a) => (b) { h = Cast<to=10>(a) e = Exp(h) b = Cast<to=1>(e) }
    <domain: "own", opset_import: ["": 18]> whole (a) => (b) { b = Neg(a) }"""
    found = narrow_floats(Model.from_proto(parse(text)))
    assert found == {"y": DataType.FLOAT16, "w": DataType.FLOAT16}


def test_what_moves_elements_rounds_nothing() -> None:
    for nodes, found in (
        # Operands of halves that no input decides, which an operator makes floats of.
        ("r = Reshape(w, s) a = Cast<to=1>(r) y = Add(x, a)", set()),
        ("k = Constant<value=float16[2] {1,2}>() a = Cast<to=1>(k) y = Add(x, a)", set()),
        ("n = RandomNormal<dtype=10, shape=[2]>() a = Cast<to=1>(n) y = Add(x, a)", {"a", "y"}),
        ("h = Cast<to=10>(x) r = Reshape(h, s) a = Cast<to=1>(r) y = Neg(a)", {"a", "y"}),
        ("d = Cast<to=11>(x) h = Cast<to=10>(d) a = Cast<to=11>(h) y = Cast<to=1>(a)", {"a", "y"}),
        ("h = vendor.Cast(x) r = Cast<to=10>(h) a = Cast<to=1>(r) y = Neg(a)", set()),
        # Halves that are chosen by an input, but not computed.
        ("t = Gather(w, i) a = Cast<to=1>(t) y = Add(x, a)", set()),
        ("e = Exp(w) a = Cast<to=1>(e) y = Mul(x, a)", set()),
        (
            "k = Constant<value=float16[2] {1,2}>() e = Exp(k) a = Cast<to=1>(e) y = Add(x, a)",
            set(),
        ),
        ("a = Cast<to=1>(x) b = Cast<to=11>(a) y = Cast<to=1>(b)", set()),
        ("a = Cast<to=1>(q) b = Cast<to=11>(a) y = Cast<to=1>(b)", set()),
        ("a = Neg(q) y = Cast<to=1>(a)", {"y"}),
        (
            """y = If(c) <then_branch = t () => (float[2] u) { k = Constant<value=float16[2] {1,2}>()
            u = Cast<to=1>(k) }, else_branch = e () => (float[2] v) { v = Neg(x) }>
            h = Constant<value=float16 {1}>()""",
            set(),
        ),
    ):
        text = f"(float[2] x, int64[2] i, bool c, float16[2] q) => (float[2] y) <float16[2] w = {{1,2}}, int64[1] s = {{2}}> {{ {nodes} }}"
        model = Model.from_proto(parse(text, opset=18))
        assert set(narrow_floats(model)) == found, nodes
