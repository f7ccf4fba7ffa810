"""`tiered prepare`: all steps in one run; the printed commands make the same bytes."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.conftest import Cli
from tiered.testing import parse

NET = """(float[N,40] x, int64[N] at) => (float[N,40] y) {
    i = Identity(x)  a = MatMul(i, w)  b = Relu(a)  c = MatMul(b, w)  d = Gelu(c)
    table = Gather(w, at)  e = Add(d, table)  y = Softmax(e) }"""

INT8 = """
api_version = 1
name = "tiny"
[dtypes]
activations = ["int8"]
weights = ["int8", "int32"]
[quantization]
form = "qdq"
per_channel = true
symmetric_weights = true
activations = "int8"
integer_results = ["MatMul"]
[groups]
q = ["int8"]
[operators]
"Relu, MatMul{more}" = {{ dtypes = ["q"] }}
"QuantizeLinear, DequantizeLinear" = {{ dtypes = ["float", "int8", "int32"] }}
"""
PRODUCTS = """(float[N,40] x) => (float[N,40] y) {
    i = Identity(x)  a = MatMul(i, w)  b = Relu(a)  y = MatMul(b, w) }"""


def saved(path: Path, text: str, opset: int = 20) -> Path:
    model = parse(text, opset=opset)
    weight = np.random.default_rng(0).normal(0, 0.1, (40, 40)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    model.doc_string = "made by a test"
    onnx.save(model, path)
    return path


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return saved(tmp_path / "net.onnx", NET)


@pytest.fixture
def products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, more in (("tiny", ""), ("adds", ", Add")):
        (tmp_path / f"{name}.toml").write_text(INT8.format(more=more))
    return saved(tmp_path / "products.onnx", PRODUCTS)


def replayed(cli: Cli, source: Path, *options: str) -> list[str]:
    """Prepare a model, replay the commands over the result, and return them."""
    out = source.with_name("out.onnx")
    ended = cli("prepare", source, out, "--json", *options)
    assert ended.code == 0, ended.err
    made = out.read_bytes()
    for file in source.parent.glob("out.onnx*"):
        file.unlink()
    commands: list[str] = json.loads(ended.out)["commands"]
    for command in commands:
        again = cli(*shlex.split(command)[1:], "-q")
        assert again.code == 0, (command, again.err)
    assert out.read_bytes() == made
    return commands


def words(commands: list[str]) -> list[str]:
    return [shlex.split(command)[1] for command in commands]


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("prepare")


@pytest.mark.parametrize(
    ("options", "run"),
    [
        (["--dim", "N=4"], ["optimize"]),
        (["--opset", "21"], ["convert", "optimize"]),
        (["--to", "fp16"], ["optimize", "convert"]),
        (["--to", "mixed", "--budget", "cosine>=0.999", "--order", "error"], ["convert"]),
        (["--to", "int8", "--for", "qnn_htp", "--dim", "N=4"], ["optimize", "quantize"]),
        (["--to", "int8-dynamic", "--for", "avx2"], ["optimize", "quantize"]),
        (["--to", "int8-weights", "--to", "fp16"], ["optimize", "convert"]),
        (["--to", "int4-weights,fp16", "--opset", "21", "--strip", "docs"], ["convert"]),
        (["--to", "fp16", "--for", "onnxruntime_cpu"], ["optimize", "convert", "optimize"]),
        (["--opset", "17", "--expand", "-O1", "--strip", "all"], ["convert", "optimize"]),
    ],
)  # fmt: skip
def test_the_commands_make_the_same_bytes(
    cli: Cli, net: Path, options: list[str], run: list[str]
) -> None:
    commands = replayed(cli, net, *options)
    assert [word for word in run if word not in words(commands)] == []


def test_weights_in_a_file_of_their_own_are_the_same_too(cli: Cli, net: Path) -> None:
    source, out = net.with_name("large.onnx"), net.with_name("out.onnx")
    assert cli("optimize", net, source, "-O0", "--external-data=64", "-q").code == 0
    assert source.with_name("large.onnx.data").exists()
    replayed(cli, source, "--dim", "N=2", "--to", "fp16")
    out.unlink()
    assert cli("prepare", source, "other.onnx", "--dim", "N=2", "--strip", "names").code == 0
    for command in replayed(cli, source, "--dim", "N=2", "--strip", "names"):
        assert "--strip" in command or "--dim" in command
    data = [file.with_suffix(".onnx.data").read_bytes() for file in (Path("other.onnx"), out)]
    assert data[0] == data[1]
    assert out.with_name("out.onnx.data").exists()


def test_the_summary_has_steps_pipeline_and_commands(cli: Cli, net: Path) -> None:
    ended = cli("prepare", net, "out.onnx", "--dim", "N=4", "--to", "fp16", "--strip", "docs")
    assert (ended.code, ended.err) == (0, "")
    assert f"{net} -> out.onnx  (fp16, -O3, " in ended.out
    assert "\n shapes     N=4 " in ended.out
    assert "  shapes (-O2): const_input_shape{dim={N: 4}" in ended.out
    assert "  fp16: float_to_half{measure=true}\n" in ended.out
    assert "  input x: float[N,40] -> float[4,40]\n" in ended.out
    assert f" --result-of {net}\n" in ended.out
    assert "the whole: error on 2 generated inputs by onnx.reference: cosine " in ended.out
    assert "verified: yes (every step within its promise; the whole: lossy)" in ended.out
    made = onnx.load("out.onnx")
    assert {entry.key for entry in made.metadata_props} >= {"tiered.source"}
    assert not made.doc_string


def test_the_report_is_a_file_and_what_stays_float_is_listed(cli: Cli, net: Path) -> None:
    options = ["--to", "fp16", "--keep-ops", "Softmax", "--report", "done.json"]
    ended = cli("prepare", net, "out.onnx", *options)
    assert ended.code == 0
    assert "Stays as it is" in ended.out
    record = json.loads(Path("done.json").read_text())
    kept = [each for each in record["stays_float"] if each["op_type"] == "Softmax"]
    assert [(each["count"], each["pass"]) for each in kept] == [(1, "float_to_half")]
    assert record["verified"] is True
    assert record["output"] == "out.onnx"
    assert [step["name"] for step in record["steps"]] == ["optimise", "fp16"]
    assert record["versions"].keys() >= {"tiered", "onnx"}
    assert (record["error"], record["exit_code"]) == (None, 0)


def test_a_second_run_replaces_its_result_and_makes_the_same_bytes(cli: Cli, net: Path) -> None:
    out = net.with_name("out.onnx")
    made = []
    for _ in range(2):
        assert cli("prepare", net, out, "--to", "fp16", "-q").code == 0
        made.append(out.read_bytes())
    assert made[0] == made[1]


def test_inputs_are_the_samples_of_every_step(cli: Cli, net: Path) -> None:
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {"x": random.normal(size=(4, 40)).astype(np.float32)}
    feeds["at"] = np.arange(4)
    np.savez("feeds.npz", **feeds)
    ended = cli(
        "prepare", net, "out.onnx", "--to", "int8", "--inputs", "feeds.npz", "--report", "r.json"
    )
    assert ended.code == 0, ended.err
    assert "the whole: error on 1 given input" in ended.out
    commands = json.loads(Path("r.json").read_text())["commands"]
    assert any("--inputs feeds.npz" in command for command in commands)


def test_samples_that_do_not_fit_are_an_error(cli: Cli, net: Path) -> None:
    np.savez("feeds.npz", other=np.zeros(3, np.float32))
    ended = cli("prepare", net, "out.onnx", "--inputs", "feeds.npz")
    assert ended.code == 2
    assert "other" in ended.err
    assert not Path("out.onnx").exists()


def test_a_target_that_takes_the_result_is_met(cli: Cli, products: Path) -> None:
    options = ["--to", "int8", "--for", "tiny.toml", "--budget", "sqnr>=10"]
    ended = cli("prepare", products, "out.onnx", *options)
    assert ended.code == 0, ended.err
    assert "tiny takes " in ended.out
    replayed(cli, products, *options)


def test_a_target_that_refuses_a_node_is_exit_code_4(cli: Cli, products: Path) -> None:
    net = saved(products.with_name("net.onnx"), NET)
    options = ["--to", "int8", "--for", "tiny.toml"]
    ended = cli("prepare", net, "out.onnx", *options)
    assert ended.code == 4
    assert "Stays on the host: not for tiny" in ended.out
    assert "tiny does not take the result: " in ended.err
    assert "--host (host=True) leaves these nodes to the host" in ended.err
    assert not Path("out.onnx").exists()
    assert cli("prepare", net, "out.onnx", *options, "--host", "-q").code == 0
    assert Path("out.onnx").exists()


def test_dims_are_named_where_a_target_wants_sizes(cli: Cli, net: Path) -> None:
    ended = cli("prepare", net, "out.onnx", "--for", "openvino_npu", "-q")
    assert ended.code == 4
    assert "dims can be fixed: --dim N=1" in ended.err


def test_a_budget_that_does_not_hold_is_exit_code_3(cli: Cli, net: Path) -> None:
    ended = cli("prepare", net, "out.onnx", "--to", "bf16", "--budget", "sqnr>=500")
    assert ended.code in (3, 4)
    assert "sqnr>=500" in ended.err
    assert not Path("out.onnx").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--to", "int8-weights", "--keep-ops", "MatMul,Gather"],
            "no weight is quantised: 1 MatMul",
        ),
        (["--to", "int4-weights"], "uint4 needs opset 21"),
    ],
)
def test_a_conversion_that_converts_nothing_is_exit_code_4(
    cli: Cli, net: Path, options: list[str], reason: str
) -> None:
    ended = cli("prepare", net, "out.onnx", *options)
    assert ended.code == 4
    assert reason in ended.err
    assert not Path("out.onnx").exists()


def test_a_step_that_moves_the_outputs_too_far_is_named(
    cli: Cli, net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiered.extensions.preparation import precisions
    from tiered.numerics.precision.budget import budget_of

    strict = precisions.budget_promise(budget_of("sqnr>=300"))
    monkeypatch.setattr(precisions, "FEW_BITS", strict)
    ended = cli("prepare", net, "out.onnx", "--to", "int8-weights")
    assert ended.code == 3
    assert "not in [300, inf]" in ended.err
    assert "--budget states how far the outputs may move" in ended.err
    assert "in step 2 of 2 of the preparation: int8-weights" in ended.err
    assert not Path("out.onnx").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--to", "fp16,bf16"], "--to fp16 and bf16 are two types to compute in; use one of them"),
        (["--to", "int8", "--to", "fp8"], "--to int8 and fp8 both quantise"),
        (["--to", "fp61"], "not 'fp61'; did you mean 'fp16'?"),
        (["--budget", "cosine>=0.9"], "--budget has no effect: it needs --to"),
        (["--to", "int32", "--budget", "cosine>=0.9"], "--budget has no effect"),
        (["--to", "fp16", "--order", "error"], "--order has no effect: it needs --budget and --to"),
        (["--bounds", "at=0:9"], "--bounds has no effect: it needs --to int32"),
        (["--keep-ops", "Add"], "--keep-ops has no effect: it needs --to"),
        (["--expand"], "--expand has no effect: it needs --opset"),
        (["--host"], "--host has no effect: it needs --for with a target"),
        (["--for", "avx2"], "--for avx2, vnni or any has no effect: it needs --to int8"),
        (["--for", "qnn"], "no backend named 'qnn'; did you mean 'qnn_htp'"),
        (["-O7"], "-O takes 0 to 4, not 7"),
        (["--strip", "nams"], "--strip takes metadata, names, docs, marks, all, not 'nams'"),
        (["--report", "x.txt"], "--report 'x.txt': expected a file .json"),
        (["--verify=finally"], "verify takes"),
    ],
)
def test_what_has_no_effect_or_does_not_exist_is_refused(
    cli: Cli, net: Path, options: list[str], reason: str
) -> None:
    ended = cli("prepare", net, "out.onnx", *options)
    assert ended.code == 2
    assert reason in ended.err
    assert not Path("out.onnx").exists()


def test_another_model_is_not_replaced(cli: Cli, net: Path, tmp_path: Path) -> None:
    other = saved(tmp_path / "other.onnx", PRODUCTS)
    before = other.read_bytes()
    ended = cli("prepare", net, other, "--to", "fp16")
    assert ended.code == 2
    assert "not an earlier result" in ended.err
    assert other.read_bytes() == before
    assert cli("prepare", net, net, "--to", "fp16").code == 2


def test_nothing_is_written_by_a_dry_run(cli: Cli, net: Path) -> None:
    ended = cli("prepare", net, "out.onnx", "--to", "fp16", "--dry-run")
    assert ended.code == 0
    assert "-> nothing written" in ended.out
    assert not Path("out.onnx").exists()


def test_integers_are_narrowed_within_bounds(cli: Cli, net: Path) -> None:
    ended = cli("prepare", net, "out.onnx", "--to", "int32", "--bounds", "at=0:15")
    assert ended.code == 0, ended.err
    assert "yes (exact)" in ended.out


def test_optimize_points_to_prepare(cli: Cli, net: Path) -> None:
    ended = cli("optimize", net, "out.onnx", "--to", "fp16")
    assert ended.code == 2
    assert "type tiered prepare MODEL OUT --to fp16" in ended.err


@pytest.mark.parametrize("command", ["optimize", "convert", "quantize"])
def test_a_chain_may_end_as_a_result_of_its_first_model(
    cli: Cli, products: Path, command: str
) -> None:
    first, out = products.with_name("first.onnx"), products.with_name("out.onnx")
    options = {
        "optimize": ["--strip", "docs"],
        "convert": ["--opset", "21"],
        "quantize": ["--dynamic"],
    }[command]
    assert cli("optimize", products, first, "-q").code == 0
    assert cli(command, first, out, *options, "-q").code == 0
    ended = cli("prepare", products, out, "-q")
    assert "is an ONNX model and not an earlier result of" in ended.err
    ended = cli(command, first, out, *options, "-q", "--force", "--result-of", products)
    assert ended.code == 0, ended.err
    assert cli(command, first, out, *options, "-q", "--result-of", products).code == 0
    named = {entry.key: entry.value for entry in onnx.load(out).metadata_props}
    assert named.keys().isdisjoint({"tiered.root"})
    marked = {entry.key: entry.value for entry in onnx.load(first).metadata_props}
    assert named["tiered.source"] == marked["tiered.source"]


def test_the_first_model_of_a_chain_must_be_one(cli: Cli, products: Path) -> None:
    first, text = products.with_name("first.onnx"), products.with_name("text.txt")
    text.write_text("no model")
    for name in ("text.txt", "missing.onnx"):
        ended = cli("optimize", products, first, "--result-of", name)
        assert ended.code == 1
        assert name in ended.err
        assert not first.exists()
    ended = cli("optimize", products, "--out-dir", "d", "--result-of", products)
    assert "--result-of is for one result" in ended.err
    ended = cli("merge", products, products, first, "--result-of", products)
    assert "--result-of has no effect" in ended.err
