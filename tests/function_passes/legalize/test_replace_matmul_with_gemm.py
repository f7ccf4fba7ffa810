from pathlib import Path

from tiered import optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_matmul_with_gemm"


def test_matrices_are_multiplied_by_a_gemm() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] a, float[3,2] b) => (float[N,2] y) { y = MatMul(a, b) }",
        "(float[N,3] a, float[3,2] b) => (float[N,2] y) { y = Gemm(a, b) }",
    )


def test_nothing_to_sum_gives_zeros() -> None:
    assert_rewrites(
        PASS,
        "(float[2,0] a, float[0,2] b) => (float[2,2] y) { y = MatMul(a, b) }",
        "(float[2,0] a, float[0,2] b) => (float[2,2] y) { y = Gemm(a, b) }",
    )


def test_a_stack_of_matrices_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[4,2,3] a, float[3,2] b) => (float[4,2,2] y) { y = MatMul(a, b) }",
        because="an operand is not known to be a matrix",
    )


def test_integers_stay() -> None:
    assert_unchanged(
        PASS,
        "(int32[2,3] a, int32[3,2] b) => (int32[2,2] y) { y = MatMul(a, b) }",
        because="the factors are not floats",
    )


def test_an_old_gemm_has_a_bias() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] a, float[3,2] b) => (float[2,2] y) { y = MatMul(a, b) }",
        because="before opset 11 a Gemm has a bias",
        opset=10,
    )


def test_a_target_without_matmul_gets_one(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('api_version = 1\nname = "own"\ndoc = "."\n[operators]\nGemm = true\n')
    model = parse("(float[2,3] a, float[3,2] b) => (float[2,2] y) { y = MatMul(a, b) }")
    made = optimize(model, opt_level=3, backend=str(file))
    assert [node.op_type for node in made.graph.node] == ["Gemm"]
