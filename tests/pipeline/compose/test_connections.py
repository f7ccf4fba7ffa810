"""Which outputs of a model are which inputs of another, and what cannot be one."""

from typing import Any

import pytest

from tests.small import parsed
from tiered import ModelError, UsageError
from tiered.graph import Model
from tiered.pipeline.compose.connections import Joints, Pairs, joints

FIRST = "(float[N,4] x, int64 k) => (float[N,4] h, float[N,4] q) { h = Neg(x)  q = Abs(x) }"
SECOND = "(float[M,4] h, float[M,4] p, int64 k) => (float[M,4] y) { y = Add(h, p) }"


def found(
    connect: Any = None,
    *,
    first: str = FIRST,
    second: str = SECOND,
    prefix: str = "",
    may_be_apart: bool = False,
) -> Joints:
    return joints(parsed(first), parsed(second), connect, prefix=prefix, may_be_apart=may_be_apart)


def named(pairs: Pairs) -> list[tuple[str, str]]:
    return [(one.name, other.name) for one, other in pairs]


@pytest.mark.parametrize(
    ("connect", "connected"),
    [
        (None, [("h", "h")]),
        ("names", [("h", "h")]),
        ({"q": "h"}, [("q", "h")]),
        ({"q": ["h", "p"]}, [("q", "h"), ("q", "p")]),
        ({"q": "h", "h": "p"}, [("q", "h"), ("h", "p")]),
        ({}, []),
    ],
)
def test_outputs_become_inputs_by_name_or_as_they_are_given(
    connect: Any, connected: list[tuple[str, str]]
) -> None:
    made = found(connect)
    assert named(made.connected) == connected
    assert named(made.shared) == [("k", "k")]


def test_with_a_prefix_no_input_is_shared() -> None:
    assert found(prefix="two_").shared == []


def test_an_input_that_is_connected_is_not_shared() -> None:
    first = "(float[2] x) => (float[2] h) { h = Neg(x) }"
    second = "(float[2] x) => (float[2] y) { y = Abs(x) }"
    assert named(found({"h": "x"}, first=first, second=second).shared) == []
    assert named(found(first=first, second=second).shared) == [("x", "x")]


@pytest.mark.parametrize(
    ("connect", "because"),
    [
        ({"hh": "h"}, "the first model has no output 'hh'; did you mean 'h'"),
        ({"zzz": "h"}, "the first model has no output 'zzz'; it has h, q"),
        ({"h": "xyz"}, "the second model has no input 'xyz'; it has h, p, k"),
        ({"h": "p", "q": "p"}, "input 'p' of the second model is connected twice"),
        ({"h": ["p", "p"]}, "input 'p' of the second model is connected twice"),
        ("name", "connect takes {output: input} or 'names', not 'name'"),
        (["h"], "connect takes {output: input} or 'names', not ['h']"),
    ],
)
def test_a_connection_that_is_none_is_an_error(connect: Any, because: str) -> None:
    with pytest.raises(UsageError) as caught:
        found(connect)
    assert str(caught.value).startswith(because)


APART = "(float[2] a) => (float[2] b) { b = Neg(a) }"


def test_models_with_nothing_in_common_are_an_error_unless_that_is_asked_for() -> None:
    with pytest.raises(UsageError) as caught:
        found(second=APART)
    text = "nothing connects the models: the first has the outputs h, q, the second the inputs a, "
    assert str(caught.value).startswith(text)
    for connect, may_be_apart in (("names", False), ({}, False), (None, True)):
        made = found(connect, second=APART, may_be_apart=may_be_apart)
        assert (made.connected, made.shared) == ([], [])


def test_a_model_without_inputs_is_listed_as_having_nothing() -> None:
    second = "() => (float[1] b) { b = Constant<value_floats = [1.0]>() }"
    with pytest.raises(UsageError, match="the second the inputs nothing, and no names are equal"):
        found(second=second)


def test_types_that_exclude_each_other_are_an_error() -> None:
    with pytest.raises(ModelError) as caught:
        found({"h": "k"})
    assert str(caught.value) == "output 'h' is float[N,4], it cannot be input 'k', which is int64[]"
    second = SECOND.replace("int64 k", "float k")
    with pytest.raises(ModelError, match=r"an input 'k': int64\[\] and float\[\]; rename one, or"):
        found(second=second)


@pytest.mark.parametrize(("numbers", "is_fine"), [("1,2", True), ("1,3", False), (None, False)])
def test_shared_inputs_have_the_same_default(numbers: str | None, is_fine: bool) -> None:
    first = "(float[2] w) => (float[2] h) <float[2] w = {1,2}> { h = Neg(w) }"
    default = "" if numbers is None else f"<float[2] w = {{{numbers}}}>"
    second = f"(float[2] h, float[2] w) => (float[2] y) {default} {{ y = Add(h, w) }}"
    if is_fine:
        assert named(found(first=first, second=second).shared) == [("w", "w")]
    else:
        with pytest.raises(ModelError, match="an input 'w', with different defaults; rename one"):
            found(first=first, second=second)


def test_values_are_those_of_the_models() -> None:
    one: Model = parsed(FIRST)
    two = parsed(SECOND)
    made = joints(one, two, None, prefix="", may_be_apart=False)
    assert made.connected == [(one.main.outputs[0], two.main.inputs[0])]
