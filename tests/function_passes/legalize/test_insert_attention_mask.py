import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "insert_attention_mask"
CHAIN = "{ f = Cast<to=1>(m) s = Sub(one, f) y = Mul(s, c) }"
CONSTANTS = "<float one = {1}, float c = {-10000}>"


def test_a_mask_of_bools_selects() -> None:
    head = "(bool[N,1,1,S] m) => (float[N,1,1,S] y)"
    assert_rewrites(
        PASS,
        f"{head} {CONSTANTS} {CHAIN}",
        f"{head} <float c = {{-10000}}, float z = {{-0.0}}> {{ n = Not(m) y = Where(n, c, z) }}",
    )


def test_a_binary_mask_of_integers_selects() -> None:
    text = f"(int64[4] m) => (float[4] y) {CONSTANTS} {CHAIN}"
    assert_unchanged(PASS, text, because="the mask may have elements other than 0 and 1")
    model = Model.from_proto(parse(text))
    get_pass(PASS).with_options(assume_binary=True).apply(model)
    assert len(model.main.nodes_of("Where")) == 1
    for numbers, equal in (([0, 1, 1, 0], True), ([0, 1, 2, 0], False)):
        m = {"m": np.array(numbers)}
        (before,), (after,) = run(parse(text), m).values(), run(model.to_proto(), m).values()
        assert (before.tobytes() == after.tobytes()) is equal


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(bool[2] m, float c) => (float[2] y) <float one = {1}> " + CHAIN,
            "the masked value is not one constant number",
        ),
        (
            "(bool[2] m) => (int32[2] y) <int32 one = {1}, int32 c = {-10000}> "
            + CHAIN.replace("to=1", "to=6"),
            "the scores are no floats",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
