"""The report of a context: a result for each decision, and remarks that summarise them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from tiered.passes.interface.pass_info import NodeNote, PassInfo, PassResult
from tiered.support.amounts import counted
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.rewriter import Skip


RemarkKind = Literal[
    "applied",
    "missed",
    "failed",
    "analysis",
    "skipped",
    "deprecated",
    "unmet",
    "hook",
    "check",
    "verify",
]


class Remark(Record):
    """One remark, with its number of occurrences.

    Kinds: `applied` (rewrites made), `missed` (nodes not rewritten, with the `Skip` reason),
    `failed` (a pass raised and was undone), `analysis` (what a pass found), `skipped` (a pass did
    not run), `deprecated` (a pass ran that will be removed), `unmet` (an entry of `required` or
    `disabled` selected no pass), `hook` (a hook raised), `check` (a check failed and was
    suppressed), `verify` (a remark of verification on a pass that it accepts).
    """

    kind: RemarkKind
    pass_name: str
    reason: str
    count: int = 1
    op_type: str = ""
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        subject = f"{self.pass_name}: " if self.pass_name else ""
        return f"{subject}{self._counted}{self._examples}"

    def record(self) -> dict[str, Any]:
        """Return the remark as plain data."""
        return {
            "kind": self.kind,
            "pass": self.pass_name,
            "reason": self.reason,
            "count": self.count,
            "op_type": self.op_type,
            "nodes": list(self.nodes),
        }

    @property
    def _counted(self) -> str:
        if self.kind == "missed":
            head = f"{self.count} {self.op_type} unchanged" if self.op_type else "unchanged"
        elif self.kind == "applied":
            head = counted(self.count, "rewrite")
        else:
            return f"{self.reason} ({self.count} times)" if self.count > 1 else self.reason
        return f"{head}: {self.reason}" if self.reason else head

    @property
    def _examples(self) -> str:
        more = ", ..." if self.count > len(self.nodes) else ""
        return f" ({', '.join(self.nodes)}{more})" if self.nodes else ""


class Report:
    """The results and notes of one context, those of the contexts inside it included."""

    def __init__(self) -> None:
        self.results: list[PassResult] = []
        self.notes: list[Remark] = []

    def note(self, kind: RemarkKind, text: str, pass_name: str = "") -> None:
        """Add a remark of its own, beside those that summarise results."""
        self.notes.append(Remark(kind, pass_name, text))

    def of(self, name: str) -> list[PassResult]:
        """Return the results of one pass."""
        return [result for result in self.results if result.name == name]

    def ran(self) -> list[PassResult]:
        """Return the results of the passes that were run, without those of pipelines."""
        return [r for r in self.results if r.ran and r.info.kind != "pipeline"]

    def failed(self) -> list[PassResult]:
        """Return the results of failed passes, without pipelines that only propagated an error."""
        failed = [r for r in self.results if r.error is not None]
        own = {r.error for r in failed if r.info.kind != "pipeline"}
        return [r for r in failed if r.info.kind != "pipeline" or r.error not in own]

    def changing(self) -> list[PassInfo]:
        """Return the passes that changed a model, each once, in the order of their first change."""
        return list({r.name: r.info for r in self.ran() if r.changed}.values())

    def remarks(self, examples: int) -> list[Remark]:
        """Return the remarks, equal ones counted together, each with up to `examples` nodes."""
        return remarks_of(self, examples)


def note_of(op_type: str, label: str, reason: Skip | str) -> NodeNote:
    """Return the note of one node; the template of a Skip groups equal reasons."""
    template = reason if isinstance(reason, str) else reason.reason
    return NodeNote(op_type, label, str(reason), template)


_Named = tuple[str, NodeNote]


def _grouped(kind: RemarkKind, notes: Iterable[_Named], examples: int) -> Iterator[Remark]:
    groups: dict[tuple[str, str, str], list[NodeNote]] = {}
    for name, note in notes:
        groups.setdefault((name, note.op_type, note.template), []).append(note)
    for (name, op_type, _), members in groups.items():
        shown = tuple(note.label for note in members if note.label)[:examples]
        yield Remark(kind, name, members[0].reason, len(members), op_type, shown)


def _counted(kind: RemarkKind, named: Iterable[tuple[str, str | None]]) -> Iterator[Remark]:
    for (name, reason), count in Counter(named).items():
        yield Remark(kind, name, reason or "", count)


def remarks_of(report: Report, examples: int) -> list[Remark]:
    """Return the remarks of a report, each with up to `examples` nodes."""
    applied: list[_Named] = []
    missed: dict[tuple[str, int, str], _Named] = {}
    found: dict[tuple[str, int, NodeNote], _Named] = {}
    for result in report.results:
        for note in result.missed:
            missed[result.text, result.model, note.label] = (result.name, note)
        for note in result.applied:
            # A node that was rewritten after all was not missed.
            missed.pop((result.text, result.model, note.label), None)
            applied.append((result.name, note))
        for note in result.found:
            found[result.text, result.model, note] = (result.name, note)
    return [
        *_grouped("applied", applied, examples),
        *_grouped("missed", missed.values(), examples),
        *_grouped("analysis", found.values(), examples),
        *_counted("failed", ((r.name, r.error) for r in report.failed())),
        *_counted("skipped", ((r.name, r.reason) for r in report.results if not r.ran)),
        *_deprecated(report.ran()),
        *_merged(report.notes),
    ]


def _deprecated(results: Iterable[PassResult]) -> Iterator[Remark]:
    asked = {r.name: r.info for r in results if r.info.life == "deprecated" and not r.needed_by}
    for name, info in asked.items():
        yield Remark("deprecated", name, f"deprecated: use {info.replacement}")


def _merged(notes: Iterable[Remark]) -> Iterator[Remark]:
    """Yield each note once, with the names of all passes that made it."""
    names: dict[Remark, dict[str, None]] = {}
    for note in notes:
        names.setdefault(note.changed(pass_name=""), {})[note.pass_name] = None
    for note, passes in names.items():
        yield note.changed(pass_name=", ".join(passes))
