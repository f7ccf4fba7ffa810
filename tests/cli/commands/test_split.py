import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Cli
from tiered import Model
from tiered.runtime import Session
from tiered.testing import parse

TEXT = """(float[N,4] x) => (float[N,4] y, float[N,4] q)
    <float[4] w = {1,2,3,4}> { a = Add(x, w)  b = Relu(a)  c = Neg(x)  d = Mul(b, c)
    y = Exp(d)  q = Neg(a) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(parse(TEXT), path)
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("split")


def test_parts_are_written_and_verified(cli: Cli, model: Path) -> None:
    parts = model.parent / "parts"
    ended = cli("split", model, "--at", "a,d", "--out-dir", parts, "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "verified: yes (exact" in ended.out
    assert "m_0.onnx: 1 node\n  inputs: x: float[N,4]\n  outputs: a: float[N,4]\n" in ended.out
    files = sorted(parts.iterdir())
    assert [file.name for file in files] == ["m_0.onnx", "m_1.onnx", "m_2.onnx"]
    values = {"x": np.array([[1, -2, 3, -0.0]], np.float32)}
    expected = Session(model).run(values)
    for file in files:
        session = Session(file)
        values |= session.run({name: values[name] for name in session.inputs})
    assert all(values[name].tobytes() == array.tobytes() for name, array in expected.items())


def test_tensors_of_one_cut_are_joined(cli: Cli, model: Path) -> None:
    ended = cli("split", model, "--at", "b+c", "--json")
    found = json.loads(ended.out)
    assert [part["nodes"] for part in found["parts"]] == [3, 3]
    assert list(found["parts"][0]["outputs"]) == ["a", "b", "c"]
    assert found["verified"] is False


def test_the_parts_merge_to_the_model(cli: Cli, model: Path) -> None:
    cli("split", model, "--at", "b", "--out-dir", model.parent)
    names = [model.parent / f"m_{at}.onnx" for at in range(2)]
    again = model.with_name("again.onnx")
    assert cli("merge", *names, again, "--verify").code == 0
    hashes = [Model.load(path).main.structural_hash() for path in (model, again)]
    assert hashes[0] == hashes[1]


def test_weights_in_other_files_are_copied(cli: Cli, model: Path) -> None:
    from tiered.graph.io.save import Storage

    source = model.with_name("large.onnx")
    Model.load(model).save(source, storage=Storage(0))
    parts = model.parent / "parts"
    assert cli("split", source, "--at", "a", "--out-dir", parts, "--verify").code == 0
    assert (parts / "large_0.onnx.data").stat().st_size == 16


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), "nowhere to cut: type --at TENSOR"),
        (("--at", "a"), "no folder to write to: type --out-dir DIR"),
        (("--at", "bb", "--json"), "the main graph has no tensor 'bb'; did you mean 'b'"),
        (("--at", "b,a", "--json"), "no node is left to compute a"),
        (("--at", "w", "--json"), "no node is left to compute w"),
    ],
)
def test_wrong_names_are_usage_errors(
    cli: Cli, model: Path, tokens: tuple[str, ...], message: str
) -> None:
    ended = cli("split", model, *tokens)
    assert ended.code == 2
    assert message in ended.err


def test_a_model_that_is_not_an_earlier_result_is_kept(cli: Cli, model: Path) -> None:
    other = model.with_name("m_1.onnx")
    other.write_bytes(
        onnx.helper.make_model(onnx.load(model).graph, doc_string="mine").SerializeToString()
    )
    before = other.read_bytes()
    ended = cli("split", model, "--at", "b", "--out-dir", model.parent)
    assert ended.code == 2
    assert "m_1.onnx' is an ONNX model and not an earlier result of" in ended.err
    assert "--force" in ended.err
    assert other.read_bytes() == before
    assert not model.with_name("m_0.onnx").exists()
    assert cli("split", model, "--at", "b", "--out-dir", model.parent, "--force").code == 0
    written = other.read_bytes()
    assert written != before
    assert cli("split", model, "--at", "b", "--out-dir", model.parent).code == 0
    assert other.read_bytes() == written


def test_nodes_that_no_output_needs_are_in_no_part(cli: Cli, model: Path) -> None:
    onnx.save(parse(TEXT.replace("q = Neg(a)", "q = Neg(a) u = Exp(a) v = Abs(u)")), model)
    parts = model.parent / "parts"
    ended = cli("split", model, "--at", "a", "--out-dir", parts, "--verify")
    assert ended.code == 0
    assert ended.out.endswith("left out: 2 nodes that no output needs\n")
    assert "  inputs: a: float[N,4], x: float[N,4]\n" in ended.out
    record = json.loads(cli("split", model, "--at", "a", "--json").out)
    assert record["unneeded_nodes"] == 2
