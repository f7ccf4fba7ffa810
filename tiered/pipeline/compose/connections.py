"""Which outputs of a model are which inputs of another, by name or as they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from tiered.graph import Model, Value
from tiered.graph.core.types import is_compatible
from tiered.support.errors import ModelError, UsageError, did_you_mean

Connections = Mapping[str, str | Sequence[str]] | Literal["names"]
"""The input of the second model by output of the first, or several; or those of equal name."""

Pairs = list[tuple[Value, Value]]
"""Values of the first model with the values of the second that they become."""


class Joints(NamedTuple):
    """What two models have in common.

    Attributes:
        connected: outputs of the first model with the inputs of the second that they become.
        shared: inputs of the first model with those of the second that are the same input.
    """

    connected: Pairs
    shared: Pairs


def joints(
    first: Model, second: Model, connect: Connections | None, *, prefix: str, may_be_apart: bool
) -> Joints:
    """Return the values of two models that become one.

    Args:
        first, second: the models; their types are known.
        connect: as `merge` takes it.
        prefix: with one, no input is shared.
        may_be_apart: by default, models that have nothing in common are no error.

    Raises:
        UsageError: there is no such output or input, or nothing connects.
        ModelError: values have types that exclude each other.
    """
    pairs = _connected(first, second, connect)
    shared = [] if prefix else _shared_inputs(first, second, pairs)
    if connect is None and not pairs and not shared and not may_be_apart:
        raise UsageError(
            "nothing connects the models: the first has the outputs "
            f"{_listed(first.main.outputs)}, the second the inputs {_listed(second.main.inputs)}, "
            "and no names are equal; name them: connect={output: input}, --map OUT=IN; "
            "connect='names', --map names puts the models side by side"
        )
    return Joints(pairs, shared)


def _connected(first: Model, second: Model, connect: Connections | None) -> Pairs:
    outputs = {value.name: value for value in first.main.outputs}
    inputs = {value.name: value for value in second.main.inputs}
    if connect is None or connect == "names":
        connect = {name: name for name in inputs if name in outputs}
    if not isinstance(connect, Mapping):
        raise UsageError(f"connect takes {{output: input}} or 'names', not {connect!r}")
    pairs = [
        (_find(outputs, source, "first model has no output"),
         _find(inputs, target, "second model has no input"))
        for source, targets in connect.items()
        for target in ((targets,) if isinstance(targets, str) else targets)
    ]  # fmt: skip
    targets = [target.name for _, target in pairs]
    twice = next((name for name, count in Counter(targets).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"input {twice!r} of the second model is connected twice")
    for source, target in pairs:
        if not is_compatible(source.type, target.type):
            raise ModelError(
                f"output {source.name!r} is {source.type}, it cannot be input {target.name!r}, "
                f"which is {target.type}"
            )
    return pairs


def _find(values: Mapping[str, Value], name: str, what: str) -> Value:
    if name not in values:
        hint = did_you_mean(name, values)
        raise UsageError(f"the {what} {name!r}{hint or f'; it has {_listed(values.values())}'}")
    return values[name]


def _listed(values: Iterable[Value]) -> str:
    return ", ".join(value.name for value in values) or "nothing"


def _shared_inputs(first: Model, second: Model, pairs: Pairs) -> Pairs:
    """Return the inputs of equal name that both models have.

    Raises:
        ModelError: one has another type in each, or another default.
    """
    own = {value.name: value for value in first.main.inputs}
    targets = {target for _, target in pairs}
    shared = []
    for value in second.main.inputs:
        other = own.get(value.name)
        if other is None or value in targets:
            continue
        if not is_compatible(value.type, other.type):
            raise ModelError(
                f"both models have an input {value.name!r}: {other.type} and {value.type}; rename "
                "one, or give a prefix"
            )
        keys = [each.default and each.default.key() for each in (other, value)]
        if keys[0] != keys[1]:
            raise ModelError(
                f"both models have an input {value.name!r}, with different defaults; rename one, "
                "or give a prefix"
            )
        shared.append((other, value))
    return shared
