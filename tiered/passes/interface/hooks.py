"""Hooks of instruments and of the trace callable, and how they are called.

An exception of a hook is reported once; the hook is still called later, and neither the model nor
other hooks are affected. A `TieredError` fails the pass: checks and verification raise it. An
instrument whose attribute `is_required` is true ends the run with whatever its hooks raise: what
proves or verifies must not fall silent.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tiered.passes.interface.pass_info import PassInfo, PassResult
from tiered.passes.interface.report import Report
from tiered.support.errors import RAISED, TieredError, UsageError

if TYPE_CHECKING:
    from tiered.graph import Model, RewriteRecord
    from tiered.passes.interface.pass_info import Decision

HOOKS = (
    "enter_pass_ctx",
    "exit_pass_ctx",
    "should_run",
    "run_before_pass",
    "run_after_pass",
    "run_after_pass_failed",
    "on_skip",
    "on_rewrite",
    "on_result",
)

TraceHook = Callable[["Model", PassInfo, bool], object]


class Instrument(Protocol):
    """The hooks of an instrument; an instrument is any object that has some of them.

    `model` is the live `Model`, which a hook may read and must not edit. Hooks are called for
    pipelines too (`info.kind == "pipeline"`), so calls nest. `on_result` comes last for each
    decision, with its outcome: reason, dependant, remarks, time, error.
    """

    def enter_pass_ctx(self) -> None: ...
    def exit_pass_ctx(self) -> None: ...
    def should_run(self, model: Model, info: PassInfo) -> bool: ...
    def run_before_pass(self, model: Model, info: PassInfo) -> None: ...
    def run_after_pass(self, model: Model, info: PassInfo) -> None: ...
    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None: ...
    def on_skip(self, model: Model, info: PassInfo, decision: Decision) -> None: ...
    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None: ...
    def on_result(self, model: Model, result: PassResult) -> None: ...


class Watcher:
    """One instrument or trace callable of one context."""

    def __init__(
        self,
        subject: object,
        hooks: dict[str, Callable[..., Any]],
        label: str,
        report: Report,
        *,
        sees_pipelines: bool = True,
    ) -> None:
        self.subject = subject
        self.hooks = hooks
        self.label = label
        self.sees_pipelines = sees_pipelines
        self._report = report
        self._reported = False

    @classmethod
    def of_instrument(cls, instrument: object, report: Report) -> Watcher:
        """Return the watcher of an instrument.

        Raises:
            UsageError: it has none of the hooks, or is a class.
        """
        hooks = {name: getattr(instrument, name, None) for name in HOOKS}
        label = type(instrument).__name__
        if isinstance(instrument, type) or not any(map(callable, hooks.values())):
            raise UsageError(
                f"{instrument!r} is no instrument: expected an object with at least one of "
                f"{', '.join(HOOKS)}"
            )
        present = {name: hook for name, hook in hooks.items() if callable(hook)}
        return cls(instrument, present, label, report)

    @classmethod
    def of_trace(cls, trace: object, report: Report) -> Watcher:
        """Return the watcher of a trace callable, or of an instrument that is callable.

        Raises:
            UsageError: it is not callable.
        """
        if not isinstance(trace, type) and callable(getattr(trace, "run_before_pass", None)):
            return cls.of_instrument(trace, report)
        if not callable(trace):
            raise UsageError(f"trace takes a callable (model, info, is_before), not {trace!r}")
        label = getattr(trace, "__qualname__", None) or type(trace).__name__
        hooks = {
            "run_before_pass": lambda model, info: trace(model, info, True),
            "run_after_pass": lambda model, info: trace(model, info, False),
        }
        return cls(trace, hooks, f"trace {label}", report, sees_pipelines=False)

    def call(self, hook: str, *arguments: Any) -> bool:
        """Call a hook if there is one; return whether it did not raise.

        Raises:
            TieredError: the hook raised it: it means to fail the pass.
        """
        function = self.hooks.get(hook)
        return function is None or self._answer(hook, function, *arguments) is not _NO_ANSWER

    def wants(self, model: Model, info: PassInfo) -> bool:
        """Ask `should_run`; raises as `call`."""
        return bool(self._answer("should_run", self.hooks["should_run"], model, info))

    def _answer(self, hook: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except TieredError:
            raise
        except RAISED as error:  # reported; a hook may not harm the run
            if getattr(self.subject, "is_required", False):
                raise  # whoever asked for it must not believe that it watched
            self.report_once(hook, error)
            return _NO_ANSWER

    def report_once(self, hook: str, error: BaseException) -> None:
        """Report that a hook raised, only the first time."""
        if self._reported:
            return
        self._reported = True
        where = _place(error)
        text = f"{self.label} raised in {hook}{where}: {type(error).__name__}: {error}"
        self._report.note("hook", text)
        warnings.warn(f"{text} (reported once; the passes continue)", RuntimeWarning, stacklevel=3)


# True as a bool: an instrument whose `should_run` raises does not stop the pass.
_NO_ANSWER: Any = object()


def _place(error: BaseException) -> str:
    """Return the file and line where a hook raised."""
    import traceback  # few hooks raise

    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f" at {frame.f_code.co_filename}:{line}"


def enter_all(watchers: Sequence[Watcher]) -> list[Watcher]:
    """Call `enter_pass_ctx` in order; return those that entered; `exit_all` takes them.

    Raises:
        TieredError: one refuses; `exit_pass_ctx` of those before it has been called.
    """
    entered: list[Watcher] = []
    try:
        for watcher in watchers:
            if watcher.call("enter_pass_ctx"):
                entered.append(watcher)
    except BaseException:
        exit_all(entered)
        raise
    return entered


def exit_all(entered: Sequence[Watcher]) -> None:
    """Call every `exit_pass_ctx` in reverse order; raise the first `TieredError` at the end."""
    _all(reversed(entered), "exit_pass_ctx")


def _all(watchers: Iterable[Watcher], hook: str, *arguments: Any) -> None:
    """Call a hook of all, even if one raises; raise the first `TieredError` at the end."""
    first: BaseException | None = None
    for watcher in watchers:
        try:
            watcher.call(hook, *arguments)
        except BaseException as error:  # noqa: BLE001 - raised after all were called
            first = first or error
    if first is not None:
        raise first


class ReadOnly:
    """A block without edits; `why` is part of the error. A class, as each hook call enters one."""

    __slots__ = ("_before", "_journal", "_why")

    def __init__(self, model: Model, why: str) -> None:
        self._journal = model.journal
        self._why = why
        self._before: str | None = None

    def __enter__(self) -> None:
        journal = self._journal
        self._before, journal.frozen = journal.frozen, self._why

    def __exit__(self, *_: object) -> None:
        self._journal.frozen = self._before


class Watch:
    """The watchers of the contexts around one pass run, outermost first."""

    def __init__(self, watchers: Sequence[Watcher], model: Model) -> None:
        self._watchers = watchers
        self._rewrite_hooks = [
            (watcher, watcher.hooks["on_rewrite"])
            for watcher in watchers
            if "on_rewrite" in watcher.hooks
        ]
        self._deciding = [watcher for watcher in watchers if "should_run" in watcher.hooks]
        self._model = model

    def _read_only(self, hook: str) -> ReadOnly:
        return ReadOnly(self._model, f"a {hook} hook is reading it")

    def veto(self, info: PassInfo) -> str | None:
        """Call `should_run` of every instrument; return the first that refuses."""
        refused = None
        for watcher in self._deciding:
            with self._read_only("should_run"):
                if not watcher.wants(self._model, info):
                    refused = refused or watcher.label
        return refused

    def before(self, info: PassInfo) -> list[Watcher]:
        """Call `run_before_pass`; return the watchers to call at the end of the pass.

        Raises:
            TieredError: a hook refuses; `run_after_pass_failed` of those before it has been called.
        """
        called: list[Watcher] = []
        try:
            for watcher in self._watchers:
                if info.kind == "pipeline" and not watcher.sees_pipelines:
                    continue
                with self._read_only("run_before_pass"):
                    if watcher.call("run_before_pass", self._model, info):
                        called.append(watcher)
        except BaseException as error:
            self.failed(info, called, error)
            raise
        return called

    def after(self, info: PassInfo, called: Sequence[Watcher]) -> None:
        """Call `run_after_pass` in reverse order."""
        if called:
            with self._read_only("run_after_pass"):
                _all(reversed(called), "run_after_pass", self._model, info)

    def failed(self, info: PassInfo, called: Sequence[Watcher], error: BaseException) -> None:
        """Call `run_after_pass_failed` in reverse order; the error of the pass is kept."""
        if called:
            with self._read_only("run_after_pass_failed"):
                try:
                    _all(reversed(called), "run_after_pass_failed", self._model, info, error)
                except TieredError as late:
                    error.add_note(f"and a hook raised after that: {late}")

    def skipped(self, info: PassInfo, decision: Decision) -> None:
        """Call `on_skip`."""
        if self._watchers:
            with self._read_only("on_skip"):
                _all(self._watchers, "on_skip", self._model, info, decision)

    def rewrote(self, info: PassInfo, record: RewriteRecord) -> None:
        """Call `on_rewrite`: as `_all` does, but faster, as a run makes thousands of rewrites."""
        journal = self._model.journal
        first: BaseException | None = None
        before, journal.frozen = journal.frozen, "an on_rewrite hook is reading it"
        try:
            for watcher, hook in self._rewrite_hooks:
                try:
                    hook(self._model, info, record)
                except BaseException as error:  # noqa: BLE001 - reported, or raised at the end
                    if isinstance(error, Exception) and not isinstance(error, TieredError):
                        watcher.report_once("on_rewrite", error)
                    else:
                        first = first or error
        finally:
            journal.frozen = before
        if first is not None:
            raise first

    def result(self, result: PassResult) -> None:
        """Call `on_result`."""
        if self._watchers:
            with self._read_only("on_result"):
                _all(self._watchers, "on_result", self._model, result)

    @property
    def is_needed(self) -> bool:
        """Whether any hook exists."""
        return bool(self._watchers)

    @property
    def wants_rewrites(self) -> bool:
        """Whether any hook takes rewrites."""
        return bool(self._rewrite_hooks)
