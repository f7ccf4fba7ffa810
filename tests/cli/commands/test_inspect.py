import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

RICH = """<ir_version: 8, opset_import: ["" : 17, "local" : 1], producer_name: "maker"> g
(float[batch,4] x, bool[1] c, float[4] free) => (float[batch,4] y)
<float[4] w = {1,2,3,4}, float[4] free = {0,0,0,0}> {
    k = Constant <value = int64[2] {0, 4}> ()
    r = Reshape(x, k)
    i = If (c) <
        then_branch = t () => (float[batch,4] p) { p = Add(r, w) },
        else_branch = e () => (float[batch,4] q) { q = Mul(r, free) }>
    y = local.Twice(i)
}
<domain: "local", opset_import: ["" : 17]> Twice (a) => (b) { b = Add(a, a) }"""


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    model = parse(RICH)
    model.metadata_props.add(key="author", value="somebody")
    path = tmp_path / "rich.onnx"
    onnx.save(model, path)
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("inspect")


def test_json_has_everything(cli: Cli, rich: Path) -> None:
    ended = cli("inspect", rich, "--json")
    assert (ended.code, ended.err) == (0, "")
    facts = json.loads(ended.out)
    assert facts["file"] == str(rich)
    assert facts["ir_version"] == 8
    assert facts["producer"] == "maker"
    assert facts["opsets"] == {"ai.onnx": 17, "local": 1}
    x = {"name": "x", "type": "float[batch,4]", "inferred": "", "overridable": False}
    assert facts["inputs"][0] == x
    assert facts["outputs"][0]["type"] == "float[batch,4]"
    assert facts["nodes"] == 7
    assert facts["operators"] == {
        "main": {"Constant": 1, "If": 1, "Reshape": 1, "local::Twice": 1},
        "bodies": {"Add": 1, "Mul": 1},
        "functions": {"Add": 1},
    }
    assert facts["functions"] == ["local::Twice"]
    assert facts["weights"] == {
        "tensors": 3,
        "elements": 10,
        "bytes": 48,
        "by_dtype": {
            "float": {"tensors": 2, "elements": 8, "bytes": 32},
            "int64": {"tensors": 1, "elements": 2, "bytes": 16},
        },
    }
    assert facts["overridable"] == ["free"]
    assert [tensor["bytes"] for tensor in facts["tensors"]] == [16, 16, 16]
    assert facts["dynamic_dims"] == {"batch": ["x[0]"]}
    assert 0 < facts["typed"] <= facts["values"]
    assert facts["metadata"] == {"author": "somebody"}


def test_declared_and_inferred_types_are_apart(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "declared.onnx"
    onnx.save(
        parse(
            """(float[batch,4] x, int64[n] i) => (y, float[rows,5] z, float[a,b] g)
            <float[4,5] w = {1,1,1,1,1, 1,1,1,1,1, 1,1,1,1,1, 1,1,1,1,1}> {
                y = Relu(x)  z = MatMul(x, w)  c = Compress<axis=0>(x, k)  g = Identity(c)
                k = Cast<to=9>(i) }"""
        ),
        path,
    )
    facts = json.loads(cli("inspect", path, "--json").out)
    said = {port["name"]: (port["type"], port["inferred"]) for port in facts["outputs"]}
    assert said == {
        "y": ("", "float[batch,4]"),
        "z": ("float[rows,5]", "float[batch,5]"),
        "g": ("float[a,b]", "float[a,4]"),
    }
    shown = cli("inspect", path).out
    assert "unk__" not in shown
    assert ["name", "declared", "inferred"] in [line.split() for line in shown.splitlines()]
    assert "no type" in shown


def test_the_text_says_the_same(cli: Cli, rich: Path) -> None:
    shown = cli("inspect", rich).out
    for text in (
        *("IR 8", "ai.onnx 17", "made by maker", "author: somebody", "float[batch,4]", "bodies"),
        *("functions", "local::Twice", "7 nodes", "10 parameters, 48 B", "dynamic dim batch: x[0]"),
        *("1 initializer is also a graph input", "--require remove_initializer_from_input"),
    ):
        assert text in shown


def test_only_the_first_rows_are_shown_without_v(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "many.onnx"
    weights = ", ".join(f"float[1] w{i} = {{1}}" for i in range(15))
    onnx.save(parse(f"(float[1] x) => (float[1] y) <{weights}> {{ y = Relu(x) }}"), path)
    few, all_of_it = cli("inspect", path).out, cli("inspect", path, "-v").out
    assert "and 5 more (-v lists them)" in few
    assert "w14" in all_of_it
    assert "more (-v" not in all_of_it
    assert len(json.loads(cli("inspect", path, "--json").out)["tensors"]) == 10
    assert len(json.loads(cli("inspect", path, "--json", "-v").out)["tensors"]) == 15


def test_weights_that_are_external_are_counted_and_not_read(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = parse("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }")
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.ClearField("float_data")
    tensor.external_data.add(key="location", value="not_there.bin")
    onnx.save_model(model, path)
    facts = json.loads(cli("inspect", path, "--json").out)
    assert facts["weights"]["bytes"] == 8
    assert facts["tensors"][0]["external"]


def test_a_model_without_nodes_or_weights_is_shown(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    onnx.save(parse("(float[2] x) => (float[2] x) { }"), path)
    ended = cli("inspect", path)
    assert ended.code == 0
    assert "0 nodes" in ended.out


@pytest.mark.parametrize("content", [b"", b"hello" * 9, b"\x08\x0a"])
def test_what_is_no_model_is_said_in_one_line(cli: Cli, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.onnx"
    path.write_bytes(content)
    ended = cli("inspect", path)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("tiered: error: ")
    assert "no.onnx" in ended.err
    assert ended.err.count("\n") == 1


def test_integers_are_listed_if_asked_for(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    text = "(uint8[2] x) => (float[2] y) { a = Cast<to=1>(x) b = Sign(a) y = Exp(b) }"
    onnx.save(parse(text), path)
    assert "of few bits" not in cli("inspect", path).out
    printed = cli("inspect", path, "--integers").out
    assert "2 tensors of integers of few bits" in printed
    assert any(
        line.split()[-4:] == ["b", "float[2]", "uint1", "0..1"] for line in printed.splitlines()
    )
    assert json.loads(cli("inspect", path, "--json").out)["integers"] == []
    facts = json.loads(cli("inspect", path, "--integers", "--json").out)
    assert facts["integers"] == [
        {"name": "a", "type": "float[2]", "integers": "uint8", "low": 0, "high": 255},
        {"name": "b", "type": "float[2]", "integers": "uint1", "low": 0, "high": 1},
    ]


WRONG = {
    "spatial dimensions": "(float[1,3,8,8] x) => (float[?,?,?,?] y) <float w = {1}>"
    " { y = Conv(x, w) }",
    "sum of 'split'": "(float[8] x) => (float[?] y, float[?] z) <int64[2] s = {5,-2}>"
    " { y, z = Split(x, s) }",
    "repeated value": "(float[2,3,4] x) => (float[?,?,?] y) { y = Transpose<perm = [0,0,5]>(x) }",
    "Graph has 2 inputs but 3": "(float[2] x) => (float[2] y) <int64 n = {3}, bool c = {1}>"
    " { y = Loop(n, c, x) <body = b (int64 i, bool k) => (bool o) { o = Identity(k) }> }",
}


@pytest.mark.parametrize("words", WRONG)
def test_issue_40_a_model_that_the_standard_forbids_is_named(
    cli: Cli, tmp_path: Path, words: str
) -> None:
    path = tmp_path / "wrong.onnx"
    onnx.save(parse(WRONG[words]), path)
    ended = cli("inspect", path)
    assert ended.code == 0
    assert "onnx.checker rejects the model: " in ended.out
    assert words in ended.out.replace("\n", " ")
    assert words in json.loads(cli("inspect", path, "--json").out)["complaint"]
    ended = cli("optimize", path, tmp_path / "out.onnx")
    assert ended.code == 0
    assert "onnx.checker rejects the model as it was loaded" in ended.err


def test_a_valid_model_has_no_complaint(cli: Cli, rich: Path) -> None:
    assert json.loads(cli("inspect", rich, "--json").out)["complaint"] == ""
    assert "rejects" not in cli("inspect", rich).out
