"""The tables of forms cover every change of the schemas that a conversion could get wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import onnx
import pytest
from onnx.defs import OpSchema

from tiered.graph.core.schema import default_of
from tiered.graph.opset.adapters import CHANGES
from tiered.graph.opset.earliest import EARLIEST
from tiered.graph.opset.meanings import INSTEAD, MEANINGS


def _changes() -> Iterator[tuple[OpSchema, OpSchema]]:
    """Yield each two schemas of an operator that follow each other."""
    found = defaultdict[str, list[OpSchema]](list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found[schema.name].append(schema)
    for name in sorted(found):
        schemas = sorted(found[name], key=lambda schema: schema.since_version)
        yield from pairwise(schemas)


PAIRS = {f"{new.name}-{new.since_version}": (old, new) for old, new in _changes()}


@pytest.mark.parametrize("name", PAIRS)
def test_a_change_of_attributes_or_operands_has_a_row(name: str) -> None:
    old, new = PAIRS[name]
    gone = old.attributes.keys() - new.attributes.keys()
    both = old.attributes.keys() & new.attributes.keys()
    other = {key for key in both if repr(default_of(old, key)) != repr(default_of(new, key))}
    places = zip(old.inputs, new.inputs, strict=False)
    # Another set of types at a place is another operand, unless the types only got more or fewer.
    moved = any(not a.types & b.types for a, b in places)
    if not (gone or other or moved or new.deprecated):
        return
    rows = (
        *CHANGES.get(new.name, ()),
        *MEANINGS.get(new.name, ()),
        *INSTEAD.get(new.name, ()),
        *EARLIEST.get(new.name, ()),
    )
    if name in WITHOUT_A_ROW:
        return
    assert any(row.since == new.since_version for row in rows), (gone, other, moved)


WITHOUT_A_ROW = {
    "GroupNormalization-18",  # it came deprecated
}


def test_only_operators_of_onnx_have_rows() -> None:
    names = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    assert {*MEANINGS, *INSTEAD, *EARLIEST} <= names
    versions = {schema.since_version for schema in onnx.defs.get_all_schemas_with_history()}
    assert {row.since for rows in MEANINGS.values() for row in rows} <= versions


@pytest.mark.parametrize("table", [MEANINGS, INSTEAD, EARLIEST])
def test_rows_name_opsets_that_changed_the_operator(table: dict[str, tuple[object, ...]]) -> None:
    since = {(pair[1].name, pair[1].since_version) for pair in PAIRS.values()}
    wrong = [
        (op_type, row.since)  # type: ignore[attr-defined]  # a Change
        for op_type, rows in table.items()
        for row in rows
        if (op_type, row.since) not in since  # type: ignore[attr-defined]  # a Change
    ]
    # Scatter and Upsample went: their rows say what they became.
    assert wrong in ([], [("Resize", 10), ("ScatterElements", 11)])
