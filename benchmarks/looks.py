"""How often rules look at nodes again, and how often without need.

    python -m benchmarks.looks --models examples/models

The first look of a rule at a node must be. A later one is needed where an edit since then touched
the node, or what lies as far from it as the law reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cyclopts
import onnx

import tiered
from tiered.graph import Node
from tiered.graph.core.edit import RENAMES, Stamp
from tiered.graph.core.journal import dirty_nodes
from tiered.rewriter.worklist import Worklist


@dataclass
class Looks:
    """The looks of all rules in one run."""

    first: int = 0
    again: int = 0
    needless: int = 0


@contextmanager
def counted() -> Iterator[Looks]:
    """Count the looks of the runs inside the block."""
    looks = Looks()
    affected_since, all_anchors = Worklist.affected_since, Worklist.all_anchors
    inside = False

    def count_again(self: Worklist, since: Stamp) -> list[Node]:
        nonlocal inside
        inside = True
        found = affected_since(self, since)
        inside = False
        journal = self.model.journal
        if journal.kept_since(since) == since.length:
            edits = (entry for entry in journal.since(since.length) if entry[0] not in RENAMES)
            needed = set(self.affected_by(dirty_nodes(edits)))
            looks.needless += sum(node not in needed for node in found)
        looks.again += len(found)
        return found

    def count_first(self: Worklist) -> list[Node]:
        found = all_anchors(self)
        looks.first += 0 if inside else len(found)
        return found

    Worklist.affected_since, Worklist.all_anchors = count_again, count_first  # type: ignore[method-assign]  # counts
    try:
        yield looks
    finally:
        Worklist.affected_since, Worklist.all_anchors = affected_since, all_anchors  # type: ignore[method-assign]  # back


def main(models: Path) -> list[Looks]:
    """Print the looks of each model, and return them."""
    print(f"{'first':>7}{'again':>7}{'needless':>10}  model")
    found: list[Looks] = []
    for file in sorted(models.glob("*.onnx")):
        model = onnx.load(file)
        with counted() as looks:
            tiered.optimize(model, opt_level=3)
        print(f"{looks.first:>7,}{looks.again:>7,}{looks.needless:>10,}  {file.stem}", flush=True)
        found.append(looks)
    return found


def command(*, models: Path = Path("examples/models")) -> None:
    """Count how often rules look at nodes.

    Args:
        models: the folder of the models.
    """
    main(models)


if __name__ == "__main__":
    cyclopts.run(command)
