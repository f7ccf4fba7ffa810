"""The pieces of a model that change are those that edits account for."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.graph import Model, Tensor
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
