"""How far a missing rule reaches: what of its instance may be something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiered.certify.evaluation.values import Unproved
from tiered.extensions.discovery.expressions import (
    BORDER,
    Array,
    ExpressionTable,
    GrammarExpr,
    outputs_of,
)
from tiered.extensions.discovery.judging import PipelineJudge
from tiered.extensions.discovery.meaning import DomainName, Meaning
from tiered.graph.queries.op_traits import ELEMENTWISE

_OTHER_FUNCTIONS: Final = ("Abs", "Exp", "Ceil")
_OTHER_PAIRS: Final = ("Mul", "Sub", "Max")


@dataclass(frozen=True)
class RuleChange:
    """A change of both sides of a rule.

    Attributes:
        what: in words.
        operators: other names of operators, by name.
        constants: other numbers, by the number of the constant's expression.
        dims: other sizes of dims of borders, by size.
    """

    what: str
    operators: Mapping[str, str]
    constants: Mapping[int, Array]
    dims: Mapping[int, int]


def reach(source: GrammarExpr, target: GrammarExpr, level: int, domain: DomainName) -> list[str]:
    """Return what may vary in a rule: with each of these changes it is still missing.

    Args:
        source: what the pipeline leaves.
        target: the cheaper equal graph.
        level: of the pipeline.
        domain: what equal means.
    """
    found: list[str] = []
    for change in _changes(source, target):
        if change.what in found:
            continue  # of another node of the operator
        meaning = Meaning(ExpressionTable(), domain)
        try:
            first, second = (_changed(side, change, meaning) for side in (source, target))
            if meaning.key(first) != meaning.key(second):
                continue
        except Unproved:
            continue
        judged = PipelineJudge(meaning.table, level).alone(first)
        if judged.form is not None and judged.form.cost > second.cost:
            found.append(change.what)
    return found


def _changes(source: GrammarExpr, target: GrammarExpr) -> Iterator[RuleChange]:
    inside = list(source.walk())
    for border in [each for each in inside if each.op == BORDER]:
        for size in dict.fromkeys(border.shape):
            if size > 1:
                yield RuleChange(f"the dim {size} of {border}", {}, {}, {size: size + 4})
    for each in inside:
        if each.array is not None and each.array.size:
            other = _other(each.array)
            yield RuleChange(f"the constant {each}", {}, {each.number: other}, {})
    for each in source.nodes().values():
        is_on_both = any(node.op == each.op for node in target.nodes().values())
        others = _OTHER_FUNCTIONS if len(each.operands) == 1 else _OTHER_PAIRS
        alike = [node for side in (source, target) for node in side.nodes().values()]
        counts = {len(node.operands) for node in alike if node.op == each.op}
        if is_on_both and each.op in ELEMENTWISE and counts in ({1}, {2}) and not each.attributes:
            for name in others:
                if name != each.op:
                    yield RuleChange(f"{each.op}: {name}", {each.op: name}, {}, {})


def _other(array: Array) -> Array:
    """Return other numbers of the same dtype; indices stay small."""
    if array.dtype.kind == "f":
        return np.asarray(array * 0.75 + 0.3, array.dtype)
    if array.dtype.kind == "b":
        return np.asarray(~array)
    return np.asarray(array + np.ones((), array.dtype))


def _changed(side: GrammarExpr, change: RuleChange, meaning: Meaning) -> GrammarExpr:
    """Return a side with a change.

    Raises:
        Unproved: it computes nothing then.
    """
    made: dict[int, GrammarExpr] = {}
    for each in side.walk():
        if each.op == BORDER:
            shape = [change.dims.get(size, size) for size in each.shape]
            made[each.number] = meaning.table.border(str(each), each.dtype, shape)
        elif each.array is not None:
            held = change.constants.get(each.number, each.array)
            made[each.number] = meaning.table.constant(held)
        else:
            operands = [None if x is None else made[x.number] for x in each.operands]
            op = change.operators.get(each.op, each.op)
            results = meaning.applied(
                op, operands, each.attributes, outputs_of(each), domain=each.domain
            )
            made[each.number] = results[each.output]
    return made[side.number]
