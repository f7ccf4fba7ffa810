"""Tables of patterns, by the target that they are registered for."""

from typing import Any, Final

import pytest

from tiered.compat.tvm import pattern_tables
from tiered.compat.tvm.pattern_tables import get_pattern_table, register_pattern_table
from tiered.compat.tvm.patterns.dataflow_pattern import is_op, wildcard
from tiered.support.errors import UsageError

ROWS: Final[list[Any]] = [("npu.relu", is_op("nn.relu")(wildcard()))]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets whose table partitions know; none is left behind."""
    monkeypatch.setattr(pattern_tables, "_TABLES", {})
    found: list[str] = []
    monkeypatch.setattr(
        pattern_tables, "set_pattern_table", lambda compiler, rows: found.append(compiler)
    )
    return found


def test_a_table_is_given_or_returned_by_a_function(registered: list[str]) -> None:
    assert register_pattern_table("first", ROWS) is ROWS

    def table() -> Any:
        return ROWS

    assert register_pattern_table("second")(table) is table
    assert get_pattern_table("first") == get_pattern_table("second") == ROWS
    assert registered == ["first", "second"]


def test_a_target_without_a_table_is_an_error() -> None:
    register_pattern_table("npu", ROWS)
    with pytest.raises(UsageError, match=r"no pattern table is registered for 'npv'.*'npu'"):
        get_pattern_table("npv")
