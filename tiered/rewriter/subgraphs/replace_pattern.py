"""Replacing subgraphs: `replace_pattern` and `SubgraphMatcher`, on the matcher of the passes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiered.graph.api import Model
from tiered.graph.core.edit import Edit, Entry
from tiered.graph.core.graph import Graph
from tiered.rewriter.driver import apply_rule
from tiered.rewriter.match import Match, find_matches
from tiered.rewriter.pattern import (
    Alternatives,
    Chain,
    Const,
    OpPattern,
    Opt,
    Pattern,
    Together,
    VariablePattern,
)
from tiered.rewriter.rule import Rule
from tiered.rewriter.skip import Skip
from tiered.rewriter.subgraphs.pattern_text import (
    PatternLike,
    Template,
    check_agreement,
    template_of,
)
from tiered.rewriter.subgraphs.replacement import Unbuildable, build, check_buildable
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

MatchFilter = Callable[[Match, Graph, Pattern], bool]


@dataclass(frozen=True)
class ReplacedPattern:
    """One match that was replaced.

    Attributes:
        anchor: the producer of the first output; like all matched nodes it is removed.
        nodes_map: the node or value of each operator and variable of the pattern.
        replacements: the new nodes.
    """

    anchor: Node
    nodes_map: Mapping[Pattern, Node | Value]
    replacements: tuple[Node, ...]


def replace_pattern(
    model: Model | Graph,
    pattern: PatternLike,
    replacement: PatternLike,
    filters: Iterable[MatchFilter] = (),
    *,
    name: str = "replace_pattern",
) -> list[ReplacedPattern]:
    """Replace every match of one subgraph by another, and return the replaced matches.

    Matches are replaced in topological order; new nodes are not matched again. Pattern and
    replacement are functions of patterns (`lambda x, y: op.Add(x, y)`), strings
    (`"(x, y) => (z) { z = Add(x, y) }"`), ONNX graphs or models, or patterns. A number in the
    replacement has the dtype of the other operands.

    Args:
        model: a model, with its bodies and functions, or one graph; edited in place.
        pattern: the subgraph to replace; its inputs match any value.
        replacement: the new subgraph, with the same number of inputs and outputs.
        filters: functions (match, graph, pattern) -> bool; a match is kept if one returns False.
        name: the name of the rewrite in the journal and in messages.

    Raises:
        PatternError: the two do not fit together.
        UsageError: a string does not parse.
    """
    if not isinstance(model, Model | Graph):
        raise UsageError(
            f"replace_pattern edits a Model or a Graph in place, not an object of type "
            f"{type(model).__name__}"
        )
    before, after = template_of(pattern), template_of(replacement)
    check_agreement(before, after)
    check_buildable(after.outputs, {*after.inputs, *_attributes(before.pattern)})
    if isinstance(model, Graph):
        view, graphs = model.model, [model]
    else:
        view, graphs = model, list(model.graphs())
    replaced: list[ReplacedPattern] = []
    kept, first_new = tuple(filters), view.peek_serial()

    def accept(match: Match) -> Skip | None:
        if any(node.id >= first_new for node in match.nodes):
            return Skip("it was made by this very replacement")
        graph = match.node.owner
        wanted = all(accepts(match, graph, before.pattern) for accepts in kept)
        return None if wanted else Skip("a filter said no")

    def note(match: Match, edits: Sequence[Entry]) -> None:
        made = [entry[1] for entry in edits if entry[0] is Edit.ADD_NODE]
        new = tuple(node for node in made if node.graph is not None)
        replaced.append(ReplacedPattern(match.node, nodes_map(match), new))

    rule = _rule(name, before, after)
    with view.transaction():
        apply_rule(rule, view, {}, graphs=graphs, accept=accept, on_rewrite=note, once=True)
    return replaced


def _rule(name: str, before: Template, after: Template) -> Rule:
    attributes = _attributes(before.pattern)

    def function(graph: Graph, *arguments: Any) -> Any:
        known = dict(zip((*after.inputs, *attributes), arguments, strict=True))
        try:
            made = build(graph, after.outputs, known)
        except Unbuildable as error:
            return error.reason
        return made[0] if len(made) == 1 else made

    kind, names = inspect.Parameter.POSITIONAL_OR_KEYWORD, (*before.inputs, *attributes)
    parameters = [inspect.Parameter(text, kind) for text in ("graph", *names)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # PEP 362
    return Rule(name, before.pattern, function, f"{before.pattern}  =>  replacement")


def _attributes(pattern: Pattern) -> tuple[str, ...]:
    """Return the names of the attributes that a pattern binds."""
    return tuple(name for name, kind in pattern.bound.items() if kind == "attribute")


def nodes_map(match: Match) -> dict[Pattern, Node | Value]:
    """Return the node or value of each operator and variable of a pattern in a match."""
    found: dict[Pattern, Any] = {pattern: node for node, pattern in match.nodes.items()}
    for pattern in list(found):
        for part in pattern.children():
            if (
                isinstance(part, VariablePattern | Opt)
                and match.bindings.get(part.name) is not None
            ):
                found[part] = match.bindings[part.name]
    return found


# --- looking only ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SubgraphMatch:
    """One occurrence of a subgraph.

    Attributes:
        anchors: the nodes that compute the outputs of the pattern.
        nodes_map: the node or value of each operator and variable of the pattern.
        placeholder_nodes: the values of the pattern's inputs, in its order.
        returning_nodes: the values of its outputs.
    """

    anchors: tuple[Node, ...]
    nodes_map: Mapping[Pattern, Node | Value]
    placeholder_nodes: tuple[Value | None, ...]
    returning_nodes: tuple[Value, ...]


class SubgraphMatcher:
    """Finds the occurrences of a subgraph in a graph.

    Args:
        pattern: a function, ONNX text, a graph, a model or a pattern; see `replace_pattern`.
        match_output: its outputs must be outputs of the graph.
        match_placeholder: its inputs must be inputs of the graph; else they match anything.
        remove_overlapping_matches: of matches that share a node, keep the first.
        ignore_literals: attributes and numbers match anything.
        match_values: initializers of ONNX text match by value; else each matches any constant.

    Raises:
        PatternError: the pattern cannot be searched for.
    """

    def __init__(
        self,
        pattern: PatternLike,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
        *,
        match_values: bool = False,
    ) -> None:
        template = template_of(pattern, exact=match_values)
        self.inputs = template.inputs
        self.pattern = _Loose().of(template.pattern) if ignore_literals else template.pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches

    def match(self, graph: Graph | Model) -> list[SubgraphMatch]:
        """Return the matches in topological order; values inside have no users outside.

        Args:
            graph: a graph, or a model with its bodies and local functions.

        Raises:
            UsageError: it is neither.
        """
        if not isinstance(graph, Model | Graph):
            raise UsageError(
                f"match takes a Model or a Graph, not an object of type {type(graph).__name__}: "
                "Model.from_proto makes one of a ModelProto"
            )
        if isinstance(graph, Model):
            return [match for each in graph.graphs() for match in self.match(each)]
        found: list[SubgraphMatch] = []
        taken: set[Node] = set()
        for match in find_matches(graph, self.pattern):
            made = self._checked(match, graph)
            if made is None or (self.remove_overlapping_matches and taken & set(match.nodes)):
                continue
            taken.update(match.nodes)
            found.append(made)
        return found

    def _checked(self, match: Match, graph: Graph) -> SubgraphMatch | None:
        inputs = tuple(match.bindings[name] for name in self.inputs)
        outputs = tuple(value for value in match.values if value is not None)
        if self.match_output and not all(value in graph.outputs for value in outputs):
            return None
        if self.match_placeholder and not all(value in graph.inputs for value in inputs):
            return None
        return SubgraphMatch(match.roots, nodes_map(match), inputs, outputs)


class _Loose:
    """Copies patterns such that they match any attributes and any constants."""

    def __init__(self) -> None:
        self.copies: dict[int, Pattern] = {}

    def of(self, pattern: Pattern) -> Pattern:
        if id(pattern) not in self.copies:
            self.copies[id(pattern)] = self._loosened(pattern)
        return self.copies[id(pattern)]

    def _loosened(self, pattern: Pattern) -> Pattern:
        match pattern:
            case Const():
                return Const(name=pattern.name)
            case OpPattern(first=first) if first is not None:
                loose = self.of(first)
                assert isinstance(loose, OpPattern)
                return loose.out(pattern.output)
            case OpPattern():
                kept = tuple(
                    item for item in pattern.attributes if isinstance(item[1], VariablePattern)
                )
                operands = tuple(map(self.of, pattern.operands))
                return dataclasses.replace(
                    pattern,
                    operands=operands,
                    attributes=kept,
                    any_attributes=True,
                    ignores_attributes=True,
                )
            case Chain():
                return dataclasses.replace(pattern, end=self.of(pattern.end))
            case Alternatives():
                return Alternatives(tuple(map(self.of, pattern.choices)))
            case Together():
                return Together(tuple(map(self.of, pattern.roots)))
            case _:
                return pattern
