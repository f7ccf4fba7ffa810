"""replace_half_reducemean: no sum overflows, on onnx.reference either."""

import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run_reference
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_half_reducemean"
MEAN = "(float16[2,8] x) => (float16[2,1] y) <int64[1] a = {1}> { y = ReduceMean(x, a) }"


def test_numbers_are_divided_first() -> None:
    assert_rewrites(
        PASS,
        MEAN,
        "(float16[2,8] x) => (float16[2,1] y) <int64[1] a = {1}, float16 n = {12288}> "
        "{ m = Mul(x, n) y = ReduceSum(m, a) }",
    )


def test_the_mean_is_computed_in_float_if_asked() -> None:
    assert_rewrites(
        PASS,
        MEAN,
        "(float16[2,8] x) => (float16[2,1] y) <int64[1] a = {1}> "
        "{ w = Cast<to=1>(x) m = ReduceMean(w, a) y = Cast<to=10>(m) }",
        form="float",
    )


@pytest.mark.parametrize("opset", [7, 13, 18, 21])
@pytest.mark.parametrize("options", ["", "{form=float}"])
def test_what_overflows_as_a_sum_does_not(opset: int, options: str) -> None:
    text = MEAN.replace("<int64[1] a = {1}> ", "").replace("(x, a)", "<axes=[1]>(x)")
    proto = parse(MEAN if opset >= 18 else text, opset=opset)
    model = Model.from_proto(proto)
    get_pass(PASS).with_options(**({"form": "float"} if options else {})).apply(model)
    assert len(model.main.nodes) == (3 if options else 2)
    x = np.full((2, 8), 40000, np.float16)
    assert run_reference(model.to_proto(), {"x": x})["y"].ravel().tolist() == [40000, 40000]


def test_all_axes() -> None:
    assert_rewrites(
        PASS,
        "(float16[4,4] x) => (float16 y) { y = ReduceMean<keepdims=0>(x) }",
        "(float16[4,4] x) => (float16 y) <float16 n = {11264}> "
        "{ m = Mul(x, n) y = ReduceSum<keepdims=0>(m) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (MEAN.replace("float16", "float"), "the operand is not float16"),
        (
            MEAN.replace("(float16[2,8] x)", "(float16[2,8] x, int64[1] a)"),
            "axes is not a constant",
        ),
        (MEAN.replace("[2,8]", "[2,N]"), "a reduced dim is not a number"),
        (MEAN.replace("[2,8]", "[2,20000]"), "1 / 20000 is not a normal number of float16"),
        (MEAN.replace("[2,8]", "[2,0]"), "1 / 0 is not a normal number of float16"),
        (
            "(float16[2,8] x) => (float16[2,8] y) { y = ReduceMean<noop_with_empty_axes=1>(x) }",
            "nothing is reduced",
        ),
        (
            "(float16[2,8] x, int64[N] s) => (float16[M,K] y) "
            "{ r = Reshape(x, s) y = ReduceMean(r) }",
            "the rank of x is not known",
        ),
    ],
)
def test_what_is_left_alone(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
