import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "hoist_from_if"


def branches(one: str, other: str) -> str:
    return f"(float[2] x, float[2] w, bool c) => (float[2] y) {{ y = If(c) <then_branch = tb () => (float[2] a) {{ {one} }}, else_branch = eb () => (float[2] b) {{ {other} }}> }}"


def test_equal_nodes_with_equal_operands_move_before_the_if() -> None:
    text = branches("s = Exp(x) t = Add(s, w) a = Relu(t)", "s = Exp(x) t = Add(s, w) b = Neg(t)")
    after = "(float[2] x, float[2] w, bool c) => (float[2] y) { s = Exp(x) t = Add(s, w) y = If(c) <then_branch = tb () => (float[2] a) { a = Relu(t) }, else_branch = eb () => (float[2] b) { b = Neg(t) }> }"
    assert_rewrites(PASS, text, after)
    assert_undone(PASS, text)


def test_equal_nodes_that_compute_the_output_move_behind_the_if() -> None:
    text = branches("s = Relu(x) t = Add(s, w) a = Exp(t)", "s = Neg(x) t = Add(s, w) b = Exp(t)")
    after = "(float[2] x, float[2] w, bool c) => (float[2] y) { s = If(c) <then_branch = tb () => (float[2] a) { a = Relu(x) }, else_branch = eb () => (float[2] b) { b = Neg(x) }> t = Add(s, w) y = Exp(t) }"
    assert_rewrites(PASS, text, after)
    assert_undone(PASS, text)


def test_it_is_the_inverse_of_sinking() -> None:
    text = "(float[2] x, bool c) => (float[2] y) { t = If(c) <then_branch = tb () => (float[2] a) { a = Relu(x) }, else_branch = eb () => (float[2] b) { b = Neg(x) }> s = Exp(t) y = Cos(s) }"
    model = Model.from_proto(parse(text))
    first = model.main.structural_hash()
    get_pass("sink_into_if").apply(model, PassContext.isolated())
    assert model.main.structural_hash() != first
    get_pass(PASS).apply(model, PassContext.isolated())
    assert model.main.structural_hash() == first


def test_branches_that_are_equal_need_no_if() -> None:
    assert_rewrites(
        PASS,
        branches("s = Exp(x) a = Relu(s)", "s = Exp(x) b = Relu(s)"),
        "(float[2] x, float[2] w, bool c) => (float[2] y) { s = Exp(x) y = Relu(s) }",
    )


def test_a_value_that_one_branch_returns_is_copied_there() -> None:
    text = branches("a = Exp(x)", "s = Exp(x) b = Relu(s)")
    after = "(float[2] x, float[2] w, bool c) => (float[2] y) { s = Exp(x) y = If(c) <then_branch = tb () => (float[2] a) { a = Identity(s) }, else_branch = eb () => (float[2] b) { b = Relu(s) }> }"
    assert_rewrites(PASS, text, after)
    assert_rewrites(
        PASS,
        branches("s = Exp(x) a = Relu(s)", "b = Exp(x)"),
        "(float[2] x, float[2] w, bool c) => (float[2] y) { s = Exp(x) y = If(c) <then_branch = tb () => (float[2] a) { a = Relu(s) }, else_branch = eb () => (float[2] b) { b = Identity(s) }> }",
    )


def test_one_of_two_outputs_leaves_the_if() -> None:
    text = "(float[2] x, bool c) => (float[2] y, float[2] z) { y, z = If(c) <then_branch = tb () => (float[2] a, float[2] p) { a = Exp(x) p = Neg(x) }, else_branch = eb () => (float[2] b, float[2] q) { b = Exp(x) q = Abs(x) }> }"
    after = "(float[2] x, bool c) => (float[2] y, float[2] z) { y = Exp(x) z = If(c) <then_branch = tb () => (float[2] p) { p = Neg(x) }, else_branch = eb () => (float[2] q) { q = Abs(x) }> }"
    assert_rewrites(PASS, text, after)
    assert_undone(PASS, text)


@pytest.mark.parametrize(
    "text",
    [
        branches("a = Exp(x)", "b = Neg(x)"),
        branches("a = Elu<alpha=0.5>(x)", "b = Elu<alpha=0.25>(x)"),
        branches("a = RandomNormalLike(x)", "b = RandomNormalLike(x)"),
        branches("s = Relu(x) t = Abs(x) a = Add(s, t)", "s = Neg(x) t = Cos(x) b = Add(s, t)"),
        branches("s = Relu(x) a = Add(s, s)", "s = Neg(x) b = Add(s, s)"),
        branches("a = Identity(x)", "b = Identity(x)"),
    ],
)
def test_branches_without_equal_nodes_stay(text: str) -> None:
    assert_unchanged(PASS, text, because="the branches have no equal nodes to move")


def test_another_dtype_of_the_operand_stays() -> None:
    text = "(float[2] x, int32[2] k, bool c) => (bool[2] y) { y = If(c) <then_branch = tb () => (bool[2] a) { s = Neg(x) a = Cast<to=9>(s) }, else_branch = eb () => (bool[2] b) { s = Neg(k) b = Cast<to=9>(s) }> }"
    assert_unchanged(PASS, text, because="the branches have no equal nodes to move")


def test_quantization_annotations_keep_their_branch() -> None:
    proto = parse(branches("s = Exp(x) a = Relu(s)", "s = Exp(x) b = Neg(s)"))
    body = proto.graph.node[0].attribute[0].g
    body.quantization_annotation.add(tensor_name="s").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="s"
    )
    check_declined(proto, because="quantization annotations refer to a branch")


def test_an_if_with_an_absent_output_stays() -> None:
    proto = parse(
        "(float[2] x, bool c) => (float[2] z) { y, z = If(c) <then_branch = tb () => (float[2] a, float[2] p) { a = Exp(x) p = Neg(x) }, else_branch = eb () => (float[2] b, float[2] q) { b = Exp(x) q = Abs(x) }> }"
    )
    proto.graph.node[0].output[0] = ""
    check_declined(proto, because="an output of the If is absent")


def check_declined(proto: onnx.ModelProto, because: str) -> None:
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert len(model.journal) == 0
    assert any(because in remark.reason for remark in ctx.remarks)


@pytest.mark.parametrize("is_first", [True, False])
def test_an_operand_that_one_branch_lacks_stays_inside(is_first: bool) -> None:
    parts = ["m = Neg(l) {} = Clip(x, m, h)", "{} = Clip(x, , h)"]
    one, other = parts if is_first else reversed(parts)
    text = branches(one.format("a"), other.format("b"))
    text = text.replace("float[2] w, bool c", "float l, float h, bool c")
    assert_unchanged(PASS, text)


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
