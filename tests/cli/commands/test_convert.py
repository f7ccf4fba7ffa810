import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.runtime import run_reference
from tiered.testing import parse

CLIP = "(float[2,3] x) => (float[N,M] y) { y = Clip<max = 2.0, min = 0.0>(x) }"
GELU = "(float[2,3] x) => (float[2,3] y) { a = Gelu(x)  y = Gelu(a) }"


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.onnx"
    model = parse(CLIP, opset=9)
    model.ir_version = 8
    onnx.save(model, path)
    return path


@pytest.fixture
def gelu(tmp_path: Path) -> Path:
    path = tmp_path / "gelu.onnx"
    onnx.save(parse(GELU, opset=20), path)
    return path


def versions(path: Path) -> tuple[int, int]:
    model = onnx.load(path)
    return model.ir_version, model.opset_import[0].version


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("convert")


def test_the_opset_is_converted_verified_and_printed(cli: Cli, clip: Path) -> None:
    out = clip.with_name("out.onnx")
    ended = cli("convert", clip, out, "--opset", "21", "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "(opset 21, " in ended.out
    assert "interface changed:\n  opset 9 -> 21\n  IR version 8 -> 10\n" in ended.out
    assert "verified: yes (exact" in ended.out
    assert versions(out) == (10, 21)
    assert len(onnx.load(out).graph.node[0].input) == 3


@pytest.mark.parametrize(
    "option", ["--opset", "--target-opset", "--opset-version", "--convert-opset"]
)
def test_the_names_that_people_try_first_are_known(cli: Cli, clip: Path, option: str) -> None:
    out = clip.with_name("out.onnx")
    assert cli("convert", clip, out, option, "13", "--ir", "9", "-q").code == 0
    assert versions(out) == (9, 13)


def test_the_changes_are_in_the_json(cli: Cli, clip: Path) -> None:
    ended = cli("convert", clip, "--opset", "13", "--json")
    record = json.loads(ended.out)
    assert ended.code == 0
    assert record["interface"] == ["opset 9 -> 13"]
    assert [done["name"] for done in record["passes"]] == ["infer_shapes", "convert_opset"]


def test_what_blocks_is_listed_and_nothing_is_written(cli: Cli, gelu: Path) -> None:
    out = gelu.with_name("out.onnx")
    ended = cli("convert", gelu, out, "--opset", "13")
    assert ended.code == 1
    assert "cannot be converted from opset 20 to 13; 2 nodes would not mean the same" in ended.err
    assert "node 'a' (Gelu): opset 13 has no Gelu, which opset 20 brought" in ended.err
    assert not out.exists()


def test_bodies_of_operators_are_expanded_if_asked(cli: Cli, gelu: Path) -> None:
    out = gelu.with_name("out.onnx")
    ended = cli("convert", gelu, out, "--opset", "13", "--expand", "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "verified: yes (reassociating" in ended.out
    assert "Gelu" not in {node.op_type for node in onnx.load(out).graph.node}


def test_an_option_must_say_what_to_convert(cli: Cli, clip: Path) -> None:
    ended = cli("convert", clip, clip.with_name("out.onnx"))
    assert ended.code == 2
    assert "nothing to convert: type --opset N, --ir N, --to fp16 or --strip all" in ended.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--opset", "99"], "there is no opset 99"), (["--ir", "99"], "no IR version 99")],
)
def test_versions_that_do_not_exist_are_errors(
    cli: Cli, clip: Path, options: list[str], reason: str
) -> None:
    ended = cli("convert", clip, clip.with_name("out.onnx"), *options)
    assert ended.code == 2
    assert reason in ended.err


def test_a_second_run_changes_nothing(cli: Cli, clip: Path) -> None:
    out, again = clip.with_name("out.onnx"), clip.with_name("again.onnx")
    assert cli("convert", clip, out, "--opset", "21", "-q").code == 0
    assert cli("convert", out, again, "--opset", "21", "-q").code == 0
    models = [onnx.load(path) for path in (out, again)]
    for model in models:
        del model.metadata_props[:]
    assert models[0] == models[1]
    ended = cli("convert", out, "--opset", "21", "--dry-run")
    assert "interface changed" not in ended.out


def test_inputs_and_outputs_that_change_are_printed(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    ended = cli("optimize", small, out, "--dim", "n=4")
    assert "interface changed:\n  input x: float[n,2] -> float[4,2]" in ended.out


SUM = "(float[N,4] x) => (float[N,4] y) { a = Exp(x)  b = Celu(a)  y = Softmax(b) }"


@pytest.fixture
def exponential(tmp_path: Path) -> Path:
    path = tmp_path / "exponential.onnx"
    onnx.save(parse(SUM, opset=17), path)
    return path


def test_the_precision_is_lowered_verified_and_printed(cli: Cli, exponential: Path) -> None:
    out = exponential.with_name("out.onnx")
    ended = cli("convert", exponential, out, "--to", "fp16", "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "(fp16, " in ended.out
    assert "float_to_half: 2 nodes compute in float16; Casts added: 4" in ended.out
    assert "float_to_half: 1 Celu unchanged: Celu has no float16 (" in ended.out
    assert "verified: yes (lossy" in ended.out
    assert "interface changed" not in ended.out
    onnx.checker.check_model(onnx.load(out), full_check=True)


def test_operators_and_nodes_are_kept_and_the_interface_is_not(cli: Cli, exponential: Path) -> None:
    out = exponential.with_name("out.onnx")
    options = ("--to", "bf16", "--no-keep-io", "--keep-ops", "Exp,Celu", "--keep-nodes", "*y*")
    ended = cli("convert", exponential, out, *options)
    assert (ended.code, ended.err) == (0, "")
    assert "1 Exp unchanged: Exp is skipped" in ended.out


def test_the_error_is_measured_unless_it_is_not_wanted(cli: Cli, exponential: Path) -> None:
    options = ("convert", exponential, "--dry-run", "--to", "fp16")
    measured = "measure_error: error on 2 generated inputs by onnx.reference: cosine 1"
    assert measured in cli(*options).out
    assert "measure_error" not in cli(*options, "--no-measure").out


@pytest.mark.parametrize("option", ["--measure", "--no-measure"])
def test_what_leaves_the_range_stays_float_if_it_is_measured(
    cli: Cli, tmp_path: Path, option: str
) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    text = "(float[N,8] x) => (float[N,1] y) <float k = {30}> "
    onnx.save(parse(f"{text} {{ b = Add(x, k) y = ReduceProd<axes=[1]>(b) }}", opset=13), source)
    ended = cli("convert", source, out, "--to", "fp16", option)
    assert (ended.code, ended.err) == (0, "")
    assert ("1 ReduceProd unchanged: measured up to" in ended.out) == (option == "--measure")
    with np.errstate(over="ignore"):
        found = run_reference(onnx.load(out), {"x": np.ones((1, 8), np.float32)})["y"]
    assert np.isfinite(found).all() == (option == "--measure")


def test_a_budget_is_met_and_the_reasons_are_in_the_json(cli: Cli, exponential: Path) -> None:
    options = ("convert", exponential, "--dry-run", "--to", "mixed", "--budget")
    record = json.loads(cli(*options, "cosine>=0.99", "--json").out)
    reasons = [remark["reason"] for remark in record["remarks"]]
    assert any(reason.startswith("measured on 2 generated inputs by") for reason in reasons)
    assert "Celu has no float16" in reasons
    assert record["before"]["bytes"] > 0
    assert record["after"]["bytes"] > 0


def test_a_budget_that_cannot_be_met_writes_nothing(cli: Cli, exponential: Path) -> None:
    out = exponential.with_name("out.onnx")
    ended = cli("convert", exponential, out, "--to", "mixed", "--budget", "cosine>=2")
    assert ended.code == 3
    assert "the budget cosine>=2 cannot be met" in ended.err
    assert not out.exists()


def test_given_inputs_are_measured(cli: Cli, exponential: Path) -> None:
    file = exponential.with_name("x.npy")
    np.save(file, np.full((2, 4), 11.5, np.float32))
    options = ("convert", exponential, "--dry-run", "--to", "mixed", "--inputs", file)
    ended = cli(*options)
    assert ended.code == 4
    assert "1 Exp: measured up to 9.87e+04" in ended.err
    np.save(file, np.full((2, 4), 0.5, np.float32))
    assert "measured on 1 given input by" in cli(*options).out


@pytest.mark.parametrize(
    ("to", "pass_", "dtype"),
    [
        ("fp8", "float_to_fp8", "float8e4m3fn"),
        ("int8-weights", "weights_to_int8", "int8"),
        ("int4-weights", "weights_to_int4", "uint4"),
    ],
)
def test_weights_are_stored_in_few_bits(
    cli: Cli, tmp_path: Path, to: str, pass_: str, dtype: str
) -> None:
    source = tmp_path / "matmul.onnx"
    model = parse("(float[N,64] x) => (float[N,64] y) { y = MatMul(x, w) }", opset=21)
    weight = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, source)
    ended = cli("convert", source, tmp_path / "out.onnx", "--to", to)
    assert (ended.code, ended.err) == (0, "")
    assert f"{pass_}: 1 weight in {dtype}: 16384 bytes are " in ended.out
    judge = "onnx.reference" if to == "fp8" else "onnxruntime"
    assert f"measure_error: error on 2 generated inputs by {judge}: cosine 0.99" in ended.out
    ended = cli("convert", source, tmp_path / "no.onnx", "--to", to, "--keep-ops", "MatMul")
    assert (ended.code, (tmp_path / "no.onnx").exists()) == (4, False)
    assert "MatMul: MatMul is skipped" in ended.err


@pytest.mark.parametrize(
    "how", [("convert", "--to", "int4-weights"), ("quantize", "--weights", "int4")]
)
def test_four_bits_are_rounded_for_given_inputs(
    cli: Cli, tmp_path: Path, how: tuple[str, ...]
) -> None:
    model = parse("(float[N,64] x) => (float[N,64] y) { y = MatMul(x, w) }", opset=21)
    random = np.random.default_rng(0)
    weight = random.normal(size=(64, 64)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "matmul.onnx")
    np.save(tmp_path / "x.npy", np.abs(random.normal(size=(64, 64))).astype(np.float32))
    command, *options = how
    files = (tmp_path / "matmul.onnx", tmp_path / "out.onnx", "--inputs", tmp_path / "x.npy")
    ended = cli(command, *files, *options)
    assert (ended.code, ended.err) == (0, "")
    assert "1 of 1 are rounded for 1 given input" in ended.out


@pytest.mark.parametrize("to", ["fp16", "bf16"])
def test_nodes_return_to_float_for_a_budget(cli: Cli, exponential: Path, to: str) -> None:
    options = ("convert", exponential, "--dry-run", "--to", to, "--budget")
    ended = cli(*options, "relative<=1e-6")
    assert ended.code == 4
    assert "1 Exp: returned for relative<=1e-06" in ended.err
    ended = cli(*options, "relative<=0.1")
    dtype = {"fp16": "float16", "bf16": "bfloat16"}[to]
    assert f"float_to_mixed: 2 nodes compute in {dtype}" in ended.out


@pytest.mark.parametrize(
    ("to", "loose", "strict"),
    [
        ("fp8", "relative<=0.1", "relative<=0.03"),
        ("int8-weights", "relative<=0.05", "relative<=0.006"),
        ("int4-weights", "relative<=0.5", "relative<=0.03"),
    ],
)
def test_weights_return_to_float_for_a_budget(
    cli: Cli, tmp_path: Path, to: str, loose: str, strict: str
) -> None:
    """The weight of m is 100 times the other one: so are its errors."""
    text = (
        "(float[N,64] x) => (float[N,64] y) <float k = {0.01}> "
        "{ a = MatMul(x, v) b = MatMul(x, w) m = Mul(b, k) y = Add(a, m) }"
    )
    source = tmp_path / "two.onnx"
    model = parse(text, opset=21)
    random = np.random.default_rng(0)
    for name in ("v", "w"):
        weight = random.normal(size=(64, 64)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    onnx.save(model, source)
    out = tmp_path / "out.onnx"

    def kept(limit: str) -> set[str]:
        ended = cli("convert", source, out, "--to", to, "--budget", limit)
        assert (ended.code, ended.err) == (0, "")
        assert "measured on " in ended.out
        assert ("unchanged: returned for" in ended.out) == (limit == strict)
        return {"v", "w"} & {tensor.name for tensor in onnx.load(out).graph.initializer}

    assert kept(loose) == set()
    assert kept(strict)
    ended = cli("convert", source, tmp_path / "no.onnx", "--to", to, "--budget", "cosine>=2")
    assert ended.code == 3
    assert "the budget cosine>=2 cannot be met: cosine is 1 with all 2 nodes" in ended.err
    assert not (tmp_path / "no.onnx").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--budget", "cosine>=0.9"], "--budget has no effect: it needs --to"),
        (["--to", "int8-weights", "--budget", "good"], "'good' is no budget"),
        (["--to", "int8-weights", "--no-keep-io"], "--no-keep-io has no effect"),
        (["--to", "mixed", "--budget", "good"], "'good' is no budget"),
    ],
)
def test_options_that_do_not_go_together(
    cli: Cli, exponential: Path, options: list[str], reason: str
) -> None:
    ended = cli("convert", exponential, exponential.with_name("out.onnx"), *options)
    assert ended.code == 2
    assert reason in ended.err


def test_a_precision_that_does_not_exist_is_an_error(cli: Cli, exponential: Path) -> None:
    ended = cli("convert", exponential, exponential.with_name("out.onnx"), "--to", "fp12")
    assert ended.code == 2
    assert "fp16" in ended.err


def test_an_interface_in_halves_is_verified(cli: Cli, exponential: Path) -> None:
    out = exponential.with_name("out.onnx")
    ended = cli("convert", exponential, out, "--to", "fp16", "--no-keep-io", "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "input x: float[N,4] -> float16[N,4]" in ended.out
    assert "verified: yes (lossy" in ended.out
    assert "largest difference 0.0e+00" not in ended.out
    record = cli("convert", exponential, "--to", "fp16", "--no-keep-io", "--verify", "--json")
    assert {way["judge"] for way in json.loads(record.out)["ways"]} == {"onnx.reference"}


@pytest.mark.parametrize("keep", ["--keep-io", "--no-keep-io"])
def test_halves_that_overflow_are_an_error_of_convert(
    cli: Cli, exponential: Path, keep: str
) -> None:
    wide, out = (exponential.with_name(name) for name in ("wide.onnx", "out.onnx"))
    text = (
        "(float[2] x) => (float[2] y) <float k = {40000}> "
        "{ a = Mul(x, k) b = Mul(a, k) c = Div(b, k) y = Div(c, k) }"
    )
    onnx.save(parse(text), wide)
    ended = cli("convert", wide, out, "--to", "fp16", "--no-measure", "--verify", keep)
    assert ended.code == 3
    assert "judged      onnx.reference, on " in ended.err
    assert not out.exists()


def test_halves_that_overflow_are_an_error_of_verify(cli: Cli, exponential: Path) -> None:
    wide, half = (exponential.with_name(name) for name in ("wide.onnx", "half.onnx"))
    text = (
        "(float[2] x) => (float[2] y) <float k = {40000}> "
        "{ a = Mul(x, k) b = Mul(a, k) y = Div(b, k) }"
    )
    onnx.save(parse(text), wide)
    assert cli("convert", wide, half, "--to", "fp16", "--no-measure").code == 0
    for numerics in ("exact", "lossy"):
        ended = cli("verify", wide, half, "--numerics", numerics)
        assert ended.code == 3
        assert "judged by onnx.reference, as a model has 16-bit floats" in ended.out
        assert "max abs inf" in ended.err


ROWS = """(float[N,40] x, int64[N] at) => (float[N,40] y) {
    a = MatMul(x, w)  b = Gather(w, at)  c = Add(a, b)  y = Celu(c) }"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.onnx"
    model = parse(ROWS, opset=17)
    weight = np.random.default_rng(0).normal(0, 0.1, (40, 40)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, path)
    return path


def test_several_steps_are_one_run_with_one_verification(cli: Cli, rows: Path) -> None:
    out = rows.with_name("out.onnx")
    options = ["--dim", "N=3", "--opset", "20", "--to", "fp16,int32", "--bounds", "at=0:39"]
    ended = cli("convert", rows, out, *options, "--verify=final")
    assert (ended.code, ended.err) == (0, "")
    assert "(N=3, opset 20, int32, fp16, " in ended.out
    assert "verified: yes (lossy; all passes by runs of the model" in ended.out
    assert "error on 2 generated inputs by onnx.reference: cosine 1" in ended.out
    made = onnx.load(out)
    assert made.opset_import[0].version == 20
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


def test_the_budget_of_several_conversions_is_of_all_of_them(cli: Cli, rows: Path) -> None:
    out = rows.with_name("out.onnx")
    options = ["--to", "int8-weights", "--to", "fp16", "--dim", "N=3"]
    ended = cli("convert", rows, out, *options, "--budget", "cosine>=0.9")
    assert ended.code == 0, ended.err
    assert "measure_error: error on 2 generated inputs by onnx.reference: cosine " in ended.out
    passes = "float_to_half,measure_error{budget='max_abs<=0'}"
    ended = cli("optimize", rows, out, "--passes", passes)
    assert ended.code == 3
    assert "the budget max_abs<=0 does not hold for the result: max_abs is " in ended.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--to", "fp16", "--to", "bf16"], "--to fp16 and bf16 are two types to compute in"),
        (["--to", "mixed,fp16"], "use one of them"),
        (["--to", "fp8,int8-weights"], "--to fp8 and int8-weights both quantise"),
        (["--to", "int8"], "--to int8: type tiered quantize MODEL OUT, or with other steps"),
        (["--to", "int8-dynamic"], "type tiered quantize MODEL OUT --dynamic, or"),
        (["--to", "fp61"], "not 'fp61'; did you mean 'fp16'?"),
        (["--to", "int32", "--budget", "cosine>=0.9"], "--budget has no effect"),
        (["--to", "int32", "--no-keep-io"], "--no-keep-io has no effect"),
        (["--to", "int32", "--no-measure"], "--no-measure has no effect"),
        (["--to", "fp16", "--bounds", "at=0:3"], "--bounds has no effect: it needs --to int32"),
        (["--to", "fp8", "--backend", "coreml"], "--backend has no effect: it needs --to fp16"),
    ],
)
def test_conversions_that_do_not_go_together_are_refused(
    cli: Cli, rows: Path, options: list[str], reason: str
) -> None:
    ended = cli("convert", rows, rows.with_name("out.onnx"), *options)
    assert ended.code == 2
    assert reason in ended.err


def test_a_target_keeps_what_it_takes_in_float_only(cli: Cli, rows: Path) -> None:
    profile = rows.with_name("floats.toml")
    profile.write_text(
        'api_version = 1\nname = "floats"\n[operators]\nMatMul = { types = { T = ["float"] } }\n'
        '"Add, Celu, Gather, Cast" = true\n'
    )
    out = rows.with_name("out.onnx")
    ended = cli("convert", rows, out, "--to", "fp16", "--backend", profile)
    assert ended.code == 0, ended.err
    kinds = {tensor.name: tensor.data_type for tensor in onnx.load(out).graph.initializer}
    assert onnx.TensorProto.FLOAT in kinds.values()
