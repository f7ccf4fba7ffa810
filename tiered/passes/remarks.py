"""Remarks: what is worth knowing of what happened, like things counted together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tiered.passes.report import NodeNote, Report

RemarkKind = Literal[
    "applied", "missed", "failed", "analysis", "skipped", "unmet", "hook", "check", "verify"
]


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to know, with how often it was so.

    Kinds: `applied` (rewrites made), `missed` (nodes left alone, with the `Skip` reason), `failed`
    (a pass raised and was undone), `analysis` (what a pass found), `skipped` (a pass did not run),
    `unmet` (an entry of `required` or `disabled` met no pass), `hook` (a hook raised), `check` (a
    check failed and was suppressed), `verify` (what verification has to say of a pass it accepts).
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

    @property
    def _counted(self) -> str:
        if self.kind == "missed":
            counted = f"{self.count} {self.op_type} left alone" if self.op_type else "left alone"
        elif self.kind == "applied":
            counted = "1 rewrite" if self.count == 1 else f"{self.count} rewrites"
        else:
            return f"{self.reason} ({self.count} times)" if self.count > 1 else self.reason
        return f"{counted}: {self.reason}" if self.reason else counted

    @property
    def _examples(self) -> str:
        more = ", ..." if self.count > len(self.nodes) else ""
        return f" ({', '.join(self.nodes)}{more})" if self.nodes else ""


_Named = tuple[str, "NodeNote"]


def _grouped(kind: RemarkKind, notes: Iterable[_Named], examples: int) -> Iterator[Remark]:
    groups: dict[tuple[str, str, str], list[NodeNote]] = {}
    for name, note in notes:
        groups.setdefault((name, note.op_type, note.template), []).append(note)
    for (name, op_type, _), members in groups.items():
        shown = tuple(note.label for note in members if note.label)[:examples]
        yield Remark(kind, name, members[0].reason, len(members), op_type, shown)


def _counted(kind: RemarkKind, said: Iterable[tuple[str, str | None]]) -> Iterator[Remark]:
    for (name, reason), count in Counter(said).items():
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
        *_merged(report.notes),
    ]


def _merged(notes: Iterable[Remark]) -> Iterator[Remark]:
    """Yield each note once, with all passes that it is about."""
    names: dict[Remark, dict[str, None]] = {}
    for note in notes:
        names.setdefault(replace(note, pass_name=""), {})[note.pass_name] = None
    for note, passes in names.items():
        yield replace(note, pass_name=", ".join(passes))
