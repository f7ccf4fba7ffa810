"""Scopes: the part of a model that a pass is bound to.

As text: a glob of node names (`/encoder/**`; `*` stays within one step of the path),
`module:encoder.layer.0` (the exporter's module scope), `body:If_3` (the bodies of that node), or
`function:Gelu` (a local function). `not:` before one of them selects all other nodes. In Python
also nodes, a networkx view, a graph, and a function of a node that returns whether it is inside,
which has no text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiered.support.errors import UsageError
from tiered.support.option_text import quote

if TYPE_CHECKING:
    from tiered.graph import Graph, Node

_MODULE_SCOPES = "pkg.torch.onnx.name_scopes"

_PREDICATE = "where"
_NOT = "not"

Predicate = Callable[["Node"], bool]


@dataclass(frozen=True, slots=True)
class _ScopePart:
    """One condition on nodes: its text, its key for equality, and its predicate."""

    text: str
    identity: object
    holds: Predicate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ScopePart) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a model: the nodes that meet every one of its conditions."""

    parts: tuple[_ScopePart, ...]

    @classmethod
    def of(cls, part: Any) -> Scope:
        """Return the scope that text, a graph, nodes, a view of nodes or a function describe.

        Raises:
            UsageError: it is none of these, or an empty text.
        """
        from tiered.graph import Graph, Node

        if isinstance(part, Scope):
            return part
        if isinstance(part, str):
            return cls((_part_of_text(part),))
        if isinstance(part, Graph):
            return cls((_part_of_graph(part),))
        if callable(part):
            name = getattr(part, "__name__", type(part).__name__)
            return cls((_ScopePart(f"{_PREDICATE}:{name}", part, part),))
        nodes = frozenset(part) if isinstance(part, Iterable) else frozenset()
        if nodes and all(isinstance(node, Node) for node in nodes):
            return cls((_part_of_nodes(nodes),))
        raise UsageError(
            f"a scope is a glob of node names, nodes, a graph or a networkx view, not {part!r}"
        )

    def holds(self, node: Node) -> bool:
        """Return whether a node is inside."""
        return all(part.holds(node) for part in self.parts)

    def __and__(self, other: Scope) -> Scope:
        """Return the intersection."""
        return Scope(tuple(dict.fromkeys((*self.parts, *other.parts))))

    def __str__(self) -> str:
        return "".join(f"@{quote(part.text)}" for part in self.parts)


def name_scope(names: Iterable[str]) -> Scope:
    """Return the scope of the nodes with these names.

    Raises:
        UsageError: there are none.
    """
    return Scope((_part_of_text("|".join(map(_escape, names))),))


def inverse(scope: Scope) -> Scope:
    """Return the scope of all other nodes.

    Raises:
        UsageError: it has several conditions, or is a function of nodes, which has no text.
    """
    if len(scope.parts) != 1:
        raise UsageError(f"a scope of several conditions has no inverse: {scope}")
    kind, _, rest = scope.parts[0].text.partition(":")
    return Scope.of(rest if kind == _NOT and rest else f"{_NOT}:{scope.parts[0].text}")


def _part_of_text(text: str) -> _ScopePart:
    if not text:
        raise UsageError("an empty scope; expected a glob of node names such as '/encoder/**'")
    kind, colon, rest = text.partition(":")
    if colon and kind == _NOT:
        inner = _part_of_text(rest)
        return _ScopePart(text, text, lambda node: not inner.holds(node))
    selectors = {"module": _modules, "body": _bodies, "function": _functions}
    if colon and kind == _PREDICATE:
        raise UsageError(f"{text!r} is a function of nodes, which has no text; use it in Python")
    if colon and kind in selectors:
        fits, select = _glob(rest), selectors[kind]
        return _ScopePart(text, text, lambda node: any(fits(name) for name in select(node)))
    fits = _glob(text)
    return _ScopePart(text, text, lambda node: fits(node.label))


def _part_of_graph(graph: Graph) -> _ScopePart:
    if graph.is_function:
        text = f"function:{_escape(graph.name)}"
    else:
        text = f"body:{_escape(graph.parent_node.label)}" if graph.parent_node is not None else "**"
    return _ScopePart(text, graph, lambda node: any(around is graph for around in _graphs(node)))


def _part_of_nodes(nodes: frozenset[Node]) -> _ScopePart:
    names = sorted(node.label for node in nodes)
    return _ScopePart("|".join(map(_escape, names)), nodes, lambda node: node in nodes)


def _graphs(node: Node) -> Iterable[Graph]:
    """Yield the graph of a node and those around it."""
    graph = node.graph
    while graph is not None:
        yield graph
        graph = graph.parent


def _modules(node: Node) -> list[str]:
    written = node.metadata.get(_MODULE_SCOPES, "[]")
    try:
        return [str(name) for name in ast.literal_eval(written)]
    except (SyntaxError, ValueError):
        return [written]


def _bodies(node: Node) -> list[str]:
    return [graph.parent_node.label for graph in _graphs(node) if graph.parent_node is not None]


def _functions(node: Node) -> list[str]:
    return [graph.root.name for graph in _graphs(node) if graph.root.is_function]


# --- globs of paths -------------------------------------------------------------------------------

_GLOB = re.compile(r"\*\*|\*|\?|\||\[[^\]]+\]|[^*?|\[]+|\[")
_CHOICE = re.compile(r"\[(?P<none>!?)(?P<chars>[^\]]+)\]")
_MEANING = {"**": ".*", "*": "[^/]*", "?": "[^/]", "|": "|"}


def _glob(pattern: str) -> Callable[[str], bool]:
    """Return a predicate of names: `*` within a step, `**` across steps, `a|b` either."""
    parts = []
    for token in _GLOB.findall(pattern):
        if token in _MEANING:
            parts.append(_MEANING[token])
        elif (chosen := _CHOICE.fullmatch(token)) is not None:
            # Of the characters in brackets, both syntaxes give a meaning to a range only.
            kept = re.sub(r"[\\^\[&~|]", r"\\\g<0>", chosen["chars"])
            parts.append(f"[{'^' if chosen['none'] else ''}{kept}]")
        else:
            parts.append(re.escape(token))
    compiled = re.compile("".join(parts))
    return lambda name: compiled.fullmatch(name) is not None


def _escape(name: str) -> str:
    """Return the glob that matches this name only."""
    return re.sub(r"[*?|\[]", lambda match: f"[{match[0]}]", name)
