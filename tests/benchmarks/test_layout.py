"""The benchmark of layouts counts what it says, on a model that takes no time."""

from pathlib import Path

import onnx
import pytest

from benchmarks import layout
from tiered.testing import parse

TEXT = (
    "(float[1,4,4,2] x) => (float[1,4,4,2] y) { t = Transpose<perm=[0,3,1,2]>(x)  r = Relu(t)  "
    "y = Transpose<perm=[0,2,3,1]>(r) }"
)


def test_it_counts_transposes_before_and_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(parse(TEXT), tmp_path / "small.onnx")
    assert layout.main(tmp_path, ["ort-basic"]) == []
    before, tiered, peer = capsys.readouterr().out.splitlines()
    assert "2            256 bytes" in before
    assert "0              0 bytes" in tiered
    assert "ort-basic" in peer
