"""The protos that a view is written as: whole, for inference, or without large weights."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from tests.small import made_by, named, parsed, proto as unchecked
from tiered.graph import Model
from tiered.graph.io import protobuf_scan
from tiered.graph.io.export import (
    export_function,
    export_model,
    export_node,
    inferred_declarations,
    without_invented,
)

TEXT = """(float[N,3] x, float[3] d) => (float[N,3] y) <float[3] w = {1,2,3}, float[3] d = {4,5,6}> {
    a = Add(x, w)  b = Mul(a, d)  y = Neg(b) }"""


def shape(info: onnx.ValueInfoProto) -> list[int | str] | None:
    kind = info.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return [dim.dim_value or dim.dim_param for dim in kind.shape.dim]


def test_an_export_shares_nothing_with_the_view() -> None:
    model = parsed(TEXT)
    first = export_model(model)
    whole = first.SerializeToString(deterministic=True)
    first.graph.node[0].op_type = "Sub"
    first.graph.initializer[0].Clear()
    first.graph.input[0].name = "other"
    first.opset_import[0].version = 1
    assert export_model(model).SerializeToString(deterministic=True) == whole


@pytest.mark.parametrize(("most", "kept"), [(2, []), (3, ["w", "d"])])
def test_larger_weights_are_typed_inputs(most: int, kept: list[str]) -> None:
    proto = export_model(parsed(TEXT), max_elements=most)
    assert [tensor.name for tensor in proto.graph.initializer] == kept
    inputs = {info.name: shape(info) for info in proto.graph.input}
    added = {} if kept else {"w": [3]}
    assert inputs == {"x": ["N", 3], "d": [3], **added}


def test_for_inference_what_follows_is_left_out() -> None:
    proto = parsed(TEXT).to_proto()
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, ["N", 3]))
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("nothing", 1, [1]))
    model = Model.from_proto(proto)
    whole, made = export_model(model), export_model(model, for_inference=True)
    assert [info.name for info in whole.graph.value_info] == ["a", "nothing"]
    assert not made.graph.value_info
    assert shape(made.graph.output[0]) is None
    assert made.graph.output[0].type.tensor_type.elem_type == 1
    assert [tensor.name for tensor in made.graph.initializer] == ["w"]  # d may be fed


def test_for_inference_outputs_of_unknown_operators_keep_their_types() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = com.microsoft.Odd(x) }")
    made = export_model(model, for_inference=True)
    assert shape(made.graph.output[0]) == [2]


def test_for_inference_an_output_that_is_a_constant_has_its_type() -> None:
    model = parsed("(float x) => (float[?] w, float y) <float[3] w = {1,2,3}> { y = Neg(x) }")
    assert shape(export_model(model, for_inference=True).graph.output[0]) == [3]
    assert shape(export_model(model).graph.output[0]) == [""]


def test_a_constant_without_a_declared_type_has_that_of_its_contents() -> None:
    proto = parsed(
        "(float x) => (float y, float[3] w) <float[3] w = {1,2,3}> { y = Neg(x) }"
    ).to_proto()
    proto.graph.output[1].ClearField("type")
    made = export_model(Model.from_proto(proto))
    assert shape(made.graph.output[1]) == [3]


def test_inferred_types_are_written_on_demand_without_invented_names() -> None:
    model = parsed("(float[N] x) => (float[N] y) { n = NonZero(x)  a = Neg(x)  y = Abs(a) }")
    assert not export_model(model).graph.value_info
    made = export_model(model, annotate=True)
    assert {info.name: shape(info) for info in made.graph.value_info} == {"n": [1, ""], "a": ["N"]}
    assert [value.name for value, _ in inferred_declarations(model.main)] == ["n", "a"]
    model.main.set_declarations([(named(model, "a"), onnx.ValueInfoProto(name="a"))])
    assert [value.name for value, _ in inferred_declarations(model.main)] == ["n"]


def test_only_invented_names_are_removed_from_a_type() -> None:
    kind = onnx.helper.make_tensor_type_proto(1, ["unk__3", "N", 2])
    made = without_invented(kind)
    assert [dim.dim_param for dim in made.tensor_type.shape.dim] == ["", "N", ""]
    other = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(1, [2]))
    assert without_invented(other) is other


BODIES = """(float[2] x, bool c) => (float[2] y) {
    y = If(c) <then_branch = t () => (float[2] p) <float[2] k = {1,2}> { p = Add(x, k) },
               else_branch = e () => (float[2] q) { q = If(c) <
                   then_branch = i () => (float[2] r) { r = Neg(x) },
                   else_branch = j () => (float[2] s) { s = Abs(x) }> }> }"""


def test_bodies_are_written_at_their_attributes() -> None:
    model = parsed(BODIES)
    node = export_node(made_by(model, "y"))
    then, other = (attribute.g for attribute in node.attribute)
    assert [attribute.name for attribute in node.attribute] == ["then_branch", "else_branch"]
    assert [inner.op_type for inner in then.node] == ["Add"]
    assert then.initializer[0].name == "k"
    assert [attribute.g.node[0].op_type for attribute in other.node[0].attribute] == ["Neg", "Abs"]


def test_a_value_of_a_body_has_the_name_that_the_file_gives_it() -> None:
    # Two bodies may have values of one name; in the view they have two.
    text = """(float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { k = Neg(x)  p = Abs(k) },
                   else_branch = e () => (float[2] p) { k = Exp(x)  p = Neg(k) }> }"""
    model = parsed(text)
    bodies = [attribute.g for attribute in export_model(model).graph.node[0].attribute]
    assert [[node.output[0] for node in body.node] for body in bodies] == [["k", "p"]] * 2
    assert [body.output[0].name for body in bodies] == ["p", "p"]


def test_local_functions_are_written_with_their_imports() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) { y = f.F<k = 1>(x) }
        <domain: "f", opset_import: ["" : 20]> F <k, m: int = 3> (v) => (u) { u = Neg(v) }"""
    model = Model.from_proto(onnx.parser.parse_model(text))
    (function,) = model.functions
    proto = export_function(function)
    assert (proto.domain, proto.name, list(proto.input), list(proto.output)) == (
        "f", "F", ["v"], ["u"]
    )  # fmt: skip
    assert [(each.domain, each.version) for each in proto.opset_import] == [("", 20)]
    assert list(proto.attribute) == ["k"]
    assert [each.name for each in proto.attribute_proto] == ["m"]
    assert export_model(model).functions[0] == proto


def test_a_domain_is_spelt_as_in_the_file() -> None:
    proto = parsed("(float x) => (float y) { y = Neg(x) }").to_proto()
    proto.opset_import[0].domain = "ai.onnx"
    model = Model.from_proto(proto)
    assert model.opset() == 21
    assert export_model(model).opset_import[0].domain == "ai.onnx"
    proto.opset_import[0].ClearField("domain")
    assert not export_model(Model.from_proto(proto)).opset_import[0].HasField("domain")


def test_annotations_follow_the_names_of_their_values() -> None:
    proto = parsed(TEXT).to_proto()
    annotation = proto.graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.append(
        onnx.StringStringEntryProto(key="SCALE_TENSOR", value="w")
    )
    model = Model.from_proto(proto)
    model.main.rename_value(named(model, "w"), "scale")
    (made,) = export_model(model).graph.quantization_annotation
    assert (made.tensor_name, made.quant_parameter_tensor_names[0].value) == ("a", "scale")


def test_sparse_initializers_are_written_unless_only_types_matter() -> None:
    proto = parsed("(float[3] x) => (float[3] y) { y = Neg(x) }").to_proto()
    values = onnx.helper.make_tensor("w", 1, [1], [5.0])
    indices = onnx.helper.make_tensor("i", 7, [1], [1])
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [3]))
    model = Model.from_proto(proto)
    assert export_model(model).graph.sparse_initializer == proto.graph.sparse_initializer
    small = export_model(model, max_elements=10)
    assert not small.graph.sparse_initializer
    assert [info.name for info in small.graph.input] == ["x", "w"]


def test_annotations_of_values_that_are_gone_are_not_written() -> None:
    proto = parsed(TEXT).to_proto()
    proto.graph.quantization_annotation.add(tensor_name="b")
    proto.graph.quantization_annotation.add(tensor_name="a")
    model = Model.from_proto(proto)
    model.main.set_input(made_by(model, "y"), 0, named(model, "a"))
    model.main.remove_node(made_by(model, "b"))
    made = export_model(model).graph.quantization_annotation
    assert [annotation.tensor_name for annotation in made] == ["a"]


def test_lists_of_bodies_are_written_in_their_order() -> None:
    """Only operators that onnx does not know have them."""
    proto = parsed("(float[2] x) => (float[2] y) { y = com.microsoft.Odd(x) }").to_proto()
    bodies = [
        onnx.parser.parse_graph(f"{op} () => (float[2] b) {{ b = {op}(x) }}")
        for op in ("Neg", "Abs", "Exp", "Log")
    ]
    attributes = proto.graph.node[0].attribute
    attributes.append(onnx.helper.make_attribute("first", bodies[:2]))
    attributes.append(onnx.helper.make_attribute("alone", bodies[2]))
    attributes.append(onnx.helper.make_attribute("last", bodies[3:]))
    (node,) = export_model(Model.from_proto(proto)).graph.node
    first, alone, last = node.attribute
    assert [body.node[0].op_type for body in first.graphs] == ["Neg", "Abs"]
    assert alone.g.node[0].op_type == "Exp"
    assert [body.node[0].op_type for body in last.graphs] == ["Log"]


def test_contents_in_the_file_of_the_model_are_read_unless_bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protobuf_scan, "SCANNED", 0)
    proto = unchecked(
        "g (float[30000] x) => (float[30000] y) {"
        " c = Constant<value = float {1}>()  a = Add(x, w)  y = Add(a, c) }"
    )
    numbers = np.arange(30000, dtype=np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(numbers, "w"))
    proto.graph.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(-numbers))
    onnx.save(proto, tmp_path / "m.onnx")
    model = Model.load(tmp_path / "m.onnx")

    def lengths(tensors: Iterable[onnx.TensorProto]) -> list[int]:
        return [len(tensor.raw_data) for tensor in tensors]

    cases: list[tuple[dict[str, Any], list[int]]]
    cases = [({}, [120000]), ({"is_bare": True}, [0]), ({"max_elements": 30000}, [])]
    for options, weights in cases:
        made = export_model(model, **options)
        node = export_node(made_by(model, "c"), **options)
        constant = 0 if options else 120000
        assert lengths(made.graph.initializer) == weights
        assert lengths(each.attribute[0].t for each in (made.graph.node[0], node)) == [constant] * 2
    whole = export_model(model).graph
    for tensor, expected in (
        (whole.initializer[0], numbers),
        (whole.node[0].attribute[0].t, -numbers),
    ):
        assert np.array_equal(numpy_helper.to_array(tensor), expected)


def test_long_lists_are_written_unless_only_types_matter() -> None:
    proto = parsed("(float[1,2] x) => (float[1,1] y) { y = ai.onnx.ml.SVMRegressor(x) }").to_proto()
    numbers = onnx.helper.make_attribute("support_vectors", [0.5] * 2000)
    proto.graph.node[0].attribute.append(numbers)
    model = Model.from_proto(proto)
    node = made_by(model, "y")
    for most, length in ((None, 2000), (10, 1)):
        for made in (export_model(model, max_elements=most).graph.node[0],
                     export_node(node, max_elements=most)):  # fmt: skip
            assert len(made.attribute[0].floats) == length


def test_for_inference_what_onnx_cannot_infer_stays_declared() -> None:
    proto = parsed(
        "(float[2] x) => (float[2] y) { a = com.microsoft.Odd(x)  b = Neg(a)  y = Abs(b) }"
    ).to_proto()
    for name in ("a", "b"):
        proto.graph.value_info.append(onnx.helper.make_tensor_value_info(name, 1, [2]))
    made = export_model(Model.from_proto(proto), for_inference=True)
    assert [info.name for info in made.graph.value_info] == ["a"]


def test_all_names_of_a_body_that_its_operator_may_look_up_are_those_of_the_file() -> None:
    proto = parsed(
        """(float[2] x, bool c) => (float[2] y) <float[2] u = {1,2}, float[2] k = {1,2}> {
        y = com.microsoft.Choose(c) <then_branch = t (float[2] x) => (float[2] u) {
            z = Neg(x)  u = If(c) <then_branch = i () => (float[2] r) { r = Add(x, z) },
                                   else_branch = j () => (float[2] s) { s = Abs(x) }> }> }"""
    ).to_proto()
    body = proto.graph.node[0].attribute[0].g
    body.value_info.append(onnx.helper.make_tensor_value_info("u", 1, [2]))
    values = onnx.helper.make_tensor("k", 1, [1], [5.0])
    indices = onnx.helper.make_tensor("i", 7, [1], [1])
    body.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2]))
    body.output.append(onnx.helper.make_tensor_value_info("k", 1, [2]))
    annotation = body.quantization_annotation.add(tensor_name="u")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="x")
    model = Model.from_proto(proto)
    assert model.main.nodes[0].bodies[0].file_names == {"x_1": "x", "u_1": "u", "k_1": "k"}
    assert export_model(model) == proto


def test_an_attribute_that_a_call_gives_is_written_as_it_is() -> None:
    proto = parsed("(float[2] x) => (float[2] y) { y = com.microsoft.Odd(x) }").to_proto()
    node = proto.graph.node[0]
    node.attribute.add(name="of_call", ref_attr_name="b", type=onnx.AttributeProto.GRAPH)
    node.attribute.add(name="own", type=onnx.AttributeProto.GRAPH).g.CopyFrom(
        onnx.parser.parse_graph("own () => (float[2] b) { b = Neg(x) }")
    )
    assert export_model(Model.from_proto(proto)) == proto


def test_weights_that_training_changes_are_typed_inputs() -> None:
    proto = parsed("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }").to_proto()
    proto.training_info.add().update_binding.add(key="w", value="w")
    made = export_model(Model.from_proto(proto), max_elements=10)
    assert not made.graph.initializer
    assert [(info.name, shape(info)) for info in made.graph.input] == [("x", [2]), ("w", [2])]


def test_for_inference_inputs_have_their_types_and_lists_keep_theirs() -> None:
    model = parsed(
        """(float[N] x, seq(float[2]) q) => (seq(float[2]) s, float[N] y) {
        s = Identity(q)  y = Neg(x) }"""
    )
    model.set_input_shapes({"x": [4]})
    made = export_model(model, for_inference=True).graph
    assert [shape(made.input[0]), shape(made.output[1])] == [[4], None]
    assert made.output[0].type == made.input[1].type
    assert made.input[1].type.sequence_type.elem_type.tensor_type.elem_type == 1


def test_declarations_of_values_that_are_gone_are_not_written() -> None:
    proto = parsed(TEXT).to_proto()
    for name in ("a", "b"):
        proto.graph.value_info.append(onnx.helper.make_tensor_value_info(name, 1, ["N", 3]))
    model = Model.from_proto(proto)
    model.main.set_input(made_by(model, "y"), 0, named(model, "a"))
    model.main.remove_node(made_by(model, "b"))
    model.main.rename_value(named(model, "a"), "new")
    assert [info.name for info in export_model(model).graph.value_info] == ["new"]
