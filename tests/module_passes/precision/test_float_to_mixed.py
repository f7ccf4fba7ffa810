"""float_to_mixed: which nodes stay float, by which measurement, and what each reason says."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tiered import DataType, Model, PassContext, get_pass
from tiered.numerics.precision.narrowed_runs import NarrowedRuns, Outputs
from tiered.runtime import run
from tiered.support.errors import RuntimeFailure, UsageError, VerificationError
from tiered.targets.reading import backend_of
from tiered.testing import parse

FLOAT, HALF, BFLOAT = int(DataType.FLOAT), int(DataType.FLOAT16), int(DataType.BFLOAT16)
BEYOND = (
    "(float[2,4] x) => (float[2,4] y) <float k = {30000}> { a = Relu(x) b = Mul(a, k) y = Tanh(b) }"
)


def converted(
    text: str | onnx.ModelProto, ctx: PassContext | None = None, **options: object
) -> tuple[Model, list[str]]:
    """Return the mixed model, valid and at rest, and the findings."""
    model, ctx = Model.from_proto(parse(text)), ctx or PassContext.isolated()
    lower = get_pass("float_to_mixed").with_options(**options)
    lower.apply(model, ctx)
    model.check_view(types=True)
    proto = model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    again = Model.from_proto(proto)
    lower.apply(again, PassContext.isolated(backend=ctx.backend if ctx.names_backend else None))
    assert again.to_proto() == proto
    return model, [str(remark).removeprefix("float_to_mixed: ") for remark in ctx.remarks]


def dtypes(model: Model) -> dict[str, int | None]:
    """Return the dtype of the output of each operator but Cast."""
    nodes = [node for node in model.main.topological_order() if not node.is_op("Cast")]
    return {node.op_type: node.output.dtype for node in nodes}


def test_what_fits_is_narrow_and_the_outputs_are_measured() -> None:
    model, found = converted(
        "(float[N,4] x) => (float[N,4] y) <float[4,4] w = {1,2,3,4, 1,2,3,4, 1,2,3,4, 1,2,3,4}> "
        "{ a = MatMul(x, w) y = Softmax(a) }"
    )
    assert dtypes(model) == {"MatMul": HALF, "Softmax": HALF}
    assert any(
        text.startswith("measured on 2 generated inputs by onnxruntime: cosine") for text in found
    )


def test_values_that_are_measured_too_large_stay() -> None:
    model, found = converted(BEYOND)
    assert dtypes(model) == {"Relu": HALF, "Mul": FLOAT, "Tanh": FLOAT}
    assert any("Mul unchanged: measured up to" in text for text in found)


def test_a_range_that_is_proven_needs_no_margin() -> None:
    text = BEYOND.replace("b = Mul", "c = Mul").replace("y = Tanh", "b = Clip(c, l, h) y = Tanh")
    text = text.replace("k = {30000}", "k = {30000}, float l = {-30000}, float h = {30000}")
    model, _ = converted(text)
    assert dtypes(model) == {"Relu": HALF, "Mul": FLOAT, "Clip": FLOAT, "Tanh": HALF}


def test_bfloat16_has_the_range_of_float() -> None:
    model, _ = converted(BEYOND, to="bf16")
    assert dtypes(model) == {"Relu": BFLOAT, "Mul": BFLOAT, "Tanh": BFLOAT}


@pytest.mark.parametrize("operator", ["ReduceL2(b, i)", "LpNormalization<axis=1>(b)"])
def test_squares_that_do_not_fit_stay(operator: str) -> None:
    text = "(float[4,8] x) => (float[4,d] y) <int64[1] i = {1}, float k = {300}> "
    model, found = converted(f"{text} {{ a = Relu(x) b = Add(a, k) m = {operator} y = Neg(m) }}")
    name = operator.partition("<")[0].partition("(")[0]
    assert dtypes(model) == {"Relu": HALF, "Add": HALF, name: FLOAT, "Neg": HALF}
    assert any(f"1 {name} unchanged: squares up to" in text for text in found)
    small, _ = converted(
        f"{text.replace('300', '3')} {{ a = Relu(x) b = Add(a, k) y = {operator} }}"
    )
    assert dtypes(small)[name] == HALF


def test_a_mean_whose_sum_does_not_fit_stays() -> None:
    model, found = converted(
        "(float[1,9000] x) => (float[1,1] y) <int64[1] i = {1}, float k = {9}> "
        "{ a = Relu(x) b = Add(a, k) m = ReduceMean(b, i) y = Neg(m) }"
    )
    assert dtypes(model) == {"Relu": HALF, "Add": HALF, "ReduceMean": FLOAT, "Neg": HALF}
    assert any("1 ReduceMean unchanged: a sum up to" in text for text in found)


def test_a_local_error_keeps_a_node() -> None:
    text = (
        "(float[4] x) => (float[4] y) <float k = {4096}> { a = Add(x, k) b = Sub(a, k) y = Neg(b) }"
    )
    model, found = converted(text)
    assert dtypes(model) == {"Add": FLOAT, "Sub": FLOAT, "Neg": HALF}
    assert any("1 Sub unchanged: a local error of" in text for text in found)
    assert any("which amplifies its rounding" in text for text in found)
    assert dtypes(converted(text, max_error=2.0)[0])["Sub"] == HALF


def test_integers_that_differ_keep_their_source() -> None:
    text = (
        "(float[2,8] x) => (int64[2,8] y, float[2,8] z) <float k = {3000}> "
        "{ a = Sin(x) b = Mul(a, k) y = Cast<to=7>(b) z = Neg(a) }"
    )
    model, found = converted(text)
    (mul,) = model.main.nodes_of("Mul")
    assert mul.output.dtype == FLOAT
    assert any("of its integers differ" in text for text in found)


@pytest.mark.parametrize("budget", ["", "relative<=1e-3"])
def test_an_operand_that_stays_float_is_not_rounded_in_a_trial(budget: str, tmp_path: Path) -> None:
    """Rounded scales would resize to another shape: 7/5 is a little less in float16."""
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,1,H,W] x, float[2] t) => '
        "(float[1,1,h,w] y) <float[2] one = {1,1}, int64[1] a = {2}, int64[1] b = {4}> "
        "{ s = Shape(x) d = Slice(s, a, b) f = Cast<to=1>(d) r = Div(t, f) "
        "c = Concat<axis=0>(one, r) y = Resize(x, , c) }"
    )
    x, t = np.ones((1, 1, 5, 5), np.float32), np.array([7, 9], np.float32)
    np.savez(tmp_path / "in.npz", x=x, t=t)
    model, found = converted(text, budget=budget, inputs=(str(tmp_path / "in.npz"),))
    assert dtypes(model)["Resize"] == HALF
    assert not any("nothing was measured" in each for each in found)


def test_a_rounding_that_changes_how_many_there_are_keeps_a_node() -> None:
    """Numbers of 1e-8 are 0 in float16, so NonZero would find fewer."""
    text = (
        "(float[64] x) => (int64[1,n] y) <float k = {1e-5}, float e = {1e-3}> "
        "{ a = Mul(x, k) b = Mul(a, e) y = NonZero(b) }"
    )
    model, found = converted(text)
    (nonzero,) = model.main.nodes_of("NonZero")
    assert nonzero.inputs[0] is not None
    assert nonzero.inputs[0].dtype == FLOAT
    assert any("NonZero unchanged: " in each for each in found)


def test_numbers_of_a_mask_decide_nothing() -> None:
    model, _ = converted(
        "(float[2,4] x) => (float[2,4] y) <float[4] m = {0,0,-3e38,0}> "
        "{ a = Add(x, m) y = Softmax(a) }"
    )
    assert dtypes(model) == {"Add": HALF, "Softmax": HALF}


def test_a_budget_returns_the_worst_nodes() -> None:
    text = (
        "(float[64,4] x) => (float[64,4] y, float[64,4] z) <float k = {64}> "
        "{ a = Add(x, k) b = Sub(a, k) y = Neg(b) c = Sin(x) z = Neg(c) }"
    )
    model, found = converted(text, budget="relative<=2e-3", max_error=1.0)
    assert [node.output.dtype for node in model.main.nodes_of("Sub")] == [FLOAT]
    assert [node.output.dtype for node in model.main.nodes_of("Sin")] == [HALF]
    assert any("unchanged: returned for relative<=0.002" in text for text in found)
    assert any("by onnx.reference: relative 0.0" in text for text in found)


def test_a_budget_of_bfloat16() -> None:
    text = "(float[4,4] x) => (float[4,4] y) { a = Exp(x) b = Sin(a) c = Cos(b) y = Tanh(c) }"
    model, _ = converted(text, budget="relative<=1e-5", to="bf16")
    assert BFLOAT not in dtypes(model).values()


def test_a_budget_that_cannot_be_met_leaves_the_model() -> None:
    proto = parse("(float[4] x) => (float[4] y) { a = Exp(x) y = Sin(a) }")
    model = Model.from_proto(proto)
    force = get_pass("float_to_mixed", budget="max_abs<=1e-9", force_op_types=("Exp",))
    with pytest.raises(VerificationError, match="the budget max_abs<=1e-09 cannot be met"):
        force.apply(model)
    assert model.to_proto() == proto


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"skip_op_types": ("Relu",)}, {"Relu": FLOAT, "Mul": FLOAT, "Tanh": FLOAT}),
        ({"force_op_types": ("Tanh",)}, {"Relu": HALF, "Mul": FLOAT, "Tanh": HALF}),
        ({"force_nodes": ("b*",)}, {"Relu": HALF, "Mul": HALF, "Tanh": FLOAT}),
    ],
)
def test_the_user_decides_first(options: dict[str, Any], kept: dict[str, int]) -> None:
    proto = parse(BEYOND)
    for node in proto.graph.node:
        node.name = node.output[0]
    assert dtypes(converted(proto, **options)[0]) == kept


def test_given_inputs_are_measured(tmp_path: Path) -> None:
    text = "(float[4] x) => (float[4] y) { a = Relu(x) y = Abs(a) }"
    np.save(tmp_path / "x.npy", np.array([1, 2, 3, 50000], np.float32))
    model, found = converted(text, inputs=(str(tmp_path / "x.npy"),))
    assert dtypes(model) == {"Relu": FLOAT, "Abs": FLOAT}
    assert any("measured up to 5e+04" in text for text in found)
    assert any(text.startswith("measured on 1 given input by") for text in found)


def test_suspects_stay_where_nothing_can_be_measured() -> None:
    text = (
        "(float[4] x) => (float[4] y, float[4] z) "
        "{ a = Tanh(x) b = Exp(a) c = Exp(x) y = Add(b, c) z = com.acme.Unknown(x) }"
    )
    proto = parse(text)
    proto.opset_import.add(domain="com.acme", version=1)
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass("float_to_mixed").apply(model, ctx)
    first, second = model.main.nodes_of("Exp")
    assert (first.output.dtype, second.output.dtype) == (HALF, FLOAT)
    found = [str(remark) for remark in ctx.remarks]
    assert any("nothing was measured" in text for text in found)
    assert any("its range is neither measured nor proven" in text for text in found)
    with pytest.raises(RuntimeFailure):
        get_pass("float_to_mixed", budget="cosine>=0.9").apply(Model.from_proto(proto))


def test_a_target_keeps_what_it_takes_in_float_only() -> None:
    table = {
        "api_version": 1,
        "name": "halves",
        "operators": {"Exp, Cast": True, "Relu": {"dtypes": ["float"]}},
    }
    backend = backend_of(table, "halves.toml", lambda name: {})
    ctx = PassContext.isolated(backend=backend)
    model, found = converted("(float[4] x) => (float[4] y) { a = Exp(x) y = Relu(a) }", ctx)
    assert dtypes(model) == {"Exp": HALF, "Relu": FLOAT}
    assert any("halves takes Relu in float only" in text for text in found)


def test_bodies_are_narrow_and_shared_constants_too() -> None:
    model, _ = converted(
        "(float[4] x, bool c) => (float[4] y) <float[4] w = {1,2,3,4}> { a = Mul(x, w) y = If(c) <"
        "then_branch = g () => (float[4] t) { t = Mul(a, w) }, "
        "else_branch = h () => (float[4] e) { e = Add(a, w) }> }"
    )
    (branch,) = model.main.nodes_of("If")
    assert [body.nodes[0].output.dtype for body in branch.bodies] == [HALF, HALF]


def test_the_interface_changes_if_asked() -> None:
    model, _ = converted(BEYOND, keep_io_types=False)
    assert [value.dtype for value in model.main.inputs] == [HALF]


def test_an_old_opset() -> None:
    text = "(float[2,4] x) => (float[2,1] y) { a = Exp(x) y = ReduceMean<axes = [1]>(a) }"
    proto = parse(text, opset=8)
    assert dtypes(converted(proto)[0]) == {"Exp": HALF, "ReduceMean": HALF}


def test_a_budget_must_be_readable() -> None:
    model = Model.from_proto(parse(BEYOND))
    with pytest.raises(UsageError, match="is no budget"):
        get_pass("float_to_mixed", budget="good").apply(model)


def test_with_a_budget_a_second_run_changes_nothing() -> None:
    """The nodes that returned are not tried again: the outputs are those of halves by now."""
    text = (
        "(float[2,8] x) => (float[2,8] y, float[2,8] z) <float k = {0.333}> "
        "{ a = Exp(x) b = Mul(a, k) y = Tanh(b) z = Neg(x) }"
    )
    model, found = converted(text, budget="relative<=3e-4")
    assert HALF in dtypes(model).values(), found
    again = PassContext.isolated()
    get_pass("float_to_mixed").with_options(budget="relative<=1e-9").apply(model, again)
    assert [str(remark) for remark in again.remarks if "already" in str(remark)]
    with pytest.raises(UsageError, match="is no budget"):
        get_pass("float_to_mixed").with_options(budget="tight").apply(model, again)


def test_weights_that_are_stored_in_halves_are_no_halves_that_compute() -> None:
    text = (
        "(float[2,2] x) => (float[2,2] y) <float16[2,2] h = {15360,16384,16896,17408}> "
        "{ w = Cast<to = 1>(h) y = MatMul(x, w) }"
    )  # the numbers are the bits of 1, 2, 3 and 4
    model, _ = converted(text, budget="relative<=0.1")
    assert dtypes(model)["MatMul"] == HALF


def test_a_judge_that_computes_the_original_otherwise_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = NarrowedRuns.outputs

    def off(
        self: NarrowedRuns, model: Model, *, by_reference: bool = False, is_emulated: bool = True
    ) -> list[Outputs]:
        found = outputs(self, model, by_reference=by_reference, is_emulated=is_emulated)
        if not by_reference:
            return found
        return [{name: value * 1.22 for name, value in each.items()} for each in found]

    text = "(float[4] x) => (float[4] y) { a = Tanh(x) y = Sin(a) }"
    for judge in ("onnx.reference", "onnxruntime"):
        _, found = converted(text, budget="relative<=0.01")
        assert any(f"measured on 2 generated inputs by {judge}: " in each for each in found)
        monkeypatch.setattr(NarrowedRuns, "outputs", off)


def test_without_gradients_the_error_orders_what_a_budget_returns() -> None:
    text = "(float[8,4] x) => (float[8,4] y) { a = Sin(x) y = Mish(a) }"
    for order in ("auto", "error"):
        model, _ = converted(text, budget="relative<=1e-5", order=order)
        assert dtypes(model)["Sin"] == FLOAT


def test_the_bytes_of_weights_are_reported() -> None:
    text = (
        "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,4}> "
        "{ a = Relu(x) b = MatMul(a, w) y = Tanh(b) }"
    )
    _, found = converted(text)
    weights = "weights: 8 bytes in float16 (100.0 % of the numbers), 0 in float"
    assert any(weights in each for each in found)


def test_onnxruntime_itself_is_printed_where_it_is_worse() -> None:
    """A mask of -1e9 absorbs what is added in a half; onnxruntime adds in float."""
    text = (
        "(float[2,4] x) => (float[2,4] y) <float[4] m = {-1e9,-1e9,-1e9,-1e9}> "
        "{ a = Sin(x) b = Add(a, m) y = Softmax(b) }"
    )
    _, found = converted(text)
    itself = "by onnxruntime itself, which rounds less: "
    assert any(f"{itself}cosine 0." in each for each in found)
    model, found = converted(text, budget="relative<=1e-3")
    assert any(f"{itself}relative " in each for each in found)
    assert dtypes(model)["Add"] == FLOAT
    x = np.array([[1, 2, 3, 4], [0, 1, 0, 1]], np.float32)
    expected, actual = (run(each, {"x": x})["y"] for each in (parse(text), model.to_proto()))
    np.testing.assert_allclose(actual, expected, rtol=1e-3)


def test_a_shape_that_is_computed_in_float_holds_a_budget() -> None:
    model, _ = converted(
        "(float[1,1,5,5] x, float[2] t) => (float[1,1,H,W] y) <float[2] one = {1,1}, "
        "int64[1] b = {2}, int64[1] e = {4}, float least = {7}> { s = Shape(x) h = Slice(s, b, e) "
        "f = Cast<to=1>(h) u = Max(t, least) q = Div(u, f) c = Concat<axis=0>(one, q) r = Sin(x) "
        'y = Resize<mode="nearest">(r, , c) }',
        budget="relative<=1e-2",
    )
    assert dtypes(model)["Div"] == FLOAT
    assert dtypes(model)["Sin"] == HALF
