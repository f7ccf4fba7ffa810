import onnx
import pytest

from tiered import Model, ModelError
from tiered.testing import parse

TEXT = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2] x, bool c) => (float[2] y) {
    h = local.f(x)
    y = If(c) <
        then_branch = t () => (float[2] a) { a = Relu(h) },
        else_branch = e () => (float[2] b) { b = Neg(x) }
    >
}
<domain: "local", opset_import: ["ai.onnx" : 18]> f (v) => (u) { u = Exp(v) }"""


def content(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString(deterministic=True))


def test_a_node_is_not_copied_into_its_own_body() -> None:
    model = Model.from_proto(parse(TEXT))
    (owner,) = model.main.nodes_of("If")
    with pytest.raises(ModelError, match="cannot be copied into a body of its own"):
        owner.bodies[0].copy_nodes([owner], {})


def test_a_copy_reads_the_given_values() -> None:
    model = Model.from_proto(parse(TEXT))
    main, (x, _) = model.main, model.main.inputs
    (owner,) = main.nodes_of("If")
    h = main.values["h"]
    (copy,) = main.copy_nodes([owner], {h: x}, prefix="again")
    assert copy.name == "again/If"
    assert [body.nodes[0].inputs for body in copy.bodies] == [(x,), (x,)]
    assert copy.bodies[0].outputs[0].name == "again/a"
    assert copy.output.shape == (2,)
    model.check_view()


def test_a_body_with_inputs_is_not_dissolved() -> None:
    text = """(float[2] x, int64 n) => (float[2] y) {
        y = Loop(n, , x) <
            body = b (int64 i, bool g, float[2] v) => (bool g, float[2] w) { w = Relu(v) }
        >
    }"""
    model = Model.from_proto(parse(text))
    (owner,) = model.main.nodes
    with pytest.raises(ModelError, match="cannot be dissolved"):
        model.main.dissolve(owner, owner.bodies[0])
    assert len(model.journal) == 0


def test_the_imports_of_a_function_are_written_as_they_are_now() -> None:
    model = Model.from_proto(parse(TEXT))
    first, (function,) = content(model), model.functions
    model.set_opset("other", 3, function)
    model.set_opset("", 19, function)
    imports = model.to_proto().functions[0].opset_import
    written = [(entry.domain, entry.version) for entry in imports]
    assert written == [("ai.onnx", 19), ("other", 3)]
    model.undo_to(0)
    assert content(model) == first


def test_a_removed_function_releases_its_names() -> None:
    model = Model.from_proto(parse(TEXT))
    first, (function,) = content(model), model.functions
    model.remove(function)
    model.check_view()
    assert model.names.fresh("u") == "u"
    model.undo_to(0)
    model.check_view()
    assert content(model) == first


def test_an_operator_is_the_same_at_another_opset_or_it_is_not() -> None:
    text = "(float[2] x) => (float y) { s = Relu(x) y = ReduceSum<keepdims=0>(s) }"
    model = Model.from_proto(parse(text))
    relu, reduce = model.main.nodes
    assert relu.is_same_at(14)
    assert not relu.is_same_at(6)
    assert not reduce.is_same_at(12)


def test_training_nodes_are_found_at_any_depth() -> None:
    proto = parse(TEXT)
    proto.training_info.add().algorithm.CopyFrom(proto.graph)
    found = [node.op_type for node in Model.from_proto(proto).training_nodes()]
    assert sorted(found) == ["If", "Neg", "Relu", "f"]


def test_forgotten_types_are_known_again_after_undo() -> None:
    model = Model.from_proto(parse("(float[N] x) => (float[M] y) { y = Concat<axis=0>(x, x) }"))
    y = model.main.values["y"]
    before = y.type
    model.set_input_shapes({"x": [3]})
    assert y.shape == (6,)
    model.undo_to(0)
    assert y.type == before
    assert isinstance(model.main.inputs[0].type, type(before))
    assert model.main.inputs[0].shape == ("N",)
    onnx.checker.check_model(model.to_proto())
