"""The copy of a model whose batch has a name: sizes that follow from it."""

import pytest

from tests.small import made_by, named, parsed
from tiered import Model
from tiered.analysis.batching.twin import Twin
from tiered.graph.shape_inference.symbolic_dims import multiply, size_of_dim

N = size_of_dim("batch")
TEXT = """(float[2,3] x, float[5,2] z) => (float[2,3] y) <int64[2] s = {-1,6}, int64 one = {1}> {
    a = Reshape(x, s)  b = Transpose(z)  c = Neg(a)  n = Shape(a)  m = Add(n, one)  y = Neg(x) }"""


@pytest.fixture
def model() -> Model:
    return parsed(TEXT)


def test_sizes_follow_from_the_named_batch(model: Model) -> None:
    twin = Twin(model, {named(model, "x"): 0, named(model, "z"): 1}, "batch")
    assert twin.inferred(made_by(model, "y")) == [(N, 3)]
    assert twin.inferred(made_by(model, "b")) == [(N, 5)]
    twin.close()


def test_the_model_keeps_its_sizes(model: Model) -> None:
    before = model.to_proto().SerializeToString(deterministic=True)
    twin = Twin(model, {named(model, "x"): 0}, "batch")
    twin.state(named(model, "a"), (N, 7))
    twin.close()
    assert named(model, "x").shape == (2, 3)
    assert model.to_proto().SerializeToString(deterministic=True) == before


def test_a_stated_shape_is_what_follows_from_it(model: Model) -> None:
    twin = Twin(model, {named(model, "x"): 0}, "batch")
    sizes = (multiply(2, N), 9)
    twin.state(named(model, "a"), sizes)
    assert twin.inferred(made_by(model, "c")) == [sizes]
    twin.close()


def test_elements_follow_from_the_named_batch(model: Model) -> None:
    twin = Twin(model, {named(model, "x"): 0}, "batch")
    twin.state(named(model, "a"), (N, 3))
    twin.unsettle(made_by(model, "n"))
    elements = twin.elements(named(model, "n"))
    assert elements is not None
    assert elements.tolist() == [N, 3]
    twin.state(named(model, "a"), (multiply(2, N), 4))
    twin.unsettle(made_by(model, "n"))
    elements = twin.elements(named(model, "n"))
    assert elements is not None
    assert elements.tolist() == [multiply(2, N), 4]
    assert twin.elements(named(model, "y")) is None
    twin.close()


def test_a_value_that_was_removed_has_its_own_elements(model: Model) -> None:
    twin = Twin(model, {named(model, "x"): 0}, "batch")
    value = named(model, "m")
    model.main.remove_node(made_by(model, "m"))
    assert value.graph is None
    assert twin.elements(value) is None
    twin.close()


def test_sizes_that_the_file_declares_of_other_values_are_forgotten() -> None:
    text = """(float[2,3] x, bool c) => (float[2,3] y) {
        y = If(c) <then_branch = t () => (float[2,3] p) { p = Neg(x) },
                   else_branch = e () => (float[2,3] q) { q = Abs(x) }> }"""
    model = parsed(text)
    twin = Twin(model, {named(model, "x"): 0}, "batch")
    assert twin.inferred(made_by(model, "y")) == [(N, 3)]
    twin.close()


def test_a_result_of_unknown_rank_has_no_sizes() -> None:
    model = parsed("(float[2,3] x) => (float[] y) { a = acme.Any(x)  y = Neg(a) }")
    twin = Twin(model, {named(model, "x"): 0}, "batch")
    assert twin.inferred(made_by(model, "y")) == [None]
    twin.close()


def test_inputs_of_the_main_graph_keep_other_dims() -> None:
    model = parsed("(float[2,3] x, float[4,5] z) => (float[5,4] y, float[2] v) "
                   "{ y = Transpose(z)  a = Transpose(x)  b = Identity(x)  v = ReduceSum<keepdims=0>"
                   "(x, k)  k = Constant<value_ints=[1]>() }")  # fmt: skip
    twin = Twin(model, {named(model, "x"): 0}, "batch")
    assert twin.inferred(made_by(model, "y")) == [(5, 4)]
    assert twin.inferred(made_by(model, "v")) == [(N,)]
    twin.close()
