"""Verify: each pass that changed something is run on onnxruntime and held to its promise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args
from weakref import WeakKeyDictionary

from tiered.context import PassContext
from tiered.control.report import Remark
from tiered.errors import UsageError, VerificationError, did_you_mean
from tiered.graph import Model, Stamp
from tiered.options import size_in_bytes
from tiered.runtime.compare import Comparison, compare
from tiered.runtime.limits import physical_memory
from tiered.runtime.worker import Worker, shared_worker
from tiered.verify.samples import Sample, Source, Wanted, read_samples
from tiered.verify.states import State, first_state
from tiered.verify.structure import acyclic
from tiered.verify.trial import Subject, Trial

if TYPE_CHECKING:
    from tiered.graph import RewriteRecord
    from tiered.registry import PassInfo

How = Literal["each", "final", "structure", "off"]
Interface = tuple[tuple[bytes, ...], ...]


def how_of(given: bool | str | None) -> How:
    """Return the way to verify that was asked for; true stands for each pass.

    Raises:
        UsageError: there is no such way.
    """
    if given is None or isinstance(given, bool):
        return "each" if given else "off"
    if given not in get_args(How):
        raise UsageError(
            f"verify takes {', '.join(get_args(How))}, not {given!r}"
            f"{did_you_mean(given, get_args(How))}"
        )
    return given  # type: ignore[return-value]  # one of the names, as was just checked


@dataclass
class _Watched:
    """What is known of one model.

    Attributes:
        open: a moment for each pass that is open on it.
        state: the model as it was last run.
        changed_by: the passes that changed something since.
        rewrites: those of the pass that runs.
    """

    open: list[Stamp] = field(default_factory=list)
    interface: list[Interface] = field(default_factory=list)
    state: State | None = None
    changed_by: list[PassInfo] = field(default_factory=list)
    rewrites: list[RewriteRecord] = field(default_factory=list)


class Verify:
    """An instrument that proves passes on the model that they are run on.

    A pass that fails is undone, as one that raises is; `on_error="skip"` then goes on without it.

    Args:
        how: "each" runs the model after each pass that changed something and compares its outputs
            with those before, as the pass promises; "final" does so once, at the end, with what
            all passes promise together; "structure" runs nothing, and only checks that the view is
            whole and acyclic; "off" does nothing. All but the last check the interface.
        inputs: what to run on: files, folders, dicts of arrays (`tiered.verify.samples`); what is
            missing is made.
        worker: where to run; by default a process that all share, with the limits of the config
            options `verify.seconds` and `verify.memory`.

    Raises:
        UsageError: an unknown way, or inputs of an unknown kind.
        ModelError: inputs cannot be read.
    """

    def __init__(
        self,
        how: How | str | bool = "each",
        *,
        inputs: Iterable[Source] = (),
        worker: Worker | None = None,
    ) -> None:
        self.how: How = how_of(how)
        self.comparisons: list[Comparison] = []
        """How the outputs compared last, for each sample: of the last pass that changed something,
        or of all of them together."""
        self.largest = 0.0
        """The largest difference of an element that any pass made."""
        self.samples: list[Sample] = []
        """What the model was run on, and which rule chose each input."""
        self.runs = 0
        """How many passes were verified by a run."""
        self._given = read_samples(inputs)
        self._worker = worker
        self._watched: WeakKeyDictionary[Model, _Watched] = WeakKeyDictionary()

    # --- hooks ------------------------------------------------------------------------------------

    def enter_pass_ctx(self) -> None:
        if self.how in ("each", "final"):
            self._process().start()

    def exit_pass_ctx(self) -> None:
        for watched in self._watched.values():
            if watched.state is not None:
                watched.state.close()
        self._watched.clear()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if self.how == "off":
            return
        watched = self._watched.setdefault(model, _Watched())
        is_outermost = not watched.open
        if self.how == "each" if info.kind != "pipeline" else self.how == "final" and is_outermost:
            self._take(model, watched)
        if is_outermost and self.how == "final":
            watched.changed_by.clear()
        watched.open.append(model.journal.stamp())
        watched.interface.append(_interface(model))
        watched.rewrites.clear()

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        if self.how != "off" and model in self._watched:
            self._watched[model].rewrites.append(record)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        if self.how == "off":
            return
        watched = self._watched[model]
        before, interface = watched.open.pop(), watched.interface.pop()
        if not model.journal.moved_since(before):
            return
        if info.kind != "pipeline":
            watched.changed_by.append(info)
            _check_interface(model, info, interface)
            if self.how == "structure":
                _check_structure(model, info)
            if self.how == "each":
                self._verify(model, watched, (info,), tuple(watched.rewrites))
        if self.how == "final" and not watched.open:
            infos = {each.name: each for each in watched.changed_by}
            self._verify(model, watched, tuple(infos.values()), ())

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        if self.how != "off" and model in self._watched:
            self._watched[model].open.pop()
            self._watched[model].interface.pop()

    # --- running ----------------------------------------------------------------------------------

    def _process(self) -> Worker:
        if self._worker is None:
            config = PassContext.current().config
            memory, most = config["verify.memory"], physical_memory() or 0
            nbytes = None if memory is None else size_in_bytes(memory, most)
            self._worker = shared_worker(config["verify.seconds"], nbytes)
        return self._worker

    def _take(self, model: Model, watched: _Watched) -> None:
        """Run the model as it is now, unless that is known."""
        state = watched.state
        if state is not None and not model.journal.moved_since(state.stamp):
            return
        self._set(watched, first_state(model, self._process(), self._wanted()))
        assert watched.state is not None
        self.samples = watched.state.samples
        self.comparisons = [compare(outputs, outputs) for outputs in watched.state.outputs]

    def _wanted(self) -> Wanted:
        config = PassContext.current().config
        return Wanted(
            self._given,
            config["verify.bindings"],
            config["verify.seed"],
            config["verify.edge_values"],
        )

    def _set(self, watched: _Watched, state: State) -> None:
        if watched.state is not None:
            watched.state.close()
        watched.state = state

    def _verify(
        self,
        model: Model,
        watched: _Watched,
        infos: tuple[PassInfo, ...],
        rewrites: tuple[RewriteRecord, ...],
    ) -> None:
        """Run the model as it is now, and hold it against how it was before these passes.

        Raises:
            VerificationError: the outputs differ by more than was promised.
        """
        assert watched.state is not None
        self.runs += 1
        subject = Subject(infos, rewrites, PassContext.current().backend.verification)
        trial = Trial(model, watched.state, subject, self._wanted(), self._process())
        after = trial.run()
        self.comparisons, self.samples = trial.comparisons, after.samples
        differences = [o.max_abs for each in self.comparisons for o in each.outputs]
        self.largest = max([self.largest, *differences])
        for text in trial.remarks:
            for context in PassContext.current().chain:
                context.report.notes.append(Remark("verify", subject.name, text))
        self._set(watched, after)


def _interface(model: Model) -> Interface:
    """Return what callers see of a model."""
    infos = (model.main.input_infos, model.main.output_infos)
    return tuple(
        tuple(info.SerializeToString(deterministic=True) for info in side) for side in infos
    )


def _check_structure(model: Model, info: PassInfo) -> None:
    """Check that a pass left a model whole: what running it would show, and more.

    Raises:
        VerificationError: it did not.
    """
    try:
        model.check_view()
    except AssertionError as error:
        raise VerificationError(f"{info.name} left {model.label} inconsistent: {error}") from error
    acyclic(model)


def _check_interface(model: Model, info: PassInfo, before: Interface) -> None:
    """Check that callers see what they saw before a pass.

    Raises:
        VerificationError: they do not.
    """
    if not info.changes_interface and _interface(model) != before:
        names = [
            [value.name for value in side] for side in (model.main.inputs, model.main.outputs)
        ]
        raise VerificationError(
            f"{info.name} changed the interface of {model.label}, which it does not say that it "
            f"does (changes_interface=True)\n  inputs and outputs now: {names[0]} -> {names[1]}"
        )
