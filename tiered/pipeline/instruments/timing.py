"""Timing: how long each pass took, as a tree that can be read at any time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tiered.pipeline.instruments.stacks import Stacks

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.passes.interface.pass_info import PassInfo


@dataclass(slots=True)
class Timed:
    """One pass at one place of the tree, all its calls there together; times in seconds."""

    name: str
    calls: int = 0
    failures: int = 0
    inclusive: float = 0.0
    children: dict[str, Timed] = field(default_factory=dict)

    @property
    def exclusive(self) -> float:
        """The time without that of the passes within it."""
        return self.inclusive - sum(child.inclusive for child in self.children.values())

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Timed]]:
        """Yield all below with their depth, in the order of their first call."""
        for child in self.children.values():
            yield depth, child
            yield from child.walk(depth + 1)


class Timing:
    """Times passes and pipelines; failed ones too, and dependencies below their dependant.

    Attributes:
        root: the parent of direct calls; its own numbers stay 0.
    """

    def __init__(self) -> None:
        self.root = Timed("")
        self._open: Stacks[tuple[Timed, float]] = Stacks()
        self._lock = threading.Lock()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        above = self._open.top(model)
        parent = self.root if above is None else above[0]
        with self._lock:
            timed = parent.children.setdefault(info.name, Timed(info.name))
        self._open.push(model, (timed, time.perf_counter()))

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        self._end(model, failed=False)

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._end(model, failed=True)

    def _end(self, model: Model, *, failed: bool) -> None:
        now = time.perf_counter()
        timed, started = self._open.pop(model)
        with self._lock:
            timed.calls += 1
            timed.failures += failed
            timed.inclusive += now - started

    def totals(self) -> dict[str, Timed]:
        """Return the total of every pass over all places, without children, the slowest first."""
        found: dict[str, Timed] = {}
        for _, timed in self.root.walk():
            total = found.setdefault(timed.name, Timed(timed.name))
            total.calls += timed.calls
            total.failures += timed.failures
            total.inclusive += timed.exclusive
        return dict(sorted(found.items(), key=lambda item: -item[1].inclusive))

    def render(self) -> str:
        """Return the tree as text: inclusive and exclusive milliseconds, and calls."""
        lines = [f"{'inclusive':>12}{'exclusive':>12}{'calls':>7}  pass"]
        for depth, timed in self.root.walk():
            failed = f"  ({timed.failures} failed)" if timed.failures else ""
            lines.append(
                f"{timed.inclusive * 1e3:>9.2f} ms{timed.exclusive * 1e3:>9.2f} ms"
                f"{timed.calls:>7}  {'  ' * depth}{timed.name}{failed}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()
