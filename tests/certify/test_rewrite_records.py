"""Findings: how each rewrite was proved, in words, and how many in which way."""

from typing import Any

import pytest

from tiered.certify.checker import Proof
from tiered.certify.rewrite_records import SAID, Certified, Findings, Word


def certified(word: Word, proof: Proof | None = None, reason: str = "") -> Certified:
    return Certified(7, "fuse_gelu", "a law", "node", 3, word, proof, reason=reason)


@pytest.mark.parametrize(
    ("word", "proof", "reason", "how"),
    [
        ("bits", None, "", "bit for bit"),
        ("bits", Proof("bits", axioms=frozenset({"add-commutes"})), "", "bit for bit"),
        (
            "bits",
            Proof("bits", axioms=frozenset({"pow-is-product", "add-commutes", "no-zeros-meet"})),
            "",
            "bit for bit (by axioms of the runtime: no-zeros-meet, pow-is-product)",
        ),
        ("reals", Proof("reals", bound=0.512), "", "over the reals (constants within 0.51 ulps)"),
        ("reals", Proof("reals", is_for_all=True), "", "over the reals for all sizes"),
        (
            "reals",
            Proof("reals", axioms=frozenset({"no-zeros-meet"}), bound=2.0, is_for_all=True),
            "why",
            "over the reals (by axioms of the runtime: no-zeros-meet) (constants within 2 ulps) "
            "for all sizes: why",
        ),
        ("run", Proof("", bound=2.0, axioms=frozenset({"no-zeros-meet"})), "why", "by runs: why"),
        ("refuted", None, "y differs", "REFUTED: y differs"),
        ("unproved", None, "", "not proved"),
        ("interface", None, "", "change the interface"),
    ],
)
def test_how_a_rewrite_was_proved(word: Word, proof: Any, reason: str, how: str) -> None:
    found = certified(word, proof, reason)
    assert found.how == how
    assert str(found) == f"#7 fuse_gelu: {how}"
    assert found.is_proved == (word in ("bits", "reals"))


def test_counts_are_in_one_order() -> None:
    words: list[Word] = ["unproved", "bits", "run", "bits", "refuted"]
    found = Findings([certified(word) for word in words])
    assert found.counts() == {"bits": 2, "run": 1, "refuted": 1, "unproved": 1}
    assert list(found.counts()) == ["bits", "run", "refuted", "unproved"]
    assert list(SAID) == ["bits", "reals", "run", "interface", "refuted", "unproved"]
    assert [each.word for each in found.left()] == ["unproved", "run", "refuted"]


def test_findings_read_as_one_line() -> None:
    assert str(Findings()) == "no rewrites"
    assert str(Findings([certified("bits")])) == "1 rewrite: 1 bit for bit"
    proofs = [Proof("bits", [{"N": 2}], is_for_all=True), Proof("bits", [{"N": 2}]),
              Proof("bits", [{}], is_for_all=True), None]  # fmt: skip
    found = Findings([*(certified("bits", proof) for proof in proofs), certified("unproved")])
    assert str(found) == ("5 rewrites: 4 bit for bit, 1 not proved; 1 of 2 of named sizes for all")
    many = Findings([certified("run")] * 1234)
    assert str(many) == "1,234 rewrites: 1,234 by runs"
