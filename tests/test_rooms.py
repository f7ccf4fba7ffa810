"""Random models through each room: more of them with `python -m tests.conformance.rooms`."""

import contextlib
import random

import onnx
import pytest

from tests.conformance.rooms.__main__ import ROOMS, fault
from tests.conformance.rooms.room import NotTried, Refused, Result, fault_in
from tiered import Model


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("room", ROOMS)
def test_a_room_keeps_what_it_promises(room: str, seed: int) -> None:
    with contextlib.suppress(NotTried, Refused):
        assert fault(room, seed) == ""


@pytest.mark.parametrize(
    ("room", "seed"),
    [
        ("gradients", 79476),  # a Cast to float16 is a step function
        ("gradients", 79360),  # onnx.reference concatenates the scanned outputs of a Loop
        ("gradients", 3021186),  # a constant output of 3.4e38 hides the others
        ("legalize", 79265),  # integers near 2**63 in float
        ("layouts", 80278),  # onnxruntime removes a Cast that a body reads
        ("functions", 77214),  # onnxruntime takes no integer Constant in a function of opset 7
    ],
)
def test_what_is_no_fault_is_not_reported(room: str, seed: int) -> None:
    with contextlib.suppress(NotTried):
        assert fault(room, seed) == ""


def test_another_number_is_a_fault() -> None:
    def wrong(_: random.Random, model: onnx.ModelProto) -> Result:
        made = Model.from_proto(model)
        last = made.main.outputs[0]
        assert last.producer is not None
        made.main.exchange_output(last, made.main.op.Neg(last))
        return Result(model=made.to_proto(), why="negated")

    assert fault_in(wrong, 3).startswith("negated: random: ")


def test_what_is_given_stays() -> None:
    def edits(_: random.Random, model: onnx.ModelProto) -> Result:
        made = onnx.ModelProto()
        made.CopyFrom(model)
        model.producer_name = "another"
        return Result(model=made)

    assert fault_in(edits, 3) == "the model that was given is changed"


def test_an_error_within_is_no_refusal() -> None:
    def breaks(_: random.Random, model: onnx.ModelProto) -> Result:
        raise IndexError("out of range")

    with pytest.raises(IndexError):
        fault_in(breaks, 3)
