"""check_target: the nodes that a target refuses, and the passes that resolve them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tiered.context import PassContext
from tiered.graph import Model, Node
from tiered.graph.core.edit import Edit, Entry
from tiered.graph.core.journal import dirty_nodes
from tiered.passes.execution import execute
from tiered.passes.interface.pass_info import PassInfo, Place
from tiered.pipeline.edits import edited, pipeline_for
from tiered.pipeline.pipeline_base import Pipeline
from tiered.pipeline.quantized_models import choose_form
from tiered.targets import Coverage

if TYPE_CHECKING:
    from tiered.targets.pipeline_edits import PipelineEdit

BETTER_TYPES = "infer_shapes"
"""The pass that resolves a refusal without an edit of the node: by better types."""


@dataclass(frozen=True, slots=True)
class ResolvedRefusal:
    """Nodes that a target refused, until a pass removed or changed them."""

    operator: str
    reasons: tuple[str, ...]
    by: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """The coverage of a model by a target, before and after the target's pipeline."""

    before: Coverage
    after: Coverage
    mended: tuple[ResolvedRefusal, ...]
    context: PassContext


def check_target(
    model: Model,
    *,
    passes: Pipeline | None = None,
    edits: Iterable[PipelineEdit | str] = (),
    **settings: Any,
) -> TargetCheck:
    """Check a model against the table of a target, before and after the target's pipeline.

    Args:
        model: edited in place.
        passes: a pipeline instead of the target's own; all that it lists runs.
        edits: of the pipeline.
        settings: those of `PassContext`, `backend` among them.

    Raises:
        UsageError: a wrong name or option.
        PassError: a pass failed.
    """
    watch = _Resolving()
    context = PassContext(**{**settings, "instruments": [*settings.get("instruments", ()), watch]})
    backend = context.backend
    if passes is None:
        pipeline: Pipeline = choose_form(model, pipeline_for(backend, edits), context, settings)
    else:
        pipeline = edited(passes, edits)
    before = backend.coverage(model)
    watch.begin(model, before)
    with context:
        execute(pipeline, model, context, Place(asked=passes is not None))
        after = backend.coverage(model)
    return TargetCheck(before, after, watch.found(after), context)


class _Refused(NamedTuple):
    """A node that a target refuses, as it was; `by` is the pass that made its successor."""

    operator: str
    reasons: tuple[str, ...]
    label: str
    by: str = ""


@dataclass
class _Resolving:
    """An instrument that notes which pass resolved which refusal."""

    _pending: dict[Node, _Refused] = field(default_factory=dict)
    _mended: dict[tuple[str, tuple[str, ...], str], list[str]] = field(default_factory=dict)
    _coverage: Coverage | None = None
    _mark: int = 0

    def begin(self, model: Model, coverage: Coverage) -> None:
        """Collect the nodes that the target refuses at the beginning."""
        self._coverage, self._mark = coverage, model.mark()
        for gap in coverage.gaps:
            for node in gap.nodes:
                self._pending[node] = _Refused(gap.operator, gap.reasons, node.label)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        """Note which of them were removed, or are supported now.

        A removed node is not resolved if the pass added one of the same operator that the target
        refuses too: that node replaces it.
        """
        edits = model.journal.since(min(self._mark, model.mark()))
        touched = set(dirty_nodes(edits))
        self._mark = model.mark()
        gone = [node for node in self._pending if not node.is_live]
        made = self._made(edits) if gone else {}
        for node in gone:
            if successors := made.get(self._pending[node].operator):
                heir = self._pending.pop(node)._replace(by=info.name)
                self._pending[successors.pop(0)] = heir
        self._note([node for node in gone if node in self._pending], info.name)
        # A new interface gives types to nodes that no edit touches.
        asked = [n for n in self._pending if info.changes_interface or n in touched]
        mended = [node for node in asked if self._takes(node)]
        self._note(mended, info.name)

    def _made(self, edits: Iterable[Entry]) -> dict[str, list[Node]]:
        """Return by operator the nodes that edits added and the target refuses."""
        made: dict[str, list[Node]] = {}
        for edit, node, *_ in edits:
            if edit is not Edit.ADD_NODE or not node.is_live or node in self._pending:
                continue
            if not node.is_op("Constant") and not self._takes(node):
                made.setdefault(node.operator, []).append(node)
        return made

    def found(self, after: Coverage) -> tuple[ResolvedRefusal, ...]:
        """Return the resolved refusals, the most frequent first; untouched nodes too.

        Args:
            after: the coverage of the result; a later pass may have caused a new refusal.
        """
        self._note([node for node in self._pending if self._takes(node)], BETTER_TYPES)
        refused = {(gap.operator, node.label) for gap in after.gaps for node in gap.nodes}
        made = []
        for (operator, reasons, by), labels in self._mended.items():
            mended = tuple(label for label in labels if (operator, label) not in refused)
            made += [ResolvedRefusal(operator, reasons, by, mended)] if mended else []
        return tuple(sorted(made, key=lambda mended: (-len(mended.labels), mended.operator)))

    def _takes(self, node: Node) -> bool:
        assert self._coverage is not None
        return self._coverage.backend.takes(node)

    def _note(self, nodes: Iterable[Node], by: str) -> None:
        for node in nodes:
            refused = self._pending.pop(node)
            key = refused.operator, refused.reasons, refused.by or by
            self._mended.setdefault(key, []).append(refused.label)
