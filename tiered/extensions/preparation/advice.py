"""doctor: the shortest list of commands that makes a model legal on a target, smaller, faster.

Every remedy is tried: the model is prepared with it in memory, and the nodes that the target takes
are counted. Those that a target cannot do without come first; others stay if fewer nodes are
refused with them, and are left out again if as many are without.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tiered.extensions.preparation.diagnosis import Diagnosis, Suggestion
from tiered.extensions.preparation.preparation_options import (
    LEVEL,
    PrepareOptions,
    prepare_line,
    target_of,
)
from tiered.extensions.preparation.preparation_result import Prepared
from tiered.extensions.preparation.preparing import prepare_model
from tiered.extensions.preparation.remedies import Remedy, for_any_runtime, for_target, gaining
from tiered.graph import Model
from tiered.graph.io.export import export_model
from tiered.pipeline.result import ModelStatistics
from tiered.runtime import shared_worker
from tiered.support.errors import RuntimeFailure, TieredError
from tiered.verify.sliced_session import open_model

if TYPE_CHECKING:
    import onnx

    from tiered.targets import Backend, Coverage

OnStep = Callable[[str], None]

_LEAST: Final = 0.01
"""The share of the bytes, or of the nodes, that a change must save to be named."""


def doctor(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    backend: Backend | str | None = None,
    opt_level: int = LEVEL,
    inputs: Iterable[str] = (),
) -> Diagnosis:
    """Return what makes a model legal on a target, smaller and faster, each tried in memory.

    Args:
        model: a file, or a ModelProto, which is not changed.
        backend: the target; by default any runtime.
        opt_level: of the optimisations.
        inputs: files of samples, for what quantises.

    Raises:
        ModelError: the model is malformed, or the file cannot be read.
        BackendNotFoundError: there is no such target.
    """
    diagnosed = partial(diagnose, backend=backend, opt_level=opt_level, inputs=inputs)
    if isinstance(model, str | os.PathLike):
        return replace(diagnosed(Model.load(model)), source=os.fspath(model))
    return diagnosed(Model.from_proto(model))


def diagnose(
    model: Model,
    *,
    backend: Backend | str | None = None,
    opt_level: int = LEVEL,
    inputs: Iterable[str] = (),
    source: str = "",
    on_step: OnStep = lambda text: None,
) -> Diagnosis:
    """Do as `doctor`, for a view, which is not edited.

    Args:
        model: the view.
        backend, opt_level, inputs: as of `doctor`.
        source: the file, for the commands.
        on_step: called with each trial, for progress.
    """
    return _Doctor(model, backend, opt_level, tuple(inputs), source, on_step).diagnosis()


class _Doctor:
    def __init__(
        self,
        model: Model,
        backend: Backend | str | None,
        opt_level: int,
        inputs: tuple[str, ...],
        source: str,
        on_step: OnStep,
    ) -> None:
        self.model, self.source, self.on_step = model, source, on_step
        self.target = None if backend is None else target_of(backend)
        base = PrepareOptions(backend=backend, opt_level=opt_level)
        self.base = replace(base, precision=replace(base.precision, inputs=inputs))
        self.failed: list[str] = []

    def diagnosis(self) -> Diagnosis:
        coverage = None if self.target is None else self.target.coverage(self.model)
        complaint = self._complaint(self.model)
        is_legal = not complaint and (coverage is None or coverage.is_met)
        remedies, made = self._needed(None if is_legal else coverage)
        if not is_legal and self._wrong(made):
            remedies, made = self._shortest(remedies, made)
        return Diagnosis(
            source=self.source,
            backend="" if self.base.backend is None else str(self.base.backend),
            statistics=ModelStatistics.of(self.model),
            coverage=coverage,
            complaint=complaint,
            remedies=remedies,
            made=replace(made, source=self.source),
            complaint_after=self._complaint(made.model),
            failed=tuple(dict.fromkeys(self.failed)),
            suggestions=tuple(self._suggestions(made)),
        )

    def _needed(self, coverage: Coverage | None) -> tuple[tuple[Remedy, ...], Prepared]:
        """Return what the target cannot do without, and the result with it.

        Args:
            coverage: what it takes of the model as it is; None if nothing is needed.
        """
        found = [] if coverage is None else [each for each in self._candidates(coverage)
                                             if each.is_needed]  # fmt: skip
        first = [each for at, each in enumerate(found) if not _clashes(each, found[:at])]
        last = [each for at, each in enumerate(found) if not _clashes(each, found[at + 1 :])]
        for remedies in (first, last) if first != last else (first,):
            tried = self._tried(remedies) if remedies else None
            if tried is not None:
                return tuple(remedies), tried
        self.on_step("trying the passes of the target")
        return (), prepare_model(self.model.copy(), self.base, verify="off")

    def _shortest(
        self, needed: tuple[Remedy, ...], made: Prepared
    ) -> tuple[tuple[Remedy, ...], Prepared]:
        """Return the fewest remedies with the fewest refused nodes, and the result with them."""
        chosen = list(needed)
        for remedy in self._candidates(made.coverage):
            if not self._wrong(made) or _clashes(remedy, chosen) or (remedy.is_needed and needed):
                continue
            tried = self._tried([*chosen, remedy])
            if tried is not None and (remedy.is_needed or self._wrong(tried) < self._wrong(made)):
                chosen.append(remedy)
                made = tried
        for remedy in [each for each in chosen if not each.is_needed]:
            rest = [each for each in chosen if each is not remedy]
            tried = self._tried(rest) if len(chosen) > 1 else None
            if tried is not None and self._wrong(tried) <= self._wrong(made):
                chosen, made = rest, tried
        return tuple(chosen), made

    def _candidates(self, coverage: Coverage | None) -> Iterable[Remedy]:
        if self.target is None or coverage is None:
            return for_any_runtime()
        return for_target(self.model, self.target, coverage)

    def _tried(
        self, remedies: Iterable[Remedy], options: PrepareOptions | None = None, **more: Any
    ) -> Prepared | None:
        """Return the result with remedies; None if they cannot be applied."""
        options, names = options or self.base, []
        for remedy in remedies:
            options = remedy.applied(options)
            names.append(remedy.what)
        self.on_step(f"trying: {', '.join(names) or 'less'}")
        try:
            return prepare_model(self.model.copy(), options, verify="off", **more)
        except TieredError as error:
            first = str(error).partition("\n")[0]
            self.failed.append(f"{', '.join(names)}: {first}")
            return None

    def _wrong(self, made: Prepared) -> int:
        """Return how many nodes of a result are refused; all if the model itself is."""
        if made.coverage is None:
            return int(bool(self._complaint(made.model)))
        refused = made.coverage.refused.total()
        return refused + made.coverage.nodes * len(made.coverage.model)

    def _complaint(self, model: Model) -> str:
        """Return why onnxruntime does not open a model, if any runtime will do; "" if it does."""
        if self.target is not None:
            return ""
        try:
            proto = export_model(model, is_bare=True)
            with open_model(shared_worker(), proto, folder=model.folder):
                return ""
        except RuntimeFailure as error:
            return str(error).partition("\n")[0]

    def _suggestions(self, made: Prepared) -> Iterable[Suggestion]:
        """Yield what makes the result smaller by a hundredth, or leaves fewer nodes."""
        options, before = made.options, made.after
        as_it_is = ModelStatistics.of(self.model)
        if made.options == self.base and _is_smaller(as_it_is, before):
            line = prepare_line(options, self.source, host=self._wrong(made) > 0)
            yield Suggestion("optimise", "", line, as_it_is, before)
        for remedy in gaining(self.model, options, self.target):
            with suppress(RuntimeFailure):
                tried = self._tried([remedy], options, measures=True)
                if tried is None or self._wrong(tried) > self._wrong(made):
                    continue
                if _is_smaller(before, tried.after):
                    line = prepare_line(tried.options, self.source, host=self._wrong(tried) > 0)
                    error = tried.error if "to" in remedy.changes else ""
                    yield Suggestion(remedy.what, remedy.why, line, before, tried.after, error)


def _is_smaller(before: ModelStatistics, after: ModelStatistics) -> bool:
    """Return whether a hundredth of the bytes or nodes is gone."""
    least = 1 - _LEAST
    is_lighter = after.nbytes <= least * before.nbytes
    return is_lighter or (after.nodes < least * before.nodes and after.nbytes <= before.nbytes)


def _clashes(remedy: Remedy, others: Iterable[Remedy]) -> bool:
    """Return whether one of other remedies sets what a remedy sets."""
    return any((remedy.changes.keys() & other.changes.keys()) - {"to"} for other in others)
