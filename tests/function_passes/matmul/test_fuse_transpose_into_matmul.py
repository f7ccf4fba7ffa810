import numpy as np
import onnxruntime
import pytest

import tiered
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_transpose_into_matmul"
SHARED = (
    "(float[3,4] x, float[3] v) => (float[4] y, float[4,3] z) "
    "{ t = Transpose<perm=[1,0]>(x) y = MatMul(t, v) z = Softmax(t) }"
)


def test_a_vector_is_multiplied_from_the_left() -> None:
    assert_rewrites(
        PASS,
        "(double[N,M] x, double[N] v) => (double[M] y) "
        "{ t = Transpose<perm=[1,0]>(x) y = MatMul(t, v) }",
        "(double[N,M] x, double[N] v) => (double[M] y) { y = MatMul(v, x) }",
    )
    assert_rewrites(
        PASS,
        "(float[N,3,4] x) => (float[N,4] y) <float[3] v = {1,2,3}> "
        "{ t = Transpose<perm=[0,2,1]>(x) y = MatMul(t, v) }",
        "(float[N,3,4] x) => (float[N,4] y) <float[3] v = {1,2,3}> { y = MatMul(v, x) }",
    )


def test_a_transpose_that_others_read_is_bypassed() -> None:
    assert_rewrites(
        PASS,
        SHARED,
        "(float[3,4] x, float[3] v) => (float[4] y, float[4,3] z) "
        "{ y = MatMul(v, x) t = Transpose<perm=[1,0]>(x) z = Softmax(t) }",
    )


def test_a_cast_between_them_is_made_of_what_was_transposed() -> None:
    assert_rewrites(
        PASS,
        "(float16[3,4] x, float[3] v) => (float[4] y, float[4,3] z) "
        "{ t = Transpose<perm=[1,0]>(x) c = Cast<to=1>(t) y = MatMul(c, v) z = Softmax(c) }",
        "(float16[3,4] x, float[3] v) => (float[4] y, float[4,3] z) "
        "{ d = Cast<to=1>(x) y = MatMul(v, d)"
        " t = Transpose<perm=[1,0]>(x) c = Cast<to=1>(t) z = Softmax(c) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[3,4] x, float[] v) => (float[] y) "
            "{ t = Transpose<perm=[1,0]>(x) y = MatMul(t, v) }",
            "the rank of the second factor is not known",
        ),
        (
            "(float[3,4] x, float[3,1] v) => (float[4,1] y) "
            "{ t = Transpose<perm=[1,0]>(x) y = MatMul(t, v) }",
            "the second factor is not a vector",
        ),
        (
            "(float[2,3,4] x, float[2] v) => (float[4,3] y) "
            "{ t = Transpose<perm=[2,1,0]>(x) y = MatMul(t, v) }",
            None,
        ),
        (
            "(float[3,4] x, float[4] v) => (float[3] y) "
            "{ t = Transpose<perm=[1,0]>(x) y = MatMul(v, t) }",
            None,
        ),
    ],
)
def test_other_products_keep_their_transpose(text: str, because: str | None) -> None:
    assert_unchanged(PASS, text, because=because)


@pytest.mark.parametrize(
    "text",
    [
        SHARED,
        "(float[3,4] x, float[3] v) => (float[4] y) "
        "{ r = Relu(x) t = Transpose<perm=[1,0]>(r) s = Sigmoid(t) y = MatMul(s, v) }",
        "(float[2,3,4] x, float[3] v) => (float[4,2] y) "
        "{ t = Transpose<perm=[0,2,1]>(x) m = MatMul(t, v) y = Transpose<perm=[1,0]>(m) }",
        "(float16[3,4] x, float[3] v) => (float[4] y, float[4,3] z) "
        "{ t = Transpose<perm=[1,0]>(x) c = Cast<to=1>(t) y = MatMul(c, v) z = Softmax(c) }",
    ],
)
def test_issue_19_the_default_session_of_onnxruntime_gives_the_same(text: str) -> None:
    source = parse(text)
    result = tiered.optimize(source, opt_level=3)
    shapes = {
        info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in source.graph.input
    }
    random = np.random.default_rng(0)
    feeds = {
        name: random.standard_normal(shape).astype(
            "e" if "float16" in text and name == "x" else "f"
        )
        for name, shape in shapes.items()
    }
    session = onnxruntime.InferenceSession(
        result.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected, actual = run(source, feeds), session.run(None, feeds)
    for name, array in zip(expected, actual, strict=True):
        np.testing.assert_allclose(array, expected[name], rtol=1e-3, atol=1e-4)
