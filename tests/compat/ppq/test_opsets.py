"""The operands that can be quantised, and which belong together."""

from tests.recorded import assert_values
from tests.small import parsed
from tiered.compat.ppq.opsets import Opset, OpSocket


def socket(node: str, inputs: str = "float[1,2,4,4] x", at: int = 0) -> OpSocket:
    """Return the socket of a node of a graph."""
    constants = "float[2] v = {1,1}, float s = {1}, uint8 z = {1}, int64[4] p = {0,0,0,0}"
    model = parsed(f"({inputs}) => (y) <{constants}> {{ {node} }}")
    return OpSocket.of(model.main.nodes[at])


def test_each_operand_is_open_or_not() -> None:
    names = {"socket": socket, "Opset": Opset}
    assert_values(__file__, names)
