"""Two whole models as a problem."""

from __future__ import annotations

from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Problem
from tiered.certify.regions.problems import KnownSizes, side_of
from tiered.certify.regions.watched_rewrites import border_of
from tiered.graph import Model
from tiered.verify.live_extract import part_of


def whole_problem(before: Model, after: Model) -> Problem:
    """Return the problem whether two models compute the same outputs from the same inputs.

    Raises:
        Unproved: they have other inputs, outputs or opsets.
    """
    parts = part_of(before), part_of(after)
    if [*parts[0].outputs] != [*parts[1].outputs] or [*parts[0].inputs] != [*parts[1].inputs]:
        raise Unproved("the interfaces differ")
    opsets = [dict(model.opset_imports) for model in (before, after)]
    if any(opsets[0][d] != opsets[1][d] for d in opsets[0].keys() & opsets[1].keys()):
        raise Unproved("the opsets differ")
    outputs = [*parts[0].outputs]
    borders = {}
    for name in parts[0].inputs:
        border = border_of(before, name)
        if border is None:
            raise Unproved(f"the type of input {name} is not known")
        borders[name] = border
    sides = tuple(side_of(part, part.nodes, outputs) for part in parts)
    known = KnownSizes(parts[0], lambda name: border_of(before, name))
    return Problem(
        (sides[0], sides[1]), borders, outputs, {**opsets[0], **opsets[1]}, sizes=known.sizes
    )
