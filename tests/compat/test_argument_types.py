"""Arguments of PPQ's methods: other types and missing configs are named."""

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from tests.compat.test_ppq import graph
from tiered.compat import ppq
from tiered.compat.argument_types import fits
from tiered.support.errors import ModelError, TieredError


def test_what_is_not_quantized_says_so() -> None:
    on = graph()
    add, x = on.operations["node_b"], on.variables["x"]
    with pytest.raises(ModelError, match="has no config: it is not quantised, and QuantableGraph"):
        add.config = 3
    with pytest.raises(ModelError, match="has no baking_parameters: it is not quantised"):
        add.baking_parameters()
    with pytest.raises(ModelError, match="has no stored_value: it is not quantised"):
        _ = x.stored_value
    assert not hasattr(add, "config")
    with pytest.raises(AttributeError, match="no attribute 'sokcet'; did you mean 'socket'"):
        _ = add.sokcet
    with pytest.raises(AttributeError, match="'Variable' object has no attribute 'dest_op'"):
        x.dest_op = 3


FACES = [
    "BaseGraph", "SearchableGraph", "QuantableGraph", "Operation", "Variable", "GraphFormatter",
    "GraphReplacer", "TorchExecutor",
]  # fmt: skip
WRONG = [None, 3, -1, "nope", 3.5, [], [None], {}, {"a": 1}, object(), np.zeros(2)]


@pytest.mark.parametrize("face", FACES)
def test_no_argument_of_another_type_is_a_raw_error(face: str) -> None:
    """Each method and each attribute that is set, with arguments of every kind."""
    for name, member in inspect.getmembers_static(getattr(ppq, face)):
        is_set = isinstance(member, property) and member.fset is not None
        if name.startswith("_") or not (is_set or inspect.isfunction(member)):
            continue
        for wrong in WRONG:
            on = graph()
            parts = {"Operation": on.operations["node_b"], "Variable": on.variables["a"]}
            made = {"BaseGraph": on, **parts}.get(face) or getattr(ppq, face)(on)
            try:
                if is_set:
                    setattr(made, name, wrong)
                    continue
                method = getattr(made, name)
                given = inspect.signature(method).parameters.values()
                required = [each for each in given if each.default is each.empty]
                method(*[wrong] * len(required))
            except TieredError:
                continue


@pytest.mark.parametrize(
    ("value", "hint", "is_right"),
    [
        (3, int | None, True),
        (None, int | None, True),
        (np.int64(3), int, True),
        ("abc", list[str], False),
        (["a", 3], list[str], False),
        (["a", "b"], list[str], True),
        (len, Callable[[object], int], True),
        (3, Callable[[object], int], False),
        ([1, 2], np.ndarray, True),
        ("1", np.ndarray, False),
    ],
)
def test_values_are_held_against_annotations(value: object, hint: object, is_right: bool) -> None:
    assert fits(value, hint) is is_right
