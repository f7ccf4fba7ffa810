"""The edits of each rewrite of a run, to rebuild the model after any rewrite without a new run."""

from __future__ import annotations

from tiered.graph import Model, RewriteRecord, Stamp
from tiered.passes.interface.pass_info import PassInfo
from tiered.runtime.external_data import with_files
from tiered.verify.baseline import Runnable
from tiered.verify.extract import Part, cut
from tiered.verify.live_extract import Step, advance, part_of


class History:
    """An instrument that records the edits of a model, rewrite by rewrite.

    Attributes:
        is_whole: whether all rewrites were recorded; not if some were undone.
    """

    def __init__(self) -> None:
        self.is_whole = True
        self._start: Part | None = None
        self._now: Part | None = None
        self._stamp: Stamp | None = None
        self._steps: list[Step] = []
        self._folder = ""
        # The part after so many rewrites that was asked for last.
        self._asked: tuple[int, Part] | None = None

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if self._start is None:
            self._folder, self._stamp = model.folder, model.journal.stamp()
            self._start = part_of(model)
            self._now = self._start.copy()

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        if not self.is_whole or self._stamp is None or self._now is None:
            return
        journal = model.journal
        step = None
        if journal.kept_since(self._stamp) == self._stamp.length:
            step = advance(self._now, model, journal.since(self._stamp.length))
        if step is None:
            self.is_whole = False
            return
        self._stamp = journal.stamp()
        self._steps.append(step)

    def model_after(self, number: int) -> Runnable:
        """Return the model after so many rewrites.

        Raises:
            ModelError: a file of weights is not as it was.
        """
        part = self._part(number)
        proto = cut(part, part.nodes, {}, list(part.outputs), list(part.inputs))
        return Runnable(proto, with_files(proto, self._folder))

    def _part(self, number: int) -> Part:
        assert self._start is not None
        known, part = 0, self._start
        if self._asked is not None and self._asked[0] <= number:
            known, part = self._asked
        part = part.copy()
        for step in self._steps[known:number]:
            step.apply(part)
        self._asked = number, part
        return part
