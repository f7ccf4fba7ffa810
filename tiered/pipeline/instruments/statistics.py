"""Statistics: the totals of each pass over all its runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tiered.graph.core.analysis import analysis
from tiered.graph.core.edit import KEEPS_OPERATORS
from tiered.pipeline.instruments.stacks import Stacks

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.passes.interface.pass_info import PassInfo, PassResult


@dataclass(slots=True)
class PassStatistics:
    """The totals of one pass.

    Attributes:
        runs: how often it ran; `skipped`, `failed`: how often it did not, or was undone.
        attempts: the places that it looked at closely: `rewrites` made and `declined` ones.
        edits: entries of the journal.
        nodes: how many nodes there are more (or, below 0, less) after its runs.
        seconds: without the passes that it ran.
    """

    name: str
    runs: int = 0
    skipped: int = 0
    failed: int = 0
    rewrites: int = 0
    declined: int = 0
    edits: int = 0
    nodes: int = 0
    seconds: float = 0.0

    @property
    def attempts(self) -> int:
        return self.rewrites + self.declined


class Statistics:
    """Counts runs, rewrites and nodes of each pass; pipelines are not counted."""

    def __init__(self) -> None:
        self.passes: dict[str, PassStatistics] = {}
        self._before: Stacks[int] = Stacks()
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> PassStatistics:
        return self.passes[name]

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._before.push(model, count_nodes(model))

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        grown = count_nodes(model) - self._before.pop(model)
        if info.kind != "pipeline":
            with self._lock:
                self._of(info.name).nodes += grown

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._before.pop(model)

    def on_result(self, model: Model, result: PassResult) -> None:
        if result.info.kind == "pipeline":
            return
        with self._lock:
            counted = self._of(result.name)
            counted.skipped += not result.ran
            counted.failed += result.error is not None
            counted.runs += result.ran
            counted.rewrites += result.rewrites
            counted.declined += len(result.missed)
            counted.edits += result.edits
            counted.seconds += result.seconds

    def _of(self, name: str) -> PassStatistics:
        return self.passes.setdefault(name, PassStatistics(name))

    def render(self) -> str:
        """Return a table, one line a pass, in the order of their first decision."""
        head = ("runs", "skipped", "failed", "attempts", "rewrites", "declined", "edits", "nodes")
        lines = ["".join(f"{title:>10}" for title in head) + "        time  pass"]
        for row in self.passes.values():
            numbers = "".join(f"{getattr(row, title):>10}" for title in head[:-1])
            lines.append(f"{numbers}{row.nodes:>+10}{row.seconds * 1e3:>9.2f} ms  {row.name}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


def count_nodes(model: Model) -> int:
    """Return the number of nodes of all graphs of a model; most passes leave it unchanged."""
    return model.analysis(_count)


@analysis(survives=KEEPS_OPERATORS)
def _count(model: Model) -> int:
    return sum(map(len, model.graphs()))
