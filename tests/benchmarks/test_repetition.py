"""Equal blocks: what one teaches changes no byte of the others."""

from __future__ import annotations

from collections.abc import Hashable

import onnx
import pytest

from benchmarks.llama import little
from benchmarks.regions import blocks
from benchmarks.repetition import main
from tiered import optimize
from tiered.analysis.layout.layout_region import LayoutRegion
from tiered.analysis.layout.search_memory import LayoutMemory


@pytest.mark.parametrize("model", [little(3), blocks(10)], ids=["llama", "heads"])
def test_equal_regions_come_to_the_bytes_of_regions_that_are_solved_each(
    model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[Hashable] = []
    key_of = LayoutRegion.cache_key

    def noted(region: LayoutRegion) -> Hashable:
        keys.append(key_of(region))
        return keys[-1]

    def new(region: LayoutRegion) -> Hashable:
        return object()

    monkeypatch.setattr(LayoutRegion, "cache_key", noted)
    known = optimize(model, opt_level=3).SerializeToString()
    assert len(set(keys)) < len(keys)
    monkeypatch.setattr(LayoutRegion, "cache_key", new)
    monkeypatch.setattr(LayoutMemory, "untouched", lambda *_: {})
    assert optimize(model, opt_level=3).SerializeToString() == known


def test_the_benchmark_prints_one_figure_for_each_number_of_blocks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = main([2, 3], ["O2"])
    assert len(found["O2"]) == 2
    assert all(ratio > 0 for ratio in found["O2"])
    assert "3 blocks" in capsys.readouterr().out
