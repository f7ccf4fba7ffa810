"""The grammar's steps: each is a node that ONNX takes, and the axes and numbers are those meant."""

from collections import Counter
from collections.abc import Iterable

import onnx
import pytest

from tiered.extensions.discovery.expressions import OPSET, ExpressionTable, GrammarExpr
from tiered.extensions.discovery.grammar import (
    BASES,
    BOOL,
    FLOAT,
    INT64,
    Base,
    Grammar,
    GrammarStep,
    _axes,
    _multiplies,
    _perms,
    _targets,
)
from tiered.graph.core.types import tensor_type, write_type
from tiered.graph.queries.op_traits import ARITHMETIC, COMPARISONS, LOGIC, REDUCTIONS, SOFTMAXES


def model_of(steps: Iterable[GrammarStep]) -> onnx.ModelProto:
    """Return a model with a node for each step."""
    graph = onnx.GraphProto(name="g")
    known: dict[int, str] = {}

    def name(x: GrammarExpr | None) -> str:
        if x is None:
            return ""
        if x.number not in known:
            known[x.number] = f"v{x.number}"
            if x.array is not None:
                graph.initializer.append(onnx.numpy_helper.from_array(x.array, f"v{x.number}"))
            else:
                kind = write_type(tensor_type(x.dtype, x.shape))
                graph.input.add(name=f"v{x.number}", type=kind)
        return known[x.number]

    for at, step in enumerate(steps):
        outputs = [f"y{at}_{number}" for number in range(step.outputs)]
        inputs = [name(x) for x in step.operands]
        graph.node.append(onnx.helper.make_node(step.op, inputs, outputs, **step.attributes))
    opset = onnx.helper.make_opsetid("", OPSET)
    return onnx.helper.make_model(graph, opset_imports=[opset])


def steps_of(base: Base, *, is_small: bool = False) -> list[GrammarStep]:
    table = ExpressionTable()
    leaves = base.leaves(table)
    grammar = Grammar(table, is_small=is_small)
    found = list(grammar.steps(leaves[0]))
    for one in leaves:
        for other in leaves:
            found += grammar.pairs(one, other)
    if len(leaves) > 2:
        found += grammar.triples(leaves[2], leaves[0], leaves[1])
        found += grammar.triples(leaves[0], leaves[1], leaves[1])
    return found


@pytest.mark.parametrize("base", BASES, ids=lambda base: str(base.name))
@pytest.mark.parametrize("is_small", [False, True])
def test_each_step_is_a_node_that_onnx_infers_a_shape_of(base: Base, is_small: bool) -> None:
    steps = steps_of(base, is_small=is_small)
    inferred = onnx.shape_inference.infer_shapes(
        model_of(steps), check_type=True, strict_mode=True, data_prop=True
    )
    typed = {info.name for info in inferred.graph.value_info if info.type.tensor_type.shape.dim}
    scalars = {info.name for info in inferred.graph.value_info} - typed
    made = {name for node in inferred.graph.node for name in node.output}
    assert typed | scalars == made


@pytest.mark.parametrize("base", BASES, ids=lambda base: str(base.name))
def test_no_step_comes_twice_and_fewer_come_for_larger_graphs(base: Base) -> None:
    steps = steps_of(base)
    keys = Counter(
        (
            each.op,
            tuple(x and x.number for x in each.operands),
            repr(sorted(each.attributes.items())),
        )
        for each in steps
    )
    assert max(keys.values()) <= 2
    assert len(steps_of(base, is_small=True)) < len(steps)


def named(base: str) -> Base:
    return next(each for each in BASES if each.name == base)


def attributes(steps: Iterable[GrammarStep], op: str, name: str) -> list[object]:
    return [step.attributes[name] for step in steps if step.op == op]


def test_sums_and_softmaxes_are_along_the_first_and_the_last_axis() -> None:
    steps = steps_of(named("row"))
    for op in SOFTMAXES[1:]:
        assert attributes(steps, op, "axis") == [0, 2]
    assert attributes(steps, "ArgMax", "axis") == [0, 2]
    for op in REDUCTIONS:
        found = [
            (None if (x := step.operands[1]) is None or x.array is None else x.array.tolist(),
             step.attributes["keepdims"])
            for step in steps if step.op == op
        ]  # fmt: skip
        assert found == [([0], 0), ([0], 1), ([2], 0), ([2], 1), (None, 1), (None, 0)]


def test_the_constants_of_arithmetic_are_neutral_and_others() -> None:
    table = ExpressionTable()
    x = table.border("x", FLOAT, ())
    grammar = Grammar(table)
    numbers = [
        str(step.operands[1].array)
        for step in grammar.steps(x)
        if step.op == "Add" and step.operands[1] is not None
    ]
    assert numbers == ["0.0", "-0.0", "1.0", "-1.0", "2.0", "0.3"]
    whole = table.border("i", INT64, ())
    divisors = [
        int(step.operands[1].array)
        for step in grammar.steps(whole)
        if step.op == "Div" and step.operands[1] is not None
        and step.operands[1].array is not None
    ]  # fmt: skip
    assert divisors == [1, 2]


def test_what_reads_two_expressions_fits_their_types() -> None:
    table = ExpressionTable()
    grammar = Grammar(table)
    x, y = (table.border(name, FLOAT, (2, 3)) for name in "xy")
    b, c = (table.border(name, BOOL, (2, 3)) for name in "bc")
    z = table.border("z", FLOAT, (3, 2))
    i = table.border("i", INT64, (2, 3))
    assert {step.op for step in grammar.pairs(x, y)} == {
        *ARITHMETIC, "Max", "Min", *COMPARISONS[:3], "Pow", "Concat",
    }  # fmt: skip
    assert {step.op for step in grammar.pairs(b, c)} == {*LOGIC, "Concat"}
    assert {step.op for step in grammar.pairs(x, z)} == {"MatMul"}
    assert {step.op for step in grammar.pairs(b, x)} == {"Where"}
    assert list(grammar.pairs(x, i)) == list(grammar.pairs(x, b)) == []
    assert [step.op for step in grammar.triples(b, x, y)] == ["Where"]
    assert list(grammar.triples(b, x, z)) == list(grammar.triples(x, x, y)) == []


def test_the_first_and_the_last_axis() -> None:
    table = ExpressionTable()
    shapes = [(), (4,), (4, 5), (4, 5, 6)]
    assert [_axes(table.border("x", FLOAT, shape)) for shape in shapes] == [
        (), (0,), (0, 1), (0, 2),
    ]  # fmt: skip


def test_permutations_and_views_are_different_ones() -> None:
    assert _perms(1) == []
    assert _perms(2) == [[1, 0]]
    assert _perms(3) == [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    assert list(_targets((2, 3))) == [(6,), (3, 2), (1, 2, 3), (2, 3, 1)]
    assert list(_targets((4,))) == [(2, 2), (1, 4), (4, 1)]
    assert list(_targets((1, 3, 1))) == [(3,), (3, 1), (1, 3), (1, 1, 3, 1), (1, 3, 1, 1), (3,)]
    assert _multiplies((5, 2, 3), (5, 3, 4))
    assert not _multiplies((5, 2, 3), (1, 3, 4))
    assert not _multiplies((3,), (3, 4))
