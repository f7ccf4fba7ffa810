"""Texts of models at an opset, for the tests of conversions."""

X = "(float[2,3] x) => (float[N,M] y) "
IMAGE = "(float[1,2,4,4] x) => (float[1,2,H,W] y) "


def at(opset: int, text: str, ir: int = 10) -> str:
    """Return the text of a model with its header."""
    return f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {text}'
