"""The scale of each planned value: measured, shared with others, or prescribed by the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tiered.graph import Value
from tiered.numerics.quantization.quantization_plan import QuantizationPlan
from tiered.numerics.quantization.scales import Parameters, parameters_of
from tiered.numerics.quantization.scheme import Scheme

Ends = tuple[float, float]


def parameters_of_plan(
    plan: QuantizationPlan, ranges: Mapping[Value, Ends], scheme: Scheme
) -> dict[Value, Parameters]:
    """Return the scale and the zero point of each value that a plan quantises.

    A result with a prescribed scale has that one. Values that share a scale take it too if it
    represents all of them; otherwise the others have the scale of the widest range.

    Args:
        plan: each of its pairs has a range.
        ranges: the lowest and the highest number of each value.
        scheme: of the target.
    """
    groups: dict[Value, list[Value]] = {}
    for value in plan.pairs:
        groups.setdefault(plan.group(value), []).append(value)
    found: dict[Value, Parameters] = {}
    for members in groups.values():
        found.update(_of_group(members, ranges, scheme))
    return {value: found[value] for value in plan.pairs}


def _of_group(
    members: Sequence[Value], ranges: Mapping[Value, Ends], scheme: Scheme
) -> dict[Value, Parameters]:
    fixed = {value: given for value in members if (given := _prescribed(value, scheme))}
    low = min(ranges[value][0] for value in members)
    high = max(ranges[value][1] for value in members)
    shared = parameters_of(low, high, scheme)
    if len(choices := set(fixed.values())) == 1 and all(each.holds(low, high) for each in choices):
        (shared,) = choices
    return {value: fixed.get(value, shared) for value in members}


def _prescribed(value: Value, scheme: Scheme) -> Parameters | None:
    """Return what the target prescribes for the results of the producer of a value."""
    node = value.producer
    given = None if node is None or node.domain else scheme.fixed_results.get(node.op_type)
    if given is None:
        return None
    return Parameters(given.scale, given.zero_point, scheme.activations)
