"""Matches of patterns  =>  calls of local functions: the composites of a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from tiered.extensions.partition.boundary import boundary_of
from tiered.extensions.partition.supports import COMPOSITES
from tiered.extensions.partition.versions import FunctionIds, outlined
from tiered.graph import Graph, Model, Node
from tiered.graph.core.marks import METADATA_SINCE, is_left_alone, mark_against
from tiered.rewriter import Match, Pattern, Skip, find_matches
from tiered.rewriter.subgraphs.pattern_text import PatternLike, template_of
from tiered.support.errors import UsageError, did_you_mean

COMPOSITE: Final = "tiered.composite"
"""The metadata key of the name that the pattern table has."""

Check = Callable[[Match], bool]
Entry: TypeAlias = "tuple[str, PatternLike] | tuple[str, PatternLike, Check | None]"
OnSkip = Callable[[Node, Skip], None]

_TABLES: dict[str, tuple[tuple[str, Pattern, Check | None], ...]] = {}


def register_pattern_table(target: str, table: Iterable[Entry]) -> None:
    """Set the pattern table of a target, for the pass `merge_composite`."""
    _TABLES[target] = parsed(table)


def pattern_table(target: str) -> tuple[tuple[str, Pattern, Check | None], ...]:
    """Return the registered pattern table of a target; empty if there is none."""
    return _TABLES.get(target, ())


def named_tables(targets: Iterable[str]) -> list[tuple[str, Pattern, Check | None]]:
    """Return the entries of the pattern tables of some targets, in this order.

    Raises:
        UsageError: a target has none.
    """
    for name in targets:
        if name not in _TABLES:
            known = f"; there are those of {', '.join(sorted(_TABLES))}" if _TABLES else ""
            hint = did_you_mean(name, _TABLES) or known
            raise UsageError(f"no pattern table is registered for the target {name!r}{hint}")
    return [entry for name in targets for entry in _TABLES[name]]


def parsed(table: Iterable[Entry]) -> tuple[tuple[str, Pattern, Check | None], ...]:
    """Return a pattern table with its patterns parsed.

    Raises:
        UsageError: an entry is not (name, pattern) or (name, pattern, check).
    """
    found: list[tuple[str, Pattern, Check | None]] = []
    for entry in table:
        if len(entry) not in (2, 3):
            raise UsageError(
                f"an entry of a pattern table is (name, pattern) or (name, pattern, check), not "
                f"{entry!r}"
            )
        name, pattern, check = entry if len(entry) == 3 else (*entry, None)
        found.append((str(name), template_of(pattern).pattern, check))
    return tuple(found)


def merge_composites(
    model: Model, table: Iterable[Entry], on_skip: OnSkip | None = None
) -> list[Node]:
    """Replace each match of a pattern by a call of a new local function, and return the calls.

    Earlier entries of the table come first; a node belongs to one composite. Inner values have no
    other users. Weights stay inputs. The functions are of the domain `tiered.composite` and named
    after their entry; their metadata `tiered.composite` is the name of the entry.

    Args:
        model: the model, with its bodies and functions; edited in place.
        table: (name, pattern, check) each: the pattern as for `replace_pattern`, and a function of
            the match that returns whether to take it, None for always.
        on_skip: called with the anchor of a match that stays, and the reason.

    Raises:
        ModelError: the IR version has no functions.
    """
    calls: list[Node] = []
    ids = FunctionIds(model)
    for name, pattern, check in parsed(table):
        for graph in list(model.graphs()):
            if not is_left_alone(graph) and not is_composite(graph.root):
                calls += _merge_in(graph, ids, name, pattern, check, on_skip)
    return calls


def _merge_in(
    graph: Graph,
    ids: FunctionIds,
    name: str,
    pattern: Pattern,
    check: Check | None,
    on_skip: OnSkip | None,
) -> list[Node]:
    calls: list[Node] = []
    matches = list(find_matches(graph, pattern))
    if not matches:
        return calls
    model = graph.model
    metadata = {COMPOSITE: name} if model.ir_version >= METADATA_SINCE else None
    place = {node: at for at, node in enumerate(graph.topological_order())}
    for match in matches:
        if any(node.graph is None for node in match.nodes):
            continue  # an earlier match took it
        reason = mark_against(match.nodes)
        if not reason and check is not None and not check(match):
            reason = "the check of the pattern table declines"
        if not reason and not boundary_of(tuple(match.nodes)).outputs:
            reason = "no output of the nodes is used"
        if reason:
            if on_skip is not None:
                on_skip(match.node, Skip(reason))
            continue
        nodes = sorted(match.nodes, key=place.__getitem__)
        with graph.rewrite(f"a match of {name!r}  =>  a call of its function", match.node):
            call = outlined(graph, nodes, name, ids, domain=COMPOSITES, metadata=metadata)
        if call.graph is not None:
            calls.append(call)
    return calls


def is_composite(graph: Graph) -> bool:
    """Return whether a graph is the function of a composite."""
    return getattr(graph, "domain", "") == COMPOSITES
