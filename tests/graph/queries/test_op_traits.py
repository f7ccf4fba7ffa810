"""The traits of operators are those of onnx's schemas, and of what the operators compute."""

import numpy as np
import onnx
import pytest
from onnx import defs
from onnx.reference import ReferenceEvaluator

from tiered.graph.queries import op_traits

KIND = defs.OpSchema.AttrType


def computed(op_type: str, *arrays: np.ndarray) -> list[object]:
    """Return what an operator computes of arrays, as lists."""
    names = [f"i{at}" for at in range(len(arrays))]
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, arrays, strict=True)
    ]
    node = onnx.helper.make_node(op_type, names, ["o"])
    output = onnx.helper.make_empty_tensor_value_info("o")
    graph = onnx.helper.make_graph([node], "g", inputs, [output])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    (found,) = ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
    return list(np.asarray(found).tolist())


def operands(op_type: str) -> tuple[np.ndarray, np.ndarray]:
    if op_type in op_traits.LOGIC:
        return np.array([True, True, False]), np.array([True, False, False])
    if op_type in op_traits.BITWISE:
        return np.array([5, 3, 0]), np.array([6, 3, 1])
    return np.array([1.5, -2, 3], np.float32), np.array([1.5, 4, -0.5], np.float32)


@pytest.mark.parametrize("op_type", sorted(op_traits.COMMUTATIVE))
def test_a_commutative_operator_computes_the_same_in_either_order(op_type: str) -> None:
    one, other = operands(op_type)
    assert computed(op_type, one, other) == computed(op_type, other, one)


def test_no_other_operator_of_two_operands_is_commutative_but_xor() -> None:
    others = set(op_traits.BROADCASTING) - op_traits.COMMUTATIVE - {"Where", "PRelu", "BitShift"}
    for op_type in sorted(others):
        one, other = operands(op_type)
        assert computed(op_type, one, other) != computed(op_type, other, one), op_type


def test_operators_with_bodies_are_those_whose_schema_has_graphs() -> None:
    with_graphs = {
        schema.name
        for schema in defs.get_all_schemas()
        if not schema.domain
        and any(each.type in (KIND.GRAPH, KIND.GRAPHS) for each in schema.attributes.values())
    }
    assert with_graphs == op_traits.BODIES


def test_reductions_may_keep_the_dims_and_broadcasting_operators_have_no_axis() -> None:
    for op_type in (*op_traits.REDUCTIONS, *op_traits.ARG_REDUCTIONS):
        assert "keepdims" in defs.get_schema(op_type).attributes
    for op_type in op_traits.BROADCASTING:
        assert "axis" not in defs.get_schema(op_type).attributes
    for op_type in op_traits.SOFTMAXES:
        assert "axis" in defs.get_schema(op_type).attributes


@pytest.mark.parametrize("op_type", sorted(op_traits.MOVES_ELEMENTS - {"Where"}))
def test_what_moves_elements_has_results_of_the_type_of_its_first_operand(op_type: str) -> None:
    schema = defs.get_schema(op_type)
    assert schema.outputs[0].type_str in (schema.inputs[0].type_str, "S")
    (types,) = [
        set(each.allowed_type_strs)
        for each in schema.type_constraints
        if each.type_param_str == schema.inputs[0].type_str
    ]
    assert {"tensor(float)", "tensor(int64)"} <= types


@pytest.mark.parametrize("op_type", sorted({*op_traits.UNARY} - {"Dropout"}))
def test_a_unary_operator_keeps_the_shape(op_type: str) -> None:
    schema = defs.get_schema(op_type)
    assert schema.min_input <= 2
    assert schema.max_output == 1


def test_sets_are_made_of_others() -> None:
    assert {*op_traits.UNARY, *op_traits.BROADCASTING} == op_traits.ELEMENTWISE
    assert not {*op_traits.UNARY} & {*op_traits.BROADCASTING}
    assert op_traits.REARRANGES | op_traits.BLOCKS <= op_traits.MOVES_FIRST
    assert {"Concat", "Pad", "Where"} == op_traits.MOVES_ELEMENTS - op_traits.MOVES_FIRST
    assert {*op_traits.VIEWS} <= op_traits.REARRANGES
    assert op_traits.SELECTS_EXTREMES >= op_traits.MAX_POOLS
    assert op_traits.RANDOM & {*op_traits.UNARY} == {"Dropout"}
    assert op_traits.SAME_AT_ALL_PLACES <= op_traits.ELEMENTWISE
    assert op_traits.RING <= op_traits.ELEMENTWISE


@pytest.mark.parametrize("op_type", sorted(op_traits.RING - {"Neg"}))
def test_of_integers_a_ring_computes_integers(op_type: str) -> None:
    one, other = np.array([3, -4, 5]), np.array([2, 7, -1])
    if op_type == "Sum":
        one, other = one.astype(np.float32), other.astype(np.float32)
    assert all(float(each).is_integer() for each in computed(op_type, one, other))  # type: ignore[arg-type]  # numbers


@pytest.mark.parametrize("op_type", op_traits.VIEWS)
def test_a_view_has_all_elements_in_their_order(op_type: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    more = {"Reshape": [np.array([3, 2])], "Unsqueeze": [np.array([0])]}.get(op_type, [])
    found = np.array(computed(op_type, x, *more))
    assert found.ravel().tolist() == x.ravel().tolist()
