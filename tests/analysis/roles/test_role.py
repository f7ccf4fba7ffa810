"""What a narrower type loses, and which constants a node reads."""

import numpy as np
import onnx
import pytest

from tests.analysis.roles.found import HALF
from tests.small import made_by, named, parsed
from tiered.analysis.roles.role import (
    Narrow,
    Role,
    constants_of,
    data_of,
    graphs_of,
    largest_of,
    nodes_of,
    numbers_of,
    readers_of,
)
from tiered.graph import DataType, Tensor


def test_what_becomes_0_or_moves_by_a_sixteenth_is_lost() -> None:
    numbers = np.array([1e-9, -1e-9, 6e-8, 1e-7, 1e-3, 0, 7e4, np.inf, np.nan])
    assert HALF.loses(numbers).tolist() == [
        True, True, False, True, False, False, False, False, False,
    ]  # fmt: skip
    assert HALF.largest == 65504
    assert [HALF.holds(each) for each in (1.0, 65504, 65505, 1e-9)] == [True, True, False, False]


def test_float8_holds_less() -> None:
    few = Narrow.of(DataType.FLOAT8E4M3FN)
    assert few.largest == 448
    assert few.loses(np.array([1e-3])).all()
    assert str(Role("mask", "because")) == "mask: because"


TEXT = """(float[2] x, int64[1] n, bool p) => (float[2] y) <float[2] c = {1,2}, double d = {3},
    int64[2] i = {4,5}, float[0] none = {}> {
    a = Add(x, c)  f = Cast<to = 1>(d)  b = Mul(a, f)  g = Cast<to = 1>(i)  k = Div(b, g)
    e = ConstantOfShape<value = float[1] {7}>(n)  z = ConstantOfShape(n)  l = Max(k, e, z)
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(l) },
               else_branch = o () => (float[2] v) { v = Sub(l, c) }> }"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", [(1, [1, 2])]),
        ("b", [(1, 3)]),
        ("k", []),  # integers are no epsilons
        ("l", [(1, [7])]),
        ("f", []),
    ],
)
def test_constant_operands_are_stored_cast_or_filled_in(name: str, expected: object) -> None:
    found = [
        (place, array.tolist()) for place, _, array in constants_of(made_by(parsed(TEXT), name))
    ]
    assert found == expected


def test_numbers_that_are_not_known() -> None:
    model = parsed(TEXT)
    assert [numbers_of(named(model, name)) for name in ("x", "a", "g", "z")] == [None] * 4
    assert [value.name for value in data_of(made_by(model, "l"))] == ["k", "e", "z"]
    assert [value.name for value in data_of(made_by(model, "a"))] == ["x"]


def test_the_numbers_of_a_sparse_constant_are_not_looked_at() -> None:
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [7.0])
    places = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [2])
    sparse = onnx.helper.make_sparse_tensor(weights, places, [3])
    assert numbers_of(parsed(TEXT).main.constant(Tensor(sparse))) is None


def test_bodies_are_searched_and_functions_are_not() -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g {TEXT}
        <domain: "local", opset_import: ["" : 21]> F (k, m) => (q) {{ q = If(k) <
        then_branch = p () => (float[2] r) {{ r = Neg(m) }},
        else_branch = s () => (float[2] t) {{ t = Abs(m) }}> }}"""
    model = parsed(text)
    assert len(graphs_of(model)) == 3
    found = {node.output.name for node in nodes_of(model)}
    assert {"u", "v", "y"} <= found
    assert found.isdisjoint("qrt")


def test_an_if_reads_the_results_of_its_bodies() -> None:
    model = parsed(TEXT)
    inner = made_by(model, "y").bodies[0].nodes[0]
    assert [(node.op_type, place) for node, place in readers_of(inner)] == [("If", 0)]
    assert [node.op_type for node, _ in readers_of(made_by(model, "l"))] == ["Neg", "Sub"]


def test_no_loop_reads_the_results_of_its_body_and_nobody_an_absent_one() -> None:
    model = parsed("""(float[2] x, int64 n, bool c, int64[1] k) => (float[2] y) {
        , i = TopK(x, k)  f = Cast<to = 1>(i)
        y = Loop(n, c, f) <body = b (int64 at, bool go, float[2] v) => (bool on, float[2] w) {
            on = Identity(go)  w = Neg(v) }> }""")
    assert list(readers_of(made_by(model, "y").bodies[0].nodes[1])) == []
    assert [(node.op_type, place) for node, place in readers_of(model.main.nodes[0])] == [
        ("Cast", 0)
    ]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        ([1, -3, 2], 3),
        ([np.inf, -3, 2], 3),
        ([np.nan, 1], 1),
        ([np.nan, np.inf], 0),
        ([-np.inf, -1], 1),
    ],
)
def test_the_largest_finite_magnitude(array: list[float], expected: float) -> None:
    assert largest_of(np.array(array, np.float32)) == expected
