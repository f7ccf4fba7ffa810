"""The benchmark of small regions writes valid models and times both runs."""

import onnx
import pytest

from benchmarks import regions


def test_the_blocks_are_valid_and_of_about_the_size_asked_for() -> None:
    model = regions.blocks(60)
    onnx.checker.check_model(model, full_check=True)
    assert 60 <= len(model.graph.node) < 80


def test_it_prints_the_time_with_layouts_and_without(capsys: pytest.CaptureFixture[str]) -> None:
    whole, rest = regions.main(regions.blocks(30), runs=1)
    assert whole > 0 < rest
    assert "without convert_layout" in capsys.readouterr().out
