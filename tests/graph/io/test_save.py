"""Model files are written whole or not at all; weights go where they are asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import named, parsed
from tiered import Model, ModelError
from tiered.graph import Tensor
from tiered.graph.io import save
from tiered.graph.io.save import (
    PlacedWeights,
    Storage,
    check_storage,
    data_files,
    save_model as saved,
    tensors_of,
)


def external_model(folder: Path) -> Path:
    weight = np.arange(4096, dtype=np.float32)
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]>'
        " g (float[4096] x) => (float[4096] y) { y = Add(x, x) }"
    )
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    proto.graph.node[0].input[1] = "w"
    path = folder / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="out.onnx.data", size_threshold=0)
    return path


def test_weights_are_never_written_over_the_file_they_are_read_from(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    before = (tmp_path / "out.onnx.data").read_bytes()
    with pytest.raises(ModelError, match="has weights of the model itself"):
        Model.load(path).save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx.data").read_bytes() == before
    assert not (tmp_path / "out.onnx").exists()


def test_external_weights_are_copied_to_a_file_beside_the_result(tmp_path: Path) -> None:
    Model.load(external_model(tmp_path)).save(tmp_path / "other.onnx")
    saved = onnx.load(tmp_path / "other.onnx")
    array = numpy_helper.to_array(saved.graph.initializer[0])
    assert np.array_equal(array, np.arange(4096, dtype=np.float32))


SMALL = (
    "(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[4] k = {1,2,3,4}> { y = Add(x, w) }"
)


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("external", "outside"), [(None, []), (0, ["w", "k"]), (8, ["w", "k"]), (9, ["k"]), (17, [])]
)
def test_weights_from_so_many_bytes_on_go_to_a_file(
    tmp_path: Path, external: int | None, outside: list[str]
) -> None:
    placed = saved(parsed(SMALL), str(tmp_path / "m.onnx"), storage=Storage(external=external))
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    names = [tensor.name for tensor in proto.graph.initializer if tensor.external_data]
    assert names == outside
    assert listed(tmp_path) == ["m.onnx", *(["m.onnx.data"] if outside else [])]
    sizes = {"w": 8, "k": 16}
    made = (len(outside), sum(sizes[name] for name in outside))
    assert placed == PlacedWeights(shared=(0, 0), copied=(0, 0), made=made)
    whole = onnx.load(tmp_path / "m.onnx")
    arrays = {each.name: numpy_helper.to_array(each).tolist() for each in whole.graph.initializer}
    assert arrays == {"w": [1, 2], "k": [1, 2, 3, 4]}


def test_weights_of_no_bytes_stay_inside(tmp_path: Path) -> None:
    model = parsed("(float[0] x) => (float[0] y) <float[0] w = {}> { y = Add(x, w) }")
    saved(model, str(tmp_path / "m.onnx"), storage=Storage(external=0))
    assert listed(tmp_path) == ["m.onnx"]


def test_external_weights_start_at_pages(tmp_path: Path) -> None:
    saved(parsed(SMALL), str(tmp_path / "m.onnx"), storage=Storage(external=1))
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    entries = [
        {each.key: each.value for each in tensor.external_data}
        for tensor in proto.graph.initializer
    ]
    assert entries == [
        {"location": "m.onnx.data", "offset": "0", "length": "8"},
        {"location": "m.onnx.data", "offset": "4096", "length": "16"},
    ]
    assert not any(tensor.raw_data or tensor.float_data for tensor in proto.graph.initializer)


def test_a_model_with_external_weights_keeps_new_ones_of_a_mebibyte_outside(tmp_path: Path) -> None:
    model = Model.load(external_model(tmp_path))
    for count, name in (((1 << 18) - 1, "less"), (1 << 18, "much")):
        model.main.add_constant(Tensor.of(np.zeros(count, np.float32)), name)
    placed = saved(model, str(tmp_path / "new.onnx"))
    proto = onnx.load(tmp_path / "new.onnx", load_external_data=False)
    assert [tensor.name for tensor in proto.graph.initializer if tensor.external_data] == [
        "w",
        "much",
    ]
    assert placed == PlacedWeights(shared=(0, 0), copied=(1, 16384), made=(1, 1 << 20))
    plain = parsed(SMALL)
    plain.main.add_constant(Tensor.of(np.zeros(1 << 18, np.float32)), "much")
    assert saved(plain, str(tmp_path / "plain.onnx")).made == (0, 0)


def test_all_weights_may_be_in_the_model_file(tmp_path: Path) -> None:
    placed = saved(
        Model.load(external_model(tmp_path)), str(tmp_path / "s.onnx"), storage=Storage(single=True)
    )
    proto = onnx.load(tmp_path / "s.onnx", load_external_data=False)
    assert numpy_helper.to_array(proto.graph.initializer[0]).tolist() == [*range(4096)]
    assert placed == PlacedWeights(shared=(0, 0), copied=(0, 0), made=(0, 0))


def test_external_weights_in_the_target_folder_may_stay(tmp_path: Path) -> None:
    model = Model.load(external_model(tmp_path))
    placed = saved(model, str(tmp_path / "new.onnx"), storage=Storage(share=True))
    assert placed == PlacedWeights(shared=(1, 16384), copied=(0, 0), made=(0, 0))
    assert "new.onnx.data" not in listed(tmp_path)
    (tmp_path / "other").mkdir()
    placed = saved(model, str(tmp_path / "other" / "new.onnx"), storage=Storage(share=True))
    assert placed.copied == (1, 16384)
    assert listed(tmp_path / "other") == ["new.onnx", "new.onnx.data"]


def test_the_weights_of_a_replaced_model_are_replaced_under_another_name(tmp_path: Path) -> None:
    path, storage = tmp_path / "m.onnx", Storage(external=1)
    for expected in ("m.onnx.data", "m.onnx.1.data", "m.onnx.data"):
        saved(parsed(SMALL), str(path), storage=storage)
        assert listed(tmp_path) == sorted(["m.onnx", expected])
        proto = onnx.load(path, load_external_data=False)
        assert proto.graph.initializer[0].external_data[0].value == expected


def test_a_file_whose_name_is_part_of_that_of_the_weights_is_not_theirs(tmp_path: Path) -> None:
    """A model reads `old.m.onnx.data`, and says `m.onnx.data` in words."""
    replaced, other = tmp_path / "m.onnx", tmp_path / "m.onnx.1.data"
    proto = onnx.load(external_model(tmp_path), load_external_data=False)
    proto.doc_string = f"not {other.name}"
    proto.graph.initializer[0].external_data[0].value = "old.m.onnx.1.data"
    replaced.write_bytes(proto.SerializeToString())
    other.write_bytes(b"of another model")
    saved(Model.load(tmp_path / "model.onnx"), str(replaced), storage=Storage(external=1))
    assert other.read_bytes() == b"of another model"


def test_weights_for_safetensors_have_its_suffix(tmp_path: Path) -> None:
    storage = Storage(external=1, safetensors=True)
    assert storage.suffix == ".safetensors"
    saved(parsed(SMALL), str(tmp_path / "m.onnx"), storage=storage)
    assert listed(tmp_path) == ["m.onnx", "m.onnx.safetensors"]
    whole = onnx.load(tmp_path / "m.onnx")
    assert numpy_helper.to_array(whole.graph.initializer[1]).tolist() == [1, 2, 3, 4]
    names = [Path(name).name for name in data_files(str(tmp_path / "m.onnx"))]
    assert names == [
        "m.onnx.data", "m.onnx.1.data", "m.onnx.safetensors", "m.onnx.1.safetensors"
    ]  # fmt: skip


def test_a_folder_that_is_not_there_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "none" / "m.onnx"
    for storage in (Storage(), Storage(external=1)):
        with pytest.raises(ModelError, match=f"cannot write {path}: No such file or directory"):
            saved(parsed(SMALL), str(path), storage=storage)
    assert listed(tmp_path) == []


def test_what_protobuf_does_not_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(save, "_PROTO_LIMIT", 20)
    model = parsed(SMALL)
    with pytest.raises(
        ModelError, match="24 bytes of weights, and a model file holds at most 2 GiB"
    ):
        check_storage(model, Storage())
    check_storage(model, Storage(external=16))
    check_storage(model, Storage(external=1))
    with pytest.raises(ModelError, match="24 bytes of weights"):
        check_storage(model, Storage(external=1, single=True))
    with pytest.raises(ModelError, match="would be larger than the 2 GiB of a protobuf file"):
        saved(model, str(tmp_path / "m.onnx"))
    assert listed(tmp_path) == []
    monkeypatch.setattr(save, "_PROTO_LIMIT", 24)
    check_storage(model, Storage())


def test_constants_count_where_all_is_in_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save, "_PROTO_LIMIT", 8)
    model = parsed(
        "(float[2] x) => (float[2] y) { k = Constant<value = float[3] {1,2,3}>() y = Neg(x) }"
    )
    check_storage(model, Storage())
    with pytest.raises(ModelError, match="12 bytes of weights"):
        check_storage(model, Storage(single=True))


def test_tensors_are_found_at_any_depth() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> {
        k = Constant<value = float[1] {1}>()  n = Constant<value_float = 2.0>()
        y = If(c) <then_branch = t () => (float[2] p) <float[3] v = {1,2,3}> { p = Neg(x) },
                   else_branch = e () => (float[2] q) {
                       m = Constant<value = float[4] {1,2,3,4}>()  q = Abs(x) }> }
        <domain: "f", opset_import: ["" : 21]> F (a) => (b) {
            o = Constant<value = float[5] {1,2,3,4,5}>()  b = Neg(a) }"""
    )
    assert sorted(tensor.dims[0] for tensor in tensors_of(proto)) == [1, 2, 3, 4, 5]


def test_inferred_types_are_written_where_that_is_asked_for(tmp_path: Path) -> None:
    model = parsed("(float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(a) }")
    for annotate, count in ((False, 0), (True, 1)):
        saved(model, str(tmp_path / "m.onnx"), annotate=annotate)
        assert len(onnx.load(tmp_path / "m.onnx").graph.value_info) == count
    assert named(model, "a").declared is None


def inside_and_outside(folder: Path) -> tuple[list[str], list[str]]:
    proto = onnx.load(folder / "m.onnx", load_external_data=False)
    tensors = [*tensors_of(proto)]
    is_outside = [tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors]
    names = [
        [t.name for t, out in zip(tensors, is_outside, strict=True) if out is side]
        for side in (False, True)
    ]
    return names[0], names[1]


def test_a_weight_that_has_a_place_goes_there_whatever_its_size(tmp_path: Path) -> None:
    for storage, expected in (
        (Storage(), ["placed"]), (Storage(external=0), ["w", "k", "placed"]),
        (Storage(external=16), ["k", "placed"]), (Storage(single=True), []),
    ):  # fmt: skip
        model = parsed(SMALL)
        numbers = Tensor.of(np.ones(3, np.float32))
        model.main.add_constant(numbers.placed("data"), "placed")
        model.main.add_constant(numbers.placed("model"), "kept")
        saved(model, str(tmp_path / "m.onnx"), storage=storage)
        inside, outside = inside_and_outside(tmp_path)
        assert (outside, len(inside)) == (expected, 4 - len(expected))
        proto = onnx.load(tmp_path / "m.onnx")
        arrays = {
            each.name: numpy_helper.to_array(each).tolist() for each in proto.graph.initializer
        }
        assert arrays["placed"] == arrays["kept"] == [1, 1, 1]
        whole = onnx.load(tmp_path / "m.onnx", load_external_data=False)
        assert [
            len(each.external_data) for each in whole.graph.initializer if each.name == "kept"
        ] == [0]
        (tmp_path / "m.onnx.data").unlink(missing_ok=True)
        (tmp_path / "m.onnx.1.data").unlink(missing_ok=True)
        (tmp_path / "m.onnx").unlink()


def test_elements_in_each_field_are_written_as_bytes(tmp_path: Path) -> None:
    proto = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }").to_proto()
    fields: dict[str, tuple[int, list[Any]]] = {
        "float_data": (1, [0.5, -1.0]), "int32_data": (6, [1, -2]), "int64_data": (7, [3, 4]),
        "double_data": (11, [0.25, 5.0]), "uint64_data": (13, [6, 7]), "string_data": (8, [b"a", b"b"]),
    }  # fmt: skip
    for field, (dtype, elements) in fields.items():
        tensor = proto.graph.initializer.add(name=field, data_type=dtype, dims=[2])
        getattr(tensor, field).extend(elements)
    weights, places = (onnx.helper.make_tensor(name, 7, [1], [0]) for name in ("s", "i"))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(weights, places, [3]))
    placed = saved(Model.from_proto(proto), str(tmp_path / "m.onnx"), storage=Storage(external=0))
    assert placed.made == (5, 8 + 8 + 16 + 16 + 16)
    assert inside_and_outside(tmp_path) == (
        ["string_data"],
        [name for name in fields if name != "string_data"],
    )
    whole = onnx.load(tmp_path / "m.onnx")
    for tensor in whole.graph.initializer:
        expected = [
            each.decode() if isinstance(each, bytes) else each for each in fields[tensor.name][1]
        ]
        assert numpy_helper.to_array(tensor).tolist() == expected
    bare = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert all(
        not getattr(each, each.name) for each in bare.graph.initializer if each.external_data
    )
    assert len(bare.graph.sparse_initializer) == 1


def test_attributes_of_unknown_operators_may_be_tensors() -> None:
    for op_type, domain, expected in (
        ("Constant", "", True), ("ConstantOfShape", "", True), ("If", "", True), ("Relu", "", False),
        ("Conv", "", False), ("Any", "", True), ("Any", "vendor", True), (b"\xff", "", True),
        ("Relu", b"\xff", True), ("Relu", "ai.onnx", False), ("Scan", "", True),
    ):  # fmt: skip
        assert save._may_hold_more(op_type, domain) is expected, op_type
