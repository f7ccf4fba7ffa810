"""Expressions over one border, for tests of what they are and compute."""

import numpy as np

from tiered.extensions.discovery.expressions import ExpressionTable, GrammarExpr
from tiered.extensions.discovery.grammar import FLOAT
from tiered.extensions.discovery.meaning import DomainName, Meaning


class Maker:
    """Expressions over x, float[2,3]."""

    def __init__(self, domain: DomainName = "bits") -> None:
        self.meaning = Meaning(ExpressionTable(), domain)
        self.x = self.meaning.table.border("x", FLOAT, (2, 3))

    def __call__(
        self, op: str, *operands: GrammarExpr | float | list[int], **attributes: object
    ) -> GrammarExpr:
        held = [each if isinstance(each, GrammarExpr) else self.constant(each) for each in operands]
        return self.meaning.applied(op, held, tuple(attributes.items()))[0]

    def constant(self, number: float | list[int]) -> GrammarExpr:
        dtype = np.int64 if isinstance(number, list) else np.float32
        return self.meaning.table.constant(np.asarray(number, dtype))

    def are_equal(self, one: GrammarExpr, other: GrammarExpr) -> bool:
        return self.meaning.key(one) == self.meaning.key(other)
