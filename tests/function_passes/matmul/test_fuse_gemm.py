import pytest

from tiered import optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_gemm"


@pytest.mark.parametrize("shape", ["[4]", "[1,4]", "[1]", "", "[N,4]", "[N,1]"])
@pytest.mark.parametrize("operands", ["t, c", "c, t"])
def test_matrices_are_multiplied_and_added_to_at_once(shape: str, operands: str) -> None:
    interface = f"(float[N,3] a, float[3,4] b, float{shape} c) => (float[N,4] y)"
    assert_rewrites(
        PASS,
        f"{interface} {{ t = MatMul(a, b) y = Add({operands}) }}",
        f"{interface} {{ y = Gemm(a, b, c) }}",
    )


def test_a_gemm_without_c_takes_one() -> None:
    interface = "(float[3,N] a, float[3,4] b, float[4] c) => (float[N,4] y)"
    assert_rewrites(
        PASS,
        f"{interface} {{ t = Gemm<transA=1, alpha=0.5, beta=3.0>(a, b) y = Add(t, c) }}",
        f"{interface} {{ y = Gemm<transA=1, alpha=0.5>(a, b, c) }}",
    )


def test_a_gemm_that_adds_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y)"
        " { t = Gemm(a, b, c) y = Add(t, c) }",
    )


def test_more_dims_would_need_reshapes() -> None:
    assert_unchanged(
        PASS,
        "(float[2,2,3] a, float[3,4] b, float[4] c) => (float[2,2,4] y)"
        " { t = MatMul(a, b) y = Add(t, c) }",
        because="Reshapes around a Gemm cost too much",
    )


def test_without_a_rank_nothing_is_known() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[n] s, float[3,4] b, float[4] c) => (y)"
        " { a = Reshape(x, s) t = MatMul(a, b) y = Add(t, c) }",
        because="the rank of a factor is not known",
    )


def test_integers_stay() -> None:
    assert_unchanged(
        PASS,
        "(int32[2,3] a, int32[3,4] b, int32[4] c) => (int32[2,4] y)"
        " { t = MatMul(a, b) y = Add(t, c) }",
        because="Gemm has no kernel for the dtype",
    )


@pytest.mark.parametrize("shape", ["[5,4]", "[1,1,4]", "[N,4]", "[n]"])
def test_what_is_added_may_not_be_larger(shape: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[1,3] a, float[3,4] b, float{shape} c) => (y) {{ t = MatMul(a, b) y = Add(t, c) }}",
        because="the addend may be larger than the product",
    )


def test_before_opset_11_a_gemm_must_add() -> None:
    interface = "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y)"
    assert_rewrites(
        PASS,
        f"{interface} {{ t = MatMul(a, b) y = Add(t, c) }}",
        f"{interface} {{ y = Gemm(a, b, c) }}",
        opset=7,
    )


def test_a_product_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y, float[2,4] t)"
        " { t = MatMul(a, b) y = Add(t, c) }",
        because="an inner value is a graph output",
    )


@pytest.mark.parametrize("tokens", ["Identity(x)", "Flatten(h)"])
def test_the_counts_of_words_are_a_matrix(tokens: str) -> None:
    text = f"""(string[N,2] x, int64[K] s) => (float[N,2] y)
        <float[2,2] w = {{1,2,3,4}}, float[2] b = {{1,2}}> {{
        h = Reshape(x, s)  k = {tokens}
        t = TfIdfVectorizer<max_gram_length=1, max_skip_count=0, min_gram_length=1, mode="TF",
            ngram_counts=[0], ngram_indexes=[0,1], pool_strings=["a","b"]>(k)
        m = MatMul(t, w)  y = Add(m, b) }}"""
    result = optimize(parse(text), opt_level=3)
    assert [node.op_type for node in result.graph.node][-2:] == ["TfIdfVectorizer", "Gemm"]
