"""float_to_half: which tensors become halves, and where Casts stand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tiered import DataType, Model, PassContext, get_pass
from tiered.numerics.precision.emulation import emulate
from tiered.numerics.precision.narrowing import narrow
from tiered.runtime import run, run_reference
from tiered.targets.reading import backend_of
from tiered.testing import assert_rewrites, assert_unchanged, parse

HALF = int(DataType.FLOAT16)


def converted(text: str | onnx.ModelProto, **options: object) -> tuple[Model, list[str]]:
    """Return the model in halves, valid and at rest, and the findings."""
    model, ctx = Model.from_proto(parse(text)), PassContext.isolated()
    lower = get_pass("float_to_half").with_options(**options)
    lower.apply(model, ctx)
    model.check_view(types=True)
    proto = model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    again = Model.from_proto(proto)
    lower.apply(again)
    assert again.to_proto() == proto
    return model, [str(remark).removeprefix("float_to_half: ") for remark in ctx.remarks]


def operators(model: Model) -> list[str]:
    return [node.op_type for node in model.main.topological_order()]


def test_the_inner_tensors_are_float16() -> None:
    assert_rewrites(
        "float_to_half",
        "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,4}> "
        "{ a = MatMul(x, w) y = Relu(a) }",
        # The numbers of the weight are the bits of 1, 2, 3 and 4.
        "(float[N,2] x) => (float[N,2] y) <float16[2,2] w = {15360,16384,16896,17408}> "
        "{ h = Cast<to=10>(x) a = MatMul(h, w) b = Relu(a) y = Cast<to=1>(b) }",
    )


def test_casts_stand_at_inputs_and_outputs() -> None:
    model, _ = converted(
        "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,4}> "
        "{ a = MatMul(x, w) b = Relu(a) y = Add(b, x) }"
    )
    assert operators(model) == ["Cast", "MatMul", "Relu", "Add", "Cast"]
    assert [value.name for value in model.main.outputs] == ["y"]
    (w,) = model.main.initializers
    assert (w.name, w.dtype) == ("w", HALF)
    x = np.array([[1, -2]], np.float32)
    assert run(model.to_proto(), {"x": x})["y"].tolist() == [[1, -2]]


def test_the_interface_changes_if_asked() -> None:
    model, _ = converted(
        "(float[N] x, int64[N] i) => (float[N] y, int64[N] j) { y = Relu(x) j = Neg(i) }",
        keep_io_types=False,
    )
    assert operators(model) == ["Relu", "Neg"] or operators(model) == ["Neg", "Relu"]
    assert [value.dtype for value in (*model.main.inputs, *model.main.outputs)] == [
        HALF,
        7,
        HALF,
        7,
    ]
    assert get_pass("float_to_half").with_options(keep_io_types=False).info.changes_interface


def test_what_a_schema_forbids_stays() -> None:
    """Before opset 19 QuantizeLinear and IsInf take no halves, and Resize has float scales."""
    model, found = converted(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,1,2,2] x) => (float[1,1,4,4] y, '
        "bool[1,1,2,2] z) <float[4] s = {1,1,2,2}> "
        '{ r = Relu(x) e = Celu(r) y = Resize<mode="nearest">(e, , s) z = IsInf(r) }'
    )
    assert any("1 Celu unchanged: Celu has no float16" in text for text in found)
    (resize,) = model.main.nodes_of("Resize")
    assert [value.dtype for value in resize.inputs if value is not None] == [HALF, 1]
    (celu,) = model.main.nodes_of("Celu")
    assert celu.output.dtype == 1


def test_moves_have_the_type_with_the_fewest_casts() -> None:
    model, _ = converted(
        "(float[2,3] x) => (float[6] y) <int64[1] s = {-1}> { t = Transpose(x) y = Reshape(t, s) }"
    )
    assert operators(model) == ["Transpose", "Reshape"]


def test_a_value_has_one_cast_for_all_its_readers() -> None:
    model, _ = converted(
        "(float[2] x) => (float[2] y) { a = Relu(x) b = Sin(a) c = Cos(a) d = Tan(a) e = Add(b, c) "
        "y = Add(e, d) }",
        skip_op_types=("Sin", "Cos", "Tan"),
    )
    casts = model.main.nodes_of("Cast")
    relu = model.main.nodes_of("Relu")[0].output
    assert sum(cast.inputs[0] is relu for cast in casts) == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"skip_op_types": ("Exp",)}, "Exp is skipped"), ({"skip_nodes": ("e*",)}, "is skipped")],
)
def test_nodes_stay_float_if_asked(options: dict[str, object], reason: str) -> None:
    proto = parse("(float[2] x) => (float[2] y) { a = Relu(x) e = Exp(a) y = Abs(e) }")
    proto.graph.node[1].name = "e1"
    model, found = converted(proto, **options)
    assert model.main.nodes_of("Exp")[0].output.dtype == 1
    assert any(reason in text for text in found)


def test_attributes_that_name_a_type_follow() -> None:
    model, _ = converted(
        "(int64[2] i, int64[1] s) => (float[2] y) { a = Cast<to=1>(i) b = ConstantOfShape(s) "
        "c = Add(a, b) y = Relu(c) }"
    )
    assert model.main.nodes_of("Cast")[0].attr("to") == HALF
    (fill,) = model.main.nodes_of("ConstantOfShape")
    assert fill.attr("value").dtype == HALF


def test_masks_are_clamped() -> None:
    model, found = converted(
        "(float[2] x) => (float[2] y) <float[2] m = {-3e38, inf}> "
        "{ a = Relu(x) b = Add(a, m) y = Softmax(b) }"
    )
    (mask,) = model.main.initializers
    assert mask.const is not None
    assert mask.const.tolist() == [-65504, np.inf]
    assert "constants with numbers beyond float16, which are clamped: 1, as m" in found


def test_an_epsilon_that_would_be_zero_stays() -> None:
    model, found = converted(
        "(float[2] x) => (float[2] y) <float e = {1e-12}> { a = Relu(x) b = Add(a, e) y = Sqrt(b) }"
    )
    assert any("1e-12 is 0 in float16" in text for text in found)
    assert model.main.nodes_of("Add")[0].output.dtype == 1


def test_a_constant_of_both_types_is_there_twice() -> None:
    model, _ = converted(
        "(float[2] x) => (float[2] y) <float[2] w = {1,2}> "
        "{ a = Add(x, w) b = Exp(a) c = Mul(b, w) y = Relu(c) }",
        skip_op_types=("Exp", "Mul"),
    )
    assert sorted(value.dtype or 0 for value in model.main.initializers) == [1, HALF]


def test_a_default_of_an_input_keeps_its_type() -> None:
    model, _ = converted(
        "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { a = Add(x, w) y = Relu(a) }"
    )
    assert [value.dtype for value in model.main.inputs] == [1, 1]
    (w,) = model.main.initializers
    assert w.dtype == 1


def test_branches_agree() -> None:
    model, _ = converted(
        "(bool c, float[2] x) => (float[2] y) { a = Relu(x) "
        "b = If(c) <then_branch = t () => (float[2] p) { p = Abs(a) }, "
        "else_branch = e () => (float[2] q) { q = Exp(a) }> y = Neg(b) }"
    )
    (branch,) = model.main.nodes_of("If")
    assert branch.output.dtype == HALF
    assert [body.outputs[0].dtype for body in branch.bodies] == [HALF, HALF]
    assert len([node for graph in model.graphs() for node in graph.nodes_of("Cast")]) == 2


def test_a_loop_carries_one_type() -> None:
    text = (
        "(int64 n, float[2] x) => (float[2] y, float[K,2] z) <bool t = {1}> { a = Relu(x) "
        "b, z = Loop(n, t, a) <body = g (int64 i, bool c, float[2] s) => "
        "(bool c, float[2] u, float[2] v) { u = Add(s, a) v = Abs(u) }> y = Neg(b) }"
    )
    model, _ = converted(text)
    (loop,) = model.main.nodes_of("Loop")
    (body,) = loop.bodies
    assert {value.dtype for value in (*body.inputs[2:], *body.outputs[1:])} == {HALF}
    inputs = {"n": np.array(3), "x": np.array([1, 2], np.float32)}
    before, after = run(parse(text), inputs), run(model.to_proto(), inputs)
    assert {name: array.tolist() for name, array in after.items()} == {
        name: array.tolist() for name, array in before.items()
    }


def test_a_scan_carries_one_type() -> None:
    text = (
        "(float[2] x, float[3,2] s) => (float[2] y, float[3,2] z) { a = Relu(x) "
        "b, z = Scan(a, s) <num_scan_inputs = 1, body = g (float[2] p, float[2] q) => "
        "(float[2] u, float[2] v) { u = Add(p, q) v = Neg(u) }> y = Abs(b) }"
    )
    model, _ = converted(text)
    (scan,) = model.main.nodes_of("Scan")
    assert {value.dtype for value in (*scan.bodies[0].inputs, *scan.bodies[0].outputs)} == {HALF}
    inputs = {"x": np.ones(2, np.float32), "s": np.ones((3, 2), np.float32)}
    assert run(model.to_proto(), inputs)["y"].tolist() == [4, 4]


def test_qdq_units_stay_whole() -> None:
    assert_unchanged(
        "float_to_half",
        "(float[2,2] x) => (float[2,2] y) <float s = {0.1}, uint8 z = {0}, uint8[2,2] w = {1,2,3,4}> "
        "{ q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
        "e = DequantizeLinear(w, s, z) m = MatMul(d, e) p = QuantizeLinear(m, s, z) "
        "y = DequantizeLinear(p, s, z) }",
        because="inside a Q/DQ unit",
    )


def test_sequences_and_unknown_operators_stay() -> None:
    _, found = converted(
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[2] x) => (float[2] y) '
        "<int64 i = {0}> { a = Relu(x) s = SequenceConstruct(a) b = SequenceAt(s, i) y = Abs(b) }"
    )
    assert sum("a sequence, or a tensor of unknown type" in text for text in found) == 2
    assert_unchanged(
        "float_to_half",
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        "g (float[2] x) => (float[2] y) { y = own.Any(x) }",
        because="an operator that ONNX does not define",
    )


def test_a_target_keeps_what_it_has_in_float_only() -> None:
    table = {
        "api_version": 1,
        "name": "chip",
        "operators": {"Relu, Cast": True, "Exp": {"dtypes": ["float"]}},
    }
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { a = Relu(x) y = Exp(a) }"))
    ctx = PassContext.isolated(backend=backend_of(table, "chip.toml", lambda name: {}))
    get_pass("float_to_half").apply(model, ctx)
    assert model.main.nodes_of("Exp")[0].output.dtype == 1
    assert any("chip takes Exp in float only" in str(r) for r in ctx.remarks)


def test_narrow_rounds_to_even_and_clamps() -> None:
    numbers = np.array([65504, 65519, 65520, -1e30, np.inf, 2049, 2051, 1e-9, -0.0], np.float32)
    halves, clamped = narrow(numbers, DataType.FLOAT16)
    assert clamped
    expected = [65504, 65504, 65504, -65504, np.inf, 2048, 2052, 0, -0.0]
    assert halves.tolist() == expected
    assert np.signbit(halves[-1])
    assert np.isnan(narrow(np.array([np.nan], np.float32), DataType.FLOAT16)[0]).all()


MASKED = (
    "(float[2,4] s, bool[2,4] keep) => (float[2,4] y, float[2,4] z) "
    "<float m = {-3.4e38}, float o = {0}> "
    "{ a = Where(keep, s, m) y = Softmax(a) "
    "b = Where(keep, o, m) c = Add(s, b) z = Softmax(c) }"
)


@pytest.mark.parametrize("runs", [run, run_reference])
def test_a_row_that_is_masked_as_a_whole_has_no_nan(runs: Callable[..., Any]) -> None:
    model, _ = converted(MASKED)
    feeds = {
        "s": np.array([[1, -2, 3, 0.5]] * 2, np.float32),
        "keep": np.array([[False] * 4, [True, True, False, False]]),
    }
    expected, found = run(parse(MASKED), feeds), runs(model.to_proto(), feeds)
    for name in ("y", "z"):
        assert np.isfinite(found[name]).all()
        np.testing.assert_allclose(found[name].sum(-1), 1, atol=2e-3)
        np.testing.assert_allclose(found[name][1], expected[name][1], atol=2e-3)


def test_a_row_that_is_masked_as_a_whole_is_uniform_where_halves_are_rounded() -> None:
    """A sum with -65504 is -65504 in float16; onnxruntime adds in float, if no Cast follows."""
    feeds = {"s": np.array([[1, -2, 3, 0.5]] * 2, np.float32), "keep": np.zeros((2, 4), np.bool_)}
    expected = run(parse(MASKED), feeds)
    np.testing.assert_array_equal(expected["z"], 0.25)
    model, _ = converted(MASKED)
    np.testing.assert_array_equal(run_reference(model.to_proto(), feeds)["z"], 0.25)
    emulate(model)
    np.testing.assert_array_equal(run(model.to_proto(), feeds)["z"], 0.25)


def test_a_node_is_narrow_if_it_is_forced() -> None:
    text = (
        "(float[2] x) => (float[2] y) <float e = {1e-12}> { a = Relu(x) b = Add(a, e) y = Sqrt(b) }"
    )
    model, _ = converted(text, force_op_types=("Add",))
    assert model.main.nodes_of("Add")[0].output.dtype == HALF


def test_an_operator_that_onnxruntime_lacks_in_float16_is_noted() -> None:
    text = (
        "(float[4] x, int64[2] i, float[2] u) => (float[4] y) "
        '{ a = Exp(x)  y = ScatterElements<reduction = "add">(a, i, u) }'
    )
    model = Model.from_proto(parse(text))
    get_pass("float_to_half").apply(model, PassContext.isolated())
    (note,) = model.notes
    assert note.startswith("onnxruntime has no kernel for ScatterElements now (1 node, as 'y")
    named = Model.from_proto(parse(text))
    get_pass("float_to_half").apply(named, PassContext.isolated(backend="onnxruntime_cpu"))
    assert not named.notes


@pytest.mark.parametrize(
    "draw",
    [
        "r = RandomNormal<shape=[2]>()",
        "r = RandomUniform<shape=[2], dtype=1>()",
        "r = RandomNormalLike(x)",
        "r = RandomUniformLike(x)",
        "r = Bernoulli(p)",
    ],
)
def test_random_draws_stay_float(draw: str) -> None:
    """onnxruntime has no kernel for halves, and other numbers would be drawn."""
    text = f"(float[2] x) => (float[2] y) {{ p = Sigmoid(x) {draw} y = Add(p, r) }}"
    model, _ = converted(text)
    (drawn,) = (node for node in model.main.nodes if node.op_type in draw)
    assert drawn.output.dtype == DataType.FLOAT
    assert "Sigmoid" in operators(model)
    assert any(node.output.dtype == HALF for node in model.main.nodes_of("Add"))
    run(model.to_proto(), {"x": np.zeros(2, np.float32)})


def test_a_random_index_is_drawn_of_floats() -> None:
    model, _ = converted(
        "(float[2,3] x) => (int32[2,4] y) { p = Relu(x) y = Multinomial<sample_size=4>(p) }"
    )
    run(model.to_proto(), {"x": np.zeros((2, 3), np.float32)})
