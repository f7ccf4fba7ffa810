"""The benchmark measures what it says, on a model that takes no time."""

import json
import sys
from pathlib import Path
from typing import Literal

import onnx
import pytest

from benchmarks import (
    context,
    growth,
    large,
    latency,
    llama,
    looks,
    profile,
    rewrite,
    startup,
    verify,
    view,
)
from benchmarks.judge import judge
from benchmarks.peers import Measurement, Row, _summary, main, summarise
from benchmarks.peers_page import page_of
from tests.support.pages.reader import read
from tiered import Model


def save_small(
    folder: Path,
    text: str = "(float[2] x) => (float[2] y) { h = Identity(x)  y = Relu(h) }",
    name: str = "small",
) -> Path:
    header = '<ir_version: 8, opset_import: ["" : 17]> agraph'
    onnx.save(onnx.parser.parse_model(f"{header} {text}"), folder / f"{name}.onnx")
    return folder / f"{name}.onnx"


def test_a_ratio_compares_the_two_measurements_of_one_turn() -> None:
    reference = [Measurement(1.0, 2.0, 50.0), Measurement(10.0, 20.0, 50.0)]
    slower = [Measurement(3.0, 2.0, 70.0), Measurement(30.0, 20.0, 70.0)]
    row = _summary("model", "peer", slower, reference)
    assert (row.optimize_ratio, row.process_ratio) == (3.0, 1.0)
    assert (row.optimize_s, row.peak_mb) == (16.5, 70.0)


def test_tiered_alone_is_measured_where_no_peer_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_small(tmp_path)
    json_out, svg = tmp_path / "rows.json", tmp_path / "picture.svg"
    html = tmp_path / "page.html"
    main(models=tmp_path, peers="", runs=1, latency=0.0, json_out=json_out, svg=svg, html=html)
    written = json.loads((tmp_path / "rows.json").read_text())
    (row,), (summary,) = written["rows"], written["summary"]
    assert (row["tool"], row["error"], row["nodes"]) == ("tiered", "", 1)
    assert row["optimize_ratio"] == 1.0
    assert 0 < row["optimize_s"] < row["process_s"]
    assert row["peak_mb"] > 10
    assert (row["nodes_before"], row["status"]) == (2, "exact")
    assert (summary["done"], summary["right"], summary["nodes_ratio"]) == (1, 1, 0.5)
    assert "tiered" in (tmp_path / "picture.svg").read_text()
    page = " ".join(read(html.read_text(encoding="utf-8")).text.split())
    assert "small 2 1" in page
    assert "small exact" in page
    assert f"small {row['nbytes_before']:,} {row['nbytes']:,}" in page
    assert "small, 2 nodes" in capsys.readouterr().out


def test_a_summary_takes_geometric_means_over_the_models_of_a_tool() -> None:
    rows = [
        Row("a", "peer", 0.1, 2.0, nodes=1, nodes_before=4, status="exact"),
        Row("b", "peer", 0.4, 8.0, nodes=999, nodes_before=999),
        Row("c", "peer", error="exit code 1"),
    ]
    (summary,) = summarise(rows)
    assert (summary.optimize_ratio, summary.worst_ratio, summary.small_ratio) == (4.0, 2.0, 2.0)
    assert (summary.done, summary.right) == (2, 1)


def test_a_result_that_differs_is_wrong_and_one_that_does_not_load_is_invalid(
    tmp_path: Path,
) -> None:
    a, b, c = (
        save_small(tmp_path, f"(float[2] x) => (float[2] y) {{ y = {op_type}(x) }}", op_type)
        for op_type in ("Relu", "Neg", "Nothing")
    )
    verdicts = judge(a, [a, b, c], 0.0)
    assert [said.status for said in verdicts.values()] == ["exact", "wrong", "invalid"]


def test_latencies_are_those_of_bench(tmp_path: Path) -> None:
    small = save_small(tmp_path)
    (verdict,) = judge(small, [small], 0.01).values()
    assert verdict.off_ms is not None
    assert verdict.on_ms is not None
    assert min(verdict.off_ms, verdict.on_ms) > 0


def test_a_peer_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(SystemExit, match="no peer named onnxfast"):
        main(peers="onnxfast")


def test_the_view_is_measured_beside_networkx(capsys: pytest.CaptureFixture[str]) -> None:
    view.main(nodes=200, rounds=1)
    printed = capsys.readouterr().out
    for what in ("tiered", "plain dict", "networkx", "rollback", "topological order"):
        assert what in printed


def test_an_edit_does_not_depend_on_the_number_of_users() -> None:
    few, many = view.many_users(20), view.many_users(20_000)
    assert view.moving_users(many, 50) < 20 * view.moving_users(few, 10)


def test_what_watching_costs_is_measured_for_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_small(tmp_path)
    ratios = context.main(tmp_path, runs=1)
    assert {kind for _, kind in ratios} == set(context.KINDS)
    assert ratios["small", "apply"] == 1.0
    assert "small, 2 nodes" in capsys.readouterr().out


def test_every_fusion_is_matched_and_chains_collapse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_small(tmp_path, "(float[2,3] x) => (float[2,3] y) { h = Transpose(x)  y = Transpose(h) }")
    rewrite.main(models=tmp_path, nodes=40, rounds=1)
    printed = capsys.readouterr().out
    assert "fuse_consecutive_transpose" in printed
    assert "Neg(Neg(x)) => x" in printed
    model = Model.load(tmp_path / "small.onnx")
    assert rewrite.count_matches(rewrite.fusions()["fuse_consecutive_transpose"], model) == 1
    assert len(model.main) == 2


def test_a_chain_twice_as_long_takes_about_twice_the_time() -> None:
    half, whole = (rewrite.collapsing("Neg(Neg(x)) => x", nodes, 3) for nodes in (1000, 4000))
    assert whole < 12 * half


def test_what_verifying_costs_is_measured_in_plain_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_small(tmp_path)
    cost = verify.main(tmp_path, runs=1)["small"]
    assert cost.runs == 1
    assert cost.plain > 0
    assert verify.Cost(3, 0.5, 2.0).ratio == 1.0
    assert "small" in capsys.readouterr().out


def test_the_profile_lists_passes_and_what_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(growth.stacked(40), tmp_path / "stacked.onnx")
    profile.main(tmp_path / "stacked.onnx", level=3, runs=1, rows=100)
    printed = capsys.readouterr().out
    for what in ("stacked at -O3", "fold_constant", "(opening the view)"):
        assert what in printed


def test_growth_is_measured_on_a_valid_model(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.checker.check_model(growth.stacked(100), full_check=True)
    for shape in growth.SHAPES:
        assert growth.main(sizes=(40, 80), runs=1, shape=shape) >= 1.0
    assert " bytes a node" in capsys.readouterr().out


@pytest.mark.usefixtures("fake_worker")
def test_latency_is_measured_with_optimisations_off_and_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_small(tmp_path)
    latency.main(models=tmp_path, tools="tiered", runs=4, json_out=tmp_path / "rows.json")
    off, on = json.loads((tmp_path / "rows.json").read_text())
    assert (off["optimisations"], on["optimisations"]) == (False, True)
    for row in (off, on):
        assert row["error"] == ""
        assert 0 < row["low"] <= row["speed_up"] <= row["high"]
    assert "geometric mean" in capsys.readouterr().out


@pytest.mark.usefixtures("fake_worker")
def test_latency_is_measured_of_models_that_onnxruntime_quantised(tmp_path: Path) -> None:
    weight = ", ".join(str(at / 8) for at in range(16))
    text = f"(float[2,4] x) => (float[2,4] y) <float[4,4] w = {{{weight}}}> {{ y = MatMul(x, w) }}"
    save_small(tmp_path, text)
    latency.main(
        models=tmp_path, tools="tiered", backend="onnxruntime_cpu", quantized=True, runs=4,
        json_out=tmp_path / "rows.json",
    )  # fmt: skip
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["model"], row["error"]) for row in rows] == [("small.s8s8", "")] * 2


def test_a_tool_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(SystemExit, match="no tool named onnxfast"):
        latency.main(tools="onnxfast")


@pytest.mark.parametrize(("shape", "sizes"), [("deep", "214 nodes (143 without"), ("external", "")])
def test_a_large_model_is_one_that_runs_and_what_it_takes_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    shape: Literal["deep", "external"],
    sizes: str,
) -> None:
    monkeypatch.setattr(llama, "LARGE", llama.LITTLE)
    large.main(shape=shape, folder=tmp_path / "made", layers=1, keep=True)
    lines = capsys.readouterr().out.splitlines()
    assert sizes in lines[0]
    assert [line.split()[0] for line in lines] == ["1", "copy", "tiered"]
    assert lines[-1].endswith(" MB its own  ")
    model = tmp_path / "made" / "llama.onnx"
    onnx.checker.check_model(str(model), full_check=True)
    result = onnx.load(tmp_path / "made" / "out" / "llama.onnx")
    assert len(result.graph.node) < len(onnx.load(model).graph.node)


def test_a_tool_that_takes_too_long_or_too_much_is_stopped() -> None:
    asleep = large.measured(
        [sys.executable, "-c", "import time; time.sleep(60)"], memory=1 << 32, seconds=0.5
    )
    assert (asleep.failed, asleep.peak > 1 << 20) == ("more than 0 s", True)
    greedy = large.measured(
        [sys.executable, "-c", "bytearray(1 << 33)"], memory=1 << 32, seconds=60
    )
    assert greedy.failed == "exit code 1"


def test_no_rule_looks_at_a_node_again_without_need(tmp_path: Path) -> None:
    save_small(tmp_path, "(float[2] x) => (float[2] y) { h = Relu(x)  k = Relu(h)  y = Relu(k) }")
    (found,) = looks.main(tmp_path)
    assert found.first > 0
    assert found.needless == 0


def test_help_is_measured_beside_a_bare_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert startup.main(1) > 0
    assert "a bare program" in capsys.readouterr().out


def test_a_tool_that_failed_is_named_on_the_page() -> None:
    rows = [
        Row("a", "tiered", 0.1, 1.0, nodes=1, nodes_before=4, nbytes=7, status="exact"),
        Row("a", "peer", nodes_before=4, error="exit code 1"),
    ]
    machine = {"versions": {"tiered": "0.2.0"}, "python": "3.11", "cpus": 2}
    page = page_of(machine, rows, summarise(rows), level=3, runs=1)
    text = " ".join(read(page).text.split())
    assert "peer on a: exit code 1" in text
    assert "a 4 1 failed" in text
