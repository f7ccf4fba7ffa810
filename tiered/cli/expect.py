"""`--expect Attention>=12`: which operators the result must have; and which ones fusions made."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tiered.errors import TargetError, UsageError

if TYPE_CHECKING:
    from tiered.control.remarks import Remark
    from tiered.pipeline.result import OptimizeResult

_ENTRY: Final = re.compile(r"([A-Za-z_][\w.]*)\s*(?:(>=|<=|==|=|>|<)\s*(\d+))?")
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_FEW_REASONS: Final = 3


@dataclass(frozen=True)
class Expectation:
    """How many nodes of one operator a result must have; by its domain too, if that has a name."""

    op_type: str
    relation: str
    count: int

    def __str__(self) -> str:
        return f"{self.op_type}{self.relation}{self.count}"

    def holds(self, found: int) -> bool:
        return _COMPARE[self.relation](found, self.count)


def parse_expectations(entries: Sequence[str]) -> tuple[Expectation, ...]:
    """Return what `--expect` asks for; an operator alone must be there at least once.

    Raises:
        UsageError: an entry is no operator with a number.
    """
    return tuple(_parse(text.strip()) for entry in entries for text in entry.split(","))


def _parse(text: str) -> Expectation:
    found = _ENTRY.fullmatch(text)
    if found is None:
        raise UsageError(f"--expect takes an operator and a number, as Gelu>=12, not {text!r}")
    op_type, relation, count = found.groups()
    return Expectation(op_type, relation or ">=", int(count or 1))


def check_expectations(expectations: Sequence[Expectation], result: OptimizeResult) -> None:
    """Raise if the result does not have what is expected, with the reasons of the passes.

    Raises:
        TargetError: an expectation does not hold.
    """
    missed = [
        f"expected {expectation}, found {found}{_why(expectation.op_type, result)}"
        for expectation in expectations
        if not expectation.holds(found := result.after.operators.get(expectation.op_type, 0))
    ]
    if missed:
        raise TargetError("; ".join(missed))


def _why(op_type: str, result: OptimizeResult) -> str:
    """Return the reasons of the passes that make an operator."""
    makers = _makers(op_type, result)
    if not makers:
        return " (no pass of the pipeline makes it)"
    said: dict[str, None] = {}
    remarks: Sequence[Remark] = result.remarks
    for remark in remarks:
        if remark.pass_name in makers and remark.kind in ("missed", "skipped", "failed"):
            said[str(remark)] = None
    reasons = list(said)[:_FEW_REASONS] or [f"{', '.join(makers)} found nothing to fuse"]
    more = ["..."] if len(said) > _FEW_REASONS else []
    return f" ({'; '.join([*reasons, *more])})"


def _makers(op_type: str, result: OptimizeResult) -> list[str]:
    """Return the passes whose law ends in an operator, in the order of the pipeline."""
    call = re.compile(rf"\b{re.escape(op_type.rpartition('.')[2])}\b")
    laws = {pass_.name: pass_.info.law for pass_ in result.pipeline.leaves()}
    return [name for name, law in laws.items() if call.search(_results(law))]


def _results(law: str) -> str:
    """Return what a law puts in the place of something: all behind its arrows."""
    return " ".join(re.split(r"=>", law)[1:])


def fused_operators(result: OptimizeResult) -> dict[str, int]:
    """Return how many more nodes of each operator there are that a fusion made, the most first."""
    ran = {done.name for done in result.report.ran() if done.rewrites}
    found = dict(_grown(result, {name for name in ran if name.startswith("fuse_")}))
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def _grown(result: OptimizeResult, fusions: set[str]) -> Iterator[tuple[str, int]]:
    before = result.before.operators
    for op_type, count in result.after.operators.items():
        more = count - before.get(op_type, 0)
        if more > 0 and fusions.intersection(_makers(op_type, result)):
            yield op_type, more
