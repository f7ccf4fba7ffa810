"""Verification by region: the nodes that a pass changed run alone, before and after it.

The changed nodes are cut out with their borders. The borders get the values that they had in a run
of the model, which goes slice by slice where it is larger than the memory that verification may
take; where it does not run so either, values are made for them. Where the results differ, the nodes
around are taken in, step by step: a pass may know more of a value than its own nodes tell, and only
what leaves the model counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.external_data import with_files
from tiered.runtime.inputs.make import Inputs
from tiered.runtime.inputs.samples import Sample, Wanted, samples_for
from tiered.support.amounts import counted
from tiered.support.errors import (
    ModelError,
    RuntimeFailure,
    VerificationError,
)
from tiered.verify.baseline import (
    Outputs,
    RecordedBaseline,
    RunnableModel,
)
from tiered.verify.changed_region import (
    PREFIX,
    Inside,
    RegionPair,
    changed_nodes,
    grown,
    pieces,
    region_of,
    with_types,
    with_unchanged,
)
from tiered.verify.live_extract import part_after, types_of
from tiered.verify.model_check import failure_of
from tiered.verify.model_pair import ModelPair
from tiered.verify.random_values import random_outputs
from tiered.verify.reference_check import Opinion, region_opinion
from tiered.verify.sliced_session import SlicedSession, bare_types, open_model
from tiered.verify.verdict import why_empty

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tiered.runtime import Worker
    from tiered.runtime.session import Runner
    from tiered.verify.methods import Case

STEPS: Final = (0, 1, 2, 4, 8, 16, 64, 256, 1024)
"""How far around the changed nodes, in nodes, the regions that are tried reach."""
_SIZES: Final = 64
_ALONE: Final = "changed nodes do not run by themselves"
_INTEGERS: Final = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL)


@dataclass(frozen=True)
class _Verdict:
    """The comparison of a region.

    Attributes:
        fault: a failure that is no comparison.
        failing: the sample and the comparison that fail.
        cuts: the models that ran.
        expected: the outputs of the one before, for each sample.
    """

    comparisons: list[Comparison]
    samples: list[Sample]
    expected: list[Outputs]
    cuts: tuple[RunnableModel, RunnableModel]
    fault: str = ""
    failing: tuple[Sample, Comparison] | None = None

    @property
    def ok(self) -> bool:
        return not self.fault and self.failing is None


class ChangedRegion:
    """The method that runs only the changed nodes, before and after."""

    def applies(self, case: Case) -> bool:
        return isinstance(case.before, RecordedBaseline)

    def check(self, case: Case) -> RecordedBaseline | None:
        """Return the model after the passes; None if they change the interface.

        Raises:
            VerificationError: the promise is broken, or the changed nodes do not run any more.
        """
        before = case.before
        assert isinstance(before, RecordedBaseline)
        if case.subject.changes_interface:
            why = "it changes the interface, so no region was compared"
            case.remarks.append(why)
            case.verified("nothing", why=why)
            return None
        regions = _Regions(case, before)
        after = regions.run()
        if regions.nodes:
            case.verified("region", regions.nodes, "recorded" if before.values else "generated")
        elif not regions.unproven:
            case.verified("sameness")
        if regions.unproven:
            case.verified("nothing", why="; ".join(dict.fromkeys(regions.unproven)))
        return after


class _Regions:
    """The regions of one case; comparisons and samples are those of all of them together.

    Attributes:
        nodes: how many nodes ran.
        unproven: why regions were not compared, for each that was not.
    """

    def __init__(self, case: Case, before: RecordedBaseline) -> None:
        self.nodes = 0
        self.unproven: list[str] = []
        self._case = case
        self._model = case.model
        self._before = before
        self._subject = case.subject
        self._worker = case.worker
        self._budget = case.budget
        self._covered: tuple[set[int], set[int]] = (set(), set())
        self._compared: set[str] = set()

    def run(self) -> RecordedBaseline:
        """Verify the changed nodes, and return the model after the passes."""
        before, journal = self._before, self._model.journal
        entries = journal.since(before.stamp.length)
        part, touched = part_after(before.part, self._model, entries)
        self._sides = before.part, part
        inside = changed_nodes(self._sides, touched)
        for group in self._groups(inside):
            self._prove(group)
        values = [self._still_true(known) for known in before.values]
        return RecordedBaseline(journal.stamp(), part, before.samples, values)

    def _groups(self, inside: Inside) -> Iterator[Inside]:
        """Yield the changed nodes in few groups, none with more weights than the budget allows."""
        waiting: Inside = (frozenset(), frozenset())
        nbytes = 0
        for piece in pieces(self._sides, inside):
            region = region_of(self._sides, piece)
            size = 0 if region is None else region.nbytes
            # Inputs for several pieces at once would be harder to find.
            if any(waiting) and (not self._before.values or nbytes + size > self._budget // 4):
                yield waiting
                waiting, nbytes = (frozenset(), frozenset()), 0
            waiting = waiting[0] | piece[0], waiting[1] | piece[1]
            nbytes += size
        if any(waiting):
            yield waiting

    def _prove(self, inside: Inside) -> None:
        """Verify some of the changed nodes."""
        if not self._before.values:
            inside = self._with_sizes(inside)
        if all(part <= known for part, known in zip(inside, self._covered, strict=True)):
            return  # a larger region has covered it
        failed: VerificationError | None = None
        size, reads = 0, tuple[str, ...]()
        for steps in STEPS:
            nodes = grown(self._sides, inside, steps) if steps else inside
            if sum(map(len, nodes)) == size:
                continue
            size = sum(map(len, nodes))
            region = region_of(self._sides, nodes)
            if region is None:
                self._cover(nodes)
                return
            if region.nbytes > self._budget // 2:
                break
            try:
                verdict = self._run_region(region)
            except (RuntimeFailure, ModelError, TypeError):
                continue  # a larger region may run
            if verdict.ok and (why := why_empty(verdict.comparisons, ())):
                if failed is not None:
                    break  # a larger region that says nothing is no excuse
                self._leave(nodes, why.replace(PREFIX, ""))
                return
            opinion = self._opinion(verdict)
            if verdict.ok or opinion.is_excused:
                self._case.remarks += [opinion.text] if opinion.is_excused else []
                self._note(region, verdict)
                return
            failed, reads = self._failure(verdict, opinion), region.reads
        if failed is None:
            count = max(map(len, inside))
            said = counted(count, "changed node does not run by itself", _ALONE)
            self._leave(inside, said, _ALONE)
            return
        if not self._before.values and any(name in self._sides[0].producer for name in reads):
            self._leave(inside, f"on generated values, which may not occur, {failed}", _ALONE)
            return
        raise failed

    def _leave(self, inside: Inside, text: str, why: str = "") -> None:
        """Leave a region unverified, with a remark."""
        self._case.remarks.append(f"not verified: {text}")
        self.unproven.append(why or text)
        self._cover(inside)

    def _with_sizes(self, inside: Inside) -> Inside:
        """Return the nodes with those that compute sizes for them, which cannot be made up."""
        for _ in range(_SIZES):
            before = self._sides[0]
            reads = before.border(inside[0])
            makers = {before.producer[name] for name in reads if name in before.producer}
            sizes = {
                at
                for at in makers
                if all(self._is_size(name) for name in before.nodes[at].output if name in reads)
            }
            if not sizes:
                break
            inside = with_unchanged(self._sides, inside, sizes)
        return inside

    def _is_size(self, name: str) -> bool:
        value = self._model.main.value(name)
        if value is None or value.dtype not in _INTEGERS:
            return False
        return value.rank is not None and value.rank <= 1

    def _cover(self, inside: Inside) -> None:
        for known, nodes in zip(self._covered, inside, strict=True):
            known.update(nodes)

    def _run_region(self, region: RegionPair) -> _Verdict:
        """Run a region before and after.

        Raises:
            RuntimeFailure: what was there before does not run by itself.
            ModelError: a file of weights is not as it was.
        """
        self._case.has_run = True
        samples = self._samples(region)
        known = bare_types(samples[0].inputs.feeds) if samples else None
        types = types_of(self._model, region.reads) if known is None else known
        made = region.cuts(types)
        cuts = (
            RunnableModel(made[0], with_files(made[0], self._model.folder)),
            RunnableModel(made[1], with_files(made[1], self._model.folder)),
        )
        with _opened(self._worker, cuts[0]) as session:
            if samples is None:
                samples = [
                    Sample(sample.label.replace("inputs", "values at the borders"), sample.inputs)
                    for sample in samples_for(cuts[0].proto, session, self._made())
                ]
            expected = [session.run(sample.inputs.feeds) for sample in samples]
            feeds = [sample.inputs.feeds for sample in samples]
            random = random_outputs(cuts[0].proto, session, feeds, expected)
        comparisons: list[Comparison] = []
        verdict = _Verdict(comparisons, samples, expected, cuts)
        try:
            with _opened(self._worker, cuts[1]) as session:
                for sample, known in zip(samples, expected, strict=True):
                    actual = session.run(sample.inputs.feeds)
                    found = compare(known, actual, self._subject.promise, random=random)
                    comparisons.append(found)
                    if not found.ok:
                        return _Verdict(
                            comparisons, samples, expected, cuts, failing=(sample, found)
                        )
        except RuntimeFailure as error:
            fault = f"the changed nodes ran before the pass, but not after it: {error}"
            return _Verdict(comparisons, samples, expected, cuts, fault)
        return verdict

    def _made(self) -> Wanted:
        """Return which inputs to make for a region: those of the user are for the whole model."""
        return replace(self._case.wanted, given=(), shapes={})

    def _samples(self, region: RegionPair) -> list[Sample] | None:
        """Return the borders' values in the runs of the model; None if it did not run."""
        if not self._before.values:
            return None
        found = []
        for sample, values in self._recorded():
            missing = [name for name in region.reads if name not in values]
            if missing:
                values.update(self._computed(missing, values))
            feeds = {name: values[name] for name in region.reads}
            rules = dict.fromkeys(feeds, "as in the run of the model")
            found.append(Sample(sample.label, Inputs(feeds, rules, sample.inputs.dims)))
        return found

    def _recorded(self) -> list[tuple[Sample, dict[str, Any]]]:
        """Return the runs of the model with numbers that the pass can hold, and their values."""
        runs = zip(self._before.samples, self._before.values, strict=True)
        is_varied = self._case.wanted.varied
        return [
            (sample, values) for sample, values in runs if is_varied or not sample.inputs.is_varied
        ]

    def _computed(self, names: Sequence[str], values: dict[str, Any]) -> Outputs:
        """Compute values that were not recorded from recorded ones."""
        part = self._before.part
        nodes = part.needed(names, values)
        known = {name: values[name] for name in part.border(nodes, names) if name in values}
        session = SlicedSession(
            part.only(nodes), self._model.folder, self._worker, self._budget // 2
        )
        return session.run(known, names)

    def _opinion(self, verdict: _Verdict) -> Opinion:
        """Return the reference's opinion of a region that differs; an empty one for others."""
        if verdict.failing is None:
            return Opinion(False, "")
        sample, found = verdict.failing
        feeds, promise = sample.inputs.feeds, self._subject.promise
        before, after = (replace(cut, proto=with_types(cut.proto, feeds)) for cut in verdict.cuts)
        changed = ModelPair(self._worker, before, after, feeds, promise)
        return region_opinion(changed, _named(found), changed)

    def _note(self, region: RegionPair, verdict: _Verdict) -> None:
        """Add the comparison and the computed values of a region."""
        self.nodes += region.size
        self._cover(region.inside)
        self._compared.update(region.writes)
        if self._before.values:
            for (_, values), expected in zip(self._recorded(), verdict.expected, strict=True):
                for name, value in expected.items():
                    values.setdefault(name.removeprefix(PREFIX), value)
        for at, (found, sample) in enumerate(
            zip(verdict.comparisons, verdict.samples, strict=True)
        ):
            if at == len(self._case.comparisons):
                self._case.comparisons.append(Comparison([], found.numerics))
                self._case.samples.append(Sample(sample.label, Inputs({}, {}, {})))
            self._case.comparisons[at].outputs.extend(_named(found).outputs)
            self._case.samples[at].inputs.rules.update(sample.inputs.rules)
            self._case.samples[at].inputs.dims.update(sample.inputs.dims)

    def _still_true(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values without those that a region produced and no comparison covers."""
        after = self._sides[1]
        made = {
            name
            for part, nodes in zip(self._sides, self._covered, strict=True)
            for at in nodes
            for name in part.nodes[at].output
        }
        return {
            name: value
            for name, value in values.items()
            if after.has(name) and (name not in made or name in self._compared)
        }

    def _failure(self, verdict: _Verdict, opinion: Opinion) -> VerificationError:
        subject, label = self._subject, self._model.label
        if verdict.failing is None:
            return failure_of(subject, label, verdict.fault)
        sample, found = verdict.failing
        return failure_of(subject, label, "", sample, _named(found), opinion.text)


def _opened(worker: Worker, cut: RunnableModel) -> AbstractContextManager[Runner]:
    return open_model(worker, cut.proto, folder=cut.folder)


def _named(found: Comparison) -> Comparison:
    """Return a comparison with the names that the borders have in the model."""
    outputs = [replace(each, name=each.name.removeprefix(PREFIX)) for each in found.outputs]
    return Comparison(outputs, found.numerics)
