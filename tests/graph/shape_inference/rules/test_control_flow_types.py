"""Types of If, Loop and Scan follow from their bodies, and trip counts from constants."""

import pytest

from tests.small import made_by, named, parsed
from tiered.graph import Model
from tiered.graph.shape_inference.infer import infer_outputs
from tiered.graph.shape_inference.rules.control_flow_types import _scan, body_inputs, loop_turns
from tiered.testing import parse

LOOP = """(float[2,3] x, int64 m, bool p) => (float[?] y, float[?] r) <int64 n = {{3}}, int64 one = {{1}},
    int64 none = {{0}}, int64[2] two = {{2,2}}, bool t = {{1}}, bool f = {{0}}, int64[1] e = {{0}}> {{
    y, r = Loop({operands}) <body = b (int64 at, bool on, {state} v) =>
        (bool goes_on, float[?] w, float[?] row) {{ goes_on = {next}  w = {made}  row = Neg(v) }}> }}"""


def loop(
    operands: str = "n, t, x", following: str = "Identity(on)", state: str = "float[2,3]",
    made: str = "Abs(v)",
) -> object:  # fmt: skip
    return LOOP.format(operands=operands, next=following, state=state, made=made)


@pytest.mark.parametrize(
    ("operands", "following", "expected"),
    [
        ("n, t, x", "Identity(on)", 3),
        ("n, , x", "Identity(on)", 3),
        ("none, t, x", "Not(on)", 0),
        ("n, f, x", "Not(on)", 0),
        ("one, t, x", "Not(on)", 1),
        ("n, t, x", "Identity(f)", 1),
        ("n, t, x", "Identity(t)", 3),
        ("n, t, x", "Not(on)", "the body decides when it ends"),
        ("m, t, x", "Identity(on)", "the number of iterations is not a constant"),
        ("n, p, x", "Identity(on)", "the condition is not a constant"),
        (", t, x", "Identity(on)", "nothing ends it"),
        (", t, x", "Identity(f)", 1),
        ("two, t, x", "Identity(on)", "the number of iterations is not a constant"),
    ],
)
def test_the_trip_count_follows_from_constants(
    operands: str, following: str, expected: int | str
) -> None:
    model = parsed(str(loop(operands, following)))
    assert loop_turns(made_by(model, "y")) == expected


@pytest.mark.parametrize(
    ("made", "state", "carried", "rows"),
    [
        ("Abs(v)", "float[2,3]", (2, 3), (3, 2, 3)),
        ("Transpose(v)", "float[A,B]", (None, None), None),
        ("ReduceSum<keepdims = 1>(v, e)", "float[A,3]", (None, 3), None),
    ],
)
def test_a_carried_value_has_the_dims_that_start_and_body_agree_on(
    made: str, state: str, carried: tuple[object, ...], rows: tuple[object, ...] | None
) -> None:
    model = parsed(str(loop(state=state, made=made)))
    shape = named(model, "y").shape
    assert shape is not None
    assert tuple(dim if isinstance(dim, int) else None for dim in shape) == carried
    if rows is not None:
        assert named(model, "r").shape == rows


def test_the_inputs_of_a_loops_body_have_types_of_operands_without_shapes() -> None:
    model = parsed(str(loop()))
    found = [
        (value.name, kind.dtype, kind.shape) for value, kind in body_inputs(made_by(model, "y"))
    ]
    assert found == [("at", 7, None), ("on", 9, None), ("v", 1, None)]


SCAN = """(float[2] x, float[5,4] z) => (float[?] y, float[?] r) {{
    y, r = Scan<num_scan_inputs = 1, {axes} body = b ({inputs}) => (float[?] w, float[?] row) {{
        w = Abs(v)  row = {row} }}>(x, z) }}"""


@pytest.mark.parametrize(
    ("axes", "row", "expected", "inputs"),
    [
        ("", "Neg(e)", (5, 4), [("v", (2,)), ("e", (4,))]),
        ("scan_input_axes = [1],", "Neg(e)", (4, 5), [("v", (2,)), ("e", (5,))]),
        ("scan_output_axes = [1],", "Neg(e)", (4, 5), [("v", (2,)), ("e", (4,))]),
        ("scan_output_axes = [-1],", "Neg(e)", (4, 5), [("v", (2,)), ("e", (4,))]),
        ("scan_input_axes = [-1],", "Neg(v)", (4, 2), [("v", (2,)), ("e", (5,))]),
    ],
)
def test_a_scan_takes_its_axis_off_operands_and_puts_it_on_results(
    axes: str, row: str, expected: tuple[int, ...], inputs: list[tuple[str, tuple[int, ...]]]
) -> None:
    model = parsed(SCAN.format(axes=axes, row=row, inputs="float[?] v, float[?] e"))
    assert named(model, "y").shape == (2,)
    assert named(model, "r").shape == expected
    found = [(value.name, kind.shape) for value, kind in body_inputs(made_by(model, "y"))]
    assert found == inputs


def inferred(text: str, opset: int = 21) -> list[str]:
    """Return the types of a Loop or Scan that the rule infers without onnx."""
    node = made_by(parsed(text, opset=opset), "y")
    return [str(kind) for kind in infer_outputs(node, ask_onnx=False)]


def test_the_types_of_a_scan_without_onnx() -> None:
    for axes, row, expected in (
        ("", "Neg(e)", ["float[2]", "float[5,4]"]),
        ("scan_input_axes = [1],", "Neg(e)", ["float[2]", "float[4,5]"]),
        ("scan_output_axes = [1],", "Neg(e)", ["float[2]", "float[4,5]"]),
        ("scan_output_axes = [-1],", "Neg(e)", ["float[2]", "float[4,5]"]),
        ("scan_output_axes = [-2],", "Neg(e)", ["float[2]", "float[5,4]"]),
        ("scan_input_axes = [-1],", "Neg(v)", ["float[2]", "float[4,2]"]),
    ):
        text = SCAN.format(axes=axes, row=row, inputs="float[?] v, float[?] e")
        for opset in (9, 21):
            assert inferred(text, opset) == expected, (axes, row, opset)
    two = SCAN.replace("num_scan_inputs = 1", "num_scan_inputs = 2").replace(
        "(x, z) }}", "(x, z, z) }}"
    )
    text = two.format(axes="scan_input_axes = [0,1],", row="Neg(e)",
                      inputs="float[?] v, float[?] e, float[?] f")  # fmt: skip
    assert inferred(text) == ["float[2]", "float[5,4]"]


def test_a_row_of_unknown_rank_is_collected_in_a_tensor_of_unknown_rank() -> None:
    text = str(loop()).replace("row = Neg(v)", "row = Reshape(v, k)").replace(
        "bool p) =>", "bool p, int64[K] k) =>").replace("float[?] row)", "float[] row)")  # fmt: skip
    assert inferred(text) == ["float[2,3]", "float"]
    text = SCAN.format(axes="", row="Reshape(e, k)", inputs="float[?] v, float[?] e").replace(
        "float[5,4] z) =>", "float[5,4] z, int64[K] k) =>").replace(
            "float[?] row)", "float[] row)")  # fmt: skip
    assert inferred(text) == ["float[2]", "float"]


def test_a_scan_with_a_batch_axis_gives_its_body_no_types() -> None:
    text = SCAN.format(axes="", row="Neg(e)", inputs="float[?] v, float[?] e")
    text = text.replace("(x, z) }", "(, x, z) }")
    assert body_inputs(made_by(parsed(text, opset=8), "y")) == []
    with pytest.raises(ValueError, match="this version of Scan has a batch axis"):
        _scan(made_by(parsed(text, opset=8), "y"), [])


def test_inputs_of_bodies_of_other_types_than_tensors_are_left_out() -> None:
    text = """(float[2] x, int64 n, bool c, seq(float[2]) q) => (float[2] y) {
        y, s, u = Loop(n, c, x, q, w) <body = b (int64 i, bool g, float[2] v, seq(float[2]) r,
            float[2] t) => (bool on, float[2] o, seq(float[2]) p, float[2] a) {
            on = Identity(g)  o = Neg(v)  p = Identity(r)  a = Neg(t) }>  w = acme.Any(x) }"""
    text = text.replace("{\n        y, s, u", "{ w = acme.Any(x)\n        y, s, u").replace(
        "}>  w = acme.Any(x) }", "}> }")  # fmt: skip
    found = body_inputs(made_by(parsed(text), "y"))
    assert [(value.name, str(kind)) for value, kind in found] == [
        ("i", "int64"), ("g", "bool"), ("v", "float"),
    ]  # fmt: skip
    scan = SCAN.format(axes="", row="Neg(v)", inputs="double[?] v, float[?] e")
    assert [value.name for value, _ in body_inputs(made_by(parsed(scan), "y"))] == ["e"]


def test_an_axis_that_an_operand_lacks_gives_its_body_no_type() -> None:
    text = SCAN.format(axes="scan_input_axes = [2],", row="Neg(v)", inputs="float[?] v, float[?] e")
    model = parsed(text)
    assert [value.name for value, _ in body_inputs(made_by(model, "y"))] == ["v"]


def test_an_operand_of_unknown_rank_gives_its_body_an_unknown_shape() -> None:
    text = SCAN.format(axes="", row="Neg(v)", inputs="float[?] v, float[?] e").replace(
        "float[5,4] z) =>", "float[5,4] z, int64[K] t) =>"
    ).replace("y, r = Scan", "u = Reshape(z, t)  y, r = Scan").replace("(x, z) }", "(x, u) }")  # fmt: skip
    model = parsed(text)
    found = {value.name: kind.shape for value, kind in body_inputs(made_by(model, "y"))}
    assert found == {"v": (2,), "e": None}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Neg(x)", "Abs(x)", (2, 3)),
        ("Neg(x)", "Transpose(x)", (None, None)),
        ("Neg(x)", "ReduceSum<keepdims = 0>(x, e)", None),
    ],
)
def test_the_results_of_an_if_have_the_dims_of_both_branches(
    one: str, other: str, expected: tuple[object, ...] | None
) -> None:
    model = parsed(
        f"""(float[2,3] x, bool p) => (float[?] kept) <int64[1] e = {{0}}> {{
        y = If(p) <then_branch = a () => (float[?] u) {{ u = {one} }},
                   else_branch = b () => (float[?] v) {{ v = {other} }}>  kept = Abs(y) }}"""
    )
    shape = named(model, "y").shape
    found = None if shape is None else tuple(
        dim if isinstance(dim, int) else None for dim in shape
    )  # fmt: skip
    assert found == expected


def test_of_branches_of_unknown_rank_the_result_has_none() -> None:
    text = """(float[2,3] x, bool p, int64[K] t) => (float[2,3] y) {
        y = If(p) <then_branch = a () => (float[?] u) { u = Reshape(x, t) },
                   else_branch = b () => (float[?] v) { v = Neg(x) }> }"""
    proto = parse(text)
    bodies = [attribute.g for attribute in proto.graph.node[0].attribute]
    for port in (proto.graph.output[0], *(body.output[0] for body in bodies)):
        port.type.tensor_type.ClearField("shape")
    assert named(Model.from_proto(proto), "y").shape is None
