"""`relay.op.contrib.register`: pattern tables of targets, for `MergeComposite`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tiered.compat.tvm.patterns.dataflow_pattern import as_entry
from tiered.extensions.partition.composite import register_pattern_table as set_pattern_table
from tiered.support.errors import UsageError, did_you_mean

__all__ = ["get_pattern_table", "register_pattern_table"]

_TABLES: dict[str, list[Any]] = {}


def register_pattern_table(
    compiler: str, table: Iterable[Any] | Callable[[], Iterable[Any]] | None = None
) -> Any:
    """Register the pattern table of a target, or the function that returns it.

        @register_pattern_table("npu")
        def pattern_table():
            return [("npu.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))]

    Args:
        compiler: the target.
        table: the table; without it, the result is a decorator.
    """

    def add(given: Any) -> Any:
        rows = list(given() if callable(given) else given)
        set_pattern_table(compiler, list(map(as_entry, rows)))
        _TABLES[compiler] = rows
        return given

    return add if table is None else add(table)


def get_pattern_table(compiler: str) -> list[Any]:
    """Return the pattern table of a target.

    Raises:
        UsageError: none is registered.
    """
    if compiler not in _TABLES:
        hint = did_you_mean(compiler, _TABLES)
        raise UsageError(f"no pattern table is registered for {compiler!r}{hint}")
    return _TABLES[compiler]
