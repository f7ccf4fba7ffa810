"""Verify: each pass that changed something is run on onnxruntime and held to its promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import onnx

from tiered.context import PassContext
from tiered.graph import Model, Stamp
from tiered.graph.queries.contrib_checker import contrib_complaint
from tiered.graph.queries.onnx_checker import is_only_declared
from tiered.graph.shape_inference.set_input_shapes import check_shapes
from tiered.passes.validity import complaint_of, is_contrib_complaint_new
from tiered.runtime.compare.outputs import Comparison
from tiered.runtime.inputs.samples import (
    Sample,
    Source,
    Wanted,
    check_given,
    read_samples,
    unfit_remark,
)
from tiered.runtime.worker.client import Worker, shared_worker
from tiered.runtime.worker.limits import physical_memory
from tiered.support.errors import RuntimeFailure, UsageError, VerificationError
from tiered.support.numerics import Numerics
from tiered.support.typed_options import size_in_bytes
from tiered.verify.baseline import Baseline, RecordedBaseline, recorded_baseline, weights_of
from tiered.verify.deployment import Deployment
from tiered.verify.live_extract import is_harmless
from tiered.verify.methods import (
    Case,
    Computed,
    How,
    Method,
    VerificationMethod,
    VerifiedPasses,
    computed_in,
    how_of,
)
from tiered.verify.model_check import WholeModel
from tiered.verify.random_values import is_all_random
from tiered.verify.region_check import ChangedRegion
from tiered.verify.static_properties import acyclic
from tiered.verify.verdict import Verdict, verdict_of

if TYPE_CHECKING:
    from tiered.graph import RewriteRecord
    from tiered.passes.interface.pass_info import PassInfo

LARGE: Final = 1 << 30
"""Bytes of weights above which a model is not run as a whole after each pass."""
Interface = tuple[tuple[tuple[str, ...], tuple[onnx.ValueInfoProto, ...]], ...]


@dataclass
class _Watched:
    """The state of verification of one model.

    Attributes:
        open: a moment for each pass that is open on it.
        baseline: the model as it was last run.
        first: the model as it was before the outermost pipeline, or after the last pass that
            changed the interface.
        changed_by: the passes that changed something since.
        rewrites: those of the pass that runs.
        computed: the values that the baseline computes from narrower floats.
    """

    open: list[Stamp] = field(default_factory=list)
    interface: list[Interface] = field(default_factory=list)
    baseline: Baseline | RecordedBaseline | None = None
    first: Baseline | RecordedBaseline | None = None
    changed_by: list[PassInfo] = field(default_factory=list)
    rewrites: list[RewriteRecord] = field(default_factory=list)
    computed: Computed = ()
    _known: tuple[Stamp, Interface] | None = None

    def interface_of(self, model: Model) -> Interface:
        """Return the interface of the model, read again only if it was edited."""
        if self._known is None or model.journal.moved_since(self._known[0]):
            self._known = model.journal.stamp(), _interface(model)
        return self._known[1]


class Unchanged:
    """The method for passes that edited nothing that is computed."""

    def applies(self, case: Case) -> bool:
        return is_harmless(case.model.journal.since(case.before.stamp.length))

    def check(self, case: Case) -> Baseline | RecordedBaseline:
        case.before.stamp = case.model.journal.stamp()
        case.verified("sameness")
        return case.before


METHODS: Final[tuple[Method, ...]] = (Unchanged(), WholeModel(), ChangedRegion())
"""The chain of methods: the first one that applies verifies a pass."""


class Verify:
    """An instrument that verifies each pass on the model that it runs on.

    A pass that fails is undone, as one that raises is; `on_error="skip"` then goes on without it.

    Args:
        how: "each" runs the model after each pass that changed something, and holds its outputs to
            the promise of the pass; a model with weights above `LARGE` or a quarter of the allowed
            memory, or with random outputs only, is verified as with "region". "region" runs only
            the changed nodes, before and after. "final" runs the model once, at the end, with the
            common promise of all passes. "structure" runs nothing: it checks that the view is
            valid and acyclic, and that onnx.checker accepts the model. "off" does nothing. All but
            "off" check the interface.
        inputs: what to run on: files, folders, dicts of arrays (`runtime/inputs/samples.py`), each
            a sample of all inputs; without any, inputs are made.
        shapes: the dims of generated inputs, by name, as far as they are sizes; a run raises where
            its model has no such input or another size.
        worker: where to run; by default a process that all share, with the limits of the config
            options `verify.seconds`, `verify.memory` and `memory.max`.

    Raises:
        UsageError: an unknown method, or inputs of an unknown kind.
        ModelError: inputs cannot be read.
    """

    is_required: Final = True
    """An error in it ends the run, else its silence would pass for a proof."""

    def __init__(
        self,
        how: How | str | bool = "each",
        *,
        inputs: Iterable[Source] = (),
        shapes: Mapping[str, Sequence[int | str]] | None = None,
        worker: Worker | None = None,
    ) -> None:
        self.how: How = how_of(how)
        self.comparisons: list[Comparison] = []
        """How the outputs compared last, for each sample: of the last pass that changed something,
        or of all of them together."""
        self.largest = 0.0
        """The largest difference of an element that any pass made."""
        self.limits: list[str] = []
        """What floats that differ in a bit were within: of the dtype and class, or the target."""
        self.samples: list[Sample] = []
        """What the model was run on, and which rule chose each input."""
        self.runs = 0
        """How many passes were verified by a run."""
        self.ways: list[VerificationMethod] = []
        """How each pass that changed something was verified, in order."""
        self._given = read_samples(inputs)
        self._shapes = dict(shapes or {})
        self._is_ready = False
        self._worker = worker
        self._watched: WeakKeyDictionary[Model, _Watched] = WeakKeyDictionary()

    @property
    def verdict(self) -> Verdict:
        """What was proved so far."""
        if self.how == "structure":
            return Verdict("structure only")
        return verdict_of(self.ways)

    # --- hooks ------------------------------------------------------------------------------------

    def exit_pass_ctx(self) -> None:
        self._watched.clear()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if self.how == "off":
            return
        watched = self._watched.setdefault(model, _Watched())
        is_outermost = not watched.open
        if is_outermost:
            watched.first = None
            watched.changed_by.clear()
            check_given(model, self._given)
            check_shapes(model, self._shapes)
            if self.how != "structure" and not self._is_ready:
                # Else the start of the worker would count as time of a pass.
                self._process().ready()
                self._is_ready = True
        is_due = self.how in ("each", "region")
        if is_due if info.kind != "pipeline" else self.how == "final" and is_outermost:
            self._take(model, watched)
            if watched.first is None:
                watched.first = watched.baseline
        watched.open.append(model.journal.stamp())
        watched.interface.append(watched.interface_of(model))
        watched.rewrites.clear()

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        if model in self._watched:
            self._watched[model].rewrites.append(record)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        if self.how == "off":
            return
        watched = self._watched[model]
        before, interface = watched.open.pop(), watched.interface.pop()
        if not model.journal.moved_since(before):
            return
        if info.kind != "pipeline":
            _check_interface(model, info, interface)
            if self.how == "structure":
                _check_structure(model, info)
            if self.how in ("each", "region"):
                self._verify(model, watched, (info,), tuple(watched.rewrites))
            watched.changed_by.append(info)
        if self.how == "final" and not watched.open:
            infos = {each.name: each for each in watched.changed_by}
            self._verify(model, watched, tuple(infos.values()), ())
        if info.kind == "pipeline" and not watched.open:
            self._deploy(watched)

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        if model in self._watched:
            self._watched[model].open.pop()
            self._watched[model].interface.pop()

    # --- running ----------------------------------------------------------------------------------

    def _process(self) -> Worker:
        if self._worker is not None:
            return self._worker
        return shared_worker(PassContext.current().config["verify.seconds"], _memory_limit())

    def _take(self, model: Model, watched: _Watched) -> None:
        """Take the model as it is now for the baseline, if it was edited since."""
        state = watched.baseline
        if state is not None and not model.journal.moved_since(state.stamp):
            return
        watched.baseline = self._taken(model)
        watched.computed = computed_in(model)

    def _taken(self, model: Model) -> Baseline | RecordedBaseline:
        """Return the baseline of the model as it is now.

        Outputs that are all random say nothing; what is computed before the draws does, by region.
        """
        if self._is_by_region(model):
            return self._recorded(model)
        whole = Baseline.of(model)
        if is_all_random(whole.runnable.proto):
            # What onnxruntime does not run is for the other method to judge.
            with suppress(RuntimeFailure):
                return self._recorded(model)
        return whole

    def _is_by_region(self, model: Model) -> bool:
        """Return whether only changed regions are to run."""
        if self.how == "region":
            return True
        stated = _memory_limit()
        return weights_of(model) > min(LARGE, LARGE if stated is None else stated // 4)

    def _recorded(self, model: Model) -> RecordedBaseline:
        budget, process, wanted = _budget(), self._process(), self._wanted()
        try:
            state, why = recorded_baseline(model, process, wanted, budget)
        except UsageError as error:
            self._remark("", unfit_remark(error))
            state, why = recorded_baseline(model, process, replace(wanted, given=()), budget)
        if why:
            self._remark(
                "", f"{model.label} does not run within {budget / 2**30:.1f} GiB ({why}): what "
                "passes change runs on values that are made for it"
            )  # fmt: skip
        return state

    def _wanted(self) -> Wanted:
        config = PassContext.current().config
        return Wanted(
            self._given,
            bindings=config["verify.bindings"],
            seed=config["verify.seed"],
            edge_values=config["verify.edge_values"],
            shapes=self._shapes,
        )

    def _remark(self, name: str, text: str) -> None:
        for context in PassContext.current().chain:
            context.report.note("verify", text, name)

    def _verify(
        self,
        model: Model,
        watched: _Watched,
        infos: tuple[PassInfo, ...],
        rewrites: tuple[RewriteRecord, ...],
    ) -> None:
        """Compare the model with its baseline before these passes.

        Raises:
            VerificationError: the outputs differ by more than was promised.
        """
        assert watched.baseline is not None
        limits = PassContext.current().backend.verification
        subject = VerifiedPasses(infos, rewrites, limits, watched.computed)
        is_lossy = subject.promise.numerics is Numerics.LOSSY
        wanted = replace(self._wanted(), varied=not is_lossy)
        case = Case(model, watched.baseline, subject, wanted, self._process(), _budget())
        method = next(each for each in METHODS if each.applies(case))
        try:
            after = method.check(case)
        finally:
            self.runs += case.has_run
        self.ways += case.methods
        if any(each.by in ("model", "region") for each in case.methods):
            self._note(case)
        # Several samples often show the same.
        for text in dict.fromkeys(case.remarks):
            self._remark(subject.name, text)
        watched.baseline = self._recorded(model) if after is None else after
        watched.computed = computed_in(model)
        if subject.changes_interface and case.has_run:
            watched.first = watched.baseline
            watched.changed_by.clear()

    def _deploy(self, watched: _Watched) -> None:
        """Remark where the result differs from the original in other sessions."""
        first, last = watched.first, watched.baseline
        is_wanted = PassContext.current().config["verify.default_session"]
        if not is_wanted or not isinstance(first, Baseline) or not isinstance(last, Baseline):
            return
        if first is last or not last.outputs:
            return
        limits = PassContext.current().backend.verification
        subject = VerifiedPasses(tuple(watched.changed_by), (), limits, watched.computed)
        for text in Deployment(first, last, subject.promise, self._process()).remarks():
            self._remark("", text)

    def _note(self, case: Case) -> None:
        """Keep the comparisons of a case, and the largest difference."""
        self.comparisons, self.samples = case.comparisons, case.samples
        outputs = [output for each in self.comparisons for output in each.outputs]
        self.largest = max([self.largest, *(output.max_abs for output in outputs)])
        limits = (output.limit for output in outputs if output.ok and output.limit)
        self.limits = list(dict.fromkeys([*self.limits, *limits]))


def _memory_limit() -> int | None:
    """Return the bytes that verification may take, None if there is no limit."""
    context = PassContext.current()
    memory, most = context.config["verify.memory"], context.max_memory
    own = None if memory is None else size_in_bytes(memory, physical_memory())
    return min((limit for limit in (own, most) if limit is not None), default=None)


def _budget() -> int:
    """Return the bytes of weights that may be in memory at once."""
    stated = _memory_limit()
    return physical_memory() // 2 if stated is None else stated


def _interface(model: Model) -> Interface:
    """Return the inputs and outputs of a model; the declarations are never written to."""
    main = model.main
    return tuple(
        (tuple(value.name for value in values), infos)
        for values, infos in ((main.inputs, main.input_infos), (main.outputs, main.output_infos))
    )


def _check_structure(model: Model, info: PassInfo) -> None:
    """Check that a pass left the view and the model valid.

    Raises:
        VerificationError: it did not.
    """
    try:
        model.check_view()
    except AssertionError as error:
        raise VerificationError(f"{info.name} left {model.label} inconsistent: {error}") from error
    acyclic(model)
    complaint = complaint_of(model, PassContext.current())
    was_valid = complaint is not None and model.complaint_as_loaded() is None
    if was_valid and not is_only_declared(model):
        raise VerificationError(f"{info.name} made {model.label} invalid: {complaint}")
    misfit = contrib_complaint(model)
    if misfit is not None and is_contrib_complaint_new(model):
        raise VerificationError(f"{info.name} made {model.label} invalid: {misfit}")


def _check_interface(model: Model, info: PassInfo, before: Interface) -> None:
    """Check that a pass left the interface as it was.

    Raises:
        VerificationError: they do not.
    """
    if not info.changes_interface and _interface(model) != before:
        names = [[value.name for value in side] for side in (model.main.inputs, model.main.outputs)]
        raise VerificationError(
            f"{info.name} changed the interface of {model.label}, which it does not say that it "
            f"does (changes_interface=True)\n  inputs and outputs now: {names[0]} -> {names[1]}"
        )
