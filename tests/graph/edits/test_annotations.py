"""A quantization annotation stays with the numbers that it describes."""

import onnx
import pytest

from tiered import Model, get_pass, optimize_model
from tiered.testing import parse

HEAD = "(float[2,4] x) => (float[2,4] y) <float s = {0.5}, uint8 z = {3}"
FORMS = {
    "an Identity": f"{HEAD}> {{ a = Relu(x)  r = Identity(a)  y = Neg(r) }}",
    "a Reshape to the same shape": (
        f"{HEAD}, int64[2] t = {{2,4}}> {{ a = Relu(x)  r = Reshape(a, t)  y = Neg(r) }}"
    ),
    "two Transposes": f"{HEAD}> {{ a = Relu(x)  b = Transpose(a)  r = Transpose(b)  y = Neg(r) }}",
}


def annotated(text: str, *names: str) -> onnx.ModelProto:
    proto = parse(text)
    for name in names:
        made = proto.graph.quantization_annotation.add(tensor_name=name)
        for key, value in (("SCALE_TENSOR", "s"), ("ZERO_POINT_TENSOR", "z")):
            made.quant_parameter_tensor_names.add(key=key, value=value)
    return proto


def names_in(proto: onnx.ModelProto) -> list[str]:
    return [each.tensor_name for each in proto.graph.quantization_annotation]


@pytest.mark.parametrize("form", FORMS)
def test_a_replaced_value_hands_its_annotation_on(form: str) -> None:
    proto = optimize_model(annotated(FORMS[form], "r"), opt_level=2).model.to_proto()
    assert names_in(proto) == ["a"]
    assert {each.name for each in proto.graph.initializer} == {"s", "z"}


def test_a_replacement_keeps_its_own() -> None:
    proto = optimize_model(annotated(FORMS["an Identity"], "a", "r"), opt_level=2).model.to_proto()
    assert names_in(proto) == ["a"]


def test_it_is_undone() -> None:
    model = Model.from_proto(annotated(FORMS["an Identity"], "r"))
    before, mark = model.to_proto(), model.mark()
    get_pass("eliminate_identity").apply(model)
    assert names_in(model.to_proto()) == ["a"]
    model.undo_to(mark)
    assert model.to_proto() == before
