"""Parameters of normalizations: what is known of them, and what is none over the last dims."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.graph import DataType
from tiered.rewriter.idioms.normalization import (
    BatchNorm,
    NormOverLastDims,
    batch_norm_of,
    fits_float_attribute,
    layer_norm,
    norm_epsilon,
    norm_over_last_dims,
    split_bias,
)
from tiered.rewriter.skip import Skip

HELD = "float[2] s = {2,3}, float[2] h = {1,7}, float[2] m = {0.5,1}, float[2] v = {3,8}"


def batch_norm(call: str, held: str = HELD, more: str = "") -> BatchNorm | str:
    text = f"(float[1,2,3] x{more}) => (float[1,2,3] y) <{held}> {{ y = BatchNormalization{call} }}"
    found = batch_norm_of(made_by(parsed(text), "y"))
    return str(found) if isinstance(found, Skip) else found


def test_a_batch_norm_is_one_factor_and_one_offset_a_channel() -> None:
    found = batch_norm("<epsilon = 1.0>(x, s, h, m, v)")
    assert isinstance(found, BatchNorm)
    np.testing.assert_allclose(found.factor, [1, 1])
    np.testing.assert_allclose(found.of(0.0), [0.5, 6])
    np.testing.assert_allclose(found.of(np.array([1.5, 2])), [2, 8])
    pair = found.as_product_and_sum(DataType.FLOAT)
    assert isinstance(pair, tuple)
    assert [each.dtype for each in pair] == [np.float32] * 2
    np.testing.assert_allclose(pair[1], [0.5, 6])


@pytest.mark.parametrize(
    ("call", "held", "more", "because"),
    [
        ("(x, s, h, m, q)", HELD, ", float[2] q",
         "a parameter of the batch norm is not a constant"),
        ("(x, s, h, m, v)", HELD.replace("float[2] v = {3,8}", "float[1] v = {3}"), "",
         "are not one number a channel"),
        ("<epsilon = 1.0>(x, s, h, m, v)", HELD.replace("{3,8}", "{3,-1}"), "",
         "var + epsilon is not positive"),
        ("<epsilon = 1.0>(x, s, h, m, v)", HELD.replace("{3,8}", "{3,-2}"), "",
         "var + epsilon is not positive"),
        ("(x, s, h, m, v)", HELD.replace("float[2]", "float[1,2]"), "",
         "are not one number a channel"),
    ],
)  # fmt: skip
def test_a_batch_norm_that_is_not_known(call: str, held: str, more: str, because: str) -> None:
    assert because in str(batch_norm(call, held, more))


def test_numbers_beyond_the_dtype_are_no_product_and_sum() -> None:
    one = np.ones(1)
    large = BatchNorm(factor=one * 1e5, mean=one, shift=one)
    assert str(large.as_product_and_sum(DataType.FLOAT16)) == (
        "a factor or an offset is not finite"
    )
    assert isinstance(large.as_product_and_sum(DataType.FLOAT), tuple)


def test_an_attribute_of_32_bits_holds_some_doubles() -> None:
    assert fits_float_attribute(0.5, DataType.DOUBLE)
    assert not fits_float_attribute(0.1, DataType.DOUBLE)
    assert fits_float_attribute(0.1, DataType.FLOAT)


@pytest.mark.parametrize(
    ("epsilon", "because"),
    [
        ("float e = {0.001}", ""),
        ("float[1,1] e = {0.001}", ""),
        ("double e = {0.5}", ""),
        ("double e = {0.1}", "is a double that no attribute holds"),
        ("float e = {0}", "is not one positive number"),
        ("float e = {-1}", "is not one positive number"),
        ("float[2] e = {1,1}", "is not one positive number"),
    ],
)
def test_the_epsilon_is_one_positive_number(epsilon: str, because: str) -> None:
    model = parsed(f"(float[2] x) => (float[2] y) <{epsilon}> {{ y = Neg(x) }}")
    found = norm_epsilon(named(model, "e"))
    assert because in str(found) if because else isinstance(found, float)
    assert isinstance(norm_epsilon(None), Skip)
    assert isinstance(norm_epsilon(named(model, "x")), Skip)


def norm(axes: str, x: str = "float[2,3,4]", y: str = "Neg(x)") -> NormOverLastDims | str:
    text = f"""({x} x, int64[1] q) => ({x} y) <int64[2] both = {{1,-1}}, int64[1] last = {{-1}},
        int64[1] first = {{0}}, int64[2] apart = {{0,2}}, float e = {{0.001}}, int64[0] none = {{}}>
        {{ y = {y} }}"""
    model = parsed(text)
    node, held = made_by(model, "y"), named(model, axes)
    found = norm_over_last_dims(node, named(model, "x"), held, named(model, "e"))
    return str(found) if isinstance(found, Skip) else found


def test_a_norm_is_over_the_last_dims() -> None:
    found = norm("last")
    for axes, sizes in (("last", (4,)), ("both", (3, 4))):
        found = norm(axes)
        assert isinstance(found, NormOverLastDims)
        assert (found.sizes, found.axis, found.dtype) == (sizes, -len(sizes), DataType.FLOAT)
        assert found.epsilon == pytest.approx(0.001)
    assert isinstance(found, NormOverLastDims)
    graph = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }").main
    scale = found.ones(graph).const
    assert scale is not None
    assert (scale.shape, scale.dtype, scale.min()) == ((3, 4), np.float32, 1)


@pytest.mark.parametrize(
    ("axes", "x", "because"),
    [
        ("q", "float[2,3,4]", "the axes are not constant"),
        ("first", "float[2,3,4]", "the axes are not the last dims"),
        ("apart", "float[2,3,4]", "the axes are not the last dims"),
        ("none", "float[2,3,4]", "the axes are not the last dims"),
        ("last", "int32[2,3,4]", "x is no float"),
        ("last", "float[2,3,N]", "the size of the normalised dims is not known"),
        ("last", "float[2,3,0]", "there is nothing to normalise"),
    ],
)
def test_what_is_no_norm_over_the_last_dims(axes: str, x: str, because: str) -> None:
    assert norm(axes, x) == because


@pytest.mark.parametrize(
    ("nodes", "has_bias"),
    [
        ("a = Add(x, b)", True),
        ("a = Add(b, x)", True),
        ("a = Add(x, c)", False),  # along another axis
        ("a = Add(x, z)", False),
        ("a = Sub(x, b)", False),
        ("a = Add(x, b)  w = Exp(a)", False),
    ],
)
def test_a_bias_along_the_last_dim_is_split_off(nodes: str, has_bias: bool) -> None:
    outputs = "float[2,3] y" + (", float[2,3] w" if "w =" in nodes else "")
    model = parsed(
        f"""(float[2,3] x, float[2,3] z) => ({outputs}) <float[3] b = {{1,2,3}},
        float[2,1] c = {{1,2}}> {{ {nodes}  y = Neg(a) }}"""
    )
    data, bias = split_bias(named(model, "a"))
    assert (data.name, None if bias is None else bias.name) == (
        ("x", "b") if has_bias else ("a", None)
    )


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_a_layer_norm_is_made_at_older_opsets_too(opset: int) -> None:
    model = parsed("(float[2,3] x, float[3] s) => (float[2,3] y) { y = Neg(x) }", opset=opset)
    made = layer_norm(model.main, named(model, "x"), named(model, "s"), axis=-1)
    assert made.producer is not None
    assert made.producer.op_type == "LayerNormalization"
    assert made.producer.is_early is (opset < 17)


def test_further_outputs_of_a_batch_norm_mean_training() -> None:
    text = f"""(float[1,2,3] x) => (float[1,2,3] y, float[2] a) <{HELD}>
        {{ y, a, b = BatchNormalization<training_mode = 1>(x, s, h, m, v) }}"""
    found = batch_norm_of(made_by(parsed(text), "y"))
    assert str(found) == "further outputs mean training mode"


@pytest.mark.parametrize(
    ("x", "y", "because"),
    [
        ("float[]", "Neg(x)", "the rank of x is not known, or grows"),
        ("float[2,3,4]", "Add(x, w)", "the rank of x is not known, or grows"),
        ("float[2,3,4]", "acme.F(x)", "the rank of x is not known, or grows"),
        ("int32[2,3,4]", "Neg(x)", "x is no float"),
        ("float[2,3,N]", "Neg(x)", "the size of the normalised dims is not known"),
        ("float[2,3,0]", "Neg(x)", "there is nothing to normalise"),
        ("float[N,3,4]", "Neg(x)", ""),
    ],
)
def test_what_is_known_of_a_norm(x: str, y: str, because: str) -> None:
    kind = x.partition("[")[0]
    text = f"""<ir_version: 10, opset_import: ["" : 21, "acme" : 1]> g ({x} x, {kind}[5,2,3,4] w)
        => ({kind}[] y) <int64[1] last = {{-1}}, float e = {{0.001}}, float z = {{0}}>
        {{ y = {y} }}"""
    model = parsed(text)
    node, value = made_by(model, "y"), named(model, "x")
    last, epsilon = named(model, "last"), named(model, "e")
    found = norm_over_last_dims(node, value, last, epsilon)
    assert (str(found) if isinstance(found, Skip) else "") == because
    if not because:
        none = norm_over_last_dims(node, value, last, named(model, "z"))
        assert str(none) == "epsilon is not one positive number"
        assert str(norm_over_last_dims(node, value, None, epsilon)) == "the axes are not constant"


@pytest.mark.parametrize(
    ("nodes", "is_split"),
    [
        ("s = Add(x, b)", True),
        ("s = Add(b, x)", True),
        ("s = Sub(x, b)", False),
        ("s = Add(x, z)", False),
        ("s = Add(x, row)", False),
        ("s = Add(x, one)", False),
        ("s = Add(n, b)", True),
        ("s = Add(u, b)", False),
        ("s = Add(x, b)  t = Neg(s)", False),
        ("s = acme.Add(x, b)", False),
        ("s = Add(scalar, one)", False),
    ],
)
def test_only_a_constant_that_the_sum_alone_reads_is_a_bias(nodes: str, is_split: bool) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21, "acme" : 1]> g
        (float[2,3] x, float[2,3] z, float[N,3] n, float[] u, float scalar) => (float[] y)
        <float[3] b = {{1,2,3}}, float[1,3] row = {{1,2,3}}, float one = {{1}}>
        {{ {nodes}  y = Neg(s) }}"""
    model = parsed(text)
    value = named(model, "s")
    data, bias = split_bias(value)
    assert (bias is named(model, "b")) is is_split
    assert (data is value) is not is_split
    assert split_bias(named(model, "x")) == (named(model, "x"), None)
