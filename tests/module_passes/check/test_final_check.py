from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tiered import (
    Backend,
    Graph,
    Model,
    ModelError,
    Pass,
    PassContext,
    ShapeError,
    Skip,
    TargetError,
    Value,
    VerificationError,
    const,
    get_pass,
    op,
    optimize,
    optimize_model,
    proto_pass,
    rewrite,
    var,
)
from tiered.targets import Bounds
from tiered.testing import assert_unchanged, parse

PASS = "final_check"
OPSET_99 = onnx.helper.make_opsetid("", 99)


def test_a_valid_model_passes() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) { y = Relu(x) }")


def test_an_invalid_result_is_an_error() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Softmax<axis=0>(x) }"))
    (node,) = model.main.nodes
    model.main.set_attribute(node, "alpha", 1.0)
    with pytest.raises(ModelError, match=r"onnx.checker rejects the result: .*alpha"):
        get_pass(PASS).apply(model)


def test_a_model_that_was_invalid_already_is_noted() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu<alpha=1.0>(x) }"))
    get_pass(PASS).apply(model)
    (note,) = model.notes
    assert note.startswith("onnx.checker rejects the model as it was loaded: ")
    assert "alpha" in note


def _named(*names: str) -> onnx.ModelProto:
    proto = parse("(float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }")
    for node, name in zip(proto.graph.node, names, strict=True):
        node.name = name
    return proto


def test_two_nodes_of_one_name_are_an_error() -> None:
    def rename(proto: onnx.ModelProto) -> onnx.ModelProto:
        return _named("n", "n")

    names = proto_pass(rename, name="same_names", numerics="exact")
    with pytest.raises(ModelError, match="two nodes of one graph are named 'n'"):
        optimize(_named("a", "b"), passes=[names, PASS])
    optimize(_named("a", "b"), passes=[names, "unique_name_for_nodes"])


def test_two_nodes_of_one_name_in_the_file_are_noted() -> None:
    model = Model.from_proto(_named("n", "n"))
    get_pass(PASS).apply(model)
    assert "two nodes of one graph are named 'n'" in model.notes[0]
    with pytest.raises(ModelError, match="unique_name_for_nodes gives them names"):
        get_pass(PASS).apply(model, PassContext.isolated(strict=True))


def test_a_direct_call_with_a_proto_tells_what_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    """The notes are of the view, which such a caller never sees."""
    for call in (get_pass(PASS), get_pass(PASS).apply):
        caplog.clear()
        with PassContext():
            call(_named("n", "n"))
        assert "two nodes of one graph are named 'n'" in caplog.text
    caplog.clear()
    get_pass(PASS)(_named("n", "m"))
    assert caplog.text == ""


def test_unsupported_operators_are_remarks() -> None:
    target = Backend(name="npu", opset=Bounds(7, 13))
    text = "(float[2] x) => (float[2] y) { y = Relu(x) }"
    assert_unchanged(
        PASS, text, backend=target, because="npu does not take it: the target has no such operator"
    )
    assert_unchanged(
        PASS,
        text,
        backend=target,
        because="npu does not take the model: opset 21; it takes 7 to 13",
    )


def test_under_strict_it_is_an_error() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    with (
        PassContext(backend=Backend(name="npu"), strict=True),
        pytest.raises(TargetError, match="npu does not take the model: Relu: the target has no"),
    ):
        get_pass(PASS)(model)


@rewrite(op.MatMul(var.x, const(name="w")), opt_level=0)
def transpose_weight(graph: Graph, x: Value, w: Value) -> Value | Skip:
    if w.const is None or w.dim(0) != 3:
        return Skip("the weight is transposed already")
    return graph.op.MatMul(x, np.ascontiguousarray(w.const.T))


PRODUCT = """(float[N,3] x) => (float[N,5] y) <float[3,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}>
{ h = MatMul(x, w) y = Relu(h) }"""


def test_dims_that_do_not_fit_are_an_error() -> None:
    model = Model.from_proto(parse(PRODUCT))
    transpose_weight.apply(model)
    with pytest.raises(ModelError, match=r"rejects the result: .*Incompatible dimensions"):
        get_pass(PASS).apply(model)


def test_a_pipeline_without_the_pass_is_checked_too(tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    source = tmp_path / "in.onnx"
    onnx.save(parse(PRODUCT), source)
    with pytest.raises(ModelError, match="Incompatible dimensions"):
        optimize(source, out, passes=[transpose_weight])
    assert not out.exists()
    optimize(source, out, passes=[transpose_weight], disabled=[PASS])
    assert out.exists()


CONTRIB = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[3,4] x) => (float[a,b] y)
{ r = Relu(x) g = com.microsoft.FastGelu(r) s = Add(x, g) y = Identity(s) }"""


@rewrite(op.Relu(var.x), opt_level=0)
def transpose_result(graph: Graph, x: Value) -> Value:
    return graph.op.Transpose(x)


@pytest.mark.parametrize("strict", [False, True])
def test_dims_behind_an_operator_of_another_domain_are_checked(strict: bool) -> None:
    with pytest.raises(ModelError, match="Incompatible dimensions"):
        optimize(parse(CONTRIB), passes=[transpose_result], strict=strict)
    with pytest.raises(VerificationError, match="transpose_result made the model invalid: "):
        optimize(parse(CONTRIB), passes=[transpose_result], verify="structure")


MADE = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[3,4] x) => (float[a,b] y) { r = Relu(x) y = Identity(r) }"""
IN_BODY = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[3,4] x, bool c) => (float[a,b] y) { y = If(c) <
    then_branch = t () => (float[p,q] o) { o = Relu(x) },
    else_branch = e () => (float[p,q] n) { n = Identity(x) }> }"""


@rewrite(op.Relu(var.x), opt_level=0)
def multiply_wrongly(graph: Graph, x: Value) -> Value:
    weight = np.ones((4, 5), np.float32)
    return graph.op("com.microsoft").FusedMatMul(x, weight, transB=1)


@rewrite(op.Relu(var.x), opt_level=0)
def bias_wrongly(graph: Graph, x: Value) -> Value:
    return graph.op("com.microsoft").BiasGelu(x, np.ones(3, np.float32))


@pytest.mark.parametrize("text", [MADE, IN_BODY])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("pass_", "fault"),
    [
        (multiply_wrongly, r"FusedMatMul .*: \[3, 4\] is multiplied by \[5, 4\]: 4 is not 5"),
        (bias_wrongly, r"BiasGelu .*: operand 1 is \[3\]; it takes \[4\]"),
    ],
)
def test_operands_of_contrib_operators_must_fit(
    text: str, strict: bool, pass_: Pass, fault: str
) -> None:
    with pytest.raises(ModelError, match=f"do not fit in the result: com.microsoft::{fault}"):
        optimize(parse(text), passes=[pass_], strict=strict)
    with pytest.raises(VerificationError, match=f"made the model invalid: .*{fault}"):
        optimize(parse(text), passes=[pass_], verify="structure")


WRONG = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[3,4] x) => (float[3,4] y) <float[3] b = {1,2,3}>
{ r = Identity(x) y = com.microsoft.BiasGelu(r, b) }"""
WRONG_WHEN_FOLDED = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[3,4] x) => (float[3,4] y) <float[1] b = {1}, int64[1] n = {1}>
{ m = Abs(n) o = Add(m, m) t = Expand(b, o) y = com.microsoft.BiasGelu(x, t) }"""


@pytest.mark.parametrize("text", [WRONG, WRONG_WHEN_FOLDED])
def test_operands_that_did_not_fit_already_are_noted(text: str) -> None:
    model = optimize_model(parse(text), verify="structure").model
    assert any("in the model as it was loaded: com.microsoft::BiasGelu" in n for n in model.notes)
    with pytest.raises(ModelError, match="in the model as it was loaded"):
        optimize(parse(text), strict=True)


def test_an_operator_of_another_domain_without_known_types_is_left_as_it_is() -> None:
    text = CONTRIB.replace("com.microsoft.FastGelu(r)", "zeta.Unknown(r)")
    made = optimize(parse(text.replace("com.microsoft", "zeta")), passes=["eliminate_identity"])
    assert [node.op_type for node in made.graph.node] == ["Relu", "Unknown", "Add"]


def test_verification_of_the_structure_names_the_pass() -> None:
    with pytest.raises(VerificationError, match="transpose_weight made the model invalid: "):
        optimize(parse(PRODUCT), passes=[transpose_weight], verify="structure")


def test_another_dim_than_an_output_declares_is_an_error() -> None:
    model = Model.from_proto(parse("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }"))
    (node,) = model.main.nodes
    constant = model.main.constant(np.ones((1, 4), np.float32))
    model.main.set_input(node, 0, constant)
    with pytest.raises(ModelError, match=r"rejects the result: .*dimension 1"):
        get_pass(PASS).apply(model)


def test_an_unsupported_dtype_is_an_error() -> None:
    model = Model.from_proto(parse("(float[2] x, int64[2] i) => (float[2] y) { y = Sigmoid(x) }"))
    (node,) = model.main.nodes
    model.main.set_input(node, 0, model.main.inputs[1])
    with pytest.raises(ModelError, match=r"rejects the result: .*Sigmoid"):
        get_pass(PASS).apply(model)


WRONG_BEFORE = "(float[2,3] x) => (float[2,4] y) { h = Relu(x) y = Identity(h) }"


def test_a_wrong_declared_dim_of_the_file_is_noted_and_an_error_under_strict() -> None:
    result = optimize_model(parse(WRONG_BEFORE), opt_level=3)
    (note,) = result.model.notes
    assert note.startswith("onnx.checker rejects the model as it was loaded: ")
    assert "(3) vs (4)" in note
    with pytest.raises(ModelError, match="as it was loaded"):
        optimize(parse(WRONG_BEFORE), strict=True)


def test_errors_exposed_by_folding_are_remarks() -> None:
    text = """(float[2] x) => (float[M,4] y) <float[6] w = {1,2,3,4,5,6}, int64[2] s = {2,3}>
    { two = Identity(s) h = Reshape(w, two) z = Relu(h) y = Abs(z) }"""
    proto = parse(text)
    onnx.checker.check_model(proto, full_check=True)
    result = optimize_model(proto, opt_level=2)
    (note,) = result.model.notes
    assert note.startswith("the model contradicts itself once its constants are folded: ")


WRONG_RANK = """(float[N,3,4] x) => (float[a,b,c,d] y) <int64[1] zero = {0}, int64[1] rest = {-1}>
    { s = Shape(x) n = Gather(s, zero) t = Concat <axis = 0> (n, rest) y = Reshape(x, t) }"""


@pytest.mark.parametrize("level", range(5))
def test_a_wrong_declared_rank_is_noted_with_the_name_of_the_value(level: int) -> None:
    proto = parse(WRONG_RANK)
    result = optimize_model(proto, opt_level=level)
    (note,) = result.model.notes
    assert note.startswith("the model declares types that contradict what follows from its inputs")
    assert note.endswith("'y' is declared float[a,b,c,d], and computed as float[N,12]")
    assert result.model.to_proto().graph.output == proto.graph.output
    with pytest.raises(ModelError, match="'y' is declared"):
        optimize(proto, opt_level=level, strict=True)


def test_a_wrong_declaration_does_not_excuse_a_pass() -> None:
    model = Model.from_proto(
        parse(WRONG_RANK.replace("=> (", "=> (float[N,3,4] z, ")[:-1] + " z = Relu(x) }")
    )
    (relu,) = model.main.nodes_of("Relu")
    model.main.set_input(relu, 0, model.main.constant(np.ones((1, 4), np.float32)))
    with pytest.raises(ModelError, match="rejects the result"):
        get_pass(PASS).apply(model)


def test_wrong_declared_types_of_inner_values_are_noted() -> None:
    proto = parse("(float[2,3] x) => (float[2,3] y) { h = Relu(x) y = Abs(h) }")
    model = Model.from_proto(proto)
    graph = model.main
    info = onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, [2, 9])
    graph.set_declarations([(graph.values["h"], info)])
    get_pass(PASS).apply(model)
    (note,) = model.notes
    assert note.startswith("the model declares types that contradict what follows from its inputs")


def test_calls_without_end_are_not_followed() -> None:
    calls = " ".join(
        f'<domain: "l", opset_import: ["" : 21, "l" : 1]> f{i} (a) => (b) '
        f"{{ c = l.f{i + 1}(a) b = l.f{i + 1}(c) }}"
        for i in range(40)
    )
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x) => (float[2] y) '
        f'{{ y = l.f0(x) }} {calls} <domain: "l", opset_import: ["" : 21]> f40 (a) => (b) '
        "{ b = Relu(a) }"
    )
    get_pass(PASS).apply(Model.from_proto(parse(text)))


BODY_RESIZE = """(bool c, float[1,1,2,2] x) => (float[1,1,4,4] y)
    <float[0] none = {}, int64[4] sizes = {1,1,4,4}, int64[4] twice = {1,1,2,2}> { y = If(c) <
    then_branch = t () => (float[1,1,4,4] u) { u = Resize<mode="nearest">(x, none, none, sizes) },
    else_branch = e () => (float[1,1,4,4] v) { v = Tile(x, twice) }> }"""


def test_issue_40_an_error_that_only_the_inference_of_the_whole_has_is_a_note() -> None:
    model = Model.from_proto(parse(BODY_RESIZE))
    model.origin = None  # as if passes had made it
    get_pass(PASS).apply(model)
    (note,) = model.notes
    assert "rejects what its nodes do not show, and onnxruntime runs" in note


def test_issue_40_an_error_that_a_runtime_has_too_is_one() -> None:
    model = Model.from_proto(parse(BODY_RESIZE.replace("v = Tile(x, twice)", "v = Foo.Bar(x)")))
    model.origin = None
    with pytest.raises(ModelError, match="rejects the result"):
        get_pass(PASS).apply(model)


def test_issue_40_an_error_that_a_node_alone_has_is_one() -> None:
    text = BODY_RESIZE.replace("v = Tile(x, twice)", "v = Concat<axis=4>(x, x)")
    model = Model.from_proto(parse(text))
    model.origin = None
    with pytest.raises(ModelError, match="rejects the result"):
        get_pass(PASS).apply(model)


@pytest.mark.parametrize("level", range(5))
def test_issue_40_a_false_output_that_a_chosen_branch_shows_is_a_note(level: int) -> None:
    model = parse(
        "(float[4] x) => (float[5] y) <bool true = {1}> { w = If(true) <"
        "then_branch = t () => (float[?] r) { r = Neg(x) },"
        " else_branch = e () => (float[?] s) { s = Concat<axis=0>(x, x) }> y = Abs(w) }"
    )
    result = optimize_model(model, opt_level=level)
    assert result.model.to_proto().graph.output == model.graph.output
    notes = [note for note in result.model.notes if "contradict" in note]
    assert len(notes) == (level > 0)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda proto: proto.opset_import[0].CopyFrom(OPSET_99), "is of opset 99, and onnx"),
        (lambda proto: proto.graph.ClearField("output"), "the model has no outputs"),
        (lambda proto: setattr(proto.graph.node[0], "domain", "zz"), "no opset of the domain 'zz'"),
    ],
)
def test_what_the_checker_does_not_say_is_noted(
    spoil: Callable[[onnx.ModelProto], None], said: str
) -> None:
    proto = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    spoil(proto)
    model = Model.from_proto(proto)
    get_pass(PASS).apply(model)
    assert any(said in note for note in model.notes)
    with pytest.raises(ModelError, match=said), PassContext(strict=True):
        get_pass(PASS)(proto)


def test_sizes_that_contradict_each_other_are_no_fault_of_a_pass() -> None:
    text = """(float[1,seq] x, float[1,past] p, float[1,total] m) => (float[1,total] y)
        <int64[1] two = {2}> {
        s = Shape(x)  t = Mul(s, two)  u = Div(t, two)  r = Reshape(x, u)
        y = Concat<axis = 1>(p, r)  d = Neg(m) }"""
    sizes = {"seq": 6, "past": 6, "total": 6}
    with pytest.raises(ShapeError, match="that were set do not fit together: 'y' is declared"):
        optimize(parse(text), dims=sizes)
    optimize(parse(text), dims=sizes | {"total": 12})
