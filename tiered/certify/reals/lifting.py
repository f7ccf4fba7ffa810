"""What has no rule over the reals is an unknown function: the rule on bits, on terms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.bits import Bits
from tiered.certify.domains.element_arrays import AFFINE, of_atoms
from tiered.certify.domains.terms import Array, kind_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.rules.bit_elementwise import broadcast, dtype_of_result, known, seed_for

Rule = Callable[[EvaluatedCall], Results]


def domain_of(call: EvaluatedCall) -> Affine:
    assert isinstance(call.domain, Affine)
    return call.domain


class _Terms(Bits):
    """Terms of elements over the reals, also those of the numbers that a rule makes."""

    def __init__(self, domain: Affine) -> None:
        self._domain = domain

    def constant(self, numbers: Array) -> Array:
        if kind_of(numbers.dtype) in ("string", "complex"):
            return super().constant(numbers)
        return self._domain.plain(self._domain.constant(numbers))


def lifted(rule: Rule) -> Rule:
    """Return a rule on bits as one on reals: it sees the terms of the operands."""

    def on_terms(call: EvaluatedCall) -> Results:
        domain = domain_of(call)
        inputs = [None if x is None else _as_terms(domain, x) for x in call.inputs]
        inner = EvaluatedCall(call.node, inputs, call.opset, _Terms(domain), call.scope)
        inner.axioms = call.axioms
        inner.signed_zeros = False
        return [None if y is None else _as_elements(call, y) for y in rule(inner)]

    return on_terms


def _as_terms(domain: Affine, x: CheckedTensor) -> CheckedTensor:
    made = CheckedTensor(x.dtype, x.shape, lambda: domain.plain(x.terms), x.known, exact=x.exact)
    # Forms come from rules on terms alone: what they hold has terms.
    made.form = x.form
    return made


def _as_elements(call: EvaluatedCall, y: CheckedTensor) -> CheckedTensor:
    if y.known is not None:
        return call.constant(y.known, y.dtype, exact=y.exact)

    def make() -> Array:
        terms = y.terms
        return terms if terms.dtype == AFFINE else of_atoms(terms)

    made = call.made(y.dtype, y.shape, make)
    made.form = y.form
    return made


def function(call: EvaluatedCall) -> Results:
    """An elementwise operator as an unknown function."""
    tensors = [x for x in call.inputs if x is not None]
    shape, dtype, domain = broadcast(tensors), dtype_of_result(call, tensors), domain_of(call)
    numbers = [x.known for x in tensors if x.known is not None]
    if len(numbers) == len(tensors):
        return [known(call, numbers, dtype)]
    seed = seed_for(call, tuple(x is not None for x in call.inputs))

    def make() -> Array:
        return np.broadcast_to(domain.hashed(seed, *(x.terms for x in tensors)), shape)

    return [call.made(dtype, shape, make)]


def or_else(rule: Rule, other: Rule | None) -> Rule:
    """Return a rule, and where it covers a node not, another one."""

    def either(call: EvaluatedCall) -> Results:
        try:
            return rule(call)
        except NoRule:
            if other is None:
                raise
            return other(call)

    return either
