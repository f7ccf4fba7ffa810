"""Options that have no effect in a run are refused, and nothing is written."""

from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered import optimize_model
from tiered.cli.effects import Effect
from tiered.cli.line.declaration import DeclaredCommand
from tiered.cli.line.reader import read
from tiered.support.errors import TargetError, UsageError
from tiered.support.records import Record
from tiered.testing import parse

REFUSED = {
    "optimize": [
        *("--dump-weights", "--html-without-times", "--inputs x.npz", "--test-input-shape x:3,4"),
    ],
    "optimize --verify=structure": ["--inputs x.npz", "--test-input-shape x:3,4"],
    "optimize --verify=off": ["--inputs x.npz", "--test-input-shape x:3,4"],
    "optimize --verify --inputs x.npz": ["--test-input-shape x:3,4"],
    "optimize --quiet": ["--time", "--statistics", "--remarks"],
    "optimize --print-pipeline": [
        *("--time", "--statistics", "--remarks", "--trace t.json", "--html p.html", "--dump d"),
        *("--diff", "--print-before", "--print-after", "--limit 2", "--verify", "--certify"),
        "--reproducer r",
    ],
    "extract --to y": ["--inputs x.npz"],
    "extract --to y --verify=structure": ["--inputs x.npz"],
    "verify --inputs x.npz": ["--seed 3", "--seed 0"],
    "bench --inputs x.npz": ["--seed 3", "--dim n=2", "--input-shape x:2,4"],
    "merge": ["--inputs x.npz", "--verify=region", "--verify=structure"],
    "merge --verify=off": ["--inputs x.npz"],
    "run --inputs x.npz": ["--seed 3"],
    "split --at y --out-dir d": ["--inputs x.npz", "--verify=region", "--verify=structure"],
    "split --at y --out-dir d --verify=off": ["--inputs x.npz"],
}
ONE_FILE = ("run", "split")
"""Commands that take no second file."""

LINES = [(command, given) for command, options in REFUSED.items() for given in options]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of a model with a product."""
    path = tmp_path / "m.onnx"
    text = "(float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}>"
    onnx.save(parse(f"{text} {{ y = MatMul(x, w) }}", opset=17), path)
    return path


@pytest.mark.parametrize(("command", "given"), LINES, ids=str)
def test_an_option_without_an_effect_is_refused(
    cli: Cli, file: Path, command: str, given: str
) -> None:
    name, *options = command.split()
    out = file.with_name("out.onnx")
    files = (file,) if name in ONE_FILE else (file, out)
    ended = cli(name, *files, *options, *given.split())
    assert ended.code == 2
    assert f"{given.replace('=', ' ').split(maxsplit=1)[0]} has no effect: it needs " in ended.err
    assert not out.exists()


class Options(Record):
    """Options of which one needs the other."""

    to: str | None = None
    keep_io: bool = True

    EFFECTS = (Effect(("keep_io",), "--to", lambda of: of("to") is not None),)


def command(*, options: Options) -> None:
    """Do nothing."""


def test_the_flag_is_named_as_it_was_typed() -> None:
    known = DeclaredCommand("command", command)
    read(known, []).call()
    read(known, ["--to", "fp16", "--no-keep-io"]).call()
    for typed in ("--no-keep-io", "--keep-io"):
        with pytest.raises(UsageError, match=rf"^{typed} has no effect: it needs --to$"):
            read(known, [typed]).call()


UNMET = {
    "int4 below opset 21": (("convert", "--to", "int4-weights"), "int4 needs opset 21, the model"),
    "weights int4": (("quantize", "--weights", "int4"), "int4 needs opset 21, the model has 17"),
    "fp8 below opset 19": (("convert", "--to", "fp8"), "float8 needs opset 19, the model has 17"),
    "an empty request": (("optimize", "--require", "rename"), "no names are given"),
    "no shape": (("optimize", "--require", "const_input_shape"), "no shape is given"),
    "no variable": (("optimize", "--passes", "truncate_on_var"), "no var is given"),
}


@pytest.mark.parametrize(("command", "reason"), UNMET.values(), ids=UNMET)
def test_a_request_that_cannot_be_fulfilled_ends_with_4(
    cli: Cli, file: Path, command: tuple[str, ...], reason: str
) -> None:
    out = file.with_name("out.onnx")
    ended = cli(command[0], file, out, *command[1:])
    assert ended.code == 4
    assert "cannot do what it is asked for" in ended.err
    assert reason in ended.err
    assert not out.exists()


def test_a_required_pass_that_is_not_in_the_pipeline_is_an_error(cli: Cli, file: Path) -> None:
    mine, out = file.with_name("mine.py"), file.with_name("out.onnx")
    mine.write_text(
        "from tiered import module_pass\n\n@module_pass(opt_level=None)\n"
        'def mine(model, ctx):\n    """Of no use."""\n'
    )
    ended = cli("optimize", file, out, "--load", mine, "--require", "mine")
    assert ended.code == 2
    assert "mine is required, but it is no pass of this pipeline" in ended.err
    assert not out.exists()
    edit = ("--edit", "after fold_constant: mine")
    assert cli("optimize", file, out, "--load", mine, "--require", "mine", *edit).code == 0


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("sink_dequantize_past_split", "the model has nothing that it rewrites"),
        ("serialize_matmul{max_bytes=100}", "y: no split into parts is requested"),
    ],
)
def test_a_required_pass_that_changes_nothing_is_named(
    cli: Cli, file: Path, entry: str, reason: str
) -> None:
    ended = cli("optimize", file, "--dry-run", "--require", entry)
    assert ended.code == 0
    assert f"required {entry.partition('{')[0]} did nothing: " in ended.err
    assert reason in ended.err


def test_a_budget_that_no_cut_comes_nearer_to_is_an_error(cli: Cli, file: Path) -> None:
    ended = cli("optimize", file, "--dry-run", "--require", "split_by_budget{max_bytes=1}")
    assert ended.code == 4
    assert "split_by_budget cannot do what it is asked for: no cut lowers the peak" in ended.err
    assert "'x' is whole, of 32 bytes: it is an input" in ended.err


@pytest.mark.parametrize("name", ["serialize_matmul", "serialize_matmul_add"])
def test_a_split_of_a_node_that_is_not_there_is_an_error(cli: Cli, file: Path, name: str) -> None:
    ended = cli("optimize", file, "--dry-run", "--require", f"{name}{{split=[q=2]}}")
    assert ended.code == 4
    assert f"{name} cannot do what it is asked for: no MatMul" in ended.err


def test_the_plan_of_a_config_file_is_printed(cli: Cli, file: Path) -> None:
    config = file.with_name("run.toml")
    config.write_text('verify = "final"\nhtml = "page.html"\n')
    assert cli("optimize", file, "--config", config, "--print-pipeline").code == 0
    ended = cli("optimize", file, "--config", config, "--print-pipeline", "--verify")
    assert ended.code == 2
    assert "--verify has no effect: it needs a run of the passes" in ended.err


GELU = """(float[2,3] x) => (float[2,3] y)
    <float r = {1.4142135}, float one = {1}, float h = {0.5}> {
    a = Div(x, r)  e = Erf(a)  b = Add(e, one)  c = Mul(x, b)  y = Mul(c, h) }"""


@pytest.mark.parametrize(
    "options",
    [
        ("--passes", "fuse_gelu"),
        ("--passes", "fix(eliminate_identity,fuse_gelu)"),
        ("--require", "fuse_gelu"),
        ("--require", "fuse_gelu", "--backend", "tensorrt"),
    ],
)
def test_a_rule_whose_operator_is_newer_than_the_opset_ends_with_4(
    cli: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    old, out = tmp_path / "old.onnx", tmp_path / "out.onnx"
    onnx.save(parse(GELU, opset=13), old)
    ended = cli("optimize", old, out, *options)
    assert ended.code == 4
    assert "fuse_gelu cannot do what it is asked for: ONNX has Gelu from opset 20 on" in ended.err
    assert "the model's opset is 13" in ended.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("opset", "options"),
    [
        (13, ("--passes", "fuse_*")),
        (13, ("--passes", "default")),
        (13, ("--passes", "eliminate_identity,fuse_gelu,final_check")),
        (13, ("--passes", "fuse_*,eliminate_identity@'fuse_gelu'")),
        (13, ("--passes", "rename{tensors={x: fuse_gelu}}")),
        (13, ("--require", "eliminate_identity@fuse_gelu")),
        (13, ("--require", "fuse_*")),
        (13, ("--require", "fuse_gelu", "--backend", "onnxruntime_cpu")),
        (21, ("--passes", "fuse_gelu")),
        (13, ("--passes", "eliminate_identity,fuse_gelu", "--disable", "fuse_gelu")),
    ],
)
def test_a_glob_asks_for_what_there_is(
    cli: Cli, tmp_path: Path, opset: int, options: tuple[str, ...]
) -> None:
    model, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(parse(GELU, opset=opset), model)
    assert cli("optimize", model, out, *options).code == 0
    assert out.exists()


@pytest.mark.parametrize(("how", "verified"), [("--verify=off", "false"), ("--verify", "true")])
def test_parts_are_called_verified_where_they_ran(
    cli: Cli, tmp_path: Path, how: str, verified: str
) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { h = Relu(x)  y = Neg(h) }"), model)
    ended = cli("split", model, "--at", "h", "--out-dir", tmp_path / "parts", "--json", how)
    assert ended.code == 0
    assert f'"verified": {verified}' in ended.out
    parts = [tmp_path / "parts" / f"m_{at}.onnx" for at in (0, 1)]
    ended = cli("merge", *parts, tmp_path / "out.onnx", "--json", how)
    assert ended.code == 0
    assert f'"verified": {verified}' in ended.out


def test_a_generator_of_passes_asks_for_each_of_them() -> None:
    with pytest.raises(TargetError, match="ONNX has Gelu from opset 20 on"):
        optimize_model(parse(GELU, opset=13), passes=(name for name in ["fuse_gelu"]))
