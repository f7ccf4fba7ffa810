"""Arguments of PPQ's methods: other types and missing configs are named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.compat.ppq.small_graphs import graph
from tests.recorded import assert_values
from tiered.compat import ppq
from tiered.compat.argument_types import checks_arguments, fits
from tiered.support.errors import ModelError, TieredError, UsageError


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


class Thing:
    """What has a place where it is found."""

    found_in = "shelves"


@checks_arguments
class Checked:
    """A class whose methods hold their arguments against annotations."""

    def __init__(self, size: int, *names: str, **more: str) -> None:
        self._size = size
        self.names = names

    def take(self, thing: Thing, others: list[Thing] | None = None, free=None) -> str:  # type: ignore[no-untyped-def]  # without annotation
        """Take it."""
        return type(thing).__name__

    def _own(self, size: int) -> int:
        return size

    @property
    def size(self) -> int:
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        self._size = size

    kept = property(lambda self: self._size)
    """It has no setter."""


def test_methods_and_setters_name_the_argument_and_what_was_expected() -> None:
    wrong: Any = "3"
    with pytest.raises(UsageError, match=r"^Checked: size is '3'; expected int$"):
        Checked(wrong)
    made = Checked(3, "a", "b", key="c")
    assert made.names == ("a", "b")
    with pytest.raises(UsageError, match=r"^Checked.size: size is '3'; expected int$"):
        made.size = wrong
    made.size = 4
    assert (made.size, made.kept) == (4, 4)
    made._own(wrong)  # no public method
    assert made.take.__doc__ == "Take it."


def test_an_annotated_class_says_where_its_objects_are() -> None:
    made = Checked(3)
    with pytest.raises(UsageError, match=r"^Checked.take: thing is None; expected Thing: shelves$"):
        made.take(None)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match=r"others is 'ab'; expected list\[Thing\] \| None$"):
        made.take(Thing(), "ab")  # type: ignore[arg-type]  # on purpose
    assert made.take(Thing(), [Thing()], object()) == "Thing"


def test_variable_arguments_are_not_checked_and_numbers_of_them_are() -> None:
    Checked(3, 4, key=5)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match=r"^Checked: missing a required argument: 'size'$"):
        Checked()  # type: ignore[call-arg]  # on purpose
    with pytest.raises(TypeError, match=r"^Checked.take: too many positional arguments$"):
        Checked(3).take(Thing(), None, None, 4)  # type: ignore[call-arg]  # on purpose


@pytest.mark.parametrize(
    ("value", "hint", "is_right"),
    [
        (object(), Any, True),
        (2, float, True),
        (np.float32(2), float, True),
        ("2", float, False),
        (2.0, int, False),
        (None, None, True),
        (0, None, False),
        (None, type(None), True),
        ((1, 2), list[int], False),
        ((1, 2), Sequence[int], True),
        ([], list[int], True),
        ([[1]], list[list[int]], True),
        ([["a"]], list[list[int]], False),
        ({"a": 1}, dict[str, str], True),
        (iter([1]), Iterable[str], True),
        (b"ab", Iterable[int], True),
        (3, np.ndarray[Any, Any], True),
        (np.float32(3), np.ndarray, True),
        (None, np.ndarray, False),
        (np.zeros(2), np.ndarray | None, True),
        ({}, np.ndarray | None, False),
        ("a", int | str, True),
    ],
)
def test_more_values_are_held_against_annotations(
    value: object, hint: object, is_right: bool
) -> None:
    assert fits(value, hint) is is_right


def test_what_fits_an_annotation_is_recorded() -> None:
    def setting(name: str, value: object) -> object:
        """Return what setting an attribute of a checked class comes to."""

        def size(self: Any, value: int) -> None:
            self.found = value

        def kept(self: Any) -> int:
            return 3

        class Sized:
            plain = None

        for each, member in (("size", property(kept, size)), ("_own", property(kept, size)),
                             ("kept", property(kept)), ("get", size)):  # fmt: skip
            setattr(Sized, each, member)
        made = checks_arguments(Sized)()
        if name == "get":
            return getattr(made, name)(value)
        try:
            setattr(made, name, value)
        except AttributeError:
            return "no setter"
        return getattr(made, "found", made.plain)

    names = {
        "setting": setting,
        "fits": fits,
        "np": np,
        "Any": Any,
        "Array": np.ndarray[Any, Any],
        "Iterable": Iterable,
        "Mapping": Mapping,
        "Sequence": Sequence,
    }
    assert_values(__file__, names)
