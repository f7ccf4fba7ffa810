import pytest
from onnx import TensorProto, helper

from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "combine_parallel_dense"


def test_matrices_stand_side_by_side() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,2] a, float[2,2] b)"
        " <float[3,2] u = {1,2,3,4,5,6}, float[3,2] v = {6,5,4,3,2,1}>"
        " { a = MatMul(x, u) b = MatMul(x, v) }",
        "(float[2,3] x) => (float[2,2] a, float[2,2] b)"
        " <float[3,4] w = {1,2,6,5,3,4,4,3,5,6,2,1}, int64[2] sp = {2,2}>"
        " { t = MatMul(x, w) a, b = Split<axis=1>(t, sp) }",
        min_num_branches=2,
        min_depth=1,
    )


IO = "(float[N,2] x) => (float[N,1] a, float[N,2] b, float[N,1] c)"
WEIGHTS = "float[2,1] u = {1,2}, float[2,2] v = {3,4,5,6}, float[2,1] w = {7,8}"
JOINED = "float[2,4] w = {1,3,4,7,2,5,6,8}, int64[3] s = {1,2,1}"
PRODUCTS = "d = MatMul(x, u) e = MatMul(x, v) f = MatMul(x, w)"


def test_biases_and_activations_come_along() -> None:
    assert_rewrites(
        PASS,
        f"{IO} <{WEIGHTS}, float[1] i = {{1}}, float[2] j = {{2,3}}, float[1] k = {{4}}>"
        f" {{ {PRODUCTS} g = Add(d, i) h = Add(j, e) l = Add(f, k)"
        " a = Relu(g) b = Relu(h) c = Relu(l) }",
        f"{IO} <{JOINED}, float[4] k = {{1,2,3,4}}> {{ m = MatMul(x, w) t = Add(m, k)"
        " r = Relu(t) a, b, c = Split<axis=1>(r, s) }",
        min_depth=1,
    )


def test_a_bias_of_one_branch_stays_behind() -> None:
    assert_rewrites(
        PASS,
        f"{IO} <{WEIGHTS}, float[1] i = {{1}}> {{ d = MatMul(x, u) b = MatMul(x, v)"
        " c = MatMul(x, w) a = Add(d, i) }",
        f"{IO} <{JOINED}, float[1] i = {{1}}> {{ m = MatMul(x, w)"
        " d, b, c = Split<axis=1>(m, s) a = Add(d, i) }",
        min_depth=1,
    )


def test_gemms_with_equal_attributes() -> None:
    weights = "float[1,2] u = {1,2}, float[2,2] v = {3,4,5,6}, float[1,2] w = {7,8}"
    gemm = "Gemm<transB=1, alpha=0.5>"
    assert_rewrites(
        PASS,
        f"{IO} <{weights}, float[2] j = {{2,3}}>"
        f" {{ a = {gemm}(x, u) b = {gemm}(x, v, j) c = {gemm}(x, w) }}",
        f"{IO} <float[4,2] w = {{1,2,3,4,5,6,7,8}}, float[4] j = {{0,2,3,0}}, int64[3] s ="
        f" {{1,2,1}}> {{ m = {gemm}(x, w, j) a, b, c = Split<axis=1>(m, s) }}",
        min_depth=1,
    )


@pytest.mark.parametrize(
    ("branch", "least", "because"),
    [
        ("MatMul(y, w)", 1, "there are 2 parallel branches"),
        ("MatMul(x, k)", 1, "there are 2 parallel branches"),
        ("Gemm(x, w)", 1, "there are 2 parallel branches"),
        ("MatMul(x, u)", 1, "a weight has other consumers"),
        ("MatMul(x, w)", 16, "sums of length 2 are too short"),
    ],
)
def test_it_declines(branch: str, least: int, because: str) -> None:
    assert_unchanged(
        PASS,
        "(float[3,2] x, float[3,2] y, float[2,1] k)"
        " => (float[3,1] a, float[3,2] b, float[3,1] c)"
        f" <{WEIGHTS}> {{ a = MatMul(x, u) b = MatMul(x, v) c = {branch} }}",
        because=because,
        min_depth=least,
    )


def test_gemms_whose_bias_is_no_vector_are_no_branches() -> None:
    assert_unchanged(
        PASS,
        "(float[3,2] x) => (float[3,1] a, float[3,1] b, float[3,1] c)"
        " <float[2,1] u = {1,2}, float[2,1] v = {1,2}, float[2,1] w = {1,2}, float i = {1}>"
        " { a = Gemm(x, u, i) b = Gemm(x, v, i) c = Gemm(x, w, i) }",
        min_depth=1,
    )


def test_a_sparse_matrix_is_no_branch() -> None:
    model = parse(
        f"{IO} <{WEIGHTS}> {{ k = Constant() a = MatMul(x, u) b = MatMul(x, v) c = MatMul(x, k) }}"
    )
    values = helper.make_tensor("v", TensorProto.FLOAT, [1], [3.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [1])
    sparse = helper.make_sparse_tensor(values, indices, [2, 1])
    model.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse))
    assert_unchanged(PASS, model, because="there are 2 parallel branches", min_depth=1)
