import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "sink_into_if"


def branches(
    tail: str, *, signature: str = "(float[2] x, bool c) => (float[2] y)", output: str = "t"
) -> str:
    return f"{signature} {{ {output} = If(c) <then_branch = tb () => (float[2] a) {{ a = Relu(x) }}, else_branch = eb () => (float[2] b) {{ b = Neg(x) }}> {tail} }}"


def test_a_consumer_goes_into_both_branches() -> None:
    after = "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = tb () => (float[2] a1) { a = Relu(x) a1 = Exp(a) }, else_branch = eb () => (float[2] b1) { b = Neg(x) b1 = Exp(b) }> }"
    assert_rewrites(PASS, branches("y = Exp(t)"), after)
    assert_undone(PASS, branches("y = Exp(t)"))


def test_a_chain_goes_in_with_what_it_reads_before_the_if() -> None:
    text = "(float[2] x, bool c) => (float[2] y) { k = Abs(x) t, u = If(c) <then_branch = tb () => (float[2] a, float[2] a2) { a = Relu(x) a2 = Exp(x) }, else_branch = eb () => (float[2] b, float[2] b2) { b = Neg(x) b2 = Sin(x) }> s = Add(t, k) v = Mul(s, u) y = Cos(v) }"
    after = "(float[2] x, bool c) => (float[2] y) { k = Abs(x) y = If(c) <then_branch = tb () => (float[2] a5) { a = Relu(x) a2 = Exp(x) a3 = Add(a, k) a4 = Mul(a3, a2) a5 = Cos(a4) }, else_branch = eb () => (float[2] b5) { b = Neg(x) b2 = Sin(x) b3 = Add(b, k) b4 = Mul(b3, b2) b5 = Cos(b4) }> }"
    assert_rewrites(PASS, text, after)
    assert_undone(PASS, text)


def test_several_outputs_of_the_consumer_and_a_remaining_one_of_the_if() -> None:
    text = "(float[4] x, bool c) => (float[2] y, float[2] z, float[4] u) { t, u = If(c) <then_branch = tb () => (float[4] a, float[4] a2) { a = Relu(x) a2 = Exp(x) }, else_branch = eb () => (float[4] b, float[4] b2) { b = Neg(x) b2 = Sin(x) }> y, z = Split<num_outputs=2>(t) }"
    made = assert_undone(PASS, text)
    (node,) = made.graph.node
    assert list(node.output) == ["u", "y", "z"]
    onnx.checker.check_model(made, full_check=True)


def test_in_a_body_and_next_to_a_dead_output() -> None:
    inner = "t, d = If(c) <then_branch = tb () => (float[2] a, float[2] a2) { a = Relu(x) a2 = Exp(x) }, else_branch = eb () => (float[2] b, float[2] b2) { b = Neg(x) b2 = Sin(x) }> p = Exp(t)"
    text = f"(float[2] x, bool c) => (float[2] y) {{ y = If(c) <then_branch = o () => (float[2] p) {{ {inner} }}, else_branch = e () => (float[2] q) {{ q = Abs(x) }}> }}"
    made = assert_undone(PASS, text)
    body = next(each.g for each in made.graph.node[0].attribute if each.name == "then_branch")
    assert [list(node.output) for node in body.node] == [["p"]]


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[2] x, bool c) => (float[2] y) { t = If(c) <then_branch = tb () => (float[2] a) { a = Relu(x) }, else_branch = eb () => (float[2] b) { b = Neg(x) }> d = Neg(t) y = Exp(x) }",
            "no output of the consumer is used",
        ),
        (branches("s = Exp(t) y = Add(s, t)"), "no output has exactly one user"),
        (
            branches("y = Exp(t)", signature="(float[2] x, bool c) => (float[2] y, float[2] t)"),
            "no output has exactly one user",
        ),
        (branches("y = RandomNormalLike(t)"), "the consumer is not deterministic"),
        (
            branches(
                "y = If(c) <then_branch = q () => (float[2] m) { m = Exp(t) }, else_branch = r () => (float[2] n) { n = Abs(t) }>"
            ),
            "no output has exactly one user",
        ),
        (
            "(float[2] x, bool c, int64 n) => (float[2] y) { t = If(c) <then_branch = tb () => (float[2] a) { a = Relu(x) }, else_branch = eb () => (float[2] b) { b = Neg(x) }> y = Loop(n, c, t) <body = l (int64 i, bool ci, float[2] v) => (bool co, float[2] w) { co = Identity(ci) w = Neg(v) }> }",
            "the consumer has a body",
        ),
        (
            "(float[2] x, bool c) => (float[2] y, float[2] z) { t, u = If(c) <then_branch = tb () => (float[2] a, float[2] a2) { a = Relu(x) a2 = Exp(x) }, else_branch = eb () => (float[2] b, float[2] b2) { b = Neg(x) b2 = Sin(x) }> y = Add(t, u) z = Neg(u) }",
            "the consumer reads an output with other users",
        ),
        (
            "(float[2] x, bool c) => (float[2] y, float[2] z) { t, u = If(c) <then_branch = tb () => (float[2] a, float[2] a2) { a = Relu(x) a2 = Exp(x) }, else_branch = eb () => (float[2] b, float[2] b2) { b = Neg(x) b2 = Sin(x) }> s = Abs(u) y = Add(t, s) z = Neg(u) }",
            "another operand depends on the If",
        ),
    ],
)
def test_consumers_that_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_branch_that_is_full_takes_in_no_more() -> None:
    assert_unchanged(
        PASS,
        branches("y = Exp(t)"),
        because="a branch has reached max_nodes=1",
        max_nodes=1,
    )
    made = assert_undone(PASS, branches("s = Exp(t) y = Cos(s)"), max_nodes=2)
    assert [node.op_type for node in made.graph.node] == ["If", "Cos"]


def annotated(proto: onnx.ModelProto, name: str, graph: onnx.GraphProto) -> onnx.ModelProto:
    graph.quantization_annotation.add(tensor_name=name).quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value=name
    )
    return proto


@pytest.mark.parametrize(
    ("is_inside", "because"),
    [
        (True, "quantization annotations refer to a branch"),
        (False, "an annotation names an output of the consumer"),
    ],
)
def test_annotations_keep_their_values(is_inside: bool, because: str) -> None:
    proto = parse(branches("y = Exp(t)"))
    branch = next(each.g for each in proto.graph.node[0].attribute if each.name == "then_branch")
    annotated(proto, "a" if is_inside else "y", branch if is_inside else proto.graph)
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert len(model.journal) == 0
    assert any(because in remark.reason for remark in ctx.remarks)


def test_a_branch_that_the_call_gives_stays() -> None:
    model = parse(
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x, bool c) => (float[2] y) { y = d.F(c, x) }"
        ' <domain: "d", opset_import: ["" : 21]> F (c, v) => (u) { w = If(c)'
        " <then_branch = t () => (float[2] a) { r = Exp(v) a = Relu(r) },"
        " else_branch = e () => (float[2] b) { b = Relu(v) }> u = Neg(w) }"
    )
    (function,) = model.functions
    other = onnx.AttributeProto(name="else_branch", ref_attr_name="other")
    other.type = onnx.AttributeProto.GRAPH
    function.node[0].attribute[1].CopyFrom(other)
    function.attribute.append("other")
    assert_unchanged(PASS, model)
