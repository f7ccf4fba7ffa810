"""Values and nodes are replaced; names of outputs stay, and what nothing reads goes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from tests.graph.editor import serialized
from tests.small import made_by, named, parsed
from tiered.graph import Model, Node, Tensor, TensorType, Value
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


RICH = """(float[2] x, bool p, float[2] d, float[] u, int64 n) => (float[2] y, float[2] x, float[2] z, float[2] o)
    <float[2] w = {1,2}, float[2] d = {5,6}, float[2] o = {7,8}, int64[1] one = {2}, int64 k = {3}, float[2] e> {
    [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = vendor.Range(n, n)
    [S] s, , t = vendor.Three(b)  [I] y = If(p) <
        then_branch = one () => (float[2] f) { [F] f = Mul(b, d) },
        else_branch = two () => (float[2] g) { [G] g = Neg(a) }>
    e = Exp(t)  [Z] z = Abs(s)  q = Sub(e, u) }"""


def shown(of: Model) -> str:
    """Return the nodes of a model in order, its initializers and its outputs."""
    lines = [", ".join(value.name for value in of.main.initializers)]
    for node in of.main.walk():
        names = [
            ", ".join("" if value is None else value.name for value in values)
            for values in (node.outputs, node.inputs)
        ]
        lines.append(f"[{node.name}] {names[0]} = {node.op_type}({names[1]})")
    return "  ".join([*lines, ", ".join(value.name for value in of.main.outputs)])


def v(of: Model, name: str) -> Value:
    return next(graph.values[name] for graph in of.graphs() if name in graph.values)


def node_of(of: Model, name: str) -> Node:
    made = v(of, name).producer
    assert made is not None
    return made


def put(name: str, *others: str) -> Callable[[Model], object]:
    """Return the edit that replaces the node of a value by values."""
    return lambda of: of.main.replace(node_of(of, name), [v(of, each) for each in others])


def uses(old: str, new: str) -> Callable[[Model], object]:
    return lambda of: v(of, old).owner.replace_uses(v(of, old), v(of, new))


def new_at(of: Model, name: str, op_type: str, *reads: str, count: int = 1) -> None:
    """Replace a node by one that was made for it."""
    since = of.peek_serial()
    made = of.main.add_node(op_type, [v(of, each) for each in reads], count, domain="vendor")
    of.main.replace(node_of(of, name), made.outputs, since)


def constant(name: str, *numbers: float, dtype: Any = np.float32) -> Callable[[Model], object]:
    tensor = Tensor.of(np.array(numbers if len(numbers) > 1 else numbers[0], dtype))
    return lambda of: v(of, name).owner.become_constant(v(of, name), tensor)


def pinned(name: str, edit: Callable[[Model], object]) -> Callable[[Model], object]:
    def both(of: Model) -> None:
        v(of, name).pins += 1
        edit(of)

    return both


def spliced(name: str, *others: str, own: Sequence[str | None] = ()) -> Callable[[Model], object]:
    def edit(of: Model) -> None:
        values = [None if each is None else v(of, each) for each in own]
        of.main.splice(node_of(of, name), [v(of, each) for each in others], values)

    return edit


EDITS: dict[str, tuple[Callable[[Model], object], str]] = {
    "an output by itself": (
        uses("z", "z"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "an output by an input": (
        uses("z", "x"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z_1 = Abs(s)  [] q = Sub(e, u)  [z_identity] z = Identity(x)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "an input that is an output": (
        uses("x", "w"),
        "x, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, x)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "an output that is an initializer": (
        uses("o", "w"),
        "o, d, o_1, one, k  [A] a = Neg(x)  [B] b = Add(a, o)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "an output by an overridable initializer": (
        uses("z", "d"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z_1 = Abs(s)  [] q = Sub(e, u)  [z_identity] z = Identity(d)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "an output by another output": (
        uses("z", "y"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z_1 = Abs(s)  [] q = Sub(e, u)  [z_identity] z = Identity(y)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a captured value": (
        uses("b", "a"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(a)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(a, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "an initializer": (
        uses("w", "o"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, o)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a limit of a range": (
        uses("n", "one"),
        "w, d, o, one, k, one_1  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(one_1, one_1, k)  [V] v = Range(one, one)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a node": (
        put("b", "a"),
        "d, o, one, k  [A] a = Neg(x)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(a)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(a, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a node by values that are there": (
        put("e", "a"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [Z] z = Abs(s)  [] q = Sub(a, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a node of several outputs": (
        put("s", "a", "a", "b"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [I] y = If(p)  [] e = Exp(b)  [Z] z = Abs(a)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "one output of several": (
        put("s", "a"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(a)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "the same output": (
        put("b", "b"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a new node": (
        lambda of: new_at(of, "b", "F", "a"),
        "d, o, one, k  [A] a = Neg(x)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [B] b = F(a)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a new node of an output": (
        lambda of: new_at(of, "z", "F", "a"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [] q = Sub(e, u)  [Z] z = F(a)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a new node of a node without a name": (
        lambda of: new_at(of, "e", "F", "a"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F_1] e = F(a)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a new node of several": (
        lambda of: new_at(of, "s", "F", "b", count=3),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [S] s, F_1_output_1, t = F(b)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a new node of fewer": (
        lambda of: new_at(of, "s", "F", "b", count=2),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s_1, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F_1] s, F_1_output_1 = F(b)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a new node that reads the old one": (
        lambda of: new_at(of, "a", "F", "a"),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(F_1_output_0, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F_1] F_1_output_0 = F(a)  [F] f = Mul(b, d)  [G] g = Neg(F_1_output_0)  y, x, z, o",
    ),
    "a constant of a node": (
        constant("a", 1, 2),
        "w, d, o, one, k, a  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a constant of a captured value": (
        constant("b", 1, 2),
        "d, o, one, k, b  [A] a = Neg(x)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a constant of an input": (
        constant("p", 1, dtype=np.bool_),
        "w, d, o, one, k, p  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a constant of an output": (
        constant("z", 1, 2),
        "w, d, o, one, k, z  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a constant of a declared value": (
        constant("e", 1, 2),
        "w, d, o, one, k, e  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a constant of a pinned value": (
        pinned("a", constant("a", 1, 2)),
        "w, d, o, one, k, a  [A] a_1 = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a constant of one of several": (
        constant("s", 1, 2),
        "w, d, o, one, k, s  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s_1, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a splice": (
        spliced("b", "a", own=["a"]),
        "d, o, one, k  [A] b = Neg(x)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(b)  y, x, z, o",
    ),
    "a splice of a value of its own": (
        spliced("e", "b", own=["b"]),
        "w, d, o, one, k  [A] a = Neg(x)  [B] e = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(e)  [I] y = If(p)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(e, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a splice of pinned values": (
        pinned("b", spliced("e", "b", own=["b"])),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [Z] z = Abs(s)  [] q = Sub(b, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
    "a splice of several": (
        spliced("s", "a", "a", "b", own=["a", "b", None]),
        "w, d, o, one, k  [A] s = Neg(x)  [B] t = Add(s, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [I] y = If(p)  [] e = Exp(t)  [Z] z = Abs(s)  [] q = Sub(e, u)  [F] f = Mul(t, d)  [G] g = Neg(s)  y, x, z, o",
    ),
    "a splice of an output": (
        spliced("z", "q", own=["q"]),
        "w, d, o, one, k  [A] a = Neg(x)  [B] b = Add(a, w)  [R] r = Range(n, n, k)  [V] v = Range(n, n)  [S] s, , t = Three(b)  [I] y = If(p)  [] e = Exp(t)  [] z = Sub(e, u)  [F] f = Mul(b, d)  [G] g = Neg(a)  y, x, z, o",
    ),
}


def test_what_each_replacement_makes() -> None:
    for name, (edit, expected) in EDITS.items():
        of = parsed(RICH)
        first = serialized(of)
        edit(of)
        of.check_view()
        assert shown(of) == expected, name
        of.undo_to(0)
        assert serialized(of) == first


def test_an_output_of_the_model_keeps_dtype_and_rank_as_far_as_they_are_known() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g (float[2] x, int64[K] k, seq(float[2]) q, seq(int64[2]) r, int64[2] i) =>
        (float[2] y, float[2] z, seq(float[2]) s) { y = Neg(x)  h = vendor.F(x)  z = vendor.F(x)
        u = Reshape(x, k)  j = Neg(u)  m = Neg(i)  t = Identity(r)  s = Identity(q) }"""
    for old, new, because in (
        ("y", "h", None), ("z", "m", None), ("y", "j", None), ("y", "u", None), ("s", "t", None),
        ("y", "t", "output 'y' of the model is float[2]; 't' (Identity), which would replace it, is sequence"),
        ("s", "x", "output 's' of the model is sequence; 'x', which would replace it, is float[2]"),
        ("y", "m", "output 'y' of the model is float[2]; 'm' (Neg), which would replace it, is int64[2]"),
    ):  # fmt: skip
        of = parsed(text)
        if because is None:
            of.main.replace_uses(named(of, old), named(of, new))
            continue
        with pytest.raises(OperatorError) as caught:
            of.main.replace_uses(named(of, old), named(of, new))
        assert str(caught.value) == f"{because}: the dtype and rank of an output must not change"


def test_types_are_inherited_where_they_say_more() -> None:
    text = """(float[2] x, float[] u, bool p) => (float[2] y) <float[2] old, float[2] other> {
        old = vendor.F(x)  a = Neg(old)  other = vendor.F(a)  b = Neg(other)  k = vendor.G(x)
        l = Neg(u)  m = vendor.H(x)  n = Cast<to=7>(u)  i = Constant<value_float=1.0>()
        y = If(p) <then_branch = t () => (float[2] f) <float[2] in> { in = vendor.F(x)  f = Neg(in) },
                   else_branch = e () => (float[2] g) { g = Abs(x) }> }"""
    for old, new, before, expected in (
        ("old", "k", "None", "float[2]"), ("old", "l", "float", "float[2]"),
        ("old", "u", "float", "float"), ("old", "n", "int64", "int64"),
        ("old", "i", "float[]", "float[]"), ("in", "k", "None", "None"),
        ("a", "k", "None", "float[2]"), ("a", "l", "float", "float[2]"),
    ):  # fmt: skip
        of = parsed(text)
        value = v(of, new)
        if old != "a":
            assert str(value.type) == before
        assert str(v(of, old).type) == "float[2]"
        of.main.replace_uses(v(of, old), value)
        assert str(value.type) == expected, (old, new)
    of = parsed(text)
    made = of.main.add_node("Any", (named(of, "x"),), domain="vendor").output
    of.main.replace_uses(v(of, "a"), made)
    assert made.type is None


def test_types_are_not_compared_where_they_contradict_each_other_in_the_file() -> None:
    of = parsed("(float[2] x, int64[2] i) => (float[3] y) { y = Neg(x)  m = Abs(i) }")
    of.main.replace_uses(named(of, "y"), named(of, "m"))
    assert of.main.outputs[0].dtype == 7


def test_an_annotation_moves_to_a_value_of_its_graph_that_has_none() -> None:
    for old, new, names in (
        ("a", "b", ["b"]), ("a", "x", ["x"]), ("b", "a", ["a"]), ("c", "b", ["a"]), ("d", "x", ["d"]),
    ):  # fmt: skip
        proto = parsed(
            """(float[2] x, bool p) => (float[2] y) { a = Relu(x)  b = Neg(x)  c = Abs(x)
            y = If(p) <then_branch = t () => (float[2] f) { d = Neg(a)  f = Neg(d) },
                       else_branch = e () => (float[2] g) { g = Add(b, c) }> }"""
        ).to_proto()
        main = proto.graph
        body = main.node[3].attribute[0].g
        where = body if old == "d" else main
        where.quantization_annotation.add(tensor_name="a" if old == "c" else old)
        of = Model.from_proto(proto)
        v(of, old).owner.replace_uses(v(of, old), v(of, new))
        graph = of.to_proto().graph
        found = [
            *graph.quantization_annotation,
            *graph.node[-1].attribute[0].g.quantization_annotation,
        ]
        assert [each.tensor_name for each in found] == names, (old, new)


def old_at(of: Model, name: str, *others: str | None) -> None:
    """Replace a node by values that are no new ones, as a rewrite does."""
    values = [None if each is None else v(of, each) for each in others]
    of.main.replace(node_of(of, name), values, of.peek_serial())


def constant_at(of: Model, name: str) -> None:
    since = of.peek_serial()
    made = of.main.constant(Tensor.of(np.ones(2, np.float32)), "made")
    of.main.replace(node_of(of, name), [made], since)


NAMES = """(float[2] x, float[2] d, bool p) => (float[2] y, float[2] z) <float[2] w = {1,2}, float[2] d = {5,6}> {
    [A] a = Neg(x)  [T] y, , b = vendor.Three(a)  [C] c = Abs(a)  [Z] z = Add(b, c)
    [D] e = Add(d, w)  [E] f = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(a, b, c) }"""
NAMED: dict[str, tuple[Callable[[Model], object], str]] = {
    "a value that was there keeps its name, and so does its node": (
        lambda of: old_at(of, "c", "b"),
        "w, d  [A] a = Neg(x)  [T] y, , b = Three(a)  [Z] z = Add(b, b)  [D] e = Add(d, w)  [E] f = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(a, b, b)  y, z",
    ),
    "a node that is replaced by nothing goes": (
        lambda of: old_at(of, "g", None),
        "w, d  [A] a = Neg(x)  [T] y, , b = Three(a)  [C] c = Abs(a)  [Z] z = Add(b, c)  [E] f = Mul(x, w)  [R] r = Range(a, b, c)  y, z",
    ),
    "a constant keeps the name that it was given": (
        lambda of: constant_at(of, "a"),
        "w, d, made  [T] y, , b = Three(made)  [C] c = Abs(made)  [Z] z = Add(b, c)  [D] e = Add(d, w)  [E] f = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(made, b, c)  y, z",
    ),
    "the name of an output is not lost to another": (
        lambda of: two_at(of, "y"),
        "w, d  [A] a = Neg(x)  [C] c = Abs(a)  [Z] z = Add(y, c)  [D] e = Add(d, w)  [E] f = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(a, y, c)  [T] y = F(a)  y, z",
    ),
    "a splice of an absent output": (
        spliced("y", "a", "c", "f", own=["a", "c", "f"]),
        "w, d  [A] y = Neg(x)  [C] c = Abs(y)  [Z] z = Add(b, c)  [D] e = Add(d, w)  [E] b = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(y, b, c)  y, z",
    ),
    "a splice of a part": (
        lambda of: of.main.splice(node_of(of, "y"), [None, None, v(of, "a")], [None]),
        "w, d  [A] a = Neg(x)  [T] y, , b = Three(a)  [C] c = Abs(a)  [Z] z = Add(a, c)  [D] e = Add(d, w)  [E] f = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(a, a, c)  y, z",
    ),
    "an initializer that another node reads stays, and so does one that is an input": (
        lambda of: of.main.prune([node_of(of, "g")]),
        "w, d  [A] a = Neg(x)  [T] y, , b = Three(a)  [C] c = Abs(a)  [Z] z = Add(b, c)  [E] f = Mul(x, w)  [R] r = Range(a, b, c)  y, z",
    ),
    "a limit of a range that is not constant": (
        uses("a", "x"),
        "w, d  [A] a = Neg(x)  [T] y, , b = Three(x)  [C] c = Abs(x)  [Z] z = Add(b, c)  [D] e = Add(d, w)  [E] f = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(x, b, c)  y, z",
    ),
    "a limit of a range of several numbers": (
        uses("a", "w"),
        "w, d  [A] a = Neg(x)  [T] y, , b = Three(w)  [C] c = Abs(w)  [Z] z = Add(b, c)  [D] e = Add(d, w)  [E] f = Mul(x, w)  [G] g = Neg(e)  [R] r = Range(w, b, c)  y, z",
    ),
}


def two_at(of: Model, name: str) -> None:
    since = of.peek_serial()
    made = of.main.add_node("F", [v(of, "a")], domain="vendor").output
    of.main.replace(node_of(of, name), [made, None, made], since)


def test_which_names_stay_and_what_goes() -> None:
    for name, (edit, expected) in NAMED.items():
        of = parsed(NAMES)
        edit(of)
        of.check_view()
        assert shown(of) == expected, name


def test_a_value_becomes_the_constant_itself_where_nothing_else_changes() -> None:
    text = """(float[2] x, int64 n) => (float[2] y) <float[2] b> {
        a = Neg(x)  b = Abs(a)  y = Exp(b)  t = Neg(n)  r = Range(n, t, n) }"""
    for name, tensor, is_same in (
        ("a", np.ones(2, np.float32), True), ("b", np.ones(2, np.float32), False),
        ("t", np.array(1), True), ("t", np.array([1]), False), ("n", np.array(1), False),
    ):  # fmt: skip
        of = parsed(text)
        before = v(of, name)
        assert (of.main.become_constant(before, Tensor.of(tensor)) is before) is is_same, name
        of.check_view()
        assert [value and value.shape for value in node_of(of, "r").inputs] == [()] * 3


def test_a_value_of_an_outer_graph_keeps_its_name() -> None:
    of = parsed(
        """(float[2] x, bool p) => (float[2] y) {
        y = If(p) <then_branch = t () => (float[2] f) { d = Neg(x)  f = Neg(d) },
                   else_branch = e () => (float[2] g) { g = Abs(x) }> }"""
    )
    since, body = of.peek_serial(), of.main.nodes[0].bodies[0]
    made = of.main.add_node("Exp", [v(of, "x")], ["outer"]).output
    body.replace(node_of(of, "d"), [made], since)
    assert made.name == "outer"
    of.check_view()


def test_a_list_of_tensors_inherits_no_type() -> None:
    of = parsed(
        "(float[2] x, seq(float[2]) r) => (float[2] y) { a = Neg(x)  y = vendor.F(a)  t = Identity(r) }"
    )
    before = v(of, "t").type
    of.main.replace_uses(v(of, "a"), v(of, "t"))
    assert v(of, "t").type == before


def test_the_error_names_the_pass() -> None:
    of = parsed("(float[2] x, int64[2] i) => (float[2] y) { y = Neg(x)  m = Abs(i) }")
    of.gate.pass_name = "mine"
    with pytest.raises(OperatorError, match=r"^mine: output 'y' of the model is float\[2\]; 'm'"):
        of.main.replace_uses(v(of, "y"), v(of, "m"))


def test_of_two_annotations_each_stays_with_its_value() -> None:
    proto = parsed(
        "(float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(x)  y = Add(a, b) }"
    ).to_proto()
    for name in ("a", "b"):
        proto.graph.quantization_annotation.add(tensor_name=name)
    of = Model.from_proto(proto)
    of.main.replace_uses(v(of, "a"), v(of, "b"))
    assert [values[0].name for values, _ in of.main.annotations] == ["a", "b"]
