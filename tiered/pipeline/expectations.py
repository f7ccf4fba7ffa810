"""Expectations of a result: `Attention>=12`, `com.microsoft::Gelu`, `nodes<=500`, `bytes<=90MB`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tiered.pipeline.result import ModelStatistics
from tiered.support.errors import OptionError, TargetError, UsageError, did_you_mean
from tiered.support.operator_name import operator_name
from tiered.support.typed_options import size_in_bytes

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.passes.interface.report import Remark
    from tiered.pipeline.pipeline_base import Pipeline
    from tiered.targets import Backend

TOTALS: Final = ("nodes", "bytes", "parameters")
"""The totals that can be expected beside counts of operators."""

_ENTRY: Final = re.compile(
    r"(?P<name>[A-Za-z_](?:[\w.-]|::)*)\s*(?:(?P<relation>>=|<=|==|=|>|<)\s*(?P<count>[\w.]+))?"
)
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_FEW_REASONS: Final = 3
_SPELLING: Final = "Gelu>=12, com.microsoft::Gelu, nodes<=500, bytes<=90MB or parameters<1000"


class Expectation(NamedTuple):
    """How many nodes of an operator, or nodes, bytes or parameters in all, a result must have.

    Attributes:
        name: an operator, with its domain as in `com.microsoft::Gelu`, or one of `TOTALS`.
        relation: one of >=, <=, ==, =, > and <.
        number: the number to compare with.
    """

    name: str
    relation: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}{self.relation}{self.number}"

    @property
    def is_total(self) -> bool:
        return self.name in TOTALS

    def count_in(self, statistics: ModelStatistics) -> int:
        """Return the number that a model has."""
        totals = (statistics.nodes, statistics.nbytes, statistics.parameters)
        return dict(zip(TOTALS, totals, strict=True)).get(
            self.name, statistics.operators.get(self.name, 0)
        )

    def holds(self, found: int) -> bool:
        return _COMPARE[self.relation](found, self.number)


def parse_expectations(entries: Iterable[str]) -> tuple[Expectation, ...]:
    """Parse expectations; an operator without a count must occur at least once.

    Raises:
        UsageError: an entry is no name with a number, or `entries` is a string.
    """
    if isinstance(entries, str):
        raise UsageError(f"expect takes a list of texts, not {entries!r}; write [{entries!r}]")
    if not isinstance(entries, Iterable):
        raise UsageError(f"expect takes a list of texts, as in ['nodes<=500'], not {entries!r}")
    return tuple(_parse(text.strip()) for entry in entries for text in entry.split(","))


def _parse(text: str) -> Expectation:
    found = _ENTRY.fullmatch(text)
    if found is None:
        raise UsageError(f"--expect {text!r}: expected {_SPELLING}")
    name, relation, count = found.groups()
    name = name.removeprefix("ai.onnx::")
    if count is None and name in TOTALS:
        raise UsageError(f"--expect {text!r}: expected a number too, as in {name}<=500")
    return Expectation(name, relation or ">=", _count(text, name, count or "1"))


def _count(text: str, name: str, count: str) -> int:
    if count.isdecimal():
        return int(count)
    if name != "bytes":
        raise UsageError(f"--expect {text!r}: {count!r} is no number; expected {_SPELLING}")
    try:
        return size_in_bytes(count, 0)
    except OptionError as error:
        raise UsageError(f"--expect {text!r}: {error}") from error


# --- names ----------------------------------------------------------------------------------------


def check_names(
    expectations: Sequence[Expectation], model: Model, backend: Backend, pipeline: Pipeline
) -> frozenset[str]:
    """Raise if an expectation names an operator that does not exist, before any pass runs.

    Returns:
        operators of domains that neither onnx nor a backend lists: the result shows whether they
        exist.

    Raises:
        UsageError: there is no such operator.
    """
    names = {expectation.name for expectation in expectations if not expectation.is_total}
    if not names:
        return frozenset()
    listed = _listed(backend)
    domains = {name.rpartition("::")[0] for name in listed}
    known = listed | _at_hand(model, pipeline)
    unjudged = frozenset(name for name in names - known if name.rpartition("::")[0] not in domains)
    for name in sorted(names - known - unjudged):
        raise _unknown(name, known)
    return unjudged


def _unknown(name: str, known: Iterable[str]) -> UsageError:
    candidates = sorted({*known, *TOTALS})
    bare = re.split(r"::|\.", name)[-1]
    others = [other for other in candidates if other.rpartition("::")[2] == bare]
    hint = did_you_mean(name, others, cutoff=0.0) or did_you_mean(name, candidates)
    return UsageError(f"--expect: there is no operator {name!r}{hint}")


def _listed(*backends: Backend) -> set[str]:
    """Return the operators that onnx, these backends or a built-in one lists."""
    import onnx

    from tiered.targets.known import built_in_backends

    known = {operator_name(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()}
    for target in (*backends, *built_in_backends()):
        known.update(operator_name(*key) for key in target.operators)
    return known


def _at_hand(model: Model, pipeline: Pipeline) -> set[str]:
    """Return the operators of the model, and those that passes declare to make."""
    known = {node.operator for graph in model.graphs() for node in graph.nodes}
    known.update(operator_name(*function.id[:2]) for function in model.functions)
    for leaf in pipeline.leaves():
        known.update((*leaf.info.makes, *leaf.info.may_make))
    return known


# --- the result -----------------------------------------------------------------------------------


def check_expectations(
    expectations: Sequence[Expectation],
    after: ModelStatistics,
    pipeline: Pipeline,
    remarks: Sequence[Remark],
    unjudged: Collection[str] = (),
) -> None:
    """Raise if an expectation does not hold, with the reasons of the passes.

    Args:
        expectations: the expectations.
        after: of the result.
        pipeline: the passes that ran.
        remarks: of the run.
        unjudged: what `check_names` returned.

    Raises:
        TargetError: an expectation does not hold.
        UsageError: an unjudged operator is in neither the model nor the result.
    """
    missed = []
    for expectation in expectations:
        name, count = expectation.name, expectation.count_in(after)
        if not expectation.holds(count):
            why = "" if expectation.is_total else _why(name, pipeline, remarks)
            missed.append(f"expected {expectation}, found {count}{_other(expectation, after)}{why}")
        elif count == 0 and name in unjudged:
            raise _unknown(name, {*after.operators, *_listed()})
    if missed:
        raise TargetError("; ".join(missed))


def _other(expectation: Expectation, after: ModelStatistics) -> str:
    """Return the counts of operators of the same name in other domains."""
    bare = expectation.name.rpartition("::")[2]
    found = [
        f"{name} {count}"
        for name, count in after.operators.items()
        if name != expectation.name and name.rpartition("::")[2] == bare
    ]
    return f", and {', '.join(found)}" if found and not expectation.is_total else ""


def _why(name: str, pipeline: Pipeline, remarks: Sequence[Remark]) -> str:
    """Return the reasons of the passes that make an operator."""
    makers = makers_of(name, pipeline)
    if not makers:
        return " (no pass of the pipeline makes it)"
    found: dict[str, None] = {}
    for remark in remarks:
        if remark.pass_name in makers and remark.kind in ("missed", "skipped", "failed"):
            found[str(remark)] = None
    reasons = list(found)[:_FEW_REASONS] or [f"{', '.join(makers)} found nothing to fuse"]
    more = ["..."] if len(found) > _FEW_REASONS else []
    return f" ({'; '.join([*reasons, *more])})"


def makers_of(name: str, pipeline: Pipeline) -> list[str]:
    """Return the passes that make an operator, in the order of the pipeline."""
    call = re.compile(rf"\b{re.escape(name.rpartition('::')[2])}\b")
    infos = {leaf.name: leaf.info for leaf in pipeline.leaves()}
    return [
        key
        for key, info in infos.items()
        if name in (*info.makes, *info.may_make) or call.search(_results(info.law))
    ]


def _results(law: str) -> str:
    """Return the right-hand sides of a law."""
    return " ".join(re.split(r"=>", law)[1:])
