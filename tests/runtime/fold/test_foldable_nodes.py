"""The nodes that depend on constants alone, and the values that others need of them."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import named, parsed
from tiered import Graph, Model, Node
from tiered.runtime.fold.foldable_nodes import (
    is_known,
    known_nodes,
    never_computed,
    nodes_leading_to,
    outputs_of,
    outputs_used_elsewhere,
)
from tiered.testing import parse

# a, b and c are constants; d reads x.
TEXT = """(float[2] x) => (float[2] y, float[2] b) <float[2] w = {1,2}, float[2] v = {3,4}> {
    a = Neg(w)  b = Add(a, v)  c = Mul(b, w)  d = Add(x, c)  y = Sub(d, a) }"""


def node(model: Model | Graph, name: str) -> Node:
    found = named(model, name).producer
    assert found is not None
    return found


def names(nodes: object) -> list[str]:
    assert hasattr(nodes, "__iter__")
    return [each.output.name for each in nodes]


@pytest.mark.parametrize(
    ("text", "taken", "known"),
    [
        ("a = Neg(w)", (), True), ("a = Neg(x)", (), False), ("a = Add(w, x)", (), False),
        ("b = Neg(w)  a = Abs(b)", (), False), ("b = Neg(w)  a = Abs(b)", ("b",), True),
        ("b = Neg(x)  a = Add(w, b)", (), False),
        ("b = Constant<value_float = 1.0>()  a = Neg(b)", (), True),
        ("a = Constant<value_float = 1.0>()", (), False),
        ("a = RandomNormal<shape = [2]>()", (), False),
        ("a = Clip(w, , v)", (), True),
        ("a = DequantizeLinear(q, s)", (), False), ("a = QuantizeLinear(w, s)", (), False),
        ("a = com.microsoft.Gelu(w)", (), False),
        ("a = Identity(w)", (), True),
    ],
)  # fmt: skip
def test_a_node_is_known_if_all_that_it_reads_is(
    text: str, taken: tuple[str, ...], known: bool
) -> None:
    model = parsed(
        f"""(float[2] x) => (float[2] y) <float[2] w = {{1,2}}, float v = {{3}},
            uint8[2] q = {{1,2}}, float s = {{0.5}}> {{ {text}  y = Neg(x) }}"""
    )
    assert is_known(node(model, "a"), {node(model, each) for each in taken}) is known


def test_known_nodes_are_in_topological_order_one_step_deep() -> None:
    model = parsed(TEXT)
    assert names(known_nodes(model.main)) == ["a"]
    assert known_nodes(parsed("(float x) => (float y) { y = Neg(x) }").main) == []
    late = parse("(float[2] x) => (float[2] y) <float[2] w = {1,2}> {  "
                 "k = Constant<value_float=1.0>()"
                 "  b = Neg(k)  a = Abs(w)  y = Neg(x) }")  # fmt: skip
    assert names(known_nodes(Model.from_proto(late).main)) == ["b", "a"]


def test_an_overridable_default_is_no_constant() -> None:
    proto = parse("(float[2] x, float[2] w) => (float[2] y) { a = Neg(w)  y = Add(x, a) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    assert known_nodes(Model.from_proto(proto).main) == []


IF = """(bool c, float[2] x) => (float[2] y) <float[2] w = {1,2}> {
    y = If(k)<then_branch = t () => (float[2] p) { p = Add(OUTER, w) },
              else_branch = e () => (float[2] q) { q = Identity(w) }> }"""


@pytest.mark.parametrize(("outer", "known"), [("w", True), ("x", False)])
def test_what_bodies_capture_is_read_too(outer: str, known: bool) -> None:
    text = IF.replace("OUTER", outer).replace("<float[2] w", "<bool k = {1}, float[2] w")
    assert is_known(node(parsed(text), "y"), set()) is known


@pytest.mark.parametrize(
    ("size", "version", "known"), [(16, 10, True), (17, 10, False), (16, 3, False), (16, 4, True)]
)
def test_an_identity_for_an_output_is_folded_only_in_a_body_for_few_bytes(
    size: int, version: int, known: bool
) -> None:
    numbers = ",".join(["1"] * size)
    proto = parse(
        f"""(bool c) => (float[n] y, float[n] z) <float[{size}] w = {{{numbers}}}> {{
            z = Identity(w)
            y = If(c)<then_branch = t () => (float[n] p) {{ p = Identity(w) }},
                      else_branch = e () => (float[n] q) {{ q = Neg(w) }}> }}"""
    )
    proto.ir_version = version
    if version < 4:
        proto.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [size]))
    model = Model.from_proto(proto)
    body = node(model, "y").bodies[0]
    assert is_known(node(body, "p"), set()) is known
    assert not is_known(node(model, "z"), set())


def test_an_identity_of_what_is_no_constant_yet_waits_for_it() -> None:
    proto = parse(
        """(bool c) => (float[2] y) <float[2] w = {1,2}> {
            y = If(c)<then_branch = t () => (float[2] p) { n = Neg(w)  p = Identity(n) },
                      else_branch = e () => (float[2] q) { q = Neg(w) }> }"""
    )
    body = node(Model.from_proto(proto), "y").bodies[0]
    assert not is_known(node(body, "p"), {node(body, "n")})


@pytest.mark.parametrize(("version", "known"), [(3, False), (4, True)])
def test_a_constant_of_an_old_body_is_a_node(version: int, known: bool) -> None:
    proto = parse(
        """(bool c) => (float[2] y) { w = Constant<value = float[2] {1, 2}>()
            y = If(c)<then_branch = t () => (float[2] p) { p = Identity(w) },
                      else_branch = e () => (float[2] q) { q = Neg(w) }> }"""
    )
    proto.ir_version = version
    body = node(Model.from_proto(proto), "y").bodies[0]
    assert is_known(node(body, "p"), set()) is known


def test_a_constant_of_a_body_of_a_function_is_a_node() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (bool c) => (float[2] y) { y = f.F(c) }
        <domain: "f", opset_import: ["" : 21]> F (c) => (y) {
            y = If(c)<then_branch = t () => (float[2] p) <float[2] w = {1,2}> { p = Identity(w) },
                      else_branch = e () => (float[2] q) <float[2] v = {1,2}> { q = Neg(v) }> }"""
    (function,) = Model.from_proto(onnx.parser.parse_model(text)).functions
    one, two = node(function, "y").bodies
    assert [is_known(node(one, "p"), set()), is_known(node(two, "q"), set())] == [False, True]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = DequantizeLinear(q, s)", "quantised constants stay quantised"),
        ("a = DynamicQuantizeLinear(w)", "quantised constants stay quantised"),
        ("a = com.microsoft.Gelu(w)", "the operator is not a standard one"),
        ("a = DequantizeLinear(q, x)", None),
        ("a = com.microsoft.Gelu(x)", None),
        ("a = Neg(w)", None),
        ("a = Constant<value_float = 1.0>()", None),
        ("a = vendor.DequantizeLinear(q, s)", "the operator is not a standard one"),
        ("a = vendor.Source()", None),
        ("a = DequantizeLinear(q, d)", None),
        ("a = com.microsoft.Gelu(w)  b = Neg(w)", "the operator is not a standard one"),
    ],
)
def test_constants_that_are_never_computed_have_a_reason(text: str, reason: str | None) -> None:
    if "Dynamic" in text:
        text = text.replace("a =", "a, b, c =")
    model = parsed(
        f"""(float x, float d) => (float y)
            <float[2] w = {{1,2}}, uint8[2] q = {{1,2}}, float s = {{1}}, float d = {{1}}>
            {{ {text}  y = Neg(x) }}"""
    )
    found = [(each.op_type, str(skip)) for each, skip in never_computed(model.main)]
    expected = (
        []
        if reason is None
        else [(text.split("=")[1].split("(")[0].split(".")[-1].strip(), reason)]
    )
    assert found == expected


def test_sparse_operands_have_a_reason() -> None:
    proto = parse("(float[2] x) => (float[2] y) <float[2] w = {1,2}> {"
                  " a = Neg(s)  b = Add(x, s)  c = Neg(w)  y = Neg(x) }")  # fmt: skip
    values = numpy_helper.from_array(np.array([5], np.float32), "s")
    indices = numpy_helper.from_array(np.array([1]))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2]))
    model = Model.from_proto(proto)
    assert [str(skip) for _, skip in never_computed(model.main)] == ["an operand is sparse"]
    assert names(known_nodes(model.main)) == ["c"]


def test_outputs_are_in_the_order_of_their_nodes() -> None:
    model = parsed("(float[4] x) => (float[2] y) { b = Neg(x)  y, z = Split<num_outputs=2>(b) }")
    y, b = node(model, "y"), node(model, "b")
    assert [value.name for value in outputs_of({y, b})] == ["b", "y", "z"]


@pytest.mark.parametrize(
    ("inside", "needed"),
    [
        ("abc", ["a", "b", "c"]),
        ("ab", ["a", "b"]),
        ("a", ["a"]),
        ("acdy", ["a", "y"]),
        ("abcdy", ["b", "y"]),
    ],
)
def test_values_that_others_read_or_that_are_outputs(inside: str, needed: list[str]) -> None:
    model = parsed(TEXT)
    nodes = {node(model, each) for each in inside}
    assert [value.name for value in outputs_used_elsewhere(nodes)] == needed


def test_the_nodes_that_lead_to_values() -> None:
    model = parsed(TEXT)
    everything = {node(model, each) for each in "abcdy"}
    assert set(names(nodes_leading_to([named(model, "c")], everything))) == {"b", "a"}
    assert names(nodes_leading_to([named(model, "c")], {node(model, "b")})) == ["b"]
    assert names(nodes_leading_to([named(model, "c")], {node(model, "a")})) == []
    assert names(nodes_leading_to([named(model, "x")], everything)) == []
    both = nodes_leading_to([named(model, "b"), named(model, "y")], everything)
    assert sorted(names(both)) == ["a", "b", "c", "d"]
