"""`graph.op`: operators by attribute, by domain, by name, and after the example of a node."""

import pytest

from tests.small import made_by, named, parsed
from tiered.graph import Model


@pytest.fixture
def model() -> Model:
    return parsed("(float[2,3] x) => (float[2,3] y) { y = LeakyRelu<alpha=0.5>(x) }")


def test_an_operator_is_an_attribute(model: Model) -> None:
    made = model.main.op.Neg(named(model, "x"))
    assert made.producer is not None
    assert made.producer.is_op("Neg")
    assert model.main.op.named("Neg")(made).producer is not None


def test_a_private_name_is_no_operator(model: Model) -> None:
    with pytest.raises(AttributeError):
        _ = model.main.op._nothing
    assert not hasattr(model.main.op, "__wrapped__")


def test_a_domain_is_called(model: Model) -> None:
    made = model.main.op("com.microsoft").Gelu(named(model, "x"))
    assert made.producer is not None
    assert made.producer.domain == "com.microsoft"
    assert type(model.main.op("d")) is type(model.main.op)


def test_like_a_node_has_its_attributes_but_for_those_given(model: Model) -> None:
    graph, node, x = model.main, made_by(model, "y"), named(model, "x")
    same = graph.op.like(node, x, name="same")
    assert same.producer is not None
    assert (same.producer.attr("alpha"), same.producer.name) == (0.5, "same")
    other = graph.op.like(node, x, alpha=0.25)
    assert other.producer is not None
    assert other.producer.attr("alpha") == 0.25
    none = graph.op.like(node, x, alpha=None)
    assert none.producer is not None
    assert not none.producer.has_attr("alpha")
    assert node.attr("alpha") == 0.5


def test_several_outputs_are_a_tuple(model: Model) -> None:
    parts = model.main.op.Split(named(model, "x"), axis=1, num_outputs=3, outputs=3)
    assert [part.shape for part in parts] == [(2, 1)] * 3
    assert parts[0].producer is not None
    again = model.main.op.like(parts[0].producer, named(model, "x"), outputs=3)
    assert len(again) == 3
