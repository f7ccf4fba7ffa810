"""check_target: what a target takes of a model, what passes mend, and what remains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tiered.backends import Coverage
from tiered.context import PassContext
from tiered.graph import Model, Node
from tiered.graph.core.journal import dirty_nodes
from tiered.passes.execution import execute
from tiered.passes.registry import PassInfo
from tiered.pipeline.base import Pipeline
from tiered.pipeline.edits import edited, pipeline_for
from tiered.policy.decide import Place

if TYPE_CHECKING:
    from tiered.backends.pipeline_edits import PipelineEdit

BETTER_TYPES = "infer_shapes"
"""Who mends a node that no pass touched: its types are known better."""


@dataclass(frozen=True, slots=True)
class Mended:
    """Nodes that a target did not take, until a pass removed or changed them."""

    operator: str
    reasons: tuple[str, ...]
    by: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """What a target takes of a model as it is, and of what its pipeline makes of it."""

    before: Coverage
    after: Coverage
    mended: tuple[Mended, ...]
    context: PassContext


def check_target(
    model: Model,
    *,
    passes: Pipeline | None = None,
    edits: Iterable[PipelineEdit | str] = (),
    **settings: Any,
) -> TargetCheck:
    """Hold a model against the table of a target, before and after the target's pipeline.

    Args:
        model: edited in place.
        passes: a pipeline instead of the target's own; all that it lists runs.
        edits: of the pipeline.
        settings: those of `PassContext`, `backend` among them.

    Raises:
        UsageError: a wrong name or option.
        PassError: a pass failed.
    """
    watch = _Mending()
    context = PassContext(**{**settings, "instruments": [*settings.get("instruments", ()), watch]})
    backend = context.backend
    if passes is None:
        pipeline: Pipeline = pipeline_for(backend, edits)
    else:
        pipeline = edited(passes, edits)
    before = backend.coverage(model)
    watch.begin(model, before)
    with context:
        execute(pipeline, model, context, Place(asked=passes is not None))
        after = backend.coverage(model)
    return TargetCheck(before, after, watch.found(), context)


@dataclass
class _Mending:
    """An instrument that notes which pass made the target take what it did not take."""

    _pending: dict[Node, tuple[str, tuple[str, ...], str]] = field(default_factory=dict)
    _mended: dict[tuple[str, tuple[str, ...], str], list[str]] = field(default_factory=dict)
    _coverage: Coverage | None = None
    _mark: int = 0

    def begin(self, model: Model, coverage: Coverage) -> None:
        """Take the nodes that the target does not take as the model stands."""
        self._coverage, self._mark = coverage, model.mark()
        for gap in coverage.gaps:
            for node in gap.nodes:
                self._pending[node] = gap.operator, gap.reasons, node.label

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        """See what of it is gone, or is taken now."""
        since = min(self._mark, model.mark())
        touched = set(dirty_nodes(model.journal.since(since)))
        self._mark = model.mark()
        gone = [node for node in self._pending if not node.is_live]
        self._note(gone, info.name)
        # A new interface gives types to nodes that no edit touches.
        asked = [n for n in self._pending if info.changes_interface or n in touched]
        mended = [node for node in asked if self._takes(node)]
        self._note(mended, info.name)

    def found(self) -> tuple[Mended, ...]:
        """Return what was mended, the most first; nodes that no pass touched too."""
        self._note([node for node in self._pending if self._takes(node)], BETTER_TYPES)
        made = [Mended(*key, tuple(labels)) for key, labels in self._mended.items()]
        return tuple(sorted(made, key=lambda mended: (-len(mended.labels), mended.operator)))

    def _takes(self, node: Node) -> bool:
        assert self._coverage is not None
        return self._coverage.backend.takes(node)

    def _note(self, nodes: Iterable[Node], by: str) -> None:
        for node in nodes:
            operator, reasons, label = self._pending.pop(node)
            self._mended.setdefault((operator, reasons, by), []).append(label)
