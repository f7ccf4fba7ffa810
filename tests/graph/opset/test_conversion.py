"""The tables of forms cover every change of the schemas that a conversion could get wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

import onnx
import pytest
from onnx.defs import OpSchema

from tests.graph.opset.texts import form_text
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
        ("y = Relu(x)", "Relu", 13, [0, 0], "Relu-13 takes 1 operand"),
        ("y = Relu(x)", "Relu", 13, [None], "Relu-13 needs the operand 'X'"),
        ("y = Gemm(x, x)", "Gemm", 11, [0], "Gemm-11 takes 2 to 3 operands"),
        ("y = Gemm(x, x)", "Gemm", 11, [0, 0, None], None),
        ("y, z = Split(x)", "Abs", 13, [0], "Abs-13 has at most 1 output"),
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


STOCK = """(float[2,3] x, float[1,1,4,4] im, int64[1] i, int64[2] inds, bool c, seq(float[2]) s, optional(float[2]) o, optional(seq(int64[2])) os, float16[2,3] h, string[2] t) => (float[A] last)
    <float[4] up = {1,1,2,2}, int64[1] one = {1}, float[2] w = {1,2}, float half = {0.5}> { u = vendor.F(x) us = vendor.F(s)"""
FORMS: dict[tuple[str, int, int], str] = {
    ('y = Gelu(x)', 13, 20): 'Gelu is unknown to opset 13 (opset 13)',
    ('y = Unheard(x)', 13, 20): 'as it is',
    ('y = Relu(x)', 14, 20): 'as it is',
    ('y = Relu(x)', 13, 14): 'Relu {} x',
    ('y = Relu<k=1>(x)', 13, 14): "Relu {'k': 1} x",
    ('y = Gelu(x)', 20, 19): 'opset 19 has no Gelu, which opset 20 brought',
    ('y = Scatter(x, one, x)', 9, 13): 'ScatterElements {} x one x',
    ('y = ScatterElements(x, one, x)', 13, 9): 'Scatter {} x one x',
    ('y = ScatterElements(x, one, x)', 13, 8): 'opset 8 has no Scatter, which opset 9 brought',
    ('y = Upsample<scales=[1.0,1.0,2.0,2.0]>(im)', 7, 13): "Resize {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'} im - [1.0, 1.0, 2.0, 2.0]",
    ('y = Resize(im, up)', 10, 7): "Upsample {'scales': [1.0, 1.0, 2.0, 2.0]} im",
    ('y = Resize<mode="linear",coordinate_transformation_mode="asymmetric">(im, , up)', 13, 7): "Upsample {'mode': 'linear', 'scales': [1.0, 1.0, 2.0, 2.0]} im",
    ('y = Resize<mode="linear",coordinate_transformation_mode="asymmetric">(im, , up)', 19, 8): "Upsample {'mode': 'linear', 'scales': [1.0, 1.0, 2.0, 2.0]} im",
    ('y = ArgMax<select_last_index=0>(x)', 12, 11): 'ArgMax {} x',
    ('y = ArgMax<select_last_index=1>(x)', 12, 11): "ArgMax has no attribute 'select_last_index' (opset 11)",
    ('y = Cast<to=1,saturate=1>(h)', 19, 18): "Cast {'to': 1} h",
    ('y = Cast<to=1,saturate=1>(h)', 24, 13): "Cast {'to': 1} h",
    ('y = Cast<to=1,round_mode="up">(h)', 24, 23): "Cast {'to': 1} h",
    ('y = Concat(x, x)', 1, 4): "Concat {'axis': 1} x x",
    ('y = Concat<axis=0>(x, x)', 3, 4): "Concat {'axis': 0} x x",
    ('y = Softmax<axis=1>(x)', 13, 6): "Softmax {'axis': 1} x",
    ('y, k = MaxPool<kernel_shape=[2,2]>(im)', 8, 7): 'MaxPool-1 has at most 1 output',
    ('y = MaxPool<kernel_shape=[2,2]>(im)', 8, 7): "MaxPool {'kernel_shape': (2, 2)} im",
    ('y = Pow(x, i)', 12, 11): "Pow-7 takes no tensor(int64) as 'Y'",
    ('y = Pow(x, x)', 12, 11): 'Pow {} x x',
    ('y = Identity(s)', 16, 13): "Identity-13 takes no seq(tensor(float)) as 'input'",
    ('y = Identity(s)', 14, 13): "Identity-13 takes no seq(tensor(float)) as 'input'",
    ('y = Identity(o)', 16, 14): "Identity-14 takes no optional(tensor(float)) as 'input'",
    ('y = Identity(os)', 16, 14): "Identity-14 takes no optional(seq(tensor(int64))) as 'input'",
    ('y = Identity(t)', 16, 14): 'Identity {} t',
    ('y = Identity(u)', 16, 13): "Identity-13 takes no optional(seq(tensor(bool))) as 'input', whose type is not known",
    ('y = Identity(us)', 16, 13): "Identity-13 takes no optional(seq(tensor(bool))) as 'input', whose type is not known",
    ('y = Neg(u)', 13, 6): "Neg-6 takes no tensor(bfloat16) as 'X', whose type is not known",
    ('y = Neg(h)', 13, 6): 'Neg {} h',
    ('y = Neg(i)', 13, 6): 'Neg {} i',
    ('y = Dropout(x)', 9, 10): 'Dropout {} x',
    ('y, m = Dropout(x)', 9, 10): 'Dropout returns a mask that is not bool (opset 9)',
    ('y = Gemm(x, x)', 11, 9): 'Gemm {} x x -0.0',
    ('y = Max(i, i)', 12, 11): "Max-8 takes no tensor(int64) as 'data_0'",
    ('y = Max(i, i)', 11, 8): 'as it is',
    ('y = Where(c, x, x)', 16, 9): 'Where {} c x x',
    ('y = Where(c, u, x)', 16, 9): "Where-9 takes no tensor(bfloat16) as 'X', whose type is not known",
    ('y = LpPool<kernel_shape=[2,2], p=2>(im)', 11, 1): "LpPool {'kernel_shape': (2, 2), 'p': 2.0} im",
    ('y = BatchNormalization(im, x, x, x, x)', 14, 6): "BatchNormalization {'is_test': 1} im x x x x",
    ('y = Clip(x, half)', 13, 6): "Clip {'min': 0.5} x",
    ('y = Clip(x, half)', 13, 5): "Clip {'min': 0.5} x",
    ('y = Reshape(x, inds)', 5, 4): 'Reshape needs a constant shape before opset 5 (opset 4)',
    ('y = Reshape(x, one)', 5, 4): "Reshape {'shape': [1]} x",
    ('y = Equal(h, h)', 11, 7): "Equal-7 takes no tensor(float16) as 'A'",
    ('y = Equal(c, c)', 11, 7): 'Equal {} c c',
    ('y = Add<broadcast=1>(x, w)', 6, 7): 'Add {} x w',
    ('y = Add(x, w)', 7, 6): 'Add broadcasts more than the last dims of its first operand (opset 6)',
    ('y = Add<axis=0, broadcast=1>(x, w)', 6, 13): 'Add broadcasts along axis 0 (opset 6)',
    ('y = Sum(x, x)', 8, 6): 'Sum {} x x',
    ('y = Mean(x, x)', 8, 1): 'Mean {} x x',
    ('y = Cast<to=1>(h)', 6, 5): "Cast {'to': 'FLOAT'} h",
    ('y = Cast<to=10>(x)', 6, 1): "Cast {'to': 'FLOAT16'} x",
    ('y = Relu(x)', 13, 13): 'as it is',
    ('y = Cast<to=1,odd=1>(h)', 19, 18): "Cast {'to': 1, 'odd': 1} h",
    ('y = LpPool<kernel_shape=[2,2],dilations=[1,1]>(im)', 18, 11): "LpPool {'kernel_shape': (2, 2)} im",
    ('y = LpPool<kernel_shape=[2,2],dilations=[1,2]>(im)', 18, 11): "LpPool has no attribute 'dilations' (opset 11)",
    ('y = LpPool<kernel_shape=[2,2],ceil_mode=0>(im)', 18, 11): "LpPool {'kernel_shape': (2, 2)} im",
    ('y = MaxPool<kernel_shape=[2,2],dilations=[1,1]>(im)', 10, 8): "MaxPool {'kernel_shape': (2, 2)} im",
    ('y = MaxPool<kernel_shape=[2,2],storage_order=0>(im)', 10, 7): "MaxPool {'kernel_shape': (2, 2)} im",
    ('y = AveragePool<kernel_shape=[2,2],ceil_mode=1>(im)', 10, 7): "AveragePool has no attribute 'ceil_mode' (opset 7)",
    ('y = AveragePool<kernel_shape=[2,2],count_include_pad=0>(im)', 10, 1): "AveragePool {'kernel_shape': (2, 2)} im",
    ('y = Upsample(im, up)', 9, 10): 'Resize {} im up',
    ('y = Upsample(im, up)', 10, 11): 'as it is',
    ('y = Scatter(x, one, x)', 11, 9): 'Scatter {} x one x',
    ('y = Scatter(x, one, x)', 9, 10): 'as it is',
    ('y = Gelu(x)', 21, 13): 'opset 13 has no Gelu, which opset 20 brought',
}  # fmt: skip


def test_forms_are_taken_through_all_opsets_between_two() -> None:
    for (call, before, after), expected in FORMS.items():
        assert form_text(STOCK, call, before, after) == expected, (call, before, after)


def test_attributes_that_a_call_decides_cannot_change() -> None:
    for call, before, after, expected in (
        ("Squeeze<axes: ints = @a>(v)", 11, 13, "Squeeze cannot change: attribute 'axes' is a function parameter (opset 11)"),
        ("LeakyRelu<alpha: float = @a>(v)", 6, 16, None), ("Squeeze<axes: ints = @a>(v)", 11, 12, None),
    ):  # fmt: skip
        text = f"""<ir_version: 8, opset_import: ["": {before}, "own": 1]> g (float[1,2] x) => (float y) {{
            y = own.f<a = 1>(x) }} <domain: "own", opset_import: ["": {before}]> f <a> (v) => (w) {{ w = {call} }}"""
        (node,) = Model.from_proto(parse(text)).functions[0].nodes
        if expected is None:
            form_between(node, before, after)
            continue
        with pytest.raises(NoEquivalentForm) as caught:
            form_between(node, before, after)
        assert str(caught.value) == expected
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=13))
    (node,) = model.main.nodes
    model.main.set_input(node, 0, None)
    with pytest.raises(NoEquivalentForm, match="Relu-14 needs the operand 'X'"):
        form_between(node, 13, 14)


GIVEN: dict[str, object] = {
    "num_groups": 2, "scales": [1.0, 1.0, 2.0, 2.0], "output_dtype": 3, "axis": 0, "num_outputs": 2,
    "broadcast": 1, "to": 1, "height_scale": 2.0, "width_scale": 3.0,
}  # fmt: skip


def _without_operands(op_type: str, version: int, change: Callable[[OperatorForm], None]) -> str:
    form = OperatorForm(op_type, version, [], dict(GIVEN), 1)
    try:
        change(form)
    except NoEquivalentForm as error:
        return str(error)
    new = {name: value for name, value in form.attributes.items() if GIVEN.get(name) != value}
    gone = sorted(GIVEN.keys() - form.attributes.keys())
    if (form.op_type, new, gone, form.operands) == (op_type, {}, [], []):
        return ""
    return f"{form.op_type} {new} without {gone}, {len(form.operands)} operands"


def test_rows_decline_a_form_that_lacks_the_operands_they_ask_for() -> None:
    found = []
    for table in (CHANGES, EARLIEST, MEANINGS, INSTEAD):
        for op_type, rows in table.items():
            for row in rows:
                for way, change in (("read", row.read), ("write", row.write)):
                    said = _without_operands(op_type, row.since - 1, change)
                    found += [f"{op_type} {row.since} {way}: {said}"] if said else []
    assert found == WITHOUT_OPERANDS.splitlines()


WITHOUT_OPERANDS = """\
Clip 11 read: Clip without min has that of a float32 (opset 10)
Clip 11 write: Clip without min has that of a float32 (opset 10)
DFT 20 read: DFT {} without [], 3 operands
DFT 20 write: DFT {} without [], 3 operands
DFT 20 read: DFT {} without ['axis'], 3 operands
GridSample 20 read: GridSample {'mode': 'linear'} without [], 0 operands
GridSample 20 write: GridSample {'mode': 'bilinear'} without [], 0 operands
GroupNormalization 21 read: GroupNormalization has a scale for each group (opset 20)
GroupNormalization 21 write: GroupNormalization has a scale for each group (opset 20)
Hardmax 13 read: Hardmax flattens, and the rank is not known (opset 12)
Hardmax 13 write: Hardmax needs a known rank (opset 12)
LogSoftmax 13 read: LogSoftmax flattens, and the rank is not known (opset 12)
LogSoftmax 13 write: LogSoftmax needs a known rank (opset 12)
QuantizeLinear 13 write: QuantizeLinear has one scale (opset 12)
DequantizeLinear 13 write: DequantizeLinear has one scale (opset 12)
Resize 13 write: Resize {} without [], 3 operands
Resize 11 read: Resize rounds up where it shrinks and down where it grows (opset 10)
Resize 11 write: Resize takes scales alone (opset 10)
RoiAlign 16 read: RoiAlign {'coordinate_transformation_mode': 'output_half_pixel'} without [], 0 operands
RoiAlign 16 write: RoiAlign means coordinate_transformation_mode='output_half_pixel' before opset 16 (opset 15)
Scan 9 read: Scan has a batch (opset 8)
Scan 9 write: Scan has a batch (opset 8)
Softmax 13 read: Softmax flattens, and the rank is not known (opset 12)
Softmax 13 write: Softmax needs a known rank (opset 12)
Split 18 read: Split {'num_outputs': 1} without [], 0 operands
Split 18 write: Split needs a known size to split evenly (opset 17)
Upsample 9 read: Upsample {} without ['scales'], 2 operands
Add 7 read: Add broadcasts along an axis, and a rank is not known (opset 6)
Add 7 write: Add broadcasts, and a shape is not known (opset 6)
And 7 read: And broadcasts along an axis, and a rank is not known (opset 6)
And 7 write: And broadcasts, and a shape is not known (opset 6)
BatchNormalization 7 read: BatchNormalization trains without is_test=1 (opset 6)
BatchNormalization 7 write: BatchNormalization {'is_test': 1} without [], 0 operands
Cast 6 read: Cast casts to 1, which is no name of a dtype (opset 5)
Cast 6 write: Cast {'to': 'FLOAT'} without [], 0 operands
Clip 6 read: Clip without min has that of its dtype (opset 5)
Clip 6 write: Clip without min has that of its dtype (opset 5)
Div 7 read: Div broadcasts along an axis, and a rank is not known (opset 6)
Div 7 write: Div broadcasts, and a shape is not known (opset 6)
Dropout 7 read: Dropout trains without is_test=1 (opset 6)
Dropout 7 write: Dropout {'is_test': 1} without [], 0 operands
Equal 7 read: Equal broadcasts along an axis, and a rank is not known (opset 6)
Equal 7 write: Equal broadcasts, and a shape is not known (opset 6)
GRU 7 write: GRU {'output_sequence': 1} without [], 0 operands
GRU 3 write: GRU {'direction': 'forward'} without [], 0 operands
Gemm 7 read: Gemm broadcasts along an axis, and a rank is not known (opset 6)
Gemm 7 write: Gemm needs a bias of a known rank (opset 6)
Greater 7 read: Greater broadcasts along an axis, and a rank is not known (opset 6)
Greater 7 write: Greater broadcasts, and a shape is not known (opset 6)
LSTM 7 write: LSTM {'output_sequence': 1} without [], 0 operands
Less 7 read: Less broadcasts along an axis, and a rank is not known (opset 6)
Less 7 write: Less broadcasts, and a shape is not known (opset 6)
Mul 7 read: Mul broadcasts along an axis, and a rank is not known (opset 6)
Mul 7 write: Mul broadcasts, and a shape is not known (opset 6)
Or 7 read: Or broadcasts along an axis, and a rank is not known (opset 6)
Or 7 write: Or broadcasts, and a shape is not known (opset 6)
PRelu 7 read: PRelu has a slope for each channel, and its rank is not known (opset 6)
PRelu 7 write: PRelu has a slope for each channel before opset 7 (opset 6)
Pow 7 read: Pow broadcasts along an axis, and a rank is not known (opset 6)
Pow 7 write: Pow broadcasts, and a shape is not known (opset 6)
RNN 7 write: RNN {'output_sequence': 1} without [], 0 operands
Selu 6 read: Selu {'alpha': 1.6732} without [], 0 operands
Selu 6 write: Selu {'alpha': 1.6732631921768188} without [], 0 operands
Selu 6 read: Selu {'gamma': 1.0507} without [], 0 operands
Selu 6 write: Selu {'gamma': 1.0507010221481323} without [], 0 operands
Sub 7 read: Sub broadcasts along an axis, and a rank is not known (opset 6)
Sub 7 write: Sub broadcasts, and a shape is not known (opset 6)
Tile 6 read: Tile needs constant tiles and axis, and a known rank (opset 5)
Tile 6 write: Tile repeats along one axis (opset 5)
Upsample 7 read: Upsample {'scales': [1.0, 1.0, 2.0, 3.0]} without ['height_scale', 'width_scale'], 0 operands
Upsample 7 write: Upsample {'width_scale': 2.0} without ['scales'], 0 operands
Xor 7 read: Xor broadcasts along an axis, and a rank is not known (opset 6)
Xor 7 write: Xor broadcasts, and a shape is not known (opset 6)
BitShift 28 write: BitShift defines shifts by all bits since opset 28 (opset 27)
Clip 11 read: Clip needs a known dtype for its new operands (opset 10)
Gemm 11 write: Gemm needs a bias, and the dtype is not known (opset 10)
GridSample 20 write: GridSample samples 4-D images alone before opset 20 (opset 19)
Mod 28 write: Mod rounds the quotient of floats down since opset 28 (opset 27)
Pad 11 read: Pad needs a known dtype for its new operands (opset 10)
QuantizeLinear 21 write: QuantizeLinear needs a zero point for its dtype, and the scale's shape is not known (opset 20)
Resize 11 read: Resize {} without [], 2 operands
Resize 10 write: Resize is Upsample before opset 10 for constant scales from 1 on (opset 9)
Scatter 11 read: ScatterElements {} without [], 0 operands
ScatterElements 11 write: Scatter {} without [], 0 operands
Upsample 10 read: Resize {} without [], 0 operands
GroupNormalization 21 read: GroupNormalization needs a constant scale and known channels (opset 20)"""
