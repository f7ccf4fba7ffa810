"""Acyclic, connected, isomorphic: what can be said without running anything."""

from typing import Any

import networkx as nx
import numpy as np
import onnx
import pytest

from tests.small import RELUS, model, proto
from tiered import Model, PostconditionError, Sequential, VerificationError, module_pass, verify
from tiered.graph import Graph

TWO_PARTS = """g (float[2] x, float[2] z) => (float[2] y, float[2] v) <float[2] w = {1, 2}> {
    y = Add(x, w)  v = Mul(z, w) }"""
BODY = """g (bool c, float[2] x) => (float[2] y) {
    y = If(c) <then_branch = t () => (float[2] a) { a = OP(x) },
               else_branch = e () => (float[2] b) { b = Abs(x) }> }"""


def test_a_valid_graph_passes() -> None:
    for subject in (model(), model().main, model(BODY.replace("OP", "Relu"))):
        assert verify.acyclic(subject)
        assert verify.connected(subject)


def test_a_cycle_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given = model()
    one, two, *_ = given.main.nodes
    monkeypatch.setattr(Graph, "dag", property(lambda _: nx.DiGraph([(one, two), (two, one)])))
    with pytest.raises(VerificationError, match="graph 'g' has a cycle: node_a -> node_b"):
        verify.acyclic(given)


def test_parts_that_share_no_more_than_a_weight_are_not_connected() -> None:
    with pytest.raises(VerificationError, match=r"in 2 parts: 'node_\w' is not linked"):
        verify.connected(model(TWO_PARTS))
    assert verify.connected(model(TWO_PARTS.replace("Mul(z, w)", "Mul(y, z)")))


def test_names_inside_do_not_count() -> None:
    other = RELUS.replace("b", "q").replace("Aqs", "Abs")
    assert verify.isomorphic_to(proto(other))(model())
    assert verify.isomorphic_to(model(other).main)(model())


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (RELUS, RELUS.replace("Neg", "Exp"), "is not isomorphic to"),
        (RELUS, RELUS.replace(" x)", " z)").replace("(x)", "(z)"), "inputs .'z'. expected"),
        (RELUS, RELUS.replace("y =", "o =").replace(" y)", " o)"), "outputs .'o'. expected"),
        (TWO_PARTS, TWO_PARTS.replace("Mul(z, w)", "Mul(w, z)"), "is not isomorphic to"),
        (TWO_PARTS, TWO_PARTS.replace("{1, 2}", "{1, 3}"), "is not isomorphic to"),
        (BODY.replace("OP", "Relu"), BODY.replace("OP", "Neg"), "is not isomorphic to"),
    ],
)
def test_anything_else_does(before: str, after: str, says: str) -> None:
    with pytest.raises(VerificationError, match=says):
        verify.isomorphic_to(proto(after))(model(before))


def test_the_order_of_nodes_does_not_count() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(x)  y = Sub(a, b) }"
    other = "g (float[2] x) => (float[2] y) { b = Abs(x)  a = Neg(x)  y = Sub(a, b) }"
    assert verify.isomorphic_to(proto(other))(model(text))
    with pytest.raises(VerificationError):
        verify.isomorphic_to(proto(other.replace("Sub(a, b)", "Sub(b, a)")))(model(text))


def test_functions_are_compared_too() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
        g (float[2] x) => (float[2] y) { y = f.twice(x) }
        <domain: "f", opset_import: ["": 21]> twice (x) => (y) { y = OP(x, x) }"""
    one, two = (onnx.parser.parse_model(text.replace("OP", kind)) for kind in ("Add", "Mul"))
    assert verify.isomorphic_to(one)(Model.from_proto(one))
    with pytest.raises(VerificationError, match="is not isomorphic"):
        verify.isomorphic_to(two)(Model.from_proto(one))
    with pytest.raises(VerificationError, match="1 functions expected, not 0"):
        verify.isomorphic_to(one)(model())


def test_they_stand_in_checks_and_conditions() -> None:
    pipeline = Sequential(["eliminate_identity"], checks=[verify.connected])
    assert len(pipeline.apply(model()).main) == 4

    @module_pass(opt_level=None, postcondition=verify.isomorphic_to(proto(RELUS)))
    def drop(model: Any, ctx: Any) -> None:
        (neg,) = model.main.nodes_of("Neg")
        model.main.bypass(neg)

    with pytest.raises(PostconditionError, match="is not isomorphic"):
        drop.apply(model())


@pytest.mark.parametrize(("size", "counts"), [(256, True), (257, False)])
def test_numbers_of_constants_up_to_1024_bytes_count(size: int, counts: bool) -> None:
    text = "g (float[1] x) => (float[N] y) { y = Add(x, w) }"

    def held(number: float) -> onnx.ModelProto:
        made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
        numbers = np.full(size, number, np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(numbers, "w"))
        return made

    check = verify.isomorphic_to(held(1))
    assert check(Model.from_proto(held(1)))
    if counts:
        with pytest.raises(VerificationError, match="is not isomorphic"):
            check(Model.from_proto(held(2)))
    else:
        assert check(Model.from_proto(held(2)))


def test_sparse_constants_are_alike_by_dtype_and_shape() -> None:
    def held(size: int) -> onnx.ModelProto:
        made = proto("g (float[N] x) => (float[N] y) { y = Add(x, w) }")
        values = onnx.numpy_helper.from_array(np.array([5], np.float32), "w")
        indices = onnx.numpy_helper.from_array(np.array([1]))
        made.graph.sparse_initializer.append(
            onnx.helper.make_sparse_tensor(values, indices, [size])
        )
        return made

    assert verify.isomorphic_to(held(2))(Model.from_proto(held(2)))
    with pytest.raises(VerificationError, match="is not isomorphic"):
        verify.isomorphic_to(held(3))(Model.from_proto(held(2)))


def test_absent_operands_and_a_graph_of_a_model_are_compared() -> None:
    text = "g (float[2] x, float k) => (float[2] y) { y = Clip(x, , k) }"
    given = model(text)
    assert verify.isomorphic_to(model(text))(given)
    with pytest.raises(VerificationError, match="is not isomorphic"):
        verify.isomorphic_to(model(text.replace("x, , k", "x, k")))(given)
    assert verify.isomorphic_to(model(text))(given.main)
    assert verify.isomorphic_to(model(text).main)(given)


def test_a_constant_node_links_nothing() -> None:
    text = """(float[2] x, float[2] z) => (float[2] y, float[2] u) {
        c = Constant<value = float[2] {1, 2}>()  y = Add(x, c)  u = Add(z, c) }"""
    with pytest.raises(VerificationError, match="is in 2 parts: 'node_y' is not linked"):
        verify.connected(model(f"g {text}"))
    linked = text.replace("u = Add(z, c)", "u = Add(z, y)")
    assert verify.connected(model(f"g {linked}"))


def test_values_that_bodies_capture_are_compared() -> None:
    text = """g (bool c, float[2] x, float[2] z) => (float[2] y) { p = Exp(x)  q = Sin(z)
        y = If(c) <then_branch = t () => (float[2] a) { a = Sub(FIRST, SECOND) },
                   else_branch = e () => (float[2] b) { b = Abs(x) }> }"""
    texts = [
        text.replace("FIRST", one).replace("SECOND", two)
        for one, two in ("xz", "zx", "pz", "qz", "pq", "qp")
    ]
    for at, one in enumerate(texts):
        for other_at, other in enumerate(texts):
            check = verify.isomorphic_to(proto(other))
            if at == other_at:
                assert check(model(one.replace(" a)", " k)").replace("a =", "k =")))
            else:
                with pytest.raises(VerificationError, match="is not isomorphic"):
                    check(model(one))


def test_which_output_of_a_node_is_read_counts() -> None:
    text = "g (float[4] x) => (float[2] y, float[2] z) { y, z = Split<num_outputs = 2>(x) }"
    with pytest.raises(VerificationError, match="is not isomorphic"):
        verify.isomorphic_to(proto(text.replace("y, z =", "z, y =")))(model(text))


def test_an_input_of_a_body_is_not_that_of_the_body_around() -> None:
    text = """g (bool c, float[2] x, int64 n) => (float[2] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool k, float[2] v) => (bool o, float[2] w) {
            o = Identity(k)
            w = Loop(n, k, v) <body = d (int64 j, bool l, float[2] u) => (bool p, float[2] r) {
                p = Identity(l)  r = Neg(READ) }> }> }"""
    one, two = (text.replace("READ", name) for name in "uv")
    assert verify.isomorphic_to(proto(two))(model(two))
    with pytest.raises(VerificationError, match="is not isomorphic"):
        verify.isomorphic_to(proto(one))(model(two))
