"""When weights are stored in few bits, and what is said when none is."""

import pytest

from tiered.testing import assert_unchanged

PASSES = ("weights_to_int8", "weights_to_int4")
HELD = "<float[2,2] w = {1,2,3,4}>"


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            f"() => (float[2,2] y) {HELD} {{ y = MatMul(w, w) }}",
            "no weight is stored in few bits: all that it reads is constant",
        ),
        (
            f"(float[2,2] x, float[2,2] w) => (float[2,2] y) {HELD} {{ y = MatMul(x, w) }}",
            "no weight is stored in few bits: the weight is an input, which callers may feed",
        ),
    ],
)
def test_the_first_reason_is_that_of_the_model(name: str, text: str, because: str) -> None:
    assert_unchanged(name, text, because=because)
