"""Inferred types are forgotten, inferred again and restored; no two dims get one name."""

import numpy as np
import pytest

from tests.small import content, named, ops, parsed
from tiered import Model, TensorType, optimize_model
from tiered.graph.core.value import NOT_INFERRED

UNNAMED = """(float[?] x, float[N] z) => (int64[?] y) <int64[1] k = {0}> {
    n = NonZero(z)  s = Squeeze(n, k)  t = Shape(x)  u = Shape(s)  q = Equal(t, u)
    y = Cast<to=7>(q) }"""


def test_dims_of_inputs_keep_names_that_nothing_else_gets() -> None:
    model = parsed(UNNAMED)
    model.refresh_types()
    x, s = named(model, "x"), named(model, "s")
    given = x.shape
    assert given is not None
    model.forget_types()
    assert x.shape == given
    assert s.shape is not None
    assert s.shape[0] != given[0]
    assert model.dims.is_given(given[0])
    assert not model.dims.is_given(s.shape[0])
    model.check_view(types=True)


def test_the_size_of_an_input_and_a_count_are_not_taken_for_equal() -> None:
    model = parsed(UNNAMED)
    model.set_input_shapes({"z": [3]})
    elements = named(model, "q").elements
    assert elements is None or elements.tolist() == [None]
    result = optimize_model(model, opt_level=3).model
    assert "Equal" in ops(result)


TEXT = """(float[N,3] x, bool c) => (float[M,3] y) {
    a = Relu(x)  s = Shape(a)
    y = If(c) <then_branch = t () => (float[M,3] p) { p = Neg(a) },
               else_branch = e () => (float[M,3] q) { q = Concat<axis=0>(a, a) }> }"""


def types(model: Model) -> list[object]:
    return [value.type for graph in model.graphs() for value in graph.values.values()]


def test_types_are_inferred_when_they_are_asked_for() -> None:
    model = parsed(TEXT)
    model.forget_types()
    a = named(model, "a")
    assert a._type is NOT_INFERRED
    assert a.shape == ("N", 3)
    elements = named(model, "s").elements
    assert elements is not None
    assert [str(element) for element in elements] == ["N", "3"]


def test_what_was_forgotten_is_restored_by_an_undo() -> None:
    model = parsed(TEXT)
    model.refresh_types()
    before, dims = types(model), model.dims
    mark = model.mark()
    model.forget_types()
    assert model.dims is not dims
    assert named(model, "a")._type is NOT_INFERRED
    model.undo_to(mark)
    assert named(model, "a")._type is not NOT_INFERRED
    assert types(model) == before
    assert model.dims is dims
    model.check_view(types=True)


def test_forgetting_changes_nothing_in_the_file() -> None:
    model = parsed(TEXT)
    before = content(model)
    model.forget_types()
    model.refresh_types()
    assert content(model) == before


LOOP = """(int64 n, bool c, float[N,3] v) => (float[?,3] y, int64[?] w) {
    y, w = Loop(n, c, v) <
        body = l (int64 i, bool g, float[N,3] p) => (bool g2, float[?,3] q, bool e) {
            g2 = Identity(g)  q = Concat<axis=0>(p, p)
            s = Shape(p)  t = Shape(v)  e = Equal(s, t) }> }"""


def test_a_carried_value_may_have_other_dims_than_the_first_one() -> None:
    model = parsed(LOOP)
    body = model.main.nodes[0].bodies[0]
    carried = body.inputs[2]
    before = carried.type
    model.forget_types()
    assert carried.type == before == TensorType(1, (None, 3))
    # In the second iteration it has 2 N rows.
    elements = named(body, "e").elements
    assert elements is not None
    assert elements.tolist() == [None, True]


def test_inputs_of_bodies_have_only_what_the_file_declares() -> None:
    model = parsed(
        LOOP.replace("float[N,3] p", "float[2,3] p").replace("float[N,3] v", "float[2,3] v")
    )
    body = model.main.nodes[0].bodies[0]
    carried = body.inputs[2]
    model.main.set_type(carried, None)
    model.forget_types()
    assert carried._type == TensorType(1, (2, 3))


def test_inputs_of_functions_keep_their_types() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["": 21, "f": 1]>
        g (float[2] x) => (float[2] y) { y = f.F(x) }
        <domain: "f", opset_import: ["": 21]> F (v) => (u) { u = Neg(v) }"""
    )
    (function,) = model.functions
    kind = TensorType(1, (2,))
    function.set_type(function.inputs[0], kind)
    model.forget_types()
    assert function.inputs[0].type == kind


def test_a_refresh_refines_what_edits_made_more_exact() -> None:
    model = parsed("(float[N] x) => (float[?] y) <int64[1] k = {-1}> { y = Reshape(x, k) }")
    model.refresh_types()
    y, k = named(model, "y"), named(model, "k")
    mark = model.mark()
    model.main.set_input(model.main.nodes[0], 1, model.main.constant(np.array([2, -1])))
    model.main.set_type(y, NOT_INFERRED)
    model.refresh_types()
    assert y.rank == 2
    model.undo_to(mark)
    assert y.rank == 1
    assert k.elements is not None


@pytest.mark.parametrize("is_stored", [True, False])
def test_types_of_outputs_may_be_asked_for_without_storing_them(is_stored: bool) -> None:
    model = parsed(TEXT)
    node = model.main.nodes[0]
    if is_stored:
        model.refresh_types()
    before = node.output._type
    assert list(model.types.outputs_of(node)) == [TensorType(1, ("N", 3))]
    assert node.output._type == before
