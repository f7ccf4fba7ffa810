"""`tiered profile`: tables, JSON, page, trace, errors."""

import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

NET = "(float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}> { a = Add(x, w)  y = Tanh(a) }"


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    model = parse(NET)
    for node, name in zip(model.graph.node, ("/m/one/Add", "/m/two/Tanh"), strict=True):
        node.name = name
    onnx.save(model, "net.onnx")
    return "net.onnx"


def test_one_model_by_operator_layer_and_node(cli: Cli, net: str) -> None:
    ended = cli("profile", net, "--runs", 2, "--roofline", "--dim", "n=3")
    assert (ended.code, ended.err) == (0, "")
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "in 2 nodes, the median of 2 runs; onnxruntime" in lines[0]
    assert "multiply-adds and" in lines[1]
    for title in ("By operator", "By layer", "By node"):
        assert title in lines
    assert any(line.startswith("m/one 1 ") for line in lines)
    assert any("float[3,2], float[2] -> float[3,2]" in line for line in lines)


def test_two_models_with_a_page(cli: Cli, net: str) -> None:
    assert cli("optimize", net, "out.onnx", "-O3").code == 0
    ended = cli("profile", net, "out.onnx", "--runs", 1, "--html", "p.html")
    assert (ended.code, ended.err) == (0, "")
    assert "The same work" in ended.out
    page = Path("p.html").read_text()
    for title in ("Layers of A by time", "Graph of B by time", "The same work", "By layer"):
        assert title in page
    assert str(Path.cwd()) not in page


def test_json_and_the_trace(cli: Cli, net: str) -> None:
    ended = cli("profile", net, "--json", "--runs", 1, "--perfetto", "t.json")
    record = json.loads(ended.out)
    (model,) = record["models"]
    assert (model["model"], model["runs"], model["machine"]) == (net, 1, None)
    assert [node["layer"] for node in model["nodes"]] == [["m", "one"], ["m", "two"]]
    assert record["pairs"] == []
    assert isinstance(json.loads(Path("t.json").read_text()), list)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--html", "p.onnx"), 2, "its file ends in .html"),
        (("--perfetto", "p.onnx"), 2, "ends in .json"),
        (("--depth", "0"), 2, "--depth is 1 or more"),
        (("--runs", "0"), 2, "runs are 1 or more"),
        (("--dim", "m=3"), 2, "has a dim 'm'"),
        (("none.onnx",), 1, "cannot read 'none.onnx'"),
    ],
)
def test_what_is_wrong_is_named(
    cli: Cli, net: str, options: tuple[str, ...], code: int, said: str
) -> None:
    ended = cli("profile", net, *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
