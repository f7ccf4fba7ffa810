"""Dims of tensors that become one are equal, and have one name or size in both models."""

from typing import Any, Literal

import onnx
import pytest

from tests.small import parsed
from tiered import ModelError
from tiered.pipeline.compose.connections import joints
from tiered.pipeline.compose.merged_dims import (
    EqualDims,
    equal_dims,
    free_name,
    reconcile_dims,
)
from tiered.testing import parse


def equal(*shapes: tuple[str, str]) -> EqualDims:
    """Return the equal dims of two models whose tensors have these shapes, each for each."""
    models = []
    for at in (0, 1):
        inputs = ", ".join(f"float[{pair[at]}] v{number}" for number, pair in enumerate(shapes))
        models.append(parsed(f"({inputs}) => (float y) {{ y = ReduceSum<keepdims=0>(v0) }}"))
    pairs = list(zip(models[0].main.inputs, models[1].main.inputs, strict=True))
    return EqualDims(pairs, [])


@pytest.mark.parametrize(
    ("shapes", "model", "name", "expected"),
    [
        ([("N", "M")], 0, "N", (None, ["N"], ["M"])),
        ([("N", "M")], 1, "M", (None, ["N"], ["M"])),
        ([("N", "M")], 0, "other", (None, ["other"], [])),
        ([("N", "5")], 0, "N", (5, ["N"], [])),
        ([("5", "M")], 1, "M", (5, [], ["M"])),
        ([("N", "M"), ("N", "K")], 1, "K", (None, ["N"], ["M", "K"])),
        ([("N", "M"), ("P", "M"), ("P", "3")], 0, "N", (3, ["N", "P"], ["M"])),
        ([("N", "3"), ("P", "M"), ("N", "M")], 1, "M", (3, ["N", "P"], ["M"])),
        ([("3", "3")], 0, "N", (None, ["N"], [])),
        ([("N,N", "M,4")], 1, "M", (4, ["N"], ["M"])),
    ],
)
def test_dims_are_equal_in_turn(
    shapes: list[tuple[str, str]], model: Literal[0, 1], name: str, expected: Any
) -> None:
    assert equal(*shapes).of(model, name) == expected


@pytest.mark.parametrize(
    "shapes",
    [
        [("N", "3"), ("N", "4")],
        [("N", "M"), ("N", "3"), ("4", "M")],
        [("N", "3"), ("4", "M"), ("N", "M")],
        [("N,N", "3,4")],
    ],
)
def test_a_dim_of_two_sizes_is_an_error(shapes: list[tuple[str, str]]) -> None:
    with pytest.raises(
        ModelError, match=r"dim '[NM]' would be both [34] and [34]: 'v\d' is float\["
    ):
        equal(*shapes)


def test_the_error_names_both_places() -> None:
    with pytest.raises(ModelError) as caught:
        equal(("N", "3"), ("N", "4"))
    assert str(caught.value) == (
        "dim 'N' would be both 3 and 4: 'v0' is float[N] and 'v0' is float[3], "
        "but 'v1' is float[N] and 'v1' is float[4]"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("seq(float[N])", "seq(float[3])"), ("float[N]", "seq(float[3])"),
        ("seq(float[3])", "float[N]"), ("float[]", "float[N]"), ("float[N]", "float[]"),
        ("float[N]", "float"),
    ],
)  # fmt: skip
def test_what_has_no_dims_gives_none(one: str, other: str) -> None:
    pair = [parsed(f"({each} s) => ({each} y) {{ y = Identity(s) }}") for each in (one, other)]
    made = EqualDims([(pair[0].main.inputs[0], pair[1].main.inputs[0])], [])
    assert made.of(0, "N") == (None, ["N"], [])
    assert made.of(1, "N") == (None, [], ["N"])


@pytest.mark.parametrize(
    ("name", "taken", "expected"),
    [("a", set(), "a"), ("a", {"a"}, "a_1"), ("a", {"a", "a_1", "a_3"}, "a_2")],
)
def test_a_free_name_has_a_number_where_it_is_taken(
    name: str, taken: set[str], expected: str
) -> None:
    assert free_name(name, taken) == expected


def dims(info: onnx.ValueInfoProto) -> list[str | int] | None:
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [dim.dim_param or dim.dim_value for dim in tensor.shape.dim]


def reconciled(first: str, second: str, prefix: str = "") -> tuple[Any, Any]:
    """Return the dims of the inputs and outputs of two models after they are reconciled."""
    models = parsed(first), parsed(second)
    made = joints(*models, None, prefix=prefix, may_be_apart=True)
    one, two = (model.to_proto() for model in models)
    reconcile_dims(one, two, equal_dims(made), prefix)
    shown = [
        [dims(info) for info in (*proto.graph.input, *proto.graph.output)] for proto in (one, two)
    ]
    return shown[0], shown[1]


@pytest.mark.parametrize(
    ("first", "second", "prefix", "expected"),
    [
        # One name, that of the first model.
        ("(float[n] x) => (float[n] h) { h = Neg(x) }",
         "(float[m] h) => (float[m] y) { y = Abs(h) }", "", ([["n"], ["n"]], [["n"], ["n"]])),
        # A size.
        ("(float[n] x) => (float[n] h) { h = Neg(x) }",
         "(float[2] h) => (float[2] y) { y = Abs(h) }", "", ([[2], [2]], [[2], [2]])),
        ("(float[2] x) => (float[2] h) { h = Neg(x) }",
         "(float[m] h) => (float[m] y) { y = Abs(h) }", "", ([[2], [2]], [[2], [2]])),
        # Others of the second model have a prefix.
        ("(float[n] x) => (float[n] h) { h = Neg(x) }",
         "(float[m] h, float[k] z) => (float[k] y) { y = Abs(z) }", "b_",
         ([["n"], ["n"]], [["n"], ["b_k"], ["b_k"]])),
        ("(float[n] x, float[b_k] w) => (float[n] h) { h = Neg(x) }",
         "(float[m] h, float[k] z) => (float[k] y) { y = Abs(z) }", "b_",
         ([["n"], ["b_k"], ["n"]], [["n"], ["b_k_1"], ["b_k_1"]])),
        # A name that a linked dim has now.
        ("(float[n] x) => (float[n] h) { h = Neg(x) }",
         "(float[m] h, float[n] z) => (float[n] y) { y = Abs(z) }", "",
         ([["n"], ["n"]], [["n"], ["n_1"], ["n_1"]])),
        # A name of the first model that stands for a size now, or for a linked dim.
        ("(float[n] x) => (float[n] h) { h = Neg(x) }",
         "(float[2] h, float[n] z) => (float[n] y) { y = Abs(z) }", "",
         ([[2], [2]], [[2], ["n"], ["n"]])),
        ("(float[k] x, float[n] w) => (float[k] h, float[n] i) { h = Neg(x) i = Neg(w) }",
         "(float[m] h, float[m] i, float[n] z) => (float[n] y) { y = Abs(z) }", "",
         ([["k"]] * 4, [["k"], ["k"], ["n"], ["n"]])),
        # Shared inputs have the dims that either declares.
        ("(float[n,?] x) => (float[n,?] u) { u = Neg(x) }",
         "(float[m,3] x) => (float[m,3] y) { y = Abs(x) }", "",
         ([["n", 3], ["n", 0]], [["n", 3], ["n", 3]])),
        ("(float[] x) => (float[] u) { u = Neg(x) }",
         "(float[m,3] x) => (float[m,3] y) { y = Abs(x) }", "",
         ([["m", 3], None], [["m", 3], ["m", 3]])),
        ("(float[n,3] x) => (float[n,3] u) { u = Neg(x) }",
         "(float[] x) => (float[] y) { y = Abs(x) }", "",
         ([["n", 3], ["n", 3]], [None, None])),
        ("(float[] x) => (float[] u) { u = Neg(x) }", "(float[] x) => (float[] y) { y = Abs(x) }",
         "", ([None, None], [None, None])),
        ("(seq(float[n]) x) => (int64 u) { u = SequenceLength(x) }",
         "(seq(float[n]) x) => (int64 y) { y = SequenceLength(x) }", "",
         ([None, []], [None, []])),
    ],
)  # fmt: skip
def test_both_models_have_the_same_dims(
    first: str, second: str, prefix: str, expected: tuple[Any, Any]
) -> None:
    assert reconciled(first, second, prefix) == expected


@pytest.mark.parametrize("at", [0, 1])
def test_an_input_without_a_type_stays_without(at: int) -> None:
    protos = [parse(f"(float[n] x) => (float[n] {name}) {{ {name} = Neg(x) }}") for name in "uy"]
    protos[at].graph.input[0].ClearField("type")
    reconcile_dims(protos[0], protos[1], EqualDims([], ["x"]), "")
    assert [proto.graph.input[0].type.WhichOneof("value") for proto in protos] == (
        [None, "tensor_type"] if at == 0 else ["tensor_type", None]
    )
