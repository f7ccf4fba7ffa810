"""`tiered doctor`: the shortest list of commands, each tried; they do what it says."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.commands.test_prepare import INT8, PRODUCTS, saved
from tests.cli.conftest import Cli
from tiered.testing import parse

FLOATS = """
api_version = 1
name = "floats"
{more}
[operators]
"Add, Gelu, Identity, MatMul, Relu, Reshape" = {{ types = {{ T = ["float"] }} }}
"""


@pytest.fixture
def products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(INT8.format(more=""))
    return saved(tmp_path / "products.onnx", PRODUCTS)


def profile(more: str = "") -> str:
    Path("floats.toml").write_text(FLOATS.format(more=more))
    return "floats.toml"


def diagnosed(cli: Cli, model: Path, *options: str) -> dict:  # type: ignore[type-arg]  # JSON
    ended = cli("doctor", model, "--json", *options)
    assert ended.code == 0, ended.err
    found: dict = json.loads(ended.out)  # type: ignore[type-arg]  # JSON
    return found


def names(found: dict) -> list[str]:  # type: ignore[type-arg]  # JSON
    return [each["what"] for each in found["remedies"]]


def run(cli: Cli, commands: list[str]) -> None:
    for command in commands:
        ended = cli(*shlex.split(command)[1:])
        assert ended.code == 0, (command, ended.err)


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("doctor")


def test_a_target_of_integers_gets_a_quantised_model(cli: Cli, products: Path) -> None:
    found = diagnosed(cli, products, "--backend", "tiny.toml")
    assert names(found) == ["quantise first"]
    assert (found["legal"], found["legal_after"]) == (False, True)
    assert found["target_after"]["taken"] == found["target_after"]["nodes"] > 0
    run(cli, found["commands"])
    assert cli("check", "out.onnx", "--backend", "tiny.toml", "-O0").code == 0
    assert found["command"].endswith("out.onnx --to int8 --for tiny.toml")
    Path("out.onnx").unlink()
    run(cli, [f"{found['command']} --budget 'sqnr>=10'"])


def test_the_text_has_gains_and_commands(cli: Cli, products: Path) -> None:
    ended = cli("doctor", products, "--backend", "tiny.toml")
    assert ended.code == 0
    assert "0 of 4 nodes taken as it is" in ended.out
    assert "What each step gains" in ended.out
    assert "quantise first: tiny computes no float32" in ended.out
    assert "  tiered quantize out.step1.onnx out.step2.onnx --backend tiny.toml" in ended.out
    assert "add --inputs SAMPLES" in ended.out
    assert not list(products.parent.glob("out*"))


def test_a_static_target_gets_sizes(cli: Cli, products: Path) -> None:
    found = diagnosed(cli, products, "--backend", profile('shapes = "static"'))
    assert names(found) == ["fix dims"]
    assert "--dim N=1" in found["command"]
    run(cli, found["commands"])


def test_versions_are_those_of_the_target(cli: Cli, products: Path) -> None:
    found = diagnosed(cli, products, "--backend", profile("opset = [7, 13]\nir_version = [3, 7]"))
    assert names(found) == ["opset 13", "IR version 7"]
    assert "--opset 13 --ir 7" in found["command"]
    run(cli, found["commands"])
    made = onnx.load("out.onnx")
    assert (made.opset_import[0].version, made.ir_version) == (13, 7)


def test_an_operator_without_a_form_is_expanded(cli: Cli, products: Path) -> None:
    gelu = saved(products, PRODUCTS.replace("Relu", "Gelu"))
    found = diagnosed(cli, gelu, "--backend", profile("opset = [7, 13]"))
    assert names(found)[0] == "opset 13, with bodies"
    assert found["failed"][0].startswith("opset 13: ")
    assert "--expand" in found["command"]


def test_what_the_passes_of_the_target_do_is_no_remedy(cli: Cli, products: Path) -> None:
    found = diagnosed(cli, products, "--backend", "portable13")
    assert (found["legal"], found["legal_after"], names(found)) == (False, True, [])
    assert found["commands"] == [f"tiered optimize {products} out.onnx -O3 --backend portable13"]
    run(cli, found["commands"])


def test_another_layout_needs_local_functions(cli: Cli, products: Path) -> None:
    text = "(float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Conv<pads = [1,1,1,1]>(x, w) }"
    model = parse(text, opset=13)
    model.ir_version = 7
    weight = np.ones((3, 3, 3, 3), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, "conv.onnx")
    Path("nhwc.toml").write_text(
        'api_version = 1\nname = "nhwc"\nlayout = "NHWC"\n[layouts]\nConv = "NHWC"\n[operators]\n'
        '"tiered.nhwc::Conv, Transpose, Reshape" = true\n'
    )
    found = diagnosed(cli, Path("conv.onnx"), "--backend", "nhwc.toml")
    assert names(found) == ["IR version 8"]
    run(cli, found["commands"])


def test_integers_that_are_refused_are_narrowed(cli: Cli, products: Path) -> None:
    text = "(float[4] x) => (float[4] y, int32[1] i) { a = ArgMax<axis = 0>(x) b = Abs(a) i = Cast<to = 6>(b) y = Relu(x) }"  # noqa: E501 - a model
    onnx.save(parse(text, opset=17), "arg.onnx")
    Path("int32.toml").write_text(
        'api_version = 1\nname = "narrow"\n[operators]\n"Relu, Cast, ArgMax" = true\n'
        'Abs = { types = { T = ["int32"] } }\n'
    )
    found = diagnosed(cli, Path("arg.onnx"), "--backend", "int32.toml")
    assert found["legal_after"]
    assert names(found) == ["int64 to int32"]


def test_what_is_refused_is_cut_off(cli: Cli, products: Path) -> None:
    model = saved(products, PRODUCTS.replace("Relu", "Erf"))
    found = diagnosed(cli, model, "--backend", profile())
    assert (found["legal_after"], found["has_a_way"]) == (False, True)
    assert found["commands"][-1].startswith("tiered partition out.onnx --backend floats.toml ")
    assert found["command"].endswith(" --host")
    run(cli, found["commands"])
    assert list(Path("out.parts").glob("*.onnx"))


def test_nothing_legal_is_exit_code_4(cli: Cli, products: Path) -> None:
    Path("none.toml").write_text('api_version = 1\nname = "none"\n[operators]\nSin = true\n')
    ended = cli("doctor", products, "--backend", "none.toml", "--json")
    assert ended.code == 4
    assert "nothing makes" in ended.err
    assert "legal on none.toml: MatMul: the target has no such operator" in ended.err
    record = json.loads(ended.out)
    assert (record["has_a_way"], record["commands"]) == (False, [])


def test_a_legal_model_may_be_smaller(cli: Cli, products: Path) -> None:
    found = diagnosed(cli, products)
    assert found["legal"]
    assert found["commands"] == []
    named = {each["what"]: each for each in found["suggestions"]}
    assert {"optimise", "compute in float16", "weights in 8 bits"} <= named.keys()
    half = named["compute in float16"]
    assert half["bytes"][1] < 0.7 * half["bytes"][0]
    assert "cosine" in half["error"]
    run(cli, [half["command"]])
    assert Path("out.onnx").stat().st_size < 1.1 * half["bytes"][1]


def test_a_version_that_no_runtime_opens_is_lowered(cli: Cli, products: Path) -> None:
    model = onnx.load(products)
    model.ir_version = onnx.IR_VERSION
    onnx.save(model, products)
    found = diagnosed(cli, products)
    if not found["legal"]:  # a newer onnxruntime opens it
        assert found["complaint"]
        assert names(found) == ["IR version 10"]
        assert found["legal_after"]
        run(cli, found["commands"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--backend", "qnn"], "did you mean 'qnn_htp'"), (["-O9"], "-O takes 0 to 4, not 9")],
)
def test_wrong_options_are_errors(
    cli: Cli, products: Path, options: list[str], reason: str
) -> None:
    ended = cli("doctor", products, *options)
    assert ended.code == 2
    assert reason in ended.err
