from random import Random

import numpy as np
import onnx
import pytest

from tiered import Model, PassContext, get_pass
from tiered.runtime import Numerics, run
from tiered.runtime.compare.outputs import compare
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_transpose_around_elementwise"
LAST, FIRST = "Transpose<perm=[0,2,3,1]>", "Transpose<perm=[0,3,1,2]>"
IMAGE = "float[2,3,4,5]"


def test_what_is_transposed_there_and_back_is_computed_as_it_is() -> None:
    assert_rewrites(
        PASS,
        f"({IMAGE} x) => ({IMAGE} y) <float k = {{2}}>"
        f" {{ a = {LAST}(x) b = Add(a, k) c = Relu(b) y = {FIRST}(c) }}",
        f"({IMAGE} x) => ({IMAGE} y) <float k = {{2}}> {{ b = Add(x, k) y = Relu(b) }}",
    )


def test_two_that_lead_in_are_one_that_leads_out() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3,4] x, float[N,3,4] z) => (float[4,3,N] y)"
        " { a = Transpose(x) b = Transpose(z) y = Mul(a, b) }",
        "(float[N,3,4] x, float[N,3,4] z) => (float[4,3,N] y)"
        " { c = Mul(x, z) y = Transpose<perm=[2,1,0]>(c) }",
    )


def test_what_is_read_besides_is_transposed_for_those_who_read_it() -> None:
    """The residuals of a network whose convolutions and norms want different axes."""
    weights = "float[3,3,1,1] w = {1,2,3,4,5,6,7,8,9}"
    assert_rewrites(
        PASS,
        f"({IMAGE} x, float[2,4,5,3] p, float[2,4,5,3] q) => ({IMAGE} y, float[2,4,5,3] z)"
        f" <{weights}> {{ a = {FIRST}(p) b = Add(x, a) y = Conv(b, w) c = {FIRST}(q) d = Add(b, c)"
        f" z = {LAST}(d) }}",
        f"({IMAGE} x, float[2,4,5,3] p, float[2,4,5,3] q) => ({IMAGE} y, float[2,4,5,3] z)"
        f" <{weights}> {{ h = {LAST}(x) a = Add(h, p) b = {FIRST}(a) y = Conv(b, w) z = Add(a, q) }}",
    )


def test_a_constant_of_its_own_is_transposed_at_once() -> None:
    assert_rewrites(
        PASS,
        f"({IMAGE} x) => ({IMAGE} y) <float[3] k = {{1,2,3}}>"
        f" {{ a = {LAST}(x) b = Mul(a, k) y = {FIRST}(b) }}",
        f"({IMAGE} x) => ({IMAGE} y) <float[1,3,1,1] k = {{1,2,3}}> {{ y = Mul(x, k) }}",
    )


def test_a_constant_that_several_operators_of_the_region_read_is_transposed_once() -> None:
    """The scale and the offset of a BatchNormalization that was not trained are one constant."""
    assert_rewrites(
        PASS,
        f"({IMAGE} x) => ({IMAGE} y) <float[3] k = {{1,2,3}}>"
        f" {{ a = {LAST}(x) b = Mul(a, k) c = Add(b, k) y = {FIRST}(c) }}",
        f"({IMAGE} x) => ({IMAGE} y) <float[1,3,1,1] k = {{1,2,3}}>"
        " { b = Mul(x, k) y = Add(b, k) }",
    )


def test_an_output_inside_keeps_its_name() -> None:
    assert_rewrites(
        PASS,
        f"({IMAGE} x, {IMAGE} w) => (float[2,4,5,3] y, {IMAGE} z)"
        f" {{ a = {LAST}(x) b = {LAST}(w) y = Add(a, b) c = Neg(y) z = {FIRST}(c) }}",
        f"({IMAGE} x, {IMAGE} w) => (float[2,4,5,3] y, {IMAGE} z)"
        f" {{ c = Add(x, w) y = {LAST}(c) z = Neg(c) }}",
    )


def test_what_a_body_reads_is_transposed_for_it() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x, float[2,3] w, bool c) => (float[3,2] y, float[2,3] z)"
        " { a = Transpose<perm=[1,0]>(x) b = Transpose<perm=[1,0]>(w) d = Add(a, b)"
        " y = If(c) <then_branch = t () => (float[3,2] p) { p = Exp(d) },"
        " else_branch = e () => (float[3,2] q) { q = Log(d) }> z = Transpose<perm=[1,0]>(d) }",
        "(float[2,3] x, float[2,3] w, bool c) => (float[3,2] y, float[2,3] z)"
        " { z = Add(x, w) d = Transpose<perm=[1,0]>(z)"
        " y = If(c) <then_branch = t () => (float[3,2] p) { p = Exp(d) },"
        " else_branch = e () => (float[3,2] q) { q = Log(d) }> }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            f"({IMAGE} x) => (float[2,4,5,3] y) {{ a = {LAST}(x) y = Relu(a) }}",
            "it would not remove a Transpose",
        ),
        (
            f"({IMAGE} x, float[2,4,5,3] z, float[2,4,5,3] v) => ({IMAGE} y)"
            f" {{ a = {LAST}(x) b = Add(a, z) c = Add(b, v) y = {FIRST}(c) }}",
            "it would not remove a Transpose",
        ),
        (
            f"({IMAGE} x, float[5,3] z) => ({IMAGE} y)"
            f" {{ a = {LAST}(x) b = Add(a, z) y = {FIRST}(b) }}",
            "an operand has another shape",
        ),
        (
            f"({IMAGE} x) => ({IMAGE} y, float[3] s) <float[3] k = {{1,2,3}}>"
            f" {{ a = {LAST}(x) b = Mul(a, k) y = {FIRST}(b) s = Exp(k) }}",
            "a constant has other consumers",
        ),
        (
            "(float[2,3] x) => (float[2,3] y, float[3,2] s) <float[3,2] k = {1,2,3,4,5,6}>"
            " { a = Transpose(x) b = Mul(a, k) y = Transpose(b) s = Exp(k) }",
            "a constant has other consumers",
        ),
        (
            "(float[3,3] x) => (float[3,3] y) { a = Transpose(x) b = Neg(a) c = Transpose(b)"
            " d = Add(b, c) y = Transpose(d) }",
            "a Transpose connects it to itself",
        ),
        (f"({IMAGE} x) => ({IMAGE} y) {{ a = {LAST}(x) b = Exp(a) y = {FIRST}(b) }}", None),
        # Which of two zeros it is, onnxruntime decides by where in the tensor they stand.
        (
            f"({IMAGE} x) => ({IMAGE} y) <float k = {{0}}>"
            f" {{ a = {LAST}(x) b = Max(a, k) c = Min(b, k) y = {FIRST}(c) }}",
            None,
        ),
        ("(float[?,?] x) => (float[?,?] y) { y = Transpose(x) }", None),
    ],
)
def test_what_stays(text: str, because: str | None) -> None:
    assert_unchanged(PASS, text, because=because)


def test_what_an_annotation_names_is_computed_as_it_is() -> None:
    model = parse(f"({IMAGE} x) => ({IMAGE} y) {{ a = {LAST}(x) b = Relu(a) y = {FIRST}(b) }}")
    annotation = model.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    assert_unchanged(PASS, model)


def test_before_operands_broadcast_by_themselves_nothing_is_done() -> None:
    assert_unchanged(
        PASS, f"({IMAGE} x) => ({IMAGE} y) {{ a = {LAST}(x) b = Relu(a) y = {FIRST}(b) }}", opset=6
    )


@pytest.mark.parametrize("seed", range(40))
def test_networks_of_all_forms_compute_the_same_with_no_more_transposes(seed: int) -> None:
    """Each result is transposed or not, read once or often, and given away or not."""
    random = Random(seed)
    shapes = ("float[2,3]", "float[3,2]")
    values = (["x"], ["z"])
    lines: list[str] = []
    for at in range(random.randint(4, 16)):
        turned = random.randrange(2)
        one, two = random.choice(values[turned]), random.choice(values[turned])
        kind = random.choice(("Add(a, b)", "Mul(a, b)", "Relu(a)", "Exp(a)", "T(a)", "T(a)"))
        if kind == "T(a)":
            kind, turned = "Transpose<perm=[1,0]>(a)", 1 - turned
        lines.append(f"v{at} = {kind.replace('b)', f'{two})').replace('(a', f'({one}')}")
        values[turned].append(f"v{at}")
    kept = [
        f"{shape} {name}"
        for shape, names in zip(shapes, values, strict=True)
        for name in sorted({*random.sample(names[1:], len(names) // 4), *names[1:][-1:]})
    ]
    model = parse(f"({shapes[0]} x, {shapes[1]} z) => ({', '.join(kept)}) {{ {' '.join(lines)} }}")
    made = Model.from_proto(model)
    get_pass(PASS).apply(made, PassContext.isolated())
    made.check_view()
    result = made.to_proto()
    onnx.checker.check_model(result, full_check=True)
    x = np.array([[1, -2, 3], [0.5, -0.0, np.nan]], np.float32)
    feeds = {"x": x, "z": np.array([[np.inf, -1], [2, 0], [7, -0.25]], np.float32)}
    assert compare(run(model, feeds), run(result, feeds), Numerics.EXACT).ok
    counts = [sum(n.op_type == "Transpose" for n in m.graph.node) for m in (model, result)]
    assert counts[1] <= counts[0]
