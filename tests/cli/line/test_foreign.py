"""What users of other tools type."""

from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tests.recorded import assert_values
from tiered.cli.commands import command_names
from tiered.cli.line.foreign import (
    answer_to,
    answer_to_command,
    from_others,
    translated,
    with_command,
)

COMMANDS = command_names()


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.mark.parametrize("before", [[], ["-O3"], ["--verify"]])
def test_a_model_as_the_first_word_is_optimised(cli: Cli, small: Path, before: list[str]) -> None:
    out = small.with_name("out.onnx")
    ended = cli(*before, small, out)
    assert (ended.code, ended.err) == (0, "")
    assert ops(out) == ["Add"]


def test_a_model_may_be_called_anything_but_like_a_command(
    cli: Cli, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.parent)
    for name in ("model", "check"):
        small = small.rename(small.with_name(name))
        out = small.with_name("out.onnx")
        assert cli(f"./{name}", out).code == 0
        out.unlink()
    assert cli("check", "out.onnx").code == 2
    assert "--backend" in cli("check", "out.onnx").err
    small.rename("model")
    assert cli("model", "out.onnx").code == 0


def test_a_missing_model_is_said_to_be_missing(cli: Cli, tmp_path: Path) -> None:
    ended = cli(tmp_path / "none.onnx", tmp_path / "out.onnx")
    assert (ended.code, "no such file" in ended.err) == (1, True)


@pytest.mark.parametrize("word", ["optimizee", "chekc"])
def test_a_word_that_is_no_model_is_a_command_with_a_typo(cli: Cli, word: str) -> None:
    ended = cli(word, "a")
    assert (ended.code, "Did you mean" in ended.err) == (2, True)


def test_all_commands_are_listed(cli: Cli) -> None:
    assert f"Available commands: {', '.join(COMMANDS)}" in cli("wurst").err


@pytest.mark.parametrize("tokens", [[], ["--help"], ["--version"], ["verify", "a.onnx"]])
def test_commands_and_help_stay(tokens: list[str]) -> None:
    assert with_command(tokens, COMMANDS) == tokens


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dtype", "fp16"], "type tiered convert MODEL OUT --to fp16 "),
        (["--fp16"], "type tiered convert MODEL OUT --to fp16 "),
        (["--to", "fp16"], "type tiered prepare MODEL OUT --to fp16 "),
        (["--to=bf16"], "type tiered prepare MODEL OUT --to bf16 "),
        (["--to", "int8"], "type tiered prepare MODEL OUT --to int8 "),
        (["--int8"], "type tiered quantize MODEL OUT --inputs DATA "),
        (["--static"], "type --dim NAME=SIZE "),
        (["--load-inputs", "x.json"], "type --inputs FILE"),
        (["--fold-constants"], "leave it out, the default passes do it"),
        (["--mlir-timing"], "type --time "),
        (["--allow", "lossy"], "type tiered verify A B --numerics lossy"),
        (["--time-passes"], "type --time "),
        (["--time-trace"], "type --trace FILE.json "),
        (["--pass-pipeline=builtin.module(cse)"], "type --passes 'a,b{x=1}' "),
        (["--opt-bisect-limit=3"], "type --limit N "),
        (["--required-pass", "x"], "type --require NAME "),
        (["--disable-pass", "x"], "type --disable NAME "),
        (["--split-input-file"], "type tiered batch DIR --out-dir OUT "),
        (["--mlir-pass-statistics"], "type --statistics "),
        (["--print-ir-after-all"], "type --print-after "),
        (["--print-ir-before-all"], "type --print-before "),
        (["--print-ir-after=cse"], "type --print-after=NAME "),
        (["--mlir-print-ir-after-change"], "type --diff "),
        (["--verify-each"], "type --verify "),
        (["--verify-diagnostics"], "type --expect "),
        (["--pass-remarks-missed=.*"], "type --remarks=missed "),
        (["--print-pipeline-passes"], "type --print-pipeline "),
        (["--mlir-pass-pipeline-crash-reproducer=x"], "type --reproducer DIR "),
        (["--list-passes"], "type tiered passes "),
        (["--load-pass-plugin=x"], "type --load FILE.py "),
        (["--mlir-disable-threading"], "leave it out"),
        (["--cse"], "type --require eliminate_common_subexpr "),
        (["--sccp"], "leave it out, the default passes do it"),
        (["--no-verify"], "leave it out: nothing is verified without --verify"),
        (["--strip-debug"], "type --strip all "),
        (["--mlir-print-op-stats"], "type tiered inspect MODEL "),
        (["--loop-unroll"], "type --edit 'set partial_evaluate{max_iterations=64}'"),
        (["--O3"], "the level is -O0 to -O4"),
        (["--opset", "17"], "type tiered convert MODEL OUT --opset 17"),
        (["--opset=13"], "type tiered convert MODEL OUT --opset 13"),
        (["--target_opset", "12"], "type tiered convert MODEL OUT --opset 12"),
        (["--disable_fuse_gelu"], "type --disable fuse_gelu "),
        (["--disable-fuse-gelu"], "type --disable fuse_gelu "),
        (["--skip_fuse_bn"], "type --disable fuse_bn_into_conv,fuse_bn_into_gemm "),
        (["--disable_x"], "type --disable NAME"),
        (["--enable-fuse_gelu"], "type --require fuse_gelu "),
        (["--fuse_gelu"], "type --require fuse_gelu "),
        (["--overwrite"], "type --force "),
        (["--no-large-tensor"], "type --edit 'set fold_constant{max_growth=0}'"),
        (["--skip-fusion-patterns", "x"], "type --disable NAME"),
        (["--wurst"], "Unknown option: --wurst"),
    ],
)
def test_an_option_of_another_tool_gets_an_answer(
    cli: Cli, small: Path, options: list[str], words: str
) -> None:
    for command in ([], ["optimize"]):
        ended = cli(*command, small, small.with_name("out.onnx"), *options)
        assert (ended.code, words in ended.err) == (2, True), ended.err
        assert ended.err.count("\n") == 1
    assert not small.with_name("out.onnx").exists()


def test_what_the_answer_says_can_be_typed(cli: Cli, small: Path) -> None:
    options = ["--edit", "set fold_constant{max_growth=0}"]
    assert cli(small, small.with_name("out.onnx"), *options).code == 0


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("simplify", "type tiered MODEL OUT"),
        ("info", "type tiered inspect MODEL"),
        ("list", "type tiered passes"),
        ("help", "type tiered --help"),
    ],
)
def test_a_command_of_another_tool_gets_an_answer(cli: Cli, word: str, words: str) -> None:
    ended = cli(word, "a.onnx")
    assert (ended.code, f"unknown command {word}: {words}" in ended.err) == (2, True), ended.err


def test_answers_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model").write_text("")
    names = {
        "answer_to_command": answer_to_command,
        "answer": lambda line, unknown: answer_to(line.split(), unknown),
        "command": lambda line: answer_to_command(line.split(), COMMANDS),
        "made": lambda line: " ".join(from_others(line.split(), COMMANDS)),
        "translated": lambda line: " ".join(translated(line.split())),
    }
    assert_values(__file__, names)
