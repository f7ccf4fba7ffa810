"""Arithmetic on values: the nodes that it adds, and what they compute."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import Reference
from tests.extensions.gradients.written import written
from tiered import Model, Node, get_pass
from tiered.extensions.gradients import Expr
from tiered.graph import DataType
from tiered.support.errors import ModelError
from tiered.testing import parse

X, B = np.array([[1.0, -2, 4], [3, 0.5, 8]]), np.array([2.0, 4, -1])


def operand(name: str = "x", dims: str = "2,3", opset: int = 21) -> Expr:
    """Return an input of a model as an expression; it also has a bool input c and an input b."""
    model = Model.from_proto(
        parse(
            f"(double[{dims}] x, double[3] b, bool[3] c, float[2] f) => (double[{dims}] y) "
            "{ y = Neg(x) }",
            opset=opset,
        )
    )
    return Expr(model.main, model.main.values[name], "made")


def other(x: Expr, name: str) -> Expr:
    return x.of(x.graph.values[name])


def maker(made: Expr) -> Node:
    """Return the node that computes an expression."""
    node = made.value.producer
    assert node is not None
    return node


def model_of(made: Expr) -> Model:
    model = made.graph.model
    assert isinstance(model, Model)
    return model


def value_of(made: Expr, **feeds: Any) -> Any:
    """Return what an expression computes."""
    graph = made.graph
    graph.add_output(made.call("Identity", made).value)
    proto = model_of(made).to_proto()
    onnx.checker.check_model(proto, full_check=True)
    own = {"x": X, "b": B, "c": np.array([True, False, True]), "f": np.ones(2, np.float32)}
    return Reference(proto)({**own, **feeds})[proto.graph.output[-1].name]


ARITHMETIC: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "x + b": (lambda x, b: x + b, X + B),
    "x + 2": (lambda x, b: x + 2, X + 2),
    "2 + x": (lambda x, b: 2 + x, X + 2),
    "x - b": (lambda x, b: x - b, X - B),
    "2 - x": (lambda x, b: 2 - x, 2 - X),
    "x * b": (lambda x, b: x * b, X * B),
    "3 * x": (lambda x, b: 3 * x, 3 * X),
    "x / b": (lambda x, b: x / b, X / B),
    "2 / x": (lambda x, b: 2 / x, 2 / X),
    "x ** 2": (lambda x, b: x**2, X**2),
    "b ** b": (lambda x, b: (b * b) ** b, (B * B) ** B),
    "-x": (lambda x, b: -x, -X),
    "x @ b": (lambda x, b: x @ b, X @ B),
    "x == 4": (lambda x, b: x.equals(4.0), X == 4),
    "x < b": (lambda x, b: x.less(b), X < B),
    "x > b": (lambda x, b: x.greater(b), X > B),
    "and": (lambda x, b: x.less(3.0).both(x.greater(0.5)), (X < 3) & (X > 0.5)),
    "or": (lambda x, b: x.less(0.0).either(x.greater(3.0)), (X < 0) | (X > 3)),
    "not": (lambda x, b: x.less(0.5).negated(), ~(X < 0.5)),
    "where": (lambda x, b: x.less(b).select(x, 0.0), np.where(X < B, X, 0)),
    "root": (lambda x, b: (x * x).root(2), np.abs(X)),
    "cast": (lambda x, b: x.cast(DataType.INT64), X.astype(np.int64)),
    "transpose": (lambda x, b: x.transpose([1, 0]), X.T),
    "reshape": (lambda x, b: x.reshape([3, -1]), X.reshape(3, 2)),
    "unsqueeze": (lambda x, b: x.unsqueeze([0, -1]), X[None, :, :, None]),
    "squeeze": (lambda x, b: x.unsqueeze([0]).squeeze([0]), X),
    "sum": (lambda x, b: x.sum(), X.sum(keepdims=True)),
    "sum of rows": (lambda x, b: x.sum([1]), X.sum(1, keepdims=True)),
    "sum of columns": (lambda x, b: x.sum([0], keepdims=False), X.sum(0)),
    "zeros": (lambda x, b: x.zeros(), np.zeros((2, 3))),
    "ones": (lambda x, b: x.ones(), np.ones((2, 3))),
    "filled": (lambda x, b: x.filled(2.5), np.full((2, 3), 2.5)),
    "shape": (lambda x, b: x.shape(), np.array([2, 3])),
    "sizes": (lambda x, b: x.sizes(1), np.array([3])),
    "first sizes": (lambda x, b: x.sizes(0, 1), np.array([2])),
    "dim": (lambda x, b: x.dim(-1), np.array([3])),
    "integers": (lambda x, b: x.integers([4, 5]), np.array([4, 5])),
}


@pytest.mark.parametrize("dims", ["2,3", "N,K"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_expressions_compute_what_they_say(name: str, dims: str) -> None:
    make, expected = ARITHMETIC[name]
    x = operand(dims=dims)
    found = value_of(make(x, other(x, "b")))
    np.testing.assert_allclose(found, expected)
    assert found.shape == expected.shape
    assert found.dtype.kind == expected.dtype.kind


@pytest.mark.parametrize("name", ["sizes", "first sizes"])
def test_a_shape_had_no_start_before_opset_15(name: str) -> None:
    make, expected = ARITHMETIC[name]
    x = operand(dims="N,K", opset=14)
    made = make(x, x)
    assert maker(made).op_type == "Slice"
    np.testing.assert_array_equal(value_of(made), expected)


def test_the_root_of_zero_has_the_gradient_zero() -> None:
    x = operand("b")
    made = x.of(x.call("Abs", x).value).root(2)
    made.graph.add_output(made.call("Identity", made).value)
    name = made.graph.outputs[-1].name
    proto = get_pass("gradient", of=[name], with_respect_to=["b"], seed="ones")(
        model_of(made).to_proto()
    )
    feeds = {"x": X, "b": np.array([0, 4, 9.0]), "c": np.zeros(3, bool), "f": np.ones(2, "f4")}
    np.testing.assert_allclose(Reference(proto)(feeds)["grad/b"], [0, 1 / 4, 1 / 6])


def test_new_nodes_have_the_name_of_the_expression_and_its_graph() -> None:
    x = operand()
    made = x + other(x, "b")
    assert (maker(made).name, made.name, made.graph) == ("made", "made", x.graph)
    assert x.integers([1]).value.name.startswith("made/axes")


def test_all_outputs_of_a_node() -> None:
    x = operand()
    values, places = x.calls("TopK", x, [1], outputs=2)
    np.testing.assert_array_equal(value_of(values), [[4], [8]])
    assert places.value.producer is values.value.producer


def test_what_changes_nothing_adds_no_node() -> None:
    x = operand()
    count = len(x.graph.nodes)
    assert x.transpose([0, 1]) is x
    assert x.sum([]) is x
    assert x.unsqueeze([]) is x
    assert x.squeeze([]) is x
    assert x.cast(DataType.DOUBLE) is x
    assert x.reshape_as(x) is x
    assert len(x.graph.nodes) == count


def test_a_shape_that_is_known_is_a_constant() -> None:
    assert operand().shape().value.const is not None
    assert operand().dim(0).value.const is not None
    shape = operand(dims="N,3").shape()
    assert (shape.value.const, maker(shape).op_type) == (None, "Shape")
    x = operand(dims="N,3")
    assert x.dim(1).value.const is not None
    assert maker(x.dim(0)).op_type == "Gather"


@pytest.mark.parametrize(
    ("dims", "opset", "allowzero"),
    [("2,3", 21, None), ("N,3", 21, 1), ("N,3", 14, 1), ("N,3", 13, None), ("0,3", 21, 1)],
)
def test_a_shape_that_may_be_empty_is_taken_as_it_is(
    dims: str, opset: int, allowzero: int | None
) -> None:
    x = operand(dims=dims, opset=opset)
    made = maker(other(x, "b").reshape_as(x))
    assert (made.op_type, made.attributes.get("allowzero")) == ("Reshape", allowzero)


@pytest.mark.parametrize(
    ("start", "through", "kept"),
    [("f", DataType.DOUBLE, True), ("x", DataType.FLOAT, False)],
)
def test_a_cast_back_is_no_cast_where_every_number_was_kept(
    start: str, through: DataType, *, kept: bool
) -> None:
    x = operand(start)
    back = x.cast(through).cast(x.dtype)
    assert (back.value is x.value) == kept
    assert back.value.dtype == x.value.dtype


def test_a_cast_to_a_third_dtype_is_a_cast() -> None:
    x = operand("f")
    for dtype in (DataType.INT64, DataType.INT32):
        made = x.cast(DataType.DOUBLE).cast(dtype)
        assert maker(made).op_type == "Cast"
        assert made.value.dtype == dtype


def test_a_cast_of_what_no_cast_made_is_a_cast() -> None:
    x = operand("b")
    condition = other(x, "c")
    made = condition.select(x, 0.0).cast(DataType.BOOL)
    assert (maker(made).op_type, made.value.dtype) == ("Cast", DataType.BOOL)


def test_sizes_are_a_part_of_the_shape_since_opset_15() -> None:
    for opset, expected in (
        (15, ["Shape<start=1>(x)", "Shape<end=1>(x)"]),
        (14, ["Slice(Shape(x), [1], [2147483647], [0])", "Slice(Shape(x), [0], [1], [0])"]),
    ):
        x = operand(opset=opset)
        first = model_of(x).next_serial()
        made = [x.sizes(1), x.sizes(0, 1)]
        assert [written(each.value, first) for each in made] == expected


def test_a_cast_back_is_none_where_all_numbers_were_kept_in_a_model() -> None:
    for wide, casts in ((11, 0), (10, 2)):
        text = f"(float[3] x) => (float[3] y) {{ d = Cast <to={wide}> (x)  y = Cast <to=1> (d) }}"
        made = get_pass("gradient", seed="input")(parse(text))
        assert isinstance(made, onnx.ModelProto)
        found = [node for node in made.graph.node if node.op_type == "Cast"]
        assert len(found) == 2 + casts


def test_an_unknown_dtype_or_rank_is_an_error_that_names_the_value() -> None:
    model = Model.from_proto(parse("(float x) => (float y) { h = com.acme.F(x)  y = Neg(h) }"))
    h = Expr(model.main, model.main.values["h"], "made")
    with pytest.raises(ModelError, match="the dtype of 'h' is unknown; expected a tensor type"):
        _ = h.dtype
    with pytest.raises(ModelError, match="the rank of 'h' is unknown; declare its shape"):
        _ = h.rank


def test_the_rank_of_a_number_is_zero() -> None:
    model = Model.from_proto(parse("(float x) => (float y) { y = Neg(x) }"))
    x = Expr(model.main, model.main.values["x"], "made")
    assert (x.rank, x.dtype) == (0, DataType.FLOAT)
