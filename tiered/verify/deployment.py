"""The result in other sessions: with onnxruntime's threads, packed constants and optimisations.

Promises are held in a session that is reproducible: no optimisations of onnxruntime's own, one
thread, constants not packed. What differs in other sessions is onnxruntime's doing, and no pass is
undone for it; a remark reports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.deviations import explaining
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import QUANTIZED, Numerics, Promise, loosest
from tiered.verify.baseline import Baseline, Outputs, without

if TYPE_CHECKING:
    from tiered.runtime import Worker
    from tiered.runtime.opening import Setting

_SETTINGS: Final[tuple[tuple[Setting, str], ...]] = (
    ("unoptimised", "with onnxruntime's own number of threads and packed constants"),
    ("default", "in onnxruntime's default session, with its optimisations"),
)


@dataclass(frozen=True)
class Deployment:
    """The original and the result, which agree in the reproducible session.

    Args:
        before, after: with the samples and the outputs of that session.
        promise: the common promise of the passes.
        worker: where to run.
    """

    before: Baseline
    after: Baseline
    promise: Promise
    worker: Worker

    def remarks(self) -> Iterator[str]:
        """Yield the differences and failures in other sessions."""
        for setting, where in _SETTINGS:
            try:
                expected = self._outputs(self.before, setting)
            except RuntimeFailure:
                continue  # The original does not run there either.
            try:
                actual = self._outputs(self.after, setting)
            except RuntimeFailure as error:
                yield f"{where}, the original runs, but not the result: {error}"
                return
            failing = self._failing(expected, actual, self._allowed(setting), self._excused())
            if failing is not None:
                yield self._remark(failing, where, setting, (expected, actual))
                return

    def _outputs(self, state: Baseline, setting: Setting) -> list[Outputs]:
        with state.opened(self.worker, setting) as session:
            return [session.run(sample.inputs.feeds) for sample in self.after.samples]

    def _allowed(self, setting: Setting) -> Promise:
        """Return the allowed difference; onnxruntime's optimisations may reassociate.

        They make integer operators of the original's Q/DQ as well. It and the result may each be
        as far off as is promised, so twice that from each other.
        """
        if setting != "default":
            return self.promise
        both = loosest([self.promise, Promise(Numerics.REASSOCIATING)])
        metric = both.metric
        if metric is not None and metric == QUANTIZED.metric:
            twice = metric.changed(high=2 * metric.high)
            both = both.changed(metric=twice, steps=2 * both.steps)
        return both.changed(target=self.promise.target)

    def _excused(self) -> frozenset[str]:
        """Return the outputs that differ in the reproducible session already, and were excused."""
        differs = (
            compare(one, other, self.promise, random=self.after.random)
            for one, other in zip(self.before.outputs, self.after.outputs, strict=True)
        )
        return frozenset(o.name for each in differs for o in each.outputs if not o.ok)

    def _failing(
        self,
        expected: Sequence[Outputs],
        actual: Sequence[Outputs],
        promise: Promise,
        excused: frozenset[str] = frozenset(),
    ) -> Comparison | None:
        """Return the first comparison that fails."""
        for one, other in zip(expected, actual, strict=True):
            pair = without(one, excused), without(other, excused)
            found = compare(*pair, promise, random=self.after.random)
            if not found.ok:
                return found
        return None

    def _remark(
        self,
        failing: Comparison,
        where: str,
        setting: Setting,
        outputs: tuple[Sequence[Outputs], Sequence[Outputs]],
    ) -> str:
        models = self.before.runnable.proto, self.after.runnable.proto
        wrong = [output for output in failing.outputs if not output.ok]
        known = explaining(models, wrong, setting)
        reasons = "; ".join(f"{each.name}: {each.what}" for each in known) or "no known reason"
        changed = [
            name
            for name, state, found in zip(
                ("the original", "the result"), (self.before, self.after), outputs, strict=True
            )
            if self._failing(state.outputs, found, self._allowed("default")) is not None
        ]
        blamed = f"; it computes {' and '.join(changed)} otherwise there" if changed else ""
        return (
            f"{where}, the result differs from the original: {wrong[0]}; with one thread, packing "
            f"and optimisations off they agree (promised: {self.promise}){blamed} ({reasons})"
        )
