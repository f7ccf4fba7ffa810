"""Models of a QuantizeLinear or DequantizeLinear beside an operator that moves elements."""

from tests.constants import spoken_of

CONSTANTS = (
    *("float s = {0.5}", "float[3] t = {0.5,1,2}", "uint8 z = {3}", "uint8[3] u = {3,0,1}"),
    *("int64[1] o = {1}", "int64[1] i = {0}", "int64[2] shape = {2,12}", "uint4 f = {3}"),
    *("uint16 w = {3}", "float n = {-0.5}", "int64[2] sizes = {1,2}"),
)

MOVES = [
    ("Transpose<perm=[0,2,3,1]>({})", "1,3,4,2"),
    ("Flatten<axis=2>({})", "2,12"),
    ("Identity({})", "1,2,3,4"),
    ("Reshape({}, shape)", "2,12"),
    ("Squeeze({}, i)", "2,3,4"),
    ("Slice({}, i, o, o)", "1,1,3,4"),
    ("Gather<axis=1>({}, o)", "1,1,3,4"),
]
"""Operators that move elements of float[1,2,3,4], and the dims of their results."""


def moving(move: str, operand: str, opset: int) -> str:
    """Return the text of a move of an operand, in the form of an opset."""
    form = "Squeeze<axes=[0]>({})" if opset < 13 and move.startswith("Squeeze") else move
    return form.format(operand)


def graph(nodes: str, outputs: str, inputs: str) -> str:
    """Return the text of a model, with the constants that its nodes name."""
    return f"({inputs}) => ({outputs}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"
