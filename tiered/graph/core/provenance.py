"""Provenance: the nodes of the file from which rewrites made each node.

Every rewrite records on its new nodes which nodes they replace. The protos hold only the
metadata_props, which are copied from the replaced nodes to the new ones: a profiler or a debugger
still finds the module of a fused node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.edit import Edit, Entry
from tiered.graph.core.marks import RECOMPUTED

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node

ORIGINS: Final = "tiered.origins"
"""The metadata key that `write_origins` writes."""

_ADD_NODE: Final = Edit.ADD_NODE
_REMOVALS: Final = (Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER)

_MOST: Final = 16
"""The most different strings of one key, or names of origins, that are written."""

_BETWEEN: Final = "; "
"""The separator between strings."""


def note_sources(edits: Sequence[Entry], sources: Sequence[Node]) -> None:
    """Record the sources of the nodes that a rewrite made.

    Args:
        edits: the edits of the rewrite.
        sources: the matched nodes; by default the nodes that the rewrite removed.
    """
    made = [
        entry[1]
        for entry in edits
        if entry[0] is _ADD_NODE and entry[1].graph is not None and not entry[1].sources
    ]
    if not made:
        return
    if not sources:
        new = set(made)
        removed = (entry[1] for entry in edits if entry[0] in _REMOVALS)
        sources = tuple(node for node in removed if node not in new)
    for node in made:
        node.sources = tuple(sources)
    described = [node for node in sources if node.proto.metadata_props]
    if described:
        made = [node for node in made if not node.proto.metadata_props]
        _describe(made, described)
        _keep_copies_apart(made, sources)


def _describe(made: Sequence[Node], sources: Sequence[Node]) -> None:
    """Copy the metadata of replaced nodes to the nodes that replace them.

    The first node gets all of it. So do others while all of them together have no more metadata
    than the sources had; the rest get the metadata of one source. If fewer nodes replace more, the
    first drops strings until there are no more than before. So stack traces on many nodes do not
    make the file grow.
    """
    first = min(sources, key=lambda node: node.id)
    texts = _texts(sources)
    whole, one = _joined(texts, _MOST), _joined(_texts([first]), _MOST)
    room = sum(_length(source.metadata) for source in sources)
    rest = (len(made) - 1) * _length(one)
    most = _MOST
    while len(made) < len(sources) and most > 1 and _length(whole) + rest > room:
        most -= 1
        whole = _joined(texts, most)
    for at, node in enumerate(made):
        left = len(made) - at - 1
        said = whole if not at or _length(whole) + left * _length(one) <= room else one
        room -= _length(said)
        # The node is new, so its proto may be written: undo removes both.
        for key, text in said.items():
            node.proto.metadata_props.add(key=key, value=text)


def _keep_copies_apart(made: Sequence[Node], sources: Sequence[Node]) -> None:
    """Mark nodes that replace marked copies: one of the same name, else all of the sources.

    One rewrite may replace nodes and their copies, each by a node of the same name.
    """
    computing = [node for node in sources if not node.is_op("Constant")]
    marks = [node.metadata.get(RECOMPUTED, "") for node in computing]
    if not any(marks):
        return
    by_name = {node.name: mark for node, mark in zip(computing, marks, strict=True) if node.name}
    shared = _BETWEEN.join(dict.fromkeys(marks)) if all(marks) else ""
    for node in made:
        text = by_name.get(node.name, shared)
        if text:
            node.proto.metadata_props.add(key=RECOMPUTED, value=text)


def _length(metadata: Mapping[str, str]) -> int:
    return sum(len(text) + len(_BETWEEN) for text in metadata.values())


def _texts(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Return the metadata of nodes by key, in the order of the file, each string once."""
    texts: dict[str, dict[str, None]] = {}
    for node in sorted(nodes, key=lambda node: node.id):
        for key, text in node.metadata.items():
            if key not in (ORIGINS, RECOMPUTED):
                texts.setdefault(key, {}).update(dict.fromkeys(text.split(_BETWEEN)))
    return {key: list(parts) for key, parts in texts.items()}


def _joined(texts: Mapping[str, Sequence[str]], most: int) -> dict[str, str]:
    """Join different strings; of more than the limit, a sample from every part."""
    return {key: _BETWEEN.join(_some(parts, most)) for key, parts in texts.items()}


def _some(texts: Sequence[str], most: int) -> Sequence[str]:
    if len(texts) <= most:
        return texts
    return [texts[at * len(texts) // most] for at in range(most)]


def origins_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes of the file that a node was made from, in order; a node of the file: itself.

    They may be removed from the graph; their names and operators can still be read.
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


def write_origins(model: ModelState) -> None:
    """Write the names of the origins into the metadata of each node that a rewrite made."""
    for graph in model.graphs():
        for node in graph.nodes:
            if not node.sources:
                continue
            names = [origin.label for origin in node.origins]
            more = [f"and {len(names) - _MOST} more"] if len(names) > _MOST else []
            text = _BETWEEN.join([*names[:_MOST], *more])
            if node.metadata.get(ORIGINS) != text:
                graph.set_metadata(node, {**node.metadata, ORIGINS: text})
