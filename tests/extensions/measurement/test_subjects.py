"""The models of a measurement: their files, and the inputs that all of them run on."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered.extensions.measurement.subjects import (
    MeasuredModel,
    opened,
    samples_of,
    sizes_of_inputs,
    subject,
)
from tiered.runtime.inputs.samples import Source
from tiered.runtime.opening import Opening
from tiered.support.errors import MissingOperator, ModelError, ShapeError, UsageError
from tiered.testing import parse

RELU = "(float[n,8] x) => (float[n,8] y) { y = Relu(x) }"


def made(text: str, name: str) -> MeasuredModel:
    return subject(parse(text))._replace(name=name)


def with_weight(folder: Path) -> Path:
    model = parse("(float[4] x) => (float[4] y) <float w> { y = Add(x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "w"))
    path = folder / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="data.bin", size_threshold=0)
    return path


def samples(
    *subjects: MeasuredModel,
    inputs: tuple[Source, ...] = (),
    sizes: dict[str, list[int]] | None = None,
) -> tuple[list[tuple[int, ...]], list[np.dtype]]:
    """Return the shapes of x in the samples, and its dtype for each model."""
    found, feeds = samples_of(
        subjects, Opening(), inputs=inputs, seed=0, sizes=sizes or {}, seconds=60
    )
    shapes = [np.asarray(each.inputs.feeds["x"]).shape for each in found]
    return shapes, [np.asarray(each[0]["x"]).dtype for each in feeds]


# --- files ----------------------------------------------------------------------------------------


def test_a_file_has_its_path_as_name_and_its_data_beside_it(tmp_path: Path) -> None:
    path = with_weight(tmp_path)
    found = subject(path)
    assert (found.name, found.folder) == (str(path), "")
    assert found.data_files == [str(tmp_path / "data.bin")]
    assert found.file_bytes == path.stat().st_size + (tmp_path / "data.bin").stat().st_size


def test_the_data_of_a_proto_is_in_its_folder(tmp_path: Path) -> None:
    proto = onnx.load(with_weight(tmp_path), load_external_data=False)
    assert subject(proto).data_files == []
    assert subject(proto).file_bytes == proto.ByteSize()
    placed = MeasuredModel(proto, "m", proto, str(tmp_path))
    assert placed.data_files == [str(tmp_path / "data.bin")]
    assert placed.file_bytes == proto.ByteSize() + 16


def test_a_tensor_that_holds_its_elements_has_no_file(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    model.graph.initializer[0].external_data.add(key="location", value="gone.bin")
    onnx.save_model(model, tmp_path / "m.onnx")
    found = subject(tmp_path / "m.onnx")
    assert found.data_files == []
    assert found.file_bytes == (tmp_path / "m.onnx").stat().st_size


def test_a_file_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        subject(tmp_path / "none.onnx")


# --- sizes ----------------------------------------------------------------------------------------


def test_sizes_are_those_given_and_those_that_another_model_fixes() -> None:
    free = made(RELU, "free")
    fixed = made(RELU.replace("n", "3"), "fixed")
    assert sizes_of_inputs([free], {}, {}) == {}
    assert sizes_of_inputs([free], {}, {"n": 5}) == {"x": [5, -1]}
    assert sizes_of_inputs([free], {"x": (2, 8)}, {}) == {"x": (2, 8)}
    assert sizes_of_inputs([free, free], {}, {}) == {"x": [-1, 8]}
    assert sizes_of_inputs([free, fixed], {}, {}) == {"x": [3, 8]}
    assert sizes_of_inputs([free, free, fixed], {}, {}) == {"x": [3, 8]}
    assert sizes_of_inputs([free, fixed], {}, {"n": 5}) == {"x": [5, 8]}
    assert sizes_of_inputs([free, fixed], {"x": ("m", 8)}, {}) == {"x": [3, 8]}
    assert sizes_of_inputs([free, fixed], {"x": (1, 8)}, {}) == {"x": [1, 8]}


def test_unknown_inputs_and_dims_are_refused() -> None:
    free = made(RELU, "free")
    with pytest.raises(UsageError, match="free has no input 'z'; it has x"):
        sizes_of_inputs([free], {"z": (1,)}, {})
    alone = made("() => (float[1] y) <float[1] w = {1}> { y = Relu(w) }", "alone")
    with pytest.raises(UsageError, match="alone has no input 'z'; it has none"):
        sizes_of_inputs([alone], {"z": (1,)}, {})
    with pytest.raises(ShapeError, match="dim 1 of input 'x' is 8"):
        sizes_of_inputs([free], {"x": (1, 9)}, {})
    with pytest.raises(UsageError, match="no input of the model has a dim 'm'"):
        sizes_of_inputs([free], {}, {"m": 1})


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[3], [3, 8, 3], []])
def test_an_input_keeps_its_rank(sizes: list[int]) -> None:
    model, count = subject(parse(RELU)), len(sizes)
    with pytest.raises(UsageError, match=rf"input 'x' has 2 dims \(float\[n,8\]\), not {count}"):
        sizes_of_inputs([model], {"x": sizes}, {})
    assert sizes_of_inputs([model], {"x": [3, 8]}, {}) == {"x": [3, 8]}


def test_inputs_are_made_once_in_the_dtype_of_each_model() -> None:
    half = made(RELU.replace("float[", "float16["), "half")
    shapes, dtypes = samples(made(RELU, "free"), half, sizes={"x": [5, 8]})
    assert shapes == [(5, 8)]
    assert dtypes == [np.dtype(np.float32), np.dtype(np.float16)]


def test_given_inputs_are_a_sample_each() -> None:
    given = tuple({"x": np.ones((rows, 8), np.float32)} for rows in (1, 4))
    shapes, _ = samples(made(RELU, "free"), inputs=given)
    assert shapes == [(1, 8), (4, 8)]


def test_models_of_other_inputs_are_not_compared() -> None:
    other = made("(float[n,8] x, float[8] z) => (float[n,8] y) { y = Add(x, z) }", "two")
    with pytest.raises(UsageError, match="one and two have different inputs: only two takes 'z'"):
        samples(made(RELU, "one"), other)
    third = made("(float[n,8] u) => (float[n,8] y) { y = Relu(u) }", "three")
    with pytest.raises(UsageError, match="only one takes 'x'; only three takes 'u'; models"):
        samples(made(RELU, "one"), third)


def test_a_sample_that_does_not_fit_a_model_names_it() -> None:
    given = ({"x": np.ones((2, 8), np.float32)},)
    with pytest.raises(UsageError, match="for fixed"):
        samples(made(RELU, "free"), made(RELU.replace("n", "3"), "fixed"), inputs=given)


def test_a_missing_operator_is_named_with_its_model() -> None:
    model = parse(RELU)
    model.graph.node[0].domain = "nowhere"
    model.opset_import.add(domain="nowhere", version=1)
    with pytest.raises(MissingOperator, match=r"^mine: "):
        samples(MeasuredModel(model, "mine", model))


def test_an_open_model_is_timed_on_its_feeds() -> None:
    each = made(RELU, "free")
    with opened(each, Opening(), [{"x": np.ones((2, 8), np.float32)}], 60) as model:
        assert len(model.time(0, 3, 1).wall) == 3
