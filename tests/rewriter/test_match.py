"""What a match is, and what forbids to rewrite one."""

import onnx
import pytest

from tests.rewriter.patterns import TWO, X_TO_Y
from tests.small import made_by, model, named, parsed, proto
from tiered import Graph, Skip
from tiered.graph import Model
from tiered.rewriter import (
    Match,
    Pattern,
    chain,
    compile_pattern,
    find_matches,
    match_node,
    op,
    opt,
    var,
)
from tiered.rewriter.match import (
    DEPENDS,
    HAS_OTHER_USER,
    IS_CAPTURED,
    IS_NAMED,
    IS_OUTPUT,
    all_matches,
)

SUM = op.Add(op.Neg(var.a), var.b)
CHAIN = op.Abs(op.Neg(var.a))
TEXT = (
    "(float[2] x, float[2] z, bool p) => (float[2] y{outputs}) {{ n = Neg(x)  y = Abs(n) {more} }}"
)


def at(model: Model, pattern: Pattern, name: str) -> object:
    return match_node(compile_pattern(pattern), made_by(model, name))


@pytest.mark.parametrize(
    ("outputs", "more", "expected"),
    [
        ("", "", None),
        (", float[2] n", "", IS_OUTPUT),
        (", float[2] w", "w = Exp(n)", HAS_OTHER_USER),
        (
            ", float[2] w",
            """w = If(p) <then_branch = t () => (float[2] u) { u = Exp(n) },
            else_branch = e () => (float[2] v) { v = Identity(z) }>""",
            IS_CAPTURED,
        ),
    ],
)
def test_an_inner_value_that_something_else_needs_forbids_it(
    outputs: str, more: str, expected: object
) -> None:
    model = parsed(TEXT.format(outputs=outputs, more=more))
    found = at(model, CHAIN, "y")
    if expected is None:
        assert isinstance(found, Match)
        assert [node.op_type for node in found.nodes] == ["Abs", "Neg"]
        assert found.values == (named(model, "y"),)
        assert found.bindings["a"] is named(model, "x")
    else:
        assert found is expected
    assert len(list(find_matches(model.main, CHAIN))) == (expected is None)
    assert len(list(find_matches(model.main, CHAIN, guarded=False))) == 1


def test_an_annotation_of_an_inner_value_forbids_it() -> None:
    model = parsed(TEXT.format(outputs="", more=""))
    named(model, "n").pins += 1
    assert at(model, CHAIN, "y") is IS_NAMED


def test_operands_are_exchanged_where_another_order_is_forbidden() -> None:
    model = parsed(
        """(float[2] x, float[2] z) => (float[2] y, float[2] w) {
        a = Neg(x)  b = Neg(z)  w = Exp(a)  y = Add(a, b) }"""
    )
    found = at(model, SUM, "y")
    assert isinstance(found, Match)
    assert found.bindings["b"] is named(model, "a")
    assert len(all_matches(compile_pattern(SUM), made_by(model, "y"))) == 2


def test_matches_that_bind_the_same_count_once() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Add(x, x) }")
    programs = compile_pattern(op.Add(var.a, var.b))
    assert len(all_matches(programs, made_by(model, "y"))) == 1


def test_a_node_of_another_operator_is_no_anchor() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert at(model, CHAIN, "y") is None
    assert at(model, op.Exp(var.a), "y") is None
    assert list(find_matches(model.main, op.Exp(var.a))) == []


def test_anchors_come_in_topological_order() -> None:
    model = parsed(
        "(float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  c = Neg(b)  y = Abs(c) }"
    )
    found = [match.node.output.name for match in find_matches(model.main, CHAIN)]
    assert found == ["b", "y"]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("k = Mul(x, z)", None),
        ("e = Abs(z)  k = Mul(x, e)", None),
        ("k = Mul(x, m)", DEPENDS),
        ("e = Abs(m)  k = Mul(x, e)", DEPENDS),
        (
            """e = If(p) <then_branch = t () => (float[2] u) { u = Exp(m) },
            else_branch = e () => (float[2] v) { v = Identity(z) }>  k = Mul(x, e)""",
            DEPENDS,
        ),
    ],
)
def test_of_roots_with_a_common_operand_the_one_may_not_need_the_other(
    second: str, expected: object
) -> None:
    model = parsed(
        f"""(float[2] x, float[2] z, bool p) => (float[2] y)
        {{ m = Neg(x)  {second}  y = Add(m, k) }}"""
    )
    found = at(model, op.Neg(var.a) & op.Mul(var.a, var.b), "m")
    assert (found is expected) if expected else isinstance(found, Match)
    if isinstance(found, Match):
        assert [root.op_type for root in found.roots] == ["Neg", "Mul"]
        assert found.values == (named(model, "m"), named(model, "k"))


def verdict(pattern: Pattern, text: str) -> str:
    """Return why the last node of a graph, or of the body that it owns, is left alone."""
    graph: Graph = model(text).main
    programs = compile_pattern(pattern)
    anchors = [node for node in graph.walk() if node.op_type == programs[0].op_type]
    result = match_node(programs, anchors[-1])
    return str(result) if isinstance(result, Skip) else ("" if result is None else "match")


RELU_OF_NEG = op.Relu(op.Neg(var.a))


def test_another_output_of_an_inner_node_counts_too() -> None:
    pattern = op.Relu(op.Split(var.a, axis=0, num_outputs=2))
    text = f"{TWO} {{ p, z = Split<axis=0, num_outputs=2>(x) y = Relu(p) }}"
    assert verdict(pattern, text) == "an inner value is a graph output"


def test_users_inside_of_the_match_are_fine() -> None:
    inner = op.Neg(var.a)
    pattern = op.Add(op.Relu(inner), op.Abs(inner))
    text = f"{X_TO_Y} {{ n = Neg(x) r = Relu(n) a = Abs(n) y = Add(r, a) }}"
    assert verdict(pattern, text) == "match"


def test_what_is_said_to_be_shared_may_have_other_users() -> None:
    pattern = op.Relu(op.Neg(var.a).shared())
    assert verdict(pattern, f"{TWO} {{ z = Neg(x) y = Relu(z) }}") == "match"


def test_a_value_that_an_annotation_names_stays() -> None:
    given = proto(f"{X_TO_Y} {{ n = Neg(x) y = Relu(n) }}")
    annotation = given.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.append(
        onnx.StringStringEntryProto(key="SCALE_TENSOR", value="n")
    )
    (relu,) = Model.from_proto(given).main.nodes_of("Relu")
    assert str(match_node(compile_pattern(RELU_OF_NEG), relu)) == (
        "training info or an annotation names an inner value"
    )


OTHERS = """(float[2] x) => (float[2] y, float[2] z, float[2] h, float[2] u) {
    h = Neg(x)  k = Neg(h)  y = Add(h, k)  w = Exp(k)  u = Relu(w)  z = Abs(x) }"""


def test_the_first_choice_that_nothing_forbids_is_the_match() -> None:
    neg = op.Neg(var.a)
    rows: list[tuple[Pattern, str, object]] = [
        # Both are forbidden: the first reason counts.
        (op.Add(neg, var.b), "y", IS_OUTPUT),
        (op.Add(neg, var.b) | op.Add(var.b, var.c), "y", Match),
        (op.Exp(neg) | op.Exp(op.Neg(op.Neg(op.Neg(var.a)))), "w", HAS_OTHER_USER),
        (op.Flatten(var.a), "y", None),
    ]
    for pattern, name, expected in rows:
        found = at(parsed(OTHERS), pattern, name)
        is_found = isinstance(found, Match) if expected is Match else found is expected
        assert is_found, str(pattern)


def test_attributes_decide_between_two_orders() -> None:
    text = """(float[2,3] x) => (float[2,3] y) { a = Softmax<axis=1>(x)  b = Softmax<axis=0>(x)
        y = Add(a, b) }"""
    found = at(parsed(text), op.Add(op.Softmax(var.a, axis=0), var.b), "y")
    assert isinstance(found, Match)
    assert found.bindings["b"].name == "a"
    assert at(parsed(text), op.Softmax(var.a, axis=0), "a") is None


def test_an_attribute_that_a_call_decides_forbids_it() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2,3] x) => (float[6] y) { y = d.f <a = 0>(x) }
    <domain: "d", opset_import: ["" : 21]> f <a>(v) => (w) { w = Flatten<axis: int = @a>(v) }"""
    (function,) = parsed(text).functions
    found = match_node(compile_pattern(op.Flatten(var.a)), function.nodes[0])
    assert str(found) == "attribute 'axis' is a function parameter"
    # The first of several is told.
    both = "u = Transpose<perm: ints = @b>(v) w = Flatten<axis: int = @a>(u)"
    text = text.replace("w = Flatten<axis: int = @a>(v)", both).replace("<a>(v)", "<a, b>(v)")
    text = text.replace("<a = 0>", "<a = 0, b = [1, 0]>")
    (function,) = parsed(text).functions
    pattern = op.Flatten(op.Transpose(var.a, perm=[1, 0]))
    found = match_node(compile_pattern(pattern), function.nodes[1])
    assert str(found) == "attribute 'axis' is a function parameter"


def test_the_nodes_of_chains_and_of_choices() -> None:
    text = """(float[2] x) => (float[2] y) { e = Exp(x)  a = Neg(e)  b = Abs(a)  y = Relu(b) }"""
    links = op.Relu(chain(op.Neg | op.Abs, op.Exp(var.a)))
    found = at(parsed(text), links | op.Relu(op.Sin(var.a)), "y")
    assert isinstance(found, Match)
    assert [node.op_type for node in found.nodes] == ["Relu", "Abs", "Neg", "Exp"]
    found = at(parsed(text), op.Relu(op.Sin(var.a) | op.Abs(var.a)), "y")
    assert isinstance(found, Match)
    assert [node.op_type for node in found.nodes] == ["Relu", "Abs"]


def test_absent_operands_and_results_forbid_nothing() -> None:
    text = "(float[2] x) => (float[2] y) { a, , b = own.F(x)  y = Relu(a) }"
    assert isinstance(at(parsed(text), op.Relu(op("own").F(var.a)), "y"), Match)
    text = """(float[2] x, float m) => (float[2] y, float[2] z) {
        y = Relu(x)  c = Clip(y, , m)  z = Clip(x, , c) }"""
    pair = op.Relu(var.a) & op.Clip(var.a, opt.low, opt.high)
    assert at(parsed(text), pair, "y") is DEPENDS
    apart = text.replace("Clip(y, , m)", "Clip(m, , m)")
    assert isinstance(at(parsed(apart), pair, "y"), Match)
