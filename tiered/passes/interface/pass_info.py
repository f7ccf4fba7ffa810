"""The types that all modules about passes use: a pass, its info, place, decision and result.

This module imports none of those modules, so that none of them needs to import another for types.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from tiered.support.errors import PassError, UsageError
from tiered.support.numerics import LEVEL_OF, Numerics, Promise
from tiered.support.records import Record
from tiered.support.typed_options import Option

if TYPE_CHECKING:
    from tiered.graph import Model, Node
    from tiered.passes.policy.node_scope import Scope


LIVES: Final = ("preview", "stable", "deprecated")
"""The stages of the life of a pass."""

_PACKAGE: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")


class _PassInfo(NamedTuple):
    """The fields of `PassInfo`."""

    name: str
    opt_level: int | None = 0
    kind: str = "module"
    required: tuple[str, ...] = ()
    followed_by: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    may_make: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    quantization: str = ""
    numerics: Numerics = Numerics.EXACT
    numerics_option: str = ""
    legalizes: str = ""
    changes_interface: bool = False
    interface_options: tuple[tuple[str, Any], ...] = ()
    analysis: bool = False
    law: str = ""
    prose: str = ""
    source: str = ""
    options: tuple[Option, ...] = ()
    limits: Promise | None = None
    life: str = "stable"
    replacement: str = ""


_LAW: Final = _PassInfo._fields.index("law")


class PassInfo(_PassInfo):
    """The declarations and options of a pass; hooks receive it too.

    `opt_level` None is opt-in; `kind` is one of rewrite, function, module, proto and pipeline;
    `law` is the first line of the pass's file, `source` its path; `prose` is the docstring of a
    pass without a file of its own in tiered: `doc` is that of any. `makes` are the operators beyond
    the standard that it makes, as "com.microsoft::BiasGelu", `may_make` those that it makes where
    the opset lacks a standard one. `touches` are the operators that it rewrites or moves,
    "elementwise" for all such, "*" for any. `interface_options` are options with the values that
    make it change the interface. `numerics_option` is the option that sets the numeric class, and
    with it the lowest level: a class, or else what makes the pass reassociating unless it is false
    or empty. `legalizes` is the map of legalizations that a rule belongs to.
    `quantization` is the form of quantised models that it makes, if it runs only for backends that
    want that form. `limits` are its own numeric limits, if any. `life` is preview, stable or
    deprecated: no level runs a pass in preview, and a remark names the `replacement` of a
    deprecated one that runs.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, name: str, *others: Any, **fields: Any) -> PassInfo:
            """Make one; all but the name are keyword-only: TVM has another order of arguments."""
            if others or not isinstance(name, str):
                given = ", ".join(map(repr, (name, *others)))
                raise UsageError(
                    f"PassInfo takes the name of a pass, and the rest by keyword, not ({given}): "
                    "PassInfo('fuse_x', opt_level=3)"
                )
            return super().__new__(cls, name, **fields)

        def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
            return (), self._asdict()

        def __getattr__(self, name: str) -> Any:
            """Return the field of an older word, with a warning."""
            from tiered.support.loading import warn_of_move
            from tiered.support.moved import DECLARATIONS

            if (new := DECLARATIONS.get(name)) not in self._fields:
                raise AttributeError(f"a PassInfo has no {name!r}", name=name, obj=self)
            warn_of_move(f"PassInfo.{name}", new, stacklevel=3)
            return getattr(self, new)

        @property
        def law(self) -> str:
            """The law of the pass, which is read from its own file if it has one."""
            law = self[_LAW]
            return law_in(self.source) if not law and self.is_in_own_file else law

    @property
    def is_built_in(self) -> bool:
        """Return whether the file of the pass is one of tiered."""
        return self.source.startswith(_PACKAGE)

    @property
    def is_in_own_file(self) -> bool:
        """Return whether a file of tiered holds the pass, and nothing else."""
        return self.is_built_in and os.path.basename(self.source) == f"{self.name}.py"

    @property
    def doc(self) -> str:
        """The docstring of the pass."""
        return docstring_in(self.source, self.name) if self.is_in_own_file else self.prose

    @property
    def promise(self) -> Promise:
        """The promise of the pass about the outputs, with its own limits."""
        return Promise(self.numerics) if self.limits is None else self.limits

    @property
    def asks_target(self) -> bool:
        """Whether the operators that the pass may make depend on the target."""
        return bool(self.makes or self.may_make or self.quantization)

    def with_options(self, options: Mapping[str, Any]) -> PassInfo:
        """Return the info of the pass with these values of its options."""
        if self.numerics_option in options:
            numerics = _class_of(options[self.numerics_option])
            own, least = self.opt_level, LEVEL_OF[numerics]
            level = None if own is None or least is None else max(own, least)
            return self._replace(numerics=numerics, opt_level=level)
        changes = any(options.get(name) == value for name, value in self.interface_options)
        if not self.interface_options or changes == self.changes_interface:
            return self
        return self._replace(changes_interface=changes)

    @property
    def is_node_wise(self) -> bool:
        """Whether the pass works node by node, so that it can be bound to a part of a model."""
        return self.kind in ("rewrite", "function")


@cache
def law_in(source: str) -> str:
    """Return the first line of a file, which is a docstring; "" where only compiled files are."""
    try:
        with open(source, encoding="utf-8") as file:
            return file.readline().strip().strip('"').strip()
    except OSError:
        return ""


@cache
def docstring_in(source: str, name: str) -> str:
    """Return the docstring of a function of a file; "" without one."""
    import ast  # few ask for prose

    with open(source, encoding="utf-8") as file:
        statements = ast.parse(file.read()).body
    functions = (each for each in statements if isinstance(each, ast.FunctionDef | ast.ClassDef))
    found = next((each for each in functions if each.name == name), None)
    return (found and ast.get_docstring(found)) or ""


def _class_of(choice: object) -> Numerics:
    """Return the class that a value of `numerics_option` stands for."""
    if isinstance(choice, str) and choice in list(Numerics):
        return Numerics(choice)
    return Numerics.REASSOCIATING if choice else Numerics.EXACT


class Runnable(Protocol):
    """A pass, as the registry, contexts and the execution use it; `Pass` implements it."""

    @property
    def info(self) -> PassInfo: ...
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def options(self) -> Mapping[str, Any]: ...
    @property
    def scope(self) -> Scope | None: ...
    def with_options(self, **options: Any) -> Self: ...
    def may_act(self, model: Model, /) -> bool: ...
    def run(self, model: Model, execution: Any, run: Any, /) -> Any: ...
    def apply(self, model: Any, /) -> Any: ...
    def __call__(self, model: Any, /) -> Any: ...


class HeldCheck(Protocol):
    """A check of a pipeline, as the execution uses it; `policy.checks.Check` implements it."""

    suppressed: bool

    def hold(self, model: Model, kind: type[PassError], when: str, /) -> None: ...


class Place(NamedTuple):
    """The place of a pass in a pipeline, for decisions and runs.

    Attributes:
        occurrence: which of the places of its name in the printed pipeline, from 1; a direct call
            is the first of its own, a dependency has none (0).
        earlier: how often each name occurs before this place in the outermost pipeline.
        groups: the named groups around it, outermost first.
        needed_by: the pass that it serves as dependency or follow-up; "" in a pipeline or call.
        parks: whether opt-ins run here only if required.
        asked: whether the user listed it, so that it runs at every level, unless disabled.
        forced: whether it runs regardless of the context.
        checks: the checks of the pipelines around it after each pass.
    """

    occurrence: int = 1
    earlier: Mapping[str, int] = MappingProxyType({})
    groups: tuple[str, ...] = ()
    needed_by: str = ""
    parks: bool = False
    asked: bool = False
    forced: bool = False
    checks: tuple[HeldCheck, ...] = ()

    def beside(self, name: str) -> Place:
        """Return the place of a dependency or follow-up of the pass that is here."""
        return self._replace(occurrence=0, needed_by=name)


Member = tuple[Runnable, Place]
"""A pass of a pipeline, and its place."""

Members = Generator[Member, tuple[str, ...], None]
"""The members of a pipeline, one after the other; for each, it is sent the names of the passes that
changed the model meanwhile."""


class NodeRules(Record):
    """Which nodes a pass may rewrite: the first scope that holds a node decides about it."""

    scoped: tuple[tuple[Scope, bool], ...]
    otherwise: bool

    def allow(self, node: Node) -> bool:
        """Return whether the pass may rewrite the node."""
        return next((run for scope, run in self.scoped if scope.holds(node)), self.otherwise)


class Decision(NamedTuple):
    """Whether a pass runs, why, and on which nodes (None: on all)."""

    run: bool
    reason: str
    nodes: NodeRules | None = None

    def __bool__(self) -> bool:
        return self.run


class NodeNote(NamedTuple):
    """A node that a pass rewrote, declined or noted; plain data, keeping no model alive."""

    op_type: str
    label: str
    reason: str
    template: str


class PassResult(NamedTuple):
    """One decision about one pass on one model, and what came of it.

    Attributes:
        info: the pass.
        text: the pass as text, with options and scope.
        ran: whether it was run; if not, `reason` is the reason.
        reason: why it ran or did not.
        changed: whether the model is different since.
        rewrites: how many numbered rewrites it made.
        edits: how many edits the journal has of it.
        seconds: its time, without its dependencies; of a pipeline, with its passes.
        error: why it failed and was undone, if so.
        needed_by: the pass that it is a dependency or follow-up of, or "".
        model: the number of the model within this process.
        applied, missed, found: its rewrites, declined rewrites and findings, by node.
        unable: why it cannot do what it is asked for.
        unmet: why it did not reach what it is asked for, whatever it changed.
    """

    info: PassInfo
    text: str
    ran: bool
    reason: str
    changed: bool = False
    rewrites: int = 0
    edits: int = 0
    seconds: float = 0.0
    error: str | None = None
    needed_by: str = ""
    model: int = 0
    applied: tuple[NodeNote, ...] = ()
    missed: tuple[NodeNote, ...] = ()
    found: tuple[NodeNote, ...] = ()
    unable: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.info.name
