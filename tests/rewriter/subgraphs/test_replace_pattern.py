"""Subgraphs for subgraphs, and subgraphs that are only looked for."""

# ruff: noqa: PLW0108 - a pattern is written as a function of its inputs

from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import content, model, ops, proto
from tiered import DataType, Model, SubgraphMatcher, UsageError, op, replace_pattern, var
from tiered.rewriter import PatternError, opt
from tiered.testing import parse

ADDS = """g (float[2] x, float[2] w) => (float[2] y) {
    a = Add(x, w)  b = Relu(a)  c = Add(b, w)  y = Abs(c)
}"""

FORMS: dict[str, tuple[Any, Any]] = {
    "functions": (lambda a, b: op.Add(a, b), lambda a, b: op.Sub(a, op.Neg(b))),
    "text": (
        "(a, b) => (c) { c = Add(a, b) }",
        "(p, q) => (r) { n = Neg(q)  r = Sub(p, n) }",
    ),
    "typed text": (
        "(float[N] a, float[N] b) => (float[N] c) { c = Add(a, b) }",
        "(p, q) => (r) { n = Neg(q)  r = Sub(p, n) }",
    ),
    "patterns": (op.Add(var.a, var.b), op.Sub(var.a, op.Neg(var.b))),
}


@pytest.mark.parametrize(("pattern", "replacement"), FORMS.values(), ids=FORMS)
def test_every_match_is_replaced_once(pattern: Any, replacement: Any) -> None:
    given = model(ADDS)
    replaced = replace_pattern(given, pattern, replacement)
    assert ops(given) == ["Neg", "Sub", "Relu", "Neg", "Sub", "Abs"]
    assert [found.anchor.op_type for found in replaced] == ["Add", "Add"]
    given.check_view()


def test_what_was_replaced_is_returned() -> None:
    given = model(ADDS)
    anchor = given.main.nodes_of("Add")[0]
    (first, _) = replace_pattern(given, FORMS["patterns"][0], FORMS["patterns"][1])
    assert first.anchor is anchor
    assert anchor.graph is None
    assert first.nodes_map[op.Add(var.a, var.b)] is anchor
    assert first.nodes_map[var.a] is given.main.inputs[0]
    assert [node.op_type for node in first.replacements] == ["Neg", "Sub"]
    assert all(node.graph is given.main for node in first.replacements)


def test_what_was_made_is_not_matched_again() -> None:
    given = model("g (float[2] x) => (float[2] y) { a = Relu(x) y = Relu(a) }")
    replace_pattern(given, lambda a: op.Relu(a), lambda a: op.Relu(op.Abs(a)))
    assert ops(given) == ["Abs", "Relu", "Abs", "Relu"]


def test_what_was_made_is_no_part_of_another_match() -> None:
    given = model("g (float[2] x) => (float[2] y) { a = Neg(x) b = Relu(a) y = Relu(b) }")
    replace_pattern(given, lambda a: op.Relu(op.Neg(a)), lambda a: op.Neg(op.Relu(a)))
    assert ops(given) == ["Relu", "Neg", "Relu"]


def test_a_number_beside_what_has_no_dtype_is_not_written() -> None:
    given = Model.from_proto(
        parse(
            """<ir_version: 10, opset_import: ["": 21, "local": 1]>
            g (float[2] x) => (float[2] y) { y = local.f(x) }
            <domain: "local", opset_import: ["": 21]> f (x) => (y) { y = Neg(x) }"""
        )
    )
    assert replace_pattern(given, lambda a: op.Neg(a), lambda a: op.Mul(a, -1.0)) == []
    assert [node.op_type for node in given.to_proto().functions[0].node] == ["Neg"]


def test_of_matches_that_overlap_the_first_is_replaced() -> None:
    given = model("g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) y = Relu(b) }")
    replaced = replace_pattern(given, lambda a: op.Relu(op.Relu(a)), lambda a: op.Abs(a))
    assert ops(given) == ["Abs", "Relu"]
    assert len(replaced) == 1
    # What takes their place is in no match, even if it is all that was made.
    given = model("g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) y = Relu(b) }")
    replace_pattern(given, lambda a: op.Relu(op.Relu(a)), lambda a: op.Relu(a))
    assert ops(given) == ["Relu", "Relu"]


def test_all_filters_must_agree() -> None:
    given = model(ADDS)
    seen: list[str] = []

    def is_first(match: Any, graph: Any, pattern: Any) -> bool:
        assert graph is given.main
        assert str(pattern) == "op.Add(var.a, var.b)"
        seen.append(match.node.label)
        return bool(match.node.label == "node_a")

    replace_pattern(given, FORMS["functions"][0], lambda a, b: op.Mul(a, b), [is_first])
    assert ops(given) == ["Mul", "Relu", "Add", "Abs"]
    assert seen == ["node_a", "node_c"]


def test_several_outputs() -> None:
    given = model("g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Neg(x) }")
    replaced = replace_pattern(
        given,
        lambda a: (op.Relu(a), op.Neg(a)),
        lambda a: (op.Abs(a), op.Ceil(a)),
    )
    assert len(replaced) == 1
    assert [value.producer and value.producer.op_type for value in given.main.outputs] == [
        "Abs",
        "Ceil",
    ]


def test_several_outputs_of_one_node_in_text() -> None:
    given = model("""g (float[2,2] x) => (float[2,1] y, float[2,1] z) {
        y, z = Split<axis=1, num_outputs=2>(x)
    }""")
    replace_pattern(
        given,
        "(a) => (b, c) { b, c = Split<axis=1, num_outputs=2>(a) }",
        "(a) => (b, c) { r = Relu(a)  b, c = Split<axis=1, num_outputs=2>(r) }",
    )
    assert ops(given) == ["Relu", "Split"]
    assert [value.name for value in given.main.outputs] == ["y", "z"]


def test_a_number_has_the_dtype_of_what_stands_beside_it() -> None:
    text = "g (float16[2] x) => (float16[2] y) { y = Add(x, x) }"
    given = Model.from_proto(model(text).to_proto())
    replace_pattern(given, lambda a: op.Add(a, a), lambda a: op.Mul(a, 2.0))
    (mul,) = given.main.nodes_of("Mul")
    two = mul.inputs[1]
    assert two is not None
    assert two.dtype == DataType.FLOAT16
    onnx.checker.check_model(given.to_proto(), full_check=True)


def test_a_number_beside_nothing_known_declines() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x) => (float[2] y) { u = d.Twist(x)  y = Add(u, u) }"""
    given = Model.from_proto(onnx.parser.parse_model(text))
    assert replace_pattern(given, lambda a: op.Add(a, a), lambda a: op.Mul(a, 2.0)) == []


def test_an_array_has_its_own_dtype() -> None:
    given = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    replace_pattern(given, lambda a: op.Relu(a), lambda a: op.Add(a, np.array([1, 2], np.float32)))
    (add,) = given.main.nodes_of("Add")
    assert add.inputs[1] is not None
    assert add.inputs[1].const is not None
    assert add.inputs[1].const.tolist() == [1, 2]


def test_attributes_go_over() -> None:
    given = model("g (float[2,3] x) => (float[N] y) { y = Flatten<axis=0>(x) }")
    replace_pattern(
        given, op.Flatten(var.a, axis=var.at), lambda a: op.Flatten(op.Relu(a), axis=var.at)
    )
    (flat,) = given.main.nodes_of("Flatten")
    assert flat.attr("axis") == 0


def test_what_somebody_else_reads_is_left_alone() -> None:
    given = model("g (float[2] x) => (float[2] y, float[2] z) { z = Neg(x) y = Relu(z) }")
    assert replace_pattern(given, lambda a: op.Relu(op.Neg(a)), lambda a: op.Abs(a)) == []


def test_one_graph_alone() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) {
        r = Relu(x)
        y = If(c) <then_branch = t () => (float[2] p) { p = Relu(r) },
                   else_branch = e () => (float[2] q) { q = Abs(r) }>
    }"""
    given = model(text)
    body = given.main.body_nodes[0].bodies[0]
    assert len(replace_pattern(body, lambda a: op.Relu(a), lambda a: op.Neg(a))) == 1
    assert len(given.main.nodes_of("Relu")) == 1


def test_a_replacement_that_fails_leaves_the_model_as_it_was() -> None:
    given = model(ADDS)
    before = content(given)

    def fails(match: Any, graph: Any, pattern: Any) -> bool:
        if match.node.label == "node_c":
            raise RuntimeError("no")
        return True

    with pytest.raises(RuntimeError):
        replace_pattern(given, FORMS["functions"][0], lambda a, b: op.Mul(a, b), [fails])
    assert content(given) == before


WRONG = [
    (lambda a, b: op.Add(a, b), lambda a: op.Neg(a), PatternError, "2 inputs .*the replacement 1"),
    (lambda a: op.Relu(a), lambda a: (a, a), PatternError, "1 output .*the replacement 2"),
    (lambda a: op.Relu(a), lambda a: op.Add(a, ...), PatternError, "what should be built"),
    (lambda a: op.Relu(a), lambda a: op.Flatten(a, attrs=...), PatternError, "attributes open"),
    (lambda a: op.Relu(a), lambda a: op.Add(a, var.b), PatternError, "no input of it"),
    (lambda a: a, lambda a: a, PatternError, "its root must be an operator"),
    ("(a) => (b) { b = Relu(c) }", lambda a: a, UsageError, "Relu reads c"),
    ("(a) => (c) { b = Relu(a) }", lambda a: a, UsageError, "no node computes 'c'"),
    ("(a) => (b) { b = Relu a }", lambda a: a, UsageError, "does not parse"),
    (3, lambda a: a, UsageError, "a pattern is a function, a string, an ONNX graph"),
]


@pytest.mark.parametrize(("pattern", "replacement", "error", "message"), WRONG)
def test_what_does_not_fit_together_is_refused(
    pattern: Any, replacement: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        replace_pattern(model(ADDS), pattern, replacement)


def test_it_needs_a_model_to_edit() -> None:
    with pytest.raises(UsageError, match="not an object of type ModelProto"):
        replace_pattern(model(ADDS).to_proto(), "", "")  # type: ignore[arg-type]  # the point


# --- SubgraphMatcher ------------------------------------------------------------------------------

CHAIN = "g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) c = Relu(b) y = Relu(c) }"


def found(pattern: Any, text: str, **options: Any) -> list[list[str]]:
    """Return the labels of the anchors of each match."""
    matches = SubgraphMatcher(pattern, **options).match(model(text).main)
    return [[anchor.label for anchor in match.anchors] for match in matches]


def test_matches_that_overlap_are_dropped_or_kept() -> None:
    pair = op.Relu(op.Relu(var.a))
    assert found(pair, CHAIN) == [["node_b"], ["node_y"]]
    kept = found(pair, CHAIN, remove_overlapping_matches=False)
    assert kept == [["node_b"], ["node_c"], ["node_y"]]


def test_outputs_must_be_those_of_the_graph() -> None:
    assert found(op.Relu(var.a), CHAIN, match_output=True) == [["node_y"]]


def test_inputs_must_be_those_of_the_graph() -> None:
    assert found(op.Relu(var.a), CHAIN, match_placeholder=True) == [["node_a"]]


def test_literals_may_be_ignored() -> None:
    text = "g (float[2] x) => (float[2] y) <float k = {3}> { m = Mul(x, k) y = Softmax<axis=0>(m) }"
    exact = "(a) => (b) { two = Constant<value_float=2.0>() m = Mul(a, two) b = Softmax(m) }"
    assert found(exact, text) == []
    assert found(exact, text, ignore_literals=True) == [["node_y"]]


def test_initializers_match_any_constant_unless_values_count() -> None:
    text = "g (float[2] x) => (float[2] y) <float[1] k = {3}> { y = Mul(x, k) }"
    pattern = "(float[2] a) => (float[2] b) <float[2] w = {1, 2}> { b = Mul(a, w) }"
    assert found(pattern, text) == [["node_y"]]
    assert found(pattern, text, match_values=True) == []
    assert found(pattern.replace("[2] w = {1, 2}", "[1] w = {3}"), text, match_values=True)


def test_what_a_match_says() -> None:
    text = "g (float[2] x, float[2] w) => (float[2] y) { s = Sub(x, w) y = Neg(s) }"
    graph = model(text).main
    (match,) = SubgraphMatcher("(p, q) => (r) { d = Sub(p, q) r = Neg(d) }").match(graph)
    assert [value and value.name for value in match.placeholder_nodes] == ["x", "w"]
    assert [value.name for value in match.returning_nodes] == ["y"]
    assert match.nodes_map[op.Sub(var.p, var.q)] is graph.nodes_of("Sub")[0]
    assert match.nodes_map[var.q] is graph.inputs[1]
    (match,) = SubgraphMatcher(op.Neg(op.Sub(var.p, var.q))).match(graph)
    assert match.nodes_map[var.p] is graph.inputs[0]
    clip = model("g (float[2] x) => (float[2] y) { y = Clip(x) }").main
    (match,) = SubgraphMatcher(op.Clip(var.p, opt.low)).match(clip)
    assert list(match.nodes_map) == [op.Clip(var.p, opt.low), var.p]


def test_only_a_model_or_a_graph_is_searched() -> None:
    with pytest.raises(UsageError) as caught:
        SubgraphMatcher(op.Neg(var.a)).match(proto(ADDS))  # type: ignore[arg-type]  # what is tested
    assert str(caught.value) == (
        "match takes a Model or a Graph, not an object of type ModelProto: "
        "Model.from_proto makes one of a "
        "ModelProto"
    )


def test_shared_parts_stay_shared_where_literals_are_ignored() -> None:
    split = op.Split(var.a, axis=0, num_outputs=2)
    pattern = op.Add(split, split.out(1)) | op.Mul(split, split.out(1))
    text = """g (float[2,2] x) => (float[2,1] y) {
        p, q = Split<axis=1, num_outputs=2>(x)  y = Mul(p, q)
    }"""
    assert found(pattern, text) == []
    assert found(pattern, text, ignore_literals=True) == [["node_y"]]


GRAPHS = [
    lambda proto: proto,
    lambda proto: proto.graph,
    lambda proto: Model.from_proto(proto),
    lambda proto: Model.from_proto(proto).main,
]


@pytest.mark.parametrize("form", GRAPHS)
def test_a_graph_or_a_model_is_a_pattern_whatever_types_its_inputs_have(form: Any) -> None:
    pattern = form(parse("(float[7] a, float[7] b) => (float[7] c) { c = Add(a, b) }"))
    after = form(parse("(int64[7] p, int64[7] q) => (int64[7] r) { n = Neg(q)  r = Sub(p, n) }"))
    given = model(ADDS)
    assert len(replace_pattern(given, pattern, after)) == 2
    assert ops(given) == ["Neg", "Sub", "Relu", "Neg", "Sub", "Abs"]


def test_a_local_function_is_a_pattern_and_a_body_is_none() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "l" : 1]>
    g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] b) { b = Neg(x) },
                   else_branch = e () => (float[2] d) { d = l.f(x) }> }
    <domain: "l", opset_import: ["" : 21]> f (p) => (r) { q = Add(p, p) r = Relu(q) }"""
    proto = parse(text)
    given = model("g (float[2] x) => (float[2] y) { a = Add(x, x)  y = Relu(a) }")
    assert len(SubgraphMatcher(proto.functions[0]).match(given)) == 1
    (body, *_) = Model.from_proto(proto).main.nodes[0].bodies
    with pytest.raises(UsageError, match="a main graph or a model"):
        SubgraphMatcher(body)


def test_a_whole_model_is_searched_with_its_bodies() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) {
        n = Neg(x)
        y = If(c) <then_branch = t () => (float[2] b) { b = Neg(n) },
                   else_branch = e () => (float[2] d) { d = Abs(n) }> }"""
    given = model(text)
    matcher = SubgraphMatcher(lambda x: op.Neg(x))
    assert len(matcher.match(given)) == 2
    assert len(matcher.match(given.main)) == 1
