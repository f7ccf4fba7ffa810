"""Powers of two that a caller gives are integers of named nodes, in the range of normal floats."""

import pytest

from tiered.numerics.precision.few_bits.exponents import Exponents
from tiered.support.errors import UsageError


def test_exponents_are_read_from_text() -> None:
    assert Exponents.of(None, ["encoder/*=-3", "a=b=4"]).by_node == (("encoder/*", -3), ("a=b", 4))
    for number in (-126, 127):
        assert Exponents.of(number, [f"n={number}"]).other == number


@pytest.mark.parametrize("entry", ["encoder", "=3", "encoder=", "encoder=half", ""])
def test_an_entry_has_a_name_and_an_integer(entry: str) -> None:
    with pytest.raises(UsageError, match="expected NODE=INTEGER"):
        Exponents.of(None, [entry])


@pytest.mark.parametrize("number", [-1000, 1000])
def test_a_scale_is_a_normal_float(number: int) -> None:
    for other, entries in ((number, []), (None, [f"n={number}"]), (0, ["m=1", f"n={number}"])):
        with pytest.raises(UsageError, match=f"exponent {number}: expected"):
            Exponents.of(other, entries)
