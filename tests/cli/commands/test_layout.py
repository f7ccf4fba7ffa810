import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered import Model, PassContext
from tiered.cli.commands import explain as explain_command, layout as layout_command
from tiered.cli.files import run_first
from tiered.pipeline import Pipeline
from tiered.testing import parse

TEXT = (
    "(float[n,4,4,2] x) => (float[n,2,2,2] y) "
    "{ t = Transpose<perm=[0,3,1,2]>(x)  u = Transpose<perm=[0,2,3,1]>(t)  r = Relu(u) "
    "v = Transpose<perm=[0,3,1,2]>(r)  y = MaxPool<kernel_shape=[3,3]>(v) }"
)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images.onnx"
    onnx.save(parse(TEXT), path)
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("layout")


def test_json_has_the_report(cli: Cli, images: Path) -> None:
    ended = cli("layout", images, "--json", "--dim", "n=2")
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert report["transposes"] == [3, 1]
    assert report["nbytes"] == [768, 256]
    assert report["greedy"].keys() == {"nbytes", "time", "transposes"}
    (left,) = report["left"]
    assert left["perm"] == [0, 3, 1, 2]
    assert left["above"] == "graph input 'x', reached through Relu 'r'"


def test_the_tables_say_what_stops_a_transpose(cli: Cli, images: Path) -> None:
    shown = cli("layout", images).out
    assert "graph input 'x'" in shown
    assert "MaxPool" in shown


def test_other_passes_may_run_first(cli: Cli, images: Path) -> None:
    report = json.loads(cli("layout", images, "--json", "--after", "default").out)
    assert report["transposes"] == [1, 1]


def test_parked_passes_of_the_default_pipeline_do_not_run_first(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def noted(first: Pipeline, model: Model, context: PassContext) -> None:
        run_first(first, model, context)
        ran.extend(result.name for result in context.report.ran())

    for command in (layout_command, explain_command):
        monkeypatch.setattr(command, "run_first", noted)
    source = tmp_path / "m.onnx"
    onnx.save(parse("(float[N,2] x) => (float[N,2] y) { y = Relu(x) }"), source)
    for words in (("layout",), ("explain", "fuse_gemm")):
        ended = cli(words[0], source, *words[1:], "--after", "default")
        assert ended.code == 0, ended.err
    assert "const_batch_size" not in ran
    assert "infer_shapes" in ran


def test_a_dim_is_a_name_and_a_size(cli: Cli, images: Path) -> None:
    ended = cli("layout", images, "--dim", "n")
    assert ended.code == 2
    assert "NAME=SIZE" in ended.err
