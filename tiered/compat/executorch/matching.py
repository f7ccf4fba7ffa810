"""Subgraph rewriting and matching by the names of torch.fx."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import onnx

from tiered.compat.executorch.fx_graph import FxGraph
from tiered.graph import Graph, Model
from tiered.rewriter import (
    ReplacedPattern,
    SubgraphMatch,
    SubgraphMatcher as _Matcher,
    replace_pattern as _replace_pattern,
)
from tiered.rewriter.subgraphs.pattern_text import PatternLike
from tiered.rewriter.subgraphs.replace_pattern import MatchFilter

InternalMatch = SubgraphMatch
ReplacedPatterns = ReplacedPattern


AnyGraph: TypeAlias = "Graph | Model | onnx.ModelProto | FxGraph"


def view_of(graph: AnyGraph) -> Graph | Model:
    """Return a graph or model as a view."""
    if isinstance(graph, onnx.ModelProto):
        return Model.from_proto(graph)
    return graph.model if isinstance(graph, FxGraph) else graph


def replace_pattern_with_filters(
    gm: AnyGraph,
    pattern: PatternLike,
    replacement: PatternLike,
    match_filters: Iterable[MatchFilter] | None = None,
) -> list[ReplacedPattern]:
    """`tiered.rewriter.replace_pattern` with the argument names of torch.fx.

    What is given is edited in place; the result for a ModelProto is of a view of it.
    """
    view = view_of(gm)
    replaced = _replace_pattern(view, pattern, replacement, filters=match_filters or ())
    if isinstance(gm, onnx.ModelProto) and isinstance(view, Model) and replaced:
        gm.CopyFrom(view.to_proto())
    return replaced


def replace_pattern(
    gm: AnyGraph, pattern: PatternLike, replacement: PatternLike
) -> list[ReplacedPattern]:
    """Return `replace_pattern_with_filters` without filters."""
    return replace_pattern_with_filters(gm, pattern, replacement)


class FxSubgraphMatcher(_Matcher):
    """`tiered.SubgraphMatcher`, which also takes a ModelProto."""

    def match(self, graph: AnyGraph) -> list[SubgraphMatch]:
        """Return the matches in topological order; those of a ModelProto are in a view of it."""
        return super().match(view_of(graph))
