"""The polynomials against the kernels."""

from benchmarks import fast_math


def test_each_is_measured() -> None:
    rows = list(fast_math.measured(1, 1))
    assert [row.name for row in rows] == ["Exp", "Tanh", "Erf", "Softmax"]
    assert [row.nodes for row in rows] == [27, 23, 28, 31]
    assert all(row.kernel > 0 < row.polynomial and row.difference < 4e-4 for row in rows)
