"""The benchmark measures what it says, on a model that takes no time."""

import json
from pathlib import Path

import onnx
import pytest

from benchmarks import context, rewrite, verify, view
from benchmarks.peers import Measurement, _summary, main
from tiered import Model


def test_a_ratio_compares_the_two_measurements_of_one_turn() -> None:
    reference = [Measurement(1.0, 2.0, 50.0), Measurement(10.0, 20.0, 50.0)]
    slower = [Measurement(3.0, 2.0, 70.0), Measurement(30.0, 20.0, 70.0)]
    row = _summary("model", "peer", slower, reference)
    assert (row.optimize_ratio, row.process_ratio) == (3.0, 1.0)
    assert (row.optimize_s, row.peak_mb) == (16.5, 70.0)


def test_tiered_alone_is_measured_where_no_peer_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "agraph (float[2] x) => (float[2] y) { h = Identity(x)  y = Relu(h) }"
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    onnx.save(onnx.parser.parse_model(f"{header} {text}"), tmp_path / "small.onnx")
    main(models=tmp_path, peers="", runs=1, json_out=tmp_path / "rows.json")
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert (row["tool"], row["error"], row["nodes"]) == ("tiered", "", 1)
    assert row["optimize_ratio"] == 1.0
    assert 0 < row["optimize_s"] < row["process_s"]
    assert row["peak_mb"] > 10
    assert "small, 2 nodes" in capsys.readouterr().out


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
    text = "agraph (float[2] x) => (float[2] y) { h = Identity(x)  y = Relu(h) }"
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    onnx.save(onnx.parser.parse_model(f"{header} {text}"), tmp_path / "small.onnx")
    ratios = context.main(tmp_path, runs=1)
    assert {kind for _, kind in ratios} == set(context.KINDS)
    assert ratios["small", "apply"] == 1.0
    assert "small, 2 nodes" in capsys.readouterr().out


def test_every_fusion_is_matched_and_chains_collapse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "agraph (float[2,3] x) => (float[2,3] y) { h = Transpose(x)  y = Transpose(h) }"
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    onnx.save(onnx.parser.parse_model(f"{header} {text}"), tmp_path / "small.onnx")
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
    text = "agraph (float[2] x) => (float[2] y) { h = Identity(x)  y = Relu(h) }"
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    onnx.save(onnx.parser.parse_model(f"{header} {text}"), tmp_path / "small.onnx")
    cost = verify.main(tmp_path, runs=1)["small"]
    assert cost.runs == 1
    assert cost.plain > 0
    assert verify.Cost(3, 0.5, 2.0).ratio == 1.0
    assert "small" in capsys.readouterr().out
