"""Values and nodes are replaced; names of outputs stay, and what nothing reads goes."""

from collections.abc import Iterator

import numpy as np
import onnx
import pytest

from tests.graph.editor import serialized
from tests.small import made_by, named, parsed
from tiered.graph import Model, Tensor, TensorType
from tiered.support.errors import ModelError, OperatorError

TEXT = """(float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) <float[3] w = {1,2,3}> {
    a = Relu(x)  b = Add(a, w)
    y = If (c) <then_branch = t () => (float[2,3] u) { u = Neg(a) },
                else_branch = f () => (float[2,3] a2) { v = Abs(x)  a2 = Exp(v) }>
    z = Neg(b) }"""


@pytest.fixture
def model() -> Iterator[Model]:
    made = parsed(TEXT)
    assert made.main.dag is not None
    first = serialized(made)
    yield made
    made.check_view()
    made.undo_to(0)
    made.check_view()
    assert serialized(made) == first


def test_all_users_read_the_new_value_those_in_bodies_too(model: Model) -> None:
    a, x = named(model, "a"), named(model, "x")
    model.main.replace_uses(a, x)
    assert not a.is_used
    assert made_by(model, "b").inputs[0] is x
    assert model.main.nodes_of("If")[0].bodies[0].nodes[0].inputs[0] is x
    length = len(model.journal)
    model.main.replace_uses(x, x)
    assert len(model.journal) == length


def test_new_nodes_keep_reading_the_old_value(model: Model) -> None:
    a, since = named(model, "a"), model.peek_serial()
    new = model.main.op.Neg(a)
    model.main.replace_uses(a, new, since=since)
    assert new.producer is not None
    assert new.producer.inputs[0] is a
    assert made_by(model, "b").inputs[0] is new


def test_a_new_value_takes_the_name_of_an_output(model: Model) -> None:
    z, b = named(model, "z"), named(model, "b")
    model.main.replace_uses(z, b)
    assert [value.name for value in model.main.outputs] == ["y", "z"]
    assert model.main.outputs[1] is b
    assert z.name == "z_1"


@pytest.mark.parametrize("name", ["x", "y"])
def test_an_identity_takes_the_name_that_a_value_cannot(model: Model, name: str) -> None:
    model.main.replace_uses(named(model, "z"), named(model, name))
    last = model.main.outputs[1]
    assert last.name == "z"
    assert last.producer is not None
    assert (last.producer.op_type, last.producer.name) == ("Identity", "z_identity")
    assert last.producer.inputs[0] is named(model, name)


def test_an_output_of_a_body_may_become_an_outer_value(model: Model) -> None:
    body = model.main.nodes_of("If")[0].bodies[0]
    u = body.outputs[0]
    body.replace_uses(u, named(model, "x"))
    assert body.outputs[0].name == "u"
    assert body.outputs[0].producer is not None
    assert body.outputs[0].producer.op_type == "Identity"


def test_an_output_keeps_dtype_and_rank(model: Model) -> None:
    shape = model.main.op.Shape(named(model, "x"))
    flat = model.main.op.Reshape(named(model, "x"), np.array([-1]))
    half = model.main.op.Cast(named(model, "x"), to=10)
    for wrong in (shape, flat, half):
        with pytest.raises(OperatorError, match="dtype and rank of an output must not change"):
            model.main.replace_uses(named(model, "z"), wrong)
    with pytest.raises(
        OperatorError, match=r"output 'z' of the model is float\[2,3\]; .*\(Shape\)"
    ):
        model.main.replace_uses(named(model, "z"), shape)


def test_a_value_of_another_model_is_refused(model: Model) -> None:
    with pytest.raises(ModelError, match="is in another model"):
        model.main.replace_uses(named(model, "a"), named(parsed(TEXT), "x"))


def test_a_range_reads_a_list_of_one_constant_as_a_scalar() -> None:
    made = parsed(
        "(int64 n, int64 s) => (int64[?] y) <int64[1] k = {2}> { t = Neg(n)  y = Range(s, t, s) }"
    )
    made.main.replace_uses(named(made, "t"), named(made, "k"))
    limit = made_by(made, "y").inputs[1]
    assert limit is not None
    assert (limit.shape, limit.number) == ((), 2)
    assert named(made, "k").shape == (1,)
    scalar = made.main.constant(np.array(3))
    made.main.replace_uses(limit, scalar)
    assert made_by(made, "y").inputs[1] is scalar


def test_a_stated_type_is_inherited_where_none_is_inferred() -> None:
    made = parsed(
        "(float[2] x) => (float[2] y) { a = mine.F(x)  y = Relu(a) }".replace(
            "mine.", "com.microsoft."
        )
    )
    a = named(made, "a")
    made.main.set_type(a, TensorType(1, (2,)))
    new = made.main.add_node("G", (named(made, "x"),), domain="com.microsoft").output
    kinds = [new.type]
    made.main.replace_uses(a, new)
    assert [*kinds, new.type] == [None, TensorType(1, (2,))]
    known = made.main.op.Shape(named(made, "x"))
    made.main.replace_uses(new, made.main.op.Cast(known, to=1))
    assert known.shape == (1,)


def test_a_computed_value_becomes_a_constant_of_the_same_name(model: Model) -> None:
    tensor = Tensor.of(np.ones((2, 3), np.float32))
    b = named(model, "b")
    made = model.main.become_constant(b, tensor)
    assert made is b
    assert b.is_initializer
    assert "w" not in model.main.values  # nothing reads it any more
    a = named(model, "a")
    assert model.main.become_constant(a, tensor) is a


def test_an_output_that_becomes_a_constant_keeps_its_name(model: Model) -> None:
    made = model.main.become_constant(named(model, "z"), Tensor.of(np.ones((2, 3), np.float32)))
    assert made.is_initializer
    assert model.main.outputs[1].name == "z"
    assert "b" not in model.main.values


def test_a_node_is_replaced_and_what_only_it_read_goes(model: Model) -> None:
    node, since = made_by(model, "b"), model.peek_serial()
    new = model.main.op.Abs(named(model, "a"))
    assert new.producer is not None
    model.main.replace(node, [new], since)
    assert not node.is_live
    assert new.name == "b"
    assert "w" not in model.main.values
    assert [value.name for value in new.producer.outputs if value] == ["b"]


def test_without_a_serial_number_names_stay(model: Model) -> None:
    new = model.main.op.Abs(named(model, "a"), name="mine")
    model.main.replace(made_by(model, "b"), [new])
    assert new.producer is not None
    assert (new.name, new.producer.name) == ("mine_output_0", "mine")


def test_the_new_node_takes_the_name_of_the_old_one() -> None:
    made = parsed("(float[2] x) => (float[2] y) { [one] a = Relu(x)  [two] y = Neg(a) }")
    since = made.peek_serial()
    new = made.main.op.Abs(named(made, "x"))
    made.main.replace(made_by(made, "a"), [new], since)
    assert new.producer is not None
    assert new.producer.name == "one"


def test_a_node_that_is_still_read_stays() -> None:
    made = parsed("(float[2] x) => (float[1] y, float[1] z) {"
                  " a, b = Split<num_outputs=2>(x)  y = Abs(a)  z = Neg(b) }")  # fmt: skip
    split, since = made_by(made, "a"), made.peek_serial()
    new = made.main.op.Slice(named(made, "x"), np.array([0]), np.array([1]))
    made.main.replace(split, [new, None], since)
    assert split.is_live
    assert new.name == "a"
    assert [value and value.name for value in split.outputs] == ["a_1", "b"]


def test_splicing_keeps_the_names_of_the_nodes() -> None:
    made = parsed("(float[2] x) => (float[2] y) { [old] a = Relu(x)  y = Neg(a) }")
    old = made_by(made, "a")
    new = made.main.add_node("Abs", (named(made, "x"),), name="inner")
    made.main.splice(old, [new.output], [new.output])
    assert (new.name, new.output.name) == ("inner", "a")
    assert not old.is_live
    again = made.main.add_node("Exp", (named(made, "x"),), ["mine"])
    made.main.splice(new, [again.output], [])
    assert again.output.name == "mine"


def test_pruning_removes_nodes_without_readers_and_what_only_they_read(model: Model) -> None:
    model.main.remove_output(named(model, "z"))
    model.main.prune([made_by(model, "z")])
    assert sorted(model.main.values) == ["a", "c", "x", "y"]
    length = len(model.journal)
    model.main.prune(model.main.nodes)
    assert len(model.journal) == length


def test_pruning_an_if_prunes_what_its_bodies_captured(model: Model) -> None:
    model.main.remove_output(named(model, "y"))
    model.main.remove_output(named(model, "z"))
    model.main.prune(model.main.nodes)
    assert len(model.main) == 0
    assert sorted(model.main.values) == ["c", "x"]


def test_the_annotation_of_a_replaced_value_names_its_heir() -> None:
    proto = parsed("(float[2] x) => (float[2] y) { a = Relu(x)  y = Neg(a) }").to_proto()
    annotation = proto.graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.append(
        onnx.StringStringEntryProto(key="SCALE_TENSOR", value="x")
    )
    made = Model.from_proto(proto)
    made.main.replace_uses(named(made, "a"), made.main.op.Abs(named(made, "x"), name="new"))
    assert made.to_proto().graph.quantization_annotation[0].tensor_name == "new_output_0"
