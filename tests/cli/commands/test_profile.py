"""`tiered profile`: tables, JSON, page, trace, errors."""

import io
import json
from dataclasses import replace
from pathlib import Path

import onnx
import onnxruntime
import pytest
from rich.console import Console

from tests.cli.conftest import Cli
from tests.extensions.measurement.profile.timed import profile_of, timed
from tests.recorded import assert_values
from tiered.cli.commands.profile import ProfileOptions, _print
from tiered.extensions.measurement.profile.model_profile import Machine, Profile
from tiered.extensions.measurement.profile.pairs import Profiles
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


def shown(*models: Profile, limit: int | None = None, depth: int | None = None) -> None:
    """Print profiles as the command does, without their versions."""
    with io.StringIO() as file:
        console = Console(file=file, width=200)
        _print(console, Profiles(models), ProfileOptions(depth=depth), limit)
        version = f"onnxruntime {onnxruntime.__version__}"
        print(file.getvalue().replace(version, "onnxruntime"))


def test_all_that_is_printed_of_made_profiles() -> None:
    machine = Machine(2e9, 4e9)
    nodes = (
        timed("n1", "Conv", 2.5, layer=("m", "one"), outputs=("a",)),
        replace(timed("n2", "Add", 0.0005, layer=("m", "two"), outputs=("b",)), least=0.0001),
        timed("n3", "Add", 0.0, layer=("m", "two"), outputs=("c",), is_inserted=True),
    )
    fast = profile_of(*nodes[1:], timed("n4", "Mul", 0.25, layer=("x",), outputs=("a",)))
    names = {
        "shown": shown,
        "one": profile_of(*nodes),
        "roof": replace(
            profile_of(*(replace(node, least=0.5, multiply_adds=1000) for node in nodes)),
            machine=machine,
            seconds=4.0,
            runs=3,
        ),
        "flat": profile_of(timed("n5")),
        "fast": fast,
        "none": profile_of(),
    }
    assert_values(__file__, names)


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
    assert cli("profile", net, "--runs", 1, "--depth", 1).code == 0
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
