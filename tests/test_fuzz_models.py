"""Spoiled models: each is optimised, or refused by an error that says so."""

import random

import onnx
import pytest

from tests.conformance.fuzz_models import fault_of, mutated
from tests.small import proto


@pytest.mark.parametrize("seed", range(40, 60))
def test_a_spoiled_model_is_optimised_or_refused(seed: int) -> None:
    assert fault_of(mutated(random.Random(seed))) == ""


def test_a_dtype_that_nobody_knows_is_no_dtype() -> None:
    made = proto()
    made.graph.input[0].type.tensor_type.elem_type = 999
    assert fault_of(made.SerializeToString()) == ""


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
