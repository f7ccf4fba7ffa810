"""The grammar's steps: each is a node that ONNX takes, and the axes and numbers are those meant."""

import zlib
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


def written(base: str, *, is_small: bool) -> dict[str, str]:
    """Return the steps from the first border of a base as text, by operator."""
    table = ExpressionTable()
    x = named(base).leaves(table)[0]

    def operand(each: GrammarExpr | None) -> str:
        if each is None:
            return "-"
        if each.array is None:
            return "x"
        if each.array.size > 6:
            return f"{each.array.dtype}{[*each.array.shape]}"
        return str(each.array.tolist()).replace(" ", "").replace("0.30000001192092896", "0.3")

    found: dict[str, list[str]] = {}
    for step in Grammar(table, is_small=is_small).steps(x):
        attributes = [f"{name}={value}" for name, value in step.attributes.items()]
        text = " ".join([*map(operand, step.operands), *attributes])
        found.setdefault(step.op, []).append(text)
    return {op: " | ".join(texts) for op, texts in found.items()}


@pytest.mark.parametrize(
    ("base", "is_small", "expected"),
    [
        (
            "row",
            False,
            {
                "Reshape": "x [30] | x [6,5] | x [2,15] | x [1,2,3,5] | x [2,3,5,1]",
                "Unsqueeze": "x [0] | x [3]",
                "Flatten": "x axis=0 | x axis=1 | x axis=2 | x axis=3",
                "Transpose": (
                    "x perm=[0, 2, 1] | x perm=[1, 0, 2] | x perm=[1, 2, 0] | x perm=[2, 0, 1] | x "
                    "perm=[2, 1, 0]"
                ),
                "Expand": "x [2,2,3,5]",
                "Tile": "x [2,1,1] | x [1,1,2]",
                "Slice": (
                    "x [0] [1] [0] [1] | x [1] [2] [0] [1] | x [1] [-3] [0] [-1] | x [0] [2] [0] "
                    "[2] | x [0] [1] [2] [1] | x [1] [5] [2] [1] | x [4] [-6] [2] [-1] | x [0] [5] "
                    "[2] [2]"
                ),
                "Gather": (
                    "x 0 axis=0 | x [1] axis=0 | x [1,0] axis=0 | x [0,1] axis=0 | x 0 axis=2 | x "
                    "[4] axis=2 | x [1,2,3,4,0] axis=2 | x [0,1,2,3,4] axis=2"
                ),
                "Split": "x [1,1] axis=0 | x [1,4] axis=2",
                "Trilu": "x upper=0 | x upper=1",
                "Concat": (
                    "x x axis=0 | x float32[1, 3, 5] axis=0 | x x axis=2 | x "
                    "[[[0.0],[0.0],[0.0]],[[0.0],[0.0],[0.0]]] axis=2"
                ),
                "Pad": "x [0,0,0,1,0,0] | x [0,0,0,0,0,1]",
                "Sub": (
                    "x 0.0 | 0.0 x | x -0.0 | -0.0 x | x 1.0 | 1.0 x | x -1.0 | -1.0 x | x 2.0 | "
                    "2.0 x | x 0.3 | 0.3 x | x [1.0,2.0,3.0,4.0,5.0]"
                ),
                "Div": (
                    "x 0.0 | 0.0 x | x -0.0 | -0.0 x | x 1.0 | 1.0 x | x -1.0 | -1.0 x | x 2.0 | "
                    "2.0 x | x 0.3 | 0.3 x | x [1.0,2.0,3.0,4.0,5.0]"
                ),
                "Mul": "x 0.0 | x -0.0 | x 1.0 | x -1.0 | x 2.0 | x 0.3 | x [1.0,2.0,3.0,4.0,5.0]",
                "Cast": "x to=11 | x to=10 | x to=7 | x to=9 | x to=1",
                "CumSum": "x 0 | x 2",
                "Clip": "x 0.0 6.0 | x 0.0 - | x - 1.0 | x -1.0 1.0",
                "LeakyRelu": "x | x alpha=0.2",
                "MatMul": "x float32[5, 4] | float32[4, 3] x",
                "BatchNormalization": (
                    "x [1.0,0.5,1.375] [1.0,0.5,1.375] [1.0,0.5,1.375] [1.0,1.0,1.0]"
                ),
                "LayerNormalization": "x [1.0,0.5,1.375,0.875,0.375]",
            },
        ),
        (
            "row",
            True,
            {
                "Reshape": "x [30] | x [6,5] | x [2,15] | x [1,2,3,5] | x [2,3,5,1]",
                "Unsqueeze": "x [0] | x [3]",
                "Transpose": "x perm=[0, 2, 1] | x perm=[1, 0, 2]",
                "Expand": "x [2,2,3,5]",
                "Tile": "x [2,1,1] | x [1,1,2]",
                "Slice": (
                    "x [0] [1] [0] [1] | x [1] [2] [0] [1] | x [0] [1] [2] [1] | x [1] [5] [2] [1]"
                ),
                "Gather": "x 0 axis=0 | x 0 axis=2",
                "Split": "x [1,1] axis=0 | x [1,4] axis=2",
                "Trilu": "x upper=0",
                "Concat": (
                    "x x axis=0 | x float32[1, 3, 5] axis=0 | x x axis=2 | x "
                    "[[[0.0],[0.0],[0.0]],[[0.0],[0.0],[0.0]]] axis=2"
                ),
                "Pad": "x [0,0,0,1,0,0] | x [0,0,0,0,0,1]",
                "Sub": "x 1.0 | 1.0 x | x -1.0 | -1.0 x | x 2.0 | 2.0 x",
                "Div": "x 1.0 | 1.0 x | x -1.0 | -1.0 x | x 2.0 | 2.0 x",
                "Mul": "x 1.0 | x -1.0 | x 2.0",
                "Cast": "x to=11 | x to=10",
                "ReduceSum": (
                    "x [0] keepdims=0 | x [0] keepdims=1 | x [2] keepdims=0 | x [2] keepdims=1 | x "
                    "- keepdims=1 | x - keepdims=0"
                ),
                "Clip": "x 0.0 6.0 | x 0.0 - | x - 1.0",
                "MatMul": "x float32[5, 4] | float32[4, 3] x",
            },
        ),
        (
            "ones",
            False,
            {
                "Reshape": "x [3] | x [3,1] | x [1,3] | x [1,1,3,1] | x [1,3,1,1]",
                "Squeeze": "x [0] | x [2]",
                "Expand": "x [2,1,3,1] | x [3,3,3]",
                "Transpose": (
                    "x perm=[0, 2, 1] | x perm=[1, 0, 2] | x perm=[1, 2, 0] | x perm=[2, 0, 1] | x "
                    "perm=[2, 1, 0]"
                ),
            },
        ),
        (
            "matrix",
            False,
            {
                "Gemm": "x float32[3, 4] [1.0,0.5,1.375,0.875]",
                "Unsqueeze": "x [0] | x [2]",
                "MatMul": "x float32[3, 4] | float32[4, 2] x",
                "Mul": "x 0.0 | x -0.0 | x 1.0 | x -1.0 | x 2.0 | x 0.3 | x [1.0,2.0,3.0]",
            },
        ),
        (
            "image",
            False,
            {
                "Expand": "x [3,4,2,6]",
                "Squeeze": "x [0]",
                "BatchNormalization": (
                    "x [1.0,0.5,1.375,0.875] [1.0,0.5,1.375,0.875] [1.0,0.5,1.375,0.875] "
                    "[1.0,1.0,1.0,1.0]"
                ),
                "Conv": "x float32[3, 4, 1, 1]",
                "MaxPool": "x kernel_shape=[1, 2] strides=[1, 2]",
                "AveragePool": "x kernel_shape=[1, 2] strides=[1, 2]",
                "DepthToSpace": "x blocksize=2",
                "Trilu": "x upper=0 | x upper=1",
            },
        ),
        (
            "integers",
            False,
            {
                "Sub": "x 0 | 0 x | x 1 | 1 x | x -1 | -1 x | x 2 | 2 x | x [1,2,3]",
                "Div": "x 1 | x 2 | x [1,2,3]",
                "Mul": "x 0 | x 1 | x -1 | x 2 | x [1,2,3]",
                "Equal": "x 0 | x 1",
                "Mod": "x 2",
                "Cast": "x to=1 | x to=6 | x to=9 | x to=7",
                "Neg": "x",
            },
        ),
        (
            "integers",
            True,
            {
                "Sub": "x 1 | 1 x | x 2 | 2 x",
                "Cast": "x to=1 | x to=6",
                "Equal": "x 1",
                "Div": "x 1 | x 2",
            },
        ),
        (
            "bools",
            False,
            {
                "Not": "x",
                "And": "x False | x True",
                "Equal": "x False | x True",
                "Where": "x 1.0 0.0 | x 0.0 1.0 | x 2.0 1.0",
                "Cast": "x to=1 | x to=7 | x to=9",
                "Concat": "x x axis=0 | x x axis=1",
            },
        ),
        (
            "number",
            False,
            {
                "Reshape": "x [1]",
                "Unsqueeze": "x [0]",
                "Expand": "x [2]",
                "Mul": "x 0.0 | x -0.0 | x 1.0 | x -1.0 | x 2.0 | x 0.3",
            },
        ),
    ],
)
def test_operands_and_attributes_of_the_steps(
    base: str, is_small: bool, expected: dict[str, str]
) -> None:
    found = written(base, is_small=is_small)
    assert {op: found.get(op) for op in expected} == expected


def test_graphs_of_many_operators_have_fewer_of_them() -> None:
    few, many = (written("row", is_small=is_small).keys() for is_small in (True, False))
    assert {"ArgMax", "BatchNormalization", "CumSum", "Flatten", "LayerNormalization"} <= many - few
    table = ExpressionTable()
    for shape in ((1, 3, 2, 2), (1, 4, 3, 2), (1, 4, 2, 3), (1, 4, 3, 3)):
        steps = Grammar(table).steps(table.border(f"x{shape}", FLOAT, shape))
        assert {"DepthToSpace", "SpaceToDepth"}.isdisjoint(step.op for step in steps), shape


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
    assert list(grammar.pairs(b, z)) == list(grammar.pairs(b, i)) == []
    assert list(grammar.pairs(x, i)) == list(grammar.pairs(x, b)) == []
    assert list(grammar.pairs(i, table.border("j", INT64, (3, 2)))) == []
    assert [step.op for step in grammar.triples(b, x, y)] == ["Where"]
    assert list(grammar.triples(b, x, z)) == list(grammar.triples(x, x, y)) == []
    assert list(grammar.triples(b, x, i)) == list(grammar.triples(b, z, z)) == []


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


def line(step: GrammarStep) -> str:
    operands = [
        "-" if x is None else str(x) if x.array is None else f"{x.array.dtype}{x.array.tolist()}"
        for x in step.operands
    ]
    return f"{step.op} {operands} {sorted(step.attributes.items())} {step.outputs}"


def test_all_steps_of_all_bases() -> None:
    for name, large, small in (
        ("matrix", (279, 1622617120), (170, 259116495)),
        ("row", (266, 330103049), (152, 175859596)),
        ("ones", (247, 2412286954), (148, 1327005044)),
        ("image", (231, 2320999766), (120, 2481595904)),
        ("integers", (126, 531579162), (90, 2783318542)),
        ("bools", (89, 2886267975), (75, 2297406247)),
        ("column", (249, 2234307870), (150, 1493825202)),
        ("number", (147, 2024082484), (103, 1527069710)),
    ):
        for is_small, expected in ((False, large), (True, small)):
            lines = [line(step) for step in steps_of(named(name), is_small=is_small)]
            found = len(lines), zlib.crc32("\n".join(lines).encode())
            assert found == expected, f"{name}, is_small={is_small}: {found}"
