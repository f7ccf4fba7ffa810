"""The benchmark of --certify counts proofs and compares processes."""

from pathlib import Path

import pytest

from benchmarks import certify
from tests.benchmarks.test_peers import save_small


def test_rewrites_are_counted_and_costs_are_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_small(tmp_path)
    (row,) = certify.main(tmp_path, runs=1).values()
    assert min(row.time, row.memory) > 0
    assert sum(row.counts.values()) > 0
    assert "median" in capsys.readouterr().out
