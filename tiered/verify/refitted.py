"""Samples for a changed interface, with what the model before computes for them.

What has the same name is the same tensor, unless the pass says otherwise. Where the new inputs are
tensors of the model before, its samples go on: it runs, and what it computes is fed. Otherwise the
new inputs are made, and the old ones follow from them. A batch of another size goes through the
model before in parts (`rebatched`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tiered.graph.core.interface_map import BatchMap, InterfaceMap, PackMap, converted
from tiered.runtime.external_data import take_in
from tiered.runtime.inputs.make import Inputs
from tiered.runtime.inputs.samples import Sample, in_dtypes_of, samples_for, unfit_remark
from tiered.support.amounts import counted
from tiered.support.errors import RuntimeFailure, UsageError
from tiered.verify.changed_region import with_outputs
from tiered.verify.packed import feeds_of, joined as joined_sequences, sequences_of
from tiered.verify.part_extraction import GraphPart
from tiered.verify.rebatched import (
    alike,
    batch_size,
    joined,
    part_of,
    parts,
    stacked,
    wanted_sizes,
)
from tiered.verify.sliced_session import feeds_for, open_model

if TYPE_CHECKING:
    import onnx

    from tiered.runtime import Worker
    from tiered.runtime.inputs.samples import Wanted
    from tiered.runtime.session import Runner
    from tiered.verify.baseline import Baseline

Outputs = dict[str, Any]


class Refitting:
    """The samples of a model whose interface changed.

    Args:
        before: the model before, which has run on its samples.
        after: the model after, as it is open in `session`.
        session: where it runs.
        relation: how the two interfaces relate.
        worker: where the model before runs.

    Attributes:
        remarks: what became of the user's samples.
    """

    def __init__(
        self,
        before: Baseline,
        after: onnx.ModelProto,
        session: Runner,
        relation: InterfaceMap,
        worker: Worker,
    ) -> None:
        self.remarks: list[str] = []
        self._before = before
        self._after = after
        self._session = session
        self._relation = relation
        self._worker = worker
        self._part = GraphPart.of(before.runnable.proto)
        inputs = session.inputs
        takes = feeds_for(after, {info.name: info for info in after.graph.input})
        # The defaults of the model after that are inputs of the model before.
        self._defaults = tuple(
            name for name in takes if name not in inputs and self._source(name) in self._part.inputs
        )
        # A default that the model after does not take is the same in both models: it is not fed.
        kept = {*map(self._source, (*inputs, *self._defaults)), *relation.feeds}
        self._old_defaults = self._part.inputs.keys() & self._part.weights.keys()
        gone = self._old_defaults if relation.packed else self._old_defaults - kept
        self._fed = [
            {name: array for name, array in sample.inputs.feeds.items() if name not in gone}
            for sample in before.samples
        ]
        pairs = zip(before.samples, self._fed, strict=True)
        self._given = [fed for sample, fed in pairs if sample.is_given]
        self._first = self._fed[0] if self._fed else {}

    def samples(self, wanted: Wanted) -> tuple[list[Sample], list[Outputs]]:
        """Return samples for the model after, and the outputs that are expected of it.

        Raises:
            RuntimeFailure: the model before does not run on what corresponds to them.
        """
        if self._relation.new:
            raise RuntimeFailure(self._relation.new)
        if self._relation.batch is not None:
            return self._in_parts(wanted, self._relation.batch)
        if self._relation.packed is not None:
            return self._as_sequences(self._relation.packed)
        if self._goes_on():
            return self._forward()
        return self._backward(wanted)

    def expected_by_reference(self, number: int) -> Outputs:
        """Return the outputs that are expected of a sample, computed on onnx.reference.

        Raises:
            RuntimeFailure: the model before does not run there.
            ModelError: a file of its weights is not as it should be.
        """
        fed = self._fed[number]
        if self._relation.batch is not None:
            return self._expected_in_parts(fed, self._relation.batch, reference=True)
        if self._relation.packed is not None:
            return self._expected_of_sequences(fed, self._relation.packed, reference=True)
        (values,) = self._run(self._source_names(), [fed], reference=True)
        return self._expected(values)

    def _in_parts(self, wanted: Wanted, batch: BatchMap) -> tuple[list[Sample], list[Outputs]]:
        """Return samples of the new size, and what the model before computes for each."""
        made, given = list[Sample](), self._given
        for each in wanted_sizes(self._after, wanted, self._relation, batch):
            try:
                found = samples_for(self._after, self._session, each)
            except RuntimeFailure:
                if not given:
                    raise
                found = []
            made += [replace(each, label=f"{each.label}, each by itself") for each in found]
        self._fed = [self._old_feeds_of_batch(sample.inputs.feeds) for sample in made]
        if given:
            sizes = [batch_size(fed, batch) for fed in self._fed] or [2 * batch.old]
            of_one_size = alike(given)
            if left := len(given) - len(of_one_size):
                what = counted(left, "given sample")
                self.remarks.append(f"{what} left out, as the first one is of another size")
            self._fed.append(stacked(of_one_size, sizes[0], batch))
            feeds = self._new_feeds(self._fed[-1])
            made.append(Sample("given samples, each by itself", Inputs(feeds, {"*": "given"})))
        expected = [self._expected_in_parts(fed, batch) for fed in self._fed]
        return made, expected

    def _expected_in_parts(
        self, fed: Outputs, batch: BatchMap, *, reference: bool = False
    ) -> Outputs:
        size = batch_size(fed, batch)
        indices = parts(size, batch)
        runs = self._run(
            self._source_names(),
            [part_of(fed, samples, batch) for samples in indices],
            reference=reference,
        )
        values = joined(
            [{name: run[name] for name in self._source_names()} for run in runs],
            indices, batch, size,
        )  # fmt: skip
        known = [name for name in self._outputs() if self._source(name) in values]
        return {name: self._converted(name, values) for name in known}

    def _as_sequences(self, packed: PackMap) -> tuple[list[Sample], list[Outputs]]:
        """Return rows of several sequences, and what the model before computes for each."""
        made = list[Sample]()
        for sample, fed in zip(self._before.samples, self._fed, strict=True):
            feeds = feeds_of(sequences_of(fed, packed), self._session.inputs)
            rules = dict.fromkeys(feeds, "given") if sample.is_given else {}
            made.append(
                Sample("sequences, each by itself", Inputs(feeds, {**rules, "*": "packed"}))
            )
        return made, [self._expected_of_sequences(fed, packed) for fed in self._fed]

    def _expected_of_sequences(
        self, fed: Outputs, packed: PackMap, *, reference: bool = False
    ) -> Outputs:
        sequences, names = sequences_of(fed, packed), self._source_names()
        runs = self._run(names, sequences.runs, reference=reference)
        found = [{name: run[name] for name in names} for run in runs]
        return joined_sequences(found, sequences, packed)

    def _old_feeds_of_batch(self, feeds: Mapping[str, Any]) -> Outputs:
        """Return the inputs of the model before, with all samples of a new batch.

        Raises:
            RuntimeFailure: an input does not follow from the new ones.
        """
        plain = {
            source: feeds[name]
            for name, (source, convert) in self._relation.tensors.items()
            if convert is None and name in feeds
        }
        old = {**self._old_feeds(feeds), **plain}
        known = {*feeds, *plain, *self._relation.feeds}
        assert self._relation.batch is not None
        used = [name for name in self._relation.batch.inputs if name in self._part.inputs]
        lost = [name for name in used if name not in known]
        if lost:
            raise RuntimeFailure(f"input {lost[0]!r} of the model before does not follow")
        return old

    def _new_feeds(self, old: Mapping[str, Any]) -> Outputs:
        """Return the inputs of the model after for those of the model before.

        Raises:
            RuntimeFailure: one does not follow from them.
        """
        lost = [name for name in self._session.inputs if self._source(name) not in old]
        if lost or self._relation.feeds:
            raise RuntimeFailure(f"input {lost[0] if lost else ''!r} does not follow")
        return self._taken(old)

    def _taken(self, values: Mapping[str, Any]) -> Outputs:
        """Return the inputs of the model after, and those defaults that are replaced."""
        fed = [name for name in self._defaults if self._source(name) in values]
        return {name: self._converted(name, values) for name in (*self._session.inputs, *fed)}

    def _goes_on(self) -> bool:
        """Return whether the new inputs are tensors of the model before, and not all its inputs."""
        if self._relation.feeds:
            return False
        old = self._part.inputs
        is_other = any(
            name not in old or name in self._relation.tensors for name in self._session.inputs
        )
        known = all(self._part.has(self._source(name)) for name in self._session.inputs)
        return is_other and known

    def _source(self, name: str) -> str:
        return self._relation.tensors.get(name, (name, None))[0]

    def _converted(self, name: str, values: Mapping[str, Any]) -> Any:
        source, convert = self._relation.tensors.get(name, (name, None))
        return converted(convert, values[source])

    def _forward(self) -> tuple[list[Sample], list[Outputs]]:
        made, expected = list[Sample](), list[Outputs]()
        names = [*map(self._source, self._session.inputs), *self._source_names()]
        for sample, values in zip(self._before.samples, self._run(names, self._fed), strict=True):
            inputs = replace(sample.inputs, feeds=self._taken(values))
            made.append(Sample(sample.label, inputs))
            expected.append(self._expected(values))
        return made, expected

    def _backward(self, wanted: Wanted) -> tuple[list[Sample], list[Outputs]]:
        refitted = self._as_refitted(wanted)
        try:
            made = samples_for(self._after, self._session, refitted)
        except UsageError as error:
            self.remarks.append(unfit_remark(error))
            made = samples_for(self._after, self._session, replace(refitted, given=()))
        self._fed = [self._old_feeds(sample.inputs.feeds) for sample in made]
        return made, list(map(self._expected, self._run(self._source_names(), self._fed)))

    def _as_refitted(self, wanted: Wanted) -> Wanted:
        """Return samples of the model before as those of the model after.

        Inputs that are gone are dropped; those that a pass added are made.
        """
        new = self._session.inputs
        given = tuple(
            in_dtypes_of(
                self._after,
                {
                    name: self._converted(name, fed)
                    for name in (*new, *self._defaults)
                    if self._source(name) in fed
                },
            )
            for fed in self._given
        )
        return replace(wanted, given=given, added=frozenset(new) - {*self._part.inputs})

    def _outputs(self) -> list[str]:
        """Return the outputs of the model after that the model before has as tensors."""
        return [name for name in self._session.outputs if self._is_known(name)]

    def _source_names(self) -> list[str]:
        return list(map(self._source, self._outputs()))

    def _expected(self, values: Outputs) -> Outputs:
        return {name: self._converted(name, values) for name in self._outputs()}

    def _old_feeds(self, feeds: Mapping[str, Any]) -> Outputs:
        old = {name: each for name, each in self._first.items() if name not in self._old_defaults}
        for name, (source, convert) in self._relation.tensors.items():
            if convert is None and name in feeds and source in self._part.inputs:
                old[source] = feeds[name]
        for name in self._part.inputs:
            source, convert = self._relation.feeds.get(name, (name, None))
            if source in feeds:
                old[name] = converted(convert, feeds[source])
        return old

    def _is_known(self, name: str) -> bool:
        source = self._source(name)
        return source in self._part.producer or source in self._part.inputs

    def _run(
        self, names: Sequence[str], fed: Sequence[Outputs], *, reference: bool = False
    ) -> list[Outputs]:
        """Return tensors of the model before for feeds."""
        inner = [name for name in dict.fromkeys(names) if name in self._part.producer]
        model, folder = self._before.runnable.proto, self._before.runnable.folder
        probe = with_outputs(model, inner)
        reference = reference or bool(self._before.refused)
        if reference:
            take_in(probe, folder)
        found = []
        with open_model(self._worker, probe, folder=folder, reference=reference) as session:
            for each in fed:
                found.append({**each, **session.run(feeds_for(probe, each), inner)})
        return found
