"""What other nodes of the same opset take the place of a node, and where none do."""

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.small import content, made_by, named, ops, parsed
from tiered.graph import Model, TensorType
from tiered.graph.edits.lowerings import LOWERINGS, lowered
from tiered.support.numerics import Numerics

STOCK = """int64[4] p = {1,2,3,1}, int64[2] a = {-1,0}, int32[2] b = {-1,0}, float v = {9},
    float[3] s = {1,2,3}, float[2,3] m = {1,2,3,4,5,6}, int64[1] k = {1}"""


def of(
    call: str, inputs: str = "float[2,3] x", *, opset: int = 21, out: str = "float[?,?]"
) -> Model:
    return parsed(f"({inputs}) => ({out} y) <{STOCK}> {{ [named] y = {call} }}", opset=opset)


def low(model: Model, *, numerics: Numerics = Numerics.EXACT) -> list[str] | None:
    """Lower the node of y; return the operators that take its place."""
    before, node = content(model), made_by(model, "y")
    created = lowered(node, numerics=numerics)
    model.check_view()
    if created is None:
        assert content(model) == before
        return None
    assert [each.graph is not None for each in created] == [True] * len(created)
    assert created == [each for each in model.main.topological_order() if each in created]
    if created:
        assert node.graph is None
    return [each.op_type for each in created]


def results(model: Model, **feeds: np.ndarray) -> Any:
    found: Any = ReferenceEvaluator(model.to_proto()).run(None, feeds)
    return found[0]


# --- Softmax --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Hardmax", "LogSoftmax", "Softmax"])
def test_an_inner_axis_is_transposed_to_the_end(kind: str) -> None:
    model = of(f"{kind}<axis=1>(x)", "float[2,3,4] x")
    x = np.random.default_rng(0).random((2, 3, 4), np.float32)
    before = results(model, x=x)
    assert low(model) == ["Transpose", kind, "Transpose"]
    softmax = model.main.nodes_of(kind)[0]
    assert softmax.attr("axis") == -1
    assert [node.perm for node in model.main.nodes_of("Transpose")] == [(0, 2, 1)] * 2
    np.testing.assert_allclose(results(model, x=x), before, rtol=1e-6)


def test_since_13_an_axis_is_one() -> None:
    model = of("Softmax<axis=1>(x)", "float[2,3,4] x", opset=13)
    assert low(model, numerics=Numerics.APPROXIMATE) == ["Transpose", "Softmax", "Transpose"]


@pytest.mark.parametrize(
    ("call", "inputs"),
    [
        ("Softmax(x)", "float[2,3,4] x"),
        ("Softmax<axis=2>(x)", "float[2,3,4] x"),
        ("Softmax<axis=0>(x)", "float[3] x"),
        ("Softmax(x)", "float x"),
        ("Softmax<axis=0>(x)", "float[] x"),
    ],
)
def test_a_last_axis_stays(call: str, inputs: str) -> None:
    model = of(call, inputs)
    if inputs == "float[] x":
        assert made_by(model, "y").inputs[0].rank is None  # type: ignore[union-attr]  # it is x
    assert low(model) is None


@pytest.mark.parametrize(("axis", "perm"), [(0, (2, 1, 0)), (-3, (2, 1, 0)), (-2, (0, 2, 1))])
def test_the_axis_changes_places_with_the_last_one(axis: int, perm: tuple[int, ...]) -> None:
    model = of(f"Softmax<axis={axis}>(x)", "float[2,3,4] x")
    assert low(model) == ["Transpose", "Softmax", "Transpose"]
    assert model.main.nodes_of("Transpose")[0].perm == perm


@pytest.mark.parametrize(
    ("axis", "inputs", "target"),
    [
        (1, "float[2,3,4] x", "Shape"),
        (0, "float[2,3] x", "Shape"),
        (-2, "float[2,3,4] x", "Shape"),
        (1, "float[] x", "Shape"),
    ],
)
def test_before_13_all_dims_from_the_axis_on_are_one(axis: int, inputs: str, target: str) -> None:
    model = of(f"Softmax<axis={axis}>(x)", inputs, opset=12)
    assert low(model) == [target, "Flatten", "Softmax", "Reshape"]
    flat, softmax = model.main.nodes_of("Flatten")[0], model.main.nodes_of("Softmax")[0]
    rank = named(model, "x").rank
    assert flat.attr("axis") == (axis if axis >= 0 or rank is None else axis + rank)
    assert softmax.attr("axis") == 1
    assert softmax.inputs[0] is flat.output


@pytest.mark.parametrize(
    ("axis", "inputs"), [(2, "float[2,3,4] x"), (-1, "float[2,3,4] x"), (0, "float[3] x")]
)
def test_before_13_a_last_axis_flattens_nothing(axis: int, inputs: str) -> None:
    assert low(of(f"Softmax<axis={axis}>(x)", inputs, opset=12)) is None


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [("float[2,3,4] x", [2, 3, 4]), ("float[N,3,4] x", [-1, 3, 4])],
)
def test_before_5_the_target_of_a_reshape_is_constant(inputs: str, sizes: list[int]) -> None:
    model = of("Softmax<axis=1>(x)", inputs, opset=4)
    assert low(model) == ["Flatten", "Softmax", "Reshape"]
    assert list(model.main.nodes_of("Reshape")[0].attr("shape")) == sizes


@pytest.mark.parametrize("inputs", ["float[N,3,M] x", "float[2,0,4] x", "float[] x"])
def test_before_5_a_target_that_is_no_constant_stays(inputs: str) -> None:
    assert low(of("Softmax<axis=1>(x)", inputs, opset=4)) is None


def test_what_is_flat_is_not_flattened_again() -> None:
    model = parsed(
        "(float[] x) => (float[] y) { f = Flatten(x)  y = Softmax<axis=1>(f) }", opset=12
    )
    assert low(model) is None


# --- operands aligned by an attribute -------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "inputs", "axes"),
    [
        ("Add<broadcast=1, axis=1>(x, s)", "float[2,3,4,5] x", [1, 2]),
        ("Mul<broadcast=1, axis=0>(x, m)", "float[2,3,4] x", [2]),
        ("Less<broadcast=1, axis=0>(x, m)", "float[2,3,4] x", [2]),
    ],
)
def test_dims_of_1_go_behind_the_second_operand(call: str, inputs: str, axes: list[int]) -> None:
    model = of(call, inputs, opset=6, out="bool[?,?]" if "Less" in call else "float[?,?]")
    kind = call.partition("<")[0]
    assert low(model) == ["Unsqueeze", kind]
    wide, made = model.main.nodes_of("Unsqueeze")[0], model.main.nodes_of(kind)[0]
    assert list(wide.attr("axes")) == axes
    assert (made.attr("broadcast"), made.name) == (1, "named")
    assert "axis" not in made.attributes


@pytest.mark.parametrize(
    ("call", "inputs"),
    [
        ("Add(x, s)", "float[2,3] x"),
        ("Add<broadcast=1>(x, s)", "float[2,3] x"),
        ("Add<broadcast=0, axis=0>(x, s)", "float[3,4] x"),
        ("Add<broadcast=1, axis=1>(x, s)", "float[2,3] x"),
        ("Add<broadcast=1, axis=-2>(x, s)", "float[2,3,4] x"),
        ("Add<broadcast=1, axis=0>(x, s)", "float[] x"),
        ("Add<broadcast=1, axis=0>(x, u)", "float[2,3] x, float[] u"),
    ],
)
def test_operands_that_are_aligned_stay(call: str, inputs: str) -> None:
    assert low(of(call, inputs, opset=6)) is None


def test_slopes_are_of_channels_before_7() -> None:
    model = of("PRelu(x, s)", "float[2,3,4,5] x", opset=6)
    assert low(model) == ["Unsqueeze", "PRelu"]
    assert list(model.main.nodes_of("Unsqueeze")[0].attr("axes")) == [1, 2]
    for call, inputs, opset in (
        ("PRelu(x, s)", "float[2,3,4,5] x", 7),
        ("PRelu(x, s)", "float[2,3] x", 6),
        ("PRelu(x, s)", "float[] x", 6),
        ("PRelu(x, m)", "float[2,3,4] x", 6),
    ):
        assert low(of(call, inputs, opset=opset)) is None


# --- other operators ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin"])
def test_the_extremes_of_bools_are_those_of_bytes(kind: str) -> None:
    model = of(f"{kind}<keepdims=0>(x, k)", "bool[2,3] x", out="bool[2]")
    assert low(model) == ["Cast", kind, "Cast"]
    made = model.main.nodes_of(kind)[0]
    assert made.attr("keepdims") == 0
    assert made.inputs[1] is named(model, "k")
    assert [node.attr("to") for node in model.main.nodes_of("Cast")] == [2, 9]
    assert low(of(f"{kind}(x)")) is None


def test_an_identity_is_its_operand() -> None:
    model = parsed("(float[2] x) => (float[2] y) { t = Abs(x)  y = Identity(t) }")
    assert low(model) == []
    assert ops(model) == ["Abs"]
    assert model.main.outputs[0].name == "y"


@pytest.mark.parametrize(
    ("kind", "zeros"),
    [("seq(float[2,3])", (2, 3)), ("seq(float[N,3])", (0, 3)), ("seq(float[99,99])", ())],
)
def test_a_sequence_with_a_name_of_its_own_is_inserted_into(
    kind: str, zeros: tuple[int, ...]
) -> None:
    model = parsed(f"({kind} x) => ({kind} y) {{ [named] y = Identity(x) }}")
    assert low(model) == ["SequenceInsert", "SequenceErase"]
    insert, erase = model.main.nodes
    added = insert.inputs[1]
    assert added is not None
    assert added.const is not None
    assert added.const.shape == zeros
    assert erase.name == "named"
    assert [value.number for value in (insert.inputs[2], erase.inputs[1]) if value] == [0, 0]


def test_a_sequence_of_strings_stays() -> None:
    assert low(parsed("(seq(string[2]) x) => (seq(string[2]) y) { y = Identity(x) }")) is None


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("start=1", [3, 4]), ("end=-1", [2, 3]), ("start=-2, end=2", [3]), ("end=0", []),
        ("start=1, end=9", [3, 4]), ("start=-9", [2, 3, 4]),
    ],
)  # fmt: skip
def test_some_dims_are_a_slice_of_all(attributes: str, expected: list[int]) -> None:
    model = of(f"Shape<{attributes}>(x)", "float[2,3,4] x", out="int64[?]")
    assert low(model) == ["Shape", "Slice"]
    assert made_by(model, "y").op_type == "Slice"
    assert results(model, x=np.zeros((2, 3, 4), np.float32)).tolist() == expected


def test_all_dims_stay() -> None:
    for call in ("Shape(x)", "Shape<start=0>(x)"):
        assert low(of(call, out="int64[?]")) is None


@pytest.mark.parametrize("axes", ["a", "b"])
def test_pads_of_some_axes_are_spread_to_all(axes: str) -> None:
    model = of(f'Pad<mode="constant">(x, p, v, {axes})', "float[2,2,3] x")
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    before = results(model, x=x)
    found = low(model)
    cast = ["Cast"] if axes == "b" else []
    assert found == [*cast, "Mod", "Add", "Concat", "ScatterElements", "Pad"]
    pad = made_by(model, "y")
    assert len(pad.inputs) == 3
    assert (pad.attr("mode"), pad.name) == ("constant", "named")
    assert before.shape == (2 + 2 + 1, 2, 3 + 1 + 3)
    assert np.array_equal(results(model, x=x), before)


@pytest.mark.parametrize(
    ("call", "inputs"),
    [("Pad(x, p)", "float[2,3] x"), ("Pad(x, p, v, a)", "float[] x")],
)
def test_pads_of_all_axes_or_of_an_unknown_rank_stay(call: str, inputs: str) -> None:
    assert low(of(call, inputs)) is None


# --- function bodies ------------------------------------------------------------------------------


def test_an_exact_body_takes_the_place_of_its_operator() -> None:
    model = of("Celu<alpha=2.0>(x)")
    assert "Celu" not in LOWERINGS  # its body is not exact
    assert low(model) is None
    names = low(model, numerics=Numerics.REASSOCIATING)
    assert names is not None
    assert "Elu" in names
    assert not model.functions
    x = np.array([[-1, 0, 2], [3, -4, 5]], np.float32)
    expected = np.where(x > 0, x, 2 * (np.exp(x / 2) - 1))
    np.testing.assert_allclose(results(model, x=x), expected, rtol=1e-6)


def test_the_bodies_of_the_table_are_exact() -> None:
    model = of("GreaterOrEqual(x, m)", out="bool[2,3]")
    names = low(model)
    assert names is not None
    assert "Greater" in names
    x = np.array([[1, 0, 2], [5, np.nan, np.inf]], np.float32)
    expected = [[True, False, False], [True, False, True]]
    assert results(model, x=x).tolist() == expected


def test_an_operator_without_a_body_stays() -> None:
    for numerics in (Numerics.EXACT, Numerics.APPROXIMATE):
        model = of("Conv(x, w)", "float[1,1,4] x, float[1,1,2] w")
        assert low(model, numerics=numerics) is None


# --- what is not known ----------------------------------------------------------------------------


def test_absent_operands_are_lowered_to_nothing() -> None:
    for call, opset, absent in (
        ("Softmax<axis=0>(x)", 12, 0), ("Softmax<axis=0>(x)", 13, 0), ("Identity(x)", 21, 0),
        ("Add<broadcast=1, axis=0>(x, s)", 6, 0), ("Add<broadcast=1, axis=0>(x, s)", 6, 1),
        ("PRelu(x, s)", 6, 0), ("ReduceMax(x, k)", 21, 0),
        ("Shape<start=1>(x)", 21, 0), ("Pad(x, p, v, a)", 21, 0), ("Pad(x, p, v, a)", 21, 1),
    ):  # fmt: skip
        model = of(call, "float[2,3] x", opset=opset)
        model.main.set_input(made_by(model, "y"), absent, None)
        assert low(model) is None, call
    model = of("PRelu(x, s)", "float[2,3,4] x", opset=6)
    model.main.set_input(made_by(model, "y"), 1, None)
    assert low(model) is None


def test_limits_of_what_is_lowered() -> None:
    model = of("PRelu(x, s)", "float[2,3,4] x", opset=6)
    assert low(model) == ["Unsqueeze", "PRelu"]
    unsqueeze, slope = model.main.nodes
    assert slope.inputs == (named(model, "x"), unsqueeze.output)
    assert list(unsqueeze.attr("axes")) == [1]
    assert low(of("Softmax<axis=1>(x)", "float[2,3,4] x", opset=5)) == [
        *("Shape", "Flatten", "Softmax", "Reshape")
    ]
    model = parsed("(seq(float[32,32]) x) => (seq(float[32,32]) y) { y = Identity(x) }")
    assert low(model) == ["SequenceInsert", "SequenceErase"]
    assert model.main.nodes[0].given(1).shape == (32, 32)


def test_an_identity_whose_operand_has_a_name_of_its_own() -> None:
    model = parsed("(float[2] x) => (float[2] z) { y = Identity(x)  z = Neg(y) }")
    assert low(model) == []
    assert ops(model) == ["Neg"]
    unknown = parsed(
        "(float[2] x) => (float[2] v, float[2] y) { v = vendor.F(x)  y = Identity(v) }"
    )
    assert low(unknown) is None
    model = parsed(
        """(seq(float[2]) x, bool c) => (seq(float[2]) y) { t = SequenceErase(x)  y = If(c) <
        then_branch = a () => (seq(float[2]) u) { u = Identity(t) },
        else_branch = b () => (seq(float[2]) v) { v = Identity(x) }> }"""
    )
    for body in made_by(model, "y").bodies:
        created = lowered(body.nodes[0])
        assert created is not None
        assert [node.op_type for node in created] == ["SequenceInsert", "SequenceErase"]
    model.check_view()


def test_what_is_flat_in_a_function_is_not_flattened_again() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["": 12, "own": 1]> g (float[2] x) => (float y, float z) {
        y, z = own.f(x) } <domain: "own", opset_import: ["": 12]>
        f (v) => (w, u) { f = Flatten(v)  w = Softmax<axis=1>(f)  n = Neg(v)  u = Softmax<axis=1>(n) }"""
    )
    (function,) = model.functions
    first, second = function.nodes_of("Softmax")
    assert lowered(first) is None
    created = lowered(second)
    assert created is not None
    assert [node.op_type for node in created] == ["Shape", "Flatten", "Softmax", "Reshape"]


def test_what_a_call_decides_is_lowered_to_nothing() -> None:
    for call, opset, is_lowered in (
        ("Softmax<axis: int = @a>(x)", 12, False), ("Softmax<axis: int = @a>(x)", 13, False),
        ("Softmax<axis=0>(x)", 13, True), ("Add<broadcast=1, axis: int = @a>(x, s)", 6, False),
        ("Add<broadcast: int = @a, axis=0>(x, s)", 6, False), ("Add<broadcast=1, axis=0>(x, s)", 6, True),
        ("ReduceMax<keepdims: int = @a>(b)", 21, False), ("ReduceMax<keepdims=0>(b)", 21, True),
        ("Shape<start: int = @a>(x)", 21, False), ("Shape<start=1>(x)", 21, True),
        ("Pad<mode: string = @a>(x, p, , k)", 21, False), ('Pad<mode="edge">(x, p, , k)', 21, True),
    ):  # fmt: skip
        model = parsed(
            f'<ir_version: 10, opset_import: ["": {opset}, "own": 1]> g (float[2,3] x, float[2] s,'
            " bool[2,3] b, int64[2] p, int64[1] k) => (float y) { y = own.f<a=1>(x, s, b, p, k) }"
            f' <domain: "own", opset_import: ["": {opset}]> f <a> (x, s, b, p, k) => (y)'
            f" {{ y = {call} }}",
            opset=opset,
        )
        (function,) = model.functions
        (x, s, b, p, k) = function.inputs
        for value, dtype, shape in (
            (x, 1, (2, 3)), (s, 1, (2,)), (b, 9, (2, 3)), (p, 7, (2,)), (k, 7, (1,))
        ):  # fmt: skip
            value._type = TensorType(dtype, shape)
        (node,) = function.nodes
        assert (lowered(node) is not None) is is_lowered, call
