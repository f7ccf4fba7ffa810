"""A conversion that was asked for by name, and leaves all as it is: exit code 4, and no file."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.conftest import Cli
from tiered.testing import parse

PRODUCT = "(float[N,64] x) => (float[N,64] y) { y = MatMul(x, w) }"
STRICT = ("--budget", "relative<=1e-9")
KEPT = ("--keep-ops", "MatMul")


@pytest.fixture
def product(tmp_path: Path) -> Path:
    path = tmp_path / "product.onnx"
    proto = parse(PRODUCT, opset=21)
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(proto, path)
    return path


def refused(cli: Cli, command: str, source: Path, *options: str) -> str:
    """Return why a command wrote nothing, with exit code 4."""
    out = source.with_name("out.onnx")
    ended = cli(command, source, out, *options)
    assert (ended.code, out.exists()) == (4, False), ended
    return ended.err


@pytest.mark.parametrize("command", ["convert", "prepare"])
@pytest.mark.parametrize("to", ["fp16", "bf16", "mixed", "fp8", "int8-weights", "int4-weights"])
@pytest.mark.parametrize(
    ("options", "reason"), [(KEPT, "MatMul is skipped"), (STRICT, "returned for relative<=1e-09")]
)
def test_products_that_all_stay_float(
    cli: Cli, product: Path, command: str, to: str, options: tuple[str, ...], reason: str
) -> None:
    said = refused(cli, command, product, "--to", to, *options)
    assert f"1 MatMul: {reason}" in said


@pytest.mark.parametrize("way", [(), ("--dynamic",), ("--weights", "int8"), ("--weights", "int4")])
@pytest.mark.parametrize(("options", "reason"), [(KEPT, "skipped"), (STRICT, "relative<=1e-09")])
def test_products_that_are_not_quantised(
    cli: Cli, product: Path, way: tuple[str, ...], options: tuple[str, ...], reason: str
) -> None:
    assert reason in refused(cli, "quantize", product, *way, *options)


def test_what_a_target_of_integers_replaces_first_is_no_quantisation(
    cli: Cli, tmp_path: Path
) -> None:
    source = tmp_path / "in.onnx"
    text = "(float[4,16] x) => (float[4,16] y) { a = MatMul(x, w) y = Erf(a) }"
    proto = parse(text, opset=17)
    weight = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(proto, source)
    how = ("--backend", "int8_npu", "--budget", "sqnr>=200dB")
    ended = cli("quantize", source, source.with_name("out.onnx"), *how)
    assert ended.code in (3, 4)  # 3 where another operator in integers is too far off
    assert not source.with_name("out.onnx").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a role", "statistic: 1e-12 is added to it"),
        ("a type", "Celu has no float16"),
    ],
)
def test_nodes_that_all_have_a_reason(cli: Cli, tmp_path: Path, text: str, reason: str) -> None:
    bodies = {
        "a role": "n = ReduceL2<axes=[1]>(x) c = Clip(n, e) y = Div(x, c)",
        "a type": "y = Celu(x)",
    }
    source = tmp_path / "in.onnx"
    model = f"(float[N,8] x) => (float[N,8] y) <float e = {{1e-12}}> {{ {bodies[text]} }}"
    onnx.save(parse(model, opset=17), source)
    assert reason in refused(cli, "convert", source, "--to", "fp16")


@pytest.mark.parametrize("to", ["int8-weights", "int4-weights"])
def test_weights_that_are_all_small(cli: Cli, tmp_path: Path, to: str) -> None:
    source = tmp_path / "in.onnx"
    text = "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }"
    onnx.save(parse(text, opset=21), source)
    assert "no weight is quantised: 1 MatMul: a small weight" in refused(
        cli, "convert", source, "--to", to
    )


def test_integers_without_a_proof(cli: Cli, tmp_path: Path) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    text = "(int64[N] i, float[9,4] t) => (float[N,4] y) <int64 k = {1}>"
    onnx.save(parse(f"{text} {{ j = Add(i, k) y = Gather(t, j) }}"), source)
    assert "1 Add: not proven to fit int32" in refused(cli, "convert", source, "--to", "int32")
    assert cli("convert", source, out, "--to", "int32", "--bounds", "i=0:7").code == 0


@pytest.mark.parametrize("to", ["fp16", "bf16", "int8-weights", "int4-weights", "fp8"])
def test_a_second_run_has_nothing_to_convert_and_is_no_error(
    cli: Cli, product: Path, to: str
) -> None:
    out, again = product.with_name("out.onnx"), product.with_name("again.onnx")
    assert cli("convert", product, out, "--to", to).code == 0
    assert cli("convert", out, again, "--to", to).code == 0
