"""What a value says of its uses, its contents and its type."""

import numpy as np
import pytest

from tests.small import made_by, model, named, parsed
from tiered.graph import Model
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
