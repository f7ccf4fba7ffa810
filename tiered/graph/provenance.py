"""Provenance: which nodes of the file each node was made from, through any number of rewrites.

Every rewrite notes on the nodes that it makes which nodes they stand for. Nothing of it is in the
protos, but what those say of themselves: metadata_props of what was replaced go over to what takes
its place, so that a profiler or a debugger still finds the module that a fused node came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.journal import Edit, Entry

if TYPE_CHECKING:
    from tiered.graph.model import Model
    from tiered.graph.node import Node

ORIGINS: Final = "tiered.origins"
"""The metadata key that `write_origins` writes."""

_REMOVALS: Final = (Edit.REMOVE_NODE, Edit.SETTLE)

_MOST: Final = 16
"""How many different texts of one key, or names of origins, are written down."""


def note_sources(edits: Sequence[Entry], sources: Sequence[Node]) -> None:
    """Note what the nodes that a rewrite made stand for.

    Args:
        edits: those of the rewrite.
        sources: what was matched; by default what the rewrite removed.
    """
    made = [entry[1] for entry in edits if entry[0] is Edit.ADD_NODE]
    made = [node for node in made if node.graph is not None and not node.sources]
    if not made:
        return
    if not sources:
        new = set(made)
        removed = (entry[1] for entry in edits if entry[0] in _REMOVALS)
        sources = tuple(node for node in removed if node not in new)
    described = [node for node in sources if node.proto.metadata_props]
    for node in made:
        node.sources = tuple(sources)
        # The node is as new as its proto, which goes with it if the rewrite is undone.
        if described and not node.proto.metadata_props:
            for key, text in merged_metadata(described).items():
                node.proto.metadata_props.add(key=key, value=text)


def merged_metadata(nodes: Iterable[Node]) -> dict[str, str]:
    """Return the metadata of several nodes: texts that differ stand side by side, with "; "."""
    texts: dict[str, dict[str, None]] = {}
    for node in sorted(nodes, key=lambda node: node.id):
        for key, text in node.metadata.items():
            if key != ORIGINS:
                texts.setdefault(key, {}).update(dict.fromkeys(text.split("; ")))
    return {key: "; ".join(list(parts)[:_MOST]) for key, parts in texts.items()}


def origins_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes of the file that a node was made from, in order; itself if it is one.

    They may be gone from the graph; their names and operators can still be read.
    """
    found: set[Node] = set()
    seen = {node}
    pending = [node]
    while pending:
        source = pending.pop()
        if not source.sources:
            found.add(source)
        for earlier in source.sources:
            if earlier not in seen:
                seen.add(earlier)
                pending.append(earlier)
    return tuple(sorted(found, key=lambda origin: origin.id))


def write_origins(model: Model) -> None:
    """Write the names of its origins into the metadata of each node that a rewrite made."""
    for graph in model.graphs():
        for node in graph.nodes:
            if not node.sources:
                continue
            names = [origin.label for origin in node.origins]
            more = [f"and {len(names) - _MOST} more"] if len(names) > _MOST else []
            text = "; ".join([*names[:_MOST], *more])
            if node.metadata.get(ORIGINS) != text:
                graph.set_metadata(node, {**node.metadata, ORIGINS: text})
