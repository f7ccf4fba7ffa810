"""What adds each element of a gradient where it came from, with and without an operator for it."""

from tests.extensions.gradients.written import written
from tests.small import parsed
from tiered.extensions.gradients import Expr
from tiered.extensions.gradients.copy_adjoint import added_back, summed_at

ADDED = (
    "ScatterND<reduction=add>(ConstantOfShape<value=[0.0]>(Concat<axis=0>(n, Shape<start=1>(rows)))"
    ", Unsqueeze(p, [1]), rows)"
)


def by_product(size: str, rest: str) -> str:
    return (
        "Reshape(MatMul(OneHot<axis=0>(p, n, [0.0,1.0]), Reshape(rows, Concat<axis=0>([-1], "
        f"{size}))), Concat<axis=0>(n, {rest}))"
    )


SUMS = {
    ("2", 16): ADDED,
    ("N,2", 16): ADDED,
    ("2", 15): by_product("[1]", "[]"),
    ("2,3", 15): by_product("ReduceProd([3])", "[3]"),
    ("N", 15): by_product("[1]", "Shape<start=1>(rows)"),
    ("N,M,3", 15): by_product("ReduceProd(Shape<start=1>(rows))", "Shape<start=1>(rows)"),
}
"""The dims of rows and the opset, and their sums at places."""


def test_rows_are_added_at_places() -> None:
    for (dims, opset), expected in SUMS.items():
        text = (
            f"(float[{dims}] rows, int64[2] p, int64[1] n) => (float[{dims}] y) {{ y = Neg(rows) }}"
        )
        graph = (model := parsed(text, opset=opset)).main
        first = model.next_serial()
        rows, p, n = (Expr(graph, graph.values[name], "made") for name in ("rows", "p", "n"))
        assert written(summed_at(p, rows, n).value, first) == expected, (dims, opset)


def test_the_positions_are_a_constant_where_the_shape_is_known() -> None:
    zeros = (
        "ConstantOfShape<value=[0.0]>(Concat<axis=0>(Unsqueeze(Size(x), [0]),"
        " Shape<start=1>(#0=Reshape(g, [-1]))))"
    )
    for dims, positions, reshape in (
        ("2,2", "[[0,1],[2,3]]", "Reshape({}, [2,2])"),
        (
            "N,2",
            "Reshape<allowzero=1>(Range(0, Size(x), 1), Shape(x))",
            "Reshape<allowzero=1>({}, Shape(x))",
        ),
    ):
        text = f"(float[{dims}] x, float[2] g) => (float[{dims}] y) {{ y = Neg(x) }}"
        graph = (model := parsed(text)).main
        first = model.next_serial()
        x, g = (Expr(graph, graph.values[name], "made") for name in ("x", "g"))
        made = added_back(x, g, lambda each: each.call("Neg", each))
        places = f"Unsqueeze(Reshape(Neg({positions}), [-1]), [1])"
        added = f"ScatterND<reduction=add>({zeros}, {places}, #0)"
        assert written(made.value, first) == reshape.format(added), dims
