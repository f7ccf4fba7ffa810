"""PassContext: decides which passes run, informs those who watch, and keeps the report."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, ParamSpec, Protocol, TypeVar

from tiered.passes.interface.hooks import TraceHook, Watcher, enter_all, exit_all
from tiered.passes.interface.pass_info import Decision, Place
from tiered.passes.interface.registry import registry
from tiered.passes.interface.report import Report
from tiered.passes.policy.decide import decide
from tiered.passes.policy.selectors import Entry, caller, check_disjoint, entries_of
from tiered.support.config_options import checked_config, config_options
from tiered.support.errors import TieredError, UsageError
from tiered.support.records import Record
from tiered.support.setting_names import unknown_setting
from tiered.support.typed_options import size_in_bytes
from tiered.targets.any_runtime import ANY_RUNTIME, DEFAULT, REGISTERED, AnyRuntime

if TYPE_CHECKING:
    from tiered.graph import Node
    from tiered.passes.interface.pass_info import Runnable
    from tiered.passes.interface.report import Remark
    from tiered.rewriter import Skip
    from tiered.targets import Backend

    class Listener(Protocol):
        """Receives the notes of the pass that runs."""

        def note(self, kind: NoteKind, reason: Skip | str, node: Node | None = None) -> None: ...


P = ParamSpec("P")
T = TypeVar("T")

OnError = Literal["raise", "skip"]
NoteKind = Literal["missed", "found"]
DEFAULT_LEVEL = 2
MOST_LEVEL = 4
_SETTINGS = (
    "opt_level", "required", "disabled", "trace", "instruments", "config", "backend", "on_error",
    "strict", "rewrite_limit",
)  # fmt: skip
LEVELS_TEXT = f"an integer from 0 to {MOST_LEVEL}"


class _Entered(Record):
    context: PassContext
    informed: list[Watcher]


LISTENER: ContextVar[Listener | None] = ContextVar("tiered_listener", default=None)
"""Set while a pass runs."""

_STACK: ContextVar[tuple[_Entered, ...]] = ContextVar("tiered_contexts", default=())


class PassContext:
    """Which passes run, how, and who watches: `with PassContext(opt_level=3): model = p(model)`.

    Settings not given are inherited from the context around it; outermost: level 2, raise, not
    strict. `required` and `disabled` take passes, names, aliases, globs (`fuse_*`), a place
    (`fold_constant:2`, `cleanup/fold_constant`) and a part of the model
    (`fuse_gelu@'/encoder/**'`); the innermost context that mentions a pass decides.

    Args:
        opt_level: passes up to this level run: 0 what inference needs, 1 structure, 2 exact algebra
            (the default), 3 fusions, 4 approximations.
        required: passes that run whatever their level.
        disabled: passes that do not run.
        trace: called as `trace(model, info, is_before)` before and after each pass.
        instruments: objects with some of the hooks of `Instrument`.
        config: config options by name.
        backend: the target that passes may specialise for: a `Backend`, the name of one, or a TOML
            file; outermost `portable`.
        on_error: what follows when a pass raises: "raise" fails the whole call, "skip" undoes that
            pass and continues.
        strict: raise errors instead of remarks: for entries that select no pass, and for passes
            with a disabled dependency.
        rewrite_limit: the number of the last rewrite of a model that is allowed.

    Raises:
        UsageError: an unknown argument or one of the wrong type, one name both required and
            disabled, or a backend that does not exist, or with a wrong profile.
        PassNotFoundError: an unknown name, or a glob that matches no pass.
        ConfigError: an unknown config option, or a value of the wrong type.
    """

    def __init__(
        self,
        opt_level: int | None = None,
        *,
        required: Iterable[Runnable | str] = (),
        disabled: Iterable[Runnable | str] = (),
        trace: TraceHook | None = None,
        instruments: Iterable[object] = (),
        config: Mapping[str, Any] | None = None,
        backend: Backend | str | None = None,
        on_error: OnError | None = None,
        strict: bool | None = None,
        rewrite_limit: int | None = None,
        **unknown: Never,
    ) -> None:
        for name in unknown:
            raise unknown_setting("PassContext", name, _SETTINGS)
        self.site = caller()
        self.required = entries_of(required, "required", self.site)
        self.disabled = entries_of(disabled, "disabled", self.site)
        check_disjoint(self.required, self.disabled)
        self.report = Report()
        self._is_isolated = False
        self._known_chain: tuple[object, tuple[PassContext, ...]] | None = None
        self._opt_level = _checked("opt_level", opt_level, _is_level, LEVELS_TEXT)
        self._rewrite_limit = _checked(
            "rewrite_limit", rewrite_limit, _is_count, "an integer from 0"
        )
        self._on_error = _checked(
            "on_error", on_error, ("raise", "skip").__contains__, "'raise' or 'skip'"
        )
        self._strict = _checked("strict", strict, _is_bool, "true or false")
        self._backend = None if backend is None else _backend(backend)
        self._config = checked_config(config or {})
        self._trace = trace
        self._watchers = _watchers(trace, instruments, self.report)
        self._used: set[Entry] = set()

    @classmethod
    def current(cls) -> PassContext:
        """Return the innermost context that is entered, or a new one with the defaults."""
        stack = _STACK.get()
        return stack[-1].context if stack else cls()

    @classmethod
    def is_active(cls) -> bool:
        """Return whether a context is entered here."""
        return bool(_STACK.get())

    @classmethod
    def isolated(cls, opt_level: int | None = None, **settings: Any) -> PassContext:
        """Return a context that inherits nothing and reports to no other; same arguments."""
        context = cls(opt_level, **settings)
        context._is_isolated = True
        return context

    def undecided(self) -> PassContext:
        """Return an isolated context with the backend and the config that hold here."""
        backend: Backend | None = self._inherited("_backend")
        return PassContext.isolated(backend=backend, config=self.config_set)

    # --- settings --------------------------------------------------------------------------

    @property
    def opt_level(self) -> int:
        """The level up to which passes run."""
        level = self._inherited("_opt_level")
        return DEFAULT_LEVEL if level is None else int(level)

    @property
    def on_error(self) -> OnError:
        """What follows when a pass raises: "raise" or "skip"."""
        return self._inherited("_on_error") or "raise"

    @property
    def strict(self) -> bool:
        """Whether unused entries and disabled dependencies are errors."""
        return bool(self._inherited("_strict"))

    @property
    def backend(self) -> Backend:
        """The target: what it supports, and what it prefers."""
        backend: Backend | None = self._inherited("_backend")
        return _backend(None) if backend is None else backend

    @property
    def target(self) -> Backend | AnyRuntime:
        """The backend, for decisions only: the profile of the default one is not read for them."""
        if self._inherited("_backend") is None and DEFAULT not in REGISTERED:
            return ANY_RUNTIME
        return self.backend

    @property
    def names_backend(self) -> bool:
        """Whether this context or one around it names a backend."""
        return self._inherited("_backend") is not None

    @property
    def rewrite_limit(self) -> int | None:
        """The number of the last rewrite that is allowed, None for all."""
        limit: int | None = self._inherited("_rewrite_limit")
        return limit

    @property
    def config(self) -> Mapping[str, Any]:
        """The value of every config option: the innermost one that is set, or the default."""
        values = {name: option.default for name, option in config_options().items()}
        return MappingProxyType({**values, **self.config_set})

    @property
    def config_set(self) -> dict[str, Any]:
        """The config options that are set here, without the defaults."""
        values: dict[str, Any] = {}
        for context in self.chain:
            values.update(context._config)
        return values

    @property
    def max_memory(self) -> int | None:
        """The bytes that a run may take, None without a limit."""
        size = self.config["memory.max"]
        if size is None:
            return None
        from tiered.runtime.worker.limits import physical_memory  # few runs limit it

        return size_in_bytes(size, physical_memory())

    @property
    def watchers(self) -> list[Watcher]:
        """The traces and instruments that watch here, outermost first, each of them once."""
        found: dict[int, Watcher] = {}
        for context in self.chain:
            for watcher in context._watchers:
                found.setdefault(id(watcher.subject), watcher)
        return list(found.values())

    @property
    def sets_level(self) -> bool:
        """Whether this context itself sets the level."""
        return self._opt_level is not None

    @property
    def chain(self) -> tuple[PassContext, ...]:
        """The contexts whose settings hold here, outermost first, this one last.

        A context that is not entered here is taken as if it were, innermost.
        """
        stack = _STACK.get()
        known = self._known_chain
        if known is not None and known[0] is stack:
            return known[1]
        contexts = [entered.context for entered in stack]
        is_entered = self in contexts
        if is_entered:
            del contexts[_last(contexts, self) :]
        contexts.append(self)
        start = max((i for i, c in enumerate(contexts) if c._is_isolated), default=0)
        chain = tuple(contexts[start:])
        if is_entered:
            # A stack is an immutable tuple, so its chain for this context never changes.
            self._known_chain = stack, chain
        return chain

    def _inherited(self, setting: str) -> Any:
        for context in reversed(self.chain):
            value = getattr(context, setting)
            if value is not None:
                return value
        return None

    # --- decisions --------------------------------------------------------------------------------

    def decide(self, pass_: Runnable | str, place: Place | None = None) -> Decision:
        """Return whether a pass runs here, and why.

        Args:
            pass_: the pass, or its name.
            place: its place in a pipeline; by default that of a direct call.

        Raises:
            PassNotFoundError: no pass has this name.
        """
        asked = registry.named(pass_) if isinstance(pass_, str) else pass_
        return decide(self.chain, asked, place or Place())

    def mark_used(self, entry: Entry) -> None:
        """Note that an entry selected a pass."""
        self._used.add(entry)

    # --- what happened ----------------------------------------------------------------------------

    @property
    def remarks(self) -> list[Remark]:
        """The remarks on what happened here; equal ones are counted together."""
        return self.report.remarks(self.config["remarks.examples"])

    def skip(self, node: Node | None, reason: Skip | str) -> None:
        """Note, from inside a function or module pass, why a node is not rewritten."""
        if (listener := LISTENER.get()) is not None:
            listener.note("missed", reason, node)

    def remark(self, text: Skip | str, node: Node | None = None) -> None:
        """Note a finding from inside a pass; a Skip keeps its arguments unformatted."""
        if (listener := LISTENER.get()) is not None:
            listener.note("found", text, node)

    # --- entering and leaving ---------------------------------------------------------------------

    def __enter__(self) -> PassContext:
        informed = enter_all(self._watchers)
        _STACK.set((*_STACK.get(), _Entered(self, informed)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        informed = self._leave()
        unmet = self._note_unmet()
        try:
            exit_all(informed)
        except TieredError as late:
            if error is None:
                raise
            error.add_note(f"and on leaving the context: {late}")
        if unmet and error is None and self.strict:
            raise UsageError("; ".join(unmet))

    def override_instruments(self, instruments: Iterable[object] | None) -> None:
        """Let other instruments watch from now on; the trace, and those around, stay.

        Raises:
            UsageError: the context is not entered: it takes instruments when it is made.
        """
        stack = _STACK.get()
        place = next((at for at, each in enumerate(stack) if each.context is self), None)
        if place is None:
            raise UsageError(
                "override_instruments needs a context that is entered: "
                "`with PassContext(instruments=[...]):`"
            )
        made = _watchers(self._trace, instruments or (), self.report)
        exit_all(stack[place].informed)
        self._watchers = made
        entered = _Entered(self, enter_all(made))
        _STACK.set((*stack[:place], entered, *stack[place + 1 :]))

    def _leave(self) -> list[Watcher]:
        """Take this context off the stack, wherever a generator has left it."""
        stack = _STACK.get()
        place = _last([entered.context for entered in stack], self)
        # The stack refers to this context: without this line they would form a reference cycle.
        self._known_chain = None
        _STACK.set((*stack[:place], *stack[place + 1 :]))
        return stack[place].informed

    def unmet(self) -> list[Entry]:
        """Return the entries of `required` that no decision has met so far."""
        return [entry for entry in self.required if entry not in self._used]

    def _note_unmet(self) -> list[str]:
        unmet = []
        for entries, kind in ((self.required, "required"), (self.disabled, "disabled")):
            for entry in entries:
                if entry not in self._used:
                    self._used.add(entry)
                    unmet.append(f"{kind} {entry} matches no pass")
        for text in unmet:
            self.report.note("unmet", text)
        return unmet

    def wrap(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function so that it runs in this context, in any thread.

        `pool.map(PassContext.current().wrap(work), models)`.
        """
        carried = tuple(_Entered(context, []) for context in self.chain)

        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            token = _STACK.set(carried)
            try:
                return function(*args, **kwargs)
            finally:
                _STACK.reset(token)

        return wrapped

    def __repr__(self) -> str:
        return f"<PassContext opt_level={self.opt_level}, from {self.site}>"


def _last(contexts: Sequence[PassContext], wanted: PassContext) -> int:
    for place in range(len(contexts) - 1, -1, -1):
        if contexts[place] is wanted:
            return place
    raise UsageError("this PassContext is not entered here: was it entered in another thread?")


def _watchers(
    trace: TraceHook | None, instruments: Iterable[object], report: Report
) -> tuple[Watcher, ...]:
    if not hasattr(instruments, "__iter__"):
        raise UsageError(f"instruments takes a list of instruments, not {instruments!r}")
    watchers = [Watcher.of_instrument(instrument, report) for instrument in instruments]
    if trace is not None:
        watcher = Watcher.of_trace(trace, report)
        if all(watcher.subject is not known.subject for known in watchers):
            watchers.append(watcher)
    return tuple(watchers)


def _checked(name: str, value: Any, fits: Callable[[Any], bool], takes: str) -> Any:
    if value is None or fits(value):
        return value
    raise UsageError(f"{name} takes {takes}, not {value!r}")


def _is_level(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_LEVEL


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _backend(given: Backend | str | None) -> Backend:
    """Return the backend that is given, or named; the default one for None."""
    # Most contexts name no backend.
    from tiered.targets import Backend, get_backend

    if isinstance(given, Backend):
        return given
    if given is None or isinstance(given, str):
        return get_backend(given or DEFAULT)
    raise UsageError(f"backend takes a Backend, the name of one or a TOML file, not {given!r}")
