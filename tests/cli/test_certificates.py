"""Certificates that are checked again: what is printed, and how it ends."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.certify.regions.test_certificate_replay import FOLDED, MOVED, Certificate, Run, changed
from tests.cli.conftest import Cli
from tiered.cli.certificates import check_again
from tiered.support.errors import ModelError, TargetError, VerificationError


@pytest.fixture
def moved(tmp_path: Path) -> Run:
    return Run(tmp_path, MOVED, 2)


def test_the_command_prints_and_records_the_rewrites(
    moved: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert moved.command() == 0
    assert "lead from the first file to the second" in capsys.readouterr().out
    assert moved.command(None, "--json") == 0
    rewrites = json.loads(capsys.readouterr().out)["rewrites"]
    assert {each["proved"] for each in rewrites} == {"bits"}


def _with_added(run: Run, before: str, after: str, word: str) -> Certificate:
    """Return the certificate with a rewrite of two nodes more, and write the second file so."""
    model = onnx.load(run.after)
    graph = onnx.parser.parse_graph(f"g (x, z) => (y) {{ {after} }}")
    old = onnx.parser.parse_graph(f"g (x, z) => (y) {{ {before} }}")
    names = {tuple(each.output) for each in old.node}
    kept = [node for node in model.graph.node if tuple(node.output) not in names]
    del model.graph.node[:]
    model.graph.node.extend([*kept, *graph.node])
    onnx.save(model, run.after)
    region = {
        "before": f"region (x, z) => (y) {{ {before} }}",
        "after": f"region (x, z) => (y) {{ {after} }}",
        "constants": [{}, {}], "borders": {}, "outputs": [],
    }  # fmt: skip

    def add(held: Certificate) -> None:
        entry = {
            **held["rewrites"][0],
            "number": 99,
            "proved": word,
            "region": region,
            "pass": "new",
        }
        held["rewrites"].append(entry)

    return changed(run, add)


SINE = """(float[N,4] x, float[4] z) => (float[N,4] y) {
    i = Identity(x)  t = Add(i, i)  s = Sin(t)  y = Add(s, z) }"""
AS_PRODUCT = "s0 = Sin(x) c0 = Cos(x) p0 = Mul(s0, c0) s = Add(p0, p0)"


@pytest.mark.parametrize("word", ["run", "unproved", "bits"])
def test_what_has_no_proof_counts_only_if_it_was_run(tmp_path: Path, word: str, cli: Cli) -> None:
    """The sine of a double, which no rule knows, as a product of sine and cosine."""
    run = Run(tmp_path, SINE, 1)
    held = _with_added(run, "t = Add(x, x) s = Sin(t)", AS_PRODUCT, word)
    code = run.command(held)
    ended = cli("certify", run.before, run.after, "--with", run.file)
    assert ended.code == code == (0 if word == "run" else 4)
    count = len(held["rewrites"])
    how = "1 by runs" if word == "run" else "1 not proved"
    assert ended.out.startswith(f"{count} rewrites of {run.file}: {count - 1} bit for bit, {how}\n")
    assert f"\n  #99 new: {how[2:]}: " in ended.out
    assert ("certified: the rewrites lead" in ended.out) is (word == "run")
    assert ended.err.startswith(
        "" if word == "run" else "tiered: error: not certified: rewrite #99: "
    )
    record = json.loads(cli("certify", run.before, run.after, "--with", run.file, "--json").out)
    last = record["rewrites"][-1]
    assert (last["numbers"], last["pass"]) == ([99], "new")
    assert last["proved"] == ("run" if word == "run" else "unproved")
    assert last["reason"] in ended.out
    assert (last["sizes"], last["all_sizes"], last["axioms"], last["bound"]) == ([], False, [], 0.0)


def test_a_run_that_differs_is_no_proof(tmp_path: Path) -> None:
    run = Run(tmp_path, SINE, 1)
    wrong = AS_PRODUCT.replace("Cos", "Sin")
    held = _with_added(run, "t = Add(x, x) s = Sin(t)", wrong, "run")
    run.command(held)
    with pytest.raises(
        TargetError, match=r"rewrite #99: .*values that were made show a difference"
    ):
        check_again(str(run.file), str(run.before), str(run.after), as_json=False)


def test_rewrites_that_are_one_step_have_their_numbers(tmp_path: Path, cli: Cli) -> None:
    run = Run(tmp_path, FOLDED, 3)
    files = run.before, run.after, "--with", run.file
    said = cli("certify", *files).out
    rewrites = json.loads(cli("certify", *files, "--json").out)["rewrites"]
    count = len(run.certificate["rewrites"])
    assert said.startswith(f"{count} rewrites of {run.file} in {len(rewrites)} steps: ")
    assert sorted(number for each in rewrites for number in each["numbers"]) == [
        *range(1, count + 1)
    ]
    assert {each["proved"] for each in rewrites} == {"bits", "reals"}
    assert max(each["bound"] for each in rewrites) > 0
    assert all(each["sizes"] or each["proved"] == "bits" for each in rewrites)


def test_a_rewrite_without_a_region_is_not_certified(moved: Run) -> None:
    def take(held: Certificate) -> None:
        held["rewrites"][-1] |= {"proved": "interface", "region": None}

    moved.command(changed(moved, take))
    with pytest.raises(TargetError, match=r"^not certified: rewrite #\d+ has no region"):
        check_again(str(moved.file), str(moved.before), str(moved.after), as_json=False)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", "3", '{"before": 1}', "\udcff"])
def test_a_file_that_is_no_certificate_is_named(moved: Run, text: str) -> None:
    moved.file.write_text(text, errors="surrogateescape")
    with pytest.raises(ModelError, match=r"c\.json' is no certificate: "):
        check_again(str(moved.file), str(moved.before), str(moved.after), as_json=False)
    moved.file.unlink()
    with pytest.raises(ModelError, match=r"c\.json' is no certificate: .*No such file"):
        check_again(str(moved.file), str(moved.before), str(moved.after), as_json=False)


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        (None, "'no file'"),
        (3, "'no file'"),
        ({}, "None"),
        ({"file": "a.onnx", "sha256": "0"}, "'a.onnx'"),
    ],
)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_certificate_of_other_files_names_both(
    moved: Run, side: str, entry: Any, named: str
) -> None:
    moved.file.write_text(json.dumps({**moved.certificate, side: entry}))
    other = moved.before if side == "before" else moved.after
    message = f"is the certificate of other files: it names {named}, not '{other}'"
    with pytest.raises(VerificationError, match=message):
        check_again(str(moved.file), str(moved.before), str(moved.after), as_json=False)
