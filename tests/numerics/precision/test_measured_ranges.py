"""What leaves the range of float16 on inputs stays float: values, and numbers inside of a node."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tiered import DataType, Model, PassContext, get_pass
from tiered.numerics.precision.measured_ranges import beyond_range
from tiered.runtime import run, run_reference
from tiered.testing import parse

Array = np.ndarray[Any, Any]

FORMS = {
    "a product": ("y = ReduceProd<axes=[1],keepdims=1>(b)", 30, "measured up to"),
    "a power": ("p = Pow(b, four) y = Mul(p, tiny)", 60, "measured up to"),
    "an exponential": ("s = Mul(b, four) e = Exp(s) y = Sqrt(e)", 5, "measured up to"),
    "a number of no size": ("s = Add(b, k) e = Exp(s) y = Sqrt(e)", 37, "measured up to"),
    "few digits": ("s = Mul(b, tiny) y = Tanh(s)", 0.01, "measured up to"),
    "a sum": ("s = ReduceSum(b, one) q = Mul(s, tiny) y = Neg(q)", 9000, "measured up to"),
    "squares": ("s = ReduceSumSquare<axes=[1],keepdims=1>(b) y = Sqrt(s)", 200, "measured up to"),
    "a norm": ("y = ReduceL2<axes=[1],keepdims=1>(b)", 200, "squares up to"),
    "a normalization": ("y = LpNormalization<axis=1>(b)", 300, "squares up to"),
    "a logarithm of a sum": ("y = ReduceLogSum<axes=[1],keepdims=1>(b)", 20000, "e^"),
    "a small probability": ("d = Sub(b, k) z = Mul(d, four) y = LogSoftmax(z)", 3, "e^-"),
}


def text_of(body: str, shift: float) -> str:
    """Return a model that adds a number to what is not negative, and goes on."""
    return (
        f"(float[N,8] x) => (float[N,M] y) <float k = {{{shift:g}}}, float four = {{4}}, "
        "float tiny = {1e-6}, int64[1] one = {1}> "
        f"{{ a = Relu(x) b = Add(a, k) {body} }}"
    )


def converted(
    proto: onnx.ModelProto, name: str, feeds: dict[str, Any], path: Path
) -> tuple[onnx.ModelProto, list[str]]:
    """Return a valid model in halves that was measured on inputs, and the remarks."""
    np.savez(path / "x.npz", **feeds)
    options: dict[str, object] = {"inputs": (str(path / "x.npz"),)}
    if name == "float_to_half":
        options["measure"] = True
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(name).with_options(**options).apply(model, ctx)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    return made, [str(remark) for remark in ctx.remarks]


@pytest.mark.parametrize("name", ["float_to_half", "float_to_mixed"])
@pytest.mark.parametrize("form", FORMS)
def test_what_leaves_the_range_stays_float(form: str, name: str, tmp_path: Path) -> None:
    body, shift, why = FORMS[form]
    source = np.random.default_rng(len(form))
    x = source.standard_normal((3, 8)).astype(np.float32)
    if form == "a small probability":
        x[:, 0] += 6
    proto = parse(text_of(body, shift), opset=12 if "axes=" in body else 13)
    found, remarks = converted(proto, name, {"x": x}, tmp_path)
    assert any(f"unchanged: {why}" in each for each in remarks)
    for runtime in (run, run_reference):
        exact, actual = (runtime(each, {"x": x})["y"] for each in (proto, found))
        assert np.isfinite(exact).all()
        np.testing.assert_allclose(actual, exact, rtol=5e-2)


@pytest.mark.parametrize("seed", range(12))
def test_random_steps_make_no_new_nan_or_infinity(seed: int, tmp_path: Path) -> None:
    """A chain of operators whose numbers grow and shrink by orders of magnitude."""
    source = np.random.default_rng(seed)
    steps, value = list[str](), "b"
    for at in range(5):
        step = source.choice(
            ["Mul({0}, k)", "Mul({0}, {0})", "Add({0}, k)", "Sqrt({0})", "Div({0}, k)",
             "Exp({0})", "Abs({0})", "Mul({0}, tiny)", "Pow({0}, four)", "ReduceMax({0})"]
        )  # fmt: skip
        steps.append(f"v{at} = {step.format(value)}")
        value = f"v{at}"
    proto = parse(text_of(" ".join(steps) + f" y = Log({value})", source.uniform(1, 40)), opset=17)
    x = source.standard_normal((4, 8)).astype(np.float32)
    expected = run(proto, {"x": x})["y"]
    found, _ = converted(proto, "float_to_half", {"x": x}, tmp_path)
    for runtime in (run, run_reference):
        is_lost = np.isfinite(expected) & ~np.isfinite(runtime(found, {"x": x})["y"])
        assert not is_lost.any(), steps


def test_masks_do_not_leave_the_range(tmp_path: Path) -> None:
    proto = parse(
        "(float[N,4] x, float[N,4] m) => (float[N,4] y) <float one = {1}, float k = {-3.4e38}> "
        "{ n = Sub(one, m) q = Mul(n, k) a = Relu(x) b = Add(a, q) y = Softmax(b) }",
        opset=17,
    )
    feeds: dict[str, Array] = {
        "x": np.ones((2, 4), np.float32),
        "m": np.array([[1, 1, 0, 0], [0, 1, 1, 1]], np.float32),
    }
    _, remarks = converted(proto, "float_to_half", feeds, tmp_path)
    assert not any("measured up to" in each for each in remarks)


def test_a_model_that_does_not_run_is_converted_without() -> None:
    proto = parse(text_of("y = Relu(b)", 1), opset=17)
    proto.graph.node.append(onnx.helper.make_node("Own", ["b"], ["z"], domain="own"))
    proto.opset_import.append(onnx.helper.make_opsetid("own", 1))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, ["N", 8]))
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass("float_to_half").with_options(measure=True).apply(model, ctx)
    assert any("ranges were not measured: " in str(each) for each in ctx.remarks)


def beyond(
    nodes: str, largest: float, *, margin: float = 1.0, opset: int = 12, **others: float
) -> tuple[dict[str, str], dict[str, str]]:
    """Return what leaves float16, for an input of rows of eight equal numbers."""
    model = Model.from_proto(
        parse(
            f"""(float[N,8] x, float[1] d) => (float[A,B] y)
            <float big = {{1e6}}, float[1] d = {{1e6}}, float low = {{-60000}},
            float high = {{60000}}, float least = {{-65504}},
            float most = {{65504}}> {{ {nodes} }}""",
            opset=opset,
        )
    )
    given = {name: np.array([number], np.float32) for name, number in others.items()}
    feeds = [{"x": np.full((2, 8), largest, np.float32), **given}]
    order = list(model.main.topological_order())
    found = beyond_range(model, order, feeds, DataType.FLOAT16, margin=margin)
    return (
        {value.name: why for value, why in found.values.items()},
        {node.op_type: why for node, why in found.nodes.items()},
    )


@pytest.mark.parametrize(
    ("nodes", "largest", "margin", "names"),
    [
        ("y = Neg(x)", 65504, 1, ""),
        ("y = Neg(x)", 65505, 1, "x y"),
        ("y = Neg(x)", 65504, 2, "x y"),
        ("y = Neg(x)", 0, 1, ""),
        ("y = Neg(x)", 6e-6, 1, "x y"),
        ("y = Neg(x)", 8e-6, 1, ""),
        ("c = Clip(x, low, high)  y = Neg(c)", 6e4, 2, "x"),
        ("c = Clip(x, least, most)  y = Neg(c)", 65504, 2, "x"),
        ("c = Clip(x, , most)  y = Neg(c)", 1, 1, ""),
        ("i = Cast<to=7>(x)  j = Mul(i, i)  y = Cast<to=1>(j)", 60000, 1, "y"),
        ("m = Min(x, big)  y = Neg(m)", 1, 1, ""),
        ("y = Mul(x, d)", 0.01, 1, "d"),
    ],
)
def test_a_value_is_beyond_by_the_largest_number_and_the_margin(
    nodes: str, largest: float, margin: float, names: str
) -> None:
    values, inner = beyond(nodes, largest, margin=margin)
    assert sorted(values) == names.split()
    assert inner == {}


def test_a_default_counts_where_nothing_is_fed() -> None:
    assert beyond("y = Mul(x, d)", 1, d=3) == ({}, {})


MEAN = "y = ReduceMean<axes = [1], keepdims = 1>(x)"


@pytest.mark.parametrize(
    ("nodes", "largest", "margin", "reason"),
    [
        (MEAN, 20000, 1, "a sum up to 1.6e+05 inside"),
        (MEAN, 8188, 1, ""),  # the sum is 65504
        (MEAN, 8189, 1, "a sum up to 6.55e+04 inside"),
        (MEAN, 8188, 1.01, "a sum up to 6.55e+04 inside"),
        ("y = ReduceMean<axes = [0], keepdims = 1>(x)", 40000, 1, "a sum up to 8e+04 inside"),
        ("t = Transpose(x)  y = ReduceMax<axes = [1], keepdims = 1>(t)", 20000, 1, ""),
        (
            "u = ReduceMax<axes = [1], keepdims = 1>(x)"
            "  y = ReduceMean<axes = [1], keepdims = 1>(u)",
            65504, 1.01, "",
        ),
        ("y = ReduceL2<axes = [1], keepdims = 1>(x)", 100, 1, "squares up to 8e+04 inside"),
        ("y = ReduceL2<axes = [1], keepdims = 1>(x)", 20, 1, ""),
        ("y = LpNormalization<axis = 1>(x)", 256, 1, "squares up to 6.55e+04 inside"),
        ("y = LpNormalization<axis = 1>(x)", 250, 1, ""),
        ("y = LpNormalization<axis = 1>(x)", 250, 1.1, "squares up to 6.25e+04 inside"),
        ("y = LogSoftmax<axis = 1>(x)", 1, 1, ""),
        ("y = ReduceLogSum<axes = [1], keepdims = 1>(x)", 1, 1, ""),
        ("y = ReduceLogSum<axes = [1], keepdims = 1>(x)", 9000, 1, "e^11.2 inside"),
    ],
)  # fmt: skip
def test_a_node_is_beyond_by_what_it_computes_inside(
    nodes: str, largest: float, margin: float, reason: str
) -> None:
    _, inner = beyond(nodes, largest, margin=margin)
    assert [*inner.values()] == ([reason] if reason else [])
