"""Every row of the table of opset forms: written in an old form, run, and read back."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

from tiered.graph import Model, Node
from tiered.graph.opset.adapter import NoEquivalentForm, contents
from tiered.graph.opset.adapters import CHANGES
from tiered.graph.opset.newest_form import (
    has_newest_form,
    newest_attribute,
    newest_form,
    operand_index,
    operands_of,
    to_model_form,
)
from tiered.runtime import Session
from tiered.support.errors import ModelError

NEW = 21
X = np.array([[[1.5, -2.0, 0.0], [-0.0, np.inf, 7.0]]], np.float32)
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


class Case(NamedTuple):
    """An operator in its newest form, and opsets that say it in older ones."""

    op: str
    versions: Sequence[int]
    operands: Sequence[Any]
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1


def ints(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


def floats(*numbers: float) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.float32)


def scalar(number: float) -> np.ndarray[Any, Any]:
    return np.array(number, np.float32)


REDUCE = [op for op in CHANGES if op.startswith("Reduce") and op != "ReduceSum"]

CASES = [
    Case("ArgMax", (7, 11, 12, 13), [ROWS], {"axis": -1, "keepdims": 0}),
    Case("ArgMin", (7, 11), [ROWS], {"axis": 1}),
    Case(
        "BatchNormalization",
        (7, 9, 14, 15),
        [IMAGE, floats(2), floats(1), floats(3), floats(4)],
        {"epsilon": 0.5},
    ),
    Case("Cast", (7, 9, 13, 19), [ROWS], {"to": 7}),
    Case("Clip", (7, 11, 13), [X, scalar(-1), scalar(2)]),
    Case("Clip", (7, 11, 13), [X, None, scalar(2)]),
    Case("Clip", (7, 11, 13), [X]),
    Case("Concat", (7, 11, 13), [ROWS, ROWS], {"axis": -1}),
    Case("Dropout", (7, 10, 12, 13), [ROWS, scalar(0.25)]),
    Case("Dropout", (7, 10, 12), [ROWS, scalar(0.25), np.array(False)]),
    Case("Flatten", (7, 9, 11), [X], {"axis": -1}),
    Case("Gather", (7, 11), [ROWS, ints(1, 0)], {"axis": -1}),
    Case("Gemm", (7, 9, 11, 13), [ROWS, ROWS.T.copy(), floats(1, 2)], {"alpha": 0.5}),
    Case("Gemm", (11, 13), [ROWS, ROWS.T.copy()]),
    Case("Hardmax", (7, 11, 13), [ROWS], {"axis": -1}),
    Case("LogSoftmax", (7, 11, 13), [ROWS], {"axis": -1}),
    Case("Max", (7, 8), [ROWS, ROWS]),
    Case("Mean", (7, 8), [ROWS, ROWS]),
    Case("Min", (7, 8), [ROWS, ROWS]),
    Case("Pad", (7, 11, 13, 18), [ROWS, ints(0, 1, 1, 0), scalar(9)]),
    Case("Pad", (7, 11, 18), [ROWS, ints(0, 1, 1, 0)], {"mode": "reflect"}),
    Case("Pad", (7, 11, 13, 18), [ROWS, ints(1, 2), scalar(9), ints(-1)]),
    Case("QuantizeLinear", (10, 13), [ROWS, scalar(0.5), np.array(3, np.uint8)]),
    Case("DequantizeLinear", (10, 13), [ROWS.astype(np.uint8), scalar(0.5)]),
    *(Case(op, (7, 11, 13, 18), [ROWS + 1, ints(-1)], {"keepdims": 0}) for op in REDUCE),
    *(Case(op, (7, 13, 18), [ROWS + 1]) for op in REDUCE),
    Case("ReduceSum", (7, 11, 13), [ROWS, ints(0, -1)]),
    Case("ReduceSum", (7, 11, 13), [ROWS, ints(0)], {"noop_with_empty_axes": 1}),
    Case("ReduceSum", (7, 11, 13), [ROWS]),
    Case("Reshape", (7, 13, 14), [ROWS, ints(3, -1)], {"allowzero": 1}),
    Case("Reshape", (7, 13, 14), [ROWS, ints(0, -1)]),
    Case(
        "Resize",
        (10, 11, 13, 18, 19),
        [IMAGE, None, floats(1, 1, 2, 2)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    Case(
        "Resize",
        (10, 11, 13),
        [IMAGE, None, floats(1, 1, 0.5, 0.5)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"},
    ),
    Case(
        "Resize",
        (10, 11, 13),
        [IMAGE, None, floats(1, 1, 2, 1.5)],
        {"coordinate_transformation_mode": "asymmetric", "mode": "linear"},
    ),
    Case("Resize", (11, 13, 18), [IMAGE, None, None, ints(1, 1, 3, 5)], {"mode": "cubic"}),
    Case(
        "RoiAlign",
        (10, 16),
        [IMAGE, floats(0, 0, 3, 3).reshape(1, 4), ints(0)],
        {
            "coordinate_transformation_mode": "output_half_pixel",
            "output_height": 2,
            "output_width": 2,
        },
    ),
    Case("GridSample", (16, 20), [IMAGE, np.zeros((1, 2, 2, 2), np.float32)], {"mode": "cubic"}),
    Case("GridSample", (16, 20), [IMAGE, np.zeros((1, 2, 2, 2), np.float32)]),
    Case("DFT", (17, 20), [IMAGE.reshape(1, 16, 1), None, np.array(1)]),
    Case("ScatterND", (11, 13, 16, 18), [ROWS, ints(1).reshape(1, 1), floats(7, 8, 9)[None]]),
    Case(
        "ScatterElements",
        (16, 18),
        [ROWS, ints(1, 0, 1)[None], floats(7, 8, 9)[None]],
        {"reduction": "add"},
    ),
    Case("Slice", (7, 10, 11, 13), [ROWS, ints(0, 1), ints(1, 1 << 40)]),
    Case("Slice", (7, 10, 11, 13), [ROWS, ints(-2), ints(3), ints(1), ints(1)]),
    Case("Slice", (10, 11, 13), [ROWS, ints(2), ints(-9), ints(1), ints(-2)]),
    Case("Softmax", (7, 11, 13), [ROWS], {"axis": 1}),
    Case("Softmax", (7, 11, 13), [IMAGE[:, :, :, :1]], {"axis": 2}),
    Case("Split", (7, 11, 13, 18), [ROWS, ints(1, 2)], {"axis": -1}, outputs=2),
    Case("Split", (7, 11, 13, 18), [ROWS], {"num_outputs": 2}, outputs=2),
    Case("Split", (7, 11, 13, 18), [ROWS], {"axis": 1, "num_outputs": 2}, outputs=2),
    Case("Squeeze", (7, 11, 13, 21), [X, ints(0)]),
    Case("Squeeze", (7, 11, 13), [X, ints(-3)]),
    Case("Squeeze", (7, 11, 13), [X]),
    Case("Sum", (7, 8), [ROWS, ROWS]),
    Case("TopK", (7, 10, 11), [ROWS, ints(2)], {"axis": -1}, outputs=2),
    Case("Unsqueeze", (7, 11, 13, 21), [ROWS, ints(-1, 0)]),
    # Not in the table: differences between the schemas of the two opsets.
    Case("MaxPool", (7, 8, 10, 12), [IMAGE], {"kernel_shape": [2, 2], "ceil_mode": 0}),
    Case("Shape", (7, 13, 15), [ROWS], {"start": 0}),
    Case("DepthToSpace", (7, 11), [np.zeros((1, 4, 1, 1), np.float32)], {"blocksize": 2}),
]  # fmt: skip


def built(case: Case, version: int) -> tuple[Model, Node]:
    """Return a model at an opset with the operator of a case; the first operand is an input."""
    first = np.asarray(case.operands[0])
    info = onnx.helper.make_tensor_value_info(
        "x", onnx.helper.np_dtype_to_tensor_dtype(first.dtype), first.shape
    )
    proto = onnx.helper.make_model(
        onnx.helper.make_graph([], "g", [info], []),
        ir_version=8,
        opset_imports=[onnx.helper.make_opsetid("", version)],
    )
    model = Model.from_proto(proto)
    graph = model.main
    build = getattr(graph.op, case.op)
    values = build(graph.inputs[0], *case.operands[1:], outputs=case.outputs, **case.attributes)
    for value in values if case.outputs > 1 else [values]:
        graph.add_output(value)
    node = graph.outputs[0].producer
    assert node is not None
    return model, node


def run(model: Model, feed: Any) -> dict[str, Any]:
    proto = model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    return Session(proto).run({"x": feed})


def identity(case: Case) -> str:
    return f"{case.op}-{len([o for o in case.operands if o is not None])}"


EACH = [
    pytest.param(case, version, id=f"{identity(case)}-{version}-{number}")
    for number, case in enumerate(CASES)
    for version in case.versions
]


@pytest.mark.parametrize(("case", "version"), EACH)
def test_the_written_form_computes_the_same_as_the_newest_form(case: Case, version: int) -> None:
    old, new = (run(built(case, at)[0], case.operands[0]) for at in (version, NEW))
    for one, other in zip(old.values(), new.values(), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("case", "version"), EACH)
def test_a_node_read_in_the_newest_form_computes_the_same(case: Case, version: int) -> None:
    model, node = built(case, version)
    assert has_newest_form(node)
    form = newest_form(node)
    attributes = node.attributes if form is None else form.attributes
    operands = [value and contents(value) for value in operands_of(node)[1:]]
    read = Case(case.op, (), [case.operands[0], *operands], attributes, case.outputs)
    old, new = run(model, case.operands[0]), run(built(read, NEW)[0], case.operands[0])
    for one, other in zip(old.values(), new.values(), strict=True):
        assert one.tobytes() == other.tobytes()


def reads(text: str, opset: int) -> Node:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
    return Model.from_proto(proto).main.nodes[-1]


@pytest.mark.parametrize(
    ("text", "opset", "axis"),
    [
        ("(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", 11, -1),
        ("(float[2,3,1,1] x) => (float[2,3,1,1] y) { y = Softmax(x) }", 11, 1),
        ("(float[2,3,N] x) => (float[2,3,N] y) { y = LogSoftmax<axis=2>(x) }", 7, -1),
        ("(float[2,1,N] x) => (float[2,1,N] y) { y = Hardmax(x) }", 12, 2),
        ("(float x) => (float y) { y = Softmax<axis=-1>(x) }", 11, -1),
        ("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=0>(x) }", 13, 0),
    ],
)
def test_a_flattening_softmax_reads_as_one_axis_where_one_counts(
    text: str, opset: int, axis: int
) -> None:
    assert newest_attribute(reads(text, opset), "axis") == axis


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }", 11),
        ("(float[N,M,1,K] x) => (float[N,M,1,K] y) { y = Softmax(x) }", 11),
        ("(float x) => (float y) { h = Identity(x) y = LogSoftmax<axis=1>(h) }", 7),
        ("(float[2,3] x, float[2,3] s) => (float[2,3] y)"
         " { y = BatchNormalization<spatial=0>(x, s, s, s, s) }", 7),
        ("(float[2,3] x, float[3] s) => (float[2,3] y)"
         " { y, a, b, c, d = BatchNormalization(x, s, s, s, s) }", 9),
        ("(float[2,3] x) => (float[2,3] y) { y, mask = Dropout(x) }", 7),
        ("(double[2] x) => (double[2] y) { y = Clip<min=0.0>(x) }", 10),
        ("(float[1,1,4,4] x, float[4] s) => (float y) { y = Resize(x, s) }", 10),
        ("(float[1,1,4,4] x) => (float y) <float[4] s = {1, 1, 2, 0.5}> { y = Resize(x, s) }", 10),
        ("(float[1,4,2] x, float[2] s) => (float y)"
         " { y = GroupNormalization<num_groups=2>(x, s, s) }", 18),
        ("(float[2,3] x) => (float y) { y = Scan<num_scan_inputs=1,"
         " body=b (float[3] v) => (float[3] w) { w = Neg(v) }>(, x) }", 8),
    ],
)  # fmt: skip
def test_a_node_without_an_equivalent_has_no_newest_form(text: str, opset: int) -> None:
    node = reads(text, opset)
    assert not has_newest_form(node)
    assert tuple(operands_of(node)) == node.inputs


REFUSED = [
    ("Softmax", 11, [X], {"axis": 1}, "would flatten"),
    ("ReduceSum", 11, [ROWS], {"noop_with_empty_axes": 1}, "reduces all axes"),
    ("ReduceMax", 13, [ROWS, ints()], {"noop_with_empty_axes": 1}, "reduces all axes"),
    ("Reshape", 13, [ROWS, ints(0, 2)], {"allowzero": 1}, "copies a dim for a 0"),
    ("Gemm", 9, [ROWS, ROWS.T.copy()], {}, "has 3 to 3 operands"),
    ("Slice", 9, [ROWS, ints(0), ints(2), ints(0), ints(2)], {}, "has no operand 4"),
    ("Dropout", 11, [ROWS, scalar(0.5), np.array(True)], {}, "has no operand 2"),
    ("BatchNormalization", 13, [IMAGE, *[floats(1)] * 4], {"training_mode": 1}, "cannot train"),
    ("Max", 7, [ROWS, ROWS[:1]], {}, "does not broadcast"),
    ("Clip", 10, [ROWS.astype(np.float64)], {}, "without min has that of a float32"),
    ("Max", 11, [ROWS.astype(np.int64), ROWS.astype(np.int64)], {}, "does not take tensor.int64"),
    ("Pad", 18, [ROWS, ints(1, 1, 1, 1)], {"mode": "wrap"}, "has no mode='wrap'"),
    ("TopK", 10, [ROWS, ints(1)], {"largest": 0}, "has no attribute 'largest'"),
    ("TopK", 9, [ROWS, ints(1, 2)], {}, "needs one number as k before opset 10"),
    ("ArgMax", 11, [ROWS], {"select_last_index": 1}, "has no attribute 'select_last_index'"),
    ("Cast", 18, [ROWS], {"to": 17, "saturate": 0}, "has no attribute 'saturate'"),
    ("Resize", 10, [IMAGE, None, floats(1, 1, 2, 2)], {}, "is asymmetric"),
    ("Resize", 10, [IMAGE, None, None, ints(1, 1, 2, 2)], {}, "takes scales alone"),
    ("RoiAlign", 10, [IMAGE, floats(0, 0, 1, 1)[None], ints(0)], {}, "means coordinate"),
    ("QuantizeLinear", 10, [ROWS, floats(1, 2)], {"axis": 0}, "has one scale"),
    ("ScatterND", 16, [ROWS, ints(1)[None], ROWS[:1]], {"reduction": "max"}, "has no reduction"),
    ("Gelu", 19, [ROWS], {}, "has no Gelu"),
    ("Upsample", 13, [IMAGE, floats(1, 1, 2, 2)], {}, "has no Upsample"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "version", "operands", "attributes", "reason"), REFUSED)
def test_a_node_without_an_equivalent_in_the_opset_is_an_error(
    op: str, version: int, operands: list[Any], attributes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(NoEquivalentForm, match=reason):
        built(Case(op, (), operands, attributes), version)


def test_an_operand_that_must_be_an_attribute_must_be_constant() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 11]> '
        "g (float[2,1] x, int64[1] axes) => (float[2,1] y) { y = Neg(x) }"
    )
    graph = Model.from_proto(proto).main
    with pytest.raises(NoEquivalentForm, match="needs a constant axes before opset 13"):
        graph.op.Squeeze(*graph.inputs)


def test_constants_of_every_form_read_alike_and_are_written_as_tensors_before_12() -> None:
    node = reads("(float x) => (int64[2] y) { y = Constant<value_ints=[1,2]>() }", 12)
    assert node.output.const is not None
    assert node.output.const.tolist() == [1, 2]
    old = reads("(float x) => (float y) { y = Neg(x) }", 11).owner
    forms: list[tuple[dict[str, Any], Any]] = [
        ({"value_ints": [1, 2]}, [1, 2]),
        ({"value_int": 3}, 3),
        ({"value_floats": [0.5]}, [0.5]),
        ({"value_float": 1.5}, 1.5),
        ({"value_string": "a"}, "a"),
        ({"value_strings": ["a"]}, ["a"]),
    ]
    for form, expected in forms:
        value = old.op.Constant(**form)
        assert value.producer is not None
        assert set(value.producer.attributes) == {"value"}
        assert value.const is not None
        assert value.const.tolist() == expected
    with pytest.raises(NoEquivalentForm, match="sparse_value"):
        reads("(float x) => (float y) { y = Neg(x) }", 9).owner.op.Constant(sparse_value=0)


def test_a_reference_reads_as_an_operand_that_is_no_constant() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 11, "local" : 1]> '
        "g (float[1,2] x) => (float[2] y) { y = local.f<axes=[0]>(x) }"
        '<domain: "local", opset_import: ["" : 11]> f <axes> (x) => (y) '
        "{ y = Squeeze<axes: ints = @axes>(x) }"
    )
    operand = Model.from_proto(proto).functions[0].nodes[0].operand("axes")
    assert operand is not None
    assert operand.const is None


def test_before_opset_7_a_built_node_says_that_it_broadcasts() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 6]> g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }'
    )
    graph = Model.from_proto(proto).main
    x, one = graph.inputs[0], np.array(1, np.float32)
    made = [graph.op.Add(x, other).producer for other in (one, x)]
    assert [node and node.attributes for node in made] == [{"broadcast": 1}, {}]
    with pytest.raises(NoEquivalentForm, match="broadcasts more than the last dims"):
        graph.op.Div(one, x)


def test_what_is_written_of_attributes_and_operands_is_what_is_not_the_default() -> None:
    graph = reads("(float[2,3] x) => (float[2,3] y) { y = vendor.Add<k=3>(x, x) }", 6).owner
    (x,) = graph.inputs
    for op_type, domain, written, expected in (
        ("Add", "vendor", {}, {}), ("Nobody", "vendor", {"a": 1}, {"a": 1}), ("Add", "", {}, {}),
        ("Elu", "", {"alpha": 1}, {}), ("Elu", "", {"alpha": 2}, {"alpha": 2}),
        ("Elu", "", {"alpha": -0.0}, {"alpha": -0.0}), ("Softmax", "", {"axis": None}, {}),
        ("Conv", "", {"group": 1, "strides": [1, 2]}, {"strides": [1, 2]}),
    ):  # fmt: skip
        operands = [x, x, None] if op_type in ("Add", "Conv") else [x]
        made = to_model_form(graph, op_type, domain, operands, written, 1)
        assert made == (operands[:2], expected), op_type
    arrays = np.array([1, 2])  # of no default, as which an array has no truth value
    assert to_model_form(graph, "Conv", "", [x, x], {"strides": arrays})[1] == {"strides": arrays}
    (node,) = graph.nodes
    assert (newest_attribute(node, "k"), newest_attribute(node, "other")) == (3, None)
    for of, name, said in (
        (node, "A", "Add has no operand 'A'; it has none"),
        (graph.op.Add(x, x).producer, "C", "Add has no operand 'C'; it has A, B"),
    ):
        assert of is not None
        with pytest.raises(ModelError) as caught:
            operand_index(of, name)
        assert str(caught.value) == said
