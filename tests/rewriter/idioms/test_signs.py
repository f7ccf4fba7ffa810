"""Who reads the sign of a zero, while edits are made."""

import pytest

from tiered.graph import Model, Value
from tiered.rewriter.idioms.signs import zero_sign_matters
from tiered.testing import parse

CHAIN = "(float[4] x) => (float[4] y) { a = Neg(x)  b = Abs(a)  c = Neg(b)  y = Sqrt(c) }"
INSIDE = """(float[4] x, bool p) => (float[4] y) {
    a = Neg(x)
    r = If(p) <then_branch = t () => (float[4] u) { u = Neg(a) },
               else_branch = e () => (float[4] v) { v = Identity(a) }>
    y = Abs(r) }"""


def of(model: Model, name: str) -> Value:
    value = model.main.value(name)
    assert value is not None
    return value


def matters(model: Model, name: str) -> bool:
    return zero_sign_matters(of(model, name))


def test_a_new_reader_is_seen_and_one_that_went_is_not() -> None:
    model = Model.from_proto(parse(CHAIN))
    assert not any(matters(model, name) for name in "abcxy")
    mark = model.mark()
    model.main.replace(model.main.nodes_of("Sqrt")[0], [model.main.op.Reciprocal(of(model, "c"))])
    assert [matters(model, name) for name in "cbax"] == [True, True, False, False]
    model.undo_to(mark)
    assert not any(matters(model, name) for name in "abcxy")


def test_what_is_no_longer_erased_is_seen() -> None:
    model = Model.from_proto(parse(CHAIN.replace("Sqrt(c)", "Reciprocal(c)")))
    assert [matters(model, name) for name in "cbax"] == [True, True, False, False]
    model.main.replace_uses(of(model, "b"), of(model, "a"))
    assert [matters(model, name) for name in "cax"] == [True, True, True]


@pytest.mark.parametrize("branch", [0, 1])
def test_a_reader_inside_a_body_is_seen(branch: int) -> None:
    model = Model.from_proto(parse(INSIDE))
    assert not matters(model, "a")
    body = model.main.nodes_of("If")[0].bodies[branch]
    last = body.outputs[0].producer
    assert last is not None
    body.replace(last, [body.op.Reciprocal(of(model, "a"))])
    assert matters(model, "a")
    assert matters(model, "x")


def test_the_reader_of_a_result_of_a_body_is_seen() -> None:
    model = Model.from_proto(parse(INSIDE))
    assert not matters(model, "a")
    result = model.main.nodes_of("If")[0].output
    model.main.replace(model.main.nodes_of("Abs")[0], [model.main.op.Reciprocal(result)])
    assert matters(model, "a")
