"""Which operators commute with a scale, which absorb it, and what their constants become."""

import warnings

import numpy as np
import pytest

from tests.constants import spoken_of
from tests.small import made_by, named, parsed
from tiered.graph import Model
from tiered.rewriter.idioms.scale import (
    Scale,
    absorb_after,
    broadcasts_along,
    loses_digits,
    pass_scale,
    push_scale_forward,
    refusal,
    scaled_constants,
    scaling_of,
    write_rescaled,
)
from tiered.rewriter.skip import Skip

ONE = Scale(np.array([2.0]))
CHANNELS = Scale(np.array([2.0, 4.0]), 1)
NEGATIVE = Scale(np.array([-2.0, 4.0]), 1)


def of(nodes: str, *stock: str, inputs: str = "float[2,2,4,4] x", opset: int = 21) -> Model:
    """Return a model whose output is y."""
    text = f"({inputs}) => (float[] y) {spoken_of(nodes, *stock)} {{ {nodes} }}"
    return parsed(text, opset=opset)


def reason(skip: object) -> str:
    assert isinstance(skip, Skip)
    return str(skip)


def numbers(found: object) -> list[object]:
    """Return the new constants in order, as nested lists."""
    assert isinstance(found, dict), found
    return [array.tolist() for array in found.values()]


def test_a_scale_is_positive_if_all_of_its_factors_are() -> None:
    assert CHANNELS.is_positive
    assert not NEGATIVE.is_positive
    assert not Scale(np.array([0.0])).is_positive


def test_factors_are_spread_along_their_axis_or_another() -> None:
    assert CHANNELS.spread(3).shape == (1, 2, 1)
    assert CHANNELS.spread(2, 0).shape == (2, 1)
    assert ONE.spread(3).shape == (1, 1, 1)
    assert ONE.spread(0).shape == ()


# --- what is a scale ------------------------------------------------------------------------------

STOCK = (
    *("float s = {2}", "float[2,1,1] v = {2,4}", "float z = {0}", "float n = {inf}"),
    *("float[2,1,1] half = {0.5,0.25}", "int64 i = {2}"),
)


@pytest.mark.parametrize(
    ("node", "factors", "axis"),
    [
        ("Mul(x, s)", [2], None),
        ("Mul(s, x)", [2], None),
        ("Mul(x, v)", [2, 4], 1),
        ("Div(x, half)", [2, 4], 1),
    ],
)
def test_a_product_or_quotient_with_a_constant_scales_the_other_operand(
    node: str, factors: list[float], axis: int | None
) -> None:
    model = of(f"y = {node}", *STOCK)
    found = scaling_of(made_by(model, "y"))
    assert isinstance(found, tuple)
    x, scale = found
    assert x is named(model, "x")
    assert (scale.factors.tolist(), scale.axis) == (factors, axis)


@pytest.mark.parametrize("node", ["Add(x, s)", "Div(s, x)", "Mul(s, s)", "Div(s, s)", "Mul(x, x)"])
def test_other_nodes_scale_nothing(node: str) -> None:
    assert scaling_of(made_by(of(f"y = {node}", *STOCK), "y")) is None


def test_a_product_of_another_domain_scales_nothing() -> None:
    model = of("y = com.microsoft.Mul(x, s)", *STOCK)
    assert scaling_of(made_by(model, "y")) is None


@pytest.mark.parametrize(
    ("node", "because"),
    [
        ("Mul(x, z)", "a factor is 0 or not finite"),
        ("Div(x, z)", "a factor is 0 or not finite"),
        ("Mul(x, n)", "a factor is 0 or not finite"),
        ("Div(x, n)", "a factor is 0 or not finite"),
        ("Mul(x, i)", "the dtype is not a float"),
    ],
)
def test_a_factor_is_a_finite_float_and_not_0(node: str, because: str) -> None:
    assert reason(scaling_of(made_by(of(f"y = {node}", *STOCK), "y"))) == because


def test_factors_vary_along_one_axis() -> None:
    grid = "float[2,1,4] g = {1,2,3,4,5,6,7,8}"
    found = scaling_of(made_by(of("y = Mul(x, g)", grid), "y"))
    assert reason(found) == "the constant does not vary along one axis alone"


def test_the_inverse_of_a_divisor_is_finite() -> None:
    model = of("y = Div(x, t)", "double t = {1e-320}", inputs="double[2] x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scaling_of(made_by(model, "y"))
    assert reason(found) == "a factor is 0 or not finite"


def test_operands_that_an_attribute_aligns_are_refused() -> None:
    model = of("y = Mul<broadcast=1, axis=1>(x, s)", "float[2] s = {1,2}", opset=6)
    because = "before opset 7, an attribute says along which axis operands broadcast"
    assert reason(scaling_of(made_by(model, "y"))) == because
    assert broadcasts_along(made_by(of("y = Concat<axis=1>(x, x)"), "y")) is None
    assert broadcasts_along(made_by(of("y = Add(x, x)"), "y")) is None


# --- what commutes with a scale -------------------------------------------------------------------


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(
    "node",
    [
        "Relu(x)", "LeakyRelu(x)", "MaxPool<kernel_shape=[2,2]>(x)", "GlobalMaxPool(x)",
        "AveragePool<kernel_shape=[2,2]>(x)", "GlobalAveragePool(x)", "Identity(x)", "Neg(x)",
    ],
)  # fmt: skip
def test_a_scale_of_channels_passes(node: str, back: bool) -> None:
    assert pass_scale(made_by(of(f"y = {node}"), "y"), CHANNELS, back=back) is CHANNELS


@pytest.mark.parametrize("node", ["Relu(x)", "LeakyRelu(x)", "GlobalMaxPool(x)"])
def test_negative_factors_do_not_pass_where_an_order_decides(node: str) -> None:
    because = f"{node.partition('(')[0]} does not commute with negative factors"
    assert reason(pass_scale(made_by(of(f"y = {node}"), "y"), NEGATIVE, back=True)) == because
    for linear in ("Neg(x)", "GlobalAveragePool(x)", "Identity(x)"):
        node_of = made_by(of(f"y = {linear}"), "y")
        assert pass_scale(node_of, NEGATIVE, back=True) is NEGATIVE


@pytest.mark.parametrize(
    ("node", "scale", "because"),
    [
        ("Sigmoid(x)", ONE, "Sigmoid does not commute with a scale"),
        ("Pad(x, p)", ONE, "Pad does not commute with a scale"),
        ("com.microsoft.Relu(x)", ONE, "Relu does not commute with a scale"),
        ("Flatten(x)", CHANNELS, "Flatten moves elements across the scaled axis"),
        ("GlobalMaxPool(x)", Scale(CHANNELS.factors, 0), "combines elements across the scaled"),
        ("GlobalAveragePool(x)", Scale(CHANNELS.factors, 2), "combines elements across the scaled"),
    ],
)
def test_what_does_not_pass_says_why(node: str, scale: Scale, because: str) -> None:
    model = of(f"y = {node}", "int64[8] p = {0,0,0,0,1,1,1,1}")
    assert because in reason(pass_scale(made_by(model, "y"), scale, back=False))


def test_a_split_and_a_pool_with_indices_have_several_results() -> None:
    for nodes in ("y, b = Split<num_outputs=2>(x)", "y, b = MaxPool<kernel_shape=[2,2]>(x)"):
        node = made_by(of(nodes), "y")
        because = f"{node.op_type} does not commute with a scale"
        assert reason(pass_scale(node, ONE, back=False)) == because


@pytest.mark.parametrize("node", ["Flatten(x)", "Transpose(x)", "Reshape(x, p)", "Slice(x, p, p)"])
def test_one_factor_passes_what_moves_elements(node: str) -> None:
    model = of(f"y = {node}", "int64[1] p = {1}", inputs="float[] x")
    assert pass_scale(made_by(model, "y"), ONE, back=False) is ONE


def test_factors_of_any_axis_pass_what_works_on_elements() -> None:
    scale = Scale(np.array([1.0, 2.0, 3.0, 4.0]), 3)
    assert pass_scale(made_by(of("y = Relu(x)"), "y"), scale, back=True) is scale


def test_one_factor_passes_pools_of_any_axis() -> None:
    assert pass_scale(made_by(of("y = GlobalMaxPool(x)"), "y"), ONE, back=True) is ONE


@pytest.mark.parametrize(("back", "axis"), [(False, 2), (True, 0)])
def test_a_transpose_moves_the_axis(back: bool, axis: int) -> None:
    # The output has the input's axis 0 at 1, axis 1 at 2, and axis 2 at 0.
    model = of("y = Transpose<perm=[2,0,1]>(x)", inputs="float[2,2,2] x")
    assert pass_scale(made_by(model, "y"), CHANNELS, back=back) == Scale(CHANNELS.factors, axis)


def test_a_transpose_without_perm_needs_a_rank() -> None:
    model = of("y = Transpose(x)", inputs="float[] x")
    because = "the rank before Transpose is not known"
    assert reason(pass_scale(made_by(model, "y"), CHANNELS, back=False)) == because


def test_an_attribute_that_a_call_decides_stops_a_scale() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["": 21, "local": 1]>
        g (float[2,2,4,4] x) => (float[2,2,4,4] y) { y = local.f<a=0.5>(x) }
        <domain: "local", opset_import: ["": 21]> f <a> (v) => (u) {
            c = Constant<value_floats = [1.0, 2.0]>()
            u = LeakyRelu<alpha: float = @a>(v)  t = Gemm<alpha: float = @a>(v, c) }"""
    )
    function = model.functions[0]
    made = named(function, "u").producer, named(function, "t").producer
    assert made[0] is not None
    assert made[1] is not None
    because = "LeakyRelu: attribute 'alpha' is a function parameter"
    assert reason(pass_scale(made[0], ONE, back=False)) == because
    assert absorb_after(made[1], ONE) is None


@pytest.mark.parametrize(
    ("inputs", "shape", "axis", "back", "expected"),
    [
        ("float[3,4,2] x", "12,2", 2, False, 1),
        ("float[3,4,2] x", "12,2", 1, True, 2),
        ("float[4,2] x", "4,1,2", 1, False, 2),
    ],
)
def test_factors_of_the_last_axis_pass_a_reshape_that_keeps_it(
    inputs: str, shape: str, axis: int, back: bool, expected: int
) -> None:
    dims = shape.split(",")
    model = of("y = Reshape(x, t)", f"int64[{len(dims)}] t = {{{shape}}}", inputs=inputs)
    node = made_by(model, "y")
    found = pass_scale(node, Scale(np.array([2.0, 4.0]), axis), back=back)
    assert found == Scale(found.factors, expected) if isinstance(found, Scale) else False


@pytest.mark.parametrize(
    ("inputs", "shape", "axis", "because"),
    [
        ("float[2,2] x", "2,2", 0, "Reshape moves elements across the scaled axis"),
        ("float[2,2] x", "4,1", 1, "Reshape moves elements across the scaled axis"),
        ("float[2,2] x", "1,4", 1, "Reshape moves elements across the scaled axis"),
        ("float[4] x", "2,2", 0, "Reshape moves elements across the scaled axis"),
        ("float[] x", "2,2", 1, "a rank of Reshape is not known"),
    ],
)
def test_a_reshape_that_mixes_the_axis_says_why(
    inputs: str, shape: str, axis: int, because: str
) -> None:
    model = of("y = Reshape(x, t)", f"int64[2] t = {{{shape}}}", inputs=inputs)
    scale = Scale(np.array([2.0, 4.0]), axis)
    assert reason(pass_scale(made_by(model, "y"), scale, back=False)) == because


def test_a_reshape_to_what_is_computed_has_no_known_rank() -> None:
    model = of("y = Reshape(x, t)", inputs="float[2,2] x, int64[K] t")
    found = pass_scale(made_by(model, "y"), CHANNELS, back=False)
    assert reason(found) == "a rank of Reshape is not known"


def test_a_reshape_to_a_scalar_has_no_last_axis() -> None:
    model = of("y = Reshape(x, t)", "int64[0] t = {}", inputs="float[1] x")
    found = pass_scale(made_by(model, "y"), Scale(np.array([2.0]), 0), back=False)
    assert reason(found) == "Reshape moves elements across the scaled axis"


# --- what absorbs a scale -------------------------------------------------------------------------

WEIGHTS = (
    *("float[2,2,1,1] w = {1,2,3,4}", "float[2,1,1,1] d = {1,2}", "float[2] b = {1,-1}"),
    *("float[2,2] m = {1,2,3,4}", "float[2] v = {1,2}", "float[1,2,2] k = {1,2,3,4}"),
)
MATRIX = "float[2,2] x"


@pytest.mark.parametrize(
    ("node", "scale", "expected"),
    [
        ("Conv(x, w, b)", CHANNELS, [[[[[2]], [[4]]], [[[12]], [[16]]]], [2, -4]]),
        ("Conv(x, w, b)", ONE, [[[[[2]], [[4]]], [[[6]], [[8]]]], [2, -2]]),
        ("Conv(x, w)", ONE, [[[[[2]], [[4]]], [[[6]], [[8]]]]]),
        ("Conv<group=2>(x, d)", CHANNELS, [[[[[2]]], [[[8]]]]]),
        ("ConvTranspose(x, w, b)", CHANNELS, [[[[[2]], [[8]]], [[[6]], [[16]]]], [2, -4]]),
        ("ConvTranspose<group=2>(x, d)", CHANNELS, [[[[[2]]], [[[8]]]]]),
        ("ConvTranspose(x, w)", ONE, [[[[[2]], [[4]]], [[[6]], [[8]]]]]),
        ("BatchNormalization(x, v, b, b, v)", CHANNELS, [[2, 8]]),
    ],
)
def test_a_node_computes_its_output_scaled(node: str, scale: Scale, expected: list[object]) -> None:
    found = absorb_after(made_by(of(f"y = {node}", *WEIGHTS), "y"), scale)
    if "Batch" in node:  # v and b have other consumers
        assert reason(found) == "v has other consumers"
    else:
        assert numbers(found) == expected


@pytest.mark.parametrize(
    ("node", "axis", "expected"),
    [
        ("Gemm(x, m, b)", 1, [[[2, 8], [6, 16]], [2, -4]]),
        ("Gemm<transB=1>(x, m)", 1, [[[2, 4], [12, 16]]]),
        ("MatMul(x, m)", 1, [[[2, 8], [6, 16]]]),
        ("MatMul(x, k)", 2, [[[[2, 8], [6, 16]]]]),
        ("MatMul(m, x)", 0, [[[2, 4], [12, 16]]]),
    ],
)
def test_a_product_of_matrices_computes_its_output_scaled(
    node: str, axis: int, expected: list[object]
) -> None:
    model = of(f"y = {node}", *WEIGHTS, inputs=MATRIX)
    assert numbers(absorb_after(made_by(model, "y"), Scale(CHANNELS.factors, axis))) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Gemm(x, m)", [[[2, 4], [6, 8]]]),
        ("Gemm(x, m, b)", [[[2, 4], [6, 8]], [2, -2]]),
        ("MatMul(x, m)", [[[2, 4], [6, 8]]]),
        ("MatMul(m, x)", [[[2, 4], [6, 8]]]),
    ],
)
def test_a_product_absorbs_one_factor(node: str, expected: list[object]) -> None:
    model = of(f"y = {node}", *WEIGHTS, inputs=MATRIX)
    assert numbers(absorb_after(made_by(model, "y"), ONE)) == expected


@pytest.mark.parametrize(
    ("node", "axis"),
    [
        ("Conv(x, w)", 2), ("Conv(x, w)", 0), ("Relu(x)", 1), ("Conv(x, x)", 1),
        ("Gemm(x, m)", 0), ("MatMul(x, m)", 0), ("MatMul(m, x)", 1), ("MatMul(x, v)", None),
        ("com.microsoft.Conv(x, w)", 1), ("MatMul(x, x)", None),
    ],
)  # fmt: skip
def test_what_takes_no_scale_of_an_axis_after_it(node: str, axis: int | None) -> None:
    inputs = "float[2,2,4,4] x" if "Conv" in node else MATRIX
    scale = ONE if axis is None else Scale(CHANNELS.factors, axis)
    assert absorb_after(made_by(of(f"y = {node}", *WEIGHTS, inputs=inputs), "y"), scale) is None


def test_rows_of_a_product_with_what_may_be_a_vector_are_not_scaled() -> None:
    batches = "float[2,2,2] k = {1,2,3,4,5,6,7,8}"
    because = "the second factor may be a vector, and the axis one of batches"
    for inputs in ("float[2] x", "float[] x"):
        # Of [2,2,2] times a vector, axis 0 of the result [2,2] is the axis of batches.
        text = f"({inputs}) => (float[2,2] y) <{batches}> {{ y = MatMul(k, x) }}"
        node = made_by(parsed(text), "y")
        assert reason(absorb_after(node, Scale(CHANNELS.factors, 0))) == because
        assert isinstance(absorb_after(node, ONE), dict)


@pytest.mark.parametrize(
    ("opset", "gamma", "axis", "expected"),
    [
        (8, "float[2] v = {1,2}", 1, [[2, 8], [4, 4]]),
        (8, "float[2] v = {1,2}", None, [[2, 4], [4, 2]]),
        (8, "float[2,1] v = {1,2}", None, [[[2], [4]], [4, 2]]),
        (8, "float[2,1] v = {1,2}", 1, None),
    ],
)
def test_a_batch_norm_absorbs_factors_of_channels(
    opset: int, gamma: str, axis: int | None, expected: list[object] | None
) -> None:
    nodes = "y = BatchNormalization(x, v, b, mean, var)"
    others = ("float[2] b = {2,1}", "float[2] mean = {0,0}", "float[2] var = {1,1}")
    node = made_by(of(nodes, gamma, *others, opset=opset), "y")
    found = absorb_after(node, ONE if axis is None else CHANNELS)
    assert (None if found is None else numbers(found)) == expected


# --- forward --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "scale", "expected"),
    [
        ("y = Conv(s, w)", CHANNELS, [[[[[2]], [[8]]], [[[6]], [[16]]]]]),
        ("y = Conv(s, w, b)", ONE, [[[[[2]], [[4]]], [[[6]], [[8]]]]]),
        ("y = Conv<group=2>(s, d)", CHANNELS, [[[[[2]]], [[[8]]]]]),
        ("y = ConvTranspose(s, w)", CHANNELS, [[[[[2]], [[4]]], [[[12]], [[16]]]]]),
        ("a = Relu(s)  y = Conv(a, w)", CHANNELS, [[[[[2]], [[8]]], [[[6]], [[16]]]]]),
        (
            "y = Conv(s, w)  z = Conv(s, d)",
            ONE,
            [[[[[2]], [[4]]], [[[6]], [[8]]]], [[[[2]]], [[[4]]]]],
        ),
    ],
)  # fmt: skip
def test_consumers_apply_a_scale(nodes: str, scale: Scale, expected: list[object]) -> None:
    model = of(f"s = Sigmoid(x)  {nodes}", *WEIGHTS)
    assert numbers(push_scale_forward(named(model, "s"), scale)) == expected


@pytest.mark.parametrize(
    ("node", "axis", "expected"),
    [
        ("Gemm(s, m)", 1, [[[2, 4], [12, 16]]]),
        ("Gemm<transB=1>(s, m)", 1, [[[2, 8], [6, 16]]]),
        ("Gemm<transA=1>(s, m)", 0, [[[2, 4], [12, 16]]]),
        ("MatMul(s, m)", 1, [[[2, 4], [12, 16]]]),
        ("MatMul(m, s)", 0, [[[2, 8], [6, 16]]]),
        ("MatMul(s, m)", None, [[[2, 4], [6, 8]]]),
        ("MatMul(s, k)", 1, [[[[2, 4], [12, 16]]]]),
    ],
)
def test_products_of_matrices_apply_a_scale(
    node: str, axis: int | None, expected: list[object]
) -> None:
    model = of(f"s = Sigmoid(x)  y = {node}", *WEIGHTS, inputs=MATRIX)
    scale = ONE if axis is None else Scale(CHANNELS.factors, axis)
    assert numbers(push_scale_forward(named(model, "s"), scale)) == expected


@pytest.mark.parametrize(
    ("node", "axis"),
    [
        ("Gemm(s, m)", 0), ("Gemm<transA=1>(s, m)", 1), ("MatMul(s, m)", 0), ("MatMul(m, s)", 1),
        ("MatMul(s, v)", 1), ("MatMul(s, x)", 1), ("Gemm(x, s)", 1),
        ("com.microsoft.Gemm(s, m)", 1),
    ],
)  # fmt: skip
def test_what_does_not_apply_a_scale(node: str, axis: int) -> None:
    model = of(f"s = Sigmoid(x)  y = {node}", *WEIGHTS, inputs=MATRIX)
    found = push_scale_forward(named(model, "s"), Scale(CHANNELS.factors, axis))
    assert reason(found).endswith("does not absorb a scale")


@pytest.mark.parametrize("inputs", ["float[2] x", "float[] x"])
def test_a_vector_and_what_may_be_one_are_not_scaled_before_a_product(inputs: str) -> None:
    model = of("s = Sigmoid(x)  y = MatMul(s, m)", *WEIGHTS, inputs=inputs)
    found = push_scale_forward(named(model, "s"), ONE)
    assert reason(found) == "MatMul does not absorb a scale"


def test_a_kernel_takes_only_factors_of_its_channels() -> None:
    for kind in ("Conv", "ConvTranspose"):
        model = of(f"s = Sigmoid(x)  y = {kind}(s, w)", *WEIGHTS)
        found = push_scale_forward(named(model, "s"), Scale(CHANNELS.factors, 0))
        assert reason(found) == f"{kind} does not absorb a scale"


def test_one_consumer_that_refuses_is_the_reason() -> None:
    model = of("s = Sigmoid(x)  y = Conv(s, w)  a = Relu(s)  e = Exp(a)", *WEIGHTS)
    because = "Exp does not absorb a scale"
    assert reason(push_scale_forward(named(model, "s"), ONE)) == because
    assert reason(push_scale_forward(named(model, "s"), NEGATIVE)).startswith(
        "Relu does not commute"
    )


def test_what_is_read_outside_is_not_scaled() -> None:
    text = """(float[2,2] x, bool p) => (float[2,2] y, float[2,2] s, float[2,2] z) {
        s = Sigmoid(x)  t = Exp(x)  y = Relu(s)
        z = If(p) <then_branch = a () => (float[2,2] u) { u = Neg(t) },
                   else_branch = b () => (float[2,2] v) { v = Abs(t) }> }"""
    model = parsed(text)
    for name in ("s", "t"):
        found = push_scale_forward(named(model, name), ONE)
        assert reason(found) == f"{name} is used outside of the graph"


def test_new_constants_are_written_and_the_scaling_goes() -> None:
    model = of("s = Mul(x, two)  y = MatMul(s, m)", "float two = {2}", *WEIGHTS, inputs=MATRIX)
    node, x = made_by(model, "s"), named(model, "x")
    plan = push_scale_forward(named(model, "s"), ONE)
    assert isinstance(plan, dict)
    write_rescaled(model.main, node, x, plan)
    product = made_by(model, "y")
    weight = product.inputs[1]
    assert product.inputs[0] is x
    assert weight is not None
    assert weight.const is not None
    assert weight.const.tolist() == [[2, 4], [6, 8]]
    assert not node.is_live


def test_a_refusal_says_what_stopped_the_scale() -> None:
    skip = Skip("because")
    relu, exp = made_by(of("y = Relu(x)"), "y"), made_by(of("y = Exp(x)"), "y")
    other = made_by(of("y = com.microsoft.Relu(x)"), "y")
    assert refusal(relu, skip) is skip
    assert reason(refusal(relu, ONE)) == "Relu does not absorb a scale"
    assert reason(refusal(exp, skip)) == "Exp does not absorb a scale"
    assert reason(refusal(other, skip)) == "Relu does not absorb a scale"


# --- numbers that do not fit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "factor", "because"),
    [
        ("float[2] w = {1e38,1}", 10, "w times the factors does not fit its dtype"),
        ("float16[2] w = {31000,1}", 2, "w times the factors does not fit its dtype"),
        ("float[2] w = {1e-38,1}", 1e-30, "w times the factors vanishes in its dtype"),
        ("float[2] w = {1e-37,1}", 1e-3, "w times the factors becomes subnormal"),
    ],
)
def test_numbers_that_leave_their_dtype_stay(weight: str, factor: float, because: str) -> None:
    dtype = weight.partition("[")[0]
    model = of("y = Mul(x, w)", weight, inputs=f"{dtype}[2] x")
    found = scaled_constants(made_by(model, "y"), {1: np.array([float(factor)])})
    assert reason(found) == because


@pytest.mark.parametrize("factor", [-2, -1])
def test_what_was_subnormal_infinite_or_0_may_be_so_afterwards(factor: int) -> None:
    model = of("y = Mul(x, w)", "float[4] w = {1e-40,0,inf,-0.0}", inputs="float[4] x")
    found = scaled_constants(made_by(model, "y"), {1: np.array([float(factor)])})
    assert isinstance(found, dict)
    (after,) = found.values()
    assert after.dtype == np.float32
    expected = np.array([np.float32(1e-40) * factor, -0.0, -np.inf, 0.0], np.float32)
    assert after.tobytes() == expected.tobytes()


def test_the_least_normal_number_is_no_subnormal() -> None:
    least = float(np.finfo(np.float32).smallest_normal)
    model = of("y = Mul(x, w)", f"float[1] w = {{{2 * least!r}}}", inputs="float[1] x")
    found = scaled_constants(made_by(model, "y"), {1: np.array([0.5])})
    assert numbers(found) == [[least]]


def test_a_constant_is_known_and_of_one_node() -> None:
    model = of("y = Mul(x, w)  z = Add(x, w)", "float[2] w = {1,2}", inputs="float[2] x")
    node = made_by(model, "y")
    factors = np.array([2.0])
    assert reason(scaled_constants(node, {1: factors})) == "w has other consumers"
    assert reason(scaled_constants(node, {0: factors})) == "x is not a constant"
    assert scaled_constants(node, {2: factors}) == {}


@pytest.mark.parametrize(
    ("after", "exact", "expected"),
    [
        (1e-40, 1.00000003e-40, True),
        (1e-40, float(np.float32(1e-40)), False),
        (1.0, 2.0, False),
    ],
)
def test_subnormal_numbers_lose_digits(after: float, exact: float, expected: bool) -> None:
    made = np.array([after, 1.0], np.float32)
    asked = list[None]()

    def unrounded() -> np.ndarray:
        asked.append(None)
        return np.array([exact, 1.0])

    assert loses_digits(np.ones(2), made, unrounded) is expected
    assert len(asked) == (after != 1.0)  # only small numbers ask for it


def test_zeros_and_the_least_normal_number_lose_no_digits() -> None:
    least = np.finfo(np.float32).smallest_normal
    made = np.array([0.0, least], np.float32)
    assert not loses_digits(np.array([0.0, 1.0]), made, lambda: np.array([1.0, 1.0]))
