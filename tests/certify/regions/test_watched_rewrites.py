"""A model that is watched: each change as regions to try, in step with the journal."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tests.small import named, parsed
from tiered import Model, Node
from tiered.certify.checker import Proof
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Border
from tiered.certify.regions import watched_rewrites
from tiered.certify.regions.watched_rewrites import (
    STEPS,
    Kind,
    Watched,
    WatchedChange,
    Way,
    border_of,
)
from tiered.certify.trial_sizes import assignments
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import tensor_type

FLOAT, INT64 = int(onnx.TensorProto.FLOAT), int(onnx.TensorProto.INT64)
CHAIN = """(float[N] x) => (float[N] y) <float[1] w = {2}> {
    a = Neg(x)  b = Exp(a)  c = Mul(b, w)  d = Abs(c)  e = Sin(d)  f = Cos(e)  y = Tanh(f) }"""


def node(model: Model, name: str) -> Node:
    found = named(model, name).producer
    assert found is not None
    return found


def changes(
    edit: Callable[[Model], object], text: str = CHAIN, known: dict[Kind, Way] | None = None
) -> list[WatchedChange | Unproved]:
    model = parsed(text)
    watched = Watched(model)
    edit(model)
    return list(watched.changes(known or {}))


def swap(model: Model) -> None:
    """Compute the same of swapped operands."""
    model.main.set_inputs(node(model, "c"), [named(model, "w"), named(model, "b")])


def regions(found: list[WatchedChange | Unproved]) -> list[WatchedChange]:
    assert not [each for each in found if isinstance(each, Unproved)]
    return [each for each in found if isinstance(each, WatchedChange)]


# --- regions --------------------------------------------------------------------------------------


def test_a_change_is_tried_in_larger_and_larger_regions() -> None:
    found = regions(changes(swap))
    assert [each.steps for each in found] == [*STEPS, 0]
    assert [each.is_whole for each in found] == [False] * 4 + [True]
    operators = [sorted(node.op_type for node in each.problem.sides[0].nodes)
                 for each in found if each.problem]  # fmt: skip
    assert operators == [
        ["Mul"], ["Abs", "Exp", "Mul"], ["Abs", "Exp", "Mul", "Neg", "Sin"],
        ["Abs", "Cos", "Exp", "Mul", "Neg", "Sin", "Tanh"], ["Exp", "Mul", "Neg"],
    ]  # fmt: skip
    assert found[0].kind == (("Mul",), ("Mul",))
    assert all(each.way is None for each in found)
    first = found[0].problem
    assert first is not None
    assert set(first.borders) == {"b"}
    assert first.outputs == ("c",)


def test_regions_that_are_equal_are_tried_once() -> None:
    text = """(float[N] x) => (float[N] y) <float[1] w = {2}> {
        b = Neg(x)  c = Mul(b, w)  y = Abs(c) }"""
    found = regions(changes(swap, text))
    assert [each.steps for each in found] == [0, 1, 0]
    assert found[-1].is_whole


def test_how_changes_of_a_kind_were_proved_is_tried_first() -> None:
    way = Way(2, Proof("bits"))
    found = regions(changes(swap, known={(("Mul",), ("Mul",)): way}))
    assert [each.steps for each in found] == [2, 0, 1, 4, 0]
    assert found[0].way is way
    assert all(each.way is None for each in found[1:])
    other = regions(changes(swap, known={(("Mul",), ("Div",)): way}))
    assert [each.steps for each in other] == [0, 1, 2, 4, 0]


def test_nodes_between_changed_ones_are_part_of_the_region() -> None:
    def both(model: Model) -> None:
        model.main.set_operator(node(model, "b"), "Sin")
        model.main.set_operator(node(model, "e"), "Exp")

    found = regions(changes(both))
    assert found[0].problem is not None
    kinds = [node.op_type for node in found[0].problem.sides[0].nodes]
    assert kinds == ["Exp", "Mul", "Abs", "Sin"]
    assert found[0].kind == (("Exp", "Sin"), ("Exp", "Sin"))


def test_a_change_of_numbers_is_one_of_their_readers() -> None:
    def other(model: Model) -> None:
        model.main.set_constant(named(model, "w"), Tensor.of(np.array([3], np.float32)))

    found = regions(changes(other))
    assert found[0].problem is not None
    assert [node.op_type for node in found[0].problem.sides[0].nodes] == ["Mul"]
    before, after = (side.constants["w"].numpy() for side in found[0].problem.sides)
    assert [before.item(), after.item()] == [2, 3]


def test_what_nobody_reads_is_no_change() -> None:
    def dead(model: Model) -> None:
        model.main.op.Exp(named(model, "x"))

    (found,) = regions(changes(dead))
    assert found.problem is None
    (none,) = regions(changes(lambda _: None))
    assert none.problem is None
    (name,) = regions(changes(lambda model: model.main.rename_node(node(model, "a"), "other")))
    assert name.problem is None


def test_another_interface_or_everything_is_no_region() -> None:
    (found,) = changes(lambda model: model.main.add_output(named(model, "c")))
    assert str(found) == "the interface changed"
    (found,) = changes(lambda model: model.exchange(model.to_proto()))
    assert str(found) == "any node may have changed"


def test_a_region_with_a_border_that_is_no_tensor_is_skipped() -> None:
    text = """(float[N] x) => (float[?] y) {
        a = Neg(x)  s = SequenceConstruct(a)  b = SequenceInsert(s, a)
        z = SequenceLength(b)  y = Cast<to = 1>(z) }"""

    def other(model: Model) -> None:
        model.main.set_input(node(model, "z"), 0, named(model, "s"))

    found = changes(other, text)
    assert [str(each) for each in found if isinstance(each, Unproved)] == [
        "the type of b is not known"
    ]
    assert any(isinstance(each, WatchedChange) and each.problem for each in found)


# --- in step --------------------------------------------------------------------------------------


def test_each_change_is_that_since_the_last_one() -> None:
    model = parsed(CHAIN)
    watched = Watched(model)
    assert not watched.has_changed()
    model.main.set_operator(node(model, "a"), "Abs")
    assert watched.has_changed()
    first = regions(list(watched.changes({})))
    assert not watched.has_changed()
    model.main.set_operator(node(model, "f"), "Sin")
    second = regions(list(watched.changes({})))
    kinds = [each[0].kind for each in (first, second)]
    assert kinds == [(("Neg",), ("Abs",)), (("Cos",), ("Sin",))]
    assert regions(list(watched.changes({})))[0].problem is None


def test_a_change_that_is_not_looked_at_to_its_end_is_past_too() -> None:
    model = parsed(CHAIN)
    watched = Watched(model)
    model.main.set_operator(node(model, "a"), "Abs")
    found = watched.changes({})
    assert isinstance(next(found), WatchedChange)
    del found
    model.main.set_operator(node(model, "f"), "Sin")
    assert regions(list(watched.changes({})))[0].kind == (("Cos",), ("Sin",))


def test_after_a_change_of_everything_the_model_is_as_it_is() -> None:
    model = parsed(CHAIN)
    watched = Watched(model)
    model.exchange(model.to_proto())
    list(watched.changes({}))
    model.main.set_operator(node(model, "f"), "Sin")
    assert regions(list(watched.changes({})))[0].kind == (("Cos",), ("Sin",))


def test_edits_that_are_undone_are_noticed() -> None:
    model = parsed(CHAIN)
    mark = model.mark()
    model.main.set_operator(node(model, "a"), "Abs")
    watched = Watched(model)
    assert not watched.is_undone()
    model.main.set_operator(node(model, "f"), "Sin")
    assert not watched.is_undone()
    model.undo_to(mark)
    assert watched.is_undone()


def test_harmless_edits_change_nothing_that_is_computed() -> None:
    model = parsed(CHAIN)
    watched = Watched(model)
    model.main.rename_node(node(model, "a"), "other")
    assert not watched.has_changed()


# --- borders --------------------------------------------------------------------------------------


def test_borders_have_the_types_of_values() -> None:
    text = """(float[N,3] x, float q) => (float[?] y) {
        s = Shape(x)  i = NonZero(x)  y = Neg(q) }"""
    model = parsed(text)
    shown = {name: str(border_of(model, name)) for name in ("x", "s", "q")}
    assert shown == {"x": "float[N,3]", "s": "int64[2]", "q": "float[]"}
    counted = border_of(model, "i")
    assert counted is not None
    assert counted.dims is not None
    assert counted.dims[0] == 2
    assert len(counted.names(assignments()[0])) == 1
    border = border_of(model, "s")
    assert border is not None
    assert border.elements is not None
    assert [str(each) for each in border.elements] == ["N", "3"]
    assert border_of(model, "nowhere") is None


def test_a_border_of_unknown_rank_is_named() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21, "own": 1]> g (float[N] x) => (float y) {'
        " u = own.Made(x)  y = Neg(x) }"
    )
    model = Model.from_proto(proto)
    assert border_of(model, "u") is None
    model.main.set_type(named(model, "u"), tensor_type(FLOAT, None))
    assert border_of(model, "u") == Border(FLOAT, None, "u")
    model.main.set_type(named(model, "u"), tensor_type(FLOAT, (None, 3)))
    assert str(border_of(model, "u")) == "float[u[0],3]"


def test_nodes_around_others_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, found in ((3, 2), (5, 2), (6, 6), (14, 14), (1, 0)):
        monkeypatch.setattr(watched_rewrites, "MOST_BETWEEN", most)
        around = watched_rewrites._around([0], lambda at: [2 * at + 1, 2 * at + 2])
        assert around == {*range(1, found + 1)}, most


@pytest.mark.parametrize("name", ["b", "m", "f", "q"])
def test_only_integers_of_vectors_are_known_elements(name: str) -> None:
    text = """(float[N] x, int64[1] i) => (float[N] y) <bool[1] b = {1}, int64[1,1] m = {3},
        float[1] f = {2}, int64[1] k = {4}> {
        q = Concat<axis = 0>(k, i)  c = Not(b)  d = Neg(m)  e = Neg(f)  y = Neg(x) }"""
    border = border_of(parsed(text), name)
    assert border is None or border.elements is None
