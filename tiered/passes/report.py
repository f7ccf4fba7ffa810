"""What happened under a context: a result for each decision, and the remarks made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tiered.passes.registry import PassInfo

if TYPE_CHECKING:
    from tiered.passes.remarks import Remark, RemarkKind
    from tiered.rewriter import Skip


class NodeNote(NamedTuple):
    """A node that a pass rewrote, declined or spoke of; a value, so that no model is kept alive."""

    op_type: str
    label: str
    reason: str
    template: str


class PassResult(NamedTuple):
    """One decision about one pass on one model, and what came of it.

    Attributes:
        info: the pass.
        text: the pass as text, with options and scope.
        ran: whether it was run; if not, `reason` says why.
        reason: why it ran or did not.
        changed: whether the model is different since.
        rewrites: how many numbered rewrites it made.
        edits: how many edits the journal has of it.
        seconds: its time, without its dependencies; of a pipeline, with its passes.
        error: why it failed and was undone, if so.
        needed_by: the pass that requires it or that it follows; "" if it stood there itself.
        model: the number of the model within this process.
        applied, missed, found: what it did, declined and said, by node.
    """

    info: PassInfo
    text: str
    ran: bool
    reason: str
    changed: bool = False
    rewrites: int = 0
    edits: int = 0
    seconds: float = 0.0
    error: str | None = None
    needed_by: str = ""
    model: int = 0
    applied: tuple[NodeNote, ...] = ()
    missed: tuple[NodeNote, ...] = ()
    found: tuple[NodeNote, ...] = ()

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.info.name


class Report:
    """The results and notes of one context, those of the contexts inside it included."""

    def __init__(self) -> None:
        self.results: list[PassResult] = []
        self.notes: list[Remark] = []

    def note(self, kind: RemarkKind, text: str, pass_name: str = "") -> None:
        """Add a remark that stands for itself."""
        from tiered.passes.remarks import Remark

        self.notes.append(Remark(kind, pass_name, text))

    def of(self, name: str) -> list[PassResult]:
        """Return the results of one pass."""
        return [result for result in self.results if result.name == name]

    def ran(self) -> list[PassResult]:
        """Return the results of the passes that were run, without those of pipelines."""
        return [r for r in self.results if r.ran and r.info.kind != "pipeline"]

    def failed(self) -> list[PassResult]:
        """Return the results of what failed, without the pipelines that only passed an error on."""
        failed = [r for r in self.results if r.error is not None]
        own = {r.error for r in failed if r.info.kind != "pipeline"}
        return [r for r in failed if r.info.kind != "pipeline" or r.error not in own]

    def changing(self) -> list[PassInfo]:
        """Return the passes that changed a model, each once, in the order of their first change."""
        return list({r.name: r.info for r in self.ran() if r.changed}.values())

    def remarks(self, examples: int) -> list[Remark]:
        """Return the remarks, like ones counted together, each with up to `examples` nodes."""
        from tiered.passes.remarks import remarks_of

        return remarks_of(self, examples)


def note_of(op_type: str, label: str, reason: Skip | str) -> NodeNote:
    """Return the note of one node; a Skip's template is what like reasons have in common."""
    template = reason if isinstance(reason, str) else reason.reason
    return NodeNote(op_type, label, str(reason), template)
