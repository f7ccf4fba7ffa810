import pytest

from tiered.extensions.measurement.claims import Claim, parse_claim
from tiered.extensions.measurement.medians import MedianInterval
from tiered.support.errors import UsageError


def between(low: float, high: float) -> MedianInterval:
    return MedianInterval(low, (low + high) / 2, high, 0.99)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("B<=0.9*A", Claim(1, "<=", 0.9, 0)),
        (" B <= 0.9 * A ", Claim(1, "<=", 0.9, 0)),
        ("B<A", Claim(1, "<", 1.0, 0)),
        ("A>=2*C", Claim(0, ">=", 2.0, 2)),
        ("C>1.05*B", Claim(2, ">", 1.05, 1)),
    ],
)
def test_an_expectation_is_parsed(text: str, claim: Claim) -> None:
    assert parse_claim(text, 3) == claim
    assert parse_claim(str(claim), 3) == claim


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("B<=0.9A", "expected two models and perhaps a factor, as in B<=0.9*A"),
        ("b<=0.9*A", "as in B<=0.9*A"),
        ("B=A", "as in B<=0.9*A"),
        ("B==A", "as in B<=0.9*A"),
        ("B<=-1*A", "as in B<=0.9*A"),
        ("B<=1e3*A", "as in B<=0.9*A"),
        ("B<=.9*A", "as in B<=0.9*A"),
        ("B<=5ms", "as in B<=0.9*A"),
        ("", "as in B<=0.9*A"),
        ("B<=0*A", "the factor is 0"),
        ("B<=B", "one model on both sides"),
        ("D<=A", "no model D; the models are A to C"),
    ],
)
def test_what_is_no_expectation_is_an_error(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_claim(text, 3)
    assert said in str(raised.value)
    assert repr(text) in str(raised.value)


def test_a_single_model_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="no model B; A is the only model"):
        parse_claim("B<=A", 1)


def test_the_whole_interval_must_be_on_the_side() -> None:
    claim = parse_claim("B<=0.9*A", 2)
    assert claim.holds(between(0.8, 0.9))
    assert not claim.holds(between(0.85, 0.91))
    assert not claim.is_refuted(between(0.85, 0.91))
    assert claim.is_refuted(between(0.91, 1.0))
    claim = parse_claim("B>2*A", 2)
    assert claim.holds(between(2.1, 2.2))
    assert not claim.holds(between(2.0, 2.2))
    assert claim.is_refuted(between(1.5, 1.9))
    assert parse_claim("B>=2*A", 2).holds(between(2.0, 2.2))
    assert not parse_claim("B<2*A", 2).holds(between(1.9, 2.0))
    assert not parse_claim("B<=0.9*A", 2).is_refuted(between(0.9, 1.0))
    assert not parse_claim("B>2*A", 2).is_refuted(between(1.5, 2.0))
