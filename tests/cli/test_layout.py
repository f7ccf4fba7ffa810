import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
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


def test_json_has_the_report(cli: Cli, images: Path) -> None:
    ended = cli("layout", images, "--json", "--dim", "n=2")
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert report["transposes"] == [3, 1]
    assert report["nbytes"] == [768, 256]
    assert report["greedy"].keys() == {"nbytes", "transposes"}
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


def test_a_dim_is_a_name_and_a_size(cli: Cli, images: Path) -> None:
    ended = cli("layout", images, "--dim", "n")
    assert ended.code == 2
    assert "NAME=SIZE" in ended.err
