"""Provenance: which nodes of the file each node was made from, through any number of rewrites.

Every rewrite notes on the nodes that it makes which nodes they stand for. Nothing of it is in the
protos, but what those say of themselves: metadata_props of what was replaced go over to what takes
its place, so that a profiler or a debugger still finds the module that a fused node came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.journal import Edit, Entry

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node

ORIGINS: Final = "tiered.origins"
"""The metadata key that `write_origins` writes."""

_ADD_NODE: Final = Edit.ADD_NODE
_REMOVALS: Final = (Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER)

_MOST: Final = 16
"""How many different texts of one key, or names of origins, are written down."""

_BETWEEN: Final = "; "
"""What stands between texts."""


def note_sources(edits: Sequence[Entry], sources: Sequence[Node]) -> None:
    """Note what the nodes that a rewrite made stand for.

    Args:
        edits: those of the rewrite.
        sources: what was matched; by default what the rewrite removed.
    """
    made = [entry[1] for entry in edits if entry[0] is _ADD_NODE]
    made = made and [node for node in made if node.graph is not None and not node.sources]
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
        _describe([node for node in made if not node.proto.metadata_props], described)


def _describe(made: Sequence[Node], sources: Sequence[Node]) -> None:
    """Write what sources say of themselves on the nodes that take their place.

    The first node says all of it, and so do others as long as they say no more together than the
    sources did; the rest say what one source said. Where fewer nodes take the place of more, the
    first leaves out what would make it more than there was. So a file does not grow by traces of
    the stack that many nodes repeat.
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
        # The node is as new as its proto, which goes with it if the rewrite is undone.
        for key, text in said.items():
            node.proto.metadata_props.add(key=key, value=text)


def _length(metadata: Mapping[str, str]) -> int:
    return sum(len(text) + len(_BETWEEN) for text in metadata.values())


def _texts(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Return what nodes say under each key, in the order of the file, each text once."""
    texts: dict[str, dict[str, None]] = {}
    for node in sorted(nodes, key=lambda node: node.id):
        for key, text in node.metadata.items():
            if key != ORIGINS:
                texts.setdefault(key, {}).update(dict.fromkeys(text.split(_BETWEEN)))
    return {key: list(parts) for key, parts in texts.items()}


def _joined(texts: Mapping[str, Sequence[str]], most: int) -> dict[str, str]:
    """Write texts that differ side by side, of more than the most some of every part."""
    return {key: _BETWEEN.join(_some(parts, most)) for key, parts in texts.items()}


def _some(texts: Sequence[str], most: int) -> Sequence[str]:
    if len(texts) <= most:
        return texts
    return [texts[at * len(texts) // most] for at in range(most)]


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


def write_origins(model: ModelState) -> None:
    """Write the names of its origins into the metadata of each node that a rewrite made."""
    for graph in model.graphs():
        for node in graph.nodes:
            if not node.sources:
                continue
            names = [origin.label for origin in node.origins]
            more = [f"and {len(names) - _MOST} more"] if len(names) > _MOST else []
            text = _BETWEEN.join([*names[:_MOST], *more])
            if node.metadata.get(ORIGINS) != text:
                graph.set_metadata(node, {**node.metadata, ORIGINS: text})
