"""What differs from the interface of the model as it was read."""

import pytest

from tiered import Model
from tiered.pipeline.interface import interface_changes
from tiered.testing import parse

TEXT = """<ir_version: 10, opset_import: ["" : 21, "own" : 2]> g
    (float[2] x, float[2] z) => (float[2] y, float[2] w) { y = Add(x, z)  w = Neg(x) }"""


def test_a_model_that_stays_has_no_changes() -> None:
    assert interface_changes(Model.from_proto(parse(TEXT))) == []


def test_opsets_and_the_ir_version_are_named() -> None:
    model = Model.from_proto(parse(TEXT))
    model.set_opset("own", 3)
    model.set_opset("new", 1)
    model.set_ir_version(9)
    assert interface_changes(model) == ["opset of own 2 -> 3", "IR version 10 -> 9"]
    model.convert_opset(22)
    assert interface_changes(model)[0] == "opset 21 -> 22"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("(float[2] z, float[2] x) => (float[2] y, float[2] w)", ["inputs in another order: z, x"]),
        (
            "(float[2] x, float[2] z) => (float[2] w, float[2] y)",
            ["outputs in another order: w, y"],
        ),
        ("(float[2] x, float[2] z) => (float[2] y)", ["output w removed"]),
        (
            "(float[2] x, float[2] z, int64 n) => (float[2] y, float[2] w)",
            ["input n added: int64[]"],
        ),
        (
            "(float[N] x, float[2] z) => (float[2] y, float[2] w)",
            ["input x: float[2] -> float[N]"],
        ),
        (
            "(float[2] x, float[2] k) => (float[2] y, float[2] w)",
            ["input z removed", "input k added: float[2]"],
        ),
    ],
)
def test_inputs_and_outputs_are_compared_by_name(after: str, expected: list[str]) -> None:
    body = "{ y = Add(x, z)  w = Neg(x) }"
    changed = f"{after} {body}".replace("Add(x, z)", "Neg(x)" if " k)" in after else "Add(x, z)")
    model = Model.from_proto(parse(changed))
    origin = parse(f"(float[2] x, float[2] z) => (float[2] y, float[2] w) {body}")
    assert model.origin is not None
    model.origin.CopyFrom(origin)
    assert interface_changes(model) == expected
