"""Matches of dataflow patterns: names of parts, expressions, functions, callbacks."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.recorded import assert_values
from tests.small import made_by, model, named, ops, proto
from tiered import Value
from tiered.compat.tvm.patterns.dataflow_pattern import (
    DFPattern,
    DFPatternCallback,
    is_constant,
    is_op,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from tiered.compat.tvm.patterns.expression_matches import (
    PARTITIONED,
    Parts,
    call_of,
    find,
    partition_model,
    rewrite_model,
)
from tiered.graph.core.marks import SKIP
from tiered.support.errors import ModelError, PassError, UsageError

TEXT = """g (float[2] x) => (float[2] y, float[1] s, float[1] t) <float[2] w = {1,2}> {
    a = Neg(x)  b = Add(a, w)  y = Relu(b)  s, t = Split<num_outputs=2>(y) }"""


# --- parts ----------------------------------------------------------------------------------------


def test_a_part_has_one_name_and_its_values() -> None:
    parts, first, second = Parts(), wildcard(), wildcard()
    assert [parts.name_of(each) for each in (first, second, first)] == ["p0", "p1", "p0"]
    of = model(TEXT)
    a, x = named(of, "a"), named(of, "x")
    split = made_by(of, "s")
    assert parts.node_map({"p0": a, "p1": None}) == {first: [a]}
    assert parts.node_map({"p0": split}) == {first: [named(of, "s")]}
    assert parts.node_map({"p0": (a, None, x), "p1": [x]}) == {first: [a, x], second: [x]}
    assert parts.node_map({"other": a}) == {}


def test_a_part_that_is_one_of_others_has_the_values_of_the_first() -> None:
    parts, one, two, either = Parts(), wildcard(), wildcard(), wildcard()
    of = model(TEXT)
    a, x = named(of, "a"), named(of, "x")
    names = parts.name_of(one), parts.name_of(two)
    parts.same(either, (one, two))
    assert parts.node_map({names[1]: x})[either] == [x]
    assert parts.node_map(dict(zip(names, (a, x), strict=True)))[either] == [a]
    assert either not in parts.node_map({})


# --- expressions ----------------------------------------------------------------------------------


def test_an_expression_is_a_value_or_what_has_one_output() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Relu(a) }")
    y = named(of, "y")
    for expr in (y, y.producer, of.main, of):
        assert call_of(expr) is y
    assert call_of(proto("g (float[2] x) => (float[2] y) { y = Neg(x) }")).name == "y"


def test_an_expression_of_several_outputs_is_none() -> None:
    of = model(TEXT)
    for expr in (of, of.main):
        with pytest.raises(UsageError, match="an expression is one value, and this has 3 outputs"):
            call_of(expr)
    assert call_of(made_by(of, "s")).name == "s"
    with pytest.raises(
        UsageError, match="an expression is a Model, a ModelProto or a Value, not 3"
    ):
        call_of(3)


def test_a_value_matches_its_pattern_and_its_parts_have_values() -> None:
    of = model(TEXT)
    data, weight = wildcard(), is_constant()
    add = is_op("add")(data, weight)
    found = find(add, named(of, "b"))
    assert found is not None
    assert (found[data], found[weight], found[add]) == (
        [named(of, "a")],
        [named(of, "w")],
        [named(of, "b")],
    )
    for other in ("a", "y", "x", "w"):
        assert find(add, named(of, other)) is None


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (is_var(), {"x"}),
        (is_var("x"), {"x"}),
        (is_var("z"), set()),
        (is_constant(), {"w"}),
        (wildcard(), {"x", "w", "a", "b", "y", "s", "t"}),
        (is_op("nn.relu")(wildcard()) | is_var(), {"y", "x"}),
        (is_op("abs")(wildcard()) | is_op("negative")(wildcard()), {"a"}),
    ],
)
def test_leaves_and_choices_match_values(pattern: DFPattern, names: set[str]) -> None:
    of = model(TEXT)
    found = {name for name, value in of.main.values.items() if find(pattern, value) is not None}
    assert found == names


# --- functions ------------------------------------------------------------------------------------

RELU = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))


def test_matches_become_calls_and_the_rest_stays() -> None:
    given = model(TEXT)
    made = partition_model(RELU, given, {}, lambda value: True)
    assert made is given
    assert ops(made) == ["Neg", "pattern_Add_Relu", "Split"]
    (function,) = made.to_proto().functions
    assert {each.key: each.value for each in function.metadata_props} == {PARTITIONED: "Add_Relu_"}
    copy = partition_model(RELU, proto(TEXT), {"Composite": "c"}, lambda value: True)
    (entry, other) = copy.functions[0].metadata_props
    assert {entry.key: entry.value, other.key: other.value} == {
        PARTITIONED: "Add_Relu_",
        "Composite": "c",
    }


def test_a_check_gets_the_value_and_may_refuse_it() -> None:
    seen: list[str] = []
    given = model(TEXT)

    def refuse(value: Value) -> bool:
        seen.append(value.name)
        return False

    partition_model(RELU, given, {}, refuse)
    assert (seen, ops(given)) == (["y"], ["Neg", "Add", "Relu", "Split"])


def test_matches_that_overlap_are_taken_once() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Neg(c) }"
    twice = is_op("negative")(is_op("negative")(wildcard()))
    made = partition_model(twice, model(text), {}, lambda value: True)
    assert ops(made) == ["pattern_Neg_Neg", "pattern_Neg_Neg_1"]


def test_an_old_model_has_functions_without_metadata() -> None:
    given = proto(TEXT)
    given.ir_version = 8
    made = partition_model(RELU, given, {}, lambda value: True)
    assert not made.functions[0].metadata_props
    with pytest.raises(ModelError):
        partition_model(RELU, given, {"Composite": "c"}, lambda value: True)
    assert not given.functions


# --- callbacks ------------------------------------------------------------------------------------


def callback(pattern: DFPattern, change: Any, **more: Any) -> DFPatternCallback:
    """Return the callback of a pattern."""

    class Own(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(**more)
            self.pattern = pattern

        def callback(self, pre: Value, post: Value, node_map: Mapping[Any, list[Value]]) -> Any:
            return change(pre, node_map)

    return Own()


def test_a_callback_returns_the_value_that_takes_the_place() -> None:
    data = wildcard()
    relu = is_op("nn.relu")(data)
    drop = callback(relu, lambda value, parts: parts[data][0])
    given = proto(TEXT)
    made = rewrite_model([drop], given)
    assert "Relu" not in ops(made)
    assert "Relu" in ops(given)
    view = model(TEXT)
    assert rewrite_model([drop], view) is view


def test_callbacks_run_one_after_the_other() -> None:
    data = wildcard()
    to_abs = callback(
        is_op("negative")(data), lambda value, parts: value.owner.op.Abs(parts[data][0])
    )
    to_exp = callback(is_op("abs")(data), lambda value, parts: value.owner.op.Exp(parts[data][0]))
    assert ops(rewrite_model([to_abs, to_exp], model(TEXT)))[0] == "Exp"
    assert ops(rewrite_model([to_exp, to_abs], model(TEXT)))[0] == "Abs"


def test_a_callback_that_returns_its_value_changes_nothing() -> None:
    given = model(TEXT)
    before = given.to_proto()
    rewrite_model([callback(is_op("negative")(wildcard()), lambda value, parts: value)], given)
    assert given.to_proto() == before


@pytest.mark.parametrize("wrong", [None, 3, "y"])
def test_a_callback_returns_a_value(wrong: object) -> None:
    given = model(TEXT)
    before = given.to_proto()
    own = callback(is_op("negative")(wildcard()), lambda value, parts: wrong)
    with pytest.raises(UsageError, match=f"Own.callback returned {wrong!r}: expected a Value of"):
        rewrite_model([own], given)
    assert given.to_proto() == before


def test_a_callback_for_another_output_gets_it() -> None:
    text = "g (float[2] x) => (float[1] y, float[1] z) { y, z = Split<num_outputs=2>(x) }"
    seen: list[str] = []

    def note(value: Value, parts: Any) -> Value:
        seen.append(value.name)
        return value

    split = is_op("split")(wildcard())
    rewrite_model([callback(is_tuple_get_item(split, 1), note)], model(text))
    assert seen == ["z"]


def test_a_callback_whose_result_matches_again_ends_with_an_error_or_runs_once() -> None:
    data = wildcard()

    def again(value: Value, parts: Any) -> Any:
        return value.owner.op.Neg(parts[data][0])

    neg = is_op("negative")(data)
    with pytest.raises(PassError):
        rewrite_model([callback(neg, again)], model(TEXT))
    made = rewrite_model([callback(neg, again, rewrite_once=True)], model(TEXT))
    assert ops(made).count("Neg") == 1


def test_edits_by_patterns_are_recorded() -> None:
    def functions(of: Any) -> object:
        made = of.to_proto()
        return [
            (f.domain, f.name, [node.op_type for node in f.node],
             {each.key: each.value for each in f.metadata_props})
            for f in made.functions
        ]  # fmt: skip

    def partitioned(
        pattern: DFPattern, text: str = TEXT, check: Any = bool, skipped: str = "", **attrs: str
    ) -> object:
        of = model(text)
        for node in of.main.nodes:
            if node.label == skipped:
                of.main.set_metadata(node, {SKIP: "true"})
        made = partition_model(pattern, of, attrs, lambda value: check(value.name))
        assert made is of
        nodes = made.main.topological_order()
        return [(node.op_type, node.name) for node in nodes], functions(made)

    def rewritten(*callbacks: DFPatternCallback, text: str = TEXT) -> object:
        return [node.op_type for node in rewrite_model(callbacks, model(text)).main.nodes]

    names = {
        "partitioned": partitioned, "rewritten": rewritten, "callback": callback, "is_op": is_op,
        "is_constant": is_constant, "is_var": is_var, "wildcard": wildcard, "RELU": RELU,
        "is_tuple_get_item": is_tuple_get_item, "of": model(TEXT), "call_of": call_of,
        "made_by": made_by, "proto": proto, "Parts": Parts, "find": find,
        "DEAD": "g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(x) y = Relu(b) }",
        "PLAIN": DFPatternCallback, "ops": ops, "rewrite_model": rewrite_model,
        "TWICE": "g (float[2] x) => (float[2] y) { a = Neg(x) b = Relu(a) c = Neg(b) y = Relu(c) }",
    }  # fmt: skip
    assert_values(__file__, names)
