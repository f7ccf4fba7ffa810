import json
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tests.extensions.debug.wrong_passes import WRONG
from tests.small import failing, registered
from tiered import Graph, Value, VerificationError, op, optimize_model, rewrite, var
from tiered.extensions.debug import write_reproducer
from tiered.testing import parse

SWAP = next(case for case in WRONG if case.name == "swap_operands_of_sub")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "m.onnx"
    onnx.save(parse(SWAP.model), path)
    with registered(SWAP.pass_):
        yield path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("bisect")


def test_the_wrong_rewrite_is_printed_with_its_nodes_and_ends_with_3(cli: Cli, file: Path) -> None:
    ended = cli("bisect", file, "--passes", "eliminate_identity,swap_operands_of_sub")
    assert ended.code == 3
    assert "swap_operands_of_sub, rewrite #1 of 1, at node 's'" in ended.out
    assert "- [s] b = Sub (a, z)" in ended.out
    assert "+ [s] b = Sub (z, a)" in ended.out
    assert "run 1: rewrites up to #1: wrong" in ended.err


def test_a_right_pipeline_ends_with_0(cli: Cli, file: Path) -> None:
    ended = cli("bisect", file, "-O3")
    assert (ended.code, ended.out) == (0, "no wrong rewrite found\n")


def test_passes_whose_options_are_mappings_are_searched_too(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    text = (
        "(float[1,4,4,2] x) => (float[1,4,4,2] y) { t = Transpose<perm = [0,3,1,2]>(x)"
        "s = Softmax<axis = 1>(t)  y = Transpose<perm = [0,2,3,1]>(s) }"
    )
    onnx.save(parse(text), path)
    results = optimize_model(parse(text), opt_level=3).report.results
    assert "convert_layout" in {result.name for result in results if result.changed}
    ended = cli("bisect", path, "-O3")
    assert (ended.code, ended.out) == (0, "no wrong rewrite found\n")


def test_the_json_says_the_same(cli: Cli, file: Path) -> None:
    ended = cli("bisect", file, "--passes", "swap_operands_of_sub", "--json")
    said = json.loads(ended.out)
    assert (said["wrong"], said["pass"], said["node"]) == (True, "swap_operands_of_sub", "s")
    assert json.loads(cli("bisect", file, "--json").out) == {"wrong": False}


def test_a_level_that_is_none_is_a_usage_error(cli: Cli, file: Path) -> None:
    assert cli("bisect", file, "-O9").code == 2


def test_a_bundle_is_written_and_replayed(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    ended = cli("bisect", file, "--passes", "swap_operands_of_sub", "--reproducer", folder)
    assert f"tiered replay {folder}" in ended.out
    shown = cli("replay", folder)
    assert shown.code == 3
    assert "swap_operands_of_sub is wrong, at node 's'" in shown.err
    assert "+ [s] b = Sub (z, a)" in shown.err


def test_a_failed_verification_writes_the_bundle(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "bundle", tmp_path / "out.onnx"
    ended = cli(
        *("optimize", file, out, "--passes", "swap_operands_of_sub", "--verify"),
        *("--reproducer", folder),
    )
    assert ended.code == 3
    assert not out.exists()
    assert f"reproduce  tiered replay {folder}" in ended.err
    assert cli("replay", folder).code == 3


def test_a_pass_that_raises_writes_the_bundle(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    with registered(failing(ValueError("no"))):
        ended = cli(*("optimize", file, "--dry-run", "--passes", "failing", "--reproducer", folder))
        assert ended.code == 5
        assert "reproduce  tiered replay" in ended.err
        assert "ValueError: no" in cli("replay", folder).err


def test_what_is_no_bundle_is_a_model_error(cli: Cli, tmp_path: Path) -> None:
    assert cli("replay", tmp_path).code == 1


def test_a_mended_pass_ends_with_0(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    cli("bisect", file, "--passes", "swap_operands_of_sub", "--reproducer", folder)
    (folder / "pipeline.txt").write_text("eliminate_identity\n")
    said = json.loads((folder / "failure.json").read_text())
    said["pass_text"] = "eliminate_identity"
    (folder / "failure.json").write_text(json.dumps(said))
    ended = cli("replay", folder)
    assert ended.code == 0
    assert "does not fail any more" in ended.out


PASSES = "eliminate_identity,swap_operands_of_sub"


def test_the_search_takes_the_options_of_the_run(cli: Cli, file: Path) -> None:
    ended = cli("bisect", file, "--passes", PASSES, "--edit", "drop swap_operands_of_sub")
    assert (ended.code, ended.out) == (0, "no wrong rewrite found\n")
    assert cli("bisect", file, "--passes", PASSES, "--set", "no.such=1").code == 2
    assert cli("bisect", file, "--passes", PASSES, "--backend", "no_such").code == 2


def test_a_bundle_keeps_the_options_of_the_run(cli: Cli, tmp_path: Path) -> None:
    path, folder = tmp_path / "m.onnx", tmp_path / "bundle"
    text = "(float[n,2] x) => (float[n,2] y) { [s] a = Neg(x)  b = Sub(a, x)  y = Relu(b) }"
    onnx.save(parse(text), path)
    with registered(SWAP.pass_):
        ended = cli(
            *("optimize", path, "--dry-run", "--passes", "eliminate_identity", "--verify"),
            *("--edit", "after eliminate_identity: swap_operands_of_sub", "-O1"),
            *("--input-shape", "x:3,2", "--set", "verify.seed=4", "--backend", "onnxruntime_cpu"),
            *("--reproducer", folder),
        )
        assert ended.code == 3
        said = json.loads((folder / "failure.json").read_text())
        assert said["settings"] == {
            "opt_level": 1,
            "backend": "onnxruntime_cpu",
            "config": {"verify.seed": 4},
        }
        assert "swap_operands_of_sub" in said["pipeline"]
        dims = onnx.load(folder / "before.onnx").graph.input[0].type.tensor_type.shape.dim
        assert [dim.dim_value for dim in dims] == [3, 2]
        assert cli("replay", folder).code == 3


def test_the_search_for_a_bundle_begins_where_the_run_failed(tmp_path: Path) -> None:
    nodes = " ".join(f"a{i + 1} = Sub(a{i}, w)" for i in range(8))
    text = f"(float[2] a0) => (float[2] y) <float[2] w = {{0,1}}> {{ {nodes}  y = Neg(a8) }}"
    with pytest.raises(VerificationError) as caught:
        optimize_model(parse(text), passes=[SWAP.pass_], verify=True)
    assert caught.value.rewrites == (1, 8)
    blame = write_reproducer(
        parse(text), tmp_path / "bundle", passes=[SWAP.pass_], within=caught.value.rewrites
    )
    assert blame is not None
    assert (blame.number, blame.runs) == (1, 4)


def test_an_operator_that_nothing_defines_cannot_run_and_is_not_called_wrong(
    cli: Cli, tmp_path: Path
) -> None:
    @rewrite(op.Relu(var.x), opt_level=None)
    def make_undefined(graph: Graph, x: Value) -> Value:
        return graph.op("zeta").Undefined(x)

    path = tmp_path / "m.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }"), path)
    with registered(make_undefined):
        ended = cli("bisect", path, "--passes", "make_undefined")
    assert ended.code == 3
    assert "run 1: rewrites up to #1: cannot run\n" in ended.err
    assert "wrong" not in ended.out + ended.err
