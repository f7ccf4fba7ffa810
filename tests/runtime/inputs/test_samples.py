"""What models are verified on: files, folders, dicts, and what is made without any."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import proto
from tiered import optimize_model
from tiered.graph import DataType
from tiered.numerics.calibration.calibrate import SampledModel
from tiered.runtime import Session
from tiered.runtime.inputs.samples import (
    Sample,
    Wanted,
    _is_input,
    in_dtypes_of,
    read_samples,
    samples_for,
)
from tiered.support.errors import ModelError, UsageError

TWO = "g (float[N,3] x, float[N,3] w) => (float[N,3] y) { a = Identity(x)  y = Mul(a, w) }"
ONE = "g (float[N,3] x) => (float[N,3] y) { a = Identity(x)  y = Neg(a) }"
X = np.arange(15, dtype=np.float32).reshape(5, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "w.npy", X + 1)
    np.savez(tmp_path / "feeds.npz", x=X, w=X)
    tensor = onnx.numpy_helper.from_array(X, "whatever")
    for place in (0, 1):
        (tmp_path / f"input_{place}.pb").write_bytes(tensor.SerializeToString())
    return tmp_path


def samples(text: str, *sources: Any, **wanted: Any) -> list[Sample]:
    made = proto(text)
    return samples_for(made, Session(made), Wanted(read_samples(sources), **wanted))


def test_files_make_one_sample_until_an_input_comes_again(folder: Path) -> None:
    files = [folder / "x.npy", folder / "w.npy"]
    found = samples(TWO, *files, *files)
    assert [sample.label for sample in found] == ["inputs 1", "inputs 2"]
    assert found[0].inputs.rules == {"x": "given", "w": "given"}
    np.testing.assert_array_equal(found[1].inputs.feeds["w"], X + 1)
    assert str(found[1]) == "inputs 2\n  x [5, 3]: given\n  w [5, 3]: given"


def test_an_archive_is_a_sample_of_its_own(folder: Path) -> None:
    found = samples(TWO, folder / "feeds.npz", folder / "feeds.npz", {"x": X, "w": X})
    assert len(found) == 3
    assert found[2].inputs.rules["x"] == "given"


def test_a_folder_has_a_sample_of_files_and_one_of_each_archive(folder: Path) -> None:
    (folder / "notes.txt").write_text("no input")
    for name in ("input_0.pb", "input_1.pb"):
        (folder / name).unlink()
    assert len(samples(TWO, folder)) == 2
    (folder / "model.pb").write_bytes(b"no tensor")
    assert len(samples(TWO, folder)) == 2
    (folder / "feeds.npz").rename(folder.parent / "feeds.npz")
    assert len(samples(TWO, folder)) == 1
    (folder.parent / "feeds.npz").rename(folder / "feeds.npz")
    (folder / "x.npy").unlink()
    (folder / "w.npy").unlink()
    assert len(samples(TWO, folder)) == 1


def test_test_data_goes_by_place(folder: Path) -> None:
    (found,) = samples(TWO, folder / "input_0.pb", folder / "input_1.pb")
    assert sorted(found.inputs.feeds) == ["w", "x"]


def test_of_one_input_the_file_may_have_any_name(folder: Path) -> None:
    (found,) = samples(ONE, folder / "w.npy")
    np.testing.assert_array_equal(found.inputs.feeds["x"], X + 1)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("nowhere.npy", ModelError, "cannot read inputs from"),
        ("bad.npz", ModelError, "bad.npz': it holds no arrays of numbers"),
        ("nothing.npy", ModelError, "cannot read inputs from .*nothing.npy': No data left"),
        ("nothing.npz", ModelError, "cannot read inputs from .*nothing.npz': No data left"),
        ("objects.npy", ModelError, "objects.npy': it holds no arrays of numbers"),
        ("bad.pb", ModelError, "it holds no TensorProto"),
        ("x.txt", UsageError, "is no file of inputs"),
        ("empty", UsageError, "holds no inputs"),
    ],
)
def test_an_unreadable_file_is_named(
    tmp_path: Path, name: str, kind: type[Exception], says: str
) -> None:
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    (tmp_path / "nothing.npy").touch()
    (tmp_path / "nothing.npz").touch()
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff\xff")
    (tmp_path / "empty").mkdir()
    with pytest.raises(kind, match=says):
        read_samples([tmp_path / name])


def test_an_input_that_the_model_lacks_is_an_error(folder: Path) -> None:
    with pytest.raises(UsageError, match="the model has no input 'ww'; did you mean 'w'"):
        samples(TWO, {"ww": X})
    with pytest.raises(UsageError, match="has no input '#1'"):
        samples(ONE, {"#0": X, "#1": X})


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": X}, "inputs 1: the sample lacks the input 'w'; give all inputs of the model (x, w)"),
        ({}, "inputs 1: the sample is empty; the model takes x, w"),
        ({"x": X, "w": X, "q": X}, "inputs 1: the model has no input 'q'; it has x, w"),
        ({"q": X}, "the model has no input 'q'; it has x, w"),
    ],
)
def test_a_sample_has_all_inputs_and_no_others(
    tmp_path: Path, arrays: dict[str, Any], says: str
) -> None:
    np.savez(tmp_path / "sample.npz", **arrays)
    for source in (arrays, tmp_path / "sample.npz"):
        with pytest.raises(UsageError, match=re.escape(says)):
            samples(TWO, source)
        # Before anything runs: no pass changes this model.
        with pytest.raises(UsageError, match=re.escape(says)):
            optimize_model(proto(TWO), passes=["eliminate_nop_pad"], verify=True, inputs=[source])
        with pytest.raises(UsageError, match=re.escape(says)):
            SampledModel(proto(TWO)).samples([source])


def test_an_array_with_a_name_is_no_other_input(folder: Path) -> None:
    np.savez(folder / "other.npz", w=X)
    for source in ({"w": X}, folder / "other.npz"):
        with pytest.raises(UsageError, match="inputs 1: the model has no input 'w'; it has x"):
            samples(ONE, source)


def test_an_overridable_initializer_may_be_given() -> None:
    text = """g (float[N,3] x, float[3] w) => (float[N,3] y) <float[3] w = {1,2,3}> {
        a = Identity(x)  y = Mul(a, w) }"""
    (found,) = samples(text, {"x": X})
    assert sorted(found.inputs.feeds) == ["x"]
    (found,) = samples(text, {"x": X, "w": X[0]})
    assert sorted(found.inputs.feeds) == ["w", "x"]


@pytest.mark.parametrize(
    ("text", "array", "says"),
    [
        (ONE, X.astype(np.float64), "inputs 1: 'x' is float64 "),
        (ONE, X[0, 0], "'x' is float32 []; the model takes float32 "),
        ("g (float[2,3] x) => (y) { y = Neg(x) }", np.zeros((2, 4), np.float32), "[2, 4]"),
        ("g (int64 x) => (y) { y = Neg(x) }", np.zeros((), np.int32), "the model takes int64 []"),
    ],
)
def test_an_array_that_does_not_fit_is_an_error(text: str, array: Any, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        samples(text, {"x": array})


@pytest.mark.parametrize(
    ("text", "array"),
    [
        ("g (float[] x) => (y) { y = Neg(x) }", np.zeros((2, 3), np.float32)),
        ("g (float x) => (y) { y = Neg(x) }", np.zeros((), np.float32)),
        ("g (float[0,?] x) => (y) { y = Neg(x) }", np.zeros((0, 3), np.float32)),
        ("g (bfloat16[2] x) => (y) { y = Cast<to=1>(x) }", np.zeros(2, DataType.BFLOAT16.numpy)),
    ],
)
def test_what_is_not_declared_may_be_anything(text: str, array: Any) -> None:
    (found,) = samples(text, {"x": array})
    assert found.inputs.feeds["x"] is array


def test_without_any_they_are_made_at_two_sets_of_sizes() -> None:
    found = samples(ONE)
    assert [sample.sizes for sample in found] == ["N=2", "N=3"]
    assert len(samples(ONE, bindings=3)) == 3
    same, again = samples(ONE, seed=4), samples(ONE, seed=4)
    np.testing.assert_array_equal(same[0].inputs.feeds["x"], again[0].inputs.feeds["x"])


def test_what_has_no_other_sizes_is_made_twice_without_a_seed() -> None:
    text = "g (float[3] x) => (float[3] y) { y = Neg(x) }"
    assert len(samples(text, bindings=3)) == 2
    assert len(samples(text, bindings=3, seed=4)) == 3


@pytest.mark.parametrize("varied", [False, True])
def test_all_but_the_first_sample_are_varied(varied: bool) -> None:
    rules = [sample.inputs.rules["x"] for sample in samples(ONE, varied=varied)]
    assert [rule != "normal distribution" for rule in rules] == [False, varied]


def test_an_input_that_a_pass_added_is_made_to_fit() -> None:
    (found,) = samples(TWO, {"x": X}, added=["w"])
    assert found.inputs.rules == {"x": "given", "w": "normal distribution"}
    assert found.inputs.feeds["w"].shape == (5, 3)


def test_floats_have_the_dtypes_of_another_model() -> None:
    model = proto("g (float16[2] x, int64[2] i, int64[2] k) => (y) { y = Identity(x) }")
    feeds = {"x": X[0], "i": X[0], "k": np.ones(2, np.int32), "z": X[0], "s": [1.0]}
    found = in_dtypes_of(model, feeds)
    assert found["x"].dtype == np.float16
    assert all(found[name] is feeds[name] for name in ("i", "k", "z", "s"))


def test_only_numbers_become_arrays() -> None:
    given = {"s": [X], "n": None, "m": {1: 2.0}}
    (found,) = read_samples([{"x": [1.0], "e": [], **given}])
    assert found["x"].tolist() == [1.0]
    assert found["e"].shape == (0,)
    assert all(found[name] is value for name, value in given.items())


def test_edge_values_are_one_more_sample() -> None:
    *_, edge = samples(ONE, edge_values=True)
    assert edge.label == "edge values"
    assert not np.isfinite(edge.inputs.feeds["x"]).all()


def test_optimize_runs_on_given_samples_and_reports_them(folder: Path) -> None:
    result = optimize_model(
        proto(TWO), passes=["eliminate_identity"], verify=True, inputs=[folder / "feeds.npz"]
    )
    assert result.verify is not None
    assert [str(sample) for sample in result.verify.samples] == [
        "inputs 1\n  x [5, 3]: given\n  w [5, 3]: given"
    ]
    with pytest.raises(UsageError, match=r"float32 \[2, 4\]; the model takes float32 \[N, 3\]"):
        optimize_model(proto(ONE), verify=True, inputs=[{"x": np.ones((2, 4), np.float32)}])


ODD = """g (float[batch,?] x, float[k] s) => (float[c,77] y)
    <int64[2] form = {-1, 77}, float two = {2}> {
    n = Identity(x)  t = Reshape(n, form)  u = Mul(t, two)  m = ReduceMax(s)  y = Mul(u, m) }"""


def test_the_sizes_of_given_shapes_are_those_of_made_inputs() -> None:
    passes = ["eliminate_identity"]
    made = optimize_model(proto(ODD), passes=passes, verify=True).verify
    assert made is not None
    assert made.samples[0].inputs.feeds["x"].size % 77 == 0
    assert "learned from the runtime" in made.samples[0].inputs.rules["*"]
    shapes: list[list[int | str]] = [["batch", 154], [4, 154]]
    for shape in shapes:
        result = optimize_model(proto(ODD), input_shapes={"x": shape}, verify=True, opt_level=1)
        assert result.verify is not None
        assert result.verify.runs
        assert result.verify.samples[0].inputs.feeds["x"].shape[1] == 154


def test_shapes_are_by_the_name_of_the_dim_or_its_place() -> None:
    found = samples(ODD, shapes={"x": [6, 77], "s": [-1]})
    assert found[0].inputs.feeds["x"].shape == (6, 77)
    assert samples(ONE, shapes={"x": [0, 3]})[0].inputs.feeds["x"].shape == (0, 3)


def test_files_of_a_folder_that_are_inputs() -> None:
    for path, expected in (
        ("f/x.npy", True), ("f/input_0.pb", True), ("f/input_12.pb", True), ("f/out_0.pb", False),
        ("f/input_0.txt", False), ("f/input_0.npz", False), ("f/input_x.pb", False), ("npy", False),
    ):  # fmt: skip
        assert _is_input(path) is expected, path
