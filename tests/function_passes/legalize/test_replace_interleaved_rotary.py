import pytest

from tiered import get_backend, optimize_model
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_interleaved_rotary"
ANGLES = "float[1,3,4] c, float[1,3,4] s"


def test_neighbours_become_halves() -> None:
    assert_rewrites(
        PASS,
        f"(float[1,2,3,8] x, {ANGLES}) => (float[1,2,3,8] y)"
        " { y = RotaryEmbedding<interleaved=1>(x, c, s) }",
        f"(float[1,2,3,8] x, {ANGLES}) => (float[1,2,3,8] y)"
        " <int64[3] a = {6,4,2}, int64[4] b = {1,2,3,8}, int64[3] d = {6,2,4}, int64[4] e = {1,2,3,8}> {"
        " f = Reshape(x, a)  g = Transpose<perm=[0,2,1]>(f)  h = Reshape(g, b)"
        " r = RotaryEmbedding<interleaved=0>(h, c, s)"
        " i = Reshape(r, d)  j = Transpose<perm=[0,2,1]>(i)  y = Reshape(j, e) }",
        opset=23,
    )


@pytest.mark.parametrize(
    ("call", "because"),
    [
        ("RotaryEmbedding(x, c, s)", "its pairs are halves already"),
        (
            "RotaryEmbedding<interleaved=1, rotary_embedding_dim=4>(x, d, e)",
            "it rotates a part of each head",
        ),
    ],
)
def test_others_stay(call: str, because: str) -> None:
    text = f"""(float[1,2,3,8] x, {ANGLES}, float[1,3,2] d, float[1,3,2] e)
        => (float[1,2,3,8] y) {{ y = {call} }}"""
    assert_unchanged(PASS, text, because=because, opset=23)


def test_unknown_sizes_stay() -> None:
    text = """(float[N,2,3,8] x, float[N,3,4] c, float[N,3,4] s) => (float[N,2,3,8] y) {
        y = RotaryEmbedding<interleaved=1>(x, c, s) }"""
    assert_unchanged(PASS, text, because="the shape is not known, or has no elements", opset=23)


@pytest.mark.parametrize(("shape", "heads"), [("1,2,3,8", ""), ("1,3,16", ", num_heads=2")])
def test_neighbours_in_integers(shape: str, heads: str) -> None:
    text = f"""(float[{shape}] x, {ANGLES}) => (float[{shape}] y) {{
        y = RotaryEmbedding<interleaved=1{heads}>(x, c, s) }}"""
    result = optimize_model(
        parse(text, opset=23),
        backend="int8_npu",
        opt_level=3,
        required=["quantize"],
    )
    assert get_backend("int8_npu").coverage(result.model).is_met
