"""The benchmark of tuning: its table, on a model that takes no time."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

import tiered
from benchmarks import tune
from tests.fake_worker import FakeSession, fake_worker  # noqa: F401 - a fixture
from tiered.testing import parse


def test_each_form_stands_beside_the_tuned_one(
    tmp_path: Path,
    fake_worker: type[FakeSession],  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "(float[2] x) => (float[2] y) { h = Identity(x)  y = Relu(h) }"
    onnx.save(parse(text), tmp_path / "small.onnx")
    given: list[dict[str, Any]] = []
    real = tiered.tune

    def by_size(*files: Any, **how: Any) -> Any:
        given.append(how)
        return real(*files, objective="size", minutes=how["minutes"])

    monkeypatch.setattr(tiered, "tune", by_size)
    monkeypatch.setattr(tune, "PEERS", ("ort-basic",))
    rows = tmp_path / "rows.json"
    tune.main(models=tmp_path, minutes=0.1, candidates=True, json_out=rows)
    found = json.loads(rows.read_text())
    assert {row["beside"] for row in found} == {
        "original", "-O3", "-O3 onnxruntime_cpu", "ort-basic",
    }  # fmt: skip
    assert [how["runtime_level"] for how in given] == ["off", "all"]
    assert len(given[0]["candidates"]) == 1
    printed = capsys.readouterr().out
    assert "optimisations on:" in printed
    assert "| model | tuned | original | -O3 | -O3 onnxruntime_cpu | ort-basic |" in printed
    tune.main(earlier=[rows])
    assert capsys.readouterr().out == printed


def row(model: str, beside: str, ratio: float, verdict: str = "faster") -> tune.Row:
    return tune.Row(model, False, beside, "-O3", ratio, ratio * 0.98, ratio * 1.02, verdict)


def test_the_report_is_markdown_with_means_and_losses() -> None:
    rows = [
        row("a", "original", 0.5),
        row("a", "onnxsim", 0.8),
        row("a", "onnxslim", 1.25, "slower"),
        row("a", "-O3", 1.05, "slower"),
        row("b", "original", 0.5),
        row("b", "onnxsim", 0.8),
        row("b", "-O3", 1.05, "no difference"),
    ]
    lines = tune.report(rows).splitlines()
    assert lines[0] == "onnxruntime's optimisations off:"
    assert lines[2:4] == [
        "| model | tuned | original | onnxsim | onnxslim | -O3 |",
        f"|{'---|' * 6}",
    ]
    assert lines[4] == (
        "| a | `-O3` | 2.00 (1.96-2.04) | 1.25 (1.23-1.28) | 0.80 (0.78-0.82) | 0.95 (0.93-0.97) |"
    )
    assert "| failed |" in lines[5]
    # onnxslim failed on b: it left the original, so its mean is that of 0.8 and 2.
    assert lines[6] == "| geometric mean |  | 2.00 | 1.25 | 1.26 | 0.95 |"
    assert lines[8:11] == [
        "- beside the best single peer, onnxsim: 1.250",
        "- beside the best peer of each model: 1.000",
        "- significantly slower than the best of the others: 1 of 2: "
        "a beside onnxslim 0.80 (0.78-0.82)",
    ]


def test_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('[{"speed": 1}]')
    for file in (wrong, tmp_path / "none.json"):
        with pytest.raises(SystemExit, match=f"cannot read rows from .*{file.name}"):
            tune.main(earlier=[file])


def test_a_folder_without_models_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no models in"):
        tune.main(models=tmp_path)
