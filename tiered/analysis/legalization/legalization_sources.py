"""The sources of legalizations: the target's table, registered rules, ONNX's function bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args

from tiered.analysis.legalization.substitution import Substitution
from tiered.graph import Model, Node
from tiered.graph.edits.operator_check import dtype_mismatch
from tiered.graph.opset.same_meaning import why_not_at
from tiered.graph.queries.function_body import EXACT_BODIES, function_body, has_function_body
from tiered.passes.interface.registry import registry
from tiered.rewriter import Rule, Skip, rewrite_node
from tiered.support.errors import ModelError, UsageError, did_you_mean
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.targets import Backend


class Source(Protocol):
    """One way to express a node by other operators."""

    @property
    def name(self) -> str:
        """The name of the source in reasons."""
        ...

    @property
    def numerics(self) -> Numerics:
        """The class of what it makes."""
        ...

    def apply(self, node: Node) -> Skip | None:
        """Replace a node; a Skip is the reason why not, and the caller undoes what was begun."""


def sources_of(node: Node, backend: Backend, maps: tuple[str, ...]) -> Iterator[Source]:
    """Yield the ways to express a node, in the order to try them.

    Args:
        node: a node that the target refuses.
        backend: the target.
        maps: the names of the maps of registered legalizations.
    """
    for key in backend.substitutes_of(node):
        yield Substitution(*key)
    for info in _registered(node, maps):
        if info.numerics_option:
            option = next(each for each in info.options if each.name == info.numerics_option)
            for choice in get_args(option.type):
                yield RegisteredRule(info.name, Numerics(choice), option.name)
        else:
            yield RegisteredRule(info.name, info.numerics)
    if has_function_body(node):
        yield FunctionBody(
            Numerics.EXACT if node.op_type in EXACT_BODIES else Numerics.REASSOCIATING
        )


def check_maps(maps: tuple[str, ...]) -> None:
    """Raise if no legalization is registered in a map.

    Raises:
        UsageError: that is so.
    """
    if set(maps) <= {"default"}:
        return
    known = {"default", *(registry.named(name).info.legalizes for name in registry.legalizations())}
    for name in maps:
        if name not in known:
            found = ", ".join(sorted(map(str, known)))
            raise UsageError(
                f"no rule is registered in the map {name!r} of legalizations; there are {found}"
                f"{did_you_mean(name, map(str, known))}"
            )


def _registered(node: Node, maps: tuple[str, ...]) -> Iterator[Any]:
    """Yield the infos of the legalizations that name the operator of a node, by their names."""
    wanted = node.operator
    for name in registry.legalizations():
        info = registry.named(name).info
        if info.legalizes in maps and wanted in info.touches:
            yield info


class RegisteredRule(NamedTuple):
    """A rewrite pass that is declared with `legalizes`."""

    name: str
    numerics: Numerics
    option: str = ""
    """The option of the pass that chooses the class, if it has one."""

    def apply(self, node: Node) -> Skip | None:
        """Apply the rule of the pass at the node."""
        found: Any = registry.named(self.name)
        if self.option:
            found = found.with_options(**{self.option: str(self.numerics)})
        rule: Rule = found.rule
        if (node.domain, node.op_type) not in rule.keys:
            return Skip("the operator is not the root of its pattern")
        return rewrite_node(rule, node, found.options)


class FunctionBody(NamedTuple):
    """The function body that ONNX defines the operator by."""

    numerics: Numerics
    name: str = "the function body"

    def apply(self, node: Node) -> Skip | None:
        """Replace the node by its function body, in the opset of the graph."""
        graph, model = node.owner, node.owner.model
        assert isinstance(model, Model)
        try:
            function = model.add(function_body(node))
        except ModelError as error:
            return Skip("{}", error)
        for inner in function.walk():
            own, there = function.opset(inner.domain), graph.opset(inner.domain)
            reason = why_not_at(inner, own, there) if there else None
            if reason is not None:
                return Skip("its body has {}, which {}", inner.op_type, reason)
        for inner in graph.inline_call(node, function, {}):
            if inner.is_live and inner.schema is not None:
                mismatch = dtype_mismatch(inner.schema, inner.inputs)
                if mismatch is not None:
                    found, _, _ = mismatch.partition(";")
                    return Skip("its body is not valid: {}: {}", inner.op_type, found)
        model.remove(function)
        return None


def legalize_by(node: Node, name: str) -> Skip | None:
    """Replace a node by the rule of a pass that is declared with `legalizes`, whatever the target.

    Args:
        node: the node.
        name: the pass.

    Returns:
        Why the rule leaves the node as it is; None if it was replaced.

    Raises:
        UsageError: the pass is not declared with `legalizes`.
    """
    info = registry.named(name).info
    if not info.legalizes:
        raise UsageError(
            f"{info.name} is not a legalization; {', '.join(registry.legalizations())} are"
        )
    model = node.owner.model
    mark = model.mark()
    declined = RegisteredRule(info.name, info.numerics).apply(node)
    if declined is not None:
        model.undo_to(mark)
    return declined
