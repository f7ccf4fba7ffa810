"""The tables of forms cover every change of the schemas that a conversion could get wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import onnx
import pytest
from onnx.defs import OpSchema

from tiered.graph import Model, Node
from tiered.graph.core.schema import default_of, schema_of
from tiered.graph.opset.adapter import NoEquivalentForm, OperatorForm
from tiered.graph.opset.adapters import CHANGES
from tiered.graph.opset.conversion import form_between, misfit, type_text
from tiered.graph.opset.earliest import EARLIEST
from tiered.graph.opset.meanings import INSTEAD, MEANINGS
from tiered.testing import parse


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


def last_node(text: str, opset: int) -> Node:
    header = f'<ir_version: 8, opset_import: ["" : {opset}, "vendor" : 1]> g '
    return Model.from_proto(parse(header + text)).main.nodes[-1]


@pytest.mark.parametrize(
    ("inputs", "call", "before", "after", "form"),
    [
        ("float[2] x", "Relu(x)", 21, 20, None),
        ("float[2] x", "Unheard(x)", 21, 20, None),
        ("float[1,1,2,2] x, float[4] s", "Upsample(x, s)", 9, 10, ("Resize", {}, [])),
        ("float[1,1,2,2] x, float[4] s", "Upsample(x, s)", 10, 9, ("Upsample", {}, [])),
        ("float[2] x", "Cast<to=6, saturate=1>(x)", 19, 18, ("Cast", {"to": 6}, [])),
        ("float[2] x", "Cast<to=6, more=1>(x)", 19, 18, ("Cast", {"to": 6, "more": 1}, [])),
        ("float[2,3] x", "Softmax<axis=-1>(x)", 13, 11, ("Softmax", {"axis": 1}, ["axis"])),
        ("float[2,3] x", "Softmax<axis=1>(x)", 13, 11, ("Softmax", {"axis": 1}, [])),
        ("float[2,3] x", "Max(x, x, x, x)", 13, 8, ("Max", {}, [])),
    ],
)  # fmt: skip
def test_the_form_at_another_opset(
    inputs: str, call: str, before: int, after: int, form: tuple[str, dict[str, object], list[str]]
) -> None:
    node = last_node(f"({inputs}) => (float[M] y) {{ y = {call} }}", before)
    found = form_between(node, before, after)
    if found is None:
        assert form is None
    else:
        assert (found.op_type, found.attributes, sorted(found.changed)) == form
        assert found.version == after
        assert found.operands == list(node.inputs)


@pytest.mark.parametrize(
    ("inputs", "call", "before", "after", "reason"),
    [
        ("float[2] x", "y = Gelu(x)", 21, 19, "opset 19 has no Gelu, which opset 20 brought"),
        ("float[2] x", "y = Gelu(x)", 19, 21, r"Gelu is unknown to opset 19 \(opset 19\)"),
        ("float[2,2] x, float[2] s", "y = GroupNormalization<num_groups=1>(x, s, s)", 21, 18,
         "GroupNormalization is deprecated in opset 18"),
        ("int8[2] x", "y = Add(x, x)", 14, 13, r"Add-13 takes no tensor\(int8\) as 'A'"),
        ("float[2] x", "a = vendor.F(x) y = Relu(a)", 14, 13,
         r"Relu-13 takes no tensor\(int16\) as 'X', whose type is not known"),
        ("float[2] x, int64[2] e", "y = Mul(x, e)", 14, 13,
         r"Mul-13 takes tensor\(float\) as 'B', not tensor\(int64\)"),
        ("float[2] x", "y = Cast<to=17, saturate=0>(x)", 19, 18, "has no attribute 'saturate'"),
        ("float[3,2,4] x, float[1,12,4] w, float[1,12,3] r",
         "y = GRU<hidden_size=3, layout=1>(x, w, r)", 14, 13, "GRU has no attribute 'layout'"),
        ("seq(float[2]) x", "y = Identity(x)", 14, 13,
         r"Identity-13 takes no seq\(tensor\(float\)\) as 'input'"),
    ],
)  # fmt: skip
def test_why_there_is_no_form(inputs: str, call: str, before: int, after: int, reason: str) -> None:
    node = last_node(f"({inputs}) => (float[M] y) {{ {call} }}", before)
    with pytest.raises(NoEquivalentForm, match=reason):
        form_between(node, before, after)


def test_the_number_of_operands_and_outputs_fits_a_schema() -> None:
    for call, op_type, version, places, reason in (
        ("y = Relu(x)", "Relu", 13, [0], None),
        ("y = Relu(x)", "Relu", 13, [0, 0], "Relu-13 takes 1 operands"),
        ("y = Relu(x)", "Relu", 13, [None], "Relu-13 needs the operand 'X'"),
        ("y = Gemm(x, x)", "Gemm", 11, [0], "Gemm-11 takes 2 to 3 operands"),
        ("y = Gemm(x, x)", "Gemm", 11, [0, 0, None], None),
        ("y, z = Split(x)", "Abs", 13, [0], "Abs-13 has at most 1 outputs"),
        ("y = Concat<axis=0>(x)", "Concat", 11, [0, 0, 0], None),
    ):
        node = last_node(f"(float[2,2] x) => (float[M] y) {{ {call} }}", 13)
        form = OperatorForm(
            op_type, version, [None if at is None else node.inputs[at] for at in places], {}
        )
        own, other = node.schema, schema_of(op_type, "", version)
        assert own is not None
        assert other is not None
        assert misfit(node, form, own, other) == reason, call


def test_an_attribute_that_is_a_parameter_keeps_a_form_from_changing() -> None:
    text = """<ir_version: 8, opset_import: ["": 13, "l": 1]> g (float[2,3] x) => (float[2,3] y)
      { y = l.f<n=1>(x) } <domain: "l", opset_import: ["": 13]>
      f <n> (x) => (y) { y = Softmax<axis: int = @n>(x) }"""
    (node,) = Model.from_proto(parse(text)).functions[0].nodes
    with pytest.raises(NoEquivalentForm, match=r"Softmax cannot change: .*parameter"):
        form_between(node, 13, 11)


def test_types_as_schemas_write_them() -> None:
    for kind, text in (
        ("float16[2]", "tensor(float16)"),
        ("seq(int64[2])", "seq(tensor(int64))"),
        ("optional(seq(float))", "optional(seq(tensor(float)))"),
        ("map(int64, string)", "map(int64, tensor(string))"),
        ("sparse_tensor(float[2])", "sparse_tensor(float)"),
    ):
        node = last_node(f"({kind} x) => (float y) {{ y = vendor.F(x) }}", 21)
        x = node.input(0)
        assert x is not None
        assert type_text(x) == text
    last = last_node("(float x) => (float y) { a = vendor.F(x) y = vendor.F(a) }", 21).input(0)
    assert last is not None
    assert type_text(last) is None
