"""Spoiled models: each is optimised, or refused by an error that says so."""

import random

import onnx
import pytest

from tests.conformance.fuzz_models import fault_of, mutated
from tests.small import proto
from tiered import Graph, Model, ModelError, PassContext, function_pass
from tiered.support.errors import PassError, PreconditionError
from tiered.testing import parse

# An attribute without a name, dims beyond 64 bits, dims below 0 and unknown dtypes
# in the full check, outputs of another dtype; vectors of 2**31 elements that onnx would propagate;
# 2**62 scanned operands, axes of two dims and of none, a dim whose name is not UTF-8; an attribute
# of an early opset, an input that is an output of another dtype, a body of wrong types beside dims
# below 0, a domain that is not UTF-8.
FOUND = (
    *(63, 902, 3519, 4891, 4894, 4920, 6204, 11363, 91000498, 91002614, 91004429, 91005306),
    *(77001924, 77010119, 77011664, 77012407),
)


@pytest.mark.parametrize("seed", [*range(40, 60), *FOUND])
def test_a_spoiled_model_is_optimised_or_refused(seed: int) -> None:
    assert fault_of(mutated(random.Random(seed))) == ""


def test_a_dtype_that_nobody_knows_is_no_dtype() -> None:
    made = proto()
    made.graph.input[0].type.tensor_type.elem_type = 999
    assert fault_of(made.SerializeToString()) == ""


def test_what_a_pass_cannot_do_with_a_model_that_is_not_valid_is_no_bug_of_the_pass() -> None:
    @function_pass(opt_level=0)
    def counts(graph: Graph, ctx: PassContext) -> None:
        raise IndexError("list index out of range")

    made = proto()
    with pytest.raises(PassError, match=r"counts failed at rewrite #1 .*: IndexError") as caught:
        counts.apply(Model.from_proto(made))
    assert caught.value.exit_code == 5
    made.graph.node[0].attribute.add(name="odd", type=onnx.AttributeProto.INT)
    model = Model.from_proto(made)
    with pytest.raises(PreconditionError, match=r"counts cannot work on it: .*: odd") as refused:
        counts.apply(model)
    assert refused.value.exit_code == 1
    assert model.to_proto() == made


def test_negative_dims_are_not_given_to_the_inference_of_onnx() -> None:
    made = parse(
        "(float[2,m] x) => (int64[1] v, int64[K] s) <int64[1] a = {0}, int64[1] b = {9}>"
        " { v = Shape(x) s = Slice(v, a, b) }"
    )
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_value = -(2**63)
    assert Model.from_proto(made).complaint_as_loaded() is None


def test_types_that_contradict_each_other_make_a_model_that_is_not_valid() -> None:
    made = proto()
    assert Model.from_proto(made).complaint_as_loaded() is None
    made.graph.output[0].type.tensor_type.shape.dim.add(dim_value=7)
    assert "rank" in (Model.from_proto(made).complaint_as_loaded() or "")


@pytest.mark.parametrize("version", [0, -1, -(2**63)])
def test_an_opset_before_the_first_is_an_error(version: int) -> None:
    made = proto()
    made.opset_import[0].version = version
    with pytest.raises(ModelError, match=f"imports opset {version}; the first one is 1"):
        Model.from_proto(made)


def test_a_place_of_external_data_that_is_not_utf_8_is_an_error() -> None:
    made = proto("g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    tensor = made.graph.initializer.add(name="w", data_type=1, dims=[2])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="place")
    content = made.SerializeToString()
    assert fault_of(content.replace(b"place", b"\xff\xfece")) == ""


@pytest.mark.parametrize("field", [b"Relu", b"node_a"])
def test_a_text_that_is_not_utf_8_is_an_error(field: bytes) -> None:
    content = proto().SerializeToString()
    assert fault_of(content.replace(field, b"\xff\xfe" + field[2:])) == ""


def test_a_domain_that_is_not_utf_8_is_an_error() -> None:
    made = proto()
    made.graph.node[0].domain = "vendor"
    made.opset_import.append(onnx.helper.make_opsetid("vendor", 1))
    content = made.SerializeToString()
    assert fault_of(content.replace(b"vendor", b"\xff\xfendor")) == ""
