import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, get_pass, optimize
from tiered.runtime import make_inputs, run
from tiered.runtime.compare.outputs import compare
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "move_subgraph_initializer"


def test_the_initializer_of_a_branch_moves_up() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) <float[2] w = {1,2}> { a = Add(x, w) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
        "(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { y = If(c) <then_branch = t () => (float[2] a) { a = Add(x, w) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
    )


def test_two_branches_may_each_own_the_name() -> None:
    text = "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) <float[2] w = {1,2}> { a = Add(x, w) }, else_branch = e () => (float[2] b) <float[2] w = {3,4}> { b = Mul(x, w) }> }"
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, bool c) => (float[2] y) <float[2] w1 = {1,2}, float[2] w = {3,4}> { y = If(c) <then_branch = t () => (float[2] a) { a = Add(x, w1) }, else_branch = e () => (float[2] b) { b = Mul(x, w) }> }",
    )
    made = assert_undone(PASS, text)
    assert len({tensor.name for tensor in made.graph.initializer}) == 2


def test_issue_19_an_initializer_that_is_a_body_output_stays() -> None:
    text = "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] w) <float[2] w = {1,2}> { }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
    assert_unchanged(PASS, text, because="it is an output of the body")


def test_loops_in_branches_are_bodies_too() -> None:
    text = "(float[2] x, bool c, int64 n) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) <bool go = {1}> { a = Loop(n, go, x) <body = l (int64 i, bool g, float[2] v) => (bool g2, float[2] v2) <float[2] w = {1,2}> { g2 = Identity(g) v2 = Add(v, w) }> }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
    made = assert_undone(PASS, text)
    assert sorted(tensor.name for tensor in made.graph.initializer) == ["go", "w"]
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, bool c, int64 n) => (float[2] y) <bool go = {1}, float[2] w = {1,2}> { y = If(c) <then_branch = t () => (float[2] a) { a = Loop(n, go, x) <body = l (int64 i, bool g, float[2] v) => (bool g2, float[2] v2) { g2 = Identity(g) v2 = Add(v, w) }> }, else_branch = e () => (float[2] b) { b = Neg(x) }> }",
    )


def test_the_bodies_of_a_local_function_keep_theirs() -> None:
    assert_unchanged(
        PASS,
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2] x, bool c) => (float[2] y) { y = local.f(x, c) }
        <domain: "local", opset_import: ["" : 21]> f (v, c) => (u) { u = If(c) <
            then_branch = t () => (float[2] a) <float[2] w = {1,2}> { a = Add(v, w) },
            else_branch = e () => (float[2] b) { b = Neg(v) }
        > }""",
        because="a local function has no initializers",
    )


def test_before_ir_4_they_would_become_inputs() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 3, opset_import: ["" : 8]> g (float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) <float[2] w = {1,2}> { a = Add(x, w) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }',
        because="before IR 4 each initializer would be an input",
    )


def test_the_bodies_of_other_operators_keep_theirs() -> None:
    inner = "If(c) <then_branch = t () => (float[2] a) <float[2] w = {1,2}> { a = Add(v, w) }, else_branch = e () => (float[2] b) { b = Neg(v) }>"
    assert_unchanged(
        PASS,
        f"(seq(float[2]) x, bool c) => (seq(float[2]) y) {{ y = SequenceMap(x) <body = m (float[2] v) => (float[2] u) {{ u = {inner} }}> }}",
        because="a body of SequenceMap cannot capture values",
    )


LOOP = "(float[2] x, int64 n) => (float[2] y) <bool go = {1}> { y = Loop(n, go, x) <body = l (int64 i, bool g, float[2] v) => (bool g2, float[2] v2) <float[2] w = {1,2}> { g2 = Identity(g) v2 = Add(v, w) }> }"


@pytest.mark.parametrize(
    ("what", "because"),
    [
        ("default", "it is an input default of the body"),
        ("annotation", "a quantization annotation refers to it"),
    ],
)
def test_cases_without_a_textual_form(what: str, because: str) -> None:
    proto = parse(LOOP)
    body = proto.graph.node[0].attribute[0].g
    if what == "default":
        body.input.append(onnx.helper.make_tensor_value_info("w", 1, [2]))
    else:
        annotation = body.quantization_annotation.add(tensor_name="v2")
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert len(model.journal) == 0
    assert any(because in remark.reason for remark in ctx.remarks)


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_issue_40_empty_scales_stay_in_the_body(opset: int, level: int) -> None:
    body = 'u = Resize<mode="nearest">(x, roi, scales, sizes)'
    constants = "float[0] roi = {}, float[0] scales = {}, int64[4] sizes = {1,1,4,4}"
    text = (
        "(bool c, float[1,1,2,2] x) => (float[1,1,4,4] y)"
        " <float[0] none = {}, float[0] no = {}, int64[4] s = {1,1,4,4}>"
        ' { z = Resize<mode="nearest">(x, none, no, s)'
        f" y = If(c) <then_branch = t () => (float[1,1,4,4] u) <{constants}> {{ {body} }},"
        " else_branch = e () => (float[1,1,4,4] v) { v = Neg(z) }> }"
    )
    model = parse(text, opset=opset)
    made = optimize(model, opt_level=level)
    onnx.checker.check_model(made, full_check=True)
    for feeds in (make_inputs(model, seed=seed).feeds for seed in range(4)):
        assert compare(run(model, feeds), run(made, feeds)).ok


def test_issue_40_an_empty_tensor_may_be_an_absent_operand() -> None:
    assert_unchanged(
        PASS,
        "(bool c, float[1,1,2,2] x) => (float[1,1,4,4] y) { y = If(c) <"
        "then_branch = t () => (float[1,1,4,4] u) <float[0] roi = {}, float[0] scales = {}>"
        ' { k = Constant<value = int64[4] {1,1,4,4}>() u = Resize<mode="nearest">(x, roi, scales, k) },'
        " else_branch = e () => (float[1,1,4,4] v)"
        " { r = Constant<value = int64[4] {1,1,2,2}>() v = Tile(x, r) }> }",
        because="an empty tensor may be an absent operand",
    )
