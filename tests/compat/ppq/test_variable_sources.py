"""Sources of variables are exchanged, taken away and given; no variable that is read loses one."""

from typing import Any

import pytest

from tests.compat.ppq.small_graphs import SPLIT as PARTS
from tests.recorded import assert_values
from tests.small import made_by, model, named, ops
from tiered import Model
from tiered.compat.ppq.variable_sources import (
    exchange,
    give,
    is_missing,
    join,
    operations_among,
    remove,
    source_of,
    take_away,
)
from tiered.graph.edits import surgery
from tiered.support.errors import ModelError

TEXT = "(float[2] x) => (float[2] y) { a = Relu(x)  b = Neg(x)  y = Add(a, b) }"
SPLIT = """(float[4] x) => (float[1] y) <int64[3] s = {1,1,2}> {
    a, b, c = Split(x, s)  y = Add(a, b)  d = Neg(x) }"""


def view(text: str = TEXT) -> Model:
    return model("g " + text)


def test_what_is_read_keeps_its_name_without_a_source() -> None:
    of = view()
    a, relu = named(of, "a"), made_by(of, "a")
    take_away(a)
    assert source_of(a) is None
    assert is_missing(a.producer)
    assert list(a.readers) == [made_by(of, "y")]
    assert relu.outputs[0] is not a
    assert relu not in a.readers
    assert [node.op_type for node in operations_among(of.main.nodes)].count("Relu") == 1
    assert len(operations_among(of.main.nodes)) == 3 == len(of.main.nodes) - 1


def test_what_nothing_reads_is_no_output_of_its_source_any_more() -> None:
    of = view(SPLIT)
    c, split = named(of, "c"), made_by(of, "c")
    take_away(c)
    assert c.producer is None
    assert len(split.outputs) == 3
    assert c not in split.outputs
    assert not any(map(is_missing, of.main.nodes))


def test_an_output_of_the_graph_counts_as_read() -> None:
    of = view()
    take_away(named(of, "y"))
    assert is_missing(made_by(of, "y"))


def test_what_has_no_source_has_none_to_take_away() -> None:
    of = view()
    before = ops(of)
    take_away(named(of, "x"))
    assert ops(of) == before


def test_a_source_that_is_given_again_changes_nothing() -> None:
    of = view(SPLIT)
    give(named(of, "a"), made_by(of, "a"))
    assert [value and value.name for value in made_by(of, "a").outputs] == ["a", "b", "c"]


def test_a_given_source_takes_the_place_of_the_one_before() -> None:
    of = view()
    a, relu = named(of, "a"), made_by(of, "a")
    other = of.main.add_node("Abs", (named(of, "x"),), ())
    give(a, other)
    assert source_of(a) is other
    assert a.index == 0
    assert relu.outputs[0] is not a
    assert list(a.readers) == [made_by(of, "y")]


def test_the_node_of_a_missing_source_goes_when_there_is_one() -> None:
    of = view()
    a, relu = named(of, "a"), made_by(of, "a")
    take_away(a)
    give(a, relu)
    assert source_of(a) is relu
    assert not any(map(is_missing, of.main.nodes))


@pytest.mark.parametrize("name", ["x", "s"])
def test_inputs_and_parameters_have_no_source(name: str) -> None:
    of = view(SPLIT)
    with pytest.raises(ModelError, match=f"'{name}' is an input or a parameter"):
        give(named(of, name), made_by(of, "d"))
    with pytest.raises(ModelError, match=f"'{name}' has a source already"):
        exchange(made_by(of, "d"), 0, named(of, name))


def test_an_operation_without_a_free_output_is_no_further_source() -> None:
    of = view()
    with pytest.raises(ModelError, match="has 1 output, and Add no more: all are used"):
        give(named(of, "a"), made_by(of, "y"))


def test_a_place_that_nothing_reads_is_given_away() -> None:
    of = view(SPLIT)
    neg = made_by(of, "d")
    give(named(of, "a"), neg)
    assert [value and value.name for value in neg.outputs] == ["a"]


def test_another_output_leaves_the_former_one_without_a_source() -> None:
    of = view()
    a, b = named(of, "a"), named(of, "b")
    relu = made_by(of, "a")
    with pytest.raises(ModelError, match="'b' has a source already"):
        exchange(relu, 0, b)
    take_away(b)
    exchange(relu, 0, b)
    assert source_of(b) is relu
    assert source_of(a) is None
    assert is_missing(a.producer)


def test_an_output_that_stays_is_not_exchanged() -> None:
    of = view()
    exchange(made_by(of, "a"), 0, named(of, "a"))
    assert not any(map(is_missing, of.main.nodes))


def test_what_a_removed_operation_computes_may_still_be_read() -> None:
    of = view(SPLIT)
    remove(made_by(of, "a"))
    assert [is_missing(named(of, name).producer) for name in "ab"] == [True, True]
    assert of.main.value("c") is None
    assert of.main.value("s") is None  # only the operation read it


def test_sources_are_recorded() -> None:
    def edited(edit: Any, text: str = PARTS) -> object:
        of = model(text)

        def value(name: str) -> Any:
            return surgery.new_value(of.main, name) if name == "new" else named(of, name)

        edit(value, lambda name: made_by(of, name))
        rows = []
        for node in of.main.nodes:
            read, made = ([v and v.name for v in vs] for vs in (node.inputs, node.outputs))
            rows.append(f"{node.op_type} {read} {made}")
        return rows, [v.name for v in of.main.outputs]

    norm = """g (float[2] x) => (float[2] y, float[1] d) <float[2] s = {1,2}> {
        y, , d = LayerNormalization(x, s)  q = own.F(x)  r = Neg(q) }"""
    assert_values(__file__, {"NORM": norm, "edited": edited, "take_away": take_away,
                             "give": give, "join": join,
                             "exchange": exchange, "remove": remove})  # fmt: skip
