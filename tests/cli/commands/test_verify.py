import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

RIGHT = "(float[n,4] x) => (float[n,4] y) { y = Mul(x, x) }"
WRONG = "(float[n,4] x) => (float[n,4] y) { z = Neg(x)  y = Mul(x, z) }"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    right, wrong = tmp_path / "right.onnx", tmp_path / "wrong.onnx"
    onnx.save(parse(RIGHT), right)
    onnx.save(parse(WRONG), wrong)
    return right, wrong


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("verify")


def test_models_that_agree_end_with_0(cli: Cli, files: tuple[Path, Path]) -> None:
    ended = cli("verify", files[0], files[0], "--numerics", "exact")
    assert ended.code == 0
    assert "the models agree (exact)" in ended.out
    assert ended.err == ""


def test_models_that_differ_end_with_3_and_the_table_says_how(
    cli: Cli, files: tuple[Path, Path]
) -> None:
    ended = cli("verify", *files)
    assert ended.code == 3
    assert "DIFFERS" in ended.out
    assert "-1.000000" in ended.out
    assert "wrong.onnx computes something else" in ended.err


def test_a_random_output_is_named_and_not_compared(cli: Cli, tmp_path: Path) -> None:
    file, both = tmp_path / "r.onnx", tmp_path / "both.onnx"
    onnx.save(parse("(float[3] x) => (float[3] y) { y = RandomNormalLike(x) }"), file)
    ended = cli("verify", file, file, "--layers")
    assert ended.code == 4
    assert "y: not comparable: random" in ended.err
    assert "no layer differs" in ended.out
    found = json.loads(cli("verify", file, file, "--json").out)
    assert not found["ok"]
    assert found["trials"][0]["outputs"][0]["reason"] == "not comparable: random"
    text = "(float[3] x) => (float[3] y, float[3] z) { y = RandomNormalLike(x)  z = Neg(x) }"
    onnx.save(parse(text), both)
    ended = cli("verify", both, both)
    assert (ended.code, ended.err) == (0, "")
    assert "the models agree (reassociating); y: not comparable: random" in ended.out
    onnx.save(parse(text.replace("Neg", "Abs")), file)
    assert cli("verify", both, file).code == 3
    ended = cli("bisect", both, "-O2", "--passes", "eliminate_identity")
    assert ended.code == 0


def test_the_dtype_of_a_random_output_counts(cli: Cli, tmp_path: Path) -> None:
    files = tmp_path / "one.onnx", tmp_path / "two.onnx"
    for file, (dtype, code) in zip(files, (("float", 1), ("double", 11)), strict=True):
        body = f"y = RandomNormalLike<dtype={code}>(x)"
        onnx.save(parse(f"(float[3] x) => ({dtype}[3] y) {{ {body} }}"), file)
    ended = cli("verify", *files)
    assert ended.code == 3
    assert "float32 became float64" in ended.err


def test_the_json_has_each_measure(cli: Cli, files: tuple[Path, Path]) -> None:
    ended = cli("verify", *files, "--json")
    said = json.loads(ended.out)
    assert ended.code == 3
    assert not said["ok"]
    output = said["trials"][0]["outputs"][0]
    assert output["name"] == "y"
    assert output["cosine"] == pytest.approx(-1.0)
    assert {"max_abs", "max_rel", "max_ulp", "argmax", "nans", "nan_mismatch"} <= set(output)


def test_a_file_that_is_not_there_is_no_difference(cli: Cli, files: tuple[Path, Path]) -> None:
    ended = cli("verify", files[0], files[0].with_name("none.onnx"))
    assert ended.code == 1
    assert "no such file" in ended.err


def test_layers_are_a_table_json_and_a_chart(
    cli: Cli, files: tuple[Path, Path], tmp_path: Path
) -> None:
    picture = tmp_path / "layers.svg"
    ended = cli("verify", *files, "--layers", "--svg", picture)
    assert ended.code == 3
    assert "the first that differs: y" in ended.out
    assert picture.read_text().startswith("<svg ")
    said = json.loads(cli("verify", *files, "--every-layer", "--json").out)
    assert said["layers"]["pairs"] == 1
    assert said["layers"]["first_wrong"] == said["layers"]["layers"][0]["place"]
    assert cli("verify", *files, "--svg", tmp_path / "none" / "x.svg").code == 1
    for model in files:
        before = model.read_bytes()
        assert (cli("verify", *files, "--svg", model).code, model.read_bytes()) == (2, before)


def test_inputs_may_be_given(cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
    zeros = tmp_path / "x.npy"
    np.save(zeros, np.zeros((1, 4), np.float32))
    said = json.loads(cli("verify", *files, "--inputs", zeros, "--layers", "--json").out)
    assert said["ok"], "0 * 0 is 0 * -0 within the tolerance"
    assert said["trials"][0]["rules"] == {"x": "given"}
    exact = ("--inputs", zeros, "--numerics", "exact")
    assert cli("verify", *files, *exact).code == 3
    assert cli("bisect", files[0], "--inputs", zeros, "-O3").code == 0


def test_the_report_says_who_judged_halves(cli: Cli, tmp_path: Path) -> None:
    half = tmp_path / "half.onnx"
    onnx.save(parse("(float16[2] x) => (float16[2] y) { y = Mul(x, x) }"), half)
    ended = cli("verify", half, half, "--numerics", "exact")
    assert ended.code == 0
    assert "judged by onnx.reference, as a model has 16-bit floats" in ended.out
    said = json.loads(cli("verify", half, half, "--layers", "--json").out)
    assert said["judged_by"] == said["layers"]["judged_by"] == "onnx.reference"
    assert "16-bit floats" in said["judged_why"]


def test_the_report_says_who_judged_float8(cli: Cli, tmp_path: Path) -> None:
    text = (
        "(float[2] x) => (float[2] y) <float s = {0.5}, float8e4m3fn z = {0}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"
    )
    onnx.save(parse(text), tmp_path / "eight.onnx")
    ended = cli("verify", tmp_path / "eight.onnx", tmp_path / "eight.onnx")
    assert ended.code == 0
    assert "judged by onnx.reference, as a model has floats of 8 bits or fewer" in ended.out


def test_a_cosine_alone_is_enough(cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
    near = tmp_path / "near.onnx"
    text = "(float[n,4] x) => (float[n,4] y) <float k = {1.5}> { z = Mul(x, x)  y = Mul(z, k) }"
    onnx.save(parse(text), near)
    ended = cli("verify", files[0], near, "--min-cosine", "0.99", "--layers")
    assert ended.code == 0
    assert "the models agree (approximate)" in ended.out
    assert "no layer differs" in ended.out
    assert cli("verify", *files, "--min-cosine", "0.99").code == 3
    exact = cli("verify", files[0], near, "--min-cosine", "0.99", "--numerics", "exact")
    assert exact.code == 2


# --- the promise that results carry --------------------------------------------------------------

PRODUCTS = """(float[N,40] x) => (float[N,40] y) {
    i = Identity(x)  a = MatMul(i, w)  b = Relu(a)  y = MatMul(b, w) }"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    model = parse(PRODUCTS, opset=17)
    weight = np.random.default_rng(0).normal(0, 0.1, (40, 40)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, path)
    return path


def said(cli: Cli, first: Path, second: Path, *options: str) -> str:
    ended = cli("verify", first, second, *options)
    assert ended.code == 0, ended.err
    return ended.out


def test_a_result_is_compared_within_the_promise_of_its_steps(cli: Cli, net: Path) -> None:
    exact, half = net.with_name("exact.onnx"), net.with_name("half.onnx")
    assert cli("optimize", net, exact, "-q").code == 0
    assert cli("convert", exact, half, "--to", "fp16", "-q").code == 0
    assert "the models agree (exact)\nallowed by the promise" in said(cli, net, exact)
    assert "the models agree (lossy)\nallowed by the promise" in said(cli, exact, half)
    # Of the first model of the chain, and of two results of it, too.
    assert "the models agree (lossy)" in said(cli, net, half)
    assert "the models agree (lossy)" in said(cli, half, exact)


def test_a_promise_has_its_metric_and_limit(cli: Cli, net: Path) -> None:
    out = net.with_name("out.onnx")
    assert cli("quantize", net, out, "-q").code == 0
    (text,) = [e.value for e in onnx.load(out).metadata_props if e.key == "tiered.promise"]
    assert json.loads(text) == {
        "numerics": "lossy", "metric": "sqnr", "low": 20.0, "steps": 8, "ranges": "generated"
    }  # fmt: skip
    ended = cli("verify", net, out)
    assert "sqnr in [20, inf]" in ended.out + ended.err
    assert "on generated samples; --numerics states another" in ended.out + ended.err
    assert cli("quantize", net, out, "--budget", "cosine>=0.9", "-q").code == 0
    assert "the models agree (lossy (cosine in [0.9, inf]))" in said(cli, net, out)
    record = json.loads(said(cli, net, out, "--json"))
    assert record["promised_by"] == "marks"


def test_ranges_of_given_samples_ask_for_them(cli: Cli, net: Path) -> None:
    out, samples = net.with_name("out.onnx"), net.with_name("s.npz")
    np.savez(samples, x=np.random.default_rng(1).normal(size=(64, 40)).astype(np.float32))
    options = ["--inputs", str(samples)]
    assert cli("quantize", net, out, "--budget", "sqnr>=10", "-q", *options).code == 0
    ended = cli("verify", net, out)
    hint = "it holds for inputs like the samples of its ranges: --inputs has them"
    assert hint in ended.out + ended.err
    assert hint not in said(cli, net, out, *options)


def test_a_broken_promise_is_named(cli: Cli, net: Path) -> None:
    out = net.with_name("out.onnx")
    assert cli("optimize", net, out, "-q").code == 0
    model = onnx.load(out)
    weight = onnx.numpy_helper.to_array(model.graph.initializer[0]) * np.float32(1.0001)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, out)
    ended = cli("verify", net, out)
    assert ended.code == 3
    assert "computes something else (allowed: exact)" in ended.err
    assert "allowed by the promise in the metadata: exact; --numerics states another" in ended.err
    assert cli("verify", net, out, "--numerics", "approximate").code == 0


def test_without_marks_the_default_is_said_to_be_assumed(cli: Cli, net: Path) -> None:
    half, bare = net.with_name("half.onnx"), net.with_name("bare.onnx")
    assert cli("convert", net, half, "--to", "fp16", "-q").code == 0
    ended = cli("convert", half, bare, "--strip", "marks")
    assert ended.code == 0
    assert "strip: metadata tiered.promise: " in ended.out
    assert [entry.key for entry in onnx.load(bare).metadata_props] == []
    ended = cli("verify", net, bare)
    assert ended.code == 3
    assert "assumed: neither file carries a promise about the other" in ended.err
    assert "--numerics states what is allowed" in ended.err
    assert "allowed by the options" in said(cli, net, bare, "--numerics", "lossy")
    # Other texts are removed without them.
    assert cli("convert", half, bare, "--strip", "all", "-q", "--force").code == 0
    assert "tiered.promise" in [entry.key for entry in onnx.load(bare).metadata_props]


def test_inputs_have_the_dims_that_the_result_fixes(cli: Cli, net: Path) -> None:
    out = net.with_name("out.onnx")
    assert cli("optimize", net, out, "--dim", "N=7", "-q").code == 0
    assert "float32[7, 40]" in said(cli, net, out)


def test_what_is_no_promise_is_passed_over(cli: Cli, net: Path) -> None:
    out = net.with_name("out.onnx")
    assert cli("optimize", net, out, "-q").code == 0
    for wrong in ('{"numerics": "perfect"}', "lossy", "[]", '{"numerics": "lossy", "metric": "m"}'):
        model = onnx.load(out)
        for entry in model.metadata_props:
            if entry.key == "tiered.promise":
                entry.value = wrong
        onnx.save(model, net.with_name("wrong.onnx"))
        assert "assumed: " in said(cli, net, net.with_name("wrong.onnx"))


def test_a_model_that_no_runtime_runs_is_not_verified_by_any_command(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "own.onnx"
    text = """(float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
        a = MatMul(x, w)  y = com.acme.Own(a) }"""
    proto = parse(text)
    proto.opset_import.add(domain="com.acme", version=1)
    onnx.save(proto, path)
    out = tmp_path / "out.onnx"
    for command in (
        ("verify", path, path),
        ("convert", path, out, "--opset", "18", "--verify"),
        ("quantize", path, out, "--dynamic", "--verify"),
        ("optimize", path, out, "--require", "float_to_half", "--verify"),
    ):
        ended = cli(*command)
        assert ended.code == 4, command
        assert "not verified: " in ended.err
    assert not out.exists()
