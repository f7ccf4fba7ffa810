"""The rewrite of a plan: Casts where types change, constants, attributes, declared types."""

from collections.abc import Collection

import numpy as np
import onnx
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import DataType, Model, Node
from tiered.numerics.precision.narrowing import FloatNarrowing
from tiered.numerics.precision.plan_rewrite import Conversion, convert_precision

FLOAT, HALF = DataType.FLOAT, DataType.FLOAT16


class Keeping(FloatNarrowing):
    """Keeps the nodes of some outputs."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(HALF)
        self.names = names

    def keep(self, node: Node) -> str:
        return "it is to" if node.outputs[0] and node.outputs[0].name in self.names else ""


def converted(
    text: str, *kept: str, keeps_io: bool = True, opset: int = 21
) -> tuple[Model, Conversion]:
    model = parsed(text, opset=opset)
    found = convert_precision(model, Keeping(kept), keeps_io=keeps_io)
    model.check_view(types=True)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    return model, found


def dtypes(model: Model) -> dict[str, int | None]:
    return {value.name: value.dtype for value in model.main.values.values()}


def test_inputs_and_outputs_are_cast() -> None:
    model, found = converted("(float[2] x) => (float[2] y) { a = Sin(x)  y = Exp(a) }")
    assert ops(model) == ["Cast", "Sin", "Exp", "Cast"]
    assert found.casts == 2
    assert (named(model, "x").dtype, named(model, "y").dtype) == (FLOAT, FLOAT)
    assert named(model, "a").dtype == HALF
    assert made_by(model, "y").op_type == "Cast"


def test_inputs_and_outputs_may_change() -> None:
    model, found = converted(
        "(float[2] x) => (float[2] y) { a = Sin(x)  y = Exp(a) }", keeps_io=False
    )
    assert ops(model) == ["Sin", "Exp"]
    assert found.casts == 0
    assert {*dtypes(model).values()} == {HALF}
    proto = model.to_proto()
    kinds = [each.type.tensor_type.elem_type for each in (*proto.graph.input, *proto.graph.output)]
    assert kinds == [HALF, HALF]


def test_a_value_is_cast_once_for_all_readers() -> None:
    model, found = converted(
        """(float[2] x) => (float[2] y, float[2] z) {
        a = Sin(x)  y = Exp(a)  z = Cos(a) }""",
        "y", "z",
    )  # fmt: skip
    assert found.casts == 2
    assert made_by(model, "y").inputs == made_by(model, "z").inputs


def test_an_output_that_is_read_inside_keeps_its_name_in_float() -> None:
    model, found = converted("(float[2] x) => (float[2] a, float[2] y) { a = Sin(x)  y = Exp(a) }")
    assert made_by(model, "a").op_type == "Cast"
    # Exp reads what Sin computes, before the Cast.
    assert made_by(model, "a").inputs == made_by(model, made_by(model, "y").inputs[0].name).inputs  # type: ignore[union-attr]  # it has one
    assert found.casts == 3


def test_nothing_is_edited_where_nothing_is_narrow() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Sin(x) }")
    mark = model.mark()
    found = convert_precision(model, Keeping(["y"]))
    assert (found.casts, found.clamped, found.plan.low) == (0, (), ())
    assert not model.changed_since(mark)


def test_constants_are_converted_and_keep_their_names() -> None:
    model, found = converted(
        "(float[2] x) => (float[2] y) <float[2] k = {1,100000}> { a = Mul(x, k)  y = Sin(a) }"
    )
    k = named(model, "k")
    assert k.dtype == HALF
    assert k.const is not None
    assert k.const.tolist() == [1, 65504]
    assert found.clamped == ("k",)
    assert ops(model) == ["Cast", "Mul", "Sin", "Cast"]


def test_a_constant_that_is_read_in_both_types_is_there_twice() -> None:
    model, found = converted(
        "(float[2] x) => (float[2] y) <float[2] k = {1,2}> { a = Mul(x, k)  y = Add(a, k) }", "y"
    )
    assert named(model, "k").dtype == FLOAT
    other = made_by(model, "a").inputs[1]
    assert other is not None
    assert other.dtype == HALF
    assert made_by(model, "y").inputs[1] is named(model, "k")
    assert found.clamped == ()


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ("Cast<to=1>(i)", "to", HALF),
        ("RandomNormalLike(x)", "dtype", HALF),
        ("EyeLike<dtype=1>(m)", "dtype", HALF),
    ],
)
def test_an_attribute_that_names_the_type_changes(line: str, name: str, expected: int) -> None:
    model, _ = converted(
        f"""(float[2,2] x, int64[2,2] i, int64[2,2] m) => (float[2,2] y) {{
        a = {line}  y = Sin(a) }}""",
        opset=21,
    )
    assert made_by(model, "a").attr(name) == expected


@pytest.mark.parametrize(
    ("attribute", "number", "clamped"),
    [("<value = float[1] {1e9}>", 65504, ("a",)), ("<value = float[1] {2}>", 2, ()), ("", 0, ())],
)
def test_the_number_that_fills_a_shape_changes(
    attribute: str, number: float, clamped: tuple[str, ...]
) -> None:
    model, found = converted(
        f"""(float[2] x) => (float[2] y) <int64[1] s = {{2}}> {{
        a = ConstantOfShape{attribute}(s)  y = Add(a, x) }}"""
    )
    fill = made_by(model, "a").attr("value").numpy()
    assert (fill.dtype, fill.tolist()) == (np.float16, [number])
    assert found.clamped == clamped


def test_a_result_that_stays_names_its_type_where_the_operand_changes() -> None:
    """Without an attribute it would have the type of its operand."""
    model, _ = converted(
        "(float[2,2] x) => (float[2,2] y, float[2,2] z) { a = Sin(x)  y = EyeLike(a)  z = Exp(a) }"
    )
    assert named(model, "y").dtype == FLOAT
    (eye,) = model.main.nodes_of("EyeLike")
    assert eye.attr("dtype") == FLOAT
    model, _ = converted(
        """(float[2,2] x, float[2,2] z) => (float[2,2] y, float[2,2] a) {
        y = EyeLike(z)  a = Sin(x) }""",
        "y",
    )
    assert made_by(model, "y").attributes == {}


def test_declared_types_of_inner_values_change() -> None:
    text = "(float[2] x) => (float[2] y) { a = Sin(x)  y = Exp(a) }"
    proto = parsed(text).to_proto()
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [2]))
    model = Model.from_proto(proto)
    convert_precision(model, Keeping(()))
    (info,) = (each for each in model.to_proto().graph.value_info if each.name == "a")
    assert info.type.tensor_type.elem_type == HALF


def test_the_default_of_an_input_changes_with_it() -> None:
    model, found = converted(
        "(float[2] x, float[2] w = {1,1e6}) => (float[2] y) { y = Add(x, w) }", keeps_io=False
    )
    default = named(model, "w").default
    assert default is not None
    assert default.numpy().tolist() == [1, 65504]
    assert found.clamped == ("w",)


LOOP = """(float[2] x, int64 n, bool c) => (float[2] y) {
    b = Loop(n, c, x) <body = f (int64 i, bool g, float[2] s) => (bool h, float[2] o)
        { h = Identity(g)  o = Cos(s) }>
    y = Exp(b) }"""


def test_bodies_are_converted_with_what_they_pass_on() -> None:
    model, found = converted(LOOP)
    (body,) = (graph for graph in model.graphs() if not graph.is_main)
    assert [value.dtype for value in body.outputs] == [DataType.BOOL, HALF]
    assert body.inputs[2].dtype == HALF
    assert found.casts == 2
    assert "Cast" not in [node.op_type for node in body.nodes]


def test_a_captured_value_is_cast_outside() -> None:
    model, found = converted(
        """(float[2] x, bool c) => (float[2] y) { a = Exp(x)
        y = If(c) <then_branch = t () => (float[2] p) { p = Sin(a) },
                   else_branch = e () => (float[2] q) { q = Cos(a) }> }""",
        "a",
    )
    inner = [node.op_type for graph in model.graphs() if not graph.is_main for node in graph.nodes]
    assert sorted(inner) == ["Cos", "Sin"]
    assert ops(model) == ["Exp", "Cast", "If", "Cast"]
    assert found.casts == 2


def test_an_input_that_is_an_output_keeps_both_types() -> None:
    model, _ = converted("(float[2] x) => (float[2] x, float[2] y) { y = Sin(x) }")
    assert named(model, "x").dtype == FLOAT
    assert ops(model) == ["Cast", "Sin", "Cast"]


def test_an_output_that_is_there_twice_is_cast_once() -> None:
    model = parsed("(float[2] x) => (float[2] y, float[2] y) { y = Sin(x) }")
    found = convert_precision(model, Keeping(()))
    assert (ops(model), found.casts) == (["Cast", "Sin", "Cast"], 2)


def test_a_result_of_a_body_that_stays_is_cast_behind_its_value() -> None:
    model, _ = converted(
        """(float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Sin(x) },
                   else_branch = e () => (float[2] q) { q = Cos(x) }> }""",
        "y",
    )
    for body, name in zip(made_by(model, "y").bodies, "pq", strict=True):
        assert [node.op_type for node in body.nodes][-2:] == [made_by(body, name).op_type, "Cast"]
        assert body.outputs[0] is not named(body, name)
