from pathlib import Path

import onnx
import pytest

from tests.module_passes.initializers.weights import external_names, loaded, model_with_weights
from tiered import Model, ModelError, UsageError, get_pass
from tiered.graph.io.save import Storage
from tiered.testing import assert_unchanged

PASS = "bake_parameters"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    Model.from_proto(model_with_weights()).save(path, storage=Storage(0))
    assert external_names(path) == ["inner", "one", "v", "w"]
    return path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"max_size": "1000"}, ["inner", "v", "w"]),
        ({"max_size": "1599"}, ["inner", "v", "w"]),
        ({"max_size": "1600"}, []),
        ({"tensors": ["w", "on?"]}, ["inner", "v"]),
    ],
)
def test_weights_come_in_by_size_and_name(
    source: Path, options: dict[str, object], expected: list[str]
) -> None:
    model = Model.load(source)
    get_pass(PASS, **options).apply(model)
    path = source.with_name("out.onnx")
    model.save(path)
    assert external_names(path) == expected
    assert loaded(path) == model_with_weights()


def test_a_weight_that_is_to_be_external_stays_in(tmp_path: Path) -> None:
    model = Model.from_proto(model_with_weights())
    for name in ("unbake", PASS):
        get_pass(name).apply(model)
    path = tmp_path / "out.onnx"
    model.save(path)
    assert external_names(path) == []
    assert loaded(path) == model_with_weights()


def test_a_large_weight_stays_in_beside_external_ones(tmp_path: Path) -> None:
    # Without the pass, a model with external weights has all new ones of 1 MiB outside.
    proto = model_with_weights()
    large = onnx.helper.make_tensor("large", 1, [1 << 18], bytes(1 << 20), raw=True)
    proto.graph.initializer.append(large)
    proto.graph.node.add(op_type="Identity", input=["large"], output=["l"])
    proto.graph.output.add(name="l").type.CopyFrom(onnx.helper.make_tensor_type_proto(1, [1 << 18]))
    path, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    Model.from_proto(proto).save(path, storage=Storage(0))
    model = Model.load(path)
    get_pass(PASS, tensors=["large"]).apply(model)
    model.save(out)
    assert external_names(out) == ["inner", "one", "v", "w"]
    assert loaded(out) == proto


def test_it_is_undone(source: Path) -> None:
    model = Model.load(source)
    mark = model.mark()
    get_pass(PASS).apply(model)
    assert not any(v.default and v.default.is_external for v in model.main.initializers)
    model.undo_to(mark)
    assert all(v.default and v.default.is_external for v in model.main.initializers)


def test_unbake_takes_it_back(source: Path) -> None:
    model = Model.load(source)
    get_pass(PASS).apply(model)
    get_pass("unbake", tensors=["w"]).apply(model)
    out = source.with_name("out.onnx")
    model.save(out)
    assert external_names(out) == ["w"]


def test_there_is_nothing_external() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    assert_unchanged(PASS, text, because="no such weight is in external data")


def test_a_missing_file_and_a_wrong_name_are_errors(source: Path) -> None:
    with pytest.raises(UsageError, match="bake_parameters: no initializer is named 'z\\*'"):
        get_pass(PASS, tensors=["z*"]).apply(Model.load(source))
    model = Model.load(source)
    source.with_name("in.onnx.data").unlink()
    with pytest.raises(ModelError, match="is missing"):
        get_pass(PASS).apply(model)
