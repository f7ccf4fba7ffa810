from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.module_passes.initializers.weights import external_names, loaded, model_with_weights
from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass, optimize
from tiered.graph.io.save import Storage
from tiered.runtime import Session
from tiered.testing import assert_unchanged

PASS = "unbake"


def saved(folder: Path, *passes: object, storage: Storage | None = None) -> Path:
    model = Model.from_proto(model_with_weights())
    for each in passes:
        each.apply(model)  # type: ignore[attr-defined]  # a pass
    path = folder / "out.onnx"
    model.save(path, storage=storage)
    return path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["inner", "v", "w"]),
        ({"min_size": "0"}, ["inner", "one", "v", "w"]),
        ({"min_size": "1601"}, []),
        ({"tensors": ["w", "in*"]}, ["inner", "w"]),
    ],
)
def test_weights_go_out_by_size_and_name(
    tmp_path: Path, options: dict[str, object], expected: list[str]
) -> None:
    path = saved(tmp_path, get_pass(PASS, **options))
    assert external_names(path) == expected
    assert (tmp_path / "out.onnx.data").exists() == bool(expected)
    feeds = {"x": np.linspace(-1, 1, 400, dtype=np.float32), "c": np.array(True)}
    before, after = Session(model_with_weights()).run(feeds), Session(path).run(feeds)
    assert before["y"].tobytes() == after["y"].tobytes()
    onnx.checker.check_model(path)


def test_the_model_in_memory_stays_whole() -> None:
    model = Model.from_proto(model_with_weights())
    get_pass(PASS).apply(model)
    assert model.to_proto() == model_with_weights()
    view = Model.from_proto(model_with_weights())
    mark = view.mark()
    get_pass(PASS).apply(view)
    assert view.changed_since(mark)
    view.undo_to(mark)
    assert view.main.values["w"].default.place is None  # type: ignore[union-attr]  # a weight


def test_a_single_file_was_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, get_pass(PASS), storage=Storage(single=True))
    assert external_names(path) == []
    assert loaded(path) == model_with_weights()


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path, get_pass(PASS, tensors=["w"]))
    again = tmp_path / "again.onnx"
    optimize(path, again, passes=[get_pass(PASS, tensors=["w"])])
    assert external_names(again) == ["w"]
    assert (tmp_path / "again.onnx.data").read_bytes() == path.with_suffix(
        ".onnx.data"
    ).read_bytes()
    view = Model.from_proto(model_with_weights())
    get_pass(PASS).apply(view)
    mark = view.mark()
    get_pass(PASS).apply(view)
    assert not view.changed_since(mark)


def test_there_is_nothing_to_move() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    assert_unchanged(PASS, text, because="no such weight is in the model file")


def test_strings_stay() -> None:
    text = '(string[1] x) => (bool[1] y) <string[1] s = {"a"}> { y = Equal(x, s) }'
    assert_unchanged(
        PASS, text, because="sparse tensors and strings are never external", min_size="0"
    )


def test_a_name_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="unbake: no initializer is named 'wx'"):
        get_pass(PASS, tensors=["wx"])(model_with_weights())


def test_it_is_undone() -> None:
    model = Model.from_proto(model_with_weights())
    mark = model.mark()
    get_pass(PASS).apply(model)
    places = [v.default and v.default.place for v in model.main.initializers]
    assert places == ["data", "data", None]
    model.undo_to(mark)
    assert {v.default and v.default.place for v in model.main.initializers} == {None}
    assert_undone(PASS, model_with_weights())
