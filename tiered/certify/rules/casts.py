"""Casts on bits: a dtype that has all numbers of another one changes no term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tiered.certify.domains.terms import mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, Results
from tiered.certify.evaluation.forms import ChoiceForm
from tiered.certify.evaluation.values import CheckedTensor, class_of, holds, numpy_dtype
from tiered.certify.rules import known_numbers as exact_numbers
from tiered.certify.rules.logic import chosen_terms
from tiered.graph.core.dtypes import DataType

Rule = Callable[[EvaluatedCall], Results]


def cast(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    to = call.operand(1).dtype if call.op == "CastLike" else call.attributes["to"]
    return [cast_to(call, x, to)]


def cast_to(call: EvaluatedCall, x: CheckedTensor, to: int) -> CheckedTensor:
    """Return a tensor in another dtype; a dtype that has all its numbers changes no term."""
    if to == x.dtype:
        return x
    if x.known is not None:
        found = exact_numbers.cast(x.known, numpy_dtype(to))
        if found is None:
            from tiered.certify.evaluation.constants import run_node

            (result,) = run_node(call)
            assert result is not None
            return result
        return call.constant(found, to)
    if holds(to, x.exact):
        call.axioms.add("cast-wider")
        return call.made(to, x.shape, lambda: x.terms, exact=x.exact)
    kinds = class_of(x.dtype), class_of(to)
    # A bool is 0 or 1 in every dtype of a class.
    target = kinds[1] if kinds[0] == "bool" else to
    is_small = DataType(to).name.startswith("FLOAT8")
    how = (call.get("saturate", 1), call.get("round_mode", "")) if is_small else ()
    held = x.form
    if isinstance(held, ChoiceForm) and held.one.known is not None and held.other.known is not None:
        one, other = (cast_to(call, each, to) for each in (held.one, held.other))
        made = call.made(
            to, x.shape, lambda: chosen_terms(held.condition.terms, one.terms, other.terms)
        )
        made.form = ChoiceForm(held.condition, one, other)
        return made
    seed = seed_of("Cast", kinds[0], target, *how)
    return call.made(to, x.shape, lambda: mix(seed, x.terms))


CASTS: Final[dict[str, Rule]] = {"Cast": cast, "CastLike": cast}
