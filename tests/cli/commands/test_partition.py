"""tiered partition: the table of regions, and their files."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Cli
from tests.extensions.partition.graphs import assert_same_bits
from tiered.extensions.partition import Plan
from tiered.runtime import Session
from tiered.testing import parse

NPU = """
api_version = 1
name = "npu"
doc = "A chip"
sources = ["its manual"]
[operators]
"Add, MatMul, Neg" = true
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return a target, and a model with an operator that it lacks."""
    text = (
        "(float[2,4] x) => (float[2,4] y) <float[4,4] w = "
        "{1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}> "
        "{ a = MatMul(x, w) b = Add(a, x) c = Sin(b) d = Neg(c) y = Add(d, c) }"
    )
    target, model = tmp_path / "npu.toml", tmp_path / "model.onnx"
    target.write_text(NPU)
    onnx.save(parse(text), model)
    return target, model


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("partition")


def test_the_table_of_regions(cli: Cli, files: tuple[Path, Path]) -> None:
    target, model = files
    ended = cli("partition", model, "--backend", target)
    assert (ended.code, ended.err) == (0, "")
    assert "npu takes 4 of 5 nodes in 2 regions" in ended.out
    assert "100.0%" in ended.out
    assert "1 Sin" in ended.out


def test_the_regions_as_json(cli: Cli, files: tuple[Path, Path]) -> None:
    target, model = files
    found = json.loads(cli("partition", model, "--backend", target, "--json").out)
    assert [
        (row["target"], row["nodes"], row["bytes_in"], row["bytes_out"], row["multiply_adds"])
        for row in found["regions"]
    ] == [("npu", 2, 32, 32, 32), ("npu", 2, 32, 32, 0), ("host", 1, 32, 32, 0)]
    assert [row["share"] for row in found["regions"]] == [1.0, 0.0, 0.0]


def test_the_models_of_a_plan(cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
    target, model = files
    folder, dot = tmp_path / "parts", tmp_path / "regions.dot"
    ended = cli(
        "partition", model, "--backend", target, "--as-models", folder, "--dot", dot, "--json"
    )
    assert json.loads(ended.out)["plan"] == json.loads((folder / "plan.json").read_text())
    assert dot.read_text().startswith("digraph partitions {")
    assert (folder / "partitions.dot").read_text() == dot.read_text()
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}
    assert_same_bits(Session(str(model)).run(feeds), Plan.load(folder).run(feeds))


def test_edges_past_a_region_are_beside_it(cli: Cli, files: tuple[Path, Path]) -> None:
    target, model = files
    text = "(float[2,2] x) => (float[2,2] y) { a = MatMul(x, x)  b = Exp(a)  y = Add(a, b) }"
    onnx.save(parse(text), model)
    svg = model.with_suffix(".svg")
    assert cli("partition", model, "--backend", target, "--single", "--svg", svg).code == 0
    root = ElementTree.parse(svg).getroot()
    space = "{http://www.w3.org/2000/svg}"
    places = [(t.attrib["x"], t.attrib["y"]) for t in root.iter(f"{space}text") if t.text == "1"]
    assert len(places) == len(set(places)) == 3
    right = max(float(box.attrib["x"]) for box in root.iter(f"{space}rect") if "x" in box.attrib)
    assert max(float(x) for x, _ in places) > right + 230
    width = float(root.attrib["width"])
    assert max(float(x) for x, _ in places) < width - 10


def test_a_picture_of_the_regions(cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
    target, model = files
    svg = tmp_path / "regions.svg"
    ended = cli("partition", model, "--backend", target, "--svg", svg)
    assert (ended.code, ended.err) == (0, "")
    assert f"wrote {svg}" in ended.out
    root = ElementTree.parse(svg).getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    titles = [text for text in texts if text and ": " in text]
    assert titles == ["npu 0: 2 nodes", "host: 1 node", "npu 1: 2 nodes"]
    assert "1 MatMul, 1 Add" in texts
    # The last region reads c twice.
    assert [text for text in texts if text == "1"] == ["1"]
    assert [text for text in texts if text == "2"] == ["2"]
    other = cli("partition", model, "--backend", target, "--svg", model)
    assert (other.code, "is the model that is read" in other.err) == (2, True)


def test_the_model_with_functions(cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
    target, model = files
    out = tmp_path / "out.onnx"
    ended = cli("partition", model, out, "--backend", target, "--deny", "Neg")
    assert (ended.code, ended.err) == (0, "")
    made = onnx.load(out)
    assert [(node.domain, node.op_type) for node in made.graph.node] == [
        ("tiered.npu", "region_0"), ("", "Sin"), ("", "Neg"), ("", "Add"),
    ]  # fmt: skip
    feeds = {"x": np.ones((2, 4), np.float32)}
    assert_same_bits(Session(str(model)).run(feeds), Session(str(out)).run(feeds))


def test_the_model_itself_is_never_overwritten(cli: Cli, files: tuple[Path, Path]) -> None:
    target, model = files
    before = model.read_bytes()
    assert cli("partition", model, model, "--backend", target).code == 2
    assert cli("partition", model, "--backend", "nope").code == 2
    assert model.read_bytes() == before


def test_another_model_is_replaced_only_by_force(
    cli: Cli, files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, model = files
    other = tmp_path / "other.onnx"
    onnx.save(parse("(float[4] x) => (float[4] y) { y = Abs(x) }"), other)
    kept = other.read_bytes()
    ended = cli("partition", model, other, "--backend", target)
    assert (ended.code, other.read_bytes()) == (2, kept)
    assert "use --force" in ended.err
    assert cli("partition", model, other, "--backend", target, "--force").code == 0


def test_models_that_are_no_earlier_results_are_kept(
    cli: Cli, files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, model = files
    parts, out = tmp_path / "parts", tmp_path / "out.onnx"
    arguments = ("partition", model, out, "--backend", target, "--as-models", parts)
    parts.mkdir()
    other = parts / "host.onnx"
    other.write_bytes(model.read_bytes())
    ended = cli(*arguments)
    assert ended.code == 2
    assert "host.onnx' is an ONNX model and not an earlier result of" in ended.err
    assert other.read_bytes() == model.read_bytes()
    assert [file.name for file in parts.iterdir()] == ["host.onnx"]
    assert cli(*arguments, "--force").code == 0
    assert other.read_bytes() != model.read_bytes()
    written = {file: file.read_bytes() for file in (out, *parts.iterdir())}
    assert cli(*arguments).code == 0
    assert {file: file.read_bytes() for file in (out, *parts.iterdir())} == written


def test_cuts_make_a_model_of_each_device_and_stage(
    cli: Cli, files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, model = files
    loaded = onnx.load(model)
    loaded.ir_version = 10
    for node in loaded.graph.node:
        node.name = node.output[0]
    onnx.save(loaded, model)
    assert "give --sharding" in cli("partition", model).err
    cuts = ("--sharding", "c=gpu0", "--sharding", "y=gpu1", "--pipelining", "c=0")
    ended = cli("partition", model, *cuts, "--as-models", tmp_path / "parts")
    assert "devices and stages have 5 of 5 nodes in 2 regions" in ended.out
    names = sorted(path.name for path in (tmp_path / "parts").glob("part_*"))
    assert names == ["part_000_gpu0_0.onnx", "part_001_gpu1_1.onnx"]
    feeds = {"x": np.ones((2, 4), np.float32)}
    found = Plan.load(tmp_path / "parts").run(feeds)
    np.testing.assert_array_equal(found["y"], Session(loaded).run(feeds)["y"])
    assert "no node 'nope'" in cli("partition", model, "--sharding", "nope=0").err
    assert "leave --backend out" in cli("partition", model, "--backend", target, *cuts).err
    decreasing = ("--pipelining", "d=2", "--pipelining", "y=1")
    assert "never decrease" in cli("partition", model, *decreasing).err


def test_a_denied_operator_that_does_not_exist_is_an_error(
    cli: Cli, files: tuple[Path, Path]
) -> None:
    target, model = files
    ended = cli("partition", model, "--backend", target, "--deny", "Foo")
    assert ended.code == 2
    assert "there is no operator 'Foo'" in ended.err
    ended = cli("partition", model, "--backend", target, "--deny", "Convv")
    assert "there is no operator 'Convv'; did you mean 'Conv'?" in ended.err


def test_options_of_a_target_need_one(cli: Cli, files: tuple[Path, Path]) -> None:
    _, model = files
    for given in (("--deny", "Neg"), ("--horizontal",), ("--single",)):
        ended = cli("partition", model, "--pipelining", "n=1", *given)
        assert ended.code == 2
        assert f"{given[0]} has no effect: it needs --backend" in ended.err


def test_models_of_devices_need_no_newer_ir_version(
    cli: Cli, files: tuple[Path, Path], tmp_path: Path
) -> None:
    _, model = files
    loaded = onnx.load(model)
    loaded.ir_version = 7
    for node in loaded.graph.node:
        node.name = node.output[0]
    onnx.save(loaded, model)
    cuts, parts = ("--sharding", "c=gpu0", "--sharding", "y=gpu1"), tmp_path / "parts"
    ended = cli("partition", model, *cuts, "--as-models", parts)
    assert (ended.code, ended.err) == (0, "")
    made = [onnx.load(path) for path in sorted(parts.glob("*.onnx"))]
    assert {each.ir_version for each in made} == {7}
    assert not any(node.metadata_props for each in made for node in each.graph.node)
    feeds = {"x": np.ones((2, 4), np.float32)}
    found = Plan.load(parts).run(feeds)
    np.testing.assert_array_equal(found["y"], Session(loaded).run(feeds)["y"])
    # Marks are written here, so that the IR version must have them.
    ended = cli("partition", model, tmp_path / "out.onnx", *cuts)
    assert ended.code == 1
    assert "`tiered convert --ir 10`" in ended.err
    assert not (tmp_path / "out.onnx").exists()


def test_a_smaller_plan_leaves_no_parts_of_the_former_one(
    cli: Cli, files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, model = files
    parts = tmp_path / "parts"
    arguments = ("partition", model, "--backend", target, "--as-models", parts)
    assert cli(*arguments).code == 0
    before = sorted(path.name for path in parts.glob("part_*"))
    assert len(before) == 3
    (parts / "part_001_host.onnx.data").write_bytes(b"weights of the former plan")
    (parts / "mine.txt").write_text("kept")
    target.write_text(NPU.replace("Add, MatMul, Neg", "Add, MatMul, Neg, Sin"))
    assert cli(*arguments).code == 0
    assert [path.name for path in parts.glob("part_*")] == ["part_000_npu.onnx"]
    assert (parts / "mine.txt").exists()


def test_a_part_that_is_no_earlier_result_is_not_removed(
    cli: Cli, files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, model = files
    parts = tmp_path / "parts"
    arguments = ("partition", model, "--backend", target, "--as-models", parts)
    assert cli(*arguments).code == 0
    other = parts / "part_001_host.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"), other)
    target.write_text(NPU.replace("Add, MatMul, Neg", "Add, MatMul, Neg, Sin"))
    ended = cli(*arguments)
    assert ended.code == 2
    assert "not an earlier result" in ended.err
    assert other.exists()
    assert cli(*arguments, "--force").code == 0
    assert not other.exists()
