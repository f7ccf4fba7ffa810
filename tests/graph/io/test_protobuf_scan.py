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
    with pytest.raises(ModelError, match="'w' has 360004 bytes of data"):
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
