"""Types of values: what rules infer, what onnx infers, and what the file declares."""

from collections.abc import Sequence

import onnx
import pytest

from tests.registered import rules_forgotten
from tests.small import made_by, named, parsed
from tiered import Model, shape_rule
from tiered.graph import TensorType
from tiered.graph.core.types import ValueType
from tiered.graph.shape_inference import infer
from tiered.testing import parse

FLOAT, INT64 = 1, 7


def declared(text: str, name: str, *shape: int | str, dtype: int = FLOAT) -> Model:
    """Return a model whose file declares the type of an inner value."""
    proto = parse(text)
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info(name, dtype, shape))
    return Model.from_proto(proto)


def test_what_is_inferred_counts_before_a_declaration() -> None:
    of = declared("(float[N,3] x) => (float[N,3] y) { a = Neg(x) y = Abs(a) }", "a", 1, 3)
    assert named(of, "a").shape == named(of, "x").shape
    assert named(of, "a").shape != (1, 3)


def test_a_declaration_counts_where_nothing_is_inferred() -> None:
    of = declared("(float[2] x) => (float[2] y) { a = own.Some(x) y = Abs(a) }", "a", 4, 3)
    assert named(of, "a").type == TensorType(FLOAT, (4, 3))
    without = parsed("(float[2] x) => (y) { a = own.Some(x) y = own.Some(a) }")
    assert named(without, "a").type is None


class OnnxSays:
    """What onnx infers, in place of its own inference."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch

    def __call__(self, *types: ValueType | None) -> None:
        self.patch.setattr(infer, "onnx_types", lambda node: list(types))


@pytest.fixture
def onnx_says(monkeypatch: pytest.MonkeyPatch) -> OnnxSays:
    return OnnxSays(monkeypatch)


@pytest.mark.parametrize(
    ("ruled", "inferred", "expected"),
    [
        (TensorType(FLOAT, (2, None)), TensorType(FLOAT, (None, 3)), TensorType(FLOAT, (2, 3))),
        (TensorType(FLOAT, (2, None)), TensorType(FLOAT, (5, 3)), TensorType(FLOAT, (5, 3))),
        (TensorType(FLOAT, (2, None)), TensorType(FLOAT, None), TensorType(FLOAT, (2, None))),
        (TensorType(FLOAT, (2, None)), None, TensorType(FLOAT, (2, None))),
        (TensorType(FLOAT, None), TensorType(FLOAT, (None, 3)), TensorType(FLOAT, (None, 3))),
        # Where they contradict each other, onnx is right.
        (TensorType(FLOAT, (2, None)), TensorType(FLOAT, (2, 3, 4)), TensorType(FLOAT, (2, 3, 4))),
    ],
)
def test_a_rule_knows_the_dims_that_onnx_does_not(
    ruled: ValueType,
    inferred: ValueType | None,
    expected: ValueType,
    onnx_says: OnnxSays,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = made_by(parsed("(float[2] x) => (float[2] y) { y = Neg(x) }"), "y")
    monkeypatch.setattr(infer, "inferred_types", lambda node: infer.InferredTypes((ruled,), False))
    onnx_says(inferred)
    assert list(infer.infer_outputs(node)) == [expected]
    assert list(infer.infer_outputs(node, ask_onnx=False)) == [ruled]


@pytest.mark.parametrize("types", [(TensorType(INT64, (9,)),), ()])
def test_onnx_is_not_asked_where_a_rule_knows_all(
    types: Sequence[ValueType], onnx_says: OnnxSays
) -> None:
    node = made_by(parsed("(float[2] x) => (float[2] y) { y = Neg(x) }"), "y")
    onnx_says(*types)
    assert list(infer.infer_outputs(node)) == [TensorType(FLOAT, (2,))]


def test_new_nodes_get_their_types_when_they_are_asked_for() -> None:
    of = parsed("(float[2,3] x) => (float[2,3] y) { y = Neg(x) }")
    value = named(of, "x")
    for _ in range(2000):  # more than Python recurses
        value = of.main.op.Neg(value)
    assert value.type == TensorType(FLOAT, (2, 3))


def test_a_local_function_is_not_inferred_by_the_rule_of_its_name() -> None:
    from onnx import parser

    of = Model.from_proto(
        parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
            g (float[2] x) => (float[N] y) { a = com.microsoft.Gelu(x) y = Neg(a) }
            <domain: "com.microsoft", opset_import: ["" : 21]>
            Gelu (p) => (q) { q = Concat<axis = 0>(p, p) }"""
        )
    )
    assert named(of, "a").shape != (2,)


def test_types_are_refreshed_once_after_an_edit() -> None:
    of = parsed("(float[2,3] x, float[4] z) => (float[N] y) { a = Neg(x) y = own.Some(a) }")
    stamp = infer.refresh_types(of, None)
    assert infer.refresh_types(of, stamp) is stamp
    of.main.op.Abs(named(of, "z"))
    later = infer.refresh_types(of, stamp)
    assert later is not stamp
    assert infer.refresh_types(of, later) is later


def test_a_rule_speaks_for_one_result_of_an_operator_of_onnx_from_opset_7_on() -> None:
    header = "(float[2,3] x, float[3] s, int64[1] k, float m) => (y, z) "
    for line, opset, expected in (
        ("y = Neg(x)", 6, None),
        ("y = Neg(x)", 7, (2, 3)),
        ("y = com.microsoft.Gelu(x)", 6, (2, 3)),
        ("y = Clip(x, , m)", 21, (2, 3)),
        ("y = acme.Any(x)", 21, None),
        ("y = Neg(u)", 21, None),
        ("y, z = LayerNormalization(x, s)", 17, None),
        ("y = LayerNormalization(x, s)", 17, (2, 3)),
        ("y, z = Dropout(x)", 21, None),
    ):
        nodes = f"u = acme.Any(x)  {line}" + ("" if "y, z" in line else "  z = Neg(x)")
        found = infer.inferred_types(made_by(parsed(f"{header}{{ {nodes} }}", opset=opset), "y"))
        assert (None if found is None else found.types) == (
            None if expected is None else (TensorType(FLOAT, expected),)
        ), (line, opset)


def test_a_type_of_a_rule_is_final_if_all_dims_are_known() -> None:
    sequence = parsed("(seq(float[2]) q, float[2] x) => (y) { y = Neg(x) }").main.inputs[0].type
    for made, ask_onnx, is_final in (
        (TensorType(FLOAT, (2,)), True, True),
        (TensorType(FLOAT, (2, None)), True, False),
        (TensorType(FLOAT, None), True, False),
        (TensorType(FLOAT, (2, None)), False, True),
        (TensorType(FLOAT, None), False, True),
        (sequence, True, True),
    ):
        with rules_forgotten():
            shape_rule("Own", domain="own", ask_onnx=ask_onnx)(lambda _: made)  # noqa: B023  # called at once
            for results in ("y", "y, z"):
                text = f"(float[2] x) => ({results}) {{ {results} = own.Own(x) }}"
                found = infer.inferred_types(made_by(parsed(text), "y"))
                assert found is not None
                assert (*found.types, found.is_final) == (made, is_final), (made, ask_onnx)


def test_a_call_has_no_rule_and_the_nodes_beside_it_have() -> None:
    from onnx import parser

    of = Model.from_proto(
        parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
            g (float[2] x) => (y, z) { y = com.microsoft.Gelu(x)  z = com.microsoft.FastGelu(x) }
            <domain: "com.microsoft", opset_import: ["" : 21]>
            Gelu (p) => (q) { q = Concat<axis = 0>(p, p) }"""
        )
    )
    assert infer.inferred_types(made_by(of, "y")) is None
    assert infer.inferred_types(made_by(of, "z")) is not None


def test_the_type_of_onnx_counts_before_that_of_a_rule_of_another_kind() -> None:
    sequence = parsed("(seq(float[2]) q, float[2] x) => (y) { y = Neg(x) }").main.inputs[0].type
    tensor = TensorType(FLOAT, (2,))
    for inferred, ruled, expected in (
        (None, None, None),
        (tensor, None, tensor),
        (None, tensor, tensor),
        (sequence, tensor, sequence),
        (tensor, sequence, tensor),
        (sequence, sequence, sequence),
    ):
        assert infer._with_known_dims(inferred, ruled) == expected, (inferred, ruled)
