"""Products whose operands go through float8, by scales that are given powers of two."""

from typing import Any

import numpy as np
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import Model, Node
from tiered.numerics.precision.few_bits.exponents import Exponents
from tiered.numerics.precision.few_bits.float8 import Float8Settings, quantize_to_float8
from tiered.rewriter import Skip, Unable

TWO = Exponents(1)
NUMBERS = ",".join(str(at % 5 - 2) for at in range(16))
TEXT = f"""(float[2,4] x, float[2,4] z) => (float[2,4] y) <float[4,4] w = {{{NUMBERS}}}> {{
    NODES }}"""


def converted(
    nodes: str, *, text: str = TEXT, opset: int = 21, **settings: Any
) -> tuple[Model, list[str], dict[str, str], list[Skip]]:
    """Return the model, findings, why nodes stay by their output, and reasons of no node."""
    model = parsed(text.replace("NODES", nodes), opset=opset)
    found, nodes_, others = list[str](), dict[str, str](), list[Skip]()

    def on_skip(node: Node | None, skip: Skip) -> None:
        if node is None:
            others.append(skip)
        else:
            nodes_[node.output.name] = str(skip)

    settings = {"exponents": TWO, "weight_exponents": TWO, "min_elements": 1, **settings}
    quantize_to_float8(model, Float8Settings(**settings), found.append, on_skip)
    model.check_view(types=True)
    return model, found, nodes_, others


def scale_of(node: Node) -> float:
    scale = node.inputs[1]
    assert scale is not None
    assert scale.const is not None
    return float(scale.const)


def test_an_operand_is_quantised_once_for_all_its_readers() -> None:
    model, found, nodes, _ = converted("a = MatMul(x, w)  b = MatMul(x, w)  y = Add(a, b)")
    (code,) = model.main.nodes_of("QuantizeLinear")
    assert code.inputs[0] is named(model, "x")
    assert code.attr("saturate") == 1
    assert scale_of(code) == 2
    assert made_by(model, "a").inputs == made_by(model, "b").inputs
    assert found[0] == "1 value quantised to float8e4m3fn"
    assert nodes == {}
    zero = code.inputs[2]
    assert zero is not None
    assert zero.name.startswith("x_zero_point")


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("MatMul(x, t)", 2),
        ("Gemm(x, t)", 2),
        ("Gemm(x, w, z)", 1),
        ("MatMul(x, w)", 1),
    ],
)
def test_what_is_multiplied_is_quantised(line: str, count: int) -> None:
    model, _, _, _ = converted(f"t = Transpose(q)  q = Concat<axis=0>(z, z)  y = {line}")
    assert len(model.main.nodes_of("QuantizeLinear")) == count


def test_a_table_stays() -> None:
    text = TEXT.replace("float[2,4] z", "int64[2] z")
    model, _, nodes, _ = converted("g = Gather(w, z)  y = Add(x, g)", text=text)
    assert ops(model) == ["Gather", "Add"]
    assert nodes == {"g": "Gather multiplies nothing"}


def test_images_are_quantised_and_biases_are_not() -> None:
    text = f"""(float[1,4,2,2] x, float[4] b) => (float[1,4,2,2] y)
        <float[4,4,1,1] w = {{{NUMBERS}}}> {{ y = NODES(x, w, b) }}"""
    for op_type in ("Conv", "ConvTranspose"):
        model, _, _, _ = converted(op_type, text=text)
        (code,) = model.main.nodes_of("QuantizeLinear")
        assert code.inputs[0] is named(model, "x")
        assert made_by(model, "y").inputs[2] is named(model, "b")


def test_other_operators_stay() -> None:
    model, found, nodes, others = converted("y = Add(x, z)")
    assert ops(model) == ["Add"]
    assert not [each for each in found if "quantised" in each]
    assert nodes == {}
    assert all(isinstance(each, Skip) for each in others)


def test_a_product_of_constants_stays() -> None:
    model, _, _, _ = converted("c = MatMul(w, w)  y = MatMul(x, c)")
    assert made_by(model, "c").inputs == (named(model, "w"),) * 2


@pytest.mark.parametrize(("opset", "is_able"), [(18, False), (19, True)])
def test_float8_is_of_opset_19(opset: int, is_able: bool) -> None:
    model, _, _, others = converted("y = MatMul(x, w)", opset=opset)
    if is_able:
        assert model.main.nodes_of("QuantizeLinear")
    else:
        (error,) = others
        assert isinstance(error, Unable)
        assert str(error) == "float8 needs opset 19, the model has 18"


def test_the_user_keeps_nodes() -> None:
    nodes = "[first] a = MatMul(x, w)  [second] b = MatMul(z, w)  y = Add(a, b)"
    _, _, kept, _ = converted(nodes, skip_nodes=("fir*",))
    assert kept["a"] == "the node is skipped"
    assert "b" not in kept
    _, _, kept, _ = converted(nodes, skip_op_types=("MatMul",))
    assert kept == dict.fromkeys("ab", "MatMul is skipped")
    _, found, _, _ = converted(nodes, skip_op_types=("Conv",))
    assert "no node has the operator Conv" in found


def test_what_is_quantised_already_stays() -> None:
    nodes = "a = MatMul(x, w)  y = Add(a, z)"
    model, _, _, _ = converted(nodes)
    before = ops(model)
    settings = Float8Settings(exponents=TWO, weight_exponents=TWO, min_elements=1)
    quantize_to_float8(model, settings, lambda text: None, lambda node, skip: None)
    assert ops(model) == before


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [("float16", ""), ("double", "the operand is neither float nor float16")],
)
def test_an_operand_is_of_float_or_float16(dtype: str, reason: str) -> None:
    text = f"""({dtype}[2,4] x, {dtype}[4,4] w) => ({dtype}[2,4] y) {{ y = NODES(x, w) }}"""
    model, _, nodes, _ = converted("MatMul", text=text)
    assert nodes.get("y", "") == reason
    codes = model.main.nodes_of("QuantizeLinear")
    assert len(codes) == (0 if reason else 2)
    for code in codes:
        scale = code.inputs[1]
        assert scale is not None
        assert scale.const is not None
        assert scale.const.dtype == np.float16


def test_a_mask_is_not_quantised() -> None:
    text = f"""(float[2,4] x, float[2,4] z) => (float[2,4] y)
        <float[4,4] w = {{{NUMBERS}}}, float[2,4] k = {{-1e9,0,0,0,0,0,0,0}}> {{
        m = Add(x, k)  s = Softmax(m)  p = MatMul(m, w)  y = Add(s, p) }}"""
    _, _, nodes, _ = converted("", text=text)
    assert nodes["p"] == "mask: an operand has masks"


def test_in_a_body_a_scale_is_given_or_not_known() -> None:
    text = f"""(float[2,4] x, bool c) => (float[2,4] y) <float[4,4] w = {{{NUMBERS}}}> {{
        y = If(c) <then_branch = t () => (float[2,4] p) {{ a = Neg(x)  p = MatMul(a, w) }},
                   else_branch = e () => (float[2,4] q) {{ q = Abs(x) }}> }}"""
    _, found, nodes, _ = converted("", text=text)
    assert found[0] == "1 value quantised to float8e4m3fn"
    assert nodes == {}
    _, _, nodes, _ = converted("", text=text, exponents=Exponents())
    assert nodes["p"] == "in a body, where ranges are not measured"


def test_readers_with_other_exponents_have_a_pair_each() -> None:
    nodes = "[first] a = MatMul(x, w)  [second] b = MatMul(x, w)  y = Add(a, b)"
    exponents = Exponents(1, (("first", -3),))
    model, found, _, _ = converted(nodes, exponents=exponents)
    assert sorted(map(scale_of, model.main.nodes_of("QuantizeLinear"))) == [0.125, 2]
    assert found[0] == "1 value quantised to float8e4m3fn"


@pytest.mark.parametrize(("largest", "scale"), [(896.0, 2.0), (0.0, 1.0), (np.nan, 1.0)])
def test_a_measured_scale_fits_the_largest_number(largest: float, scale: float) -> None:
    """A scale of 0 would divide by it."""
    feeds = {"x": np.full((2, 4), -largest, np.float32), "z": np.zeros((2, 4), np.float32)}
    model, _, _, _ = converted("y = MatMul(x, w)", exponents=Exponents(), inputs=[feeds])
    (code,) = model.main.nodes_of("QuantizeLinear")
    assert scale_of(code) == scale


def test_an_input_that_callers_may_feed_is_named_before_ir_4() -> None:
    text = f"""<ir_version: 3, opset_import: ["" : 19]> g
        (float[2,4] x, float[4,4] w = {{{NUMBERS}}}) => (float[2,4] y) {{ y = MatMul(x, w) }}"""
    _, _, nodes, _ = converted("", text=text)
    assert nodes["y"].startswith("the weight is an input, as all are before IR 4")
    _, _, nodes, _ = converted("", text=text.replace("ir_version: 3", "ir_version: 4"))
    assert nodes == {}
