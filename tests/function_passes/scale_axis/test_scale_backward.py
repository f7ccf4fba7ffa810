"""The way of a scale back to all weights that together compute a value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.constants import spoken_of
from tests.small import made_by, named, parsed
from tiered.function_passes.scale_axis._scale_backward import ScaleBackward
from tiered.rewriter.idioms.scale import Rescaled, Scale
from tiered.rewriter.skip import Skip

STOCK = (
    *("float[2,2] w = {1,2,3,4}", "float[2,2] u = {5,6,7,8}", "float[2] b = {1,-1}"),
    *("float s = {3}", "float[1] one = {3}", "float[1,2] row = {5,6}"),
)
COLUMNS = Scale(np.array([2.0, 4.0]), 1)


def way(
    nodes: str, scale: Scale | float = 2.0, *, inputs: str = "float[2,2] x", opset: int = 21
) -> Rescaled | Skip:
    """Return the new constants with which `a` is scaled, which the node of `y` reads."""
    text = f"({inputs}) => (float[] y) {spoken_of(nodes, *STOCK)} {{ {nodes} y = Exp(a) }}"
    model = parsed(text, opset=opset)
    search = ScaleBackward(model.main)
    asked = scale if isinstance(scale, Scale) else Scale(np.array([scale]))
    return search.into_producers(named(model, "a"), made_by(model, "y"), 0, asked)


def numbers(found: Rescaled | Skip) -> dict[str, object]:
    """Return the new constants by the names of the old ones."""
    assert isinstance(found, dict), found
    return {
        value.name: array.tolist()
        for (node, slot), array in found.items()
        if (value := node.inputs[slot]) is not None
    }


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("a = MatMul(x, w)", {"w": [[2, 4], [6, 8]]}),
        ("r = MatMul(x, w) a = Relu(r)", {"w": [[2, 4], [6, 8]]}),
        ("m = MatMul(x, w) a = Add(m, b)", {"w": [[2, 4], [6, 8]], "b": [2, -2]}),
        ("m = MatMul(x, w) a = Sub(b, m)", {"w": [[2, 4], [6, 8]], "b": [2, -2]}),
        ("a = Mul(x, s)", {}),
        ("m = MatMul(x, w) a = Mul(m, s)", {"w": [[2, 4], [6, 8]]}),
        ("m = MatMul(x, w) a = Mul(s, m)", {"w": [[2, 4], [6, 8]]}),
        ("m = MatMul(x, w) a = Div(m, s)", {"w": [[2, 4], [6, 8]]}),
        ("a = Div(s, x)", {"s": 6}),
        ("m = MatMul(x, w) n = MatMul(x, u) a = MatMul(m, n)", {"w": [[2, 4], [6, 8]]}),
        ("m = MatMul(x, w) a = Mul(x, m)", {"w": [[2, 4], [6, 8]]}),
        ("m = MatMul(x, w) a = Concat<axis=0>(m, row)", {"w": [[2, 4], [6, 8]], "row": [[10, 12]]}),
    ],
)  # fmt: skip
def test_one_factor_goes_into_the_weights(nodes: str, expected: dict[str, object]) -> None:
    found = way(nodes)
    if expected:
        assert numbers(found) == expected
    else:
        assert str(found) == "x has no producer in this graph"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("a = MatMul(x, w)", {"w": [[2, 8], [6, 16]]}),
        ("m = MatMul(x, w) a = Add(m, b)", {"w": [[2, 8], [6, 16]], "b": [2, -4]}),
        (
            "m = MatMul(x, w) a = Concat<axis=0>(m, row)",
            {"w": [[2, 8], [6, 16]], "row": [[10, 24]]},
        ),
        ("m = MatMul(x, w) a = Transpose<perm=[0,1]>(m)", {"w": [[2, 8], [6, 16]]}),
        (
            "m = MatMul(x, w) p = Relu(m) q = Neg(m) a = Add(p, q)",
            {"w": [[2, 8], [6, 16]]},
        ),
    ],
)  # fmt: skip
def test_factors_of_an_axis_go_into_the_weights(nodes: str, expected: dict[str, object]) -> None:
    assert numbers(way(nodes, COLUMNS)) == expected


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        ("m = MatMul(x, w) a = Add(m, s)", "s has no axis for the factors"),
        ("m = MatMul(x, w) a = Add(m, one)", "one has no axis for the factors"),
        ("m = MatMul(x, w) n = MatMul(x, u) a = MatMul(m, n)", "MatMul does not absorb a scale"),
        ("m = MatMul(x, w) a = Mul(m, s)", "Mul does not absorb a scale"),
        ("m = MatMul(x, w) t = Transpose(m) a = Add(m, t)", "the consumers of m have different"),
        ("m = MatMul(x, w) t = Neg(m) u2 = Exp(m) a = Add(t, u2)", "Exp does not absorb a scale"),
    ],
)  # fmt: skip
def test_why_factors_of_an_axis_stay(nodes: str, because: str) -> None:
    assert str(way(nodes, COLUMNS)).startswith(because)


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        ("a = Exp(x)", "Exp does not absorb a scale"),
        ("a = Relu(x)", "x has no producer in this graph"),
        ("m = MatMul(x, w) e = Exp(m) a = Relu(m)", "m has other consumers"),
        ("m = MatMul(x, w) a = Mul(m, m)", "m has other consumers"),
        ("m = MatMul(x, w) a = com.microsoft.Add(m, m)", "Add does not absorb a scale"),
        ("m = MatMul(x, w) a = com.microsoft.Div(m, s)", "Div does not absorb a scale"),
        ("n, a = TopK(x, k)", "TopK does not commute with a scale"),
    ],
)
def test_why_one_factor_stays(nodes: str, because: str) -> None:
    assert str(way(nodes, inputs="float[2,2] x, int64[1] k")) == because


def test_two_factors_that_refuse_give_the_reason_of_the_first() -> None:
    nodes = "m = Exp(x) n = Tanh(x) a = MatMul(m, n)"
    assert str(way(nodes)) == "Exp does not absorb a scale"


def test_factors_of_the_axis_of_a_concat_stay() -> None:
    scale = Scale(np.array([1.0, 2.0, 3.0, 4.0]), 1)
    found = way("m = MatMul(x, w) a = Concat<axis=1>(m, m)", scale)
    assert str(found) == "m has no axis for the factors"


def test_another_factor_takes_the_scale_where_the_first_cannot() -> None:
    assert numbers(way("m = Exp(x) n = MatMul(x, w) a = MatMul(m, n)")) == {"w": [[2, 4], [6, 8]]}


def test_a_try_that_failed_leaves_nothing_in_the_plan() -> None:
    # The left factor takes w and then meets Exp; the right one is the one that counts.
    nodes = "m = MatMul(x, w) e = Exp(x) l = Add(m, e) r = MatMul(x, u) a = MatMul(l, r)"
    assert numbers(way(nodes)) == {"u": [[10, 12], [14, 16]]}


@pytest.mark.parametrize(
    ("factor", "dtype", "expected"),
    [
        (2.0, "float16", "scaled terms of a float16 sum may overflow"),
        (-2.0, "float16", "scaled terms of a float16 sum may overflow"),
        (1.0, "float16", "v has no producer in this graph"),
        (0.5, "float16", "v has no producer in this graph"),
        (2.0, "float", "v has no producer in this graph"),
    ],
)
def test_terms_of_a_float16_sum_do_not_grow(factor: float, dtype: str, expected: str) -> None:
    inputs = f"{dtype}[2,2] v, {dtype}[2,2] x"
    assert str(way("a = Add(v, x)", factor, inputs=inputs)) == expected
    concat = "v has no producer in this graph"
    assert str(way("a = Concat<axis=0>(v, x)", factor, inputs=inputs)) == concat


def test_a_float16_sum_with_one_variable_term_may_grow() -> None:
    text = (
        "(float16[2] x) => (float16[2] y) <float16[2] h = {1024,1024}> {a = Add(x, h) y = Exp(a)}"
    )
    model = parsed(text)
    found = ScaleBackward(model.main).into_producers(
        named(model, "a"), made_by(model, "y"), 0, Scale(np.array([2.0]))
    )
    assert str(found) == "x has no producer in this graph"


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [("a = Add(x, v)", "float[] x, float[2] v"), ("a = Add(v, x)", "float[] x, float[2] v")],
)
def test_operands_of_unknown_rank_stay(nodes: str, inputs: str) -> None:
    assert str(way(nodes, inputs=inputs)) == "the rank of an operand is not known"


def test_operands_that_an_attribute_aligns_stay() -> None:
    nodes = "m = MatMul(x, w) a = Add<broadcast=1, axis=0>(m, b)"
    because = "before opset 7, an attribute says along which axis operands broadcast"
    assert str(way(nodes, opset=6)) == because


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize(
    ("part", "expected"), [("a, r", [[2, 2], [6, 4]]), ("r, a", [[1, 4], [3, 8]])]
)
def test_the_other_parts_of_a_split_keep_their_scale(
    axis: int, part: str, expected: list[object]
) -> None:
    nodes = f"m = MatMul(x, w) {part} = Split<axis={axis}, num_outputs=2>(m)"
    assert numbers(way(nodes)) == {"w": expected}
    assert numbers(way(nodes, Scale(np.array([2.0 if part[0] == "a" else 4.0]), 1))) == (
        {"w": expected} if part[0] == "a" else {"w": [[1, 8], [3, 16]]}
    )


def test_parts_that_want_one_factor_are_scaled_as_a_whole() -> None:
    # One factor passes the Flatten, factors of an axis do not.
    flat, split = "m = MatMul(x, w) f = Flatten<axis=0>(m)", "Split<axis=1, num_outputs=2>(f)"
    assert numbers(way(f"{flat} p, q = {split} a = Add(p, q)")) == {"w": [[2, 4], [6, 8]]}
    because = "Flatten moves elements across the scaled axis"
    assert str(way(f"{flat} a, q = {split}")) == because


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        ("a, r = Split<axis=1>(m, sizes)", "float[2,2] x, int64[2] sizes"),
        ("a, r = Split<axis=0, num_outputs=2>(m)", "float[N,2] x"),
    ],
)
def test_a_split_into_unknown_parts_stays(nodes: str, inputs: str) -> None:
    found = way(f"m = MatMul(x, w) {nodes}", inputs=inputs)
    assert str(found) == "the sizes of the parts of Split are not known"


def test_factors_across_the_axis_of_a_split_stay() -> None:
    nodes = "m = MatMul(x, w) a, r = Split<axis=0, num_outputs=2>(m)"
    assert str(way(nodes, COLUMNS)) == "the sizes of the parts of Split are not known"


@pytest.mark.parametrize(("steps", "ends"), [(63, True), (64, False)])
def test_a_way_has_at_most_64_nodes(steps: int, ends: bool) -> None:
    chain = "v0 = MatMul(x, w) " + " ".join(f"v{at} = Neg(v{at - 1})" for at in range(1, steps))
    found = way(f"{chain} a = Relu(v{steps - 1})")
    assert isinstance(found, dict) is ends
    if not ends:
        assert str(found) == "the way to a weight has more than 64 nodes"


def test_failed_tries_count_too() -> None:
    # 40 nodes to an Exp on the left, and as many to weights on the right.
    left = "l0 = Exp(x) " + " ".join(f"l{at} = Neg(l{at - 1})" for at in range(1, 40))
    right = "r0 = MatMul(x, w) " + " ".join(f"r{at} = Neg(r{at - 1})" for at in range(1, 40))
    found = way(f"{left} {right} a = MatMul(l39, r39)")
    assert str(found) == "Exp does not absorb a scale"
    assert isinstance(way(f"l9 = Exp(x) {right} a = MatMul(l9, r39)"), dict)


def test_a_value_that_is_an_output_or_read_in_a_body_stays() -> None:
    text = """(float[2,2] x, bool p) => (float[2,2] y, float[2,2] m, float[2,2] z)
        <float[2,2] w = {1,2,3,4}, float[2,2] k = {1,2,3,4}> {
        m = MatMul(x, w)  n = MatMul(x, k)  a = Relu(m)  c = Relu(n)  y = Exp(a)  d = Exp(c)
        z = If(p) <then_branch = t () => (float[2,2] u) { u = Neg(n) },
                   else_branch = e () => (float[2,2] v) { v = Abs(d) }> }"""
    model = parsed(text)
    search = ScaleBackward(model.main)
    for scaled, user, refused in (("a", "y", "m"), ("c", "d", "n")):
        found = search.into_producers(
            named(model, scaled), made_by(model, user), 0, Scale(np.array([2.0]))
        )
        assert str(found) == f"{refused} has other consumers"
