import re
import sys
from pathlib import Path

import pytest

from tiered.extensions.fleet.result_line import Result
from tiered.extensions.fleet.result_tables import check_table, write_table
from tiered.support.errors import FleetError, UsageError

ROW = r'<t(?:d|h scope="row").*?</t[dh]>'
"""The cells of tables, without those of headings."""

RESULTS = [
    Result(
        *("a.onnx", "out/a.onnx", "done"),
        nodes_before=5,
        nodes_after=2,
        passes="fold_constant=3 fuse_gelu=1",
        verified=True,
    ),
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


def test_a_page_says_what_fails_stands_out_and_fires(tmp_path: Path) -> None:
    quick = [
        Result(f"m{at}.onnx", "", "done", seconds=1.0, peak=100, passes="fold_constant=2")
        for at in range(5)
    ]
    slow = Result("slow.onnx", "", "done", seconds=30.0, peak=100, passes="fuse_gelu=1")
    lost = [
        Result(f"x/{name}", "", "failed", reason=f"x/{name}: no <model>", exit_code=1)
        for name in ("b.onnx", "c.onnx")
    ]
    path = tmp_path / "fleet.html"
    write_table(str(path), [*quick, *lost, slow, RESULTS[0]])
    text = re.sub(r"\s+", " ", path.read_text())
    cells = [re.sub("<[^>]*>", "", cell).strip() for cell in re.findall(ROW, text)]

    def has_row(*row: str) -> bool:
        return any(tuple(cells[at : at + len(row)]) == row for at in range(len(cells)))

    # Two models fail alike; their names do not make two reasons of it, and are no markup.
    assert has_row("2", "failed", "MODEL: no &lt;model&gt;", "x/b.onnx")
    assert has_row("slow.onnx", "30.00 s", "30.0", "done")
    assert not has_row("m0.onnx", "1.00 s")
    assert has_row("fold_constant", "6", "86 %", "13", "3", "a.onnx")
    assert has_row("fuse_gelu", "2", "29 %", "2", "1", "slow.onnx")
    assert has_row("a.onnx", "5", "2", "40 %")
    titles = [text.find(f">{title}</h2>") for title in ("Summary", "What failed", "Slow models")]
    assert 0 < titles[0] < titles[1] < titles[2]


def test_a_table_may_be_in_the_folder_where_one_is_and_parquet_takes_a_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for path, said in (
        ("r.jsonl", ""),
        ("r.html", ""),
        ("r.parquet", "Parquet needs pyarrow; install tiered[fleet], or write .jsonl"),
        ("r.txt", "--results 'r.txt': expected a file that ends with .jsonl, .html or .parquet"),
        ("no/r.html", "--results 'no/r.html': no directory 'no'"),
    ):
        if said:
            with pytest.raises((FleetError, UsageError)) as raised:
                check_table(path)
            assert str(raised.value) == said
        else:
            check_table(path)
