"""Why a conversion converted nothing: the most frequent reasons, and how many more there are."""

import pytest

from tests.small import parsed
from tiered.numerics.precision.nothing import nothing_converted
from tiered.rewriter import Unable


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ("a", "2 Neg: a"),
        ("abc", "2 Neg: a; 1 Neg: b; 1 Neg: c"),
        ("abcd", "2 Neg: a; 1 Neg: b; 1 Neg: c; and 1 more reason"),
        ("abcde", "2 Neg: a; 1 Neg: b; 1 Neg: c; and 2 more reasons"),
    ],
)
def test_the_most_frequent_reasons_are_in_the_error(kinds: str, said: str) -> None:
    steps = "  ".join(f"v{at} = Neg(x)" for at in range(len(kinds) + 1))
    model = parsed(f"(float[2] x) => (float[2] v0) {{ {steps} }}")
    first, *nodes = model.main.topological_order()
    kept = [(first, "a"), (first, "a"), *zip(nodes, kinds, strict=True)]
    found = nothing_converted("no node computes in float16", kept)
    assert isinstance(found, Unable)
    assert found.despite_edits
    assert str(found) == f"no node computes in float16: {said}"
