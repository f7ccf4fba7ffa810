"""Matches of dataflow patterns: search, rewriting, and partition into functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import onnx

from tiered.compat.signatures import with_parameters
from tiered.extensions.partition.versions import DOMAIN, FunctionIds, outlined
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.core.marks import METADATA_SINCE, mark_against
from tiered.passes.pass_run import edited_by
from tiered.rewriter import (
    Match,
    Pattern,
    Rule,
    Skip,
    apply_rule,
    compile_pattern,
    find_matches,
)
from tiered.rewriter.match import all_matches
from tiered.rewriter.pattern import Const
from tiered.support.errors import UsageError

PARTITIONED: Final = "PartitionedFromPattern"
"""The metadata key of a function: the operators of its pattern, TVM's way."""

NodeMap = Mapping[Any, list[Value]]
"""The values of each part of a pattern."""


class Compiled(Protocol):
    """A dataflow pattern."""

    def compiled(self, parts: Parts) -> Pattern:
        """Return the pattern of tiered; `parts` names its parts."""
        ...


class Parts:
    """The names of the parts of a pattern, for the matcher.

    One object has one name, wherever it occurs.
    """

    def __init__(self) -> None:
        self._names: dict[Compiled, str] = {}
        self._choices: dict[Compiled, tuple[Compiled, ...]] = {}

    def name_of(self, part: Compiled) -> str:
        """Return the name of a part."""
        return self._names.setdefault(part, f"p{len(self._names)}")

    def same(self, part: Compiled, choices: tuple[Compiled, ...]) -> None:
        """Note that a part is what one of some others is."""
        self._choices[part] = choices

    def node_map(self, bindings: Mapping[str, Any]) -> NodeMap:
        """Return the values of each part that a match bound."""
        found = {
            part: values
            for part, name in self._names.items()
            if (values := _values(bindings.get(name)))
        }
        for part, choices in self._choices.items():
            values = next((found[each] for each in choices if each in found), [])
            if values:
                found[part] = values
        return found


def _values(bound: Any) -> list[Value]:
    if isinstance(bound, Node):
        return [bound.outputs[0]] if bound.outputs[0] is not None else []
    if isinstance(bound, tuple | list):
        return [each for each in bound if isinstance(each, Value)]
    return [bound] if isinstance(bound, Value) else []


def call_of(expr: Any) -> Value:
    """Return the value of an expression: the only output of a model or graph, or of a node.

    Raises:
        UsageError: it is no expression, or has several outputs.
    """
    if isinstance(expr, Value):
        return expr
    if isinstance(expr, Node):
        values = [value for value in expr.outputs[:1] if value is not None]
    else:
        graph = expr if isinstance(expr, Graph) else _view(expr).main
        values = list(graph.outputs)
    if len(values) != 1:
        raise UsageError(
            f"an expression is one value, and this has {len(values)} outputs: match a value of it"
        )
    return values[0]


def _view(expr: Any) -> Model:
    """Return a model as a view.

    Raises:
        UsageError: it is no model.
    """
    expr = edited_by(expr)
    if isinstance(expr, onnx.ModelProto):
        return Model.from_proto(expr)
    if isinstance(expr, Graph):
        expr = expr.model
    if not isinstance(expr, Model):
        raise UsageError(f"an expression is a Model, a ModelProto or a Value, not {expr!r}")
    return expr


def find(pattern: Compiled, value: Value) -> NodeMap | None:
    """Return the values of a pattern's parts where a value matches it; None if it does not."""
    parts = Parts()
    compiled = pattern.compiled(parts)
    for choice in getattr(compiled, "choices", (compiled,)):
        if not choice.own_keys:
            if _holds(choice, value):
                return parts.node_map({parts.name_of(pattern): value})
            continue
        producer = value.producer
        for match in all_matches(compile_pattern(choice), producer) if producer else ():
            if match.values == (value,):
                return parts.node_map(match.bindings)
    return None


def _holds(leaf: Pattern, value: Value) -> bool:
    """Return whether a value matches a variable or a constant."""
    if isinstance(leaf, Const) and not value.is_constant:
        return False
    return all(
        each.predicate(value) if each.predicate is not None else each.holds(value)
        for each in leaf.conditions
    )


def partition_model(
    pattern: Compiled, expr: Any, attrs: dict[str, str], check: Callable[[Value], bool]
) -> Any:
    """Replace the matches of a pattern by calls of local functions; see `DFPattern.partition`.

    Raises:
        ModelError: the IR version has no functions, or no metadata for attributes.
    """
    model = _view(expr)
    compiled = pattern.compiled(Parts())
    with model.transaction():
        ids = FunctionIds(model)
        for graph in list(model.graphs()):
            for match in list(find_matches(graph, compiled)):
                (value,) = match.values
                if value is None or any(node.graph is None for node in match.nodes):
                    continue
                if not mark_against(match.nodes) and value.is_used and check(value):
                    _outline(graph, match, ids, attrs)
    return model.to_proto() if isinstance(expr, onnx.ModelProto) else expr


def _outline(graph: Graph, match: Match, ids: FunctionIds, attrs: Mapping[str, str]) -> None:
    nodes = [node for node in graph.topological_order() if node in match.nodes]
    name = "_".join(node.op_type for node in nodes)
    metadata = {PARTITIONED: f"{name}_", **attrs}
    if not attrs and graph.model.ir_version < METADATA_SINCE:
        metadata = {}
    with graph.rewrite("a match of a pattern  =>  a call of its function", match.node):
        # onnxruntime 1.31 crashes where a function has an operator's name and fewer inputs.
        outlined(graph, nodes, f"pattern_{name}", ids, domain=DOMAIN, metadata=metadata or None)


def rewrite_model(callbacks: Iterable[Any], expr: Any) -> Any:
    """Return a model after callbacks; see `dataflow_pattern.rewrite`.

    Raises:
        UsageError: a callback returns no value.
        PassError: a callback undoes its own rewrites.
    """
    model = _view(expr)
    with model.transaction():
        for callback in callbacks:
            apply_rule(_rule_of(callback), model, {}, once=callback.rewrite_once)
    return model.to_proto() if isinstance(expr, onnx.ModelProto) else expr


def _rule_of(callback: Any) -> Rule:
    """Return the rule of a callback."""
    parts, name = Parts(), type(callback).__name__
    pattern = callback.pattern.compiled(parts)
    bound = sorted(pattern.bound)
    output = getattr(callback.pattern, "index", 0)

    def function(graph: Graph, node: Node, *found: Any) -> Value | Skip:
        value = node.outputs[output]
        made = callback.callback(value, value, parts.node_map(dict(zip(bound, found, strict=True))))
        if not isinstance(made, Value):
            raise UsageError(f"{name}.callback returned {made!r}: expected a Value of the graph")
        return Skip("the callback returned the matched value") if made is value else made

    taking = with_parameters(function, ["graph", "node", *bound])
    return Rule(name, pattern, taking, f"{name}: {pattern}")
