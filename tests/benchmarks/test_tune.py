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
    assert "optimisations on, 99 % interval" in capsys.readouterr().out


def test_a_folder_without_models_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no models in"):
        tune.main(models=tmp_path)
