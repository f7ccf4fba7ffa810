"""Certify: an instrument that proves each rewrite on the model where it happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from tiered.certify.checker import METHODS, Checker, Proof
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Problem
from tiered.certify.regions.watched_rewrites import Kind, Watched, Way
from tiered.certify.rewrite_records import Certified, Findings
from tiered.certify.trial_runs import run_both
from tiered.graph import Model, RewriteRecord
from tiered.support.errors import RuntimeFailure, UsageError, VerificationError
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.passes.interface.pass_info import PassInfo

Names = tuple[int, str, str, str, int | None]
"""What names a rewrite: its number, pass, law, node and level."""
HOPELESS: Final = ("no rule for", "more than")
"""What a larger region does not help against: operators without a rule, and too many elements."""
STRICT_LEVEL: Final = 2
"""`strict` demands a proof of each rewrite up to this level."""


class Certify:
    """An instrument that proves each rewrite, by a checker that knows no pass.

    Args:
        strict: raise if a rewrite of levels 0 to 2 is not proved, or one of any level is refuted.
        file: where the certificate will be written; the region of each rewrite is kept for it.
        runs: run what is not proved.

    Attributes:
        findings: what was found so far.
    """

    is_required: Final = True
    """An error in it ends the run, else its silence would pass for a proof."""

    def __init__(self, *, strict: bool = False, file: str | None = None, runs: bool = True) -> None:
        self.findings = Findings()
        self.strict = strict
        self.file = file
        self._keeps = file is not None
        self._runs = runs
        self._checker = Checker(METHODS)
        self._watched: WeakKeyDictionary[Model, Watched] = WeakKeyDictionary()
        self._open: list[int] = []
        self._ways: dict[tuple[str, str], dict[Kind, Way]] = {}

    # --- hooks ------------------------------------------------------------------------------------

    def exit_pass_ctx(self) -> None:
        self._watched.clear()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._open.append(len(self.findings.rewrites))
        watched = self._watched.get(model)
        if watched is None or watched.is_undone():
            self._watched[model] = Watched(model)

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        watched = self._watched[model]
        if watched.is_undone():
            # What was undone within a pass was part of no rewrite.
            watched = self._watched[model] = Watched(model)
            self._note(
                info,
                record,
                Certified(*_named(info, record), "unproved", reason="edits before it were undone"),
            )
            return
        self._note(info, record, self._judged(watched, info, record))

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        self._open.pop()
        watched = self._watched.get(model)
        if watched is None or info.kind == "pipeline" or watched.is_undone():
            return
        if watched.has_changed():
            # Nodes that are pruned after the last rewrite.
            found = self._judged(watched, info, None)
            if not found.is_proved:
                self._note(info, None, found)

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        del self.findings.rewrites[self._open.pop() :]
        self._watched.pop(model, None)

    # --- judging ----------------------------------------------------------------------------------

    def _note(self, info: PassInfo, record: RewriteRecord | None, found: Certified) -> None:
        self.findings.rewrites.append(found)
        is_due = info.opt_level is not None and info.opt_level <= STRICT_LEVEL
        if self.strict and (found.word == "refuted" or (is_due and not found.is_proved)):
            raise VerificationError(
                f"{info.name} is not certified: {found.reason or found.word}\n"
                f"  rewrite   #{found.number} of the run, at {found.anchor or 'no node'}"
            )

    def _judged(self, watched: Watched, info: PassInfo, record: RewriteRecord | None) -> Certified:
        """Return what is known of the change since the last one."""
        names = _named(info, record)
        tried: list[tuple[Problem, Proof]] = []
        surmised: list[tuple[Problem, Proof]] = []
        whole: Problem | None = None
        is_hopeless = False
        reason, is_exact = "", info.numerics is Numerics.EXACT
        ways = self._ways.setdefault(names[1:3], {})
        for change in watched.changes(ways):
            if isinstance(change, Unproved):
                reason = reason or str(change)
                continue
            problem = change.problem
            if problem is None:
                return Certified(*names, "bits")
            if change.is_whole:
                whole = problem
            if change.is_whole or is_hopeless:
                continue
            way = change.way
            like = None if way is None else way.proof
            proof = self._checker.prove(problem, bits_only=is_exact, like=like)
            kept = problem if self._keeps else None
            if proof.is_proved:
                ways[change.kind] = Way(change.steps, proof)
                return Certified(*names, proof.word, proof, kept)
            if way is not None:
                surmised.append((problem, proof))
                continue
            tried.append((problem, proof))
            is_hopeless = proof.reason.startswith(HOPELESS)
        tried += surmised
        if info.changes_interface:
            return Certified(*names, "interface", reason=reason)
        if not tried:
            return Certified(*names, "unproved", reason=reason or "no region can be cut out")
        return self._ran(names, info, tried, whole)

    def _ran(
        self,
        names: Names,
        info: PassInfo,
        tried: Sequence[tuple[Problem, Proof]],
        whole: Problem | None,
    ) -> Certified:
        """Return what runs show of regions that are not proved.

        Only a region that begins at the inputs of the model refutes: the borders of others may get
        values that never occur.
        """
        problem, proof = tried[0]
        kept = problem if self._keeps else None
        if not self._runs:
            return Certified(*names, "unproved", proof, kept, proof.reason)
        failed = ""
        regions = [region for region, _ in reversed(tried)]
        for region in regions if whole is None else (*regions, whole):
            try:
                ran = run_both(region, info.promise)
            except (Unproved, RuntimeFailure) as error:
                failed = failed or f"{proof.reason}; {error}"
                continue
            if ran.ok:
                return Certified(*names, "run", proof, kept, proof.reason)
            sizes = ", ".join(f"{name}={size}" for name, size in ran.sizes.items())
            reason = f"{ran.comparison}{f' at {sizes}' if sizes else ''}"
            if region is whole:
                kept = region if self._keeps else None
                return Certified(*names, "refuted", proof, kept, reason, ran.feeds)
            failed = f"{proof.reason}; values that were made show a difference: {reason}"
        return Certified(*names, "unproved", proof, kept, failed)


def certify_of(how: bool | str) -> Certify:
    """Return the instrument for the value of `--certify`.

    Raises:
        UsageError: it is neither "on", "strict", a name that ends in .json, nor both.
    """
    if how is True or how == "on":
        return Certify()
    words = str(how).split(",", 1)
    is_strict = words[0] == "strict"
    file = words[-1] if not is_strict or len(words) > 1 else None
    if file is not None and not file.endswith(".json"):
        raise UsageError(f"certify takes strict, or a file that ends in .json, not {file!r}")
    return Certify(strict=is_strict, file=file)


def _named(info: PassInfo, record: RewriteRecord | None) -> Names:
    if record is None:
        return 0, info.name, "", "", info.opt_level
    return record.number, info.name, record.law, record.node_name, info.opt_level
