"""The content of a model: its graphs, imports, metadata, marks, and what it remembers."""

import re

import onnx
import pytest

from tests.graph.editor import ONE, fresh, serialized
from tests.small import named, parsed
from tiered.graph import Model
from tiered.graph.core.interface_map import InterfaceMap
from tiered.support.errors import ModelError
from tiered.testing import parse


def test_graphs_are_the_main_one_bodies_after_their_node_and_functions() -> None:
    model = fresh()
    assert [graph.name for graph in model.graphs()] == [
        "g", "t", "tt", "te", "e", "l", "twice", "choose", "yes", "no"
    ]  # fmt: skip


def test_a_function_is_found_by_its_id() -> None:
    model = fresh()
    assert model.function("local", "twice") is model.functions[0]
    assert model.function("local", "twice", "other") is None
    assert model.function("", "twice") is None


def test_a_function_without_calls_is_removed_and_comes_back() -> None:
    model = fresh()
    made = model.add(ONE)
    assert model.functions[-1] is made
    model.remove(made)
    assert made not in model.functions
    model.undo_to(0)
    assert [each.function_name for each in model.functions] == ["twice", "choose"]


def test_a_second_function_of_one_id_is_refused() -> None:
    model = fresh()
    model.add(ONE)
    before = serialized(model)
    with pytest.raises(ModelError):
        model.add(ONE)
    assert serialized(model) == before
    model.check_view()


def test_opsets_are_imported_and_dropped() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert (model.opset(), model.opset("d")) == (21, 0)
    model.set_opset("d", 3)
    length = len(model.journal)
    model.set_opset("d", 3)
    assert len(model.journal) == length
    assert model.opset("d") == 3
    model.set_opset("d", None)
    assert "d" not in model.opset_imports
    model.undo_to(0)
    assert model.opset("d") == 0


def test_an_opset_of_a_function_is_its_own() -> None:
    model = fresh()
    function = model.functions[0]
    model.set_opset("d", 3, function)
    assert (function.opset("d"), model.opset("d")) == (3, 0)


def test_another_opset_converts_the_nodes() -> None:
    model = parsed("(float[2,1] x) => (float[2] y) <int64[1] a = {1}> { y = Squeeze(x, a) }")
    model.set_opset("", 11)
    assert list(model.main.nodes[0].attr("axes")) == [1]
    assert model.opset() == 11


def test_metadata_and_descriptions_are_replaced_in_one_edit() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    first = serialized(model)
    model.set_metadata({"a": "1", "b": "2"})
    model.set_metadata({**model.metadata, "a": "3"})
    assert model.metadata == {"a": "3", "b": "2"}
    model.metadata["a"] = "none"
    assert model.metadata["a"] == "3"
    model.describe(doc_string="text", producer=("me", "1.0"))
    assert (model.doc_string, model.producer) == ("text", ("me", "1.0"))
    model.describe(doc_string="")
    assert (model.doc_string, model.producer) == ("", ("me", "1.0"))
    assert not model.skeleton.HasField("doc_string")
    length = len(model.journal)
    model.describe()
    model.describe(producer=("me", "1.0"))
    model.set_metadata(model.metadata)
    assert len(model.journal) == length == 4
    model.undo_to(0)
    assert serialized(model) == first


def test_the_ir_version_is_an_edit() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    model.set_ir_version(11)
    assert (model.ir_version, model.to_proto().ir_version) == (11, 11)
    model.undo_to(0)
    assert model.ir_version == 10


def test_a_block_that_raises_is_undone() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    mark = model.mark()

    def fail() -> None:
        with model.transaction():
            model.set_ir_version(11)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not model.changed_since(mark)
    with model.transaction():
        model.set_ir_version(11)
    assert model.changed_since(mark)


def test_names_and_sizes() -> None:
    model = parsed("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }")
    assert model.label == "the model"
    assert repr(model) == "<Model the model, 1 node>"
    assert model.nbytes == 8 + model.main.nodes[0].proto.ByteSize()
    assert model.overridable == []
    named_model = Model.from_proto(model.to_proto(), source="some.onnx")
    assert named_model.label == "some.onnx"
    page = named_model._repr_html_()
    for text in ("some.onnx", "1 node, IR 10", "ai.onnx 21", "float[2]", "Add"):
        assert text in page
    named_model.close()
    assert "(closed)" in named_model._repr_html_()
    with pytest.raises(ModelError, match="was closed and is empty"):
        _ = named_model.main


def test_serial_numbers_only_grow() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    following = model.peek_serial()
    assert model.peek_serial() == following
    assert model.next_serial() == following
    new = model.main.add_node("Neg", (named(model, "x"),))
    assert new.id > following


def test_the_nodes_of_training_graphs_are_found_at_any_depth() -> None:
    proto = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }").to_proto()
    inner = onnx.parser.parse_graph(
        """t (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = a () => (float[2] p) { p = Exp(x) },
                   else_branch = b () => (float[2] q) { q = Abs(x) }> }"""
    )
    training = proto.training_info.add()
    training.algorithm.CopyFrom(inner)
    training.initialization.node.add(op_type="RandomNormal")
    found = [node.op_type for node in Model.from_proto(proto).training_nodes()]
    assert sorted(found) == ["Abs", "Exp", "If", "RandomNormal"]


def test_folded_work_is_counted_without_what_was_undone() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert model.folded_work == 0
    model.set_ir_version(11)
    model.note_folded_work(5)
    mark = model.mark()
    model.set_ir_version(12)
    model.note_folded_work(3)
    assert model.folded_work == 8
    model.undo_to(mark)
    assert model.folded_work == 5
    model.undo_to(0)
    assert model.folded_work == 0


def test_the_interface_since_a_moment_is_composed_of_the_kept_changes() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert model.interface_since() == InterfaceMap()
    model.set_ir_version(11)
    first = InterfaceMap({"a": ("x", None)})
    model.note_interface(first)
    stamp = model.journal.stamp()
    assert model.interface_since() == first
    assert model.interface_since(stamp) == InterfaceMap()
    model.set_ir_version(12)
    model.note_interface(InterfaceMap({"b": ("a", None)}))
    assert model.interface_since().tensors == {"a": ("x", None), "b": ("x", None)}
    assert model.interface_since(stamp).tensors == {"b": ("a", None)}
    model.undo_to(0)
    assert model.interface_since() == InterfaceMap()


def test_an_analysis_is_kept_until_an_edit() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    calls: list[Model] = []

    def count(of: Model) -> int:
        calls.append(of)
        return len(of.main)

    assert model.analysis(count) == model.analysis(count) == 1
    assert len(calls) == 1
    model.main.add_node("Neg", (named(model, "x"),))
    assert model.analysis(count) == 2
    assert len(calls) == 2


def test_notes_are_kept_in_order() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    model.note("one")
    model.note("two")
    assert model.notes == ["one", "two"]


ROOTS = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2,1] x, bool c) => (float[2] y) { z = own.f(x)  u = own.Any(z)  y = If(c) <
    then_branch = t () => (float[2] p) <int64[1] a = {1}> { p = Squeeze(x, a) },
    else_branch = e () => (float[2] q) { q = own.g(x) }> }
<domain: "own", opset_import: ["" : 21]> f (v) => (w) { k = Constant<value_ints=[0]>()
    d = Constant<value_floats=[1.0]>()  w = Squeeze(d, k) }
<domain: "own", opset_import: ["own" : 1]> g (v) => (w) { w = own.f(v) }"""


def test_an_opset_is_of_the_root_of_a_graph() -> None:
    model = Model.from_proto(parse(ROOTS))
    first, second = model.functions
    body = model.main.nodes_of("If")[0].bodies[0]

    def forms() -> list[bool]:
        return [graph.nodes_of("Squeeze")[0].has_attr("axes") for graph in (body, first)]

    assert forms() == [False, False]
    model.set_opset("", 12, body)
    assert (forms(), model.opset(), first.opset()) == ([True, False], 12, 21)
    model.set_opset("", 12, first)
    assert (forms(), first.opset(), second.opset()) == ([True, True], 12, 0)
    model.set_opset("", 12, second)
    assert (forms(), second.opset()) == ([True, True], 12)
    model.set_opset("own", 2)
    assert (forms(), model.opset("own"), model.opset()) == ([True, True], 2, 12)
    model.set_opset("", None, second)
    assert second.opset_imports == {"own": 1}
    with pytest.raises(ModelError):
        model.set_opset("", None)
    model.undo_to(0)
    assert (forms(), model.opset()) == ([False, False], 21)


def test_a_notebook_shows_the_interface_and_the_operators() -> None:
    model = Model.from_proto(parse(ROOTS.replace("=> (float[2] y)", "=> (float[2] y, float u)", 1)))
    named(model, "u")._type = None
    text = re.sub(r"<style>.*?</style>|<[^>]*>", "|", model._repr_html_(), flags=re.DOTALL)
    words = [word for word in text.split("|") if word.strip()]
    assert words[:12] == [
        *("the model: 9 nodes, IR 10, ai.onnx 21, own 1", "Interface", "name", "type"),
        *("input", "x", "float[2,1]", "input", "c", "bool[]", "output", "y"),
    ]
    assert words[12:] == [
        *("float[2]", "output", "u", "unknown type", "Operators", "operator", "nodes"),
        *(
            "own::f",
            "2",
            "Squeeze",
            "2",
            "Constant",
            "2",
            "own::Any",
            "1",
            "If",
            "1",
            "own::g",
            "1",
        ),
    ]
    assert repr(model) == "<Model the model, 9 nodes>"
    model.close()
    assert repr(model) == "<Model the model, closed>"
    assert "the model (closed)" in model._repr_html_()
    with pytest.raises(ModelError, match="the model was closed"):
        _ = model.main


def test_bytes_of_nodes_and_tensors_are_counted() -> None:
    model = parsed("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }")
    assert model.nbytes == 8 + model.main.nodes[0].proto.ByteSize()
    constant = parsed("(int64 x) => (int64 y) { k = Constant<value_int=1>()  y = Add(x, k) }")
    protos = [node.proto.ByteSize() for node in constant.main.nodes]
    assert constant.nbytes == sum(protos)
    constant.has_stored_constants = True
    assert constant.nbytes == 8 + protos[1]
