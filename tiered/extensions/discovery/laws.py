"""Expressions up to what does not count: constants in a law, the order of operands in a form."""

from __future__ import annotations

from tiered.extensions.discovery.expressions import BORDER, ExpressionTable, GrammarExpr
from tiered.graph.queries.op_traits import COMMUTATIVE


def law_of(source: GrammarExpr, target: GrammarExpr) -> str:
    """Return a rule without constants and attributes."""
    return f"{_skeleton(source)}  =>  {_skeleton(target)}"


def _skeleton(expr: GrammarExpr) -> str:
    if expr.op == BORDER:
        return str(expr)
    if expr.array is not None:
        return "c"
    operands = [x for x in expr.operands if x is not None]
    if len(operands) > 1 and all(x.array is not None for x in operands[1:]):
        # What only sets how an operator works is no part of a law.
        operands = operands[:1] if expr.op not in COMMUTATIVE else operands
    return f"{expr.op}({', '.join(_skeleton(x) for x in operands)})"


def canonical(table: ExpressionTable, expr: GrammarExpr) -> GrammarExpr:
    """Return an expression with the operands of commutative operators in the order of numbers.

    Operands that are absent at the end are not written.
    """
    made: dict[int, GrammarExpr] = {}
    for each in expr.walk():
        if not each.is_operator:
            made[each.number] = each
            continue
        operands = [None if x is None else made[x.number] for x in each.operands]
        if each.op in COMMUTATIVE and not each.domain:
            operands.sort(key=lambda x: -1 if x is None else x.number)
        while operands and operands[-1] is None:
            operands.pop()
        made[each.number] = table.apply(
            each.op, operands, each.attributes,
            kind=(each.dtype, each.shape), output=each.output, domain=each.domain,
        )  # fmt: skip
    return made[expr.number]
