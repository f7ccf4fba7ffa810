from pathlib import Path

import pytest

from tiered.extensions.fleet.result import Result
from tiered.extensions.fleet.tables import check_table, write_table
from tiered.support.errors import UsageError

RESULTS = [
    Result("a.onnx", "out/a.onnx", "done", nodes_before=5, nodes_after=2, verified=True),
    Result("b.onnx", "out/b.onnx", "failed", reason="no such file", exit_code=1),
]


def test_json_lines_have_a_result_each(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write_table(str(path), RESULTS)
    assert path.read_text().splitlines() == [result.line() for result in RESULTS]
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.jsonl"]


def test_parquet_has_a_column_for_each_field(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="tiered[fleet] is not installed")
    path = tmp_path / "results.parquet"
    write_table(str(path), RESULTS)
    rows = parquet.read_table(path).to_pylist()
    assert [row["source"] for row in rows] == ["a.onnx", "b.onnx"]
    assert [row["nodes_after"] for row in rows] == [2, None]
    assert [row["verified"] for row in rows] == [True, None]


@pytest.mark.parametrize("name", ["results.csv", "missing/results.jsonl"])
def test_a_wrong_file_is_refused_before_any_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--results"):
        check_table(str(tmp_path / name))
