"""Parts of a view: what edits change is what the journal says, and no other node is read again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.small import named
from tiered import Model, PassInfo, optimize_model
from tiered.graph import Edit, Graph, Node, Stamp
from tiered.graph.core.graph import Function
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import tensor_type
from tiered.graph.edits.nodes import move_node
from tiered.graph.edits.operand_edits import exchange_outputs
from tiered.graph.edits.value_edits import move_constant
from tiered.verify.live_extract import (
    PartEdits,
    advance,
    is_harmless,
    part_after,
    part_of,
    types_of,
)
from tiered.verify.part_extraction import GraphPart

NESTED = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
    g (bool c, float[2] x) => (float[2] y) { a = Neg(x)  i = Identity(a)
        b = If(c) <then_branch = t () => (float[2] p) { q = Identity(i)  p = f.twice(q) },
                   else_branch = e () => (float[2] r) { s = Relu(x)  r = Relu(s) }>
        d = f.twice(b)  y = Identity(d) }
    <domain: "f", opset_import: ["": 21]> twice (x) => (y) {
        z = Identity(x)  v = Relu(z)  w = Relu(v)  y = Add(w, w) }"""


class Follows:
    """An instrument that holds what the journal says of a part against the model as it is."""

    def __init__(self) -> None:
        self.part: GraphPart | None = None
        self.stamp: Stamp | None = None
        self.compared = 0

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if self.stamp is None or model.journal.kept_since(self.stamp) < self.stamp.length:
            self.part, self.stamp = part_of(model), model.journal.stamp()

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        assert self.part is not None
        assert self.stamp is not None
        if not model.journal.moved_since(self.stamp):
            return
        found, _ = part_after(self.part, model, model.journal.since(self.stamp.length))
        wanted = part_of(model)
        assert _said(found) == _said(wanted), info.name
        self.part, self.stamp = found, model.journal.stamp()
        self.compared += 1


def _said(part: GraphPart) -> tuple[object, ...]:
    nodes = {at: node.SerializeToString(deterministic=True) for at, node in part.nodes.items()}
    readers = {name: at for name, at in part.consumers.items() if at}
    ends = tuple(part.inputs.items()), tuple(part.outputs.items()), part.weights
    return nodes, part.reads, part.producer, readers, ends, part.frame.SerializeToString()


def test_the_journal_keeps_a_part_as_the_model_is() -> None:
    path = Path(__file__).parents[2] / "examples" / "models" / "bert.ts.onnx"
    for given in (onnx.load(path), onnx.parser.parse_model(NESTED)):
        follows = Follows()
        optimize_model(given, opt_level=3, instruments=[follows])
        assert follows.compared > 2


MIXED = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
    g (bool c, float[2] x, float[2] z) => (float[2] y, float[2] p)
    <float[2] w = {1, 2}, float[2] v = {3, 4}> {
        a = Neg(x)
        b = If(c) <then_branch = t () => (float[2] q) <float[2] k = {5, 6}> { q = Mul(a, k) },
                   else_branch = e () => (float[2] r) { s = Add(z, w)  r = Relu(s) }>
        m = Constant<value = float[2] {7, 8}>()  d = f.twice(b)  p = Add(d, v)  y = Sub(p, m) }
    <domain: "f", opset_import: ["": 21]> twice (x) => (y) { t = Neg(x)  y = Add(t, t) }"""


def mixed() -> Model:
    return Model.from_proto(onnx.parser.parse_model(MIXED))


def producer(model: Model | Graph, name: str) -> Node:
    node = named(model, name).producer
    assert node is not None
    return node


def body(model: Model, at: int) -> Graph:
    return producer(model, "b").bodies[at]


def _function(model: Model) -> Function:
    (function,) = model.functions
    return function


def _drop_weight(model: Model) -> None:
    model.main.set_input(producer(model, "p"), 1, named(model, "x"))
    model.main.discard(named(model, "v"))


def _drop_function(model: Model) -> None:
    model.main.replace(producer(model, "d"), [named(model, "b")])
    model.remove(_function(model))


def _add_function(model: Model) -> None:
    (function,) = onnx.parser.parse_model(MIXED).functions
    function.name = "other"
    model.add(function)


EDITS: dict[str, tuple[Callable[[Model], object], set[str] | None]] = {
    "a node more": (lambda m: m.main.op.Exp(named(m, "x")), set()),
    "another operand": (lambda m: m.main.set_input(producer(m, "y"), 0, named(m, "x")), {"y"}),
    "a node less": (lambda m: m.main.replace(producer(m, "a"), [named(m, "x")]), {"a", "b"}),
    "another attribute": (
        lambda m: m.main.set_operator(producer(m, "a"), "Abs"), {"a"}
    ),
    "another name of a node": (lambda m: m.main.rename_node(producer(m, "a"), "other"), {"a"}),
    "another name of a value": (lambda m: m.main.rename_value(named(m, "a"), "e"), {"a", "b"}),
    "another name of an output": (lambda m: m.main.rename_value(named(m, "y"), "e"), {"y"}),
    "another name of a weight": (lambda m: m.main.rename_value(named(m, "v"), "e"), {"p"}),
    "other numbers": (
        lambda m: m.main.set_constant(named(m, "v"), Tensor.of(np.array([9, 9], np.float32))), {"p"}
    ),
    "a weight more": (lambda m: m.main.constant(np.array([1], np.float32)), set()),
    "a weight less": (_drop_weight, {"p"}),
    "a Constant as a weight": (
        lambda m: m.main.fold_to_initializer(
            producer(m, "m"), 0, Tensor.of(np.array([7, 8], np.float32))
        ), {"m"}
    ),
    "an input more": (
        lambda m: m.main.add_input("n", tensor_type(onnx.TensorProto.FLOAT, (2,))), set()
    ),
    "an output more": (lambda m: m.main.add_output(named(m, "d")), set()),
    "an output less": (lambda m: m.main.remove_output(named(m, "p")), set()),
    "a default": (lambda m: m.main.mark_input(named(m, "v")), set()),
    "a node in a body": (
        lambda m: body(m, 1).set_operator(producer(body(m, 1), "r"), "Abs"), {"b"}
    ),
    "a weight of a body": (
        lambda m: body(m, 0).set_constant(
            named(body(m, 0), "k"), Tensor.of(np.array([0, 0], np.float32))
        ),
        {"b"},
    ),
    "a weight that a body captures": (
        lambda m: m.main.set_constant(named(m, "w"), Tensor.of(np.array([0, 0], np.float32))), {"b"}
    ),
    "a node of a body as one of the graph": (
        lambda m: move_node(body(m, 1), producer(body(m, 1), "s"), m.main), {"b"}
    ),
    "a weight of a body as one of the graph": (
        lambda m: move_constant(body(m, 0), named(body(m, 0), "k"), m.main), {"b"}
    ),
    "exchanged outputs": (
        lambda m: exchange_outputs(m.main, producer(m, "d"), 0, producer(m, "m"), 0), {"d", "m"}
    ),
    "another name of an input": (lambda m: m.main.rename_value(named(m, "x"), "e"), {"a"}),
    "another name of an output, and other numbers": (
        lambda m: [EDITS[each][0](m) for each in ("another name of an output", "other numbers")],
        {"y", "p"},
    ),
    "a node of a function, and one of the graph": (
        lambda m: [EDITS[each][0](m) for each in ("a node of a function", "another attribute")],
        {"a"},
    ),
    "a node of a body that goes": (
        lambda m: (
            EDITS["a node in a body"][0](m),
            m.main.replace(producer(m, "b"), [named(m, "a")]),
        ),
        {"b", "d"},
    ),
    "another version": (lambda m: m.convert_opset(22), None),
    "a function more": (_add_function, set()),
    "a function less": (_drop_function, {"d", "p"}),
    "a node of a function": (
        lambda m: _function(m).set_operator(producer(_function(m), "t"), "Abs"), set()
    ),
    "another model": (lambda m: m.exchange(m.to_proto()), None),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_the_part_after_an_edit_is_that_of_the_model(name: str) -> None:
    edit, touched = EDITS[name]
    model = mixed()
    before, mark = part_of(model), model.journal.stamp()
    said = _said(before)
    numbers = {each: producer(model, each).id for each in ("a", "b", "m", "d", "p", "y")}
    edit(model)
    after, found = part_after(before, model, model.journal.since(mark.length))
    assert _said(after) == _said(part_of(model))
    assert _said(before) == said
    if touched is not None:
        assert found is not None
        old = {each for each, number in numbers.items() if number in found}
        assert old == touched


def test_the_nodes_of_a_part_are_those_of_the_file() -> None:
    model = mixed()
    part, mark = part_of(model), model.journal.stamp()
    for name in ("a node in a body", "another attribute"):
        EDITS[name][0](model)
    after, _ = part_after(part, model, model.journal.since(mark.length))
    nodes = [after.nodes[at] for at in after.in_order(after.nodes)]
    assert sorted(map(str, nodes)) == sorted(map(str, model.to_proto().graph.node))


def test_a_step_is_applied_to_other_parts_alike() -> None:
    model = mixed()
    first, second, mark = part_of(model), part_of(model), model.journal.stamp()
    EDITS["a weight less"][0](model)
    step = advance(first, model, model.journal.since(mark.length))
    assert isinstance(step, PartEdits)
    assert step.weights == {"v": None}
    assert step.rest == {}
    step.apply(second)
    assert _said(first) == _said(second) == _said(part_of(model))


def test_without_edits_nothing_was_touched() -> None:
    model = mixed()
    before = part_of(model)
    after, touched = part_after(before, model, ())
    assert touched == set()
    assert _said(after) == _said(before)


def test_after_edits_of_everything_no_number_is_known() -> None:
    model = mixed()
    mark = model.journal.stamp()
    model.exchange(model.to_proto())
    _, touched = part_after(part_of(mixed()), model, model.journal.since(mark.length))
    assert touched is None


def test_edits_of_names_and_types_are_harmless() -> None:
    model = mixed()
    mark = model.journal.stamp()
    model.main.rename_node(producer(model, "a"), "other")
    model.main.set_type(named(model, "a"), None)
    entries = list(model.journal.since(mark.length))
    assert {entry[0] for entry in entries} == {Edit.RENAME_NODE, Edit.SET_TYPE}
    assert is_harmless(entries)
    model.main.rename_value(named(model, "a"), "e")
    assert not is_harmless(model.journal.since(mark.length))
    assert is_harmless(())


def test_types_are_those_that_are_known() -> None:
    found = types_of(mixed(), ["a", "x", "nowhere"])
    assert set(found) == {"a", "x"}
    assert found["a"] == onnx.helper.make_tensor_type_proto(1, [2])
