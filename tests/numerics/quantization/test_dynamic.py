"""Products of data and constant weights in integers, each activation quantised as it is run."""

from typing import Any

import numpy as np
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import Model, Node
from tiered.numerics.quantization import dynamic
from tiered.numerics.quantization.deployed import SATURATION
from tiered.numerics.quantization.dynamic import _ProductRewriter, quantize_dynamically
from tiered.numerics.quantization.scheme import Scheme
from tiered.rewriter import Skip
from tiered.runtime import Session

pytestmark = pytest.mark.usefixtures("exact_products")


def numbers(count: int) -> str:
    return "{" + ",".join(str((at * 7 % 11 - 5) / 4) for at in range(count)) + "}"


def converted(
    text: str, opset: int = 21, **options: Any
) -> tuple[Model, list[str], dict[str, str], list[str]]:
    """Return the model, findings, why products stay by their output, and reasons of no node."""
    model = parsed(text, opset=opset)
    found, nodes, others = list[str](), dict[str, str](), list[str]()

    def on_skip(node: Node | None, skip: Skip) -> None:
        if node is None:
            others.append(str(skip))
        else:
            nodes[node.output.name] = str(skip)

    quantize_dynamically(model, found.append, on_skip, **options)
    model.check_view(types=True)
    return model, found, nodes, others


def assert_close(text: str, inputs: dict[str, tuple[int, ...]], **options: Any) -> Model:
    """Assert that a product in integers is about that of floats."""
    model, _, nodes, _ = converted(text, **options)
    assert nodes == {}
    draw = np.random.default_rng(0)
    feeds = {name: draw.uniform(-1, 1, shape).astype(np.float32) for name, shape in inputs.items()}
    opset = options.get("opset", 21)
    expected = Session(parsed(text, opset=opset).to_proto()).run(feeds)["y"]
    found = Session(model.to_proto()).run(feeds)["y"]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())
    return model


W34 = f"float[3,4] w = {numbers(12)}"


@pytest.mark.parametrize(
    ("constants", "line"),
    [
        (W34, "MatMul(x, w)"),
        (W34, "Gemm(x, w)"),
        (f"float[4,3] w = {numbers(12)}", "Gemm<transB=1>(x, w)"),
        (W34, "Gemm<alpha=0.5>(x, w)"),
        (f"{W34}, float[4] b = {{1,2,3,4}}", "Gemm(x, w, b)"),
        (f"{W34}, float[4] b = {{1,2,3,4}}", "Gemm<beta=2.0>(x, w, b)"),
        (f"{W34}, float[4] b = {{1,2,3,4}}", "Gemm<beta=0.0, alpha=3.0>(x, w, b)"),
        (f"{W34}, float[4] b = {{1,2,3,4}}", "Gemm<beta=2.0>(x, w, n)"),
    ],
)
def test_a_product_of_integers_is_that_of_floats(constants: str, line: str) -> None:
    text = f"""(float[2,3] x, float[4] c) => (float[2,4] y) <{constants}> {{
        n = Neg(c)  y = {line} }}"""
    model = assert_close(text, {"x": (2, 3), "c": (4,)})
    assert "MatMulInteger" in ops(model)
    assert not {"MatMul", "Gemm"} & {*ops(model)}


def test_several_matrices_have_scales_of_their_columns() -> None:
    text = f"""(float[2,5,3] x) => (float[2,5,4] y) <float[2,3,4] w = {numbers(24)}> {{
        y = MatMul(x, w) }}"""
    model = assert_close(text, {"x": (2, 5, 3)})
    (product,) = model.main.nodes_of("MatMulInteger")
    codes = product.inputs[1]
    assert codes is not None
    assert codes.shape == (2, 3, 4)


@pytest.mark.parametrize("line", ["MatMul(w, x)", "Gemm(w, x)", "Gemm<transA=1>(v, x)"])
def test_a_weight_on_the_left_has_a_scale_for_each_row(line: str) -> None:
    text = f"""(float[3,2] x) => (float[4,2] y) <float[4,3] w = {numbers(12)},
        float[3,4] v = {numbers(12)}> {{ y = {line} }}"""
    model = assert_close(text, {"x": (3, 2)})
    (product,) = model.main.nodes_of("MatMulInteger")
    assert product.inputs[2] is None
    assert product.inputs[3] is not None


@pytest.mark.parametrize("bias", ["", ", b", ", n"])
def test_a_convolution_is_quantised_on_request(bias: str) -> None:
    text = f"""(float[1,2,4,4] x, float[3] c) => (float[1,3,3,3] y)
        <float[3,2,2,2] w = {numbers(24)}, float[3] b = {{1,2,3}}> {{
        n = Neg(c)  y = Conv(x, w{bias}) }}"""
    model = assert_close(text, {"x": (1, 2, 4, 4), "c": (3,)}, convolutions=True)
    assert "ConvInteger" in ops(model)
    _, _, nodes, _ = converted(text)
    assert nodes == {"y": "a Conv is quantised on request only"}


def test_an_activation_and_a_weight_are_quantised_once() -> None:
    text = f"""(float[2,3] x) => (float[2,4] y, float[2,4] z) <{W34}> {{
        y = MatMul(x, w)  z = Gemm(x, w) }}"""
    model, found, _, _ = converted(text)
    assert len(model.main.nodes_of("DynamicQuantizeLinear")) == 1
    first, second = model.main.nodes_of("MatMulInteger")
    assert first.inputs == second.inputs
    assert found == ["2 of 2 products are integer; 1 activation"]
    assert made_by(model, "y").op_type == "Mul"


def test_the_result_keeps_its_name_and_the_activation_gets_one() -> None:
    model, _, _, _ = converted(f"(float[2,3] x) => (float[2,4] y) <{W34}> {{ y = MatMul(x, w) }}")
    (node,) = model.main.nodes_of("DynamicQuantizeLinear")
    assert node.name == "x_DynamicQuantizeLinear"
    assert node.inputs[0] is named(model, "x")
    assert named(model, "y").is_graph_output


# --- what stays -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = MatMul(x, w) }",
         "the second operand is not a constant weight"),
        (f"(float[2,3] x, float[3,4] w) => (float[2,4] y) <{W34}> {{ y = MatMul(x, w) }}",
         "the weight is an input, which callers may feed: `tiered optimize --require "
         "remove_initializer_from_input` makes a constant of it"),
        ("(double[2,3] x) => (double[2,4] y) <double[3,4] w = {1,2,3,4,5,6,7,8,9,8,7,6}> "
         "{ y = MatMul(x, w) }", "operands are of double, not of float"),
        (f"(float[2,3] x) => (float[2,4] y) <{W34}> {{ a = own.Any(x)  y = MatMul(a, w) }}",
         "operands are of unknown type, not of float"),
        ("(float[2,3] x, float[2] z) => (float[2,4] y) { a = own.Any(z)  y = MatMul(x, a) }",
         "operands are of unknown type, not of float"),
        (f"(float[2,4,2] x) => (float[A,B,C] y) <float[2,3,4] w = {numbers(24)}> "
         "{ y = MatMul(w, x) }", "one of the operands is not known to be a matrix"),
        (f"(float[2,3] x) => (float[2] y) <float[3] w = {numbers(3)}> {{ y = MatMul(x, w) }}",
         "the weight is a vector"),
        (f"(float[3,2] x) => (float[2,4] y) <{W34}> {{ y = Gemm<transA=1>(x, w) }}",
         "data is transposed"),
        (f"(float[2,4] x) => (float[3,2] y) <{W34}> {{ y = Gemm<transB=1>(w, x) }}",
         "data is transposed"),
        (f"(float[0,3] x) => (float[0,4] y) <{W34}> {{ y = MatMul(x, w) }}",
         "an empty operand"),
        (f"(float[4,0] x) => (float[3,0] y) <{W34}> {{ y = MatMul(w, x) }}",
         "an empty operand"),
        (f"(float[3] x) => (float[2,4] y) <float[2,3,4] w = {numbers(24)}> {{ y = MatMul(x, w) }}",
         "data of several matrices is not known to have two axes"),
        (f"(float[4] x) => (float[3] y) <{W34}> {{ y = MatMul(w, x) }}",
         "one of the operands is not known to be a matrix"),
        ("(float[4,2] x) => (float[0,2] y) <float[0,4] w = {}> { y = MatMul(w, x) }",
         "the weight is empty"),
        ("(float[2,4] x) => (float[2,0] y) <float[4,0] w = {}> { y = MatMul(x, w) }",
         "the weight is empty"),
        (f"(float[] x) => (float[] y) <{W34}> {{ y = MatMul(w, x) }}",
         "one of the operands is not known to be a matrix"),
        (f"(float[] x) => (float[] y) <float[2,3,4] w = {numbers(24)}> {{ y = MatMul(x, w) }}",
         "data of several matrices is not known to have two axes"),
        (f"(float[2] x) => (float[3,3] y) <{W34}, float[4,3] v = {numbers(12)}> "
         "{ y = MatMul(w, v) }", "no operand is data"),
        (f"(float[1,2,4,4] x) => (float[1,3,5,5] y) <float[2,3,2,2] w = {numbers(24)}> "
         "{ y = ConvTranspose(x, w) }", "there is no integer ConvTranspose"),
        (f"(uint8[2,3] q) => (float[2,4] y) <{W34}, float s = {{1}}> "
         "{ x = DequantizeLinear(q, s)  y = MatMul(x, w) }", "data is quantised already"),
        (f"(uint8[4,2] q) => (float[3,2] y) <{W34}, float s = {{1}}> "
         "{ x = DequantizeLinear(q, s)  y = MatMul(w, x) }", "data is quantised already"),
    ],
)  # fmt: skip
def test_a_product_without_an_integer_form_stays_float(text: str, reason: str) -> None:
    _, _, nodes, _ = converted(text)
    assert nodes == {"y": reason}


@pytest.mark.parametrize(
    ("x", "weight"),
    [
        ("float[] x", W34),
        ("float[3] x", W34),
        ("float[2,3] x", f"float[2,3,4] w = {numbers(24)}"),
        ("float[2,1,3] x", f"float[2,3,4] w = {numbers(24)}"),
    ],
)
def test_data_of_another_rank_has_an_integer_form(x: str, weight: str) -> None:
    model, _, nodes, _ = converted(f"({x}) => (float[] y) <{weight}> {{ y = MatMul(x, w) }}")
    assert nodes == {}
    assert "MatMulInteger" in ops(model)


def test_products_of_other_dtypes_stay() -> None:
    text = "(double[2,3] x, double[3,4] w) => (double[2,4] y) { y = MatMul(x, w) }"
    _, _, nodes, _ = converted(text)
    assert "double" in nodes["y"]


@pytest.mark.parametrize(("opset", "is_able"), [(10, False), (11, True)])
def test_dynamic_quantisation_is_of_opset_11(opset: int, is_able: bool) -> None:
    text = f"(float[2,3] x) => (float[2,4] y) <{W34}> {{ y = MatMul(x, w) }}"
    _, found, nodes, _ = converted(text, opset)
    reason = "DynamicQuantizeLinear needs opset 11, the model has 10"
    assert nodes == ({} if is_able else {"y": reason})
    assert bool(found) == is_able


def test_the_user_keeps_nodes() -> None:
    text = f"""(float[2,3] x) => (float[2,4] y, float[2,4] z) <{W34}> {{
        [first] y = MatMul(x, w)  z = Gemm(x, w) }}"""
    _, found, nodes, _ = converted(text, skip_nodes=("fir*",))
    assert nodes == {"y": "the node is skipped"}
    assert found[0].startswith("1 of 2 products are integer")
    _, found, nodes, _ = converted(text, skip_op_types=("Gemm", "Conv"))
    assert nodes == {"z": "the node is skipped"}
    assert found[0] == "no node has the operator Conv"


def test_masks_and_indices_are_not_quantised() -> None:
    text = f"""(float[2,3] x) => (float[2,4] y) <{W34}, float[3] k = {{-1e9,0,0}}> {{
        m = Add(x, k)  s = Softmax(m)  p = MatMul(m, w)  q = MatMul(s, w)  y = Add(p, q) }}"""
    _, _, nodes, _ = converted(text)
    assert nodes == {"p": "mask: an operand has masks"}


def test_a_model_without_products_has_nothing_to_quantise() -> None:
    model, found, nodes, others = converted("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert (ops(model), found, nodes) == (["Neg"], [], {})
    assert len(others) == 1


def test_recurrent_layers_have_no_dynamic_form() -> None:
    text = f"""(float[3,1,2] x) => (float[3,1,1,2] y) <float[1,2,2] w = {numbers(4)},
        float[1,2,2] r = {numbers(4)}> {{ y = RNN<hidden_size=2>(x, w, r) }}"""
    _, _, nodes, _ = converted(text)
    assert nodes == {"y": "there is no dynamic integer RNN"}


def test_weights_of_7_bits_have_smaller_codes() -> None:
    text = f"(float[2,3] x) => (float[2,4] y) <{W34}> {{ y = MatMul(x, w) }}"
    for reduce_range, largest in ((True, 63), (False, 127)):
        model, _, _, _ = converted(text, reduce_range=reduce_range)
        (product,) = model.main.nodes_of("MatMulInteger")
        codes = product.inputs[1]
        assert codes is not None
        assert codes.const is not None
        assert int(np.abs(codes.const.astype(np.int64)).max()) in (largest, largest + 1)


# --- what is made ---------------------------------------------------------------------------------


def test_a_product_becomes_few_operators_with_few_scales() -> None:
    integers, scaled = ["DynamicQuantizeLinear", "MatMulInteger", "Cast"], ["Mul", "Mul"]
    left = "float[4,3] l = {1,2,3,4,5,6,7,8,9,8,7,6}, float[3] k = {-1e9,0,0}"
    batch = f"float[2,3,4] t = {numbers(24)}"
    for line, weight, made, shape in (
        ("MatMul(x, w)", "w", [], (4,)),
        ("MatMul(x, t)", "t", [], (2, 1, 4)),
        ("Gemm(x, w, b)", "w", ["Add"], (4,)),
        ("Gemm<beta=0.0>(x, w, b)", "w", [], (4,)),
        ("Gemm<beta=2.0>(x, w, b)", "w", ["Add"], (4,)),
        ("Gemm<beta=2.0>(x, w, c)", "w", ["Mul", "Add"], (4,)),
        ("Gemm(x, w, c)", "w", ["Add"], (4,)),
        ("MatMul(l, x)", "l", [], (4, 1)),
        ("Conv(i, v, d)", "v", ["Add"], (3, 1, 1)),
        ("Conv(i, v, e)", "v", ["Reshape", "Add"], (3, 1, 1)),
    ):
        model, _, nodes, _ = converted(
            f"""(float[3,3] x, float[4] c, float[1,2,3,4] i, float[3] e) => (float[A] y)
            <{W34}, {left}, {batch}, float[4] b = {{1,2,3,4}}, float[3] d = {{1,2,3}},
            float[3,2,1,1] v = {numbers(6)}> {{ y = {line} }}""",
            convolutions=True,
        )
        expected = [*integers, *scaled, *made]
        if "Conv" in line:
            expected[1] = "ConvInteger"
        assert (sorted(ops(model)), nodes) == (sorted(expected), {}), line
        (quantize,) = model.main.nodes_of("DynamicQuantizeLinear")
        steps = named(model, f"{weight}_scale")
        assert steps.shape == shape, line
        # A factor of the data is multiplied last where the weight is on the left.
        scale = quantize.outputs[1]
        assert scale is not None
        other = [value for value in scale.readers[0].inputs if value is not scale]
        assert (other == [steps]) == ("(l" not in line), line


def test_a_bias_with_large_numbers_is_no_mask() -> None:
    text = f"(float[2,3] x) => (float[2,4] y) <{W34}, float[4] k = {{-1e9,0,0,0}}> "
    _, found, nodes, _ = converted(text + "{ y = Gemm(x, w, k) }")
    assert (found, nodes) == (["1 of 1 products are integer; 1 activation"], {})


def test_a_square_weight_that_is_read_both_ways_is_stored_twice() -> None:
    text = f"""(float[2,3] x) => (float[2,3] y, float[2,3] z) <float[3,3] w = {numbers(9)}> {{
        y = MatMul(x, w)  z = Gemm<transB=1>(x, w) }}"""
    model, _, _, _ = converted(text)
    first, second = (node.given(1).const for node in model.main.nodes_of("MatMulInteger"))
    assert first is not None
    assert second is not None
    assert not np.array_equal(first, second)
    scales = [value.const for value in model.main.values.values() if "w_scale" in value.name]
    assert len(scales) == 2


def test_neighbours_in_a_weight_may_be_limited() -> None:
    model = parsed("(float[2,4] x) => (float[2,2] y) <float[4,2] w = {9,9,9,8,8,9,9,9}> "
                   "{ y = MatMul(x, w) }")  # fmt: skip
    for keeps_pairs, largest in ((True, 128), (False, 254)):
        rewriter = _ProductRewriter(Scheme(keeps_pairs=keeps_pairs))
        _, found = rewriter._matrices(named(model, "w"), is_transposed=False)
        codes = found.codes.astype(int)
        assert np.abs(codes[0::2] + codes[1::2]).max() <= largest
        assert (np.abs(codes[0::2] + codes[1::2]).max() <= 128) == keeps_pairs


def test_a_role_or_a_budget_keeps_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""(float[2,3] x) => (float[2,4] y, float[2,4] z) <{W34}> {{
        y = MatMul(x, w)  z = Gemm(x, w) }}"""

    def convert_within(model: Model, convert: Any, _: Any, *them: Any, **__: Any) -> None:
        convert({model.main.nodes[-1]: "returned for a budget"}, *them)

    monkeypatch.setattr(dynamic, "convert_within", convert_within)
    monkeypatch.setattr(dynamic, "few_bit_roles", lambda model: {model.main.nodes[0]: "a role"})
    _, found, nodes, _ = converted(text)
    assert (found, nodes) == ([], {"y": "a role", "z": "returned for a budget"})


def test_other_floats_are_widened_unless_the_model_is_quantised() -> None:
    body = """m = Cast<to=10>(x)  p = MatMul(m, w)  y = Cast<to=1>(p)"""
    text = f"""(float[2,3] x) => (float[2,2] y, float[2,3] d)
        <float16[3,2] w = {{1,2,3,4,5,6}}, float s = {{1}}> {{ {body}  d = Neg(x) }}"""
    _, found, nodes, _ = converted(text)
    assert nodes == {}
    assert found[0].startswith("2 nodes compute in float instead of float16")
    quantised = text.replace("d = Neg(x)", "q = QuantizeLinear(x, s)  d = DequantizeLinear(q, s)")
    _, found, nodes, _ = converted(quantised)
    assert nodes == {"p": "operands are of float16, not of float"}
    assert found == []


def test_saturation_is_said_of_products_with_the_weight_on_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dynamic, "saturates", lambda _, names: bool([*names]))
    left = f"float[4,3] l = {numbers(12)}, float[3,2,1,1] v = {numbers(6)}"
    for line, is_said in (("MatMul(x, w)", True), ("MatMul(l, x)", False), ("Conv(i, v)", False)):
        text = f"(float[3,3] x, float[1,2,3,3] i) => (float[A] y) <{W34}, {left}> {{ y = {line} }}"
        _, found, _, _ = converted(text, convolutions=True, reduce_range=False)
        assert (SATURATION in found) == is_said, line


def test_a_convolution_of_images_of_unknown_rank_has_an_integer_form() -> None:
    text = (
        f"(float[] x) => (float[A,B,C,D] y) <float[3,2,1,1] w = {numbers(6)}> {{ y = Conv(x, w) }}"
    )
    model, _, nodes, _ = converted(text, convolutions=True)
    assert ("ConvInteger" in ops(model), nodes) == (True, {})
