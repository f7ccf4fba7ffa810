"""Edits wound back: each touched node as it was before, and as it is."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.each_edit import EDITS
from tests.graph.editor import fresh
from tests.small import made_by, named, parsed
from tiered.graph import Graph, Model, Tensor
from tiered.graph.core.edit import Edit
from tiered.pipeline.instruments.tracing.changes import NodeState, Rewind, state_of

TEXT = """(float[4] x) => (float[2] y, float[4] z) <float[4] w = {1,2,3,4}> {
    [add] a = Add(x, w)  [cut] p, q = Split<num_outputs=2>(a)  [sub] y = Sub(p, q)
    [neg] z = Neg(a) }"""


def rewound(edit: Callable[[Model, Graph], object]) -> tuple[Model, Rewind]:
    model = parsed(TEXT)
    mark = model.mark()
    edit(model, model.main)
    return model, Rewind(model.journal.entries[mark:])


def lines(rewind: Rewind) -> list[str]:
    return [f"{change.before} => {change.after}" for change in rewind.changes()]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            lambda m, g: g.set_input(made_by(m, "a"), 1, named(m, "x")),
            ["[add] a = Add (x, w) => [add] a = Add (x, x)"],
        ),
        (
            lambda m, g: g.set_inputs(made_by(m, "a"), [named(m, "w"), None, named(m, "x")]),
            ['[add] a = Add (x, w) => [add] a = Add (w, "", x)'],
        ),
        (lambda m, g: g.set_operator(made_by(m, "a"), "Mul"),
         ["[add] a = Add (x, w) => [add] a = Mul (x, w)"]),
        (lambda m, g: g.rename_node(made_by(m, "a"), "new"),
         ["[add] a = Add (x, w) => [new] a = Add (x, w)"]),
        (
            lambda m, g: g.rename_value(named(m, "a"), "b"),
            [
                "[add] a = Add (x, w) => [add] b = Add (x, w)",
                "[cut] p, q = Split (a) => [cut] p, q = Split (b)",
                "[neg] z = Neg (a) => [neg] z = Neg (b)",
            ],
        ),
        (lambda m, g: g.add_node("Abs", (named(m, "x"),), ["n"], name="abs"),
         ["None => [abs] n = Abs (x)"]),
        (
            lambda m, g: g.exchange_outputs(made_by(m, "p"), 0, made_by(m, "p"), 1),
            ["[cut] p, q = Split (a) => [cut] q, p = Split (a)"],
        ),
        (
            lambda m, g: g.fold_to_initializer(
                made_by(m, "a"), 0, Tensor.of(np.zeros(4, np.float32))
            ),
            ["[add] a = Add (x, w) => None"],
        ),
        (lambda m, g: g.constant(np.zeros(1)), []),
    ],
)  # fmt: skip
def test_each_edit_is_wound_back(
    edit: Callable[[Model, Graph], object], expected: list[str]
) -> None:
    _, rewind = rewound(edit)
    assert lines(rewind) == expected


def test_edits_of_one_node_are_one_change() -> None:
    def edit(model: Model, graph: Graph) -> None:
        node = made_by(model, "a")
        graph.set_input(node, 0, named(model, "w"))
        graph.rename_node(node, "new")
        graph.set_input(node, 1, named(model, "x"))
        graph.rename_value(named(model, "x"), "renamed")

    assert lines(rewound(edit)[1]) == ["[add] a = Add (x, w) => [new] a = Add (w, renamed)"]


def test_a_node_that_comes_and_goes_is_no_change() -> None:
    def edit(model: Model, graph: Graph) -> None:
        graph.remove_node(graph.add_node("Abs", (named(model, "x"),)))

    assert lines(rewound(edit)[1]) == []


def test_a_change_that_is_taken_back_is_none_but_for_a_new_proto() -> None:
    def edit(model: Model, graph: Graph) -> None:
        node = made_by(model, "a")
        graph.set_input(node, 0, named(model, "w"))
        graph.set_input(node, 0, named(model, "x"))

    assert lines(rewound(edit)[1]) == []


def test_constants_that_come_and_go_have_names() -> None:
    def edit(model: Model, graph: Graph) -> None:
        graph.constant(np.zeros(1), "new")
        made_by(model, "a").owner.set_input(made_by(model, "a"), 1, named(model, "x"))
        graph.remove_constant(named(model, "w"))

    _, rewind = rewound(edit)
    assert (rewind.added, rewind.removed) == (["new"], ["w"])
    folded = rewound(
        lambda m, g: g.fold_to_initializer(made_by(m, "a"), 0, Tensor.of(np.zeros(4, np.float32)))
    )[1]
    assert (folded.added, folded.removed) == (["a"], [])


def test_the_name_before_is_known() -> None:
    def edit(model: Model, graph: Graph) -> None:
        graph.rename_value(named(model, "a"), "b")
        graph.rename_value(named(model, "b"), "c")

    model, rewind = rewound(edit)
    assert rewind.name_before(named(model, "c")) == "a"
    assert rewind.name_before(named(model, "x")) == "x"


def test_the_text_of_each_changed_node_before_and_after() -> None:
    def edit(model: Model, graph: Graph) -> None:
        node = made_by(model, "z")
        graph.set_attribute(node, "k", 1)
        graph.add_node("Abs", (named(model, "x"),), ["n"], name="abs")
        graph.rename_value(named(model, "w"), "weight")

    _, rewind = rewound(edit)
    texts = {node.label: (before, after) for node, before, after in rewind.texts()}
    assert set(texts) == {"neg", "abs", "add"}
    assert "k" not in texts["neg"][0]
    assert "k" in texts["neg"][1]
    assert texts["abs"][0] == ""
    assert "w)" in texts["add"][0]
    assert "weight)" in texts["add"][1]


def test_a_removed_node_has_its_text_before_and_none_after() -> None:
    model = parsed(TEXT)
    extra = model.main.add_node("Abs", (named(model, "x"),), ["n"], name="abs")
    mark = model.mark()
    model.main.remove_node(extra)
    ((node, before, after),) = Rewind(model.journal.entries[mark:]).texts()
    assert (node, after) == (extra, "")
    assert "Abs" in before


@pytest.mark.parametrize("kind", EDITS, ids=lambda kind: kind.name)
def test_what_is_wound_back_is_what_was(kind: Edit) -> None:
    model = fresh()
    nodes = [node for graph in model.graphs() for node in graph.nodes]
    states = {node.id: state_of(node) for node in nodes}
    mark = model.mark()
    EDITS[kind](model, model.main)
    for change in Rewind(model.journal.entries[mark:]).changes():
        number = (change.before or change.after).id  # type: ignore[union-attr]  # one of both is there
        assert states.get(number) == change.before


def test_a_state_names_operator_and_node() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }")
    node = made_by(model, "y")
    node.owner.rename_node(node, "")
    assert state_of(node) == NodeState(node.id, "com.microsoft::Gelu", "y", ("x",), ("y",))
