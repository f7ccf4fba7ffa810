"""Known elements are forgotten where an edit changes what they were computed from."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.graph import Model, Tensor
from tiered.graph.core.value import NOT_INFERRED
from tiered.graph.edits.invalidate import (
    forget_elements,
    forget_elements_below,
    forget_elements_of,
    invalidate_elements,
    invalidate_partial_elements,
)

TEXT = """(float[n,3] x, float[n,3] z, float[m,3] w) => (int64[?] y)
    <int64[2] k = {1,2}, int64[2] other = {1,5}> {
    s = Shape(x)  t = Add(s, k)  y = Mul(t, k)  c = Add(k, k)  d = Neg(c)
    f = Cast<to=1>(s)  g = Cast<to=7>(f)  r = Relu(x)  u = Shape(r) }"""


@pytest.fixture
def model() -> Model:
    made = parsed(TEXT)
    made.refresh_types()
    for name in "stycdfgu":
        assert named(made, name).elements is not None or name in "fg"
    return made


def known(model: Model) -> str:
    """Return the names of the values whose elements are not forgotten."""
    return "".join(name for name in "stycdfgu" if named(model, name)._elements is not NOT_INFERRED)


def test_all_is_known_at_first(model: Model) -> None:
    assert known(model) == "stycdfgu"


def test_elements_of_a_refined_value_go_with_all_that_was_computed_of_them(model: Model) -> None:
    forget_elements(named(model, "s"))
    # Of floats no element is known, but what reads them may have some.
    assert known(model) == "cdgu"


def test_known_numbers_of_a_refined_value_stay_but_what_reads_it_goes(model: Model) -> None:
    forget_elements(named(model, "c"))
    assert known(model) == "stycfgu"


def test_what_is_below_a_value_goes_and_the_value_stays(model: Model) -> None:
    forget_elements_below(named(model, "t"))
    assert known(model) == "stcdfgu"
    forget_elements_below(named(model, "x"))
    assert known(model) == "cdgu"


@pytest.mark.parametrize(("name", "expected"), [("c", "stycdfgu"), ("t", "stcdfgu")])
def test_only_what_was_partly_known_is_invalid(model: Model, name: str, expected: str) -> None:
    invalidate_partial_elements(named(model, name))
    assert known(model) == expected


def test_what_was_not_inferred_invalidates_nothing(model: Model) -> None:
    named(model, "t")._elements = NOT_INFERRED
    invalidate_partial_elements(named(model, "t"))
    assert known(model) == "sycdfgu"


def test_all_outputs_of_a_node_are_forgotten_known_or_not(model: Model) -> None:
    forget_elements_of(made_by(model, "c"))
    assert known(model) == "styfgu"


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("s", "x", "z", "stycdfgu"),  # the same type, from which the elements follow
        ("s", "x", "w", "cdgu"),
        ("s", "x", None, "cdgu"),
        ("s", None, "x", "cdgu"),
        ("c", "k", "x", "stycdfgu"),  # numbers stay
        ("t", "k", "other", "stycdfgu"),
        ("t", "s", "u", "stycdfgu"),
        ("t", "s", "y", "scdfgu"),
    ],
)
def test_another_operand_invalidates_what_depends_on_it(
    model: Model, name: str, before: str | None, after: str | None, expected: str
) -> None:
    values = [None if each is None else named(model, each) for each in (before, after)]
    for each in values:
        assert each is None or each.shape is not None
    invalidate_elements(made_by(model, name), values[0], values[1])
    assert known(model) == expected


def test_an_edit_shows_the_new_elements(model: Model) -> None:
    node, k = made_by(model, "s"), named(model, "k")
    model.main.set_input(node, 0, named(model, "w"))
    elements = named(model, "t").elements
    assert elements is not None
    assert [str(element) for element in elements] == ["1+m", "5"]
    model.main.set_constant(k, Tensor.of(np.array([10, 20])))
    elements = named(model, "t").elements
    assert elements is not None
    assert [str(element) for element in elements] == ["10+m", "23"]
