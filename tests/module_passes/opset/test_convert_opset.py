"""Functions, bodies and IR versions of conversions; each change of form is in tests/graph/opset."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.graph.opset.texts import X, at
from tests.rollback import assert_undone
from tests.small import content
from tiered import Model, Numerics, PassContext, UsageError, get_pass
from tiered.runtime import run
from tiered.support.errors import OpsetError
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "convert_opset"


def test_all_that_blocks_is_listed_and_nothing_is_half_converted() -> None:
    calls = " ".join(f"x{i + 1} = Gelu(x{i})" for i in range(7))
    text = at(20, f"(float[2] x0) => (float[2] y) {{ {calls} r = Relu(x7)  y = Celu(r) }}")
    made = Model.from_proto(parse(text))
    before = content(made)
    with pytest.raises(OpsetError, match=r"9 nodes|8 nodes") as caught:
        made.convert_opset(11)
    assert content(made) == before
    assert [each.operator for each in caught.value.blocked] == ["Gelu"] * 7 + ["Celu"]
    assert "and 3 more" in str(caught.value)


FUNCTION = """<ir_version: 8, opset_import: ["" : 12, "own" : 1]>
g (float[2,3] x) => (float[N,M] y) {{ h = own.f(x)  y = ReduceSum<axes = [0]>(h) }}
<domain: "own", opset_import: ["" : 12]> f {}(a) => (b) {{ b = {}(a) }}"""


def test_local_functions_are_converted() -> None:
    made = assert_undone(PASS, parse(FUNCTION.format("", "ReduceSum<axes = [1]>")), to=13)
    (function,) = made.functions
    assert [entry.version for entry in function.opset_import] == [13]
    assert [node.op_type for node in function.node] == ["Constant", "ReduceSum"]
    onnx.checker.check_model(made, full_check=True)


def test_axes_that_a_function_computes_of_constants_are_known() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[N,M] y) { y = own.f(x) }
        <domain: "own", opset_import: ["" : 18]> f (a) => (b) {
        c = Constant<value = int64 {1}>()  s = Constant<value_ints = [1]>()  r = Reshape(c, s)
        b = ReduceMax(a, r) }"""
    made = assert_undone(PASS, parse(text), to=17)
    (function,) = made.functions
    assert [node.op_type for node in function.node] == ["ReduceMax"]
    onnx.checker.check_model(made, full_check=True)


@pytest.mark.parametrize(
    ("parameters", "call", "reason"),
    [
        ("<n>", "ReduceSum<axes: ints = @n>", "attribute 'axes' is a function parameter"),
        ("", "Mul", r"takes no tensor\(int16\) as 'A', whose type is not known"),
    ],
)
def test_what_only_the_call_of_a_function_decides_blocks(
    parameters: str, call: str, reason: str
) -> None:
    text = FUNCTION.format(parameters, call)
    if call == "Mul":
        text = text.replace("(a) }", "(a, a) }").replace(": 12", ": 14")
        text = text.replace("ReduceSum<axes = [0]>", "Relu")
    made = Model.from_proto(parse(text))
    with pytest.raises(OpsetError, match=f"(?s)opset 1[24] to 13.*function f: node .*: .*{reason}"):
        made.convert_opset(13)


def test_bounds_in_the_wrong_order_block_below_opset_11() -> None:
    text = "(float[2] x) => (float[2] y) <float l = {1}, float h = {-1}> { y = Clip(x, l, h) }"
    made = Model.from_proto(parse(text, opset=12))
    with pytest.raises(OpsetError, match="Clip has a min above max"):
        made.convert_opset(10)
    made.convert_opset(11)


SOFTMAX = """<ir_version: 8, opset_import: ["" : 12, "l": 1]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z, float[2,3] u) {{ {} }}
<domain: "l", opset_import: ["" : 12]> f <a: int = {}, alpha: float = 0.5>(x) => (y) {{
    e = Elu<alpha: float = @alpha>(x) y = Softmax<axis: int = @a>(e) }}"""


def test_each_call_with_other_attributes_gets_a_function_if_a_form_depends_on_them() -> None:
    calls = "y = l.f<a = 1>(x) z = l.f<a = -1, alpha = 2.0>(x) u = l.f(x)"
    before = parse(SOFTMAX.format(calls, 1))
    made = get_pass(PASS, to=13)(before)
    assert isinstance(made, onnx.ModelProto)
    onnx.checker.check_model(made, full_check=True)
    assert len(made.functions) == 2  # the first and the last call are equal
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    expected, found = run(before, {"x": x}), run(made, {"x": x})
    assert all((found[name] == expected[name]).all() for name in expected)


def test_a_call_without_a_form_leaves_the_functions_as_they_were() -> None:
    calls = "y = l.f<a = 0>(x) z = l.f<a = 1>(x) u = Celu(x)"
    model = Model.from_proto(parse(SOFTMAX.format(calls, 1).replace(": 12", ": 13")))
    before = model.to_proto()
    with pytest.raises(OpsetError, match="opset 11 has no Celu"):
        get_pass(PASS, to=11)(model)
    assert model.to_proto() == before


def test_a_function_that_is_named_like_an_operator_is_left_alone() -> None:
    made = assert_undone(
        PASS,
        parse(
            """<ir_version: 8, opset_import: ["" : 9]>
            g (float[2] x) => (float[2] y) { y = Clip <min = 0.0> (x) }
            <domain: "", opset_import: ["" : 9]> Clip <min>(a) => (b) { b = Relu(a) }"""
        ),
        to=13,
    )
    assert [len(node.attribute) for node in made.graph.node] == [1]


def test_the_first_forms_of_broadcasting_compute_what_they_meant() -> None:
    text = """(float[2,3,2,2] x, float[3] b) => (float[2,3,2,2] y, float[2,3,2,2] z) {
        y = Add<axis = 1, broadcast = 1>(x, b)  z = PRelu(x, b) }"""
    made = assert_undone(PASS, at(6, text), to=13)
    numbers = np.random.default_rng(0)
    x, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 2, 2), 3))
    found, each = run(made, {"x": x, "b": b}), b.reshape(3, 1, 1)
    np.testing.assert_array_equal(found["y"], x + each)
    np.testing.assert_array_equal(found["z"], np.where(x < 0, x * each, x))


def test_a_constant_that_no_node_can_hold_raises_the_ir_version() -> None:
    made = assert_undone(PASS, at(4, X + "{ y = Reshape<shape = [0, -1]>(x) }", ir=3), to=7)
    assert (made.ir_version, len(made.graph.initializer)) == (4, 1)
    onnx.checker.check_model(made, full_check=True)


def test_overridable_initializers_stay_inputs() -> None:
    text = at(
        12, "(float[1,3] x, int64[2] s) => (float[N,M] y) <int64[2] s = {3, 1}> "
        "{ y = Reshape(x, s) }",
    )  # fmt: skip
    made = assert_undone(PASS, text, to=21)
    assert [info.name for info in made.graph.input] == ["x", "s"]


def test_equal_new_constants_are_one_and_unread_ones_go() -> None:
    text = at(12, "(float[2,3] x) => (float y) { a = ReduceSum<axes = [1], keepdims = 0>(x)  "
              "b = ReduceSum<axes = [1], keepdims = 0>(x)  c = Mul(a, b)  y = ReduceMean(c) }")  # fmt: skip
    raised = assert_undone(PASS, text, to=13)
    assert len(raised.graph.initializer) == 1
    lowered = assert_undone(PASS, raised, to=12)
    assert not lowered.graph.initializer


def test_a_constant_that_another_node_reads_stays() -> None:
    text = at(13, "(float[2,3] x) => (float[2,1] y, int64[1] z) <int64[1] a = {1}> "
              "{ y = ReduceSum(x, a)  z = Neg(a) }")  # fmt: skip
    assert len(assert_undone(PASS, text, to=12).graph.initializer) == 1


def test_before_ir_4_constants_are_nodes() -> None:
    text = at(9, "(float[2] x) => (float[2] y) { y = Clip<min = 0.0>(x) }", ir=3)
    made = assert_undone(PASS, text, to=11)
    assert {node.op_type for node in made.graph.node} <= {"Clip", "Constant"}


@pytest.mark.parametrize(
    ("ir", "to", "option", "expected"),
    [
        (8, 21, 0, 10),
        (8, 15, 0, 8),
        (10, 13, 0, 10),
        (10, 13, 7, 7),
        (8, 21, 9, 9),
        (8, 17, 10, 10),
    ],
)
def test_the_ir_version_is_raised_only_as_needed_or_as_asked(
    ir: int, to: int, option: int, expected: int
) -> None:
    made = assert_undone(
        PASS, at(17, "(float[2] x) => (float[2] y) { y = Relu(x) }", ir), to=to, ir=option
    )
    assert (made.ir_version, made.opset_import[0].version) == (expected, to)


def test_the_ir_version_alone_can_be_set() -> None:
    made = assert_undone(PASS, at(17, "(float[2] x) => (float[2] y) { y = Relu(x) }", 8), ir=9)
    assert (made.ir_version, made.opset_import[0].version) == (9, 17)


@pytest.mark.parametrize(
    ("text", "ir", "reason"),
    [
        (
            "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
            3,
            "needs 4 or more",
        ),
        ("(float[2] x) => (float[2] y) { y = Relu(x) }", 99, "no IR version 99"),
        ("(int4[2] x) => (int4[2] y) { y = Identity(x) }", 9, "has no int4"),
    ],
)
def test_an_ir_version_that_the_model_cannot_have_is_an_error(
    text: str, ir: int, reason: str
) -> None:
    made = Model.from_proto(parse(at(21, text)))
    before = content(made)
    with pytest.raises(UsageError, match=reason):
        made.convert_opset(23, ir=ir)
    assert content(made) == before


@pytest.mark.parametrize("version", [0, -1, 99])
def test_an_opset_that_does_not_exist_is_an_error(version: int) -> None:
    made = Model.from_proto(parse(at(17, "(float[2] x) => (float[2] y) { y = Relu(x) }")))
    with pytest.raises(UsageError, match="there is no opset"):
        made.convert_opset(version)


def test_function_bodies_are_used_where_rounding_is_allowed() -> None:
    text = at(20, X + "{ y = Gelu(x) }")
    made = Model.from_proto(parse(text))
    with pytest.raises(OpsetError, match=r"has no Gelu, .*; --expand \(numerics=reassociating\)"):
        get_pass(PASS, to=13).apply(made, PassContext.isolated())
    made_of = get_pass(PASS, to=13, numerics="reassociating")
    assert made_of.info.numerics is Numerics.REASSOCIATING
    made_of.apply(made, PassContext.isolated())
    made.check_view()
    result = made.to_proto()
    assert "Erf" in [node.op_type for node in result.graph.node]
    assert (made.opset(), len(made.functions)) == (13, 0)
    onnx.checker.check_model(result, full_check=True)


@pytest.mark.parametrize(
    ("opset", "text", "to"),
    [
        (20, "(float[2] x) => (float[2] y) { y = Gelu(x) }", 3),
        (18, X + "<int64[4] p = {0, 1, 1, 0}> { y = Pad<mode = \"wrap\">(x, p) }", 17),
    ],
)  # fmt: skip
def test_expansion_is_not_named_where_it_does_not_help(opset: int, text: str, to: int) -> None:
    made = Model.from_proto(parse(at(opset + 1, text)))
    with pytest.raises(OpsetError) as caught:
        made.convert_opset(to)
    assert "--expand" not in str(caught.value)
    assert [each.expands for each in caught.value.blocked] == [False]


NORMALIZED = "(float[N,T,8] x) => (float[N,T,8] y) <float[8] s = {1, 2, 3, 4, 5, 6, 7, 8}> "
ROTATED = "(float[N,2,T,8] x, float[N,T,4] c, float[N,T,4] s) => (float[N,2,T,8] y) "


@pytest.mark.parametrize("to", [18, 17, 13, 11])
@pytest.mark.parametrize(
    "text",
    [NORMALIZED + "{ y = RMSNormalization(x, s) }", ROTATED + "{ y = RotaryEmbedding(x, c, s) }"],
)
def test_axes_and_sizes_in_function_bodies_are_known(text: str, to: int) -> None:
    made = Model.from_proto(parse(at(23, text)))
    before = made.to_proto()
    get_pass(PASS, to=to, numerics="reassociating").apply(made, PassContext.isolated())
    made.check_view()
    assert made.opset() == to
    onnx.checker.check_model(made.to_proto(), full_check=True)
    numbers = np.random.default_rng(0)
    sizes: dict[Any, int] = {"N": 2, "T": 3}
    feeds = {}
    for value in made.main.inputs:
        shape = [dim if isinstance(dim, int) else sizes[dim] for dim in value.shape or ()]
        feeds[value.name] = numbers.standard_normal(shape).astype(np.float32)
    expected, found = (run(proto, feeds)["y"] for proto in (before, made.to_proto()))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_training_graphs_block_where_they_would_change() -> None:
    proto = parse(at(12, "(float[2] x) => (float[2] y) { y = Relu(x) }"))
    clip = helper.make_node("Softmax", ["y"], ["z"], name="step")
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
    proto.training_info.add().algorithm.CopyFrom(helper.make_graph([clip], "a", [], [value]))
    made = Model.from_proto(proto)
    with pytest.raises(OpsetError, match="training_info is not converted"):
        made.convert_opset(13)
    made.convert_opset(11)


def test_an_unknown_dtype_blocks_only_where_it_matters() -> None:
    text = """<ir_version: 10, opset_import: ["" : 14, "other" : 1]>
        g (float[2] x) => (y) { h = other.Op(x)  y = Add(h, h) }"""
    made = Model.from_proto(parse(text))
    with pytest.raises(OpsetError, match=r"takes no tensor\(.*\) as 'A', whose type is not known"):
        made.convert_opset(13)
    made.convert_opset(21)


def test_softmax_of_an_unknown_type_is_flattened() -> None:
    text = """<ir_version: 8, opset_import: ["" : 12, "other" : 1]>
        g (float[2] x) => (float[c,d,e] y) { h = other.Op(x)  y = Hardmax<axis = -2>(h) }"""
    made = assert_undone(PASS, parse(text), to=13)
    assert [node.op_type for node in made.graph.node] == [
        "Op",
        "Shape",
        "Flatten",
        "Hardmax",
        "Reshape",
    ]
    assert made.graph.node[3].attribute[0].i == -1


def test_without_an_opset_nothing_is_converted() -> None:
    assert_unchanged(PASS, X + "{ y = Relu(x) }", because="no opset is given")


def test_a_model_of_the_opset_is_left_alone() -> None:
    assert_unchanged(PASS, X + "{ y = Relu(x) }", because="the model has this opset", to=21)


def test_a_newer_model_is_converted_to_the_highest_opset_of_a_target() -> None:
    assert_rewrites(
        PASS,
        at(21, X + "{ y = Softmax<axis = 1>(x) }"),
        at(13, X + "{ y = Softmax<axis = 1>(x) }"),
        most=13,
    )


def test_a_model_of_an_older_opset_stays() -> None:
    assert_unchanged(
        PASS,
        at(11, X + "{ y = Relu(x) }"),
        because="the opset is 11, not above 13",
        most=13,
    )


def test_a_model_that_has_no_form_at_the_highest_opset_stays() -> None:
    image = "(float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,3,3] y) { y = GridSample(x, g) }"
    assert_unchanged(PASS, at(20, image), because="GridSample", most=13)


@pytest.mark.parametrize(("to", "noted"), [(21, False), (23, True)])
def test_an_operator_that_onnxruntime_lacks_at_the_opset_is_noted(to: int, noted: bool) -> None:
    head = "(float[1,1,4,4] x, float[1,4] r) => (float[1,1,1,1] y)"
    made = Model.from_proto(
        parse(at(16, f"{head} <int64[1] b = {{0}}> {{ y = RoiAlign(x, r, b) }}"))
    )
    get_pass(PASS, to=to).apply(made, PassContext.isolated())
    assert (
        any("no kernel for RoiAlign now (1 node, as 'y')" in note for note in made.notes) is noted
    )
