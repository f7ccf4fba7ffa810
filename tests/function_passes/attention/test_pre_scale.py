import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "pre_scale"
CONSTANTS = ("float c = {0.5}", "float d = {3.0}", "float[1] e = {0.25}", "float[2,1] f = {1,2}")
INPUTS = "float[B,2,9,4] q, float[B,2,4,9] k"


def graph(nodes: str, inputs: str = INPUTS, y: str = "B,2,9,9") -> str:
    return f"({inputs}) => (float[{y}] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize("scale", ["Mul({}, c)", "Div({}, d)", "Mul({}, e)"])
def test_queries_are_scaled_instead_of_scores(scale: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = MatMul(q, k) t = {scale.format('s')} y = Softmax<axis=3>(t)"),
        graph(f"r = {scale.format('q')} s = MatMul(r, k) y = Softmax<axis=3>(s)"),
    )


def test_a_mask_is_added_to_scaled_scores() -> None:
    inputs = f"{INPUTS}, float[B,1,9,9] m"
    assert_rewrites(
        PASS,
        graph("s = MatMul(q, k) t = Mul(s, c) u = Add(t, m) y = Softmax(u)", inputs),
        graph("r = Mul(q, c) s = MatMul(r, k) u = Add(s, m) y = Softmax(u)", inputs),
    )


@pytest.mark.parametrize(
    ("nodes", "inputs", "because"),
    [
        ("s = MatMul(q, k) y = Softmax(s)", INPUTS, "the scores are not scaled"),
        (
            "s = MatMul(q, k) t = Mul(s, c) y = Softmax(t)",
            INPUTS.replace("9] k", "T] k"),
            "head size and sequence length are not known",
        ),
        (
            "s = MatMul(q, k) t = Mul(s, c) y = Softmax(t)",
            INPUTS.replace("9,4] q", "9,9] q").replace("4,9] k", "9,9] k"),
            "queries are not smaller than scores",
        ),
        (
            "s = MatMul(q, k) t = Mul(s, c) y = Softmax(t)",
            INPUTS.replace("[B,2,4,9] k", "[4,9] k"),
            "ranks of queries and keys may differ",
        ),
    ],
)
def test_convolutions_too_small_to_combine_stay(nodes: str, inputs: str, because: str) -> None:
    y = "B,2,9,T" if "T]" in inputs else "B,2,9,9"
    assert_unchanged(PASS, graph(nodes, inputs, y), because=because)


def test_scores_that_others_read_stay() -> None:
    text = graph("s = MatMul(q, k) t = Mul(s, c) y = Softmax(t)").replace(
        "(float[B,2,9,9] y)", "(float[B,2,9,9] y, float[B,2,9,9] t)"
    )
    assert_unchanged(PASS, text)


@pytest.mark.parametrize(
    ("q", "k", "y"), [("B,2,S,4", "B,2,4,T", "B,2,S,T"), ("2,2,3,8", "2,2,8,3", "2,2,3,3")]
)
def test_always_also_where_it_saves_nothing(q: str, k: str, y: str) -> None:
    inputs = f"float[{q}] q, float[{k}] k"
    assert_rewrites(
        PASS,
        graph("s = MatMul(q, k) t = Mul(s, c) y = Softmax(t)", inputs, y),
        graph("r = Mul(q, c) s = MatMul(r, k) y = Softmax(s)", inputs, y),
        always=True,
    )
