"""Passes of a user's own file, without a package."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tests.registered import passes_forgotten
from tiered.cli.load_passes import load_passes
from tiered.passes.interface.registry import registry
from tiered.testing import parse

OWN = '''
"""Passes of mine."""
from beside import THING
from tiered import Graph, Value, get_pass, op, rewrite, var

known = get_pass("eliminate_identity")


@rewrite(op.Add(var.x, var.y), opt_level=None)
def own_sub(graph: Graph, x: Value, y: Value) -> Value:
    """Of no meaning."""
    return graph.op.Sub(x, y)


@rewrite(op.Sub(var.x, var.y), opt_level=None)
def own_mul(graph: Graph, x: Value, y: Value, *, times: int = 1) -> Value:
    """Of no meaning either."""
    return graph.op.Mul(x, y)
'''


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "beside.py").write_text("THING = 1\n")
    path = tmp_path / "my_passes.py"
    path.write_text(OWN)
    with passes_forgotten():
        yield path


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def test_the_passes_of_a_file_can_be_named(cli: Cli, small: Path, own: Path) -> None:
    out = small.with_name("out.onnx")
    for _ in range(2):  # the second time it is loaded already
        ended = cli(small, out, "--load", own, "--passes", "own_sub,own-mul{times=2}")
        assert (ended.code, ended.err) == (0, "")
        assert ops(out) == ["Identity", "Mul", "Identity"]
    assert (
        cli(
            small, out, "--load", own, "--require", "own_sub", "--edit", "after inline: own_sub"
        ).code
        == 0
    )
    assert ops(out) == ["Sub"]


def test_other_commands_load_them_too(cli: Cli, small: Path, own: Path) -> None:
    (entry,) = json.loads(cli("passes", "own_s*", "--load", own, "--json").out)
    assert entry["name"] == "own_sub"
    ended = cli("explain", small, "own_sub", "--load", own)
    assert ended.code == 0, ended.err
    folder = small.parent / "out"
    assert (
        cli("optimize", small, "--out-dir", folder, "--load", own, "--passes", "own_sub").code == 0
    )
    assert ops(folder / small.name) == ["Identity", "Sub", "Identity"]


RAISING = """
from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Relu(var.x), opt_level=None)
def raising(graph: Graph, x: Value) -> Value:
    raise ValueError("boom")
"""


def test_the_bundle_of_a_loaded_pass_is_replayed(cli: Cli, tmp_path: Path) -> None:
    model, own, folder = tmp_path / "m.onnx", tmp_path / "own.py", tmp_path / "bundle"
    onnx.save(parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }"), model)
    own.write_text(RAISING)
    typed = ("--load", own, "--passes", "raising", "--reproducer", folder)
    with passes_forgotten():
        ended = cli("optimize", model, tmp_path / "out.onnx", *typed)
        assert f"tiered replay {folder} --load {own}" in ended.err
    with passes_forgotten():
        unknown = cli("replay", folder)
        assert unknown.code == 2
        assert "own.py:5 defined it: load it with --load FILE" in unknown.err
        shown = cli("replay", folder, "--load", own)
        assert (shown.code, "raising is wrong" in shown.err) == (3, True)
    with passes_forgotten():
        found = cli("bisect", model, *typed)
        assert found.code == 3
        assert f"tiered replay {folder} --load {own}" in found.out


def test_a_config_file_lists_passes(cli: Cli, small: Path) -> None:
    config, out = small.with_name("tiered.toml"), small.with_name("out.onnx")
    config.write_text('passes = ["eliminate_identity", "eliminate_deadend"]\n')
    assert cli("optimize", small, out, "--config", config).code == 0
    config.write_text('pases = ["eliminate_identity"]\n')
    ended = cli("optimize", small, out, "--config", config)
    assert "unknown key 'pases'; did you mean 'passes'" in ended.err


def test_a_config_file_loads_them(cli: Cli, small: Path, own: Path) -> None:
    config, out = small.with_name("tiered.toml"), small.with_name("out.onnx")
    for entry in (f'"{own}"', f'["{own}"]'):
        config.write_text(f'load = {entry}\npasses = "own_sub"\nverify = "off"\n')
        ended = cli("optimize", small, out, "--config", config)
        assert ended.code == 0, ended.err
        assert ops(out) == ["Identity", "Sub", "Identity"]


def test_a_pass_that_the_file_registers_itself_is_known(cli: Cli, small: Path, own: Path) -> None:
    own.write_text(OWN + "\nimport tiered\ntiered.register(own_sub)\n")
    out = small.with_name("out.onnx")
    assert cli(small, out, "--load", own, "--passes", "own_sub").code == 0
    own.with_name("poprt_passes.py").write_text(
        "from tiered.compat import poprt\n\n"
        "@poprt.register('own_names')\n"
        "class OwnNames(poprt.Pass):\n"
        "    def run(self, onnx_model):\n"
        "        onnx_model.graph.node[0].name = 'renamed'\n"
        "        return onnx_model\n"
    )
    path = own.with_name("poprt_passes.py")
    assert cli(small, out, "--load", path, "--passes", "own_names").code == 0
    assert onnx.load(out).graph.node[0].name == "renamed"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("x = 1\n", 2, "defines no pass; expected functions under @rewrite"),
        ("def (:\n", 2, "cannot be imported: SyntaxError"),
        ("import nowhere_at_all\n", 2, "cannot be imported: ModuleNotFoundError"),
        (
            OWN.replace("own_sub", "fuse_gemm").replace("own_mul", "fold_constant"),
            2,
            "there are two passes 'fuse_gemm'",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named(
    cli: Cli, small: Path, own: Path, text: str, code: int, said: str
) -> None:
    path = own.with_name("wrong.py")
    path.write_text(text)
    ended = cli(small, small.with_name("out.onnx"), "--load", path)
    assert (ended.code, said in ended.err) == (code, True), ended.err
    assert "wrong.py" in ended.err


def test_a_file_or_module_that_is_not_there(cli: Cli, small: Path) -> None:
    for entry, said in (
        ("none.py", "no such file"),
        ("no_such_module", "no such module"),
        ("", "not ''"),
    ):
        ended = cli(small, small.with_name("out.onnx"), "--load", entry)
        assert (ended.code, said in ended.err) == (2, True), ended.err


def test_a_key_that_no_option_has_is_an_error(cli: Cli, small: Path) -> None:
    config = small.with_name("tiered.toml")
    for key, said in (
        ("passs = 'a'", "did you mean 'passes'"),
        ("[own]\nx = 1", "unknown key 'own'"),
    ):
        config.write_text(f"{key}\n")
        ended = cli("optimize", small, "--dry-run", "--config", config)
        assert (ended.code, said in ended.err) == (2, True), ended.err


LIVES = """
from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Neg(op.Neg(var.x)), opt_level=1, life="preview")
def early_neg(graph: Graph, x: Value) -> Value:
    return x


@rewrite(op.Abs(op.Abs(var.x)), opt_level=1, life="deprecated", replacement="early_neg")
def late_abs(graph: Graph, x: Value) -> Value:
    return graph.op.Abs(x)
"""


def test_loaded_passes_have_a_stage_of_life(cli: Cli, tmp_path: Path) -> None:
    model, own, out = tmp_path / "m.onnx", tmp_path / "own.py", tmp_path / "out.onnx"
    text = "(float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) c = Abs(b) y = Abs(c) }"
    onnx.save(parse(text), model)
    own.write_text(LIVES)
    edit: tuple[object, ...] = ("--load", own, "--edit", "after inline: early_neg,late_abs")
    edit += ("--disable", "eliminate_*,fuse_*")  # those of tiered
    with passes_forgotten():
        for stage, name in (("preview", "early_neg"), ("deprecated", "late_abs")):
            shown = cli("passes", "--life", stage, "--load", own, "--json").out
            assert [each["name"] for each in json.loads(shown)] == [name]
        ended = cli(model, out, *edit)
        assert (ended.code, ops(out)) == (0, ["Neg", "Neg", "Abs"])
        assert ended.err == "tiered: note: late_abs: deprecated: use early_neg\n"
        for asked in ("early_neg", "life:preview"):
            ended = cli(model, out, *edit, "--require", asked)
            assert (ended.code, ops(out)) == (0, ["Abs"])
        ended = cli(model, out, "--load", own, "--passes", "early_neg")
        assert (ended.code, ops(out)) == (0, ["Abs", "Abs"])
        assert ended.err == ""


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    with passes_forgotten():
        transcript("load_passes")


def test_files_of_one_name_stay_loaded(tmp_path: Path) -> None:
    text = OWN.replace("from beside import THING\n", "")
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(text.replace("own_", f"{folder}_"))
    files = [str(tmp_path / folder / "same.py") for folder in ("first", "second")]
    with passes_forgotten():
        for _ in range(2):  # as in the process of a batch
            load_passes(files)
        assert {"first_sub", "second_sub"} <= set(registry.names())
