"""Texts that no runtime computes with are removed and counted; what tiered states stays."""

import onnx
import pytest

from tests.graph.editor import serialized
from tests.small import named
from tiered.graph import Model
from tiered.graph.edits.stripping import DOCS, METADATA, NAMES, strip
from tiered.support.mark_keys import MARK_KEYS, MARKS
from tiered.testing import parse

TEXT = """(float[2] data, bool choice) => (float[2] result) <float[2] a_long_weight = {1,2}> {
    [first] a_long_name = Add(data, a_long_weight)
    [second] result = If(choice) <
        then_branch = t () => (float[2] taken) { taken = Neg(a_long_name) },
        else_branch = e () => (float[2] other) { inner_name = Abs(a_long_name)
            other = Relu(inner_name) }> }"""


def described() -> onnx.ModelProto:
    """Return a model with metadata and doc strings at all places."""
    proto = parse(TEXT)
    graph = proto.graph
    proto.doc_string, graph.doc_string, graph.node[0].doc_string = "four", "é", "node"
    graph.initializer[0].doc_string = "weight"
    graph.input[0].doc_string = "stays"
    body = graph.node[1].attribute[1].g
    body.output[0].doc_string = "body"
    graph.value_info.add(name="a_long_name", doc_string="info").type.CopyFrom(graph.input[0].type)
    for message in (proto, graph, graph.node[0], graph.initializer[0]):
        message.metadata_props.add(key="k", value="v")
    proto.metadata_props.add(key="tiered.about", value="x")
    proto.metadata_props.add(key=next(iter(MARK_KEYS)), value="1")
    return proto


@pytest.fixture
def model() -> Model:
    return Model.from_proto(described())


def test_docs_go_but_those_of_the_interface(model: Model) -> None:
    before = serialized(model)
    assert strip(model, [DOCS]) == ["doc strings: 24 bytes in 6 places"]
    made = model.to_proto()
    texts = (
        made.doc_string, made.graph.doc_string, made.graph.node[0].doc_string,
        made.graph.initializer[0].doc_string, made.graph.value_info[0].doc_string,
        made.graph.node[1].attribute[1].g.output[0].doc_string,
    )  # fmt: skip
    assert texts == ("",) * 6
    assert made.graph.input[0].doc_string == "stays"
    assert len(made.metadata_props) == 3
    model.check_view()
    model.undo_to(0)
    assert serialized(model) == before


def test_metadata_goes_but_what_tiered_states(model: Model) -> None:
    (line,) = strip(model, [METADATA])
    entry = onnx.StringStringEntryProto(key="k", value="v")
    assert line == f"metadata k: {4 * entry.ByteSize()} bytes in 4 places"
    made = model.to_proto()
    assert [each.key for each in made.metadata_props] == ["tiered.about", next(iter(MARK_KEYS))]
    assert not made.graph.metadata_props
    assert not made.graph.node[0].metadata_props
    assert not made.graph.initializer[0].metadata_props
    assert made.doc_string == "four"


def test_marks_go_alone(model: Model) -> None:
    lines = strip(model, [MARKS])
    assert [line.partition(":")[0] for line in lines] == [f"metadata {next(iter(MARK_KEYS))}"]
    assert [each.key for each in model.to_proto().metadata_props] == ["k", "tiered.about"]


def test_nothing_to_remove_is_no_edit(model: Model) -> None:
    strip(model, [DOCS, METADATA, MARKS])
    mark = model.mark()
    assert strip(model, [DOCS, METADATA, MARKS]) == []
    assert strip(model, []) == []
    assert model.mark() == mark


def test_inner_names_become_short_and_those_of_the_interface_stay(model: Model) -> None:
    lines = strip(model, [NAMES])
    made = model.to_proto()
    names = [node.name for node in made.graph.node]
    assert names == ["", ""]
    assert [info.name for info in (*made.graph.input, *made.graph.output)] == [
        "data", "choice", "result"
    ]  # fmt: skip
    assert made.graph.initializer[0].name == "t0"
    assert made.graph.node[0].output[0] == "t1"
    assert made.graph.value_info[0].name == "t1"
    inner = made.graph.node[1].attribute[1].g
    assert [node.output[0] for node in inner.node] == ["t2", "other"]
    # a_long_weight: 11 letters at 2 places; a_long_name: 9 at 4, its value_info counts;
    # inner_name: 8 at 2. Names of nodes: first and second.
    assert lines == [
        "names of tensors: 74 bytes in 3 places",
        "names of nodes: 11 bytes in 2 places",
    ]
    onnx.checker.check_model(made, full_check=True)
    model.check_view()


def test_a_name_that_is_short_already_stays() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { [n] ab = Neg(x)  y = Abs(ab) }"))
    assert strip(model, [NAMES]) == ["names of nodes: 1 byte in 1 place"]
    assert "ab" in model.main.values


def test_a_short_name_that_is_taken_is_passed_over() -> None:
    text = "(float[2] t0) => (float[2] t2) { long = Neg(t0)  longer = Abs(long)  t2 = Exp(longer) }"
    model = Model.from_proto(parse(text))
    strip(model, [NAMES])
    assert [node.output.name for node in model.main.topological_order()] == ["t1", "t3", "t2"]


def test_names_count_on_in_base_36() -> None:
    nodes = " ".join(f"value{at + 1} = Neg(value{at})" for at in range(40))
    text = f"(float[2] value0) => (float[2] y) {{ {nodes} y = Abs(value40) }}"
    model = Model.from_proto(parse(text))
    strip(model, [NAMES])
    names = [node.output.name for node in model.main.topological_order()]
    assert names[:11] == ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "ta"]
    assert names[34:40] == ["ty", "tz", "t10", "t11", "t12", "t13"]


def test_names_of_tensors_stay_where_training_reads_them() -> None:
    proto = parse(TEXT)
    proto.training_info.add()
    model = Model.from_proto(proto)
    strip(model, [NAMES])
    assert named(model, "a_long_name").producer is not None


def test_only_texts_of_what_is_changed_are_edits() -> None:
    proto = parse(
        """(float[2] x, int64 n, bool c) => (float[2] y) {
        long_one, , long_two = com.microsoft.Three(x)
        y, = Loop(n, c, long_two) <body = b (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
            e = Identity(d)  w = Neg(v) }> }"""
    )
    values = onnx.helper.make_tensor("sparse", 1, [1], [5.0])
    indices = onnx.helper.make_tensor("i", 7, [1], [1])
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2]))
    body = proto.graph.node[1].attribute[0].g
    body.input[2].doc_string = "read"
    proto.graph.value_info.add(name="long_one").type.CopyFrom(proto.graph.input[0].type)
    model = Model.from_proto(proto)
    inner = model.main.nodes[1].bodies[0]
    kept = inner.output_infos
    assert strip(model, [DOCS, METADATA]) == ["doc strings: 4 bytes in 1 place"]
    assert not inner.input_infos[2].doc_string
    assert all(after is before for after, before in zip(inner.output_infos, kept, strict=True))
    assert len(model.journal.entries) == 1
    strip(model, [NAMES])
    made = model.to_proto().graph
    assert list(made.node[0].output) == ["t1", "", "t2"]
    assert made.sparse_initializer[0].values.name == "t0"
    model.check_view()


def test_names_of_defaults_and_of_parameters_of_annotations_stay() -> None:
    proto = parse(
        """(float[2] x, float[2] default) => (float[2] y) <float[2] default = {1,2}, float scale = {1}> {
        long_name = Add(x, default)  y = Mul(long_name, scale) }"""
    )
    proto.graph.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="scale"
    )
    model = Model.from_proto(proto)
    strip(model, [NAMES])
    assert [tensor.name for tensor in model.to_proto().graph.initializer] == ["default", "scale"]
    assert sorted(model.main.values) == ["default", "scale", "t0", "x", "y"]
