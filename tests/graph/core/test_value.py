"""What a value says of its uses, its contents and its type."""

import numpy as np
import onnx
import pytest

from tests.small import made_by, model, named, parsed
from tiered.graph import Model, Value
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.value import NOT_INFERRED
from tiered.graph.opset.adapter import detached
from tiered.support.errors import ModelError

BODY = """(float[2] x, bool p) => (float[2] y, float[2] a) <float[2] c = {1,2}> {
    a = Neg(x)  b = Add(a, a)  d = Mul(b, c)
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(b) },
               else_branch = e () => (float[2] v) { v = Mul(d, d) }> }"""


@pytest.fixture
def body() -> Model:
    return parsed(BODY)


def test_users_come_by_node_and_slot_at_any_depth(body: Model) -> None:
    uses = [(use.node.op_type, use.slot) for use in named(body, "b").users]
    assert uses == [("Mul", 0), ("Neg", 0)]
    assert [use.slot for use in named(body, "a").users] == [0, 1]
    assert named(body, "a").n_users == 2


def test_readers_are_nodes_of_the_values_own_graph(body: Model) -> None:
    assert [node.op_type for node in named(body, "b").readers] == ["Mul", "If"]
    assert [node.op_type for node in named(body, "d").readers] == ["If"]
    assert [named(body, name).is_captured for name in "abd"] == [False, True, True]


def test_one_user_is_one_use_and_no_output(body: Model) -> None:
    found = {name: named(body, name).has_one_user for name in ("x", "a", "b", "c", "d", "p", "y")}
    assert [name for name, has_one in found.items() if has_one] == ["x", "c", "p"]


def test_a_node_is_the_only_reader_if_all_uses_are_its_own(body: Model) -> None:
    product = made_by(body, "d")
    assert named(body, "c").is_only_read_by(product)
    assert not named(body, "b").is_only_read_by(product)  # a body reads it too
    assert not named(body, "a").is_only_read_by(made_by(body, "b"))  # it is an output
    assert not named(body, "d").is_only_read_by(made_by(body, "y"))  # only its body does


def test_names_of_the_interface_and_of_annotations_stay(body: Model) -> None:
    assert [named(body, name).can_be_renamed for name in "abcxy"] == [
        False, True, False, False, False,
    ]  # fmt: skip
    named(body, "b").pins += 1
    assert not named(body, "b").can_be_renamed
    assert named(body, "b").is_used


def test_an_initializer_may_become_an_output_from_ir_4_on(body: Model) -> None:
    assert [named(body, name).can_become_output for name in "abcx"] == [False, True, True, False]
    body.set_ir_version(3)
    assert not named(body, "c").can_become_output


OVERRIDABLE = "(float[2] x, float[1] c) => (float[2] y) <float[1] c = {3}> { y = Add(x, c) }"


def test_an_initializer_that_callers_feed_is_no_constant() -> None:
    value = named(parsed(OVERRIDABLE), "c")
    assert (value.is_initializer, value.is_overridable, value.is_constant) == (True, True, False)
    assert (value.const, value.number) == (None, None)
    assert value.default is not None
    assert value.default.numpy().tolist() == [3]


def test_contents_of_a_constant_node_and_of_an_initializer_are_known() -> None:
    of = parsed(
        """(float[2] x) => (float[2] y) <int64[2] i = {4,5}>
        { c = Constant<value_float = 2.5>()  y = Mul(x, c) }"""
    )
    assert named(of, "c").number == 2.5
    assert not named(of, "c").is_initializer
    pair = named(of, "i")
    assert pair.number is None
    assert pair.elements is not None
    assert pair.elements.tolist() == [4, 5]
    assert named(of, "c").constant_elements() is None


def test_an_initializer_that_training_updates_is_no_constant() -> None:
    of = parsed(BODY)
    value = named(of, "c")
    assert value.is_constant
    value.is_trained = True
    assert not value.is_constant


def test_dims_count_from_both_ends_and_are_none_outside() -> None:
    value = named(parsed("(float[2,N] x) => (float[2,N] y) { y = Neg(x) }"), "y")
    assert [value.dim(axis) for axis in (0, 1, -1, -2, 2, -3)] == [2, "N", "N", 2, None, None]
    assert (value.rank, value.static_shape) == (2, None)
    assert named(model(), "a").static_shape == (2, 3)


def test_an_unknown_rank_is_the_rank_of_none() -> None:
    of = parsed("(float x, float[] z) => (float[2] y) { y = vendor.Any(x) }".replace("[]", ""))
    scalar = named(of, "x")
    made = made_by(of, "y").output
    assert scalar.has_rank_of(named(of, "z"))
    assert not scalar.has_rank_of(made)


def test_a_removed_value_has_no_owner() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(x) }")
    value = named(of, "a")
    of.main.remove_node(made_by(of, "a"))
    with pytest.raises(ModelError, match="'a' is in no graph"):
        _ = value.owner
    assert "dead" in repr(value)


def test_arrays_are_read_only() -> None:
    array = named(parsed(BODY), "c").const
    assert array is not None
    with pytest.raises(ValueError, match="read-only"):
        array[0] = np.float32(1)


KINDS = """(float[2,N] x, float16[1] o, seq(int64) q) => (float[2,N] y, float[1] out, int64[2] r)
    <float16[1] o = {3}, float[1] out = {1}, int64[2] e = {4,5}, bool[1] c = {1},
    float[1] pinned = {1}, int64 mine = {7}> {
    two = Add(x, x)  k = Constant<value_int=3>()  same = vendor.Constant<value_int=3>()
    half = Cast<to=10>(two)  r = Add(e, e)  s = Shape(x)  w = Mul(pinned, out)  u = vendor.F(o, k, s)
    y = If(c) <then_branch = t () => (float[2,N] a) { a = Neg(two) },
               else_branch = f () => (float[2,N] b) { b = Neg(x) }> }"""
ASKED = (
    *("is_used", "has_one_user", "is_captured", "can_be_renamed", "can_become_output", "is_float"),
    *("is_graph_input", "is_graph_output", "is_initializer", "is_overridable", "is_constant"),
)
ANSWERS = {
    'o': "<Value 'o' float16[1]> is_used has_one_user is_float is_graph_input is_initializer is_overridable: 10 None None (1,) 1 (1,) [None, 1, 1, None]",
    'out': "<Value 'out' float[1]> is_used is_float is_graph_output is_initializer is_constant: 1 1.0 None (1,) 1 (1,) [None, 1, 1, None]",
    'e': "<Value 'e' int64[2]> is_used can_become_output is_initializer is_constant: 7 None ['4', '5'] (2,) 1 (2,) [None, 2, 2, None]",
    'c': "<Value 'c' bool[1]> is_used has_one_user can_become_output is_initializer is_constant: 9 True ['True'] (1,) 1 (1,) [None, 1, 1, None]",
    'pinned': "<Value 'pinned' float[1]> is_used is_float is_initializer is_constant: 1 1.0 None (1,) 1 (1,) [None, 1, 1, None]",
    'mine': "<Value 'mine' int64[]> can_become_output is_initializer: 7 None None () 0 () [None, None, None, None]",
    'x': "<Value 'x' float[2,N]> is_used is_captured is_float is_graph_input: 1 None None (2, 'N') 2 None [2, 'N', 2, 'N']",
    'q': "<Value 'q' sequence> is_graph_input: None None None None None None [None, None, None, None]",
    'two': "<Value 'two' float[2,N]> is_used is_captured can_be_renamed can_become_output is_float: 1 None None (2, 'N') 2 None [2, 'N', 2, 'N']",
    'k': "<Value 'k' int64[]> is_used has_one_user can_be_renamed can_become_output is_constant: 7 3 ['3'] () 0 () [None, None, None, None]",
    'same': "<Value 'same' > can_be_renamed can_become_output: None None None None None None [None, None, None, None]",
    'half': "<Value 'half' float16[2,N]> can_be_renamed can_become_output is_float: 10 None None (2, 'N') 2 None [2, 'N', 2, 'N']",
    'r': "<Value 'r' int64[2]> is_used is_graph_output: 7 None ['8', '10'] (2,) 1 (2,) [None, 2, 2, None]",
    's': "<Value 's' int64[2]> is_used has_one_user can_be_renamed can_become_output: 7 None ['2', 'N'] (2,) 1 (2,) [None, 2, 2, None]",
    'w': "<Value 'w' float[1]> can_be_renamed can_become_output is_float: 1 None None (1,) 1 (1,) [None, 1, 1, None]",
    'u': "<Value 'u' > can_be_renamed can_become_output: None None None None None None [None, None, None, None]",
    'y': "<Value 'y' float[2,N]> is_used is_float is_graph_output: 1 None None (2, 'N') 2 None [2, 'N', 2, 'N']",
}  # fmt: skip


def kinds() -> Model:
    of = parsed(KINDS)
    named(of, "pinned").pins = 1
    named(of, "mine").is_trained = True
    return of


def described(value: Value) -> str:
    known = None if value.elements is None else [str(each) for each in value.elements.ravel()]
    yes = [name for name in ASKED if getattr(value, name)]
    dims = [value.dim(axis) for axis in (-2, -1, 0, 1)]
    said = (value.dtype, value.number, known, value.shape, value.rank, value.static_shape, dims)
    return f"{value!r} {' '.join(yes)}: {' '.join(str(each) for each in said)}"


def test_all_that_values_say_of_themselves() -> None:
    of = kinds()
    assert {name: described(value) for name, value in of.main.values.items()} == ANSWERS


def test_uses_that_are_no_nodes_count() -> None:
    of = kinds()
    two, product, pinned = named(of, "two"), made_by(of, "w"), named(of, "pinned")
    assert not pinned.has_one_user
    assert not pinned.is_only_read_by(product)
    assert not named(of, "out").has_one_user
    assert not named(of, "out").is_only_read_by(product)
    negation = next(use.node for use in two.users if use.node.op_type == "Neg")
    assert not two.is_only_read_by(negation)
    of.main.remove_node(made_by(of, "half"))
    assert [use.node for use in two.users] == [negation]
    assert not two.is_only_read_by(negation)
    named(of, "u").pins = 1
    assert named(of, "u").is_used
    assert not named(of, "k").is_graph_output


def test_users_come_in_order_however_they_came() -> None:
    of = parsed("(float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  y = Add(b, a) }")
    for name in "xa":
        of.main.set_input(made_by(of, "b"), 0, named(of, name))
    assert [use.node.op_type for use in named(of, "a").users] == ["Abs", "Add"]
    assert [use.slot for use in named(of, "a").users] == [0, 1]


def test_what_may_become_an_output() -> None:
    of = kinds()
    for version, expected in ((3, False), (4, True)):
        of.set_ir_version(version)
        assert named(of, "e").can_become_output is expected
    graph = of.main
    weights = onnx.helper.make_tensor("v", 7, [1], [2])
    places = onnx.helper.make_tensor("i", 7, [1], [0])
    sparse = onnx.helper.make_sparse_tensor(weights, places, [3])
    constant = graph.constant(Tensor(sparse))
    assert (constant.const, constant.elements, constant.can_become_output) == (None, None, False)
    assert constant.is_constant


def test_elements_of_at_most_256_are_looked_at() -> None:
    graph = kinds().main
    for size, is_known in ((256, True), (257, False)):
        value = graph.constant(np.zeros(size, np.int64))
        assert (value.elements is not None) is is_known
        assert (value.constant_elements() is not None) is is_known
        assert (detached(np.zeros(size, np.int64)).elements is not None) is is_known


def test_a_value_of_no_graph_has_what_its_file_declares() -> None:
    value = Value(0, None, "v")
    value._type = NOT_INFERRED
    assert (value.type, value.elements, value.index) == (None, None, 0)
    assert repr(value) == "<dead 'v'>"
    assert not value.is_initializer
    constant = detached(np.array([1, 2], np.int64))
    assert not constant.is_initializer
    constant._type = NOT_INFERRED
    assert str(constant.type) == "int64[2]"
    value._type, value.declared = NOT_INFERRED, onnx.helper.make_tensor_value_info("v", 1, [3])
    assert str(value.type) == "float[3]"
    value.producer, value._type = made_by(kinds(), "y"), NOT_INFERRED
    assert str(value.type) == "float[3]"
