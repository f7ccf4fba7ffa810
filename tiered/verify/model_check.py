"""Verification by the whole model: it runs on the samples of its baseline, and is compared."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.deviations import has_narrow_floats
from tiered.runtime.inputs.samples import Sample, samples_for, unfit_remark
from tiered.support.amounts import counted
from tiered.support.errors import (
    MissingOperator,
    RuntimeFailure,
    UsageError,
    VerificationError,
    original_runs,
)
from tiered.verify.baseline import Baseline, Outputs, RunnableModel, without
from tiered.verify.last_bits import amplification
from tiered.verify.methods import Case, Judge, VerifiedPasses
from tiered.verify.model_pair import ModelPair
from tiered.verify.reference_check import (
    Opinion,
    reference_opinion,
    ruling_on_halves,
    ruling_on_refitted,
)
from tiered.verify.refitted import Refitting
from tiered.verify.verdict import why_empty

if TYPE_CHECKING:
    import onnx

    from tiered.graph import RewriteRecord
    from tiered.runtime.session import Runner

_BY_REFERENCE: Final = (
    "onnx.reference, on {}: onnxruntime computes narrow floats in 32 bits, where the outputs agree"
)
_FEW = 3
_MANY = 6


class WholeModel:
    """The method that runs the whole model, and compares its outputs with those before."""

    def applies(self, case: Case) -> bool:
        return isinstance(case.before, Baseline)

    def check(self, case: Case) -> Baseline:
        """Return the model after the passes, with its outputs.

        Nothing runs if the passes left the same bytes.

        Raises:
            VerificationError: the promise is broken, or the model does not run any more.
            NotVerifiable: the model before does not run.
        """
        before = case.before
        assert isinstance(before, Baseline)
        after = Baseline.of(case.model)
        if after.content == before.content and after.runnable.folder == before.runnable.folder:
            before.stamp = after.stamp
            case.verified("sameness")
            return before
        if not before.runnable.proto.graph.output:
            case.verified("nothing", why="the model has no outputs")
            return after
        run = _ModelRun(case, before)
        run.run(after)
        case.samples = after.samples
        is_given = any(sample.is_given for sample in after.samples)
        inputs: Literal["given", "generated"] = "given" if is_given else "generated"
        if why := why_empty(case.comparisons, run.not_compared):
            case.verified("nothing", why=why)
        else:
            case.verified("model", inputs=inputs, judge=run.judge)
        return after


class _ModelRun:
    """One run of the model after passes on the samples of its baseline."""

    def __init__(self, case: Case, before: Baseline) -> None:
        self._case = case
        self._model = case.model
        self._before = before
        self._subject = case.subject
        self._worker = case.worker
        self.judge: Judge = "onnxruntime"
        self.not_compared: list[str] = []
        self._refitting: Refitting | None = None

    def run(self, after: Baseline) -> None:
        """Run the model after the passes, fill in its outputs and compare them."""
        self._case.has_run = True
        before = self._before
        with original_runs():
            before.run(self._worker, self._case.wanted)
        if before.refused and not before.was_said:
            before.was_said = True
            self._case.remarks.append(
                f"onnx.reference runs the model, as onnxruntime does not load the original: "
                f"{before.refused}"
            )
        after.refused, after.was_said = before.refused, before.was_said
        with ExitStack() as stack:
            try:
                session = stack.enter_context(
                    after.referred(self._worker) if before.refused else after.opened(self._worker)
                )
            except MissingOperator as error:
                raise self._failure(f"the result cannot be verified: it {error}") from error
            except RuntimeFailure as error:
                text = f"onnxruntime opens the model before, but not the result: {error}"
                raise self._failure(text) from error
            if after.is_referred or self._before.is_referred:
                self.judge = "onnx.reference"
            self._compare_all(after, session)

    def _compare_all(self, after: Baseline, session: Runner) -> None:
        """Run the model on all samples."""
        before = self._before
        after.samples, after.random, expected = before.samples, before.random, before.outputs
        if self._subject.changes_interface:
            after.samples, expected = self._refitted(after.runnable.proto, session)
        for sample, known in zip(after.samples, expected, strict=True):
            try:
                actual = session.run(sample.inputs.feeds)
            except RuntimeFailure as error:
                text = f"the model before runs, but not the result: {error}"
                raise self._failure(text, sample) from error
            after.outputs.append(actual)
            self._compare(known, actual, sample, after.runnable)

    def _refitted(
        self, proto: onnx.ModelProto, session: Runner
    ) -> tuple[list[Sample], list[Outputs]]:
        """Return samples for the new interface, and the outputs of the model before for them."""
        relation = self._model.interface_since(self._before.stamp)
        refitting = Refitting(self._before, proto, session, relation, self._worker)
        wanted = self._case.wanted
        try:
            refitted = refitting.samples(wanted)
            self._case.remarks += refitting.remarks
            self._refitting = refitting
            return refitted
        except RuntimeFailure as error:
            self.not_compared.append(
                f"the model before does not run on what the one after takes, so they were not "
                f"compared: {error}"
            )
        self._case.remarks += self.not_compared
        try:
            samples = samples_for(proto, session, wanted)
        except UsageError as error:
            self._case.remarks.append(unfit_remark(error))
            samples = samples_for(proto, session, replace(wanted, given=()))
        return samples, [{} for _ in samples]

    def _compare(
        self, expected: Outputs, actual: Outputs, sample: Sample, runnable: RunnableModel
    ) -> None:
        random, gone = self._before.random, frozenset[str]()
        if self._subject.changes_interface:
            gone = frozenset(expected.keys() ^ actual.keys())
            if lone := sorted(gone & actual.keys()) if expected else []:
                self._case.remarks.append(
                    f"output{'s' if len(lone) > 1 else ''} {', '.join(lone)} not compared: the "
                    "model before has no such tensor"
                )
        pair = without(expected, gone), without(actual, gone)
        comparison = compare(*pair, self._subject.promise, random=random)
        self._case.comparisons.append(comparison)
        if not self._takes(sample):
            if not comparison.ok:
                raise self._failure("", sample, comparison)
            self._rule_on_refitted(without(expected, gone | random), sample, runnable)
            return
        if comparison.ok:
            self._rule_on_halves(runnable, sample)
            return
        opinion = self._opinion(runnable, sample, comparison)
        if not opinion.is_excused:
            raise self._failure("", sample, comparison, opinion.text)
        self._case.remarks.append(opinion.text)

    def _takes(self, sample: Sample) -> bool:
        """Return whether the model before takes the same sample, so that a reference may judge."""
        before = self._before
        relation = self._model.interface_since(before.stamp)
        graph = before.runnable.proto.graph
        defaults = {tensor.name for tensor in graph.initializer}
        needed = {info.name for info in graph.input} - defaults
        if relation.tensors or relation.feeds or relation.batch or relation.packed:
            return False
        return needed <= sample.inputs.feeds.keys()

    def _is_ruled(self, runnable: RunnableModel) -> bool:
        """Return whether onnx.reference is asked about a sample on which the outputs agree.

        It is slow: of inputs that are made it gets the first ones only.
        """
        if not self._case.wanted.given and len(self._case.comparisons) > 1:
            return False
        return has_narrow_floats(self._before.runnable.proto) or has_narrow_floats(runnable.proto)

    def _rule_on_refitted(self, expected: Outputs, sample: Sample, runnable: RunnableModel) -> None:
        """Ask onnx.reference about a model with narrow floats and another interface."""
        if self._refitting is None or not self._is_ruled(runnable):
            return
        ruling = ruling_on_refitted(
            self._refitting,
            len(self._case.comparisons) - 1,
            runnable,
            sample.inputs.feeds,
            expected,
            self._subject.promise,
            self._worker,
        )
        if ruling.is_asked:
            self.judge = "onnx.reference"
        if ruling.failed is not None:
            raise self._failure("", sample, ruling.failed, _BY_REFERENCE.format(ruling.what))

    def _rule_on_halves(self, runnable: RunnableModel, sample: Sample) -> None:
        """Ask onnx.reference about a model with narrow floats, whose outputs agree."""
        before, promise = self._before.runnable, self._subject.promise
        if not self._is_ruled(runnable):
            return
        models = ModelPair(self._worker, before, runnable, sample.inputs.feeds, promise)
        ruling = ruling_on_halves(models)
        if ruling.is_asked:
            self.judge = "onnx.reference"
        if ruling.failed is None:
            return
        amplified = amplification(models, ruling.failed)
        if not amplified:
            judged = _BY_REFERENCE.format(ruling.what)
            raise self._failure("", sample, ruling.failed, judged)
        self._case.remarks.append(amplified)

    def _opinion(self, runnable: RunnableModel, sample: Sample, comparison: Comparison) -> Opinion:
        before, promise = self._before.runnable, self._subject.promise
        models = ModelPair(self._worker, before, runnable, sample.inputs.feeds, promise)
        opinion = reference_opinion(models, comparison)
        if opinion.is_excused:
            return opinion
        amplified = amplification(models, comparison)
        return Opinion(True, amplified) if amplified else opinion

    def _failure(
        self,
        text: str,
        sample: Sample | None = None,
        comparison: Comparison | None = None,
        opinion: str = "",
    ) -> VerificationError:
        return failure_of(self._subject, self._model.label, text, sample, comparison, opinion)


def failure_of(
    subject: VerifiedPasses,
    label: str,
    text: str,
    sample: Sample | None = None,
    comparison: Comparison | None = None,
    opinion: str = "",
) -> VerificationError:
    """Return the error, with the difference, the inputs and the passes.

    Args:
        subject: the passes.
        label: of the model.
        text: the failure, if it is no comparison.
        sample: the inputs.
        comparison: the failed comparison.
        opinion: the opinion of the reference check.
    """
    rows: list[tuple[str, str]] = []
    if comparison is not None:
        text = _headline(subject, label, comparison)
        rows.append(("outputs", str(comparison)))
        rows.append(("judged", opinion))
    elif subject.name:
        text = f"{subject.name}: {text}"
    if sample is not None:
        rows.append(("inputs", sample.label))
        rows.append(("sizes", sample.sizes or "no symbolic dims"))
    if subject.rewrites:
        rows.append(("rewrites", _rewrites(subject.rewrites)))
    if not subject.name:
        rows.append(("changed by", _changed_by([info.name for info in subject.infos])))
    error = VerificationError("\n".join([text, *(_row(*row) for row in rows)]))
    if subject.rewrites:
        error.rewrites = subject.rewrites[0].number, subject.rewrites[-1].number
    return error


def _headline(subject: VerifiedPasses, label: str, comparison: Comparison) -> str:
    if not subject.name:
        return f"the passes changed what {label} computes (promised: {subject.promise})"
    worst = comparison.worst
    assert worst is not None
    return (
        f"{subject.name} changed output {worst.name!r} of {label} "
        f"(max abs {worst.max_abs:.1e}, promised: {subject.promise})"
    )


def _rewrites(records: Sequence[RewriteRecord]) -> str:
    first, last = records[0].number, records[-1].number
    numbers = f"#{first}" if first == last else f"#{first} to #{last}"
    nodes = list(dict.fromkeys(record.node_name for record in records if record.node_name))
    more = ", ..." if len(nodes) > _FEW else ""
    return f"{numbers} of the run" + (
        f", at {', '.join(map(repr, nodes[:_FEW]))}{more}" if nodes else ""
    )


def _changed_by(names: Sequence[str]) -> str:
    """Return the names of the passes, the first ones if there are many."""
    if len(names) <= _MANY:
        return ", ".join(names)
    more = counted(len(names) - _MANY, "more pass", "more passes")
    shown = ", ".join(names[:_MANY])
    return f"{shown} and {more}; `tiered bisect` names the one that is wrong"


def _row(name: str, text: str) -> str:
    return f"  {name:<12}{text.replace(chr(10), chr(10) + ' ' * 14)}"
