"""Search for and replace subgraphs that are given as ONNX text or as functions."""
