"""The kinds of passes of onnx-passes: classes with `call`, or with a pattern and a rewrite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import tiered
from tiered.compat.abstract_class import Abstract
from tiered.compat.onnx_passes.rules import rule_of
from tiered.passes import Pass
from tiered.support.amounts import counted
from tiered.support.errors import PassError, UsageError
from tiered.support.numerics import Numerics, Promise


class PassKind(Abstract):
    """The base of all classes: a promise about the outputs, and conditions on the model."""

    numerics: ClassVar[Promise | Numerics] = Numerics.EXACT
    rank: ClassVar[int] = 0

    def requires(self, model: Any) -> object:
        """Raise, or return False, if the pass cannot start."""

    def ensures(self, model: Any) -> object:
        """Raise, or return False, if the result is wrong."""

    def __call__(self, model: Any) -> Any:
        return self.as_pass().apply(model)

    def as_pass(self) -> Pass:
        """Return the equivalent pass of tiered; with several kinds as bases, of the most specific.

        A rule that is also a transformation is a rule.
        """
        kinds = [kind for kind in type(self).__mro__ if "_pass_of_kind" in vars(kind)]
        most: Any = max(kinds, key=lambda kind: vars(kind)["rank"])
        made: Pass = most._pass_of_kind(self)
        return made

    def _declared(self, **more: Any) -> dict[str, Any]:
        conditions = {"precondition": self.requires, "postcondition": self.ensures}
        name = type(self).__name__
        return {"opt_level": None, "name": name, "numerics": self.numerics, **conditions, **more}

    def _pass_of_kind(self) -> Pass:
        expected = "a subclass of Transformation, RewriteRulePass or ComposePass"
        raise UsageError(f"{type(self).__name__}: expected {expected}")


class Transformation(PassKind):
    """A pass that may change everything; dead nodes are removed after it.

    It may be a base beside `RewriteRulePass`, `RewriteRuleSetPass` or `ComposePass`, in any order.
    """

    rank: ClassVar[int] = 1

    def call(self, model: Any) -> object:
        """Edit the model in place."""
        raise self._lacks("call(model)")

    def _pass_of_kind(self) -> Pass:
        declared = self._declared(followed_by=["eliminate_deadend"])
        return tiered.module_pass(**declared)(lambda model, ctx: _nothing(self.call(model)))


class Annotation(Transformation):
    """A pass that may change metadata of nodes and values, but not the graph."""

    rank: ClassVar[int] = 2

    def _pass_of_kind(self) -> Pass:
        return tiered.module_pass(**self._declared())(lambda model, ctx: self._annotate(model))

    def _annotate(self, model: Any) -> None:
        before = _structure(model)
        self.call(model)
        if _structure(model) != before:
            raise PassError(f"{type(self).__name__} is an annotation, but it changed the structure")


class Analysis(Transformation):
    """A pass that changes nothing."""

    rank: ClassVar[int] = 3

    def _pass_of_kind(self) -> Pass:
        declared = self._declared(analysis=True)
        return tiered.module_pass(**declared)(lambda model, ctx: _nothing(self.call(model)))


class RewriteRulePass(PassKind):
    """A pattern, a check and a replacement; operands of commutative operators commute."""

    rank: ClassVar[int] = 4

    def pattern(self, op: Any, *variables: Any) -> Any:
        """Return the pattern; the other parameters are its variables."""
        raise self._lacks("pattern(op, *variables)")

    def check(self, op: Any, *values: Any) -> object:
        """Return False if the rule must not fire."""
        return True

    def rewrite(self, op: Any, *values: Any) -> Any:
        """Return the replacement of the match."""
        raise self._lacks("rewrite(op, *values)")

    def _pass_of_kind(self) -> Pass:
        return rule_of(self._declared(), self.pattern, self.check, self.rewrite)


class RewriteRuleSetPass(PassKind):
    """Several rules: each method returns a list of functions like those of RewriteRulePass."""

    rank: ClassVar[int] = 5

    def pattern(self) -> Sequence[Callable[..., Any]]:
        """Return the patterns."""
        raise self._lacks("pattern()")

    def check(self) -> Sequence[Callable[..., object] | None]:
        """Return a check for each pattern, or an empty sequence."""
        return ()

    def rewrite(self) -> Sequence[Callable[..., Any]]:
        """Return the replacement of each pattern."""
        raise self._lacks("rewrite()")

    def _pass_of_kind(self) -> Pass:
        patterns, rewrites = self.pattern(), self.rewrite()
        checks = self.check() or [None] * len(patterns)
        if not len(patterns) == len(checks) == len(rewrites):
            raise UsageError(
                f"{type(self).__name__} has {counted(len(patterns), 'pattern')}, "
                f"{counted(len(checks), 'check')} and {counted(len(rewrites), 'rewrite')}"
            )
        rules = []
        for number, parts in enumerate(zip(patterns, checks, rewrites, strict=True), 1):
            declared = self._declared(name=f"{type(self).__name__}.{number}")
            rules.append(rule_of(declared, parts[0], parts[1] or (lambda op: True), parts[2]))
        return tiered.Sequential(rules, name=type(self).__name__)


def _structure(model: Any) -> list[Any]:
    return [
        (node.id, node.op_type, node.inputs, node.outputs)
        for graph in model.graphs()
        for node in graph.nodes
    ]


def _nothing(_: object) -> None:
    """Drop the return value of a pass: the journal records whether the model changed."""
