"""One trial: a model after passes, run on what it was run on before them, and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tiered.backends import Verification
from tiered.errors import RuntimeFailure, VerificationError
from tiered.graph import Model
from tiered.runtime.compare import Comparison, compare
from tiered.runtime.numerics import Promise, loosest
from tiered.verify.judge import Opinion, second_opinion
from tiered.verify.promises import held_to
from tiered.verify.samples import Sample, Wanted, samples_for
from tiered.verify.states import Outputs, Runnable, State, without

if TYPE_CHECKING:
    import onnx

    from tiered.graph import RewriteRecord
    from tiered.registry import PassInfo
    from tiered.runtime import Worker, WorkerSession

_FEW = 3

UNLIMITED = Verification()


@dataclass(frozen=True)
class Subject:
    """The passes on trial, one or all of a run, and the rewrites of the one."""

    infos: tuple[PassInfo, ...]
    rewrites: tuple[RewriteRecord, ...] = ()
    limits: Verification = UNLIMITED
    """How far results may be from the original's on the target."""

    @property
    def name(self) -> str:
        """The name of the one pass; "" of several."""
        return self.infos[0].name if len(self.infos) == 1 else ""

    @property
    def promise(self) -> Promise:
        """What they promise together, within the limits of the target."""
        return held_to(loosest([info.promise for info in self.infos]), self.limits)

    @property
    def changes_interface(self) -> bool:
        """Whether one of them says so of itself."""
        return any(info.changes_interface for info in self.infos)


class Trial:
    """A model after passes, beside what it was before.

    Attributes:
        comparisons: of the outputs, for each sample.
        remarks: what is worth knowing although nothing is wrong.
    """

    def __init__(
        self, model: Model, before: State, subject: Subject, wanted: Wanted, worker: Worker
    ) -> None:
        self.comparisons: list[Comparison] = []
        self.remarks: list[str] = []
        self._model = model
        self._before = before
        self._subject = subject
        self._wanted = wanted
        self._worker = worker

    def run(self) -> State:
        """Return the model as it is now, with its outputs.

        Raises:
            VerificationError: the promise is broken, or the model does not run any more.
        """
        runnable = Runnable.of(self._model)
        try:
            session = self._worker.open(runnable.source)
        except RuntimeFailure as error:
            said = f"onnxruntime opens the model before, but not the result: {error}"
            raise self._failure(said) from error
        try:
            return self._compared(runnable, session)
        except BaseException:
            session.close()
            raise

    def _compared(self, runnable: Runnable, session: WorkerSession) -> State:
        before, stamp = self._before, self._model.journal.stamp()
        samples, expected = before.samples, before.outputs
        if self._subject.changes_interface:
            samples, expected = self._refitted(runnable.proto, session)
        outputs: list[Outputs] = []
        for sample, known in zip(samples, expected, strict=True):
            try:
                actual = session.run(sample.inputs.feeds)
            except RuntimeFailure as error:
                said = f"the model before runs, but not the result: {error}"
                raise self._failure(said, sample) from error
            outputs.append(actual)
            self._compare(known, actual, sample, runnable)
        return State(stamp, runnable, session, samples, outputs, before.unstable)

    def _refitted(
        self, proto: onnx.ModelProto, session: WorkerSession
    ) -> tuple[list[Sample], list[Outputs]]:
        """Return samples for the new interface, and what the model before gives for them."""
        samples = samples_for(proto, session, self._wanted)
        before, expected = self._before.session, list[Outputs]()
        try:
            for sample in samples:
                feeds = sample.inputs.feeds
                expected.append(before.run({n: feeds[n] for n in before.inputs if n in feeds}))
        except RuntimeFailure as error:
            self.remarks.append(
                f"the model before does not run on what the one after takes, so they were not "
                f"compared: {error}"
            )
            return samples, [{} for _ in samples]
        return samples, expected

    def _compare(
        self, expected: Outputs, actual: Outputs, sample: Sample, runnable: Runnable
    ) -> None:
        ignored = self._before.unstable
        if self._subject.changes_interface:
            ignored |= expected.keys() ^ actual.keys()
        comparison = compare(
            without(expected, ignored), without(actual, ignored), self._subject.promise
        )
        self.comparisons.append(comparison)
        if comparison.ok:
            return
        opinion = self._opinion(runnable, sample, comparison)
        if not opinion.is_excused:
            raise self._failure("", sample, comparison, opinion.text)
        self.remarks.append(opinion.text)

    def _opinion(self, runnable: Runnable, sample: Sample, comparison: Comparison) -> Opinion:
        before = self._before.runnable
        if before.folder is not None or runnable.folder is not None:
            return Opinion(False, "onnxruntime alone: the model is too large for onnx.reference")
        feeds, promise = sample.inputs.feeds, self._subject.promise
        protos = before.proto, runnable.proto
        return second_opinion(self._worker, *protos, feeds, promise, comparison)

    def _failure(
        self,
        said: str,
        sample: Sample | None = None,
        comparison: Comparison | None = None,
        judged: str = "",
    ) -> VerificationError:
        """Return the error: what differs, for which inputs, and who did it."""
        rows: list[tuple[str, str]] = []
        if comparison is not None:
            said = self._headline(comparison)
            rows.append(("outputs", str(comparison)))
            rows.append(("judged", judged))
        elif self._subject.name:
            said = f"{self._subject.name}: {said}"
        if sample is not None:
            rows.append(("inputs", sample.label))
            rows.append(("sizes", sample.sizes or "no symbolic dims"))
        if self._subject.rewrites:
            rows.append(("rewrites", self._rewrites()))
        if not self._subject.name:
            rows.append(("changed by", ", ".join(info.name for info in self._subject.infos)))
        return VerificationError("\n".join([said, *(_row(*row) for row in rows)]))

    def _headline(self, comparison: Comparison) -> str:
        label, promise = self._model.label, self._subject.promise
        if not self._subject.name:
            return f"the passes changed what {label} computes (promised: {promise})"
        worst = comparison.worst
        assert worst is not None
        return (
            f"{self._subject.name} changed output {worst.name!r} of {label} "
            f"(max abs {worst.max_abs:.1e}, promised: {promise})"
        )

    def _rewrites(self) -> str:
        records = self._subject.rewrites
        first, last = records[0].number, records[-1].number
        numbers = f"#{first}" if first == last else f"#{first} to #{last}"
        nodes = list(dict.fromkeys(record.node_name for record in records if record.node_name))
        more = ", ..." if len(nodes) > _FEW else ""
        return f"{numbers} of the run" + (
            f", at {', '.join(map(repr, nodes[:_FEW]))}{more}" if nodes else ""
        )


def _row(name: str, text: str) -> str:
    return f"  {name:<12}{text.replace(chr(10), chr(10) + ' ' * 14)}"
