import numpy as np
import pytest

from tests.small import made_by, parsed
from tiered import ShapeError, get_pass
from tiered.rewriter.idioms.normalization import BatchNorm
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_bn_into_conv"
VECTORS = "float[2] s = {2,0.5}, float[2] b = {1,-1}, float[2] m = {0.5,0.25}, float[2] v = {4,1}"
NORM = "y = BatchNormalization<epsilon=0.0>(t, s, b, m, v)"
IMAGE = "(float[1,2,3,3] x) => (float[1,2,3,3] y)"


def test_the_kernel_is_scaled_and_gets_a_bias() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}> {{ t = Conv(x, w) {NORM} }}",
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,1.5,2}}, float[2] c = {{0.5,-1.125}}> {{ y = Conv(x, w, c) }}",
    )


def test_a_bias_is_shifted() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, float[2] c = {{1,2}}, {VECTORS}>"
        f" {{ t = Conv(x, w, c) {NORM} }}",
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,1.5,2}}, float[2] c = {{1.5,-0.125}}>"
        " { y = Conv(x, w, c) }",
    )


def test_pads_strides_and_groups_stay() -> None:
    assert_rewrites(
        PASS,
        "(float[1,2,5,5] x) => (float[1,2,3,3] y) <float[2,1,3,3] w ="
        f" {{1,2,3,4,5,6,7,8,9,9,8,7,6,5,4,3,2,1}}, {VECTORS}>"
        f" {{ t = Conv<group=2, pads=[1,1,1,1], strides=[2,2], kernel_shape=[3,3]>(x, w) {NORM} }}",
        "(float[1,2,5,5] x) => (float[1,2,3,3] y) <float[2,1,3,3] w ="
        " {1,2,3,4,5,6,7,8,9,4.5,4,3.5,3,2.5,2,1.5,1,0.5}, float[2] c = {0.5,-1.125}>"
        " { y = Conv<group=2, pads=[1,1,1,1], strides=[2,2], kernel_shape=[3,3]>(x, w, c) }",
    )


def test_a_transposed_convolution_has_its_channels_on_axis_1() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}> {{ t = ConvTranspose(x, w) {NORM} }}",
        f"{IMAGE} <float[2,2,1,1] w = {{1,1,3,2}}, float[2] c = {{0.5,-1.125}}>"
        " { y = ConvTranspose(x, w, c) }",
    )


def test_the_groups_of_a_transposed_convolution_split_the_channels() -> None:
    vectors = (
        "float[4] s = {1,2,4,8}, float[4] b = {0,0,0,0}, float[4] m = {1,1,1,1},"
        " float[4] v = {1,1,1,1}"
    )
    interface = "(float[1,2,3,3] x) => (float[1,4,3,3] y)"
    assert_rewrites(
        PASS,
        f"{interface} <float[2,2,1,1] w = {{1,1,1,1}}, {vectors}>"
        f" {{ t = ConvTranspose<group=2>(x, w) {NORM} }}",
        f"{interface} <float[2,2,1,1] w = {{1,2,4,8}}, float[4] c = {{-1,-2,-4,-8}}>"
        " { y = ConvTranspose<group=2>(x, w, c) }",
    )


def test_epsilon_is_never_assumed() -> None:
    text = (
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, float[2] s = {{1,1}}, float[2] b = {{0,0}},"
        " float[2] m = {0,0}, float[2] v = {0,0}>"
        " { t = Conv(x, w) y = BatchNormalization<epsilon=0.25>(t, s, b, m, v) }"
    )
    assert_rewrites(
        PASS,
        text,
        f"{IMAGE} <float[2,2,1,1] w = {{2,4,6,8}}, float[2] c = {{0,0}}> {{ y = Conv(x, w, c) }}",
    )


def test_doubles_stay_doubles() -> None:
    interface = IMAGE.replace("float", "double")
    assert_rewrites(
        PASS,
        f"{interface} <double[2,2,1,1] w = {{1,2,3,4}}, {VECTORS.replace('float', 'double')}>"
        f" {{ t = Conv(x, w) {NORM} }}",
        f"{interface} <double[2,2,1,1] w = {{1,2,1.5,2}}, double[2] c = {{0.5,-1.125}}>"
        " { y = Conv(x, w, c) }",
        runtime="reference",  # onnxruntime has no such kernel
    )


def test_16_bit_floats_are_rounded_once() -> None:
    # 1, 2, 3, 4, then 2, 0.5, then 1, -1, then 0.5, 0.25, then 4, 1: float16 is text as its bits.
    vectors = (
        "float16[2] s = {16384,14336}, float16[2] b = {15360,48128},"
        " float16[2] m = {14336,13312}, float16[2] v = {17408,15360}"
    )
    interface = IMAGE.replace("float", "float16")
    assert_rewrites(
        PASS,
        f"{interface} <float16[2,2,1,1] w = {{15360,16384,16896,17408}}, {vectors}>"
        f" {{ t = Conv(x, w) {NORM} }}",
        f"{interface} <float16[2,2,1,1] w = {{15360,16384,15872,16384}},"
        " float16[2] c = {14336,48256}> { y = Conv(x, w, c) }",
    )


@pytest.mark.parametrize(
    ("opset", "attributes"), [(7, ""), (7, ", spatial=1"), (9, ", momentum=0.5"), (15, "")]
)
def test_the_inference_form_of_each_opset(opset: int, attributes: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}> {{ t = Conv(x, w)"
        f" y = BatchNormalization<epsilon=0.0{attributes}>(t, s, b, m, v) }}",
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,1.5,2}}, float[2] c = {{0.5,-1.125}}> {{ y = Conv(x, w, c) }}",
        opset=opset,
    )


def test_a_shared_weight_stays_and_the_convolution_gets_a_copy() -> None:
    interface = "(float[1,2,3,3] x) => (float[1,2,3,3] y, float[1,2,3,3] z)"
    assert_rewrites(
        PASS,
        f"{interface} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}>"
        f" {{ t = Conv(x, w) {NORM} z = Conv(x, w) }}",
        f"{interface} <float[2,2,1,1] w = {{1,2,3,4}}, float[2,2,1,1] k = {{1,2,1.5,2}},"
        " float[2] c = {0.5,-1.125}> { y = Conv(x, k, c) z = Conv(x, w) }",
    )


def test_a_copy_may_be_too_large() -> None:
    numbers = ",".join(["1"] * (2 * 2 * 17 * 17))
    assert_unchanged(
        PASS,
        "(float[1,2,17,17] x) => (float[1,2,1,1] y, float[1,2,1,1] z)"
        f" <float[2,2,17,17] w = {{{numbers}}}, {VECTORS}>"
        f" {{ t = Conv(x, w) {NORM} z = Conv(x, w) }}",
        because="copies of the shared weight exceed max_growth",
    )


def test_copies_of_4_kib_are_small_and_the_weight_of_one_convolution_is_no_copy() -> None:
    for size, lone, expected in [(16, "", 0), (17, "", 1), (17, "w1", 1)]:
        numbers = ",".join(["1"] * (2 * 2 * size * size))
        own = f"t1 = Conv(x, {lone}) y1 = BatchNormalization(t1, s, b, m, v)" if lone else ""
        text = (
            f"(float[1,2,{size},{size}] x) => (float[1,2,1,1] y, float[1,2,1,1] z)"
            f" <float[2,2,{size},{size}] w = {{{numbers}}}, float[2,2,1,1] w1 = {{1,2,3,4}},"
            f" {VECTORS}> {{ t = Conv(x, w) {NORM} z = Conv(x, w) {own} }}"
        )
        model = parsed(text)
        get_pass(PASS).apply(model)
        assert len(model.main.nodes_of("BatchNormalization")) == expected, (size, lone)


@pytest.mark.parametrize(
    ("opset", "outputs", "because"),
    [
        (8, "y, nm, nv, sm, sv", None),
        (9, "y, nm", None),
        (15, "y, nm, nv", "further outputs mean training mode"),
    ],
)
def test_secondary_outputs_mean_training_even_without_users(
    opset: int, outputs: str, because: str | None
) -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}>"
        f" {{ t = Conv(x, w) {outputs} = BatchNormalization(t, s, b, m, v) }}",
        because=because,
        opset=opset,
    )


@pytest.mark.parametrize(("opset", "attribute"), [(7, "spatial=0"), (15, "training_mode=1")])
def test_other_forms_are_no_match(opset: int, attribute: str) -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}>"
        f" {{ t = Conv(x, w) y = BatchNormalization<{attribute}>(t, s, b, m, v) }}",
        opset=opset,
    )


def test_a_result_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x) => (float[1,2,3,3] y, float[1,2,3,3] z)"
        f" <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}> {{ t = Conv(x, w) {NORM} z = Relu(t) }}",
        because="an inner value has another user",
    )
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x) => (float[1,2,3,3] y, float[1,2,3,3] t)"
        f" <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}> {{ t = Conv(x, w) {NORM} }}",
        because="an inner value is a graph output",
    )


def test_weights_that_callers_may_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x, float[2,2,1,1] w = {1,2,3,4}) => (float[1,2,3,3] y)"
        f" <{VECTORS}> {{ t = Conv(x, w) {NORM} }}",
        because="weight or bias is not a constant",
    )
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x, float[2] c) => (float[1,2,3,3] y)"
        f" <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS}> {{ t = Conv(x, w, c) {NORM} }}",
        because="weight or bias is not a constant",
    )
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x, float[2] m) => (float[1,2,3,3] y) <float[2,2,1,1] w = {1,2,3,4},"
        f" {VECTORS.replace('float[2] m = {0.5,0.25}, ', '')}> {{ t = Conv(x, w) {NORM} }}",
        because="a parameter of the batch norm is not a constant",
    )


def test_a_quantised_weight_stays_quantised() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <int8[2,2,1,1] q = {{1,2,3,4}}, float sc = {{0.5}}, {VECTORS}>"
        f" {{ w = DequantizeLinear(q, sc) t = Conv(x, w) {NORM} }}",
        because="weight or bias is not a constant",
    )


def test_a_variance_below_0_has_no_root() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS.replace('{4,1}', '{4,0}')}>"
        f" {{ t = Conv(x, w) {NORM} }}",
        because="var + epsilon is not positive",
    )


def test_vectors_of_another_length_are_left_to_the_runtime() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {VECTORS.replace('float[2] s', 'float[1] s').replace('{2,0.5}', '{2}')}>"
        f" {{ t = Conv(x, w) {NORM} }}",
        because="the parameters of the batch norm are not one number a channel",
    )
    one = "float[1] s = {2}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {4}"
    assert_unchanged(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, {one}> {{ t = Conv(x, w) {NORM} }}",
        because="a vector has shape (1,); expected (2,)",
    )


def test_weights_beyond_their_dtype_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,3e38}}, {VECTORS.replace('{2,0.5}', '{2,4}')}>"
        f" {{ t = Conv(x, w) {NORM} }}",
        because="the fused weights are not finite",
    )


def test_absorbing_refuses_groups_that_do_not_divide_the_channels() -> None:
    from tiered.function_passes.conv.fuse_bn_into_conv import absorb_batch_norm

    norm = BatchNorm(np.ones(3), np.ones(3), np.ones(3))
    for shape, groups in [((3, 1, 1), 2), ((3, 1, 1), 0), ((3,), 1)]:
        with pytest.raises(ShapeError) as raised:
            absorb_batch_norm(np.ones(shape, np.float32), None, norm, groups=groups)
        assert str(raised.value) == f"a weight of shape {shape} has no {groups} groups"
    weight, bias = absorb_batch_norm(np.ones((3, 2), np.float32), None, norm)
    assert (weight.shape, bias.shape) == ((3, 2), (3,))


def test_it_promises_no_more_than_another_order_of_operations() -> None:
    assert get_pass(PASS).info.numerics == "reassociating"


def test_output_padding_of_a_transposed_convolution_stays() -> None:
    image = "(float[1,2,3,3] x) => (float[1,1,6,6] y)"
    settings = "<strides=[2,2], output_padding=[1,1], kernel_shape=[1,1]>"
    assert_rewrites(
        PASS,
        f"{image} <float[2,1,1,1] w = {{1,2}}, float[1] s = {{2}}, float[1] b = {{1}},"
        " float[1] m = {0.5}, float[1] v = {4}>"
        f" {{ t = ConvTranspose{settings}(x, w)"
        " y = BatchNormalization<epsilon=0.0>(t, s, b, m, v) }",
        f"{image} <float[2,1,1,1] w = {{1,2}}, float[1] c = {{0.5}}>"
        f" {{ y = ConvTranspose{settings}(x, w, c) }}",
    )


def test_weights_that_become_too_small_for_their_dtype_stay() -> None:
    """1e-20 times 2e-20 is no normal number; a factor of 0 makes zeros that are exact."""
    small = "float[2] s = {1e-20,0}, float[2] b = {1,-1}, float[2] m = {0,0}, float[2] v = {1,1}"
    text = f"{IMAGE} <float[2,2,1,1] w = {{1e-20,2,3,4}}, {small}> {{ t = Conv(x, w) {NORM} }}"
    assert_unchanged(PASS, text, because="the fused weights lose precision by underflow")
    assert_rewrites(
        PASS,
        text.replace("w = {1e-20,", "w = {1,").replace("s = {1e-20,", "s = {1,"),
        f"{IMAGE} <float[2,2,1,1] w = {{1,2,0,0}}, float[2] c = {{1,-1}}> {{ y = Conv(x, w, c) }}",
    )


def test_copies_are_counted_of_constant_weights_of_convolutions() -> None:
    from tiered.function_passes.conv.fuse_bn_into_conv import _bytes_of_copies

    base = (
        "(float[1,2,3,3] x, float[2,2,1,1] w3) => (float[1,2,3,3] y)"
        f" <float[2,2,1,1] w = {{1,2,3,4}}, float[2,2] w2 = {{1,2,3,4}}, {VECTORS}>"
        " { NODES y = Abs(x) }"
    )
    for nodes, expected in [
        ("Conv(x, w)", 0),
        ("Conv(x, w) z = Neg(w)", 16),
        ("Conv(x, w3)", 0),
        ("Conv(x, w3) z = Neg(w3)", 0),
        ("ConvTranspose(x, w) z = Neg(w)", 16),
        ("Identity(x)", 0),
        ("Mul(x, w) z = Neg(w)", 0),
        ("Conv(x, w) t2 = Conv(x, w) y2 = BatchNormalization(t2, s, b, m, v)", 16),
        ("Conv(x, w) t2 = Conv(x, w) y2 = BatchNormalization(t2, s, b, m, v) z = Neg(w)", 32),
    ]:
        text = base.replace("NODES", f"t = {nodes} y1 = BatchNormalization(t, s, b, m, v)")
        assert _bytes_of_copies(parsed(text)) == expected, nodes
    text = base.replace("NODES", "y1 = BatchNormalization(x, s, b, m, v)")
    assert _bytes_of_copies(parsed(text)) == 0


def test_the_new_bias_is_named_after_the_old_one_or_the_weight() -> None:
    for call, expected in [("Conv(x, w)", "w_bias"), ("Conv(x, w, c)", "c_1")]:
        model = parsed(
            f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,4}}, float[2] c = {{1,2}}, {VECTORS}>"
            f" {{ t = {call} {NORM} }}"
        )
        get_pass(PASS).apply(model)
        assert [value.name for value in made_by(model, "y").reads] == ["x", "w_1", expected]
