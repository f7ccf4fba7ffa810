"""The data of operators that move elements."""

import pytest

from tests.small import parsed
from tiered.numerics.quantization.slots import ACTIVATIONS, MOVERS, ONE_SCALE, data_operands


@pytest.mark.parametrize(
    ("call", "data"),
    [
        ("Concat<axis = 0>(x, w, x)", ["x", "w", "x"]),
        ("Concat<axis = 0>(x, , w)", ["x", "w"]),
        ("Reshape(x, s)", ["x"]),
        ("Transpose(x)", ["x"]),
        ("MaxPool<kernel_shape = [1]>(x)", ["x"]),
        ("Split<num_outputs = 1>(x, )", ["x"]),
        ("own.Reshape(x, s)", []),
        ("Add(x, w)", []),
        ("Pad(x, s)", []),
    ],
)
def test_the_data_of_what_moves_elements_has_one_scale(call: str, data: list[str]) -> None:
    text = f"""<ir_version: 10, opset_import: ["": 21, "own": 1]>
        g (float[1,1,4] x, float[1,1,4] w, int64[3] s) => (float[1,1,4] y) {{ y = {call} }}"""
    (node,) = parsed(text).main.nodes
    assert [value.name for value in data_operands(node)] == data


def test_what_moves_has_one_scale_and_activations_have_not() -> None:
    assert MOVERS.keys() < ONE_SCALE
    assert sorted(ONE_SCALE - MOVERS.keys()) == [
        "AveragePool", "GlobalAveragePool", "Max", "Min", "Pad", "Resize", "Where",
    ]  # fmt: skip
    assert ONE_SCALE.isdisjoint(ACTIVATIONS)
    assert {slots for name, slots in MOVERS.items() if name != "Concat"} == {(0,)}
