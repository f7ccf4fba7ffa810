"""The aspects in which operators are known, each with its registry of rules.

A rule for an operator of your own, in any aspect:

    from tiered.analysis.aspects import aspect

    @aspect("range").rule("Scale", domain="acme")
    def scale(call):
        return call.x

`tiered operators` prints the aspects that an operator has, and those that it lacks.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tiered.graph.opset.aspect import Aspect, Key, functions_of
from tiered.support.errors import UsageError, did_you_mean


class AspectPlace(NamedTuple):
    """Where the rules of an aspect are, and what they are for.

    Attributes:
        module: loading it registers all rules of tiered.
        registry: the `Aspect` in it.
        says: what a rule says of an operator.
        without: what happens to an operator without one.
        is_open: whether every operator should have a rule, so that one without it is a hole.
        follows: the aspect from which the rule follows, where an operator has none of its own.
    """

    module: str
    registry: str
    says: str
    without: str
    is_open: bool = False
    follows: str = ""


ASPECTS: Final[Mapping[str, AspectPlace]] = {
    "type": AspectPlace(
        "tiered.graph.shape_inference.rules.shape_rule", "TYPES",
        "types and shapes of its outputs", "onnx infers them", is_open=True,
    ),
    "value": AspectPlace(
        "tiered.graph.shape_inference.rules.shape_rule", "VALUES",
        "elements of small integer outputs", "they are not known",
    ),
    "unsound": AspectPlace(
        "tiered.graph.shape_inference.onnx_inference", "UNSOUND",
        "where onnx infers wrong shapes", "onnx is right",
    ),
    "deterministic": AspectPlace(
        "tiered.graph.queries.determinism", "DETERMINISTIC",
        "that it draws no random numbers", "what its schema says; unknown operators may",
    ),
    "range": AspectPlace(
        "tiered.graph.intervals.rules", "RANGES",
        "interval of its outputs", "any number", is_open=True,
    ),
    "integer": AspectPlace(
        "tiered.graph.intervals.integer_analysis", "INTEGERS",
        "whether floats are of integers", "they are not",
    ),
    "gradient": AspectPlace(
        "tiered.extensions.gradients.rules", "GRADIENTS",
        "its gradient", "that of its function body, or an error", is_open=True,
    ),
    "layout": AspectPlace(
        "tiered.analysis.layout.rules", "LAYOUTS",
        "how permutations of axes pass through", "its axes keep their order", is_open=True,
        follows="axes",
    ),
    "rank": AspectPlace(
        "tiered.analysis.axes.low_rank", "RANKS",
        "its form in a lower rank", "it keeps its rank", is_open=True,
    ),
    "axes": AspectPlace(
        "tiered.analysis.axes.rules", "AXES",
        "how the axes of operands and outputs belong together", "it is not split", is_open=True,
    ),
    "batch": AspectPlace(
        "tiered.analysis.batching.rules", "BATCHES",
        "where the samples of a batch go", "the batch keeps its size", is_open=True,
        follows="axes",
    ),
    "count": AspectPlace(
        "tiered.analysis.batching.rules", "COUNTS",
        "what it computes of numbers of samples", "the batch keeps its size",
    ),
    "packing": AspectPlace(
        "tiered.extensions.packing.rules", "PACKINGS",
        "where the tokens of packed sequences go", "they are not packed", is_open=True,
        follows="axes",
    ),
    "index": AspectPlace(
        "tiered.analysis.roles.indices", "INDICES",
        "operands that are shapes, indices or sizes", "none is",
    ),
    "input": AspectPlace(
        "tiered.runtime.inputs.rules", "DEMANDS",
        "what it demands of the values it reads", "nothing",
    ),
    "check": AspectPlace(
        "tiered.graph.queries.contrib_checker", "CHECKS",
        "what it demands of the dims of its operands", "what its schema says",
    ),
    "cost": AspectPlace(
        "tiered.runtime.fold.compute_cost", "COSTS",
        "multiplications to compute it", "one for each element",
    ),
    "move": AspectPlace(
        "tiered.runtime.fold.numpy_moves", "MOVES",
        "how numpy moves its elements", "onnxruntime computes it",
    ),
}  # fmt: skip
"""The aspects by their names, in the order in which they are printed."""


def aspect(name: str) -> Aspect[Any]:
    """Return the registry of an aspect; all rules of tiered are in it.

    Raises:
        UsageError: there is no such aspect.
    """
    place = ASPECTS.get(name)
    if place is None:
        known = ", ".join(ASPECTS)
        hint = did_you_mean(name, ASPECTS)
        raise UsageError(f"there is no aspect {name!r} of operators{hint}; there are {known}")
    found = getattr(importlib.import_module(place.module), place.registry)
    assert isinstance(found, Aspect)
    return found


def rules_of(name: str) -> Mapping[Key, object]:
    """Return what is known of operators in an aspect: its rules, and those that they follow from.

    Raises:
        UsageError: there is no such aspect.
    """
    own, place = aspect(name).rules, ASPECTS[name]
    return own if not place.follows else {**aspect(place.follows).rules, **own}


def known_operators() -> list[Key]:
    """Return the present operators of ONNX, and all that a rule is for, by domain and name."""
    from onnx import defs

    keys = {(schema.domain, schema.name) for schema in defs.get_all_schemas()}
    keys = {key for key in keys if not key[0]}
    for name in ASPECTS:
        keys.update(aspect(name).rules)
    return sorted(keys)


def holes(name: str) -> list[Key]:
    """Return the known operators without a rule of an aspect."""
    rules = rules_of(name)
    return [key for key in known_operators() if key not in rules]


def place_of(rule: object) -> str:
    """Return where a rule is written, "module:line"; of a rule that is data, the data."""
    function = next(functions_of(rule), None)
    if function is None:
        return str(rule)
    return f"{function.__module__}:{function.__code__.co_firstlineno}"
