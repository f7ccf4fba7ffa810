"""Blocks: the places where a pass rewrites, grouped by their structure.

Places with the same operators, connections, types and sizes are equal blocks, such as the layers of
one encoder: they get one decision. Names do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.tracing.events import Rewrite


def block_of(rewrite: Rewrite) -> str:
    """Return the digest of the nodes of a rewrite, as they were before."""
    numbers: dict[str, int] = {}
    lines: list[object] = []
    for state in sorted(rewrite.before, key=lambda state: state.id):
        operands = []
        for name in (*state.inputs, *state.outputs):
            number = numbers.setdefault(name, len(numbers)) if name else -1
            known = rewrite.around.values.get(name)
            kind = "" if known is None else f"{known.type} {known.is_constant}"
            operands.append((number, kind))
        lines.append((state.op_type, operands))
    text = repr((rewrite.law, lines))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def blocks_of(trace: Trace) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the blocks that each pass rewrote, with the anchors of the rewrites in each.

    An anchor is the name of the node at which a rule matched; passes that look at a whole graph
    have none.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for rewrite in trace.rewrites:
        if not rewrite.undone:
            groups = found.setdefault(rewrite.pass_name, {})
            groups.setdefault(block_of(rewrite), []).append(rewrite.anchor)
    return {
        name: {block: tuple(anchors) for block, anchors in groups.items()}
        for name, groups in found.items()
    }


def joined(blocks: Iterable[str]) -> tuple[str, ...]:
    """Return digests of blocks in order, each once."""
    return tuple(sorted(set(blocks)))
