"""The pieces of a model that change are those that edits account for."""

from collections.abc import Callable

import numpy as np
import pytest
from onnx import numpy_helper

from tests.graph.each_edit import EDITS as EACH
from tests.graph.editor import fresh
from tests.small import made_by, named, parsed
from tiered.graph import Model, Tensor
from tiered.graph.core.edit import Edit
from tiered.graph.queries.fingerprint import fingerprint, unaccounted

TEXT = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[2] x, bool p) => (float[2] y) <float[2] w = {1,2}> {
    a = Neg(x)  b = Add(a, w)  c = local.Twice(b)
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(c) },
               else_branch = e () => (float[2] v) { v = Abs(a) }> }
    <domain: "local", opset_import: ["" : 21]> Twice (m) => (n) { n = Add(m, m) }"""
LARGEST = 1 << 20


def rename_value(model: Model) -> None:
    model.main.rename_value(named(model, "a"), "other")


def rename_captured(model: Model) -> None:
    model.main.rename_value(named(model, "c"), "other")


def add_node(model: Model) -> None:
    model.main.op.Relu(named(model, "a"))


def replace_node(model: Model) -> None:
    model.main.replace(
        made_by(model, "b"), [model.main.op.Sub(named(model, "a"), named(model, "w"))]
    )


def remove_if(model: Model) -> None:
    model.main.replace(made_by(model, "y"), [named(model, "c")])


def inside_body(model: Model) -> None:
    body = made_by(model, "y").bodies[0]
    body.rename_node(body.nodes[0], "other")


def set_constant(model: Model) -> None:
    model.main.set_constant(named(model, "w"), Tensor.of(np.array([3, 4], np.float32)))


def add_constant(model: Model) -> None:
    model.main.constant(np.array([3, 4], np.float32))


def add_input(model: Model) -> None:
    model.main.add_input("z", named(model, "x").type)


def other_output(model: Model) -> None:
    model.main.set_graph_outputs([named(model, "b")], model.main.output_infos)


def remove_function(model: Model) -> None:
    model.main.replace(made_by(model, "c"), [named(model, "b")])
    model.remove(model.functions[0])


def in_function(model: Model) -> None:
    function = model.functions[0]
    function.rename_value(named(function, "m"), "other")


def ir_version(model: Model) -> None:
    model.set_ir_version(9)


def metadata(model: Model) -> None:
    model.set_metadata({"a": "b"})


EDITS = [
    rename_value, rename_captured, add_node, replace_node, remove_if, inside_body, set_constant,
    add_constant, add_input, other_output, remove_function, in_function, ir_version, metadata,
]  # fmt: skip


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: str(edit.__name__))
def test_edits_account_for_what_they_change(edit: Callable[[Model], None]) -> None:
    model = parsed(TEXT)
    before, mark = fingerprint(model, LARGEST), model.mark()
    edit(model)
    after = fingerprint(model, LARGEST)
    assert list(unaccounted(before, after, model.journal.since(mark))) == []
    without = list(unaccounted(before, after, []))
    assert without
    assert all(text.endswith((" is another", " is gone", " is new")) for text in without)
    assert list(unaccounted(after, after, [])) == []


def test_what_changes_behind_the_journal_is_named() -> None:
    model = parsed(TEXT)
    before = fingerprint(model, LARGEST)
    made_by(model, "b").proto.doc_string = "changed"
    (text,) = unaccounted(before, fingerprint(model, LARGEST), [])
    assert text == f"node {made_by(model, 'b').label!r} is another"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([1, 2], np.float32), np.array([1, 3], np.float32)),
        (np.array([1, 2], np.int64), np.array([2, 1], np.int64)),
        (np.array(["a", "b"], object), np.array(["a", "c"], object)),
    ],
)
def test_contents_of_constants_count_up_to_a_size(one: np.ndarray, other: np.ndarray) -> None:
    model = parsed(TEXT)
    value = model.main.constant(one)
    before = fingerprint(model, LARGEST)
    model.main.set_constant(value, Tensor.of(other))
    (text,) = unaccounted(before, fingerprint(model, LARGEST), [])
    assert text == f"initializer {value.name!r} is another"
    equal = fingerprint(model, LARGEST)
    model.main.set_constant(value, Tensor.of(other.copy()))
    assert list(unaccounted(equal, fingerprint(model, LARGEST), [])) == []
    large = fingerprint(model, 1)
    model.main.set_constant(value, Tensor.of(other.copy()))
    assert len(list(unaccounted(large, fingerprint(model, 1), []))) == 1


WITHOUT: dict[Edit, list[str]] = {
    Edit.ADD_NODE: ["node 'Neg' is new"],
    Edit.REMOVE_NODE: ["node 'dead' is gone"],
    Edit.SET_INPUT: ["node 'a' is another"],
    Edit.SET_INPUTS: ["node 'a' is another"],
    Edit.SET_OUTPUTS: ["node 'dead' is another"],
    Edit.SET_PROTO: ["node 'a' is another"],
    Edit.RENAME_NODE: ["node 'n' is another"],
    Edit.ADD_CONSTANT: ["initializer 'const' is new"],
    Edit.REMOVE_CONSTANT: ["initializer 'unused' is gone"],
    Edit.SET_CONSTANT: ["initializer 'k' is another"],
    Edit.SET_TYPE: [],
    Edit.RENAME_VALUE: ["node 'aa' is another", "node 'b' is another", "node 'dead' is another", "node 'q' is another", "node 'r2' is another"],
    Edit.SET_GRAPH_INPUTS: ["graph 'g' is another"],
    Edit.SET_GRAPH_OUTPUTS: ["graph 'g' is another"],
    Edit.EXCHANGE_GRAPH_OUTPUT: ["graph 'g' is another"],
    Edit.ADD_FUNCTION: ['the model is another', "graph 'once' is new", "node 'u' is new"],
    Edit.REMOVE_FUNCTION: ['the model is another', "graph 'choose' is gone", "node 'u' is gone", "graph 'yes' is gone", "node 'h' is gone", "graph 'no' is gone", "node 'h' is gone", "initializer 'one' is gone"],
    Edit.SET_OPSET: ['the model is another'],
    Edit.EXCHANGE_OUTPUTS: ["node 'dead2' is another"],
    Edit.FOLD_TO_INITIALIZER: ["node 'a' is gone", "initializer 'a' is new"],
    Edit.SET_ORDER: [],
    Edit.SET_DECLARATIONS: ["graph 'g' is another"],
    Edit.MOVE_NODE: ["node 'Neg' is new"],
    Edit.MOVE_CONSTANT: [],
    Edit.SET_IR_VERSION: ['the model is another'],
    Edit.SET_SKELETON: ['the model is another'],
    Edit.SET_ANNOTATIONS: ["node 'b' is another", "node 'dead' is another", "node 'q' is another", "node 'r2' is another", "node 'Abs' is new"],
    Edit.EXCHANGE_CONTENT: ['the model is another', "graph 'g' is gone", "graph 't' is gone", "graph 'tt' is gone", "graph 'te' is gone", "graph 'e' is gone", "graph 'l' is gone", "graph 'twice' is gone", "graph 'choose' is gone", "graph 'yes' is gone", "graph 'no' is gone", "graph 'g' is new", "graph 't' is new", "graph 'tt' is new", "graph 'te' is new", "graph 'e' is new", "graph 'l' is new", "graph 'twice' is new", "graph 'choose' is new", "graph 'yes' is new", "graph 'no' is new"],
    Edit.FORGET_TYPES: [],
}  # fmt: skip


def test_each_kind_of_edit_accounts_for_what_it_changes() -> None:
    for kind, edit in EACH.items():
        model = fresh()
        model.main.dag  # noqa: B018  # as passes have it
        before = fingerprint(model, LARGEST)
        edit(model, model.main)
        after, edits = fingerprint(model, LARGEST), model.journal.entries
        assert list(unaccounted(before, after, edits)) == [], kind
        assert list(unaccounted(before, after, [])) == WITHOUT[kind]


def test_edits_account_for_nothing_else() -> None:
    model = fresh()
    graph, body = model.main, model.main.nodes_of("If")[0].bodies[0]
    other = fresh()
    before = fingerprint(model, LARGEST)
    inner = body.add_node("Neg", (graph.inputs[0],), name="inner")
    outer = graph.add_node("Neg", (graph.inputs[0],), name="outer")
    after = fingerprint(model, LARGEST)
    by_node = {entry[1]: entry for entry in model.journal.entries}
    for edits, expected in (
        ([inner, outer], []), ([inner], ["node 'outer' is new"]), ([outer], ["node 'inner' is new"]),
    ):  # fmt: skip
        assert list(unaccounted(before, after, [by_node[each] for each in edits])) == expected
    assert list(unaccounted(after, before, [by_node[outer]])) == ["node 'inner' is gone"]
    whole = (Edit.SET_PROTO, body.parent_node, None)
    assert list(unaccounted(before, after, [whole, by_node[outer]])) == []
    found = list(unaccounted(before, fingerprint(other, LARGEST), []))
    assert len(found) == 21


def test_contents_up_to_the_limit_are_looked_at_and_files_are_not() -> None:
    array = np.array([1, 2], np.float32)
    for tensors, largest, is_another in (
        ((Tensor.of(array), Tensor.of(array.copy())), 8, False),
        ((Tensor.of(array), Tensor.of(array.copy())), 7, True),
        ((Tensor(numpy_helper.from_array(array)), Tensor(numpy_helper.from_array(array))), 8, False),
        ((Tensor(numpy_helper.from_array(array)), Tensor(numpy_helper.from_array(-array))), 8, True),
        ((Tensor.of(array, in_memory=0), Tensor.of(array, in_memory=0)), 8, True),
        ((Tensor.of(array[:0]), Tensor.of(array[:0].copy())), 8, False),
        ((Tensor.of(array[:0]), Tensor.of(np.zeros(1, np.float32))), 8, True),
    ):  # fmt: skip
        model = parsed(TEXT)
        value = model.main.constant(tensors[0])
        before = fingerprint(model, largest)
        model.main.set_constant(value, tensors[1])
        assert bool(list(unaccounted(before, fingerprint(model, largest), []))) is is_another


def test_a_function_has_its_own_imports() -> None:
    model = parsed(TEXT)
    (function,) = model.functions
    before = fingerprint(model, LARGEST)
    model.set_opset("other", 1, function)
    (text,) = unaccounted(before, fingerprint(model, LARGEST), [])
    assert text == "graph 'Twice' is another"
    assert list(unaccounted(before, fingerprint(model, LARGEST), model.journal.entries)) == []
    before, mark = fingerprint(model, LARGEST), model.mark()
    node = model.main.add_node("Neg", (model.main.inputs[0],))
    name = node.output
    model.main.rename_value(name, "other")
    model.main.remove_node(node)
    assert list(unaccounted(before, fingerprint(model, LARGEST), model.journal.since(mark))) == []
