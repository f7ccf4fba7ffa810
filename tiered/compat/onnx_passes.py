"""The names of onnx-passes: its pass classes, `register`, `collect`, `verify`.

`pass_of(cls)` converts a class into a pass of tiered. `model` is a `tiered.Model`,
edited in place; `op` is the pattern language in `pattern`, and `graph.op` in `rewrite`.

    @verify.equality
    @register("cleanup")
    class DropIdentity(RewriteRulePass):
        def pattern(self, op, x):
            return op.Identity(x)

        def rewrite(self, op, x):
            return x
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

import tiered
from tiered.errors import (
    PassError,
    PostconditionError,
    PreconditionError,
    UsageError,
    VerificationError,
)
from tiered.passes import Pass
from tiered.rewriter import Skip, op, var
from tiered.runtime import Numerics

__all__ = [
    "Analysis",
    "Annotation",
    "ComposePass",
    "PassError",
    "PostconditionError",
    "PreconditionError",
    "RewriteRulePass",
    "RewriteRuleSetPass",
    "Transformation",
    "VerificationError",
    "collect",
    "pass_of",
    "register",
    "verify",
]

AnyClass = TypeVar("AnyClass", bound="type[_Base]")

_GROUPS: dict[str, list[type[_Base]]] = {}


class _Base:
    """The base of all classes: a promise about the outputs, and conditions on the model."""

    numerics: ClassVar[Numerics] = Numerics.EXACT

    def requires(self, model: Any) -> object:
        """Raise, or return False, if the pass cannot start."""

    def ensures(self, model: Any) -> object:
        """Raise, or return False, if the result is wrong."""

    def __call__(self, model: Any) -> Any:
        return pass_of(type(self)).apply(model)

    def _declared(self, **more: Any) -> dict[str, Any]:
        conditions = {"requires": self.requires, "ensures": self.ensures}
        name = type(self).__name__
        return {"opt_level": None, "name": name, "numerics": self.numerics, **conditions, **more}

    def _lacks(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {method}")

    def _made(self) -> Pass:
        expected = "a subclass of Transformation, RewriteRulePass or ComposePass"
        raise UsageError(f"{type(self).__name__}: expected {expected}")


class Transformation(_Base):
    """A pass that may change everything; dead nodes are removed after it."""

    def call(self, model: Any) -> object:
        """Edit the model in place."""
        raise self._lacks("call(model)")

    def _made(self) -> Pass:
        declared = self._declared(followed_by=["eliminate_deadend"])
        return tiered.module_pass(**declared)(lambda model, ctx: _nothing(self.call(model)))


class Annotation(Transformation):
    """A pass that may change metadata of nodes and values, but not the graph."""

    def _made(self) -> Pass:
        return tiered.module_pass(**self._declared())(lambda model, ctx: self._annotate(model))

    def _annotate(self, model: Any) -> None:
        before = _structure(model)
        self.call(model)
        if _structure(model) != before:
            raise PassError(f"{type(self).__name__} is an annotation, but it changed the structure")


class Analysis(Transformation):
    """A pass that changes nothing."""

    def _made(self) -> Pass:
        declared = self._declared(analysis=True)
        return tiered.module_pass(**declared)(lambda model, ctx: _nothing(self.call(model)))


class RewriteRulePass(_Base):
    """A pattern, a check and a replacement; operands of commutative operators commute."""

    def pattern(self, op: Any, *variables: Any) -> Any:
        """Return the pattern; the other parameters are its variables."""
        raise self._lacks("pattern(op, *variables)")

    def check(self, op: Any, *values: Any) -> object:
        """Return False if the rule must not fire."""
        return True

    def rewrite(self, op: Any, *values: Any) -> Any:
        """Return the replacement of the match."""
        raise self._lacks("rewrite(op, *values)")

    def _made(self) -> Pass:
        return _rule(self._declared(), self.pattern, self.check, self.rewrite)


class RewriteRuleSetPass(_Base):
    """Several rules: each method returns a list of functions like those of RewriteRulePass."""

    def pattern(self) -> Sequence[Callable[..., Any]]:
        """Return the patterns."""
        raise self._lacks("pattern()")

    def check(self) -> Sequence[Callable[..., object] | None]:
        """Return a check for each pattern, or an empty sequence."""
        return ()

    def rewrite(self) -> Sequence[Callable[..., Any]]:
        """Return the replacement of each pattern."""
        raise self._lacks("rewrite()")

    def _made(self) -> Pass:
        patterns = self.pattern()
        checks = self.check() or [None] * len(patterns)
        rules = []
        for number, parts in enumerate(zip(patterns, checks, self.rewrite(), strict=True), 1):
            declared = self._declared(name=f"{type(self).__name__}.{number}")
            rules.append(_rule(declared, parts[0], parts[1] or (lambda op: True), parts[2]))
        return tiered.Sequential(rules, name=type(self).__name__)


class ComposePass(_Base):
    """Other passes in order: `__passes__`, until nothing changes if `__exhaustive__`."""

    __passes__: ClassVar[Sequence[Any]] = ()
    __exhaustive__: ClassVar[bool] = False

    def _made(self) -> Pass:
        name, passes = type(self).__name__, collect(self.__passes__)
        if self.__exhaustive__:
            return tiered.Fixpoint(passes, name=name)
        return tiered.Sequential(passes, name=name)


def pass_of(cls: type[_Base]) -> Pass:
    """Return a pass of tiered that runs a class."""
    return cls()._made()


def register(name_or_group: str | None = None) -> Callable[[AnyClass], AnyClass]:
    """Register a class by its name, and in a group if another name is given."""

    def decorate(cls: AnyClass) -> AnyClass:
        if cls.__name__ not in _GROUPS:
            _GROUPS[cls.__name__] = [cls]
        if name_or_group is not None and name_or_group != cls.__name__:
            _GROUPS.setdefault(name_or_group, []).append(cls)
        return cls

    return decorate


def collect(names: Iterable[str | type[_Base] | Pass]) -> list[Pass]:
    """Return the passes of names, groups, classes and passes, in that order."""
    passes: list[Pass] = []
    for item in names:
        if isinstance(item, Pass):
            passes.append(item)
        elif isinstance(item, type):
            passes.append(pass_of(item))
        elif item in _GROUPS:
            passes += map(pass_of, _GROUPS[item])
        else:
            passes += tiered.parse_pipeline(item).passes
    return passes


class verify:
    """Class decorators that declare the promise of a pass, which verification checks."""

    @staticmethod
    def equality(kind: AnyClass) -> AnyClass:
        """Promise the same outputs, bit for bit."""
        kind.numerics = Numerics.EXACT
        return kind

    @staticmethod
    def tolerance(kind: AnyClass) -> AnyClass:
        """Promise outputs within float tolerance."""
        kind.numerics = Numerics.REASSOCIATING
        return kind

    @staticmethod
    def metric(kind: AnyClass) -> AnyClass:
        """Promise outputs within a stated metric."""
        kind.numerics = Numerics.APPROXIMATE
        return kind


def _rule(
    declared: dict[str, Any],
    pattern: Callable[..., Any],
    check: Callable[..., object],
    rewrite: Callable[..., Any],
) -> Pass:
    variables = {name: getattr(var, name) for name in _names(pattern)}

    def function(graph: Any, **bound: Any) -> Any:
        wanted = _names(check)
        if not check(graph.op, **{name: bound[name] for name in wanted}):
            return Skip("the check returned False")
        return rewrite(graph.op, **{name: bound[name] for name in _names(rewrite)})

    names = dict.fromkeys((*_names(check), *_names(rewrite)))
    return tiered.rewrite(pattern(op, **variables), **declared)(_taking(names, function))


def _taking(names: Iterable[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the positional parameters that a rule inspects."""
    order = list(names)

    def taking(graph: Any, *values: Any) -> Any:
        return function(graph, **dict(zip(order, values, strict=True)))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("graph", *order)]
    taking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # of any function
    return taking


def _names(function: Callable[..., Any]) -> list[str]:
    """Return the parameters after `op`, without *args and **kwargs."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is kind][1:]


def _structure(model: Any) -> list[Any]:
    return [
        (node.id, node.op_type, node.inputs, node.outputs)
        for graph in model.graphs()
        for node in graph.nodes
    ]


def _nothing(_: object) -> None:
    """Drop the return value of a pass: the journal records whether the model changed."""
