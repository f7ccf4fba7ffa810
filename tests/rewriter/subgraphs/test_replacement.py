"""The nodes that a replacement describes are built, or it is said why they cannot be."""

from typing import Any

import numpy as np
import pytest

from tests.small import named, ops, parsed
from tiered.graph import Model, Value
from tiered.rewriter import Pattern, PatternError, chain, const, op, opt, rest, var
from tiered.rewriter.subgraphs.replacement import Unbuildable, build, check_buildable


def built(
    *outputs: Pattern, dtype: str = "float", **known: object
) -> tuple[Model, tuple[Value, ...]]:
    """Build patterns of x in a model with this input."""
    model = parsed(f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Identity(x) }}")
    values = build(model.main, outputs, {"x": named(model, "x"), **known})
    model.check_view()
    return model, values


def number(value: Value) -> Any:
    assert value.const is not None
    return value.const.tolist()


def test_operators_of_the_pattern_become_nodes() -> None:
    model, (made,) = built(op.Neg(op.Abs(var.x)))
    assert ops(model) == ["Identity", "Abs", "Neg"]
    assert made.producer is not None
    assert made.producer.op_type == "Neg"


def test_an_input_stands_for_itself() -> None:
    model, (made,) = built(var.x)
    assert made is named(model, "x")
    _, (absent,) = built(op.Clip(var.x, opt.low), low=None)
    assert absent.producer is not None
    assert absent.producer.input(1) is None


def test_one_object_is_built_once_and_two_are_two_nodes() -> None:
    shared = op.Abs(var.x)
    model, values = built(op.Add(shared, shared), shared)
    assert ops(model).count("Abs") == 1
    assert values[0].producer is not None
    assert values[0].producer.inputs[1] is values[1]
    assert ops(built(op.Add(op.Abs(var.x), op.Abs(var.x)))[0]).count("Abs") == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_outputs_of_one_node_are_those_of_one_node(order: tuple[int, int]) -> None:
    split = op.Split(var.x, axis=0, num_outputs=2)
    model, values = built(*(split.out(index) for index in order))
    assert ops(model).count("Split") == 1
    assert tuple(value.index for value in values) == order


def test_an_output_alone_has_the_earlier_ones_before_it() -> None:
    _, (made,) = built(op.TopK(var.x, np.array([1])).out(1))
    assert made.producer is not None
    assert (made.index, len(made.producer.outputs)) == (1, 2)


def test_attributes_are_written_or_taken_from_the_match() -> None:
    _, (made,) = built(op.Concat(var.x, var.x, axis=var.at), at=-1)
    assert made.producer is not None
    assert made.producer.attr("axis") == -1
    _, (other,) = built(op("mine").Twist(var.x, angle=3))
    assert other.producer is not None
    assert (other.producer.domain, other.producer.attr("angle")) == ("mine", 3)


@pytest.mark.parametrize(
    ("pattern", "dtype", "place", "expected", "found"),
    [
        (op.Mul(var.x, 2), "int64", 1, 2, np.int64),
        (op.Mul(2.0, var.x), "float16", 0, 2.0, np.float16),
        (op.Mul(var.x, const([1, 2])), "double", 1, [1, 2], np.float64),
        (op.Mul(var.x, const(np.array([3], np.float32))), "float", 1, [3], np.float32),
        (op.Squeeze(var.x, const([0])), "float", 1, [0], np.int64),
        (op.Where(True, var.x, var.x), "float", 0, True, np.bool_),
    ],
)
def test_a_number_has_the_dtype_that_the_operator_demands(
    pattern: Pattern, dtype: str, place: int, expected: object, found: type
) -> None:
    _, (made,) = built(pattern, dtype=dtype)
    assert made.producer is not None
    value = made.producer.inputs[place]
    assert value is not None
    assert value.const is not None
    assert (number(value), value.const.dtype) == (expected, found)


@pytest.mark.parametrize(
    ("pattern", "dtype", "because"),
    [
        (op.Mul(var.x, 0.5), "int64", "0.5, which int64 cannot hold"),
        (op.Mul(var.x, 300), "int8", "300, which int8 cannot hold"),
        (op.Mul(var.x, -1), "uint8", "-1, which uint8 cannot hold"),
        (op.Mul(var.x, float("nan")), "int32", "nan, which int32 cannot hold"),
        (op.Mul(var.x, 1e6), "float16", "1000000.0, which is too large for float16"),
        (op.ReduceMean(var.x, 0.5), "float", "0.5, which int64 cannot hold"),
        (op.Add(1.0, 2.0), "float", "no other operand determines its dtype"),
        (op("mine").Twist(var.x, 1.0), "float", "no other operand determines its dtype"),
    ],
)
def test_a_number_that_does_not_fit_is_not_built(
    pattern: Pattern, dtype: str, because: str
) -> None:
    with pytest.raises(Unbuildable, match=because) as caught:
        built(pattern, dtype=dtype)
    assert because in str(caught.value.reason)


@pytest.mark.parametrize(
    ("output", "because"),
    [
        (op.Abs(var.z), "the replacement reads var.z, which is no input of it"),
        (op.Clip(var.x, opt.z), "the replacement reads opt.z, which is no input of it"),
        (var.z, "the replacement reads var.z"),
        (op.Concat(var.x, axis=...), "leaves attributes open: what should be built?"),
        (op.Concat(var.x, axis=lambda axis: axis == 0), "leaves attributes open"),
        (op.Cast(var.x, to=1, attrs=...), "leaves attributes open"),
        (op.Concat(var.x, axis=var.axis), "reads var.axis, which the pattern does not bind"),
        (op.Abs(var.x) | op.Neg(var.x), "describes many things: what should be built?"),
        (op.Concat(rest.x, axis=0), "describes many things"),
        (op.Abs(chain(op.Cast, var.x)), "describes many things"),
        (op.Clip(var.x, ...), "describes many things"),
        (op.Mul(var.x, const()), "describes many things"),
        (op.Mul(var.x, const(lambda array: True)), "describes many things"),
        (const(0.5), "nothing determines the dtype of const(0.5)"),
    ],
)
def test_a_replacement_determines_what_is_built(output: Pattern, because: str) -> None:
    with pytest.raises(PatternError) as caught:
        check_buildable([op.Neg(var.x), output], {"x"})
    assert because in str(caught.value)


def test_what_is_determined_passes_the_check() -> None:
    outputs = (op.Concat(var.x, opt.z, axis=var.axis), const(np.array(0.5, np.float32)), var.x)
    check_buildable(outputs, {"x", "z", "axis"})
    _, values = built(outputs[1])
    assert number(values[0]) == 0.5
