"""The sums over the axes along which an operand was repeated, and where they are chosen."""

from tests.extensions.gradients.written import written
from tests.small import parsed
from tiered.extensions.gradients import Expr
from tiered.extensions.gradients.broadcast import reduced_to

SUMS = (
    "ReduceSum<noop_with_empty_axes=1>(g, Reshape(NonZero(Equal(Concat<axis=0>"
    "(ConstantOfShape<value=[1]>(Unsqueeze(Sub(Size(Shape(g)), Size(#0=Shape(x))), [0])), #0), "
    "1)), [-1]))"
)
AT_RUN_TIME = f"Reshape<allowzero=1>({SUMS}, Shape(x))"

CASES = {
    ("[2,3]", "[2,3]"): "g",
    ("[2,3]", "[3]"): "ReduceSum<keepdims=0>(g, [0])",
    ("[2,3]", "[1,3]"): "ReduceSum(g, [0])",
    ("[2,3]", "[2,1]"): "ReduceSum(g, [1])",
    ("[2,2,3]", "[1,1]"): "ReduceSum<keepdims=0>(ReduceSum(g, [1,2]), [0])",
    ("[2,3]", ""): "ReduceSum<keepdims=0>(g, [0,1])",
    ("[N,3]", "[N,3]"): "g",
    ("[N,3]", "[3]"): "ReduceSum<keepdims=0>(g, [0])",
    ("[N,3]", "[1,3]"): "ReduceSum(g, [0])",
    ("[1,3]", "[N,3]"): "g",
    ("[N,3]", "[2,3]"): "g",
    ("[N,3]", "[M,3]"): AT_RUN_TIME,
    ("[2,3]", "[N,3]"): AT_RUN_TIME,
    ("[?,3]", "[?,3]"): AT_RUN_TIME,
    ("[]", "[2,3]"): f"Reshape({SUMS}, [2,3])",
    ("[2,3]", "[]"): AT_RUN_TIME,
}
"""The shapes of a gradient g and of an operand x ([] is of an unknown rank), and the sum."""


def test_axes_are_summed_where_the_operand_has_size_1_and_chosen_where_it_may_have() -> None:
    for (grad, own), expected in CASES.items():
        model = parsed(f"(float{grad} g, float{own} x) => (float{grad} y) {{ y = Neg(g) }}")
        graph, first = model.main, model.next_serial()
        g, x = (Expr(graph, graph.values[name], "made") for name in "gx")
        assert written(reduced_to(g, x).value, first) == expected, (grad, own)
