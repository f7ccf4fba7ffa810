"""Certificates that are checked again: read, replayed, and what was proved as lines and as JSON."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tiered.cli.files import load_model
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, TargetError, VerificationError

if TYPE_CHECKING:
    from tiered.certify.regions.certificate_replay import Checked
    from tiered.certify.rewrite_records import Word


def check_again(path: str, first: str, second: str, *, as_json: bool) -> None:
    """Check a certificate again from two files, and print what was proved.

    Raises:
        VerificationError: it is of other files, or was changed.
        TargetError: a rewrite is not proved.
        ModelError: it cannot be read, or is no certificate.
    """
    held = _read_certificate(path, first, second)
    found: list[tuple[Checked, Word, str]] = []
    with Progress() as progress:
        progress.say(f"checking {printable(path)}")
        from tiered.certify.evaluation.values import Unproved
        from tiered.certify.regions.certificate_replay import CertificateReplay, Tampered

        try:
            replay = CertificateReplay(load_model(first), load_model(second), held)
            found += [(each, *_judged(each)) for each in replay.run()]
        except Tampered as error:
            raise VerificationError(
                f"{printable(path)} is no certificate of these files: {error}"
            ) from error
        except Unproved as error:
            raise TargetError(f"not certified: {error}") from error
    if as_json:
        print_json(
            {"before": first, "after": second, "rewrites": [_rewrite(*each) for each in found]}
        )
    else:
        for line in _said_of_rewrites(path, found):
            results().print(printable(line), soft_wrap=True)
    left = [f"{_numbers(each)}: {reason}" for each, word, reason in found if word == "unproved"]
    if left:
        raise TargetError(f"not certified: rewrite {printable(left[0])}")


def _numbers(each: Checked) -> str:
    first, last = each.numbers[0], each.numbers[-1]
    return f"#{first}" if first == last else f"#{first} to #{last}"


def _judged(each: Checked) -> tuple[Word, str]:
    """Return how rewrites are proved, and the reason where they are not."""
    if each.proof is None:
        return "bits", ""
    if each.proof.is_proved:
        return each.proof.word, ""
    from tiered.certify.evaluation.values import Unproved
    from tiered.certify.trial_runs import run_both
    from tiered.support.numerics import Numerics, Promise

    reason = each.proof.reason
    if each.problem is None or each.word != "run":
        return "unproved", reason
    try:
        ran = run_both(each.problem, Promise(Numerics.REASSOCIATING))
    except Unproved as error:
        return "unproved", f"{reason}; {error}"
    if ran.ok:
        return "run", reason
    return "unproved", f"{reason}; values that were made show a difference: {ran.comparison}"


def _said_of_rewrites(path: str, found: Sequence[tuple[Checked, Word, str]]) -> list[str]:
    from tiered.certify.axioms import RUNTIME
    from tiered.certify.rewrite_records import SAID

    counts = Counter(word for _, word, _ in found)
    how = ", ".join(f"{counts[word]:,} {SAID[word]}" for word in SAID if counts[word])
    total = len({number for each, *_ in found for number in each.numbers})
    steps = "" if total == len(found) else f" in {counted(len(found), 'step')}"
    lines = [f"{counted(total, 'rewrite')} of {path}{steps}: {how}"]
    lines += [
        f"  {_numbers(each)} {each.name}: {SAID[word]}: {reason}"
        for each, word, reason in found
        if word in ("run", "unproved")
    ]
    used = {axiom for each, *_ in found if each.proof for axiom in each.proof.axioms}
    if runtime := sorted(used & RUNTIME.keys()):
        lines.append(f"axioms of the runtime: {', '.join(runtime)}")
    if not counts["unproved"]:
        lines.append("certified: the rewrites lead from the first file to the second")
    return lines


def _rewrite(each: Checked, word: str, reason: str) -> dict[str, Any]:
    proof = each.proof
    return {
        "numbers": [*each.numbers],
        "pass": each.name,
        "proved": word,
        "sizes": [] if proof is None else [dict(sizes) for sizes in proof.sizes],
        "all_sizes": proof is not None and proof.is_for_all,
        "axioms": [] if proof is None else sorted(proof.axioms),
        "bound": 0.0 if proof is None else proof.bound,
        "reason": reason,
    }


def _read_certificate(path: str, *files: str) -> dict[str, Any]:
    """Return the certificate of a file.

    Raises:
        ModelError: it cannot be read, or is no certificate.
        VerificationError: it names other files.
    """
    try:
        with open(path, encoding="utf-8") as file:
            held: dict[str, Any] = json.load(file)
        named = [held["before"], held["after"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path!r} is no certificate: {error}") from error
    for name, entry in zip(files, named, strict=True):
        with open(name, "rb") as file_:
            digest = hashlib.file_digest(file_, "sha256").hexdigest()
        if not isinstance(entry, dict) or entry.get("sha256") != digest:
            of = entry.get("file") if isinstance(entry, dict) else "no file"
            raise VerificationError(
                f"{path!r} is the certificate of other files: it names {of!r}, not {name!r}"
            )
    return held
