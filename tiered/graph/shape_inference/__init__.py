"""Types, symbolic dims and partially known values, from rules of our own and from onnx's."""
