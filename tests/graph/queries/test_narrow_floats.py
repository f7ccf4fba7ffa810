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
