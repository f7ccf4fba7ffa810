"""The results of a batch as files: JSON lines, a page, or Parquet (extra `tiered[fleet]`)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import BinaryIO, Final

from tiered.extensions.fleet.result_line import Result
from tiered.support.errors import FleetError, UsageError
from tiered.support.whole_files import whole_file, write_chunks, write_text

SUFFIXES: Final = (".jsonl", ".html", ".parquet")


def check_table(path: str) -> None:
    """Check the file for a table before any work is done.

    Raises:
        UsageError: its suffix names no form, or its folder does not exist.
        FleetError: the package that writes it is not installed.
    """
    if not path.endswith(SUFFIXES):
        expected = "a file that ends with .jsonl, .html or .parquet"
        raise UsageError(f"--results {path!r}: expected {expected}")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise UsageError(f"--results {path!r}: no directory {folder!r}")
    if path.endswith(".parquet"):
        try:
            import pyarrow.parquet  # noqa: F401 - whether it can be imported
        except ImportError as error:
            raise FleetError(
                "Parquet needs pyarrow; install tiered[fleet], or write .jsonl"
            ) from error


def write_table(path: str, results: Sequence[Result]) -> None:
    """Write results to a file, in the form of its suffix; see `check_table`."""
    if path.endswith(".parquet"):
        with whole_file(path) as file:
            _write_parquet(file, results)
    elif path.endswith(".html"):
        from tiered.extensions.fleet.fleet_page import fleet_page

        write_text(path, fleet_page(results))
    else:
        write_chunks(path, (f"{result.line()}\n" for result in results))


def _write_parquet(file: BinaryIO, results: Sequence[Result]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"str": pa.string(), "Status": pa.string(), "float": pa.float64()}
    kinds |= {"int": pa.int64(), "int | None": pa.int64(), "bool | None": pa.bool_()}
    schema = pa.schema([(each.name, kinds[str(each.type)]) for each in dataclasses.fields(Result)])
    rows = [dataclasses.asdict(result) for result in results]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
