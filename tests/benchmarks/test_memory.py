"""The benchmark of memory measures tensors in a process of its own, and prints the correlation."""

import sys
from pathlib import Path

import onnx
import pytest

from benchmarks import memory
from tiered.testing import parse


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_a_plan_is_close_to_what_is_allocated(tmp_path: Path) -> None:
    path = tmp_path / "waves.onnx"
    nodes = "a = Sin(x) b = Cos(x) c = Add(a, b) y = Exp(c)"
    text = f"(float[N,1024] x) => (float[N,1024] y) {{ {nodes} }}"
    onnx.save(parse(text), path)
    row = memory.measure(path, 2048, str(tmp_path))
    # Three tensors of 8 MiB are alive at Add; the plan with reuse has two.
    assert (row.plan, row.plain) == (2 << 23, 3 << 23)
    assert row.apart == pytest.approx(row.plain, rel=0.15)


def test_correlations_are_of_bytes_and_of_logarithms() -> None:
    plain, logs = memory.correlations([(1, 10), (2, 20), (4, 40)])
    assert plain == pytest.approx(1)
    assert logs == pytest.approx(1)
