import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, get_pass, optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_nop_if"


def test_the_taken_branch_moves_up() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) <then_branch = t () => (float[2] a) { a = Relu(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_a_condition_may_have_one_element_and_be_false() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <bool[1] c = {0}> { z = If(c) <then_branch = t () => (float[2] a) { a = Relu(x) }, else_branch = e () => (float[2] b) { d = Neg(x) b = Exp(d) }> y = Abs(z) }",
        "(float[2] x) => (float[2] y) { d = Neg(x) z = Exp(d) y = Abs(z) }",
    )


def test_the_outputs_keep_the_names_that_they_have_outside() -> None:
    text = "(float[2] x) => (float[2] y, float[2] z) <bool c = {1}> { y, m = If(c) <then_branch = t () => (float[2] a, float[2] k) { [inner] k = Relu(x) a = Exp(k) }, else_branch = e () => (float[2] b, float[2] b2) { b = Neg(x) b2 = Abs(x) }> z = Abs(m) }"
    made = assert_undone(PASS, text)
    assert {node.op_type: list(node.output) for node in made.graph.node} == {
        "Relu": ["m"],
        "Exp": ["y"],
        "Abs": ["z"],
    }
    assert made.graph.node[0].name == "inner"


def test_a_branch_that_gives_a_captured_value_or_an_initializer() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) <bool c = {1}> { m = Relu(x) p, q = If(c) <then_branch = t () => (float[2] m, float[2] w) <float[2] w = {1,2}> { }, else_branch = e () => (float[2] m, float[2] b) { b = Abs(x) }> y = Neg(p) z = Add(q, x) }",
        "(float[2] x) => (float[2] y, float[2] z) <float[2] w = {1,2}> { m = Relu(x) y = Neg(m) z = Add(w, x) }",
        runtime="none",
    )


def test_a_graph_output_may_be_the_initializer_of_a_branch() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) <then_branch = t () => (float[2] w) <float[2] w = {1,2}> { }, else_branch = e () => (float[2] b) { b = Abs(x) }> }",
        "(float[2] x) => (float[2] y) <float[2] y = {1,2}> { }",
    )


def test_a_graph_output_that_is_a_graph_input_gets_an_identity() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) <then_branch = t () => (float[2] a) { a = Identity(x) }, else_branch = e () => (float[2] b) { b = Abs(x) }> }",
        "(float[2] x) => (float[2] y) { y = Identity(x) }",
    )


def test_names_that_are_not_free_outside_are_made_fresh() -> None:
    branch = "then_branch = t () => (float[2] b) <float[2] w = {{{0},2}}> {{ [n] a = Add(x, w) b = Neg(a) }}, else_branch = e () => (float[2] b) <float[2] w = {{9,9}}> {{ [n] a = Mul(x, w) b = Exp(a) }}"
    text = f"(float[2] x) => (float[2] y) <bool c = {{1}}> {{ p = If(c) <{branch.format(1)}> q = If(c) <{branch.format(3)}> y = Add(p, q) }}"
    assert_rewrites(
        PASS,
        text,
        "(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] w2 = {3,2}> { a = Add(x, w) p = Neg(a) a2 = Add(x, w2) q = Neg(a2) y = Add(p, q) }",
    )
    made = assert_undone(PASS, text)
    names = [node.name for node in made.graph.node if node.name]
    assert len(names) == len(set(names))


def test_an_if_inside_a_branch_is_next() -> None:
    text = "(float[2] x, bool d) => (float[2] y) <bool c = {1}> { y = If(c) <then_branch = t () => (float[2] a) <bool k = {0}> { s = Exp(x) a = If(k) <then_branch = tt () => (float[2] r) { r = Relu(s) }, else_branch = te () => (float[2] r2) { r2 = If(d) <then_branch = u () => (float[2] u1) { u1 = Sin(s) }, else_branch = v () => (float[2] v1) { v1 = Cos(s) }> }> }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, bool d) => (float[2] y) { s = Exp(x) y = If(d) <then_branch = u () => (float[2] u1) { u1 = Sin(s) }, else_branch = v () => (float[2] v1) { v1 = Cos(s) }> }",
    )
    assert_undone(PASS, text)


def test_an_if_inside_a_loop_moves_into_its_body() -> None:
    text = "(float[2] x, int64 n) => (float[2] y) <bool go = {1}, bool c = {0}> { y = Loop(n, go, x) <body = l (int64 i, bool g, float[2] v) => (bool g2, float[2] v2) { g2 = Identity(g) v2 = If(c) <then_branch = t () => (float[2] a) { a = Relu(v) }, else_branch = e () => (float[2] w) <float[2] w = {1,2}> { }> }> }"
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, int64 n) => (float[2] y) <bool go = {1}> { y = Loop(n, go, x) <body = l (int64 i, bool g, float[2] v) => (bool g2, float[2] v2) <float[2] v2 = {1,2}> { g2 = Identity(g) }> }",
    )
    assert_undone(PASS, text)


FUNCTION = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2] x) => (float[2] y) { y = local.f(x) }
<domain: "local", opset_import: ["" : 21]> f (v) => (u) { c = Constant<value = bool[1] {1}>() "BODY" }
"""


def test_in_a_local_function_initializers_become_constant_nodes() -> None:
    text = FUNCTION.replace(
        '"BODY"',
        "u = If(c) <then_branch = t () => (float[2] a) <float[2] w = {1,2}> { a = Add(v, w) }, else_branch = e () => (float[2] b) { b = Neg(v) }>",
    )
    after = FUNCTION.replace('"BODY"', "w = Constant<value = float[2] {1,2}>() u = Add(v, w)")
    assert_rewrites(PASS, text, after.replace("c = Constant<value = bool[1] {1}>()", ""))
    assert_undone(PASS, text)


def test_before_ir_4_initializers_become_constant_nodes() -> None:
    text = '<ir_version: 3, opset_import: ["" : 8]> g (float[2] x) => (float[2] y) { c = Constant<value = bool[1] {1}>() y = If(c) <then_branch = t () => (float[2] a) <float[2] w = {1,2}> { a = Add(x, w) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }'
    assert_rewrites(
        PASS,
        text,
        '<ir_version: 3, opset_import: ["" : 8]> g (float[2] x) => (float[2] y) { w = Constant<value = float[2] {1,2}>() y = Add(x, w) }',
        runtime="reference",
    )


def test_a_captured_condition_is_one_too() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool d) => (float[2] y) <bool c = {1}> { y = If(d) <then_branch = t () => (float[2] a) { a = If(c) <then_branch = t2 () => (float[2] a2) { a2 = Sin(x) }, else_branch = e2 () => (float[2] b2) { b2 = Cos(x) }> }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
        "(float[2] x, bool d) => (float[2] y) { y = If(d) <then_branch = t () => (float[2] a) { a = Sin(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
    )


def test_branches_that_compute_the_same_need_no_condition() -> None:
    text = "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) <float[2] w = {1,2}> { p = Add(x, w) a = LeakyRelu<alpha=0.5>(p) }, else_branch = e () => (float[2] b) <float[2] k = {1,2}> { q = Add(x, k) b = LeakyRelu<alpha=0.5>(q) }> }"
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { p = Add(x, w) y = LeakyRelu<alpha=0.5>(p) }",
    )
    assert_undone(PASS, text)


@pytest.mark.parametrize(
    "other",
    [
        "q = Add(k, x) b = LeakyRelu<alpha=0.5>(q)",
        "q = Add(x, k) b = LeakyRelu(q)",
        "q = Add(x, x) b = LeakyRelu<alpha=0.5>(q)",
        "q = Add(x, k) b = Add(x, k)",
    ],
)
@pytest.mark.parametrize("because", ["the condition is not constant; the branches differ"])
def test_branches_that_differ_in_anything_stay(other: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[2] x, bool c) => (float[2] y) {{ y = If(c) <then_branch = t () => (float[2] a) <float[2] w = {{1,2}}> {{ p = Add(x, w) a = LeakyRelu<alpha=0.5>(p) }}, else_branch = e () => (float[2] b) <float[2] k = {{1,2}}> {{ {other} }}> }}",
        because=because,
    )


def test_two_draws_are_not_the_same() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) { a = RandomNormalLike<seed=1.0>(x) }, else_branch = e () => (float[2] b) { b = RandomNormalLike<seed=1.0>(x) }> }",
        because="the branches differ",
    )


def test_two_conditions_choose_no_branch() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <bool[2] c = {1,0}> { y = If(c) <then_branch = t () => (float[2] a) { a = Relu(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
        because="the condition is not constant; the branches differ",
    )


def test_an_overridable_condition_is_no_constant() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool c = {1}) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) { a = Relu(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
        because="the condition is not constant; the branches differ",
    )


def test_a_branch_that_the_call_gives_stays() -> None:
    model = parse(
        FUNCTION.replace(
            '"BODY"',
            "u = If(c) <then_branch = t () => (float[2] a) { a = Relu(v) }, else_branch = e () => (float[2] b) { b = Neg(v) }>",
        )
    )
    node = model.functions[0].node[1]
    node.attribute[1].CopyFrom(
        onnx.AttributeProto(
            name="else_branch", ref_attr_name="other", type=onnx.AttributeProto.GRAPH
        )
    )
    model.functions[0].attribute.append("other")
    check_declined(model, because="the call of the function gives a branch")


def test_quantization_annotations_keep_their_branch() -> None:
    model = parse(
        "(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) <then_branch = t () => (float[2] a) <float s = {1}> { a = Mul(x, s) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
    )
    body = model.graph.node[0].attribute[0].g
    annotation = body.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    check_declined(model, because="quantization annotations refer to the branch")


def check_declined(proto: onnx.ModelProto, because: str) -> None:
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert len(model.journal) == 0
    assert any(because in remark.reason for remark in ctx.remarks)


def test_the_types_of_an_unknown_operator_go_with_it() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "custom" : 1]> '
    model = parse(
        header
        + "g (float[2] x) => (float[2] y) <bool c = {1}> { z = If(c) <then_branch = t () => (float[2] a) <float[2,7] k> { k = custom.Op(x) a = custom.Other(k) }, else_branch = e () => (float[2] b) { b = Neg(x) }> y = Relu(z) }"
    )
    made = assert_undone(PASS, model)
    declared = {info.name: info.type.tensor_type.elem_type for info in made.graph.value_info}
    assert declared == {"k": 1, "z": 1}


def test_types_are_not_asked_of_what_went_with_the_branch_that_is_not_taken() -> None:
    proto = parse(
        "(float[N] x) => (float[M] y) <bool c = {1}, int64[1] k = {1}> { y = If(c) <"
        "then_branch = t () => (float[P] a) { s = Shape(x) a = Expand(x, s) },"
        "else_branch = e () => (float[Q] b) { r = Shape(x) q = Add(r, k) b = Expand(x, q) }> }"
    )
    model = Model.from_proto(proto)
    for name in ("infer_shapes", "trace_folding", "eliminate_nop_if", "infer_shapes"):
        get_pass(name).apply(model)
    assert not model.main.nodes_of("If")


def test_an_if_that_only_one_before_it_read_goes_with_it() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) <bool no = {0}> {"
        " a = Neg(x)"
        " b = If(no) <then_branch = t () => (float[2] p) { p = If(no) <"
        "then_branch = tt () => (float[2] q) { q = Abs(a) },"
        "else_branch = te () => (float[2] r) { r = Exp(a) }> },"
        "else_branch = e () => (float[2] s) { s = Identity(x) }>"
        " y = Relu(b) }",
        "(float[2] x, bool c) => (float[2] y) { s = Identity(x) y = Relu(s) }",
    )


def test_an_if_that_reads_another_one_for_nothing_goes_first_or_last() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) <bool yes = {1}> {"
        " a = If(yes) <then_branch = t () => (float[2] p) { p = Neg(x) },"
        "else_branch = e () => (float[2] q) { q = Abs(x) }>"
        " b = If(yes) <then_branch = u () => (float[2] r) { r = Exp(x) },"
        "else_branch = f () => (float[2] s) { s = Sqrt(a) }>"
        " d = If(yes) <then_branch = v () => (float[2] m) { m = Neg(b) },"
        "else_branch = g () => (float[2] n) { n = Add(a, b) }>"
        " y = Relu(d) }",
        "(float[2] x, bool c) => (float[2] y) { r = Exp(x) m = Neg(r) y = Relu(m) }",
    )


@pytest.mark.parametrize(
    "rank", ["s = Shape(r)  n = Size(s)", "s = Shape(r)  k = Shape(s)  n = Squeeze(k)"]
)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("p = Relu(x)", "h = Neg(x)  q = Transpose(h)"),
        # A Flatten of any rank is a matrix.
        ("h = Reshape(x, sizes)  p = Flatten(h)", "q = Neg(x)"),
    ],
)
def test_an_if_on_the_rank_of_an_if_goes_where_both_branches_have_one_rank(
    rank: str, first: str, second: str
) -> None:
    text = f"""(float[N,4] x, bool c, int64[K] sizes) => (float y) <int64 two = {{2}}> {{
        r = If(c) <then_branch = t () => (float[A,B] p) {{ {first} }},
                   else_branch = e () => (float[C,D] q) {{ {second} }}>
        {rank}  is_matrix = Equal(n, two)
        y = If(is_matrix) <then_branch = u () => (float a) {{ a = ReduceSum<keepdims=0>(r) }},
                           else_branch = f () => (float b) {{ b = ReduceMax<keepdims=0>(r) }}> }}"""
    source = parse(text)
    for node in source.graph.node[:1]:
        for attribute in node.attribute:
            # The branches declare no rank themselves.
            attribute.g.output[0].type.tensor_type.ClearField("shape")
    result = optimize(source, opt_level=2)
    assert [node.op_type for node in result.graph.node] == ["If", "ReduceSum"]
