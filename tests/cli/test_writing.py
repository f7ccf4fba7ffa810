"""What a command writes: options that contradict each other, and where the weights go."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from tiered.cli.shared_options import OptimizeOptions
from tiered.cli.writing import Goal, check_writing
from tiered.graph.io.save import Storage
from tiered.support.errors import OptionError, UsageError
from tiered.testing import parse


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "m.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"), path)
    return str(path)


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("writing")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (OptimizeOptions(quiet=True, verbose=True), "-q and -v are opposites"),
        (OptimizeOptions(external_data="1KiB", single_file=True), "--external-data and --single"),
        (OptimizeOptions(safetensors=True, single_file=True), "--safetensors and --single-file"),
        (OptimizeOptions(share_weights=True, single_file=True), "--share-weights and --single"),
        (OptimizeOptions(external_data="many"), "--external-data"),
    ],
)
def test_options_that_contradict_each_other_are_errors(
    options: OptimizeOptions, message: str
) -> None:
    with pytest.raises((UsageError, OptionError), match=message):
        check_writing(options)


@pytest.mark.parametrize("name", ["quiet", "verbose", "single_file", "safetensors"])
def test_each_of_them_alone_is_none(name: str) -> None:
    options: dict[str, Any] = {name: True}
    check_writing(OptimizeOptions(**options))


@pytest.mark.parametrize(
    ("options", "storage"),
    [
        (OptimizeOptions(), Storage()),
        (OptimizeOptions(external_data="2KiB"), Storage(2048)),
        (OptimizeOptions(safetensors=True), Storage(1024, False, False, True)),
        (OptimizeOptions(safetensors=True, external_data="4KiB"), Storage(4096, safetensors=True)),
        (OptimizeOptions(single_file=True), Storage(None, True)),
        (OptimizeOptions(share_weights=True), Storage(None, False, True)),
    ],
)
def test_the_options_say_where_weights_are(options: OptimizeOptions, storage: Storage) -> None:
    goal = Goal("out.onnx", ("in.onnx",), options)
    assert goal.storage == storage
    assert goal.is_stored_alike is (storage == Storage())


def test_types_written_into_the_model_are_not_as_it_was() -> None:
    assert not Goal("out.onnx", ("in.onnx",), OptimizeOptions(annotate=True)).is_stored_alike


def test_a_goal_names_its_files(model: str) -> None:
    out = str(Path(model).with_name("out.onnx"))
    goal = Goal.of(model, out, OptimizeOptions(), model)
    assert (goal.path, goal.written, goal.sources) == (out, out, (model, model))
    dry = Goal.of(model, out, OptimizeOptions(dry_run=True))
    assert (dry.path, dry.written) == (out, None)


@pytest.mark.parametrize("options", [{"dry_run": True}, {"json": True}])
def test_a_file_may_be_missing_where_nothing_is_written(
    model: str, options: dict[str, Any]
) -> None:
    goal = Goal.of(model, None, OptimizeOptions(**options))
    assert (goal.path, goal.mark()) == (None, None)
    with pytest.raises(UsageError, match="OUT"):
        Goal.of(model, None, OptimizeOptions())
    assert Goal.of(model, None, OptimizeOptions(), may_lack=True).path is None


def test_another_model_is_replaced_by_force_only(model: str) -> None:
    other = Path(model).with_name("other.onnx")
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Abs(x) }"), other)
    with pytest.raises(UsageError, match="--force"):
        Goal.of(model, str(other), OptimizeOptions())
    assert Goal.of(model, str(other), OptimizeOptions(force=True)).path == str(other)
    assert Goal.of(model, str(other), OptimizeOptions(dry_run=True)).written is None
