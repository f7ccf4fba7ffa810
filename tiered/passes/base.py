"""Pass: a frozen value that is called with a model."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import onnx

from tiered.context import PassContext
from tiered.graph import Model
from tiered.passes.interface.pass_info import Members, PassInfo, Place
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics, Promise
from tiered.support.option_text import format_value
from tiered.support.typed_options import checked_options

if TYPE_CHECKING:
    from tiered.passes.execution import Execution
    from tiered.passes.pass_run import PassRun
    from tiered.passes.policy.node_scope import Scope

AnyModel = TypeVar("AnyModel", Model, onnx.ModelProto)


class Pass(ABC):
    """A pass as a value: its info, its options, and the part of the model that it is bound to.

    Passes are equal if they have the same text. They keep no state between runs, and their
    attributes cannot be set.
    """

    info: PassInfo
    _options: Mapping[str, Any]
    scope: Scope | None

    def __init__(
        self,
        *,
        info: PassInfo,
        options: Mapping[str, Any] = MappingProxyType({}),
        scope: Scope | None = None,
    ) -> None:
        vars(self).update(info=info, _options=options, scope=scope)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a pass is a value: {name!r} of {self.name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a pass is a value: {name!r} of {self.name} cannot be deleted")

    def _with(self, **parts: Any) -> Self:
        """Return the same pass with some of its parts exchanged."""
        kind = type(self)
        made = object.__new__(kind)
        # Cached properties are derived from the parts, and are not copied.
        own = {name: part for name, part in vars(self).items() if not _is_cached(kind, name)}
        vars(made).update({**own, **parts})
        return made

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.info.name

    @property
    def options(self) -> Mapping[str, Any]:
        """Every option with its value; a copy, which may be changed without harm."""
        return MappingProxyType(copy.deepcopy(dict(self._options)) if self._options else {})

    def with_options(self, **options: Any) -> Self:
        """Return the same pass with other options; those not given stay.

        Raises:
            OptionError: an unknown option, or a value of the wrong type.
        """
        checked = checked_options(self.info.options, {**self._options, **options}, self.name)
        info = self.info.with_options(checked)
        return self._with(info=info, _options=copy.deepcopy(checked))

    def on(self, scope: Any) -> Self:
        """Return the pass bound to a part of a model; bound twice, to the intersection.

        Args:
            scope: a glob of node names (`/encoder/**`), `module:`, `body:` or `function:` and a
                glob, nodes, a graph, or a networkx view of nodes.

        Raises:
            UsageError: it is no scope, or the pass is a module pass.
        """
        if not self.info.is_node_wise:
            raise UsageError(
                f"{self.name} is a {self.info.kind} pass: only rewrite and function passes can be "
                "bound to a part of a model"
            )
        from tiered.passes.policy.node_scope import Scope

        part = Scope.of(scope)
        return self._with(scope=part if self.scope is None else self.scope & part)

    def promising(self, promise: Promise) -> Self:
        """Return the pass with another promise about the outputs.

        Raises:
            UsageError: the pass runs by level, and no level may imply what is lossy.
        """
        info = self.info._replace(numerics=promise.numerics, limits=promise)
        if info.opt_level is not None and promise.numerics is Numerics.LOSSY:
            raise UsageError(f"{info.name} is lossy, so no level may imply it: opt_level=None")
        return self._with(info=info)

    # --- running ----------------------------------------------------------------------------------

    def __call__(self, model: AnyModel) -> AnyModel:
        """Run the pass if the context allows it.

        A ModelProto is left as it is, and a new one returned; a `Model` is edited and returned. If
        the pass raises, the `Model` is exactly as it was.

        Raises:
            PassError: the pass raised.
            UsageError: it was not called with a model.
        """
        return self._called(model, PassContext.current(), Place())

    def apply(self, model: AnyModel, ctx: PassContext | None = None) -> AnyModel:
        """Run the pass regardless of its level and of what the context around it decides.

        Args:
            model: as for a call.
            ctx: the context of the pass, which keeps the remarks; by default a new one that
                inherits the backend and the config of the context around it, and nothing else: no
                level, no lists of passes, no instruments.
        """
        return self._called(model, ctx or PassContext.current().undecided(), Place(forced=True))

    def _called(self, model: AnyModel, ctx: PassContext, place: Place) -> AnyModel:
        from tiered.passes.execution import execute, warn

        if isinstance(model, Model):
            execute(self, model, ctx, place)
            return model
        if isinstance(model, onnx.ModelProto):
            view = Model.from_proto(model)
            execute(self, view, ctx, place)
            for note in view.notes:  # the caller does not see the view
                warn("%s", note)
            return view.to_proto()
        if isinstance(model, str | os.PathLike):
            raise UsageError(
                f"{self.name} takes a model, not a path: tiered.optimize({os.fspath(model)!r}) "
                "reads files, and so does tiered.Model.load"
            )
        raise UsageError(
            f"{self.name} takes a tiered.Model or an onnx.ModelProto, not {type(model).__name__}"
        )

    def may_act(self, model: Model) -> bool:
        """Return whether the model may contain work for the pass; if not, it need not run."""
        return True

    @abstractmethod
    def run(self, model: Model, execution: Execution, run: PassRun) -> Members | None:
        """Edit the model in place, or yield the passes to run; new kinds of passes implement it.

        A pipeline yields each pass with its place, and is sent the names of the passes that changed
        the model during it.
        """

    # --- text -------------------------------------------------------------------------------------

    @cached_property
    def text(self) -> str:
        """The pass as text, with the options that are not the default and the scope."""
        return f"{self.name}{self._options_text()}{self.scope or ''}"

    def __str__(self) -> str:
        return self.text

    def _options_text(self) -> str:
        """Return the options that differ from their defaults, as `{name=value,...}`."""
        given = [
            f"{option.name}={format_value(self._options[option.name])}"
            for option in self.info.options
            if self._options[option.name] != option.default
        ]
        return "{" + ",".join(given) + "}" if given else ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pass):
            return NotImplemented
        return self.text == other.text and self.scope == other.scope

    def __hash__(self) -> int:
        return hash(self.text)


def _is_cached(kind: type[Pass], name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)
