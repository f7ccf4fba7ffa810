"""Files with weights that stay on disk: reading and writing keep every byte."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, ModelError, Tensor, optimize
from tiered.graph.io import protobuf_scan
from tiered.graph.io.export import export_model
from tiered.graph.io.save import Storage
from tiered.graph.queries.onnx_checker import check_model

BODY = (
    '<ir_version: 10, opset_import: ["" : 21]> g (float[300,300] x, bool c) => (float[300,300] y)'
    " { t = If(c) <then_branch = a () => (float[300,300] p) { p = Add(x, u) },"
    " else_branch = b () => (float[300,300] q) { q = Neg(x) }>  y = Add(t, w) }"
)


@pytest.fixture(autouse=True)
def _scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of any size be scanned."""
    monkeypatch.setattr(protobuf_scan, "SCANNED", 0)


def large(seed: int, name: str) -> onnx.TensorProto:
    array = np.random.default_rng(seed).standard_normal((300, 300), dtype=np.float32)
    return numpy_helper.from_array(array, name)


def proto() -> onnx.ModelProto:
    made = onnx.parser.parse_model(BODY)
    made.graph.initializer.extend([large(0, "u"), large(1, "w"), large(0, "unused")])
    made.graph.initializer[0].doc_string = "kept"
    entry = made.graph.initializer[1].metadata_props.add()
    entry.key, entry.value = "k", "v"
    inner = made.graph.node[0].attribute[0].g
    inner.initializer.append(large(2, "u"))
    del made.graph.initializer[0]
    return made


def with_constants() -> onnx.ModelProto:
    """Return a model with large Constants in the main graph, in a body and in a local function."""
    made = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'
        " g (float[300,300] x, bool c) => (float[300,300] y) { t = If(c) <"
        " then_branch = a () => (float[300,300] p) { k = Constant<value = float {1}>() p = Add(x, k) },"
        " else_branch = b () => (float[300,300] q) { q = Neg(x) }>"
        " m = Constant<value = float {1}>()  s = Add(t, m)  y = local.f(s) }"
        ' <domain: "local", opset_import: ["" : 21]> f (a) => (b) {'
        " n = Constant<value = float {1}>()  b = Mul(a, n) }"
    )
    body, function = made.graph.node[0].attribute[0].g, made.functions[0]
    for seed, node in enumerate((made.graph.node[1], body.node[0], function.node[0])):
        node.attribute[0].t.CopyFrom(large(seed, ""))
    return made


def saved(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    return path


def test_weights_are_left_on_disk_and_come_back_as_they_were(tmp_path: Path) -> None:
    path = saved(tmp_path, proto())
    skeleton = protobuf_scan.read_skeleton(str(path))
    assert skeleton is not None
    assert len(skeleton) < 3000
    model = Model.load(path)
    assert all(value.default and value.default.is_stored for value in model.main.initializers)
    assert model.to_proto() == onnx.load(path)
    model.save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == path.read_bytes()
    assert model.copy().to_proto() == onnx.load(path)


def test_the_same_bytes_are_written_however_the_file_was_read(tmp_path: Path) -> None:
    path = saved(tmp_path, proto())
    for name, model in (("a", Model.load(path)), ("b", Model.from_proto(onnx.load(path)))):
        model.main.remove_constant(model.main.values["unused"])
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_weights_of_constants_are_left_on_disk_too(tmp_path: Path) -> None:
    path = saved(tmp_path, with_constants())
    skeleton = protobuf_scan.read_skeleton(str(path))
    assert skeleton is not None
    assert len(skeleton) < 3000
    model = Model.load(path)
    tensors = [
        node.constant_tensor() for graph in model.graphs() for node in graph.nodes_of("Constant")
    ]
    assert [tensor is not None and tensor.is_stored for tensor in tensors] == [True] * 3
    assert model.to_proto() == onnx.load(path)
    assert abs(model.skeleton_size() + 3 * 360_000 - path.stat().st_size) < 300
    assert model.main.outputs[0].shape == (300, 300)
    check_model(model)
    assert model.complaint_as_loaded() is None
    model.save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == path.read_bytes()
    model.save(tmp_path / "apart.onnx", storage=Storage(external=1024))
    assert (tmp_path / "apart.onnx.data").stat().st_size > 3 * 360_000
    onnx.checker.check_model(str(tmp_path / "apart.onnx"))


@pytest.mark.parametrize("level", [0, 3])
def test_constants_on_disk_and_in_memory_compute_the_same(tmp_path: Path, level: int) -> None:
    path = saved(tmp_path, with_constants())
    optimize(path, tmp_path / "a.onnx", opt_level=level, verify=True)
    made = optimize(onnx.load(path), opt_level=level)
    assert onnx.load(tmp_path / "a.onnx") == made


def test_stored_numbers_hashes_and_sizes_are_those_of_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, proto())
    model, parsed = Model.load(path), Model.from_proto(onnx.load(path))
    for value in parsed.main.initializers:
        stored, whole = model.main.values[value.name].default, value.default
        assert stored is not None
        assert whole is not None
        assert stored.key() == whole.key()
        assert np.array_equal(stored.numpy(), whole.numpy())
    assert model.nbytes == parsed.nbytes
    assert 0 <= path.stat().st_size - model.nbytes < 1000
    assert abs(model.skeleton_size() + 3 * 360_000 - path.stat().st_size) < 300


def test_an_irregular_file_is_parsed_whole(tmp_path: Path) -> None:
    whole = proto().SerializeToString()
    for name, content in {"cut": whole[:-1], "group": b"\x0b" + whole, "none": b"\x00" * 9}.items():
        (tmp_path / name).write_bytes(content)
        assert protobuf_scan.read_skeleton(str(tmp_path / name)) is None
        with pytest.raises(ModelError):
            Model.load(tmp_path / name)


def test_a_wrong_length_is_an_error_that_names_the_tensor(tmp_path: Path) -> None:
    made = proto()
    made.graph.initializer[0].raw_data += b"1234"
    with pytest.raises(ModelError, match="'w' has 360,004 bytes of data"):
        Model.load(saved(tmp_path, made))


def test_a_file_that_changes_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = saved(tmp_path, proto())
    model = Model.load(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ModelError, match="was changed while its weights were in use"):
        model.save(tmp_path / "out.onnx")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]


def test_a_model_cannot_forge_a_place(tmp_path: Path) -> None:
    made = proto()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="stored:0:0:0:/etc/passwd")
    model = Model.load(saved(tmp_path, made))
    with pytest.raises(ModelError, match="inside the folder"):
        model.save(tmp_path / "out.onnx")


def test_large_results_go_to_disk(tmp_path: Path) -> None:
    array = np.arange(1 << 22, dtype=np.float32).reshape(2048, 2048).T
    tensor = Tensor.of(array)
    assert tensor.is_stored
    assert np.array_equal(tensor.numpy(), array)
    model = Model.load(saved(tmp_path, proto()))
    model.main.set_graph_outputs(model.main.outputs, model.main.output_infos)
    x = model.main.constant(tensor, "big")
    model.main.set_input(model.main.nodes[1], 1, x)
    model.save(tmp_path / "out.onnx")
    kept = {tensor.name: tensor for tensor in onnx.load(tmp_path / "out.onnx").graph.initializer}
    assert np.array_equal(numpy_helper.to_array(kept[x.name]), array)


def test_weights_can_be_made_external_and_be_taken_in_again(tmp_path: Path) -> None:
    path = saved(tmp_path, proto())
    outside = tmp_path / "outside.onnx"
    Model.load(path).save(outside, storage=Storage(external=1024))
    data = tmp_path / "outside.onnx.data"
    assert outside.stat().st_size < 4000
    assert data.stat().st_size > 1_000_000
    assert all(int(tensor.external_data[1].value) % 4096 == 0
               for tensor in onnx.load(outside, load_external_data=False).graph.initializer)  # fmt: skip
    onnx.checker.check_model(str(outside))
    inside = tmp_path / "inside.onnx"
    Model.load(outside).save(inside, storage=Storage(single=True))
    assert inside.read_bytes() == path.read_bytes()
    shared = tmp_path / "shared.onnx"
    Model.load(outside).save(shared, storage=Storage(share=True))
    assert not (tmp_path / "shared.onnx.data").exists()
    assert onnx.load(shared).graph == onnx.load(outside).graph


def test_the_weights_of_the_model_that_is_replaced_stay_until_the_new_one_is_there(
    tmp_path: Path,
) -> None:
    path, out = saved(tmp_path, proto()), tmp_path / "out.onnx"
    for names in (["out.onnx.data"], ["out.onnx.1.data"], ["out.onnx.data"]):
        Model.load(path).save(out, storage=Storage(external=1024))
        found = sorted(entry.name for entry in tmp_path.iterdir() if "data" in entry.name)
        assert found == names
        assert onnx.load(out).graph.initializer[0].raw_data == proto().graph.initializer[0].raw_data


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = saved(tmp_path, proto()), tmp_path / "out.onnx"
    out.write_bytes(b"before")

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    for storage in (Storage(), Storage(external=1)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(ModelError, match=r"cannot write .*out\.onnx: No space left"):
                Model.load(path).save(out, storage=storage)
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.onnx", "out.onnx"]
        assert out.read_bytes() == b"before"


MANY = 40_000


def long_list(kind: str) -> onnx.ModelProto:
    """Return a model with a list of which each element is a field of its own."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>'
        " g (float[N,3] x) => (float[N,1] y) { t = ai.onnx.ml.TreeEnsembleRegressor(x)  y = Abs(t) }"
    )
    node = made.graph.node[0]
    if kind == "inputs":
        node.CopyFrom(onnx.helper.make_node("Sum", ["x"] * MANY, ["t"]))
        return made
    if kind == "texts of a tensor":
        kind_of = onnx.TensorProto.STRING
        made.graph.initializer.add(
            name="s", data_type=kind_of, dims=[MANY], string_data=[b"text"] * MANY
        )
    one: dict[str, Any] = {"nodes_values": 0.5, "nodes_nodeids": 1 << 40, "nodes_modes": "LEAF"}
    for name, element in one.items():
        node.attribute.append(onnx.helper.make_attribute(name, [element] * MANY))
    return made


@pytest.mark.parametrize("kind", ["attributes", "texts of a tensor"])
def test_long_lists_are_skipped_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    made = long_list(kind)
    made.graph.initializer.append(large(0, "w"))
    path = saved(tmp_path, made)
    monkeypatch.setattr(protobuf_scan, "_MOST_FIELDS", 100)
    skeleton = protobuf_scan.read_skeleton(str(path))
    assert skeleton is not None
    assert len(skeleton) == pytest.approx(path.stat().st_size - 360_000, abs=300)
    model = Model.load(path)
    assert model.to_proto() == onnx.load(path)
    model.save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == path.read_bytes()


def test_a_file_of_too_many_fields_is_parsed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = long_list("inputs")
    made.graph.initializer.append(large(0, "w"))
    path = saved(tmp_path, made)
    assert protobuf_scan.read_skeleton(str(path)) is not None
    monkeypatch.setattr(protobuf_scan, "_MOST_FIELDS", MANY)
    assert protobuf_scan.read_skeleton(str(path)) is None
    assert Model.load(path).to_proto() == onnx.load(path)


def test_long_lists_without_types_are_not_checked_by_element() -> None:
    model = Model.from_proto(long_list("attributes"))
    assert model.main.outputs[0].dim(0) == "N"
    bare = export_model(model, max_elements=1)
    assert bare.ByteSize() < 1000
    assert [attribute.name for attribute in bare.graph.node[0].attribute] == [
        "nodes_values", "nodes_nodeids", "nodes_modes",
    ]  # fmt: skip
    assert len(model.to_proto().graph.node[0].attribute[0].floats) == MANY
    classes = model.main.nodes[0]
    model.main.set_attribute(classes, "class_ids", list(range(2000)))
    bare = export_model(model, max_elements=1)
    assert len(bare.graph.node[0].attribute[3].ints) == 2000


def of_bytes(count: int, name: str = "w") -> onnx.TensorProto:
    return onnx.TensorProto(name=name, data_type=2, dims=[count], raw_data=bytes(range(count)))


def around(node: onnx.NodeProto | None = None, *tensors: onnx.TensorProto) -> onnx.ModelProto:
    made = onnx.ModelProto(ir_version=10)
    made.graph.name = "graph"
    if node is not None:
        made.graph.node.append(node)
    made.graph.initializer.extend(tensors)
    return made


def nested(depth: int) -> onnx.ModelProto:
    """Return a model with a weight within this many bodies."""
    made = around(onnx.NodeProto(op_type="Nest"))
    graph = made.graph
    for _ in range(depth):
        del graph.node[1:]
        if not graph.node:
            graph.node.add(op_type="Nest")
        graph = graph.node[0].attribute.add(name="b", type=onnx.AttributeProto.GRAPH).g
        graph.name = "inner"
    graph.initializer.append(of_bytes(16))
    return made


def training() -> onnx.ModelProto:
    made = around()
    part = made.training_info.add()
    part.initialization.initializer.append(of_bytes(16, "a"))
    part.algorithm.initializer.append(of_bytes(16, "b"))
    return made


def with_bodies_in_a_list(*numbers: int) -> onnx.ModelProto:
    made = around(onnx.NodeProto(op_type="Mine", name="a name of many letters"))
    attribute = made.graph.node[0].attribute.add(name="b", type=onnx.AttributeProto.GRAPHS)
    attribute.ints.extend(numbers)
    for name in ("one", "two"):
        attribute.graphs.add(name=name).initializer.append(of_bytes(16, name))
    return made


def constant(op_type: str, **more: Any) -> onnx.ModelProto:
    node = onnx.NodeProto(op_type=op_type, output=["c"])
    attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=of_bytes(16))
    for name, content in more.items():
        getattr(attribute, name).extend(content)
    return around(node)


def tensor(**more: Any) -> onnx.TensorProto:
    made = of_bytes(16)
    made.MergeFrom(onnx.TensorProto(**more))
    return made


def field(number: int, kind: int, content: bytes) -> bytes:
    key = number << 3 | kind
    return bytes([key & 0x7F | 0x80, key >> 7]) + content


UNKNOWN = (
    field(999, 0, b"\xff" * 9 + b"\x01") + field(999, 1, bytes(8))
    + field(999, 5, bytes(4)) + field(999, 2, b"\x03abc")
)  # fmt: skip
OUTSIDE = onnx.StringStringEntryProto(key="location", value="file")


def extended(model: onnx.ModelProto, more: bytes) -> onnx.ModelProto:
    made = onnx.ModelProto.FromString(model.SerializeToString() + more)
    for each in made.graph.initializer:
        each.MergeFromString(more)
    return made


# The weights that stay on disk; nothing where the file is parsed whole.
LEFT: dict[str, tuple[onnx.ModelProto | bytes, int]] = {
    "a weight": (around(None, of_bytes(16)), 1),
    "a small weight": (around(None, of_bytes(15)), 0),
    "a large weight between small ones": (
        around(None, of_bytes(3, "a"), of_bytes(40, "b"), of_bytes(3, "c"), of_bytes(200, "d")),
        2,
    ),
    "a text behind": (around(None, tensor(doc_string="of the weight")), 1),
    "numbers beside": (around(None, tensor(float_data=[1.0])), 0),
    "a place beside": (around(None, tensor(external_data=[OUTSIDE])), 0),
    "another location beside": (around(None, tensor(data_location=0)), 0),
    "a training": (training(), 2),
    "bodies in a list": (with_bodies_in_a_list(), 2),
    "a constant": (constant("Constant"), 1),
    "a tensor of another operator": (constant("Other"), 0),
    "a constant with numbers": (constant("Constant", floats=[1.0]), 1),
    "bodies behind numbers": (with_bodies_in_a_list(1), 0),
    "a graph in two parts": (
        around(None, of_bytes(16)).SerializeToString() + around(None, of_bytes(20)).SerializeToString(),
        2,
    ),
    "29 bodies": (nested(29), 1),
    "30 bodies": (nested(30), 0),
    "fields of other versions": (extended(around(None, of_bytes(16)), UNKNOWN), 1),
    "nothing": (around(), 0),
    "a group": (around(None, of_bytes(16)).SerializeToString() + field(999, 3, b""), 0),
    "a field zero": (around(None, of_bytes(16)).SerializeToString() + b"\x00\x01", 0),
    "a number that is too long": (
        around(None, of_bytes(16)).SerializeToString() + field(999, 0, b"\xff" * 10 + b"\x01"),
        0,
    ),
    "an end that is missing": (around(None, of_bytes(16)).SerializeToString() + field(999, 1, b""), 0),
}  # fmt: skip


def test_what_stays_on_disk_and_comes_back_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protobuf_scan, "_LARGE", 16)
    path = tmp_path / "m.onnx"
    for name, (made, count) in LEFT.items():
        content = made if isinstance(made, bytes) else made.SerializeToString(deterministic=True)
        path.write_bytes(content)
        skeleton = protobuf_scan.read_skeleton(str(path))
        assert (skeleton is None) == (count == 0), name
        assert protobuf_scan.read_model_bytes(str(path)) == (
            content if skeleton is None else skeleton
        )
        if skeleton is None:
            assert list(protobuf_scan.splice(content)) == [content]
            continue
        assert skeleton.count(b"stored:") == count, name
        pieces = list(protobuf_scan.splice(skeleton))
        assert protobuf_scan.size_of(pieces) == len(content)
        whole = b"".join(
            content[piece.offset :][: piece.length]
            if isinstance(piece, protobuf_scan.ByteSpan)
            else piece
            for piece in pieces
        )
        assert whole == content, name


def test_a_weight_in_two_pieces_or_before_its_operator_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protobuf_scan, "_LARGE", 16)
    path = tmp_path / "m.onnx"
    once = of_bytes(16).SerializeToString()
    node = constant("Constant").graph.node[0]
    attribute = (
        b"\x2a" + bytes([node.attribute[0].ByteSize()]) + node.attribute[0].SerializeToString()
    )
    operator = b"\x22\x08Constant"
    for number, content, is_left in (
        (0x2A, once, True), (0x2A, once + b"\x4a\x10" + bytes(16), False),
        (0x0A, operator + attribute, True), (0x0A, attribute + operator, False),
    ):  # fmt: skip
        graph = bytes([number, len(content)]) + content
        path.write_bytes(b"\x3a" + bytes([len(graph)]) + graph)
        assert (protobuf_scan.read_skeleton(str(path)) is not None) is is_left
