import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.conftest import Cli
from tests.saturation import products_that
from tiered.extensions.measurement.latency_result import Ratio
from tiered.extensions.measurement.medians import MedianInterval
from tiered.numerics.quantization.deployed import SATURATION
from tiered.runtime.byte_products import ByteProducts
from tiered.testing import parse

pytestmark = pytest.mark.usefixtures("exact_products")

TEXT = """
(float[N,16] x) => (float[N,16] y)
{ [first] a = MatMul(x, w) b = Relu(a) [second] c = MatMul(b, w) y = Softmax(c) }
"""


@pytest.fixture
def products(tmp_path: Path) -> Path:
    proto = parse(TEXT, opset=21)
    random = np.random.default_rng(0)
    weight = random.uniform(-0.4, 0.4, (16, 16)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    file = tmp_path / "products.onnx"
    onnx.save(proto, file)
    samples = tmp_path / "samples"
    samples.mkdir()
    for number in range(8):
        np.savez(samples / f"{number}.npz", x=random.uniform(-2, 2, (40, 16)).astype(np.float32))
    return file


@pytest.mark.parametrize("answer", ["exact", "saturate"])
def test_layers_are_listed(cli: Cli, products: Path, answer: ByteProducts) -> None:
    out, report = products.with_name("out.onnx"), products.with_name("report.json")
    samples = products.with_name("samples")
    with products_that(answer):
        how = ("--inputs", samples, "--report", report, "--for", "vnni")
        ended = cli("quantize", products, out, *how)
    assert ended.code == 0
    is_saturated = answer == "saturate"
    assert (f" dB: {SATURATION}\n" in ended.err) == is_saturated
    assert is_saturated or not ended.err
    assert "2 of 2 layers and 100.0% of the multiply-adds are quantised" in ended.out
    assert "uint8 x int8" in ended.out
    onnx.checker.check_model(onnx.load(out), full_check=True)
    found = json.loads(report.read_text())
    assert [row["node"] for row in found["layers"]] == ["first", "second"]
    assert [row["macs"] for row in found["layers"]] == [40 * 16 * 16] * 2
    assert sum(row["contribution"] for row in found["layers"]) == pytest.approx(1)
    assert found["samples"] == 8
    assert found["sqnr"] > 20
    assert found["saturates"] == is_saturated
    assert (found["sqnr_deployed"] < found["sqnr"] - 1) == is_saturated


def test_what_changed_is_printed_with_the_bytes_of_the_file(cli: Cli, products: Path) -> None:
    out = products.with_name("out.onnx")
    ended = cli("quantize", products, out)
    assert f"{products} -> {out}  (quantised, " in ended.out
    (row,) = [line.split() for line in ended.out.splitlines() if line.startswith(" bytes")]
    assert row[1:3] == [f"{file.stat().st_size:,}" for file in (products, out)]


def test_weights_of_seven_bits_do_not_saturate(cli: Cli, products: Path) -> None:
    out, samples = products.with_name("out.onnx"), products.with_name("samples")
    options = ("--inputs", samples, "--reduce-range", "--force")
    with products_that("saturate"):
        ended = cli("quantize", products, out, *options)
        dynamic = cli("quantize", products, out, "--dynamic", "--reduce-range", "--force")
        whole = cli("quantize", products, out, "--dynamic", "--no-reduce-range", "--force")
        pairs = cli("quantize", products, out, "--dynamic", "--for", "avx2", "--force")
    assert (ended.code, ended.err) == (0, "")
    assert (dynamic.code, SATURATION in dynamic.out) == (0, False)
    assert (whole.code, SATURATION in whole.out) == (0, True)
    assert (pairs.code, SATURATION in pairs.out) == (0, False)


def test_layers_of_a_target_without_floats_keep_their_names(cli: Cli, products: Path) -> None:
    proto = parse(TEXT.replace("y = Softmax(c)", "").replace("[second] c", "y"), opset=21)
    proto.graph.initializer.append(onnx.load(products).graph.initializer[0])
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 40
    onnx.save(proto, products)
    samples = products.with_name("samples")
    ended = cli("quantize", products, "--json", "--inputs", samples, "--backend", "int8_npu")
    found = json.loads(ended.out)
    assert [(row["node"], row["macs"]) for row in found["layers"]] == [
        ("first", 40 * 16 * 16),
        ("y", 40 * 16 * 16),
    ]


def test_an_opset_without_the_operators_is_the_reason(cli: Cli, products: Path) -> None:
    proto = parse(TEXT, opset=9)
    proto.graph.initializer.append(onnx.load(products).graph.initializer[0])
    onnx.save(proto, products)
    ended = cli("quantize", products, "--dry-run", "--inputs", products.with_name("samples"))
    assert ended.code == 4
    assert "no product is quantised: 2 MatMul: uint8 needs opset 10, the model has 9" in ended.err


@pytest.mark.parametrize("backend", ["coreml", "qnn_htp", "int8_npu", "onnxruntime_cpu"])
def test_a_target_that_takes_no_quantised_model_is_a_warning(
    cli: Cli, products: Path, backend: str
) -> None:
    samples = products.with_name("samples")
    ended = cli("quantize", products, "--dry-run", "--inputs", samples, "--backend", backend)
    assert ended.code == 0
    warning = "warning: coreml takes no QuantizeLinear or DequantizeLinear"
    assert (warning in ended.err) == (backend == "coreml")
    assert backend == "coreml" or "takes no" not in ended.err


def test_a_model_without_products_says_so(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "relu.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Tanh(x) }"), file)
    for way in ((), ("--dynamic",)):
        out = file.with_name("out.onnx")
        ended = cli("quantize", file, out, *way)
        assert (ended.code, out.exists()) == (4, False)
        assert "cannot do what it is asked for: no Conv, ConvTranspose, Gemm or MatMul" in ended.err
    ended = cli("quantize", file, out, "--weights", "int8")
    assert (ended.code, out.exists()) == (4, False)
    assert "no constant weight of Conv, Gather, Gemm or MatMul" in ended.err
    ended = cli("quantize", file, "--dry-run", "--backend", "int8_npu")
    assert "other operators that are quantised: 1" in ended.out
    assert "stays" not in ended.out
    found = json.loads(cli("quantize", file, "--json", "--backend", "int8_npu").out)
    assert (found["products"], found["other_operators"]) == (0, 1)


def test_a_sample_that_is_none_of_the_model_is_an_error_whatever_there_is_to_do(
    cli: Cli, tmp_path: Path
) -> None:
    file, sample = tmp_path / "add.onnx", tmp_path / "sample.npz"
    onnx.save(parse("(float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"), file)
    np.savez(sample, x=np.ones(2, np.float32))
    commands = (
        "quantize",
        "optimize --verify=final",
        "convert --to fp16",
        "convert --to int8-weights",
    )
    for command in commands:
        ended = cli(*command.split(), file, tmp_path / "out.onnx", "--inputs", sample)
        assert (ended.code, "the sample lacks the input 'z'" in ended.err) == (2, True), command
    assert not (tmp_path / "out.onnx").exists()


def test_layers_in_bodies_have_no_ratio_of_their_own(cli: Cli, products: Path) -> None:
    body = "(float[M,16] p) { p = MatMul(a, w) }"
    proto = parse(
        "(float[N,16] x, bool k) => (float[N,16] y) { a = MatMul(x, w) y = If(k) <then_branch = "
        f"t () => {body}, else_branch = e () => {body.replace('p', 'q')}> }}",
        opset=21,
    )
    proto.graph.initializer.append(onnx.load(products).graph.initializer[0])
    onnx.save(proto, products)
    ended = cli("quantize", products, "--dry-run", "--seed", "1")
    assert ended.code == 0
    rows = [line.split() for line in ended.out.splitlines() if "uint8 x int8" in line]
    # The layer, its operator, dtype ("uint8 x int8") and scale; ratio, error and multiply-adds.
    assert sorted((row[0], len(row)) for row in rows) == [("a", 9), ("p", 6), ("q", 6)]


def test_an_earlier_result_is_replaced_and_stays_as_it_is(cli: Cli, products: Path) -> None:
    out, samples = products.with_name("out.onnx"), products.with_name("samples")
    assert cli("quantize", products, out, "--inputs", samples).code == 0
    first = out.read_bytes()
    assert cli("quantize", products, out, "--inputs", samples).code == 0
    assert out.read_bytes() == first
    again = products.with_name("again.onnx")
    assert cli("quantize", out, again, "--inputs", samples).code == 0
    assert again.read_bytes() == first
    other = products.with_name("other.onnx")
    onnx.save(parse(TEXT.replace("Relu", "Tanh"), opset=21), other)
    ended = cli("quantize", products, other, "--inputs", samples)
    assert ended.code == 2
    assert "is an ONNX model and not an earlier result of" in ended.err


def test_the_weights_of_the_model_are_not_overwritten(cli: Cli, products: Path) -> None:
    proto = onnx.load(products)
    where = "out.onnx.data"
    onnx.save(proto, products, save_as_external_data=True, location=where, size_threshold=0)
    data = products.with_name("out.onnx.data")
    before = data.read_bytes()
    ended = cli("quantize", products, products.with_name("out.onnx"), "--external-data=1")
    assert ended.code == 2
    assert "out.onnx.data" in ended.err
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((2, 16)), "inputs 1: 'x' is float64 [2, 16]; the model takes float32 [N, 16]"),
        (np.zeros((2, 9), np.float32), "'x' is float32 [2, 9]; the model takes float32 [N, 16]"),
        (np.zeros(16, np.float32), "'x' is float32 [16]; the model takes float32 [N, 16]"),
    ],
)
def test_a_sample_that_does_not_fit_is_named(
    cli: Cli, products: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.floating]], says: str
) -> None:
    np.save(products.with_name("x.npy"), array)
    ended = cli("quantize", products, "--dry-run", "--inputs", products.with_name("x.npy"))
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--method", "percentile", "--percentile", "200"), "percentile is 200; expected above 0"),
        (("--samples", "0"), "samples is 0; expected at least 1"),
        (("--inputs", "nowhere"), "'nowhere' is no file of inputs"),
        (("--report", "nowhere/report.json"), "no directory 'nowhere'"),
    ],
)
def test_a_wrong_option_is_named_before_any_work(
    cli: Cli, products: Path, options: tuple[str, ...], says: str
) -> None:
    ended = cli("quantize", products, "--dry-run", *options)
    assert ended.code == 2 or "cannot write" in ended.err
    assert says in ended.err
    assert "bug in tiered" not in ended.err


def test_the_report_is_not_the_result(cli: Cli, products: Path) -> None:
    out = products.with_name("out.svg")
    ended = cli("quantize", products, out, "--report", out)
    assert ended.code == 2
    assert "OUT and --report are one file" in ended.err
    assert not out.exists()


def test_one_made_sample_is_enough(cli: Cli, products: Path) -> None:
    ended = cli("quantize", products, "--json", "--samples", "1")
    assert json.loads(ended.out)["sqnr"] > 10


WAYS = [("quantize",), ("quantize", "--dynamic"), ("quantize", "--weights", "int8")]
WAYS += [("convert", "--to", way, "--no-measure") for way in ("fp16", "fp8", "int4-weights")]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_names_that_fit_nothing_are_errors(cli: Cli, products: Path, way: tuple[str, ...]) -> None:
    run = (way[0], products, "--dry-run", *way[1:])
    ended = cli(*run, "--keep-nodes", "firts")
    assert ended.code == 2
    assert "has the name 'firts'; did you mean 'first'?" in ended.err
    ended = cli(*run, "--keep-ops", "Convv")
    assert ended.code == 2
    assert "there is no operator 'Convv'; did you mean 'Conv'?" in ended.err


def test_operators_that_the_model_lacks_are_a_warning(cli: Cli, products: Path) -> None:
    keep = ("--keep-nodes", "fir*", "--keep-ops", "Conv")
    ended = cli("quantize", products, "--dry-run", *keep)
    assert ended.code == 0
    assert "warning: no node has the operator Conv" in ended.err


def test_made_inputs_are_a_warning(cli: Cli, products: Path) -> None:
    ended = cli("quantize", products, products.with_name("out.onnx"))
    assert ended.code == 0
    assert "ranges are those of generated inputs" in ended.err


def test_the_record_and_the_chart(cli: Cli, products: Path) -> None:
    chart = products.with_name("report.svg")
    ended = cli("quantize", products, "--json", "--report", chart, "--keep-nodes", "first")
    found = json.loads(ended.out)
    assert (found["quantised"], found["products"], found["out"]) == (1, 2, None)
    assert found["layers"][0]["reason"] == "the node is skipped"
    assert found["share_of_macs"] == 0.5
    svg = chart.read_text()
    assert svg.startswith("<svg")
    assert svg.count("<title>") == 2


@pytest.mark.parametrize("command", ["quantize", "optimize"])
def test_a_budget_that_cannot_be_met_writes_nothing(cli: Cli, tmp_path: Path, command: str) -> None:
    nodes = "{ c = Conv<pads=[1,1,1,1]>(x, w) s = Sigmoid(c) a = Add(s, c) y = Mul(a, s) }"
    proto = parse(f"(float[1,3,8,8] x) => (float[1,3,8,8] y) {nodes}", opset=17)
    weight = np.random.default_rng(0).standard_normal((3, 3, 3, 3)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    file, out = tmp_path / "q.onnx", tmp_path / "out.onnx"
    onnx.save(proto, file)
    how = ("--budget", "sqnr>=90dB") if command == "quantize" else (
        "--passes", 'quantize{budget="sqnr>=90dB"}'
    )  # fmt: skip
    ended = cli(command, file, out, "--backend", "int8_npu", *how)
    assert (ended.code, out.exists()) == (3, False)
    assert "the budget sqnr>=90 cannot be met" in ended.err


def test_a_budget_that_no_layer_meets(cli: Cli, products: Path) -> None:
    ended = cli("quantize", products, "--json", "--budget", "sqnr>=90dB")
    assert ended.code == 4
    assert "no product is quantised: 2 MatMul: the budget sqnr>=90" in ended.err
    assert cli("quantize", products, "--dry-run", "--budget", "90").code == 2


@pytest.mark.parametrize(
    ("options", "op_type"),
    [
        (("--dynamic",), "DynamicQuantizeLinear"),
        (("--weights", "int8"), "DequantizeLinear"),
        (("--dynamic", "--keep-ops", "Gemm"), "DynamicQuantizeLinear"),
    ],
)
def test_other_ways_to_quantise(
    cli: Cli, products: Path, options: tuple[str, ...], op_type: str
) -> None:
    model = onnx.load(products)
    weight = np.random.default_rng(1).standard_normal((16, 128)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "v"))
    del model.graph.node[1:]
    model.graph.node[0].input[1] = "v"
    model.graph.node[0].output[0] = "y"
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 128
    onnx.save(model, products)
    out = products.with_name("out.onnx")
    assert cli("quantize", products, out, *options).code == 0
    assert op_type in [node.op_type for node in onnx.load(out).graph.node]


@pytest.mark.parametrize(
    "options",
    [
        ("--dynamic", "--weights", "int8"),
        ("--dynamic", "--backend", "qnn_htp"),
        ("--dynamic", "--order", "sensitivity"),
        ("--weights", "int8", "--report", "a.svg"),
        ("--weights", "int8", "--reduce-range"),
        ("--order", "sensitivity"),
        ("--report", "a.txt"),
        ("--verify=region",),
    ],
)
def test_options_that_do_not_go_together(
    cli: Cli, products: Path, options: tuple[str, ...]
) -> None:
    assert cli("quantize", products, products.with_name("out.onnx"), *options).code == 2


def test_the_backend_decides(cli: Cli, products: Path) -> None:
    ended = cli("quantize", products, "--json", "--backend", "tensorrt")
    assert {row["dtype"] for row in json.loads(ended.out)["layers"]} == {"int8 x int8"}


@pytest.mark.parametrize("how", [("--dynamic",), ("--weights", "int8")])
def test_other_forms_take_a_budget_and_list_what_returned(
    cli: Cli, products: Path, how: tuple[str, ...]
) -> None:
    proto = onnx.load(products)
    weight = np.random.default_rng(0).uniform(-0.4, 0.4, (16, 128)).astype(np.float32)
    for initializer, array in zip(proto.graph.initializer, [weight], strict=True):
        initializer.CopyFrom(numpy_helper.from_array(array, "w"))
    proto.graph.initializer.append(numpy_helper.from_array(weight.T.copy(), "v"))
    proto.graph.node[2].input[1] = "v"
    onnx.save(proto, products)
    out = products.with_name("out.onnx")
    samples = ("--inputs", products.with_name("samples"))
    loose = cli("quantize", products, out, *how, *samples, "--budget", "sqnr>=3dB")
    assert loose.code == 0
    assert "returned for" not in loose.out
    none = products.with_name("none.onnx")
    strict = cli("quantize", products, none, *how, *samples, "--budget", "sqnr>=300dB")
    assert (strict.code, none.exists()) == (4, False)
    assert "2 MatMul: returned for sqnr>=300" in strict.err


def test_the_order_of_a_budget(cli: Cli, products: Path) -> None:
    options = ("--json", "--budget", "sqnr>=44dB", "--order", "sensitivity")
    found = json.loads(cli("quantize", products, *options).out)
    assert float(found["sqnr"]) >= 44
    assert found["quantised"] + len(found["returned"]) == 2


@pytest.mark.parametrize("verify", ["--verify", "--verify=final"])
def test_a_quantised_model_is_verified_by_its_ratio(cli: Cli, products: Path, verify: str) -> None:
    samples, out = products.with_name("samples"), products.with_name("out.onnx")
    ended = cli("quantize", products, out, "--inputs", samples, verify)
    assert ended.code == 0
    assert "verified: yes (lossy, sqnr>=20; 2 sets of inputs, sqnr " in ended.out
    ended = cli("quantize", products, "--json", "--inputs", samples, verify)
    found = json.loads(ended.out)
    assert found["verified"] is True
    assert found["verdict"]["word"] == "yes"
    ended = cli("quantize", products, "--json", "--inputs", samples)
    assert json.loads(ended.out)["verified"] is False


def test_a_ratio_below_the_promise_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    file, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    text = "(float[8,4] x) => (float[8,2] y) <float[4,2] w = {1,1,-1,-1,1,1,-1,-1}>"
    onnx.save(parse(f"{text} {{ y = MatMul(x, w) }}"), file)
    samples = tmp_path / "x.npz"
    # Terms that cancel but for a small rest, which the steps of 8 bits do not hold.
    random = np.random.default_rng(0).normal(size=(8, 1)).astype(np.float32)
    rest = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32) * 1e-3
    np.savez(samples, x=random + rest)
    ended = cli("quantize", file, out, "--inputs", samples, "--verify")
    assert (ended.code, out.exists()) == (3, False)
    assert "promised: lossy (sqnr>=20); --budget states another promise" in ended.err
    ended = cli("quantize", file, out, "--inputs", samples)
    assert (ended.code, out.exists()) == (0, True)


def test_a_quantised_model_has_nothing_to_verify(cli: Cli, products: Path) -> None:
    out, samples = products.with_name("out.onnx"), products.with_name("samples")
    assert cli("quantize", products, out, "--inputs", samples).code == 0
    ended = cli("quantize", out, "--dry-run", "--verify")
    assert ended.code == 0
    assert "verified: nothing to verify (nothing was quantised)" in ended.out


def test_doubles_are_no_operands_of_integers(cli: Cli, tmp_path: Path) -> None:
    file, out = tmp_path / "double.onnx", tmp_path / "out.onnx"
    text = "(double[2,2] x) => (double[2,2] y) <double[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }"
    onnx.save(parse(text), file)
    for way in ((), ("--dynamic",)):
        ended = cli("quantize", file, out, *way)
        assert (ended.code, out.exists()) == (4, False)
        assert "no product is quantised: 1 MatMul: operands are of double" in ended.err


@pytest.mark.parametrize("verdict", ["faster", "slower", "no difference", "too few rounds"])
def test_the_latency_is_measured_on_request(
    cli: Cli, products: Path, monkeypatch: pytest.MonkeyPatch, verdict: str
) -> None:
    asked: list[tuple[str, ...]] = []

    class Found:
        ratios = (Ratio("B", "A", MedianInterval(1.3, 1.4, 1.5, 0.99), verdict),)

    def bench(*models: str, minutes: float) -> Found:
        asked.append(models)
        kinds = [{node.op_type for node in onnx.load(each).graph.node} for each in models]
        assert ["QuantizeLinear" in kind for kind in kinds] == [False, True]
        return Found()

    monkeypatch.setattr("tiered.extensions.measurement.latency_bench.bench", bench)
    how = ("quantize", products, "--dry-run", "--inputs", products.with_name("samples"))
    ended = cli(*how)
    assert "latency: not measured (--latency compares with the original)" in ended.out
    assert not asked
    ended = cli(*how, "--latency")
    ends = {"faster": "8 bits pay here", "too few rounds": "too few rounds"}
    end = ends.get(verdict, "8 bits do not pay on this processor")
    assert f"latency: 1.40 of the original's (1.30 to 1.50): {end}" in ended.out
    found = json.loads(cli(*how, "--latency", "--json").out)["latency"]
    assert found == {"ratio": 1.4, "low": 1.3, "high": 1.5, "verdict": verdict}


@pytest.mark.usefixtures("fake_worker")
def test_the_latency_is_a_ratio_of_measured_runs(cli: Cli, products: Path) -> None:
    ended = cli("quantize", products, "--dry-run", "--samples", "2", "--latency", "--json")
    found = json.loads(ended.out)["latency"]
    assert 0 < found["low"] <= found["ratio"] <= found["high"]


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("quantize")
