"""Names, types and contents of values: what they may become, and what the file says of them."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tests.graph.editor import fresh
from tests.small import content, made_by, model as small, named, parsed
from tiered.graph import Model, Tensor, TensorType, Value
from tiered.support.errors import ModelError

DYNAMIC = """g (float[N,3] x) => (float[N,3] y, int64[2] s) <float[3] w = {1, 2, 3}>
    { a = Mul(x, w)  y = Relu(a)  s = Shape(x) }"""


def stated(kind: Callable[[Model], object]) -> Model:
    made = small(DYNAMIC)
    before = content(made)
    with pytest.raises(ModelError, match=r"cannot be (stated|declared)"):
        kind(made)
    assert content(made) == before
    made.check_view(types=True)
    return made


def test_a_type_that_the_file_does_not_declare_is_refused_for_inputs_and_constants() -> None:
    stated(lambda m: m.main.set_type(m.main.values["x"], TensorType(1, (1, 3))))
    stated(lambda m: m.main.set_type(m.main.values["x"], TensorType(1, ("M", 3))))
    stated(lambda m: m.main.set_type(m.main.values["w"], TensorType(1, (7,))))
    stated(lambda m: m.main.set_type(m.main.values["y"], TensorType(10, ("N", 3))))
    stated(lambda m: m.main.set_type(m.main.values["y"], TensorType(1, ("N",))))
    stated(lambda m: m.main.set_declared_type(m.main.values["y"], TensorType(10, ("N", 3))))
    stated(lambda m: m.main.set_declared_type(m.main.values["y"], TensorType(1, ("N", 4))))
    constant = small("g () => (float[1] y) { c = Constant <value_floats = [1.0]> ()  y = Neg(c) }")
    with pytest.raises(ModelError, match=r"float\[1\] by its contents"):
        constant.main.set_type(constant.main.values["c"], TensorType(1, (7,)))
    less = small(DYNAMIC)
    less.main.set_type(less.main.values["x"], TensorType(1, (None, 3)))
    less.main.set_type(less.main.values["x"], None)
    less.check_view(types=True)


def test_check_view_finds_a_type_that_the_file_does_not_declare() -> None:
    for name, kind in (("x", TensorType(1, (1, 3))), ("w", TensorType(1, (7,)))):
        made = small(DYNAMIC)
        made.check_view()
        made.main.values[name]._type = kind
        with pytest.raises(AssertionError, match=f"'{name}' is .* in the view"):
            made.check_view()


def test_a_default_has_the_type_that_its_input_declares() -> None:
    made = small("g (float[N] w) => (float[N] y) <float[3] w = {1, 2, 3}> { y = Relu(w) }")
    graph, w = made.main, made.main.values["w"]
    assert w.is_overridable
    graph.set_constant(w, Tensor.of(np.zeros(1, np.float32)))
    assert w.shape == ("N",)
    made.check_view(types=True)
    with pytest.raises(ModelError, match=r"declared float\[N\], its default cannot be double\[1\]"):
        graph.set_constant(w, Tensor.of(np.zeros(1)))
    made.undo_to(0)
    assert w.shape == ("N",)


def test_a_constant_of_one_element_is_a_number() -> None:
    model = small(
        "g (float[1] x, float d = {1}) => (float[2] y)"
        " <float f = {0.5}, int64[1,1] i = {3}, float[2] v = {1,2}> { y = Add(x, v) }"
    )
    values = model.main.values
    assert {name: value.number for name, value in values.items()} == {
        "x": None, "d": None, "f": 0.5, "i": 3, "v": None, "y": None
    }  # fmt: skip


BODY = """(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { a = Add(x, w)
    y = If (c) <then_branch = t () => (float[2] u) { u = Neg(a) },
                else_branch = f () => (float[2] v) { v = Abs(x) }> }"""


def test_a_new_name_is_written_wherever_the_value_is_read() -> None:
    model = parsed(BODY)
    a, then = named(model, "a"), model.main.nodes[1].bodies[0]
    model.main.rename_value(a, "b")
    assert list(made_by(model, "b").proto.output) == ["b"]
    assert list(then.nodes[0].proto.input) == ["b"]
    assert model.main.values["b"] is a
    assert "a" not in model.main.values
    model.main.rename_value(named(model, "y"), "out")
    assert model.to_proto().graph.output[0].name == "out"
    length = len(model.journal)
    model.main.rename_value(a, "b")
    assert len(model.journal) == length
    for name in ("u", "x", ""):
        with pytest.raises(ModelError, match=r"already has a value|not empty"):
            model.main.rename_value(a, name)
    model.check_view()


def test_a_type_is_set_once_and_taken_back() -> None:
    model = parsed("(float[N] x) => (float[N] y) { a = Relu(x)  y = Neg(a) }")
    a = named(model, "a")
    shapes = [a.shape]
    length = len(model.journal)
    model.main.set_type(a, TensorType(1, ("N",)))
    assert len(model.journal) == length
    model.main.set_type(a, TensorType(1, (5,)))
    shapes.append(a.shape)
    model.undo_to(length)
    assert [*shapes, a.shape] == [("N",), (5,), ("N",)]


def test_a_constant_is_an_initializer_where_one_is_possible() -> None:
    model, array = fresh(), np.array([1, 2], np.int64)
    value = model.main.constant(array, "mine")
    assert value.is_initializer
    assert value.name == "mine"
    assert model.main.constant(array, "mine").name == "mine_1"
    function = model.functions[0]
    inside = function.constant(Tensor.of(array))
    assert inside.producer is not None
    assert (inside.producer.op_type, inside.producer.name) == ("Constant", "const")
    assert inside.const is not None
    assert inside.const.tolist() == [1, 2]
    model.check_view()


@pytest.mark.parametrize(("ir", "is_initializer"), [(3, False), (4, True)])
def test_before_ir_4_a_constant_is_a_node(ir: int, is_initializer: bool) -> None:
    text = f'<ir_version: {ir}, opset_import: ["" : 9]> g (float[1] x) => (float[1] y)'
    model = Model.from_proto(onnx.parser.parse_model(f"{text} {{ y = Abs(x) }}"))
    assert model.main.constant(np.zeros(1, np.float32)).is_initializer is is_initializer


@pytest.mark.parametrize(
    ("edit", "because"),
    [
        (lambda m, w: m.main.add_constant(w.tensor, "a"), "already has a value 'a'"),
        (lambda m, w: m.main.append_constant(w), "is no initializer that was removed"),
        (lambda m, w: m.main.remove_constant(w), "initializer 'w' cannot be removed: it is used"),
        (lambda m, w: m.main.move_constant(w, m.main.nodes[1].bodies[0]), "does not see"),
        (lambda m, w: m.main.nodes[1].bodies[0].remove_constant(w), "not in"),
    ],
)
def test_an_edit_of_a_constant_that_is_none_is_refused(
    edit: Callable[[Model, Value], object], because: str
) -> None:
    model = parsed(BODY)
    before = content(model)
    with pytest.raises(ModelError, match=because):
        edit(model, named(model, "w"))
    assert content(model) == before


def test_a_constant_that_was_removed_comes_back() -> None:
    model = parsed(BODY)
    w = named(model, "w")
    made_by(model, "a").owner.set_input(made_by(model, "a"), 1, named(model, "x"))
    model.main.remove_constant(w)
    assert "w" not in model.main.values
    model.main.append_constant(w)
    assert model.main.initializers == (w,)
    model.check_view()


def test_a_constant_moves_to_where_its_readers_see_it() -> None:
    model = parsed(BODY)
    then = model.main.nodes[1].bodies[0]
    k = model.main.constant(np.zeros(2, np.float32), "k")
    then.set_input(then.nodes[0], 0, k)
    assert k in model.main.nodes[1].captured
    model.main.move_constant(k, then)
    assert then.initializers == (k,)
    assert k not in model.main.nodes[1].captured
    model.check_view()
    default = parsed("(float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Relu(w) }")
    with pytest.raises(ModelError, match="cannot be an initializer of"):
        default.main.move_constant(named(default, "w"), default.main)


def test_new_contents_have_their_type_and_what_follows_from_them() -> None:
    model = parsed("(float[6] x) => (float[?,?] y) <int64[2] t = {2,3}> { y = Reshape(x, t) }")
    t, y = named(model, "t"), named(model, "y")
    assert y.shape == (2, 3)
    model.main.set_constant(t, Tensor.of(np.array([6])))
    assert t.shape == (1,)
    assert t.elements is not None
    assert t.elements.tolist() == [6]
    model.undo_to(0)
    assert t.elements.tolist() == [2, 3]
    model.check_view()


def test_a_default_may_lose_its_contents() -> None:
    model = parsed("(float[N] w) => (float[N] y) <float[2] w = {1,2}> { y = Relu(w) }")
    w = named(model, "w")
    model.main.set_constant(w, None)
    assert not w.is_initializer
    assert model.main.initializers == ()
    assert w.shape == ("N",)
    model.undo_to(0)
    assert w.is_overridable


def test_a_body_input_may_be_stated_less_exactly() -> None:
    model = parsed(
        """(int64 n, bool c, float[2,3] v) => (float[2,3] y) { y = Loop(n, c, v) <
        body = l (int64 i, bool g, float[2,3] p) => (bool g2, float[2,3] q) {
            g2 = Identity(g)  q = Relu(p) }> }"""
    )
    p = model.main.nodes[0].bodies[0].inputs[2]
    p.owner.set_type(p, TensorType(1, (2, 3)))
    with pytest.raises(ModelError, match=r"graph input 'p' is declared float\[2,3\]"):
        p.owner.set_type(p, TensorType(1, (5, 3)))


STATED = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
g (float[N,3] x, float[?] open, seq(float[2]) q, bool c) => (float[N,3] y, seq(float[2]) r, float[2] z) <float[3] w = {1,2,3}> {
    a = Mul(x, w)  y = Relu(a)  r = Identity(q)  k = Constant<value_float=1.0>()  u = own.F(x)
    z = If(c) <then_branch = t () => (float[2] a) { }, else_branch = e () => (float[2] v) { v = own.F(x) }> }
<domain: "own", opset_import: ["": 21]> F (p) => (o) { o = Neg(p) }"""
CHANGE = "; change the declaration (set_declared_type, or Model.set_input_shapes)"


def test_which_types_can_be_stated() -> None:
    for name, kind, because in (
        ("x", TensorType(1, None), None), ("x", TensorType(1, ("N", None)), None), ("x", None, None),
        ("x", TensorType(1, (2, 3)), f"graph input 'x' is declared float[N,3], it cannot be stated as float[2,3]{CHANGE}"),
        ("open", TensorType(1, (None,)), None), ("open", TensorType(1, None), None),
        ("open", TensorType(1, (2,)), f"graph input 'open' is declared float[?], it cannot be stated as float[2]{CHANGE}"),
        ("q", TensorType(1, (2,)), f"graph input 'q' is declared sequence, it cannot be stated as float[2]{CHANGE}"),
        ("w", TensorType(1, None), None),
        ("w", TensorType(1, (4,)), "'w' is float[3] by its contents, it cannot be stated as float[4]; "
         "change the contents (set_constant, assign)"),
        ("k", TensorType(7, ()), "'k' is float[] by its contents, it cannot be stated as int64[]; "
         "change the contents (set_constant, assign)"),
        ("y", TensorType(1, (5, 3)), None), ("y", TensorType(1, None), None), ("y", None, None),
        ("y", TensorType(1, (3,)), f"graph output 'y' is declared float[N,3], it cannot be stated as float[3]{CHANGE}"),
        ("y", TensorType(7, None), f"graph output 'y' is declared float[N,3], it cannot be stated as int64{CHANGE}"),
        ("r", TensorType(7, None), None), ("a", TensorType(7, None), None), ("u", TensorType(7, None), None),
        ("v", TensorType(7, None), None), ("p", TensorType(7, None), None), ("o", TensorType(7, None), None),
    ):  # fmt: skip
        model = Model.from_proto(onnx.parser.parse_model(STATED))
        value = next(graph.values[name] for graph in model.graphs() if name in graph.values)
        if because is None:
            value.owner.set_type(value, kind)
            assert value._type == kind, name
            continue
        with pytest.raises(ModelError) as caught:
            value.owner.set_type(value, kind)
        assert str(caught.value) == because


def test_constants_of_functions_and_of_sparse_tensors() -> None:
    model = Model.from_proto(onnx.parser.parse_model(STATED))
    weights, places = (onnx.helper.make_tensor(name, 7, [1], [0]) for name in "vi")
    sparse = Tensor(onnx.helper.make_sparse_tensor(weights, places, [3]))
    made = model.functions[0].constant(sparse)
    assert made.producer is not None
    assert list(made.producer.attributes) == ["sparse_value"]
    assert model.main.constant(sparse).is_initializer
    w, (function,) = named(model, "w"), model.functions
    unused = model.main.constant(np.zeros(1), "unused")
    for target, value in ((function, unused), (function, w)):
        with pytest.raises(ModelError, match="cannot be an initializer of <Function 'F'"):
            model.main.move_constant(value, target)
    model.main.mark_input(unused)
    with pytest.raises(ModelError, match="initializer 'unused' cannot be removed: it is used"):
        model.main.remove_constant(unused)
    for value in (w, named(model, "a"), model.main.new_value("n")):
        with pytest.raises(ModelError, match="is no initializer that was removed"):
            model.main.append_constant(value)
