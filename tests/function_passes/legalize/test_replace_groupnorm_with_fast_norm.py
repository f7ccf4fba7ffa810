import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_close, assert_equal, floats
from tiered.support.errors import UsageError
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_groupnorm_with_fast_norm"
HEAD = "(float[N,2,3] x, float[2] s, float[2] b) => (float[N,2,3] y)"
TEXT = f"{HEAD} {{ y = GroupNormalization<num_groups=1>(x, s, b) }}"
FEEDS = {"x": floats(2, 2, 3), "s": floats(2), "b": floats(2, seed=1)}


def test_one_group_is_one_layer() -> None:
    ones = ",".join("1" * 6)
    assert_rewrites(
        PASS,
        TEXT,
        f"{HEAD} <int64[2] f = {{0,6}}, float[6] o = {{{ones}}}, int64[3] k = {{0,2,3}}, "
        "int64[2] c = {-1,1}> { v = Reshape(x, f) n = LayerNormalization(v, o) "
        "m = Reshape(n, k) p = Reshape(s, c) t = Mul(m, p) q = Reshape(b, c) y = Add(t, q) }",
    )


def test_the_target_may_have_an_operator() -> None:
    assert assert_equal(PASS, TEXT, FEEDS, custom="ai.graphcore::FastNorm") == ["FastNorm"]


def test_half_floats() -> None:
    half = {name: array.astype(np.float16) for name, array in FEEDS.items()}
    assert_close(PASS, TEXT.replace("float[", "float16["), half)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (TEXT.replace(",3]", ",L]"), "channels and image size are not known"),
        (
            TEXT.replace("float[", "bfloat16["),
            "the dtype of x is not known",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_several_groups_stay() -> None:
    assert_unchanged(PASS, TEXT.replace("num_groups=1", "num_groups=2"))


def test_the_operator_has_a_domain() -> None:
    with pytest.raises(UsageError, match="'FastNorm' is no domain::Name"):
        assert_unchanged(PASS, TEXT, custom="FastNorm")
