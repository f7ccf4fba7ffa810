"""The verdict on a run: what was proved, and the reasons for what was not."""

from typing import Literal

import pytest

from tiered.runtime.compare.outputs import Comparison, OutputDifference
from tiered.support.errors import TargetError
from tiered.support.numerics import Numerics
from tiered.verify.methods import VerificationMethod
from tiered.verify.verdict import Verdict, Word, verdict_of, why_empty


def way(
    by: Literal["model", "region", "sameness", "nothing"], why: str = "", *left_out: str
) -> VerificationMethod:
    return VerificationMethod("fuse_gelu", by, 2, "generated", why=why, left_out=left_out)


@pytest.mark.parametrize(
    ("ways", "word", "why"),
    [
        ([], "nothing to verify", "no pass changed anything"),
        ([way("sameness")], "nothing to verify", "no pass changed what is computed"),
        ([way("model")], "yes", ""),
        ([way("region")], "yes", ""),
        ([way("model"), way("sameness")], "yes", ""),
        ([way("nothing", "too large")], "no", "fuse_gelu: too large"),
        ([way("nothing")], "no", "fuse_gelu: nothing ran"),
        ([way("sameness"), way("nothing", "too large")], "no", "fuse_gelu: too large"),
        ([way("region"), way("nothing", "too large")], "in part", "fuse_gelu: too large"),
        (
            [way("nothing", "b"), way("model"), way("nothing", "a"), way("nothing", "b")],
            "in part",
            "fuse_gelu: b; fuse_gelu: a",
        ),
        (
            [way("model", "", "y (random)"), way("region", "", "z (random)", "y (random)")],
            "yes",
            "y (random), z (random)",
        ),
    ],
)
def test_a_verdict_is_that_of_all_passes(
    ways: list[VerificationMethod], word: Word, why: str
) -> None:
    assert verdict_of(ways) == Verdict(word, why)


@pytest.mark.parametrize(
    ("verdict", "text"),
    [(Verdict("yes"), "yes"), (Verdict("in part", "p: it"), "in part (p: it)")],
)
def test_a_verdict_reads_as_its_word_and_the_reason(verdict: Verdict, text: str) -> None:
    assert str(verdict) == text


def test_only_yes_is_a_proof_and_only_no_is_an_error() -> None:
    words: tuple[Word, ...] = ("yes", "in part", "nothing to verify", "no", "structure only")
    assert [Verdict(word).is_proved for word in words] == [True, False, False, False, False]
    for word in words:
        if word != "no":
            Verdict(word, "a reason").raise_if_not()
    with pytest.raises(TargetError, match="not verified: it is too large"):
        Verdict("no", "it is too large").raise_if_not()


def comparison(**notes: str) -> Comparison:
    outputs = [OutputDifference(name, True, note=note) for name, note in notes.items()]
    return Comparison(outputs, Numerics.EXACT)


def test_nothing_was_compared_if_no_sample_has_numbers() -> None:
    assert why_empty([comparison(y="")], ["a reason"]) == ""
    assert why_empty([comparison(y="random"), comparison(y="")], ["a reason"]) == ""
    assert why_empty([comparison(y="random", z="")], ["a reason"]) == ""
    assert why_empty([comparison(y="random")], []) == "y (random)"
    assert why_empty([comparison(y="random")], ["b", "a", "b"]) == "b; a; y (random)"
    assert why_empty([], []) == "the models have no output in common"
    assert why_empty([comparison()], []) == "the models have no output in common"
