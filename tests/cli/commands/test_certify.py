"""`tiered certify A B`: what it prints of proofs and runs, and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.certify.regions.test_sweep import AFTER, BEFORE, WRONG
from tests.cli.conftest import Cli
from tiered.certify.axioms import RUNTIME
from tiered.cli import main
from tiered.testing import parse


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = []
    for name, text in (("before", BEFORE), ("after", AFTER), ("wrong", WRONG)):
        onnx.save(parse(text), path := tmp_path / f"{name}.onnx")
        paths.append(str(path))
    return paths


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("certify")


def test_the_command_prints_what_is_proved(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify", *files[:2]]) == 0
    assert "certified: the outputs are the same bit for bit" in capsys.readouterr().out


def test_the_command_fails_where_a_run_shows_a_difference(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify", files[0], files[2]]) == 3
    assert "computes something else" in capsys.readouterr().err


def test_a_part_that_differs_for_values_that_it_never_gets_refutes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name, nodes in (("a", "c = Sigmoid(x) y = Relu(c)"), ("b", "y = Sigmoid(x)")):
        text = f"(float[N,4] x) => (float[N,4] y) {{ {nodes} }}"
        onnx.save(parse(text), path := tmp_path / f"{name}.onnx")
        paths.append(str(path))
    assert main(["certify", *paths]) == 4
    said = capsys.readouterr()
    assert "y: unproved" in said.out
    assert "for values that no run of the whole model had there" in said.err


def test_the_record_has_each_region(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", *files[:2], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["proved"]
    assert {region["proved"] for region in found["regions"]} == {"bits"}


def test_an_optimised_file_is_certified_from_the_files_alone(
    files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "out.onnx")
    assert main(["optimize", files[0], out, "-O3", "--certify=strict"]) == 0
    assert "certified:" in capsys.readouterr().out
    assert main(["certify", files[0], out]) == 0


def saved(folder: Path, **texts: str) -> list[str]:
    """Save models of one input and one output, and return their files."""
    paths = []
    for name, nodes in texts.items():
        outputs = ", ".join(
            f"float[N,4] {out}" for out in ("y", "z") if f" {out} = " in f" {nodes}"
        )
        onnx.save(
            parse(f"(float[N,4] x) => ({outputs}) {{ {nodes} }}"), path := folder / f"{name}.onnx"
        )
        paths.append(str(path))
    return paths


DOUBLE = {
    "a": "t = Add(x, x) y = Sin(t)",
    "b": "s = Sin(x) c = Cos(x) p = Mul(s, c) y = Add(p, p)",
}
"""The sine of a double, which no rule knows."""


def test_what_is_only_run_is_printed_and_is_no_proof(cli: Cli, tmp_path: Path) -> None:
    files = saved(tmp_path, **DOUBLE)
    ended = cli("certify", *files)
    assert (ended.code, ended.err) == (0, "")
    assert "0 regions proved\n" in ended.out
    assert "\n  y: run: " in ended.out
    assert "certified" not in ended.out
    record = json.loads(cli("certify", *files, "--json").out)
    assert (record["before"], record["after"], record["proved"]) == (*files, False)
    (region,) = record["regions"]
    assert (region["name"], region["proved"], region["sizes"]) == ("y", "run", [])
    assert region["reason"] in ended.out


def test_the_reason_is_that_of_what_is_not_proved(cli: Cli, tmp_path: Path) -> None:
    """The first output was run, the second differs in a part alone."""
    files = saved(
        tmp_path,
        a=f"{DOUBLE['a']} u = Sigmoid(x) z = Relu(u)",
        b=f"{DOUBLE['b']} z = Sigmoid(x)",
    )
    ended = cli("certify", *files)
    assert "\n  y: run: " in ended.out
    assert "\n  z: unproved: " in ended.out
    assert ended.code == 4
    reason = ended.out.partition("  z: unproved: ")[2].partition("\n")[0]
    assert ended.err == f"tiered: error: not certified: {reason}\n"


def test_equal_models_have_no_region(cli: Cli, files: list[str]) -> None:
    ended = cli("certify", files[0], files[0])
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "6 values of the same structure; 0 regions proved\n"
        "certified: the outputs are the same bit for bit\n"
    )
    record = json.loads(cli("certify", files[0], files[0], "--json").out)
    assert record == {
        "before": files[0], "after": files[0], "proved": True, "domain": "bits", "common": 6,
        "bound": 0.0, "differs_if_empty": [], "regions": [],
    }  # fmt: skip


def test_sizes_and_axioms_of_regions_are_told(cli: Cli, files: list[str]) -> None:
    ended = cli("certify", *files[:2])
    lines = ended.out.splitlines()
    assert lines[0] == "0 values of the same structure; 2 regions proved: 2 bit for bit"
    assert lines[-2:] == [
        "2 of 2 regions of named sizes for all sizes",
        "certified: the outputs are the same bit for bit",
    ]
    regions = json.loads(cli("certify", *files[:2], "--json").out)["regions"]
    assert [each["name"] for each in regions] == ["y", "z"]
    assert all(each["all_sizes"] for each in regions)
    assert "mul-one" in regions[0]["axioms"]
    assert all(each["axioms"] == sorted(each["axioms"]) for each in regions)
    used = {axiom for each in regions for axiom in each["axioms"]} & RUNTIME.keys()
    assert used
    assert lines[-3] == f"axioms of the runtime: {', '.join(sorted(used))}"


def test_a_proof_over_the_reals_says_so_and_how_far_constants_are(cli: Cli, tmp_path: Path) -> None:
    ones = "one = Constant<value = float[1] {3}>() two = Constant<value = float[1] {7}>()"
    files = saved(
        tmp_path,
        a=f"{ones} p = Mul(x, one) y = Mul(p, two)",
        b="k = Constant<value = float[1] {21}>() y = Mul(x, k)",
    )
    ended = cli("certify", *files)
    assert ended.code == 0
    assert "1 region proved: 1 over the reals\n" in ended.out
    assert "certified: the outputs are the same over the reals" in ended.out
    assert json.loads(cli("certify", *files, "--json").out)["domain"] == "reals"


def test_what_differs_for_empty_tensors_alone_is_counted(cli: Cli, tmp_path: Path) -> None:
    texts = (
        "(float[N,M,2] x) => (float[?,?,?] y) { y = Neg(x) }",
        """(float[N,M,2] x) => (float[?,?,?] y) <int64[2] f = {-1, 2}> {
        n = Neg(x)  s = Shape(x)  a = Reshape(n, f)  y = Reshape(a, s) }""",
    )
    files = [str(tmp_path / f"{number}.onnx") for number in range(2)]
    for file, text in zip(files, texts, strict=True):
        onnx.save(parse(text), file)
    ended = cli("certify", *files)
    assert ended.code == 0
    assert "not where dims are 0: 1 value of empty tensors differs, as y\n" in ended.out
    assert json.loads(cli("certify", *files, "--json").out)["differs_if_empty"] == ["y"]


def test_models_of_another_interface_cannot_be_certified(
    cli: Cli, files: list[str], tmp_path: Path
) -> None:
    other = saved(tmp_path, one="y = Relu(x)")
    ended = cli("certify", files[0], *other)
    assert ended.code == 4
    assert ended.err.startswith("tiered: error: not certified: ")
    assert "inputs or outputs" in ended.err


@pytest.mark.parametrize("place", [0, 1])
def test_both_files_must_be_there(cli: Cli, files: list[str], place: int) -> None:
    files[place] = "none.onnx"
    ended = cli("certify", *files[:2])
    assert (ended.code, ended.err) == (1, "tiered: error: cannot read 'none.onnx': no such file\n")
