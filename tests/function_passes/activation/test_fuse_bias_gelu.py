import numpy as np
import pytest

from tiered import PassContext, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_bias_gelu"
ORT = "onnxruntime_cpu"
IMAGE = "(float[N,4] x) => (float[N,4] y)"
BIAS = "<float[4] b = {1,-2,3,0.5}>"


@pytest.mark.parametrize(
    ("activation", "fused"),
    [
        ("Gelu(t)", "BiasGelu"),
        ('Gelu<approximate="tanh">(t)', "FastGelu"),
        ("com.microsoft.Gelu(t)", "BiasGelu"),
        ("com.microsoft.FastGelu(t)", "FastGelu"),
    ],
)
@pytest.mark.parametrize("operands", ["x, b", "b, x"])
def test_a_bias_is_added_in_the_activation(activation: str, fused: str, operands: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {BIAS} {{ t = Add({operands}) y = {activation} }}",
        f"{IMAGE} {BIAS} {{ y = com.microsoft.{fused}(x, b) }}",
        backend=ORT,
    )


@pytest.mark.parametrize("operands", ["x, b", "b, x"])
@pytest.mark.parametrize("dim", ["4", "H"])
def test_a_bias_may_be_computed(operands: str, dim: str) -> None:
    head = f"(float[N,{dim}] x, float[{dim}] c) => (float[N,{dim}] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ b = Abs(c) t = Add({operands}) y = Gelu(t) }}",
        f"{head} {{ b = Abs(c) y = com.microsoft.BiasGelu(x, b) }}",
        backend=ORT,
    )


@pytest.mark.parametrize("activation", ["com.microsoft.Gelu(t)", "com.microsoft.FastGelu(t)"])
def test_the_result_is_the_same_bit_for_bit(activation: str) -> None:
    text = f"(float[7,65] x, float[65] b) => (float[7,65] y) {{ t = Add(x, b) y = {activation} }}"
    model = parse(text)
    with PassContext(opt_level=3, backend=ORT):
        fused = get_pass(PASS)(model)
    assert len(fused.graph.node) == 1
    for special in (False, True):
        feeds = make_inputs(model, special=special).feeds
        before, after = (Session(proto).run(feeds)["y"] for proto in (model, fused))
        assert np.asarray(before).tobytes() == np.asarray(after).tobytes()


@pytest.mark.parametrize("dim", ["M", "1"])
def test_a_computed_bias_that_may_broadcast_stays(dim: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,4] x, float[{dim}] b) => (float[N,4] y) {{ t = Add(x, b) y = Gelu(t) }}",
        backend=ORT,
        because="the bias is not one number for each element of the last dim",
    )


@pytest.mark.parametrize("bias", ["float b = {1}", "float[1] b = {1}", "float[1,4] b = {1,2,3,4}"])
def test_the_bias_is_a_vector(bias: str) -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <{bias}> {{ t = Add(x, b) y = Gelu(t) }}",
        backend=ORT,
        because="the bias is not one number for each element of the last dim",
    )


def test_other_targets_keep_the_sum() -> None:
    assert_unchanged(PASS, f"{IMAGE} {BIAS} {{ t = Add(x, b) y = Gelu(t) }}")


def test_doubles_keep_their_constants() -> None:
    assert_unchanged(
        PASS,
        "(double[N,4] x) => (double[N,4] y) <double[4] b = {1,2,3,4}>"
        ' { t = Add(x, b) y = Gelu<approximate="tanh">(t) }',
        backend=ORT,
        because="the operator's constants have six digits",
    )
