"""Which operators fusions made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiered.pipeline.result import OptimizeResult


def fused_operators(result: OptimizeResult) -> dict[str, int]:
    """Return how many more nodes of each operator there are that a fusion made, the most first."""
    ran = {done.name for done in result.report.ran() if done.rewrites}
    found = dict(_grown(result, {name for name in ran if name.startswith("fuse_")}))
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def _grown(result: OptimizeResult, fusions: set[str]) -> Iterator[tuple[str, int]]:
    from tiered.pipeline.expectations import makers_of

    before = result.before.operators
    for op_type, count in result.after.operators.items():
        more = count - before.get(op_type, 0)
        if more > 0 and fusions.intersection(makers_of(op_type, result.pipeline)):
            yield op_type, more
