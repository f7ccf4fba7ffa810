"""Model: loading, saving, copies, whole content, and the checks that it offers."""

from pathlib import Path

import onnx
import pytest

from tests.graph.editor import ONE, fresh, serialized
from tests.small import content, loaded_apart, made_by, named, parsed
from tiered import Model, ModelError, TensorType
from tiered.testing import parse

TEXT = "(float[N,2] x) => (float[N,2] y) <float[2] w = {1,2}> { a = Add(x, w)  y = Neg(a) }"


# --- files ----------------------------------------------------------------------------------------


def test_the_view_of_a_proto_leaves_it_as_it_is() -> None:
    given = parse(TEXT)
    before = given.SerializeToString(deterministic=True)
    model = Model.from_proto(given, folder="folder", source="some.onnx")
    assert (model.folder, model.source, model.label) == ("folder", "some.onnx", "some.onnx")
    assert model.origin is given
    assert not model.changed_since(0)
    model.main.rename_value(named(model, "a"), "b")
    assert given.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[2] x) => (float[2] y) { y = Add(x, z) }", "'z'"),
        ("(float[2] x) => (float[2] y) { a = Neg(y)  y = Neg(a) }", "cycle"),
        ("(float[2] x) => (float[2] y) { y = Neg(x)  y = Abs(x) }", "twice"),
        ("(float[2] x) => (float[2] y) { y = Neg(x, x) }", "Neg"),
    ],
)
def test_a_proto_that_is_no_graph_is_an_error(text: str, because: str) -> None:
    with pytest.raises(ModelError, match=because):
        Model.from_proto(parse(text))


def test_a_string_that_is_not_utf_8_is_an_error() -> None:
    text = parse(TEXT).SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff")
    with pytest.raises(ModelError, match="not UTF-8"):
        Model.from_proto(onnx.ModelProto.FromString(text))


def test_a_file_is_loaded_with_its_folder_and_saved(tmp_path: Path) -> None:
    onnx.save(parse(TEXT), tmp_path / "m.onnx")
    model = Model.load(tmp_path / "m.onnx")
    assert (model.source, model.folder) == (str(tmp_path / "m.onnx"), str(tmp_path))
    model.save(tmp_path / "out.onnx", annotate=True)
    made = onnx.load(tmp_path / "out.onnx")
    assert [info.name for info in made.graph.value_info] == ["a"]
    assert [info.name for info in model.to_proto(annotate=True).graph.value_info] == ["a"]
    assert not model.to_proto().graph.value_info


@pytest.mark.parametrize(
    ("written", "because"),
    [
        (None, "cannot read {path}: No such file or directory"),
        (b"", "{path} is empty; expected an ONNX model"),
        (b"\xff\xff\xff\xff", "{path} is not an ONNX model: it does not parse"),
    ],
)
def test_a_file_that_is_no_model_is_an_error(
    tmp_path: Path, written: bytes | None, because: str
) -> None:
    path = tmp_path / "m.onnx"
    if written is not None:
        path.write_bytes(written)
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert str(caught.value) == because.format(path=path)


def test_what_is_wrong_with_a_file_names_it_once(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Add(x, z) }"), path)
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert str(caught.value).count(str(path)) == 1
    assert str(caught.value).startswith(str(path))


def test_the_bytes_of_a_file_without_weights_on_disk(tmp_path: Path) -> None:
    given = parse(TEXT)
    model = Model.from_proto(given)
    assert model.skeleton_size() == model.to_proto().ByteSize()
    apart = loaded_apart(parse(TEXT), tmp_path)
    size = (tmp_path / "model.onnx").stat().st_size
    assert apart.has_external
    assert apart.skeleton_size() <= size


# --- content --------------------------------------------------------------------------------------


def test_a_function_is_added_and_its_id_is_its_own() -> None:
    model = fresh()
    before = serialized(model)
    made = model.add(ONE)
    assert model.functions[-1] is made
    with pytest.raises(ModelError):
        model.add(ONE)
    model.check_view()
    model.undo_to(0)
    assert serialized(model) == before
    calling = onnx.parser.parse_function(
        '<domain: "local", opset_import: ["": 21, "local": 1]> me (v) => (u) { u = local.me(v) }'
    )
    with pytest.raises(ModelError):
        model.add(calling)
    assert serialized(model) == before
    model.check_view()


def test_the_content_is_exchanged_in_one_edit() -> None:
    model = parsed(TEXT)
    before, serial = content(model), model.peek_serial()
    model.exchange(parse("(float[3] p) => (float[3] q) { q = Abs(p) }"))
    assert [node.op_type for node in model.main.nodes] == ["Abs"]
    assert len(model.journal) == 1
    assert min(node.id for node in model.main.nodes) >= serial
    model.check_view(types=True)
    model.undo_to(0)
    assert content(model) == before
    with pytest.raises(ModelError):
        model.exchange(parse("(float[2] x) => (float[2] y) { y = Add(x, z) }"))
    assert content(model) == before


def test_a_conversion_of_the_opset_is_of_the_whole_model() -> None:
    model = parsed("(float[2,1] x) => (float[2] y) <int64[1] a = {1}> { y = Squeeze(x, a) }")
    model.convert_opset(11)
    assert (model.opset(), list(model.main.nodes[0].attr("axes"))) == (11, [1])


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_has_the_present_content_and_no_history(deep: bool) -> None:
    model = parsed(TEXT)
    model.main.rename_value(named(model, "a"), "b")
    copy = model.copy(deep=deep)
    assert content(copy) == content(model)
    assert not copy.changed_since(0)
    tensors = [named(each, "w").tensor for each in (model, copy)]
    assert tensors[0] is not None
    assert tensors[1] is not None
    assert tensors[0].key() == tensors[1].key()
    copy.main.rename_value(named(copy, "b"), "c")
    assert "c" not in model.main.values


def test_a_copy_of_a_model_with_external_weights_keeps_new_ones_outside(tmp_path: Path) -> None:
    model = loaded_apart(parse(TEXT), tmp_path)
    copy = model.copy()
    assert (copy.has_external, copy.folder, copy.source) == (True, model.folder, model.source)


def test_the_first_state_is_there_while_the_model_is_edited(tmp_path: Path) -> None:
    model = parsed(TEXT)
    first = content(model)
    model.main.rename_value(named(model, "a"), "b")
    assert bytes(model.as_loaded().SerializeToString(deterministic=True)) == first
    with pytest.raises(ModelError, match="was not loaded, so there is no earlier state of it"):
        Model().as_loaded()


# --- types and checks -----------------------------------------------------------------------------


def test_inferred_types_are_declared_in_the_file() -> None:
    model = parsed(TEXT)
    model.declare_inferred_types()
    assert [info.name for _, info in model.main.declarations] == ["a"]
    length = len(model.journal)
    model.declare_inferred_types()
    assert len(model.journal) == length


@pytest.mark.parametrize(("ir", "count"), [(9, 0), (10, 1)])
def test_functions_declare_types_from_ir_10_on(ir: int, count: int) -> None:
    text = f"""<ir_version: {ir}, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) {{ y = f.F(x) }}
        <domain: "f", opset_import: ["" : 21]> F (v) => (u) {{ t = Shape(v)  u = Neg(v) }}"""
    model = Model.from_proto(onnx.parser.parse_model(text))
    model.declare_inferred_types()
    assert len(model.functions[0].declarations) == count


def test_sizes_of_inputs_and_outputs() -> None:
    model = parsed(TEXT)
    model.set_input_shapes({"x": [3, -1]})
    assert named(model, "y").shape == (3, 2)
    model.set_input_shapes({}, {})
    assert str(model.type_coverage())
    loose = parsed(TEXT.replace("(float[N,2] y)", "(float[M,K] y)"))
    loose.declare_known_sizes()
    dims = loose.main.output_infos[0].type.tensor_type.shape.dim
    assert (dims[0].dim_param, dims[1].dim_value) == ("M", 2)


def test_false_declarations_and_texts_are_dropped() -> None:
    given = parse(TEXT)
    given.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [7, 7]))
    given.doc_string = "text"
    model = Model.from_proto(given)
    assert model.drop_false_declarations() == ["'a': float[7,7], and it is float[N,2]"]
    assert model.strip(["docs"]) == ["doc strings: 4 bytes in 1 place"]


def test_what_the_checker_says_now_and_said_at_first() -> None:
    model = parsed(TEXT)
    assert model.complaint() is None
    assert model.complaint_as_loaded() is None
    model.main.add_node("Relu", (named(model, "x"),), attributes={"odd": 1})
    found = model.complaint()
    assert found is not None
    assert "odd" in found
    assert model.complaint_as_loaded() is None
    with pytest.raises(ModelError, match="rejects the result"):
        model.check()
    assert Model.from_proto(model.to_proto()).complaint_as_loaded() == found


def test_a_view_that_broke_says_what_broke() -> None:
    model = parsed(TEXT)
    model.check_view(types=True)
    named(model, "a")._type = TensorType(1, (5,))
    model.check_view()
    with pytest.raises(AssertionError, match="'a'"):
        model.check_view(types=True)
    made_by(model, "y").proto.input[0] = "x"
    with pytest.raises(AssertionError):
        model.check_view()
