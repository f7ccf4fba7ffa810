"""Why a conversion converted nothing: an error, as it was asked for by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from tiered.graph import Node
from tiered.rewriter import Unable
from tiered.support.amounts import counted

_FEW: Final = 3
"""So many reasons are in the error; each node has its own in the report."""


def nothing_converted(what: str, kept: Iterable[tuple[Node, str]]) -> Unable:
    """Return that nothing was converted, with the reasons that most nodes have.

    Args:
        what: what there is not, as "no node computes in float16".
        kept: the nodes that stay as they are, each with its reason.
    """
    counts = Counter((node.op_type, reason) for node, reason in dict.fromkeys(kept))
    said = [f"{count} {name}: {reason}" for (name, reason), count in counts.most_common(_FEW)]
    if len(counts) > _FEW:
        said.append(f"and {counted(len(counts) - _FEW, 'more reason')}")
    # What comes before, as replacements for a target, is no conversion.
    return Unable("{}: {}", what, "; ".join(said), despite_edits=True)
