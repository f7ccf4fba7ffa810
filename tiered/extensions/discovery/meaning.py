"""What expressions compute, by the rules of the checker of certificates: equal keys, equal values.

For levels 0 to 2 equal means the same bits. Some kernels compute the last elements of a tensor in
another way than the first ones: there an element depends on its place as well, so that moving it is
no equality. Sums are in the order in which they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Literal

from tiered.certify.definitions.contrib_definitions import REALS_AND_CONTRIB
from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.domains.element_arrays import is_number
from tiered.certify.domains.terms import Array, digest, leaf, mix, seed_of
from tiered.certify.evaluation.call import Domain, EvaluatedCall, Results, constant
from tiered.certify.evaluation.evaluate import NameScope, ProofSetting
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.extensions.discovery.expressions import (
    BORDER,
    OPSET,
    Attributes,
    ExpressionTable,
    GrammarExpr,
    node_of,
    outputs_of,
)
from tiered.graph.core.types import TensorType
from tiered.graph.queries.op_traits import (
    ARITHMETIC,
    BITWISE,
    CASTS,
    COMPARISONS,
    ELEMENTWISE,
    LOGIC,
    ROUNDINGS,
)

DomainName = Literal["bits", "reals"]
FOR_ANY_PLACE: Final = frozenset(
    {*ARITHMETIC, *BITWISE, *CASTS, *COMPARISONS, *LOGIC, *ROUNDINGS}
    | {"Abs", "Clip", "Identity", "LeakyRelu"}
    | {"IsInf", "IsNaN", "Neg", "Not"}
    | {"Relu", "Sign", "Sqrt", "Where"}
)
"""Elementwise operators whose kernels compute an element alike wherever it is."""
_MOST_RESULTS: Final = 20_000


def domain_at(level: int) -> DomainName:
    """Return what equal means at a level: up to 2 the same bits."""
    return "bits" if level < 3 else "reals"


Rule = Callable[[EvaluatedCall], Results]


def _placed(rule: Rule) -> Rule:
    """Return a rule whose elements depend on their places."""

    def at_places(call: EvaluatedCall) -> Results:
        return [None if x is None else _with_places(call, x) for x in rule(call)]

    return at_places


def _with_places(call: EvaluatedCall, x: CheckedTensor) -> CheckedTensor:
    if x.known is not None or any(x is each for each in call.inputs):
        return x
    seed = seed_of("placed", call.op)

    def make() -> Array:
        places = leaf(seed_of("place", x.size), (x.size,)).reshape(x.shape)
        return mix(seed, x.terms, places)

    return CheckedTensor(x.dtype, x.shape, make)


_ON_BITS: Final = {
    name: _placed(rule) if name in ELEMENTWISE - FOR_ANY_PLACE else rule
    for name, rule in RULES.items()
}


class Meaning:
    """The values of expressions in one domain.

    Args:
        table: where expressions are kept.
        name: "bits" or "reals".
    """

    def __init__(self, table: ExpressionTable, name: DomainName) -> None:
        self.table = table
        self.name: DomainName = name
        self._domain: Domain = Bits() if name == "bits" else Affine(2.0**-23)
        rules = _ON_BITS if name == "bits" else REALS_AND_CONTRIB
        trusts = name == "reals"
        opsets = {"": OPSET, "com.microsoft": 1}
        self._setting = ProofSetting(self._domain, rules, opsets, {}, trusts)
        self._scope = NameScope(self._setting)
        self._values: dict[int, CheckedTensor] = {}

    def applied(
        self,
        op: str,
        operands: Sequence[GrammarExpr | None],
        attributes: Attributes,
        outputs: int = 1,
        domain: str = "",
    ) -> list[GrammarExpr]:
        """Return the results of an operator as expressions.

        Raises:
            Unproved: they have no values.
        """
        draft = self.table.apply(op, operands, attributes, kind=(0, ()), domain=domain)
        results = self._run(draft, outputs)
        return [
            self._kept(draft, index, result)
            for index, result in enumerate(results) if result is not None
        ]  # fmt: skip

    def _kept(self, draft: GrammarExpr, index: int, result: CheckedTensor) -> GrammarExpr:
        kind = (result.dtype, result.shape)
        made = self.table.apply(
            draft.op, draft.operands, draft.attributes,
            kind=kind, output=index, domain=draft.domain,
        )  # fmt: skip
        self._values.setdefault(made.number, result)
        return made

    def _run(self, expr: GrammarExpr, outputs: int) -> list[CheckedTensor | None]:
        names: dict[int, str] = {}
        for operand in expr.operands:
            if operand is not None:
                names[operand.number] = f"v{operand.number}"
                self._scope.values[f"v{operand.number}"] = self.value(operand)
        made = [f"r{index}" for index in range(outputs)]
        node = node_of(expr, names, made)
        if len(self._setting.results) > _MOST_RESULTS:
            self._setting.results.clear()
            self._scope.axioms.clear()
        self._scope.run([node])
        found = [self._scope.values.pop(name, None) for name in made]
        for name in names.values():
            self._scope.values.pop(name, None)
        return found

    def value(self, expr: GrammarExpr) -> CheckedTensor:
        """Return what an expression computes.

        Raises:
            Unproved: it has no value.
        """
        for each in expr.walk():
            if each.number in self._values:
                continue
            if each.array is not None:
                made: CheckedTensor | None = constant(self._domain, each.array, each.dtype)
            elif each.op == BORDER:
                kind = TensorType(each.dtype, each.shape)
                made = self._setting.free(kind, ("border", each.attributes))
            else:
                results = self._run(each, outputs_of(each))
                made = results[each.output]
            if made is None:
                raise Unproved(f"{each.op} has no result {each.output}")
            self._values[each.number] = made
        return self._values[expr.number]

    def key(self, expr: GrammarExpr) -> Hashable:
        """Return what an expression computes, as a key.

        Raises:
            Unproved: it has no value.
        """
        value = self.value(expr)
        terms = value.terms
        if isinstance(self._domain, Affine):
            terms = self._domain.plain(terms)
        return value.dtype, value.shape, digest(terms)

    def forget(self, expr: GrammarExpr) -> None:
        """Drop the value of an expression that nothing is built on."""
        self._values.pop(expr.number, None)

    def is_constant(self, expr: GrammarExpr) -> bool:
        """Return whether an expression has the same numbers for all borders.

        Over the reals x * 0 is 0. It is no rule, as NaN and infinities are not 0 then.
        """
        value = self.value(expr)
        is_affine = isinstance(self._domain, Affine) and value.known is None
        return value.known is not None or (is_affine and bool(is_number(value.terms).all()))
